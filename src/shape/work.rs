//! What the segments of a pass ask of a GPU, whatever its speed.
//!
//! Products are listed one by one, since how fast they run depends on their sizes. What lies between them
//! is counted in elements read and written, kernel by kernel, as Megatron-LM's training loop of 2021 to
//! 2022 runs it: the published times that the cost model is held to are of that program.

use super::{Attention, ModelShape, Segment, Slices};
use crate::units::Pass;

/// A matrix product, or a kernel that fuses several: arithmetic and memory, whichever takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// Floating-point operations.
    pub flops: f64,
    /// Elements of operands and result.
    pub elements: f64,
    /// Whether it is attention's core in one kernel.
    pub fused: bool,
}

impl Product {
    /// `count` products of `[m, k]` by `[k, n]`.
    fn new([m, n, k]: [f64; 3], count: f64) -> Self {
        Self {
            flops: 2.0 * count * m * n * k,
            elements: count * (m * k + k * n + m * n),
            fused: false,
        }
    }
}

/// What a piece of computation asks of a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Matrix products.
    pub products: Vec<Product>,
    /// Elements read and written by element-wise work.
    pub elements: f64,
    /// Kernels launched.
    pub kernels: f64,
    /// Passes begun.
    pub passes: f64,
}

impl Work {
    /// Floating-point operations of all products.
    pub fn flops(&self) -> f64 {
        self.products.iter().map(|product| product.flops).sum()
    }

    fn and(mut self, other: Self) -> Self {
        self.products.extend(other.products);
        Self {
            products: self.products,
            elements: self.elements + other.elements,
            kernels: self.kernels + other.kernels,
            passes: self.passes + other.passes,
        }
    }
}

/// Elements moved a parameter and micro-batch to add up weight-gradients: the product written, the sum
/// read and written.
const SUM: f64 = 3.0;

/// Kernels that a segment's forward pass launches.
const ATTENTION_KERNELS: f64 = 12.0;
const MLP_KERNELS: f64 = 8.0;
const CORE_KERNELS: f64 = 4.0;
const EMBED_KERNELS: f64 = 4.0;
/// Of the head: logits, sums, loss; all of them with `t = 1`.
const HEAD_KERNELS: [f64; 3] = [13.0, 8.0, 4.0];
/// Elements moved a logit in each of these, in 32 bits: made into 32 bits and the maximum; less it, its
/// exponential and the sum; its share.
const LOGIT_ELEMENTS: [f64; 3] = [5.0, 10.0, 4.0];

/// A model's segments on one of the ranks that share its layers.
struct Costs<'a> {
    shape: &'a ModelShape,
    /// Tokens.
    n: f64,
    /// Sequences.
    sequences: f64,
    h: f64,
    t: f64,
    /// Elements of the residual stream, of which each rank has all, or its share of the sequence.
    whole: f64,
    attention: Attention,
}

impl ModelShape {
    /// Model FLOPs of one step over `sequences`: three times the forward matrix products, attention
    /// over the full square, logits included, nothing recomputed.
    pub fn step_flops(&self, sequences: u64) -> f64 {
        3.0 * (self.layers_flops(sequences) + self.forward_flops(sequences, Segment::Head))
    }

    /// FLOPs of a forward pass through all layers.
    pub fn layers_flops(&self, sequences: u64) -> f64 {
        let of_layer = [Segment::Attention(0), Segment::Mlp(0)];
        let flops = of_layer.map(|segment| self.forward_flops(sequences, segment));
        self.layers as f64 * flops.iter().sum::<f64>()
    }

    /// FLOPs of a forward pass through the attention cores of all layers.
    pub fn cores_flops(&self, sequences: u64) -> f64 {
        self.layers as f64 * self.forward_flops(sequences, Segment::Core(0))
    }

    fn forward_flops(&self, sequences: u64, segment: Segment) -> f64 {
        let tokens = sequences as usize * self.seq;
        let work = self.work(
            segment,
            Pass::Forward,
            tokens,
            (1.into(), Attention::Unfused),
        );
        work.flops()
    }

    /// What a segment of a pass over `n` tokens costs one of the ranks that share the model's layers.
    pub fn work(
        &self,
        segment: Segment,
        pass: Pass,
        n: usize,
        (slices, attention): (Slices, Attention),
    ) -> Work {
        let (tokens, h) = (n as f64, self.hidden as f64);
        let costs = Costs {
            shape: self,
            n: tokens,
            sequences: tokens / self.seq as f64,
            h,
            t: slices.tp as f64,
            whole: tokens * h / slices.between() as f64,
            attention,
        };
        let (forward, input, weight) = costs.segment(segment, slices);
        match pass {
            Pass::Forward => forward,
            Pass::InputGrad => input,
            Pass::WeightGrad => weight,
            Pass::Backward => input.and(weight),
        }
    }
}

impl Costs<'_> {
    /// Forward, input-gradient and weight-gradient.
    fn segment(&self, segment: Segment, slices: Slices) -> (Work, Work, Work) {
        let none = Work::default;
        let moved = |share: f64| Work {
            elements: share * self.whole,
            ..none()
        };
        match segment {
            Segment::Attention(_) => self.attention(slices.cuts_sequence()),
            Segment::Mlp(_) => self.mlp(slices.cuts_sequence()),
            Segment::AttentionNorm(_) | Segment::MlpNorm(_) => {
                (moved(NORM_FORWARD), moved(NORM_BACKWARD), none())
            }
            Segment::Core(_) => (self.core_again(), self.core_again(), none()),
            Segment::Head => self.head(),
            Segment::HeadSum => (self.logits(1), none(), none()),
            Segment::HeadLoss => (self.logits(2), none(), none()),
            Segment::HeadNorm | Segment::Share | Segment::Finish => (none(), none(), none()),
            Segment::Embed => {
                let forward = Work {
                    elements: 5.5 * self.n * self.h,
                    kernels: EMBED_KERNELS,
                    ..none()
                };
                let table = self.shape.embedding_params(self.t as usize) as f64;
                let weight = Work {
                    elements: 4.0 * self.n * self.h + SUM * table,
                    kernels: EMBED_KERNELS,
                    ..none()
                };
                (forward, none(), weight)
            }
        }
    }

    /// Widths of a rank's queries, and of its keys and values together.
    fn widths(&self) -> (f64, f64) {
        let shape = self.shape;
        let kv = 2 * shape.kv_heads() * shape.head_dim();
        (self.h / self.t, kv as f64 / self.t)
    }

    fn attention(&self, norm_apart: bool) -> (Work, Work, Work) {
        let Self { n, h, whole, .. } = *self;
        let (q, kv) = self.widths();
        let core = self.core();
        let product = |sizes| Product::new(sizes, 1.0);
        // Queries, keys and values copied into place; fused, queries and keys turned in theirs.
        let turned = match self.attention {
            Attention::Unfused => 2.0 * n * (q + kv),
            Attention::Fused => 2.0 * n * (q + kv / 2.0),
        };
        let kernels = ATTENTION_KERNELS - core.saved_kernels;
        let norm = |elements: f64| if norm_apart { 0.0 } else { elements * whole };
        // Bias, dropout and residual: 3.5.
        let forward = Work {
            products: vec![product([n, q + kv, h]), product([n, h, q])],
            elements: norm(NORM_FORWARD) + 3.5 * whole + turned,
            kernels,
            passes: 0.0,
        };
        let input = Work {
            products: vec![product([n, h, q + kv]), product([n, q, h])],
            elements: norm(NORM_BACKWARD) + 5.5 * whole + turned,
            kernels,
            passes: 0.0,
        };
        let params = h * (q + kv) + q * h;
        let weight = Work {
            products: vec![product([h, q + kv, n]), product([q, h, n])],
            // Biases summed.
            elements: whole + n * (q + kv) + SUM * params,
            kernels,
            passes: 0.0,
        };
        (forward.and(core.forward), input.and(core.backward), weight)
    }

    fn mlp(&self, norm_apart: bool) -> (Work, Work, Work) {
        let Self { n, h, whole, .. } = *self;
        let ups = if self.shape.gated { 2.0 } else { 1.0 };
        let f = self.shape.ffn() as f64 / self.t;
        let wide = n * f;
        let product = |sizes| Product::new(sizes, 1.0);
        let norm = |elements: f64| if norm_apart { 0.0 } else { elements * whole };
        let forward = Work {
            products: vec![product([n, ups * f, h]), product([n, h, f])],
            // The non-linearity: its inputs read, its output written.
            elements: norm(NORM_FORWARD) + 3.5 * whole + (ups + 1.0) * wide,
            kernels: MLP_KERNELS,
            passes: 0.0,
        };
        let input = Work {
            products: vec![product([n, h, ups * f]), product([n, f, h])],
            elements: norm(NORM_BACKWARD) + 5.5 * whole + (2.0 * ups + 1.0) * wide,
            kernels: MLP_KERNELS,
            passes: 0.0,
        };
        let weight = Work {
            products: vec![product([h, ups * f, n]), product([f, h, n])],
            elements: whole + ups * wide + SUM * (ups + 1.0) * h * f,
            kernels: MLP_KERNELS,
            passes: 0.0,
        };
        (forward, input, weight)
    }

    fn head(&self) -> (Work, Work, Work) {
        let Self { n, h, .. } = *self;
        let rows = self.shape.vocab_rows(self.t as usize) as f64;
        let product = |sizes| Product::new(sizes, 1.0);
        let mut forward = Work {
            products: vec![product([n, rows, h])],
            elements: 2.0 * n * h,
            ..self.logits(0)
        };
        forward.elements += self.logits(0).elements;
        if self.t == 1.0 {
            forward = forward.and(self.logits(1)).and(self.logits(2));
        }
        let kernels = HEAD_KERNELS.iter().sum::<f64>() / 2.0;
        let input = Work {
            products: vec![product([n, h, rows])],
            elements: 5.0 * n * h + 7.0 * n * rows,
            kernels,
            passes: 0.0,
        };
        let weight = Work {
            products: vec![product([rows, h, n])],
            elements: SUM * rows * h,
            kernels,
            passes: 0.0,
        };
        (forward, input, weight)
    }

    /// What a part of the loss moves, of logits `[n, rows]`.
    fn logits(&self, part: usize) -> Work {
        let rows = self.shape.vocab_rows(self.t as usize) as f64;
        Work {
            elements: LOGIT_ELEMENTS[part] * self.n * rows,
            kernels: HEAD_KERNELS[part],
            ..Work::default()
        }
    }

    /// Scores, softmax, dropout and context.
    fn core(&self) -> Core {
        let (s, d) = (self.shape.seq as f64, self.shape.head_dim() as f64);
        let heads = self.shape.heads as f64 / self.t;
        let count = self.sequences * heads;
        let scores = self.n * heads * s;
        match self.attention {
            Attention::Unfused => {
                let (to_scores, from_scores) = (
                    Product::new([s, s, d], count),
                    Product::new([s, d, s], count),
                );
                let forward = Work {
                    products: vec![to_scores, from_scores],
                    // Mask, softmax, dropout.
                    elements: 7.0 * scores,
                    ..Work::default()
                };
                let backward = Work {
                    products: vec![to_scores, from_scores, from_scores, from_scores],
                    elements: 7.5 * scores,
                    ..Work::default()
                };
                Core {
                    forward,
                    backward,
                    saved_kernels: 0.0,
                }
            }
            Attention::Fused => {
                let (q, kv) = self.widths();
                // Causal: half of the scores are computed. Two products forward, five backward.
                let one = scores * d;
                let (rows, out, sums) = (self.n * (q + kv), self.n * q, self.n * heads);
                let kernel = |products: f64, elements: f64| Product {
                    flops: products * one,
                    elements,
                    fused: true,
                };
                let forward = Work {
                    products: vec![kernel(2.0, rows + out + 2.0 * sums)],
                    ..Work::default()
                };
                let backward = Work {
                    products: vec![kernel(5.0, 2.0 * rows + 2.0 * out + 4.0 * sums)],
                    elements: 2.0 * (out + sums),
                    ..Work::default()
                };
                Core {
                    forward,
                    backward,
                    saved_kernels: CORE_KERNELS - 1.0,
                }
            }
        }
    }

    /// The core's forward, once more; fused, the backward kernel does that itself.
    fn core_again(&self) -> Work {
        match self.attention {
            Attention::Unfused => Work {
                kernels: CORE_KERNELS,
                ..self.core().forward
            },
            Attention::Fused => Work::default(),
        }
    }
}

/// Elements moved by a norm, of those of the residual stream.
const NORM_FORWARD: f64 = 2.0;
const NORM_BACKWARD: f64 = 5.0;

/// Attention's core.
struct Core {
    forward: Work,
    backward: Work,
    /// Kernels fewer than apart.
    saved_kernels: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: (Slices, Attention) = (
        Slices {
            tp: 2,
            sequence: false,
        },
        Attention::Unfused,
    );

    #[test]
    fn step_flops_follow_the_formula() {
        // 72BLsh^2(1 + s/(6h) + V/(12hL)), Narayanan 2021.
        let shape = ModelShape::preset("gpt2-xl").unwrap();
        let (b, l, s) = (8.0, shape.layers as f64, shape.seq as f64);
        let (h, v) = (shape.hidden as f64, shape.vocab as f64);
        let formula = 72.0 * b * l * s * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * h * l));
        assert!((shape.step_flops(8) / formula - 1.0).abs() < 1e-12);
    }

    #[test]
    fn backward_is_input_grad_plus_weight_grad() {
        let shape = ModelShape::preset("nano").unwrap();
        for segment in [Segment::Attention(0), Segment::Mlp(0), Segment::Head] {
            let flops = |pass| shape.work(segment, pass, 256, PLAIN).flops();
            assert_eq!(
                flops(Pass::Backward),
                flops(Pass::InputGrad) + flops(Pass::WeightGrad)
            );
            assert!(flops(Pass::Backward) >= 1.99 * flops(Pass::Forward));
        }
    }

    #[test]
    fn sequence_parallelism_moves_work_and_adds_none() {
        let shape = ModelShape::preset("nano").unwrap();
        let cut = |sequence| Slices { tp: 4, sequence };
        let elements = |segment, slices| {
            let work = shape.work(segment, Pass::Forward, 256, (slices, Attention::Unfused));
            work.elements
        };
        let whole = elements(Segment::Attention(0), cut(false));
        let apart = elements(Segment::Attention(0), cut(true))
            + elements(Segment::AttentionNorm(0), cut(true));
        assert!(apart < whole);
    }
}

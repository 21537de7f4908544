//! A model's dimensions, and what they cost: parameters, the pieces of a pass, operations, bytes.
//!
//! The transformer is GPT-2's: pre-norm, learned positions, tanh-gelu, tied head. Sizes are per
//! tensor-parallel rank; `t` is the tensor-parallel degree, `n` the tokens of a micro-batch.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::units::Pass;

/// A model's dimensions, as in its TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShape {
    /// What it is called.
    pub name: String,
    /// Transformer blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Attention heads; each rank holds whole ones.
    pub heads: usize,
    /// Distinct tokens.
    pub vocab: usize,
    /// Tokens of a sequence.
    pub seq: usize,
    /// Key and value heads (grouped-query attention); as many as `heads` if absent. Costs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Width inside the feed-forward network; `4 * hidden` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ffn_hidden: Option<usize>,
    /// A third matrix gates the feed-forward network (Llama). Costs only.
    #[serde(default)]
    pub gated: bool,
    /// The head is the embedding, transposed.
    #[serde(default = "yes")]
    pub tied: bool,
    /// Rotary instead of learned positions. Costs only.
    #[serde(default)]
    pub rope: bool,
    /// How it is optimised.
    #[serde(default)]
    pub optimizer: Optimizer,
}

fn yes() -> bool {
    true
}

/// The settings of `AdamW`. It decays every parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of the latter.
    pub eps: f64,
    /// Share of each parameter taken away per unit of learning rate.
    pub weight_decay: f64,
    /// The largest global norm of the gradients; larger ones are scaled down to it. None: no clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            clip: None,
        }
    }
}

impl Optimizer {
    /// Whether it can be computed with.
    fn check(&self) -> Result<(), ShapeError> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        let amount = |value: f64| value >= 0.0 && value.is_finite();
        let settings = [
            ("lr", amount(self.lr), "a number from 0"),
            ("beta1", share(self.beta1), "from 0 to below 1"),
            ("beta2", share(self.beta2), "from 0 to below 1"),
            ("eps", amount(self.eps), "a number from 0"),
            ("weight_decay", amount(self.weight_decay), "a number from 0"),
            (
                "clip",
                self.clip.is_none_or(|clip| clip > 0.0),
                "above 0, or left out",
            ),
        ];
        match settings.into_iter().find(|(_, legal, _)| !legal) {
            Some((name, _, legal)) => Err(ShapeError::Optimizer { name, legal }),
            None => Ok(()),
        }
    }
}

/// Why a model cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A dimension of zero.
    #[error("the model's {0} is 0, but it must be at least 1")]
    Zero(&'static str),
    /// A dimension past all bounds.
    #[error("the model's {0} is {1}, over the limit of {2}")]
    TooLarge(&'static str, usize, usize),
    /// A setting of the optimizer that it cannot compute with.
    #[error("the optimizer's {name} must be {legal}")]
    Optimizer {
        /// Which.
        name: &'static str,
        /// What it may be.
        legal: &'static str,
    },
    /// Heads of unequal width.
    #[error(
        "hidden {hidden} is not a multiple of {heads} heads; nearest hidden sizes that are: {below} and {above}"
    )]
    Heads {
        /// The width asked for.
        hidden: usize,
        /// The heads asked for.
        heads: usize,
        /// The next smaller legal width.
        below: usize,
        /// The next larger legal width.
        above: usize,
    },
    /// Grouped-query attention with unequal groups.
    #[error("heads {heads} is not a multiple of kv_heads {kv_heads}")]
    KvHeads {
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// The text is not a model.
    #[error("not a model file: {0}")]
    Toml(String),
    /// No preset is called that.
    #[error("no model preset is called {name:?}; there are {known}, or give a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// The presets, smallest first: name and TOML.
pub const PRESETS: &[(&str, &str)] = &[
    ("nano", include_str!("../assets/models/nano.toml")),
    ("mini", include_str!("../assets/models/mini.toml")),
    ("gpt2", include_str!("../assets/models/gpt2.toml")),
    ("gpt2-xl", include_str!("../assets/models/gpt2-xl.toml")),
    ("gpt3-175b", include_str!("../assets/models/gpt3-175b.toml")),
];

impl ModelShape {
    /// A preset by its name.
    pub fn preset(name: &str) -> Result<Self, ShapeError> {
        let text = PRESETS
            .iter()
            .find(|(preset, _)| *preset == name)
            .map(|(_, text)| *text);
        let known = || {
            PRESETS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        text.ok_or_else(|| ShapeError::Unknown {
            name: name.to_owned(),
            known: known(),
        })
        .and_then(Self::from_toml)
    }

    /// From the text of a model TOML, checked.
    pub fn from_toml(text: &str) -> Result<Self, ShapeError> {
        let shape: Self =
            toml::from_str(text).map_err(|error| ShapeError::Toml(error.to_string()))?;
        shape.check()?;
        Ok(shape)
    }

    /// Whether it can be.
    pub fn check(&self) -> Result<(), ShapeError> {
        const MOST: usize = 1 << 24;
        const MOST_PARAMS: usize = 1 << 50;
        let dimensions = [
            ("hidden", self.hidden, MOST),
            ("heads", self.heads, MOST),
            ("vocab", self.vocab, MOST),
            ("seq", self.seq, MOST),
            ("ffn_hidden", self.ffn(), MOST),
            ("kv_heads", self.kv_heads(), MOST),
        ];
        if let Some((name, ..)) = dimensions.iter().find(|(_, value, _)| *value == 0) {
            return Err(ShapeError::Zero(name));
        }
        let layers = ("layers", self.layers, usize::from(u16::MAX));
        if let Some(&(name, value, most)) = dimensions
            .iter()
            .chain([&layers])
            .find(|(_, value, most)| value > most)
        {
            return Err(ShapeError::TooLarge(name, value, most));
        }
        let (hidden, heads, kv_heads) = (self.hidden, self.heads, self.kv_heads());
        if !hidden.is_multiple_of(heads) {
            let below = (hidden / heads * heads).max(heads);
            return Err(ShapeError::Heads {
                hidden,
                heads,
                below,
                above: (hidden / heads + 1) * heads,
            });
        }
        self.optimizer.check()?;
        // Each dimension may be large, but not all of them: what follows is counted in 64 bits.
        let widths = (hidden + self.ffn()) as f64 * hidden as f64;
        let params = 4.0 * widths * self.layers as f64 + self.vocab as f64 * hidden as f64;
        if params > MOST_PARAMS as f64 {
            return Err(ShapeError::TooLarge(
                "number of parameters",
                params as usize,
                MOST_PARAMS,
            ));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(ShapeError::KvHeads { heads, kv_heads });
        }
        Ok(())
    }

    /// Key and value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Width inside the feed-forward network.
    pub fn ffn(&self) -> usize {
        self.ffn_hidden.unwrap_or(4 * self.hidden)
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Rows of the embedding that each of `t` ranks holds, the last of them padded.
    pub fn vocab_rows(&self, t: usize) -> usize {
        self.vocab.div_ceil(t)
    }

    /// What this program cannot train (it can cost it), if anything.
    pub fn untrainable(&self) -> Option<&'static str> {
        if self.kv_heads() != self.heads {
            Some("grouped-query attention (kv_heads)")
        } else if self.gated {
            Some("a gated feed-forward network")
        } else if self.rope {
            Some("rotary positions")
        } else {
            None
        }
    }

    /// Width of queries, keys and values together, of one rank.
    fn qkv(&self, t: usize) -> usize {
        (self.hidden + 2 * self.kv_heads() * self.head_dim()) / t
    }

    /// Parameters of one layer on one of `t` ranks: matrices and their biases cut, norms and the
    /// row-parallel biases whole.
    pub fn layer_params(&self, t: usize) -> u64 {
        let (h, f, qkv) = (self.hidden, self.ffn() / t, self.qkv(t));
        let up = if self.gated { 2 } else { 1 };
        let attention = h * qkv + qkv + self.hidden / t * h + h;
        let mlp = up * (h * f + f) + f * h + h;
        (attention + mlp + 4 * h) as u64
    }

    /// Parameters of the token embedding on one of `t` ranks, padding included.
    pub fn embedding_params(&self, t: usize) -> u64 {
        (self.vocab_rows(t) * self.hidden) as u64
    }

    /// Parameters of a bucket on one of `t` ranks.
    ///
    /// `Embedding` is token and position embedding; `Head` the final norm, and the head's own
    /// matrix where it has one (untied, or a copy on a last stage apart from the first).
    pub fn bucket_params(&self, bucket: Bucket, t: usize, head_has_matrix: bool) -> u64 {
        match bucket {
            Bucket::Embedding => {
                let positions = if self.rope { 0 } else { self.seq * self.hidden };
                self.embedding_params(t) + positions as u64
            }
            Bucket::Layer(_) => self.layer_params(t),
            Bucket::Head => {
                2 * self.hidden as u64
                    + if head_has_matrix {
                        self.embedding_params(t)
                    } else {
                        0
                    }
            }
        }
    }

    /// Parameters of the whole model, each once.
    pub fn params(&self) -> u64 {
        let layers = self.layers as u64 * self.layer_params(1);
        layers
            + self.bucket_params(Bucket::Embedding, 1, false)
            + self.bucket_params(Bucket::Head, 1, !self.tied)
    }

    /// Model FLOPs of one step over `sequences`: three times the forward matrix products, attention
    /// over the full square, logits included, nothing recomputed.
    pub fn step_flops(&self, sequences: u64) -> f64 {
        let tokens = sequences as usize * self.seq;
        let work = |segment| self.work(segment, Pass::Forward, tokens, 1).flops;
        3.0 * (self.layers as f64 * (work(Segment::Attention(0)) + work(Segment::Mlp(0)))
            + work(Segment::Head))
    }

    /// What a segment of a pass over `n` tokens costs one of `t` ranks.
    pub fn work(&self, segment: Segment, pass: Pass, n: usize, t: usize) -> Work {
        let (n, h) = (n as f64, self.hidden as f64);
        let per_rank = |width: usize| width as f64 / t as f64;
        match segment {
            Segment::Attention(_) => {
                let out = per_rank(self.hidden);
                let scores = per_rank(self.heads) * self.seq as f64;
                let core = 4.0 * n * self.seq as f64 * out;
                let qkv = self.qkv(1) as f64 / t as f64;
                let products = Products {
                    flops: 2.0 * n * h * (qkv + out),
                    core,
                    kernels: 7.0,
                };
                // Norm and residual, then q, k, v and the output, then the scores written and read.
                products.in_pass(pass, n * (4.0 * h + 2.0 * qkv + 2.0 * out + 4.0 * scores))
            }
            Segment::Mlp(_) => {
                let (f, matrices) = (per_rank(self.ffn()), if self.gated { 3.0 } else { 2.0 });
                let products = Products {
                    flops: matrices * 2.0 * n * h * f,
                    core: 0.0,
                    kernels: 5.0,
                };
                products.in_pass(pass, n * (4.0 * h + 4.0 * f))
            }
            Segment::Head => {
                let rows = self.vocab_rows(t) as f64;
                let products = Products {
                    flops: 2.0 * n * h * rows,
                    core: 0.0,
                    kernels: 3.0,
                };
                products.in_pass(pass, n * (4.0 * h + 2.0 * rows))
            }
            Segment::HeadSum => Work {
                flops: 0.0,
                elements: n * self.vocab_rows(t) as f64,
                kernels: 2.0,
            },
            Segment::HeadLoss => Work {
                flops: 0.0,
                elements: 4.0 * n,
                kernels: 1.0,
            },
            Segment::Embed | Segment::Finish => Work {
                flops: 0.0,
                elements: 3.0 * n * h,
                kernels: 1.0,
            },
        }
    }

    /// Elements that one of `t` ranks keeps from a segment's forward over `n` tokens for its backward.
    ///
    /// This is what [`crate::model`] really keeps; a test compares.
    pub fn stash_elements(&self, segment: Segment, n: usize, t: usize) -> u64 {
        let h = self.hidden;
        let per_token = match segment {
            // Normalised input and its scale; q, k, v; probabilities; the heads' output.
            Segment::Attention(_) => {
                h + 1 + self.qkv(t) + self.heads / t * self.seq + self.hidden / t
            }
            // Normalised input and its scale; gelu's input and output.
            Segment::Mlp(_) => h + 1 + 2 * (self.ffn() / t),
            // Normalised input and its scale; probabilities.
            Segment::Head => h + 1 + self.vocab_rows(t),
            Segment::Embed | Segment::HeadSum | Segment::HeadLoss | Segment::Finish => 0,
        };
        (n * per_token) as u64
    }

    /// Bytes that one of `t` ranks keeps from a segment's forward when trained in 16 bits by Megatron,
    /// dropout masks included: `sbh(10 + 24/t + 5as/(ht))` a layer (Korthikanti 2022, equation 2).
    pub fn megatron_stash_bytes(&self, segment: Segment, n: usize, t: usize) -> u64 {
        let (n, h, t) = (n as f64, self.hidden as f64, t as f64);
        let scores = 5.0 * (self.heads * self.seq) as f64;
        let bytes = match segment {
            Segment::Attention(_) => n * (5.0 * h + (8.0 * h + scores) / t),
            Segment::Mlp(_) => n * (5.0 * h + 16.0 * h / t),
            // The final norm's input, the head's input, and the logits in 32 bits.
            Segment::Head => n * (4.0 * h + 4.0 * self.vocab as f64 / t),
            Segment::Embed | Segment::HeadSum | Segment::HeadLoss | Segment::Finish => 0.0,
        };
        bytes.round() as u64
    }
}

/// A piece of a stage's pass between two points at which tensor-parallel ranks must talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Segment {
    /// Token and position embedding.
    Embed,
    /// First half of a layer: norm, q, k and v, attention, output projection.
    Attention(u16),
    /// Second half: norm, up, gelu, down.
    Mlp(u16),
    /// Final norm, logits of the rank's slice of the vocabulary and, with `t = 1`, the loss.
    Head,
    /// With `t > 1`: the slice's sum of exponentials and the target's logit, given the global maximum.
    HeadSum,
    /// With `t > 1`: the loss, given the global sums.
    HeadLoss,
    /// Adds a reduced result to the residual stream (or passes a gradient through a norm) where no
    /// further segment of the stage does it.
    Finish,
}

impl Segment {
    /// Its layer, if it has one.
    pub fn layer(self) -> Option<u16> {
        match self {
            Self::Attention(layer) | Self::Mlp(layer) => Some(layer),
            Self::Embed | Self::Head | Self::HeadSum | Self::HeadLoss | Self::Finish => None,
        }
    }

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embed => "embedding",
            Self::Attention(_) => "attention",
            Self::Mlp(_) => "feed-forward",
            Self::Head => "head",
            Self::HeadSum => "softmax sums",
            Self::HeadLoss => "loss",
            Self::Finish => "residual",
        }
    }
}

/// What tensor-parallel ranks all-reduce after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduce {
    /// Partial sums `[n, hidden]`.
    Hidden,
    /// Largest logit of each token, by maximum, `[n]`.
    LogitMax,
    /// The target's logit of each token, zero where another rank holds it, `[n]`.
    TargetLogit,
    /// Sum of exponentials of each token, `[n]`.
    ExpSum,
}

impl Reduce {
    /// Elements a rank contributes.
    pub fn elements(self, n: usize, hidden: usize) -> u64 {
        match self {
            Self::Hidden => (n * hidden) as u64,
            Self::LogitMax | Self::TargetLogit | Self::ExpSum => n as u64,
        }
    }
}

/// A segment and the all-reduces that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassStep {
    /// What is computed.
    pub segment: Segment,
    /// What is then reduced over the tensor-parallel group, in order; empty with `t = 1`.
    pub reduces: &'static [Reduce],
}

/// A stage: which layers, and whether it holds the embedding and the head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageShape {
    /// Its layers.
    pub layers: Range<usize>,
    /// Whether it is the first.
    pub first: bool,
    /// Whether it is the last.
    pub last: bool,
}

impl StageShape {
    /// The segments of a pass, in order. The one place that says what a pass is made of.
    pub fn steps(&self, pass: Pass, t: usize) -> Vec<PassStep> {
        match pass {
            Pass::Forward => self.forward_steps(t),
            Pass::Backward | Pass::InputGrad => self.backward_steps(pass, t),
            Pass::WeightGrad => self.weight_steps(),
        }
    }

    fn forward_steps(&self, t: usize) -> Vec<PassStep> {
        let hidden = reduced(t, &[Reduce::Hidden]);
        let mut steps = Vec::new();
        if self.first {
            steps.push(PassStep {
                segment: Segment::Embed,
                reduces: hidden,
            });
        }
        for layer in self.layers.clone() {
            steps.push(PassStep {
                segment: Segment::Attention(layer as u16),
                reduces: hidden,
            });
            steps.push(PassStep {
                segment: Segment::Mlp(layer as u16),
                reduces: hidden,
            });
        }
        if self.last {
            steps.push(PassStep {
                segment: Segment::Head,
                reduces: reduced(t, &[Reduce::LogitMax]),
            });
            if t > 1 {
                let sums = &[Reduce::TargetLogit, Reduce::ExpSum];
                steps.push(PassStep {
                    segment: Segment::HeadSum,
                    reduces: sums,
                });
                steps.push(PassStep {
                    segment: Segment::HeadLoss,
                    reduces: &[],
                });
            }
        } else if t > 1 || steps.is_empty() {
            steps.push(PassStep {
                segment: Segment::Finish,
                reduces: &[],
            });
        }
        steps
    }

    fn backward_steps(&self, pass: Pass, t: usize) -> Vec<PassStep> {
        let hidden = reduced(t, &[Reduce::Hidden]);
        let mut steps = Vec::new();
        if self.last {
            steps.push(PassStep {
                segment: Segment::Head,
                reduces: hidden,
            });
        }
        for layer in self.layers.clone().rev() {
            steps.push(PassStep {
                segment: Segment::Mlp(layer as u16),
                reduces: hidden,
            });
            steps.push(PassStep {
                segment: Segment::Attention(layer as u16),
                reduces: hidden,
            });
        }
        if self.first && (pass == Pass::Backward || t > 1 || steps.is_empty()) {
            steps.push(PassStep {
                segment: Segment::Embed,
                reduces: &[],
            });
        } else if !self.first && (t > 1 || steps.is_empty()) {
            steps.push(PassStep {
                segment: Segment::Finish,
                reduces: &[],
            });
        }
        steps
    }

    fn weight_steps(&self) -> Vec<PassStep> {
        let mut segments = Vec::new();
        if self.last {
            segments.push(Segment::Head);
        }
        for layer in self.layers.clone().rev() {
            segments.push(Segment::Mlp(layer as u16));
            segments.push(Segment::Attention(layer as u16));
        }
        if self.first {
            segments.push(Segment::Embed);
        }
        if segments.is_empty() {
            segments.push(Segment::Finish);
        }
        segments
            .into_iter()
            .map(|segment| PassStep {
                segment,
                reduces: &[],
            })
            .collect()
    }

    /// The gradient buckets, in the order in which a backward pass completes them.
    pub fn buckets(&self) -> Vec<Bucket> {
        let mut buckets = Vec::new();
        if self.last {
            buckets.push(Bucket::Head);
        }
        buckets.extend(
            self.layers
                .clone()
                .rev()
                .map(|layer| Bucket::Layer(layer as u16)),
        );
        if self.first {
            buckets.push(Bucket::Embedding);
        }
        buckets
    }
}

fn reduced(t: usize, reduces: &'static [Reduce]) -> &'static [Reduce] {
    if t > 1 { reduces } else { &[] }
}

/// Parameters whose gradients are reduced over the data ranks together: one a layer by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bucket {
    /// Token and position embedding, on the first stage.
    Embedding,
    /// One layer.
    Layer(u16),
    /// The final norm, on the last stage, with the head's matrix where it has one of its own.
    Head,
}

/// What a piece of computation asks of a GPU, whatever its speed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations of matrix products.
    pub flops: f64,
    /// Elements read and written by element-wise work.
    pub elements: f64,
    /// Kernels launched.
    pub kernels: f64,
}

/// The matrix products of a segment's forward pass.
struct Products {
    /// Of weights: as many again for the input's gradient, and for the weights'.
    flops: f64,
    /// Of activations with each other (attention): twice as many for the gradients, and none for weights.
    core: f64,
    /// Kernels of a forward pass.
    kernels: f64,
}

impl Products {
    fn in_pass(&self, pass: Pass, elements: f64) -> Work {
        let (flops, share) = match pass {
            Pass::Forward => (self.flops + self.core, 1.0),
            Pass::InputGrad => (self.flops + 2.0 * self.core, 1.5),
            Pass::WeightGrad => (self.flops, 0.5),
            Pass::Backward => (2.0 * (self.flops + self.core), 2.0),
        };
        Work {
            flops,
            elements: elements * share,
            kernels: self.kernels * share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads() {
        for (name, text) in PRESETS {
            let shape = ModelShape::from_toml(text).unwrap();
            assert_eq!(shape.name, *name);
        }
    }

    #[test]
    fn gpt_parameters_follow_the_formula() {
        let shape = ModelShape::preset("gpt3-175b").unwrap();
        let (l, h) = (shape.layers as u64, shape.hidden as u64);
        let vs = (shape.vocab + shape.seq) as u64;
        assert_eq!(shape.params(), 12 * l * h * h + 13 * l * h + vs * h + 2 * h);
    }

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
            let flops = |pass| shape.work(segment, pass, 256, 2).flops;
            assert_eq!(
                flops(Pass::Backward),
                flops(Pass::InputGrad) + flops(Pass::WeightGrad)
            );
        }
    }

    #[test]
    fn heads_must_divide_the_width() {
        let text = "name='x'\nlayers=1\nhidden=10\nheads=4\nvocab=8\nseq=4";
        let error = ModelShape::from_toml(text).unwrap_err();
        assert_eq!(
            error,
            ShapeError::Heads {
                hidden: 10,
                heads: 4,
                below: 8,
                above: 12
            }
        );
    }
}

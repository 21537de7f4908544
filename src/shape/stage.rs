//! What a pass on a stage is made of, segment by segment. The one place that says so.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Recompute, Slices};
use crate::units::{Collective, Pass};

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
    /// With sequence parallelism: the residual and the norm of a layer's first half, on the rank's share
    /// of the tokens.
    AttentionNorm(u16),
    /// The same of its second half.
    MlpNorm(u16),
    /// The same of the head.
    HeadNorm,
    /// With sequence parallelism, where a backward pass begins: hands the rank's share of the gradient to
    /// the others.
    Share,
    /// With selective recomputation: attention's core once more.
    Core(u16),
}

impl Segment {
    /// Its layer, if it has one.
    pub fn layer(self) -> Option<u16> {
        match self {
            Self::Attention(layer)
            | Self::Mlp(layer)
            | Self::AttentionNorm(layer)
            | Self::MlpNorm(layer)
            | Self::Core(layer) => Some(layer),
            Self::Embed
            | Self::Head
            | Self::HeadSum
            | Self::HeadLoss
            | Self::Finish
            | Self::HeadNorm
            | Self::Share => None,
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
            Self::AttentionNorm(_) | Self::MlpNorm(_) | Self::HeadNorm => "norm",
            Self::Share => "gradient's share",
            Self::Core(_) => "attention core again",
        }
    }

    /// The segment that this is a part of: whose norm or core it is; or itself.
    pub fn normed(self) -> Self {
        match self {
            Self::AttentionNorm(layer) | Self::Core(layer) => Self::Attention(layer),
            Self::MlpNorm(layer) => Self::Mlp(layer),
            Self::HeadNorm => Self::Head,
            Self::Embed
            | Self::Attention(_)
            | Self::Mlp(_)
            | Self::Head
            | Self::HeadSum
            | Self::HeadLoss
            | Self::Finish
            | Self::Share => self,
        }
    }
}

/// What tensor-parallel ranks do together after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduce {
    /// Sum partial results `[n, hidden]`.
    Hidden,
    /// Sum partial results `[n, hidden]`, of which each rank gets its share `[n/t, hidden]`.
    ScatterHidden,
    /// Gather shares `[n/t, hidden]` to the whole `[n, hidden]`.
    GatherHidden,
    /// Largest logit of each token, by maximum, `[n]`.
    LogitMax,
    /// The target's logit of each token, zero where another rank holds it, `[n]`.
    TargetLogit,
    /// Sum of exponentials of each token, `[n]`.
    ExpSum,
}

impl Reduce {
    /// Elements of the whole.
    pub fn elements(self, n: usize, hidden: usize) -> u64 {
        if self.is_hidden() {
            n as u64 * hidden as u64
        } else {
            n as u64
        }
    }

    /// Whether it is of activations or their gradients, in their format; the others are in 32 bits.
    pub fn is_hidden(self) -> bool {
        match self {
            Self::Hidden | Self::ScatterHidden | Self::GatherHidden => true,
            Self::LogitMax | Self::TargetLogit | Self::ExpSum => false,
        }
    }

    /// Which collective it is.
    pub fn collective(self) -> Collective {
        match self {
            Self::ScatterHidden => Collective::ReduceScatter,
            Self::GatherHidden => Collective::AllGather,
            Self::Hidden | Self::LogitMax | Self::TargetLogit | Self::ExpSum => {
                Collective::AllReduce
            }
        }
    }
}

/// A segment and the collectives that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassStep {
    /// What is computed.
    pub segment: Segment,
    /// Whether it is a forward pass's, computed again in a backward pass.
    pub again: bool,
    /// What the tensor-parallel group then does, in order; empty with `t = 1`.
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
    /// The segments of a pass, in order.
    pub fn steps(
        &self,
        pass: Pass,
        slices: impl Into<Slices>,
        recompute: Recompute,
    ) -> Vec<PassStep> {
        let mut steps = Steps {
            slices: slices.into(),
            list: Vec::new(),
        };
        match pass {
            Pass::Forward => self.forward(&mut steps),
            Pass::Backward | Pass::InputGrad => self.backward(&mut steps, pass, recompute),
            Pass::WeightGrad => self.weights(&mut steps),
        }
        steps.list
    }

    fn forward(&self, steps: &mut Steps) {
        if self.first {
            steps.partial(Segment::Embed);
        }
        for layer in self.layers.clone() {
            steps.layer_forward(layer as u16, false);
        }
        let cut = steps.slices.tp > 1;
        if self.last {
            steps.norm(Segment::HeadNorm, true);
            steps.push(Segment::Head, if cut { &[Reduce::LogitMax] } else { &[] });
            if cut {
                steps.push(Segment::HeadSum, &[Reduce::TargetLogit, Reduce::ExpSum]);
                steps.push(Segment::HeadLoss, &[]);
            }
        } else if cut || steps.list.is_empty() {
            steps.push(Segment::Finish, &[]);
        }
    }

    fn backward(&self, steps: &mut Steps, pass: Pass, recompute: Recompute) {
        let below = self.first || !self.layers.is_empty();
        if self.last {
            steps.partial(Segment::Head);
            steps.norm(Segment::HeadNorm, below);
        } else if steps.slices.cuts_sequence() && below {
            steps.push(Segment::Share, &[Reduce::GatherHidden]);
        }
        for layer in self.layers.clone().rev() {
            let at = layer as u16;
            if recompute == Recompute::Full {
                steps.layer_forward(at, true);
            }
            steps.partial(Segment::Mlp(at));
            steps.norm(Segment::MlpNorm(at), true);
            if recompute == Recompute::Selective {
                steps.push(Segment::Core(at), &[]);
            }
            steps.partial(Segment::Attention(at));
            let more = self.first || layer > self.layers.start;
            steps.norm(Segment::AttentionNorm(at), more);
        }
        let Slices { tp, .. } = steps.slices;
        let pending = tp > 1 && !steps.slices.cuts_sequence();
        let empty = steps.list.is_empty();
        if self.first && (pass == Pass::Backward || tp > 1 || empty) {
            steps.push(Segment::Embed, &[]);
        } else if !self.first && (pending || empty) {
            steps.push(Segment::Finish, &[]);
        }
    }

    fn weights(&self, steps: &mut Steps) {
        if self.last {
            steps.push(Segment::Head, &[]);
        }
        for layer in self.layers.clone().rev() {
            steps.push(Segment::Mlp(layer as u16), &[]);
            steps.push(Segment::Attention(layer as u16), &[]);
        }
        if self.first {
            steps.push(Segment::Embed, &[]);
        }
        if steps.list.is_empty() {
            steps.push(Segment::Finish, &[]);
        }
    }

    /// Whether a backward pass hands the gradient that leaves a norm to the other ranks that share the
    /// sequence: all but the last of a stage that another stage comes before.
    pub fn shares_gradient(&self, norm: Segment) -> bool {
        match norm {
            Segment::AttentionNorm(layer) => self.first || usize::from(layer) > self.layers.start,
            Segment::HeadNorm => self.first || !self.layers.is_empty(),
            Segment::MlpNorm(_)
            | Segment::Share
            | Segment::Embed
            | Segment::Attention(_)
            | Segment::Mlp(_)
            | Segment::Head
            | Segment::HeadSum
            | Segment::HeadLoss
            | Segment::Finish
            | Segment::Core(_) => true,
        }
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

    /// Norms that it holds.
    pub fn norms(&self) -> usize {
        2 * self.layers.len() + usize::from(self.last)
    }
}

/// The steps of a pass in the making.
struct Steps {
    slices: Slices,
    list: Vec<PassStep>,
}

impl Steps {
    fn push(&mut self, segment: Segment, reduces: &'static [Reduce]) {
        self.list.push(PassStep {
            segment,
            again: false,
            reduces,
        });
    }

    /// A segment that makes partial results `[n, hidden]`.
    fn partial(&mut self, segment: Segment) {
        let reduces: &'static [Reduce] = if self.slices.tp == 1 {
            &[]
        } else if self.slices.sequence {
            &[Reduce::ScatterHidden]
        } else {
            &[Reduce::Hidden]
        };
        self.push(segment, reduces);
    }

    /// With sequence parallelism, a norm, whose result `shared` says is gathered.
    fn norm(&mut self, segment: Segment, shared: bool) {
        if self.slices.cuts_sequence() {
            self.push(segment, if shared { &[Reduce::GatherHidden] } else { &[] });
        }
    }

    fn layer_forward(&mut self, layer: u16, again: bool) {
        let from = self.list.len();
        self.norm(Segment::AttentionNorm(layer), true);
        self.partial(Segment::Attention(layer));
        self.norm(Segment::MlpNorm(layer), true);
        self.partial(Segment::Mlp(layer));
        for step in &mut self.list[from..] {
            step.again = again;
        }
    }
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

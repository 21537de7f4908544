//! One micro-batch on one stage: what it carries from segment to segment and keeps from pass to pass.

use std::collections::{HashMap, VecDeque};

use candle_core::{DType, Tensor};

use super::error::{ModelError, Result};
use super::ops::NormStash;
use crate::shape::Segment;

/// What is still to be done before the next segment, once a partial result is reduced.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Add the token embeddings to the positions'.
    Positions,
    /// Add a row-parallel product and its bias to the residual stream.
    Residual(Segment),
    /// Pass a gradient through a segment's norm.
    Norm(Segment, NormStash),
    /// Take what was gathered as the next product's input.
    Gathered,
}

/// What half a layer's forward pass keeps beside its norm's input.
#[derive(Debug)]
pub(crate) enum Core {
    /// Queries, keys and values `[n, 3 * width]`; probabilities `[batch * heads * seq, seq]`.
    Attention {
        /// Queries, keys and values.
        qkv: Tensor,
        /// Probabilities.
        probabilities: Tensor,
    },
    /// Gelu's slope, `[n, ffn]`.
    Mlp {
        /// The slope.
        slope: Tensor,
    },
}

/// What half a layer's forward pass keeps for its backward pass.
#[derive(Debug)]
pub(crate) struct HalfStash {
    /// Of the norm before it.
    pub(crate) norm: NormStash,
    /// With sequence parallelism, the norm's output, gathered.
    pub(crate) input: Option<Tensor>,
    /// Input of the row-parallel matrix: the heads' or gelu's output.
    pub(crate) inner: Tensor,
    /// The rest.
    pub(crate) core: Core,
}

/// What half a layer's input-gradient keeps for its weight-gradient.
#[derive(Debug)]
pub(crate) struct HalfGrads {
    /// Of the norm before it.
    pub(crate) norm: NormStash,
    /// With sequence parallelism, the norm's output, gathered.
    pub(crate) input: Option<Tensor>,
    /// Input of the row-parallel matrix.
    pub(crate) inner: Tensor,
    /// Gradient of the column-parallel matrix' output.
    pub(crate) grad_inner: Tensor,
    /// Gradient of the row-parallel matrix' output.
    pub(crate) grad_outer: Tensor,
}

/// What the head keeps.
#[derive(Debug)]
pub(crate) struct HeadStash {
    /// Of the final norm.
    pub(crate) norm: NormStash,
    /// With sequence parallelism, the norm's output, gathered.
    pub(crate) input: Option<Tensor>,
    /// Logits, then exponentials, then the logits' gradient, `[n, rows]`.
    pub(crate) logits: Tensor,
}

/// One micro-batch on one stage.
#[derive(Debug)]
pub struct Flight {
    pub(crate) batch: usize,
    pub(crate) seq: usize,
    pub(crate) inputs: Vec<u32>,
    pub(crate) targets: Vec<u32>,
    pub(crate) loss_scale: f32,
    /// The residual stream, or in a backward pass its gradient, `[n, hidden]`; with sequence parallelism this
    /// rank's share of its rows.
    pub(crate) hidden: Option<Tensor>,
    /// With sequence parallelism: what was gathered for the next product.
    pub(crate) input: Option<Tensor>,
    /// With sequence parallelism: norms whose segment is still to come.
    pub(crate) norms: HashMap<Segment, NormStash>,
    pub(crate) pending: Option<Pending>,
    pub(crate) partials: VecDeque<Tensor>,
    pub(crate) reduced: VecDeque<Tensor>,
    pub(crate) halves: HashMap<Segment, HalfStash>,
    pub(crate) half_grads: HashMap<Segment, HalfGrads>,
    pub(crate) head: Option<HeadStash>,
    pub(crate) head_grads: Option<HeadStash>,
    pub(crate) loss: Option<f64>,
}

impl Flight {
    /// A micro-batch of tokens `[batch, seq + 1]` (32-bit unsigned): inputs, and each one's successor as target.
    ///
    /// `loss_scale` is one over the tokens of the whole global batch, so that gradients of micro-batches
    /// and data ranks are plainly added.
    pub fn new(tokens: &Tensor, loss_scale: f32) -> Result<Self> {
        let (batch, length) = tokens.dims2()?;
        if length < 2 || batch == 0 {
            let what = format!("a micro-batch of {batch} sequences of {length} tokens");
            return Err(ModelError::Tokens(what));
        }
        let rows: Vec<Vec<u32>> = tokens.to_dtype(DType::U32)?.to_vec2()?;
        Ok(Self {
            batch,
            seq: length - 1,
            inputs: rows
                .iter()
                .flat_map(|row| &row[..length - 1])
                .copied()
                .collect(),
            targets: rows.iter().flat_map(|row| &row[1..]).copied().collect(),
            loss_scale,
            hidden: None,
            input: None,
            norms: HashMap::new(),
            pending: None,
            partials: VecDeque::new(),
            reduced: VecDeque::new(),
            halves: HashMap::new(),
            half_grads: HashMap::new(),
            head: None,
            head_grads: None,
            loss: None,
        })
    }

    /// Tokens of the micro-batch.
    pub fn tokens(&self) -> usize {
        self.inputs.len()
    }

    /// What the pass starts from: the activation of the stage before, or the gradient of the stage after,
    /// as [`Flight::take_output`] gives it.
    pub fn put_input(&mut self, input: &Tensor) -> Result<()> {
        let width = input.dim(input.rank() - 1)?;
        self.hidden = Some(input.reshape((input.elem_count() / width, width))?);
        Ok(())
    }

    /// What the pass ended with, for the next stage (activation) or the one before (gradient): rows of
    /// `hidden`, one for each token, or of this rank's share of them.
    pub fn take_output(&mut self) -> Result<Tensor> {
        self.hidden.take().ok_or(ModelError::Nothing("output"))
    }

    /// The next partial result to be reduced over the tensor-parallel ranks.
    pub fn take_partial(&mut self) -> Result<Tensor> {
        self.partials
            .pop_front()
            .ok_or(ModelError::Nothing("partial result"))
    }

    /// The reduced result; several in the order in which the partial ones were taken.
    pub fn put_reduced(&mut self, reduced: Tensor) {
        self.reduced.push_back(reduced);
    }

    /// The sum of the tokens' cross-entropy losses, once the last stage's forward pass is done; not scaled.
    pub fn loss(&self) -> Option<f64> {
        self.loss
    }

    /// Elements kept between forward and backward pass; [`crate::shape::ModelShape::stash_elements`] predicts it.
    pub fn stash_elements(&self) -> u64 {
        let halves: usize = self.halves.values().map(HalfStash::elements).sum();
        let head = self.head.as_ref().map_or(0, HeadStash::elements);
        (halves + head) as u64
    }

    /// Elements kept between input-gradient and weight-gradient.
    pub fn held_elements(&self) -> u64 {
        let halves: usize = self.half_grads.values().map(HalfGrads::elements).sum();
        let head = self.head_grads.as_ref().map_or(0, HeadStash::elements);
        (halves + head) as u64
    }
}

fn elements(tensor: Option<&Tensor>) -> usize {
    tensor.map_or(0, Tensor::elem_count)
}

fn norm_elements(norm: &NormStash) -> usize {
    norm.normalised.elem_count() + norm.scale.elem_count()
}

impl HalfStash {
    fn elements(&self) -> usize {
        let core = match &self.core {
            Core::Attention { qkv, probabilities } => qkv.elem_count() + probabilities.elem_count(),
            Core::Mlp { slope } => slope.elem_count(),
        };
        norm_elements(&self.norm) + elements(self.input.as_ref()) + self.inner.elem_count() + core
    }
}

impl HalfGrads {
    fn elements(&self) -> usize {
        let grads = self.grad_inner.elem_count() + self.grad_outer.elem_count();
        norm_elements(&self.norm) + elements(self.input.as_ref()) + self.inner.elem_count() + grads
    }
}

impl HeadStash {
    fn elements(&self) -> usize {
        norm_elements(&self.norm) + elements(self.input.as_ref()) + self.logits.elem_count()
    }
}

//! Segments of passes: forward, input-gradient and weight-gradient, each by hand.
//!
//! A segment first does what the one before left pending until its partial result was reduced. Without
//! tensor parallelism nothing is left pending.

use candle_core::Tensor;

use super::error::{ModelError, Result};
use super::flight::{Core, Flight, HalfGrads, HalfStash, HeadStash, Pending};
use super::kernels::attention::Heads;
use super::kernels::embedding;
use super::ops::{self, NormStash};
use super::param::Norm;
use super::shard::Shard;
use crate::shape::Segment;
use crate::units::Pass;

/// Where a computation is, for errors.
#[derive(Clone, Copy)]
struct At(Pass, Segment);

impl At {
    /// What is needed, or an error that says what is missing.
    fn need<T>(self, value: Option<T>, missing: &'static str) -> Result<T> {
        let Self(pass, segment) = self;
        value.ok_or(ModelError::Order {
            pass,
            segment,
            missing,
        })
    }
}

impl Shard {
    /// Runs one segment of one pass on a micro-batch, in the order of [`crate::shape::StageShape::steps`].
    ///
    /// Different micro-batches may run at once. Gradients are summed in the order of the calls: for the
    /// same bits each time, those that add to the same parameters must come in the same order.
    pub fn compute(&self, flight: &mut Flight, pass: Pass, segment: Segment) -> Result<()> {
        let at = At(pass, segment);
        self.resolve(flight, at)?;
        match pass {
            Pass::Forward => self.forward(flight, at),
            Pass::InputGrad => self.input_grad(flight, at),
            Pass::WeightGrad => self.weight_grad(flight, at),
            Pass::Backward => {
                self.input_grad(flight, at)?;
                self.weight_grad(flight, at)
            }
        }
    }

    fn cut(&self) -> bool {
        self.place().tp > 1
    }

    /// Whether each rank has its share of the tokens between matrices.
    fn shares_sequence(&self) -> bool {
        self.place().slices().cuts_sequence()
    }

    /// Does what was left pending.
    fn resolve(&self, flight: &mut Flight, at: At) -> Result<()> {
        let Some(pending) = flight.pending.take() else {
            return Ok(());
        };
        let reduced = at.need(flight.reduced.pop_front(), "the reduced result")?;
        let hidden = match pending {
            Pending::Positions => {
                // A copy: the reduced tensor is shared with the other ranks.
                let hidden = reduced.copy()?;
                let positions = self.embedding()?.positions.value();
                let share = hidden.dim(0)?;
                let before = self.place().tp_index * share % flight.tokens();
                ops::add_positions_from(&hidden, positions, flight.seq, before)?;
                hidden
            }
            Pending::Gathered => {
                flight.input = Some(reduced);
                return Ok(());
            }
            Pending::Residual(segment) => {
                let base = at.need(flight.hidden.take(), "the residual stream")?;
                ops::add_with_row(&base, &reduced, self.half(segment)?.down.bias.value())?
            }
            Pending::Norm(segment, stash) => {
                let residual = flight.hidden.take();
                ops::norm_backward(&reduced, &stash, self.norm(segment)?, residual.as_ref())?
            }
        };
        flight.hidden = Some(hidden);
        Ok(())
    }

    fn norm(&self, segment: Segment) -> Result<&Norm> {
        match segment.layer() {
            Some(_) => Ok(&self.half(segment)?.norm),
            None => Ok(&self.head()?.norm),
        }
    }

    /// Hands a tensor to the ranks that share the sequence; what they have together is the next input.
    fn gather(flight: &mut Flight, share: Tensor) {
        flight.partials.push_back(share);
        flight.pending = Some(Pending::Gathered);
    }

    /// With sequence parallelism: the norm of this rank's share of the tokens.
    fn norm_forward(&self, flight: &mut Flight, at: At) -> Result<()> {
        let hidden = at.need(flight.hidden.as_ref(), "the activation")?;
        let (output, stash) = ops::layer_norm(hidden, self.norm(at.1)?)?;
        flight.norms.insert(at.1.normed(), stash);
        Self::gather(flight, output);
        Ok(())
    }

    /// With sequence parallelism: hands this rank's share of a gradient on, where it is needed whole.
    fn share_gradient(&self, flight: &mut Flight, at: At) -> Result<()> {
        if self.place().stage.shares_gradient(at.1) {
            let share = at.need(flight.hidden.clone(), "the gradient")?;
            Self::gather(flight, share);
        }
        Ok(())
    }

    /// What is recomputed is a matter of costs alone.
    fn not_here(at: At) -> Result<()> {
        Err(ModelError::NotHere(at.1))
    }

    /// The norm's output and what it keeps: computed here, or with sequence parallelism before.
    fn normed(&self, flight: &mut Flight, at: At) -> Result<(Tensor, NormStash, Option<Tensor>)> {
        if self.shares_sequence() {
            let input = at.need(flight.input.take(), "the gathered input")?;
            let norm = at.need(flight.norms.remove(&at.1), "its norm")?;
            return Ok((input.clone(), norm, Some(input)));
        }
        let hidden = at.need(flight.hidden.as_ref(), "the activation")?;
        let (input, norm) = ops::layer_norm(hidden, self.norm(at.1)?)?;
        Ok((input, norm, None))
    }

    /// The gradient of a segment's output: whole, whoever has it between segments.
    fn whole_gradient(&self, flight: &mut Flight, at: At) -> Result<Tensor> {
        let whole = if self.shares_sequence() {
            flight.input.take()
        } else {
            flight.hidden.take()
        };
        at.need(whole, "the gradient")
    }

    fn forward(&self, flight: &mut Flight, at: At) -> Result<()> {
        match at.1 {
            Segment::Embed => self.embed(flight),
            Segment::Attention(_) | Segment::Mlp(_) => self.half_forward(flight, at),
            Segment::Head => self.head_forward(flight, at),
            Segment::HeadSum => self.head_sums(flight, at),
            Segment::HeadLoss => self.head_loss(flight, at),
            Segment::AttentionNorm(_) | Segment::MlpNorm(_) | Segment::HeadNorm => {
                self.norm_forward(flight, at)
            }
            Segment::Finish => Ok(()),
            Segment::Share | Segment::Core(_) => Self::not_here(at),
        }
    }

    fn input_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        match at.1 {
            Segment::Attention(_) | Segment::Mlp(_) => self.half_input_grad(flight, at),
            Segment::Head => self.head_input_grad(flight, at),
            Segment::AttentionNorm(_)
            | Segment::MlpNorm(_)
            | Segment::HeadNorm
            | Segment::Share => self.share_gradient(flight, at),
            Segment::Embed | Segment::HeadSum | Segment::HeadLoss | Segment::Finish => Ok(()),
            Segment::Core(_) => Self::not_here(at),
        }
    }

    fn weight_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        match at.1 {
            Segment::Embed => self.embed_weight_grad(flight, at),
            Segment::Attention(_) | Segment::Mlp(_) => self.half_weight_grad(flight, at),
            Segment::Head => self.head_weight_grad(flight, at),
            Segment::AttentionNorm(_)
            | Segment::MlpNorm(_)
            | Segment::HeadNorm
            | Segment::Share
            | Segment::HeadSum
            | Segment::HeadLoss
            | Segment::Finish => Ok(()),
            Segment::Core(_) => Self::not_here(at),
        }
    }

    fn embed(&self, flight: &mut Flight) -> Result<()> {
        self.check_tokens(&flight.inputs)?;
        let embedding = self.embedding()?;
        let tokens = embedding.tokens.value();
        let hidden = ops::embed(tokens, &self.columns(), &flight.inputs)?;
        if self.cut() {
            flight.partials.push_back(hidden);
            flight.pending = Some(Pending::Positions);
        } else {
            ops::add_positions(&hidden, embedding.positions.value(), flight.seq)?;
            flight.hidden = Some(hidden);
        }
        Ok(())
    }

    fn embed_weight_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        let grad = self.whole_gradient(flight, at)?;
        let embedding = self.embedding()?;
        let (tokens, positions) = (&embedding.tokens, &embedding.positions);
        let (columns, grad) = (self.columns(), ops::floats(&grad)?);
        tokens.gradient().change(tokens.value().dims(), |table| {
            embedding::scatter_add(table, &columns.tokens, &flight.inputs, &grad);
        })?;
        let sequence = grad.len() / flight.batch;
        positions
            .gradient()
            .change(positions.value().dims(), |table| {
                embedding::add_to_positions(table, &grad, sequence);
            })
    }

    /// `x + down(core(up(norm(x))))`, the sum left pending where `down` is cut.
    fn half_forward(&self, flight: &mut Flight, at: At) -> Result<()> {
        let half = self.half(at.1)?;
        let (input, norm, gathered) = self.normed(flight, at)?;
        let (inner, core) = if matches!(at.1, Segment::Attention(_)) {
            let qkv = ops::linear(&input, &half.up)?;
            let (probabilities, output) = ops::attention(&qkv, &self.heads(flight))?;
            (output, Core::Attention { qkv, probabilities })
        } else {
            let (activation, slope) = ops::linear_gelu(&input, &half.up)?;
            (activation, Core::Mlp { slope })
        };
        if self.cut() {
            let partial = ops::product(&inner, half.down.weight.value())?;
            flight.partials.push_back(partial);
            flight.pending = Some(Pending::Residual(at.1));
        } else {
            let hidden = at.need(flight.hidden.take(), "the activation")?;
            flight.hidden = Some(ops::linear_onto(&hidden, &inner, &half.down)?);
        }
        let stash = HalfStash {
            norm,
            input: gathered,
            inner,
            core,
        };
        flight.halves.insert(at.1, stash);
        Ok(())
    }

    fn half_input_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        let half = self.half(at.1)?;
        let HalfStash {
            norm,
            input,
            inner,
            core,
        } = at.need(flight.halves.remove(&at.1), "its forward")?;
        let grad_outer = self.whole_gradient(flight, at)?;
        let down = half.down.weight.value();
        let grad_inner = match core {
            Core::Attention { qkv, probabilities } => {
                let grad = ops::product_transposed(&grad_outer, down)?;
                ops::attention_backward(&grad, &qkv, &probabilities, &self.heads(flight))?
            }
            Core::Mlp { slope } => ops::gelu_backward(&grad_outer, down, &slope)?,
        };
        let grad = ops::product_transposed(&grad_inner, half.up.weight.value())?;
        self.through_norm(flight, at, &norm, (grad, Some(&grad_outer)))?;
        let grads = HalfGrads {
            norm,
            input,
            inner,
            grad_inner,
            grad_outer,
        };
        flight.half_grads.insert(at.1, grads);
        Ok(())
    }

    /// Passes a gradient through a segment's norm, or leaves that pending until it is reduced.
    fn through_norm(
        &self,
        flight: &mut Flight,
        at: At,
        stash: &NormStash,
        (grad, residual): (Tensor, Option<&Tensor>),
    ) -> Result<()> {
        if self.cut() {
            flight.partials.push_back(grad);
            flight.pending = Some(Pending::Norm(at.1, stash.clone()));
            // A share of the residual's gradient stays where it is.
            if !self.shares_sequence() {
                flight.hidden = residual.cloned();
            }
        } else {
            let input = ops::norm_backward(&grad, stash, self.norm(at.1)?, residual)?;
            flight.hidden = Some(input);
        }
        Ok(())
    }

    fn half_weight_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        let half = self.half(at.1)?;
        let grads = at.need(flight.half_grads.remove(&at.1), "its input-gradient")?;
        half.down.add_gradients(&grads.inner, &grads.grad_outer)?;
        let input = match grads.input {
            Some(gathered) => gathered,
            None => ops::norm_output(&grads.norm, &half.norm)?,
        };
        half.up.add_gradients(&input, &grads.grad_inner)
    }

    fn head_forward(&self, flight: &mut Flight, at: At) -> Result<()> {
        self.check_tokens(&flight.targets)?;
        let (normed, norm, input) = self.normed(flight, at)?;
        flight.hidden = None;
        let logits = self.logits_of(&normed)?;
        let columns = self.columns();
        let largest = ops::largest_logits(&logits, &columns)?;
        if self.cut() {
            flight.partials.push_back(largest);
        } else {
            let targets = &flight.targets;
            let (target, total) = ops::exponentials(&logits, &columns, targets, &largest)?;
            let sums = (&target, &total);
            let loss = ops::finish_loss(&logits, &columns, targets, sums, flight.loss_scale)?;
            flight.loss = Some(loss);
        }
        flight.head = Some(HeadStash {
            norm,
            input,
            logits,
        });
        Ok(())
    }

    /// Logits `[n, rows]` of this rank's rows of the vocabulary.
    pub(crate) fn head_logits(&self, hidden: &Tensor) -> Result<(Tensor, NormStash)> {
        let (input, norm) = ops::layer_norm(hidden, &self.head()?.norm)?;
        Ok((self.logits_of(&input)?, norm))
    }

    fn logits_of(&self, normed: &Tensor) -> Result<Tensor> {
        let (matrix, _) = self.head_matrix()?;
        ops::product_transposed(normed, matrix)
    }

    fn head_sums(&self, flight: &mut Flight, at: At) -> Result<()> {
        let largest = at.need(flight.reduced.pop_front(), "the largest logits")?;
        let stash = at.need(flight.head.as_ref(), "the logits")?;
        let (columns, targets) = (self.columns(), &flight.targets);
        let (target, total) = ops::exponentials(&stash.logits, &columns, targets, &largest)?;
        flight.partials.extend([target, total]);
        Ok(())
    }

    fn head_loss(&self, flight: &mut Flight, at: At) -> Result<()> {
        let target = at.need(flight.reduced.pop_front(), "the targets' logits")?;
        let total = at.need(flight.reduced.pop_front(), "the sums of exponentials")?;
        let stash = at.need(flight.head.as_ref(), "the exponentials")?;
        let (columns, sums) = (self.columns(), (&target, &total));
        let (targets, scale) = (&flight.targets, flight.loss_scale);
        let loss = ops::finish_loss(&stash.logits, &columns, targets, sums, scale)?;
        flight.loss = Some(loss);
        Ok(())
    }

    fn head_input_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        let stash = at.need(flight.head.take(), "its forward")?;
        let (matrix, _) = self.head_matrix()?;
        let grad = ops::product(&stash.logits, matrix)?;
        self.through_norm(flight, at, &stash.norm, (grad, None))?;
        flight.head_grads = Some(stash);
        Ok(())
    }

    fn head_weight_grad(&self, flight: &mut Flight, at: At) -> Result<()> {
        let stash = at.need(flight.head_grads.take(), "its input-gradient")?;
        let input = match stash.input {
            Some(gathered) => gathered,
            None => ops::norm_output(&stash.norm, &self.head()?.norm)?,
        };
        let (_, gradient) = self.head_matrix()?;
        gradient.add_product(&stash.logits, &input)
    }

    fn heads(&self, flight: &Flight) -> Heads {
        Heads {
            batch: flight.batch,
            seq: flight.seq,
            count: self.shape().heads / self.place().tp,
            dim: self.shape().head_dim(),
        }
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<()> {
        let vocab = self.shape().vocab;
        match tokens.iter().find(|token| **token as usize >= vocab) {
            Some(&token) => Err(ModelError::Token { token, vocab }),
            None => Ok(()),
        }
    }
}

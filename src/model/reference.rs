//! The same training on one device, one pass after the other: what every layout is compared with.

use candle_core::Tensor;

use super::error::Result;
use super::flight::Flight;
use super::shard::{Shard, ShardPlace};
use super::weights::Weights;
use crate::shape::{ModelShape, Optimizer, Recompute, StageShape};
use crate::units::Pass;

/// The whole model on one device.
#[derive(Debug)]
pub struct Reference {
    shard: Shard,
    steps: u64,
}

/// What a training step says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepFigures {
    /// Mean cross-entropy of the step's tokens, before its update.
    pub loss: f64,
    /// Global norm of the gradients, before clipping.
    pub grad_norm: f64,
}

impl Reference {
    /// From whole weights.
    pub fn new(shape: &ModelShape, weights: &Weights) -> Result<Self> {
        Ok(Self {
            shard: Shard::new(shape, ShardPlace::whole(shape), weights)?,
            steps: 0,
        })
    }

    /// The model.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Forward and backward of tokens `[batch, seq + 1]` in equal micro-batches; the mean loss.
    pub fn accumulate(&self, tokens: &Tensor, micro_batches: usize) -> Result<f64> {
        let (batch, length) = tokens.dims2()?;
        let count = batch * (length - 1);
        let mut total = 0.0;
        for part in tokens.chunk(micro_batches, 0)? {
            let mut flight = Flight::new(&part, 1.0 / count as f32)?;
            self.pass(&mut flight, Pass::Forward)?;
            self.pass(&mut flight, Pass::Backward)?;
            total += flight.loss().unwrap_or(f64::NAN);
        }
        Ok(total / count as f64)
    }

    fn pass(&self, flight: &mut Flight, pass: Pass) -> Result<()> {
        for step in self.shard.place().stage.steps(pass, 1, Recompute::None) {
            self.shard.compute(flight, pass, step.segment)?;
        }
        Ok(())
    }

    /// One step of training on tokens `[batch, seq + 1]`.
    pub fn step(&mut self, tokens: &Tensor, micro_batches: usize) -> Result<StepFigures> {
        let loss = self.accumulate(tokens, micro_batches)?;
        let grad_norm = self.shard.square_norm()?.sqrt();
        let settings = self.shard.shape().optimizer;
        self.steps += 1;
        let scale = clip_scale(&settings, grad_norm);
        self.shard.optimize(&settings, scale, self.steps)?;
        Ok(StepFigures { loss, grad_norm })
    }
}

/// What gradients of a global norm are multiplied with to keep within the optimizer's limit.
pub fn clip_scale(settings: &Optimizer, grad_norm: f64) -> f64 {
    match settings.clip {
        Some(most) if grad_norm > most => most / grad_norm,
        _ => 1.0,
    }
}

impl ShardPlace {
    /// The only rank of an uncut model.
    pub fn whole(shape: &ModelShape) -> Self {
        Self {
            stage: StageShape {
                layers: 0..shape.layers,
                first: true,
                last: true,
            },
            tp_index: 0,
            tp: 1,
            sequence: false,
        }
    }
}

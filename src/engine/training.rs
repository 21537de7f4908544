//! What trains: ranks that are emulated, or threads of their own.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use candle_core::Tensor;

use super::emulate::Emulator;
#[cfg(not(target_arch = "wasm32"))]
use super::parallel::Parallel;
use super::step::{Outcome, StepError};
use crate::model::Weights;
use crate::plan::Plan;
use crate::shape::ModelShape;

/// What trains all ranks of a plan; the same training, to the last bit, whichever it is.
#[derive(Debug)]
pub enum Training {
    /// Ranks on virtual clocks, on as many cores as there are.
    Emulated(Emulator),
    /// A thread a rank, on the wall clock.
    #[cfg(not(target_arch = "wasm32"))]
    Cpu(Parallel),
}

/// Cores that this process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

impl Training {
    /// Emulated ranks.
    pub fn emulated(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
    ) -> Result<Self, StepError> {
        Emulator::new(plan, shape, weights, micro_batch_size, cores()).map(Self::Emulated)
    }

    /// Ranks that are threads; in a browser, which has none, an error.
    pub fn cpu(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
    ) -> Result<Self, StepError> {
        #[cfg(not(target_arch = "wasm32"))]
        return Parallel::new(plan, shape, weights, micro_batch_size).map(Self::Cpu);
        #[cfg(target_arch = "wasm32")]
        {
            drop((plan, shape, weights, micro_batch_size));
            Err(StepError::Thread("there are none here".to_owned()))
        }
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        match self {
            Self::Emulated(ranks) => ranks.steps(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(ranks) => ranks.steps(),
        }
    }

    /// One step on `tokens` `[global batch, seq + 1]`, as [`Emulator::step`].
    pub fn step(
        &mut self,
        tokens: &Tensor,
        keep_gradients: bool,
        stop: &AtomicBool,
    ) -> Result<Outcome, StepError> {
        match self {
            Self::Emulated(ranks) => ranks.step(tokens, keep_gradients, stop),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(ranks) => ranks.step(tokens, keep_gradients, stop),
        }
    }

    /// The whole weights, of the first replica.
    pub fn weights(&self) -> Result<Weights, StepError> {
        match self {
            Self::Emulated(ranks) => ranks.weights(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(ranks) => ranks.weights(),
        }
    }

    /// A hash of each replica's weights, equal where all bits are.
    pub fn hashes(&self) -> Result<Vec<u64>, StepError> {
        match self {
            Self::Emulated(ranks) => ranks.hashes(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(ranks) => ranks.hashes(),
        }
    }
}

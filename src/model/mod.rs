//! The transformer's shards: what each rank of a tensor- and pipeline-parallel GPT-2 really computes,
//! with forward, input-gradient and weight-gradient apart, segment by segment.
//!
//! [`Weights`] are whole, [`Shard`]s are pieces of them, a [`Flight`] is one micro-batch on one shard.
//! Absent here: communication (the caller carries partial results and gradients between shards, with
//! [`reduce`] and [`sum_gradients`] for the sums), threads, clocks, and any knowledge of schedules.

mod build;
mod collect;
mod compute;
mod cut;
pub mod data;
mod error;
mod flight;
mod hash;
mod kernels;
mod ops;
mod param;
mod reference;
pub(crate) mod rng;
mod sample;
mod shard;
#[cfg(test)]
mod tests;
mod weights;

pub use collect::{
    gather, gather_gradient_shares, gather_gradients, gather_shares, reduce, sum_gradients,
};
pub use error::{ModelError, Result};
pub use flight::Flight;
pub use ops::{memory, product};
pub use reference::{Reference, StepFigures, clip_scale};
pub use sample::{Sampling, sample};
pub use shard::{Shard, ShardPlace, StateBytes};
pub use weights::Weights;

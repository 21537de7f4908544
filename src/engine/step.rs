//! What a step of training comes to, or why it comes to nothing.

use super::clock::Times;
use crate::comm::Fault;
use crate::model::{ModelError, Weights};
use crate::units::{Nanos, Rank};

/// Why a step came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The maths failed.
    #[error("rank {rank}, {what}: {source}")]
    Maths {
        /// On which rank.
        rank: Rank,
        /// In which operation.
        what: String,
        /// How.
        source: ModelError,
    },
    /// Shards could not be made or put together.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The loss or the gradients are not numbers any more.
    #[error(
        "step {step}: the {what} is not a finite number ({value}); a lower learning rate or clipping keeps training stable"
    )]
    NotFinite {
        /// Which step, from 0.
        step: u64,
        /// Of what.
        what: &'static str,
        /// What it is.
        value: f64,
    },
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// A thread could not be started, or failed.
    #[error("a worker thread failed: {0}")]
    Thread(String),
    /// Ranks on wall clocks stopped one another.
    #[error(transparent)]
    Ranks(#[from] Fault),
    /// The plan has no model.
    #[error("a plan of bare passes has no maths to emulate")]
    NoModel,
}

/// What a step came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Mean cross-entropy over the batch's tokens, before the update.
    pub loss: f64,
    /// The gradients' global norm, before clipping.
    pub grad_norm: f64,
    /// What the operations took on this machine.
    pub took: Measured,
    /// The whole gradients, before clipping, if they were asked for.
    pub gradients: Option<Weights>,
}

/// What a step's operations took, one for each of the plan's.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Of ranks one after the other: how long each took; what moves data between them takes nothing.
    Durations(Vec<Nanos>),
    /// Of ranks side by side: when each ran.
    Times(Vec<Times>),
}

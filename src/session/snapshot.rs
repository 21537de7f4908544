//! What goes into a session and what comes out of it: plain data.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::guide::{Guide, GuideSpec};
use super::report::Report;
use super::sweep::{Sweep, SweepSpec};
use crate::shape::StageShape;
use crate::trace::Trace;

/// What a session is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Start anew with another configuration. One that cannot be is refused, and the old one stays.
    Configure(Box<Config>),
    /// Train until so many steps are done since the start; less than are done already does nothing.
    TrainUntil(u64),
    /// Start anew with the same configuration.
    Reset,
    /// Simulate the configuration with other numbers of micro-batches, for a plot of its bubble.
    Curve(Box<Config>),
    /// Rank every legal layout, in place of the sweep before; or forget that.
    Sweep(Option<Box<SweepSpec>>),
    /// Choose a layout and say why, in place of the choice before; or forget that.
    Guide(Option<Box<GuideSpec>>),
}

/// What a session is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Making weights, a plan and a first simulation.
    #[default]
    Preparing,
    /// Nothing to do: all steps asked for are done.
    Ready,
    /// Training.
    Training,
    /// It failed, and says why; a reset or another configuration starts anew.
    Failed(String),
}

/// The bubble against the number of micro-batches, as simulated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The configuration whose micro-batches vary.
    pub of: Arc<Config>,
    /// Micro-batches and the bubble of total, as far as they are known; only legal numbers.
    pub points: Vec<(usize, f64)>,
}

/// How far a sweep is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SweepState {
    /// Under way.
    Running {
        /// Layouts looked at.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// What it found.
    Found {
        /// What was asked.
        spec: Arc<SweepSpec>,
        /// The layouts.
        found: Arc<Sweep>,
    },
    /// Why there is none.
    Refused(String),
}

/// How far the choice of a layout is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum GuideState {
    /// Under way.
    Running {
        /// Layouts looked at.
        done: usize,
        /// Of so many.
        all: usize,
    },
    /// What was chosen.
    Found {
        /// What was asked.
        spec: Arc<GuideSpec>,
        /// The answer.
        found: Arc<Guide>,
    },
    /// Why there is none.
    Refused {
        /// What was asked.
        spec: Arc<GuideSpec>,
        /// Why.
        why: String,
        /// How many GPUs would do, and with which global batch, if that is known.
        fewest: Option<(usize, usize)>,
    },
}

/// A step's timeline, with its figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// What happened when.
    pub trace: Arc<Trace>,
    /// The figures, of this step; its list of steps is empty.
    pub report: Report,
    /// The bubble that the textbook gives, for even stages only.
    pub formula: Option<f64>,
    /// What each stage holds.
    pub stages: Vec<StageShape>,
    /// The pipeline rank that holds each stage.
    pub holders: Vec<usize>,
}

/// A data-parallel replica's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// A hash of all its bits: equal if and only if the weights are.
    pub hash: u64,
}

/// A step trained.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// Mean cross-entropy over the batch's tokens, before the step.
    pub loss: f64,
    /// The same of the run on one GPU beside it.
    pub reference_loss: Option<f64>,
    /// The gradients' global norm, before clipping.
    pub grad_norm: f64,
    /// Each replica's weights, after the step.
    pub replicas: Vec<Replica>,
    /// Its timeline; steps on a modelled clock share one.
    pub timeline: Arc<Timeline>,
}

/// What a session shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Rises with each new start.
    pub generation: u64,
    /// What is run.
    pub config: Arc<Config>,
    /// What it is doing.
    pub status: Status,
    /// Why the last configuration asked for was refused, if it was.
    pub refusal: Option<String>,
    /// How many were refused so far.
    pub refusals: u64,
    /// What cannot be trained about the configuration (it is simulated all the same), if anything.
    pub only_simulated: Option<String>,
    /// The simulated timeline, there before any step is trained.
    pub preview: Option<Arc<Timeline>>,
    /// All steps so far.
    pub steps: Vec<Arc<StepRecord>>,
    /// What the model writes before training.
    pub text_before: Option<String>,
    /// What it writes now (refreshed every few steps).
    pub text_now: Option<String>,
    /// The bubble against micro-batches, once it was asked for.
    pub curve: Option<Curve>,
    /// The sweep that was asked for.
    pub sweep: Option<SweepState>,
    /// The choice of a layout that was asked for.
    #[serde(default)]
    pub guide: Option<GuideState>,
}

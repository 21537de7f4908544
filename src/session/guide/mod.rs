//! Which layout to take, and why: the questions that an engineer asks in turn, each answered with the engine's figures.
//!
//! All layouts are looked at that a sweep looks at, with each method that is allowed. At each question the simplest way is
//! taken whose best layout is within [`TOLERANCE`] of the fastest of all; so the answer is within that of what a sweep
//! finds, and every question has the figures of the ways that were not taken.

mod alternatives;
mod look;
mod measure;
mod memory;
mod reasons;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError};
use super::report::MemoryReport;
use super::sweep::SweepSpec;
use crate::plan::Layout;
use crate::shape::{Methods, Recompute, Zero};
use crate::units::{Bytes, Nanos, percent, three_digits};

/// How much slower than the fastest a simpler layout may be, and is taken all the same.
pub const TOLERANCE: f64 = 0.02;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuideSpec {
    /// Model, hardware, formats and attention; its layout and the methods of `allowed` are not looked at.
    pub base: Config,
    /// GPUs, all of them used.
    pub gpus: usize,
    /// Sequences of a step.
    pub global_batch: usize,
    /// What may be done beside the degrees.
    pub allowed: Allowed,
}

/// What may be done beside the degrees: anything up to these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Sequence parallelism, where there is tensor parallelism.
    pub sequence_parallel: bool,
    /// The highest stage of `ZeRO`; 2 and 3 are only simulated.
    pub zero: Zero,
    /// The most that is computed again.
    pub recompute: Recompute,
}

impl Default for Allowed {
    fn default() -> Self {
        Self {
            sequence_parallel: true,
            zero: Zero::Optimizer,
            recompute: Recompute::Full,
        }
    }
}

/// A layout with its methods, and what it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The layout.
    #[serde(flatten)]
    pub layout: Layout,
    /// Whether tensor-parallel ranks share what lies between matrices.
    pub sequence_parallel: bool,
    /// What data-parallel ranks share.
    pub zero: Zero,
    /// What is computed again.
    pub recompute: Recompute,
    /// A step.
    pub step_s: f64,
    /// Whether the figures are simulated, rather than in closed form.
    pub simulated: bool,
    /// The fullest rank's memory at its peak.
    pub peak_memory_bytes: Bytes,
    /// Whether it fits.
    pub fits: bool,
    /// Idle time over the pipelines' time.
    pub bubble_of_total: f64,
}

/// What a question is about, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Whether one GPU holds the whole training.
    OneGpu,
    /// Whether it does with `ZeRO` or recomputation.
    Helped,
    /// Whether one GPU holds a layer.
    Layer,
    /// Whether a node holds the model.
    Node,
    /// The tensor-parallel degree.
    Tensor,
    /// The pipeline-parallel degree.
    Pipeline,
    /// The data-parallel degree.
    Data,
    /// Micro-batches.
    MicroBatches,
    /// Chunks of a rank.
    Chunks,
    /// Sequence parallelism.
    Sequence,
    /// `ZeRO`.
    Zero,
    /// Recomputation.
    Recompute,
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Yes,
    /// No.
    No,
    /// With one of the ways.
    Choice,
}

/// A figure that a question is answered by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Of what.
    pub name: String,
    /// The figure.
    #[serde(flatten)]
    pub value: Value,
}

/// A figure with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A size.
    Bytes(Bytes),
    /// A time.
    Seconds(f64),
    /// A number of things.
    Count(u64),
    /// A rate, in GB/s.
    GbPerS(f64),
}

/// `24.8 MiB`, `17.7 ms`, `8`, `1.56 B`, `300 GB/s`.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Seconds(seconds) => write!(f, "{}", Nanos::from_secs(*seconds)),
            Self::Count(count) if *count < 10_000 => write!(f, "{count}"),
            Self::Count(count) => write!(f, "{}", crate::units::large(*count as f64)),
            Self::GbPerS(rate) => write!(f, "{} GB/s", three_digits(*rate)),
        }
    }
}

/// A way to answer a question, with the best layout that goes that way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// The way: `TP 4`.
    pub name: String,
    /// Its best layout: the fastest that fits, or the smallest if none does.
    pub best: Measured,
    /// Whether it is taken.
    pub taken: bool,
}

/// A question on the way to the layout, its answer, and the figures behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// What it is about.
    pub topic: Topic,
    /// The question.
    pub question: String,
    /// How it is answered.
    pub verdict: Verdict,
    /// The answer in a word or two: `yes`, `no`, `TP 8`.
    pub answer: String,
    /// Figures.
    pub facts: Vec<Fact>,
    /// The ways that there were.
    pub ways: Vec<Way>,
    /// What follows.
    pub consequence: String,
}

/// Why an alternative was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It cannot be.
    Illegal,
    /// It does not fit.
    DoesNotFit,
    /// It is slower.
    Slower,
    /// It is about as fast, but not as simple.
    NoSimpler,
}

/// A layout that was not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// What it is: `Data parallel alone`.
    pub name: String,
    /// The layout; none if it cannot be.
    pub layout: Option<Measured>,
    /// Why not.
    pub fault: Fault,
    /// Why not, in words, with figures.
    pub why: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guide {
    /// The layout, as a configuration.
    pub config: Config,
    /// The layout with its figures, simulated.
    pub chosen: Measured,
    /// Tokens a second, of all GPUs.
    pub tokens_per_s: f64,
    /// Model FLOPs over what the GPUs could do.
    pub mfu: f64,
    /// The fullest GPU's memory at its peak.
    pub memory: MemoryReport,
    /// What a GPU has.
    pub capacity: Bytes,
    /// The fastest layout that was found; the chosen one is within [`TOLERANCE`] of it, and simpler, or is it.
    pub fastest: Measured,
    /// Layouts that were looked at, with all their methods.
    pub layouts: usize,
    /// Those of them that fit.
    pub fitting: usize,
    /// The questions, in order.
    pub reasons: Vec<Reason>,
    /// Alternatives.
    pub rejected: Vec<Rejected>,
}

/// How many GPUs would do where those asked for do not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fewest {
    /// GPUs: those asked for, doubled until a layout fits.
    pub gpus: usize,
    /// Sequences of a step, as many a GPU as were asked for.
    pub global_batch: usize,
    /// The layout that then needs least.
    pub layout: Measured,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GuideError {
    /// The model or a layout cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No layout goes with the batch.
    #[error(
        "no layout of {gpus} GPUs goes with {model} and a global batch of {batch}: the batch must be a multiple of the \
         replicas, so try {gpus} or a multiple of it"
    )]
    NoLayout {
        /// GPUs asked for.
        gpus: usize,
        /// The model's name.
        model: String,
        /// Sequences asked for.
        batch: usize,
    },
    /// Nothing fits.
    #[error(
        "{model} does not fit {gpus} × {hardware}: what needs least needs {} of {capacity} a GPU ({}); {}",
        .smallest.peak_memory_bytes, .smallest.named(), would_do(.fewest.as_deref())
    )]
    NothingFits {
        /// The model's name.
        model: String,
        /// GPUs asked for.
        gpus: usize,
        /// What they are.
        hardware: String,
        /// What each has.
        capacity: Bytes,
        /// The layout that needs least.
        smallest: Box<Measured>,
        /// What would do.
        fewest: Option<Box<Fewest>>,
    },
}

/// What would do, in words.
fn would_do(fewest: Option<&Fewest>) -> String {
    match fewest {
        Some(Fewest { gpus, layout, .. }) => format!(
            "doubling them, {gpus} GPUs are the first that would do, with {} a GPU ({})",
            layout.peak_memory_bytes,
            layout.named()
        ),
        None => format!("no number of them up to {} would do", memory::MOST_GPUS),
    }
}

impl Measured {
    /// The methods, of a configuration that has `others`.
    pub fn methods(&self, others: Methods) -> Methods {
        Methods {
            sequence_parallel: self.sequence_parallel,
            zero: self.zero,
            recompute: self.recompute,
            ..others
        }
    }

    /// In few words: `DP 2 × TP 4 × PP 8, 16 micro-batches of 1, 3 chunks, ZeRO-1`.
    pub fn named(&self) -> String {
        let Layout {
            dp,
            tp,
            pp,
            micro_batches,
            micro_batch_size,
            chunks,
            ..
        } = self.layout;
        let plural = if micro_batches == 1 { "" } else { "es" };
        let mut parts = vec![
            format!("DP {dp} × TP {tp} × PP {pp}"),
            format!("{micro_batches} micro-batch{plural} of {micro_batch_size}"),
        ];
        if chunks > 1 {
            parts.push(format!("{chunks} chunks"));
        }
        parts.extend(self.methods_named());
        parts.join(", ")
    }

    /// Each method that it uses.
    pub fn methods_named(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if self.sequence_parallel {
            parts.push("sequence parallel".to_owned());
        }
        if self.zero != Zero::Off {
            parts.push(look::zero_name(self.zero));
        }
        if self.recompute != Recompute::None {
            parts.push(format!("{} recomputation", self.recompute.name()));
        }
        parts
    }

    /// A step, marked where it is in closed form: `88.8 s`, `≈ 88.8 s`.
    pub fn step_text(&self) -> String {
        let about = if self.simulated { "" } else { "≈ " };
        format!("{about}{}", Nanos::from_secs(self.step_s))
    }

    /// A step, or what it needs where that does not fit.
    pub fn outcome(&self) -> String {
        if self.fits {
            self.step_text()
        } else {
            format!("does not fit, {}", self.peak_memory_bytes)
        }
    }
}

/// By how much `step` is longer than `than`: `8.3 % slower`, `3.1 times as long`.
fn slower(step: f64, than: f64) -> String {
    let times = step / than.max(f64::MIN_POSITIVE);
    if times >= 2.0 {
        format!("{} times as long", three_digits(times))
    } else {
        format!("{} slower", percent(times - 1.0))
    }
}

impl GuideSpec {
    /// What `config` trains, on `gpus` GPUs: its model, hardware and global batch.
    pub fn around(config: &Config, gpus: usize) -> Self {
        let SweepSpec {
            base, global_batch, ..
        } = SweepSpec::around(config, gpus);
        Self {
            base: Config {
                methods: Methods {
                    sequence_parallel: false,
                    zero: Zero::Off,
                    no_sync: false,
                    ..base.methods
                },
                ..base
            },
            gpus,
            global_batch,
            allowed: Allowed::default(),
        }
    }

    /// A layout's configuration.
    pub fn config_of(&self, one: &Measured) -> Config {
        Config {
            layout: one.layout,
            methods: one.methods(self.base.methods),
            ..self.base.clone()
        }
    }
}

/// Chooses; `progress` is told how many of how many layouts are looked at, and may end it: then there is no answer.
pub fn guide(
    spec: &GuideSpec,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Guide>, GuideError> {
    spec.base.model.check().map_err(ConfigError::from)?;
    let ControlFlow::Continue(mut all) = look::candidates(spec, progress)? else {
        return Ok(None);
    };
    if all.is_empty() {
        return Err(GuideError::NoLayout {
            gpus: spec.gpus,
            model: spec.base.model.name.clone(),
            batch: spec.global_batch,
        });
    }
    let layouts = all.len();
    let chosen = if all.iter().any(|one| one.fits) {
        look::choose(spec, &mut all, progress)?.map_continue(Some)
    } else {
        ControlFlow::Continue(None)
    };
    let choice = match chosen {
        ControlFlow::Break(()) => return Ok(None),
        ControlFlow::Continue(Some(choice)) if choice.chosen.fits => choice,
        ControlFlow::Continue(_) => {
            let error = memory::nothing_fits(spec, &all, progress)?;
            return error.continue_value().map_or(Ok(None), Err);
        }
    };
    let reasons = reasons::all(spec, &all, &choice)?;
    let rejected = alternatives::all(spec, &all, &choice, progress)?;
    let ControlFlow::Continue(rejected) = rejected else {
        return Ok(None);
    };
    let config = spec.config_of(&choice.chosen);
    let step = choice.chosen.step_s.max(f64::MIN_POSITIVE);
    let peak = config.hardware.peak_flops(config.precision);
    Ok(Some(Guide {
        tokens_per_s: (spec.global_batch * config.model.seq) as f64 / step,
        mfu: config.model.step_flops(spec.global_batch as u64) / (step * spec.gpus as f64 * peak),
        capacity: config.hardware.memory(),
        config,
        chosen: choice.chosen,
        memory: choice.seen.memory,
        fastest: choice.fastest,
        layouts,
        fitting: all.iter().filter(|one| one.fits).count(),
        reasons,
        rejected,
    }))
}

//! Training for real on emulated GPUs: steps, their figures and timelines.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::config::{Clock, Config, ConfigError, Costs, Device};
use super::report::{Report, StepReport};
use super::snapshot::{Replica, StepRecord, Timeline};
use crate::engine::{
    Measured, Outcome, StepError, Training, cores, measured, recorded, simulate, simulate_disturbed,
};
use crate::model::data::{Batches, PRIMER, byte_tokens, text_of};
use crate::model::{ModelError, Sampling, Weights, sample};
use crate::plan::Plan;
use crate::trace::Trace;
use crate::units::Nanos;

/// What is trained from and on, where it is not the seed's weights and the shipped text.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// A safetensors file of weights under GPT-2's names.
    pub weights: Option<Vec<u8>>,
    /// A safetensors file with `tokens` `[steps, global batch, seq + 1]`.
    pub tokens: Option<Vec<u8>>,
    /// A text whose bytes are trained on.
    pub text: Option<String>,
}

/// Why training came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Weights or tokens do not go with the model, or a file could not be read or written.
    #[error(transparent)]
    Input(#[from] ModelError),
    /// The tokens are for another batch.
    #[error(
        "the tokens are for a global batch of {file}, but dp x micro-batches x micro-batch size = {layout}; choose \
         degrees whose product is {file}"
    )]
    Batch {
        /// Sequences of a step in the file.
        file: usize,
        /// Sequences of a step by the layout.
        layout: usize,
    },
    /// The tokens end.
    #[error("the tokens are of {0} steps; ask for at most as many with --steps")]
    Steps(usize),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// There was nothing to do.
    #[error("training takes at least one step")]
    NoSteps,
}

impl TrainError {
    /// Whether what was asked for cannot be, rather than that it failed on the way.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Step(_))
    }
}

/// The most tokens of a text that a sample shows.
const SAMPLE_TOKENS: usize = 96;

/// All ranks of a configuration, in training.
#[derive(Debug)]
pub struct Trainer {
    config: Config,
    plan: Arc<Plan>,
    training: Training,
    batches: Batches,
    timeline: Arc<Timeline>,
}

impl Trainer {
    /// Makes weights, shards and the modelled timeline.
    pub fn new(config: &Config, inputs: &Inputs) -> Result<Self, TrainError> {
        let plan = Arc::new(config.training_plan()?);
        let batches = batches(config, inputs)?;
        let weights = match &inputs.weights {
            Some(bytes) => Weights::from_safetensors(bytes, &config.model)?,
            None => Weights::init(&config.model, config.seed)?,
        };
        let (shared, size) = (Arc::clone(&plan), config.layout.micro_batch_size);
        let training = match config.device {
            Device::Emulated => Training::emulated(shared, &config.model, &weights, size)?,
            Device::Cpu => Training::cpu(shared, &config.model, &weights, size)?,
        };
        let timeline = Arc::new(Timeline::simulated(config, "emulated")?);
        Ok(Self {
            config: config.clone(),
            plan,
            training,
            batches,
            timeline,
        })
    }

    /// The modelled timeline, which every step on a modelled clock has.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// One step; its gradients too, whole and before clipping, if they are to be kept.
    pub fn step(&mut self, keep_gradients: bool, stop: &AtomicBool) -> Result<Outcome, TrainError> {
        let step = self.training.steps();
        let tokens = self
            .batches
            .batch(step as usize, self.config.layout.global_batch())?;
        Ok(self.training.step(&tokens, keep_gradients, stop)?)
    }

    /// A step just done, with its timeline and what the replicas now hold.
    pub fn record(&self, outcome: &Outcome) -> Result<StepRecord, TrainError> {
        let hashes = self.training.hashes()?.into_iter();
        Ok(StepRecord {
            loss: outcome.loss,
            reference_loss: None,
            grad_norm: outcome.grad_norm,
            replicas: hashes.map(|hash| Replica { hash }).collect(),
            timeline: self.timeline_of(&outcome.took)?,
        })
    }

    /// The timeline of a step whose operations took so long on this machine.
    fn timeline_of(&self, took: &Measured) -> Result<Arc<Timeline>, ConfigError> {
        let Some(trace) = self.measured(took) else {
            return Ok(Arc::clone(&self.timeline));
        };
        let device = self.config.device;
        let timeline = Timeline::new(&self.config_of_costs(), &self.plan, trace, device.name())?;
        let timed = timeline.report.timed(&timeline.trace);
        let report = match device {
            Device::Emulated => timed,
            Device::Cpu => timed.on_cores(cores()),
        };
        Ok(Arc::new(Timeline { report, ..timeline }))
    }

    /// The trace of a step, unless its times are the cost model's.
    fn measured(&self, took: &Measured) -> Option<Trace> {
        match (took, self.config.clock) {
            (Measured::Times(times), _) => Some(recorded(&self.plan, times)),
            (Measured::Durations(took), Clock::Measured) => {
                let pricing = self.config_of_costs().pricing();
                Some(measured(&self.plan, pricing.as_ref(), took))
            }
            (Measured::Durations(_), Clock::Modelled) => None,
        }
    }

    /// Measured passes have transfers by the cost model beside them.
    fn config_of_costs(&self) -> Config {
        Config {
            costs: Costs::Model,
            ..self.config.clone()
        }
    }

    /// How long a step was.
    fn makespan_of(&self, took: &Measured) -> Nanos {
        let timed = self.measured(took);
        timed.map_or(self.timeline.trace.makespan, |trace| trace.makespan)
    }

    /// The whole weights as they are now.
    pub fn weights(&self) -> Result<Weights, TrainError> {
        Ok(self.training.weights()?)
    }

    /// A short text that the model writes now, the same for the same weights; cut short once `stop` is set.
    pub fn sample(&self, stop: &AtomicBool) -> Result<String, TrainError> {
        let prompt = byte_tokens("The ", self.config.model.vocab);
        let how = Sampling {
            tokens: SAMPLE_TOKENS,
            temperature: 0.7,
            seed: self.config.seed,
        };
        let tokens = sample(&self.config.model, &self.weights()?, &prompt, how, stop)?;
        // What no font shows (a model that has learnt nothing writes any byte) is shown as a dot.
        let text = text_of(&tokens);
        Ok(text
            .chars()
            .map(|c| {
                if c.is_ascii_graphic() || c == ' ' {
                    c
                } else {
                    '·'
                }
            })
            .collect())
    }
}

fn batches(config: &Config, inputs: &Inputs) -> Result<Batches, TrainError> {
    let seq = config.model.seq;
    let Some(file) = &inputs.tokens else {
        let text = inputs.text.as_deref().unwrap_or(PRIMER);
        return Ok(Batches::new(
            byte_tokens(text, config.model.vocab),
            seq,
            config.seed,
        )?);
    };
    let batches = Batches::from_safetensors(file, seq, config.model.vocab)?;
    let layout = config.layout.global_batch();
    match batches.global_batch() {
        Some(file) if file != layout => Err(TrainError::Batch { file, layout }),
        _ => Ok(batches),
    }
}

impl Timeline {
    /// What a cost model makes of a configuration.
    pub fn simulated(config: &Config, engine: &str) -> Result<Self, ConfigError> {
        let plan = config.plan()?;
        let trace = step_of(config, &plan);
        Self::new(config, &plan, trace, engine)
    }

    fn new(config: &Config, plan: &Plan, trace: Trace, engine: &str) -> Result<Self, ConfigError> {
        let report = Report::new(config, plan, &trace, engine)?;
        let program = plan.program();
        let (stages, holders) = (program.stages.clone(), program.holders.clone());
        Ok(Self {
            trace: Arc::new(trace),
            report,
            formula: config.bubble_formula(),
            stages,
            holders,
        })
    }
}

/// A step as a cost model makes it.
pub(super) fn simulate_step(config: &Config) -> Result<Trace, ConfigError> {
    Ok(step_of(config, &config.plan()?))
}

fn step_of(config: &Config, plan: &Plan) -> Trace {
    let (pricing, how) = (config.pricing(), &config.disturbance);
    if how.is_none() {
        simulate(plan, pricing.as_ref())
    } else {
        simulate_disturbed(plan, pricing.as_ref(), how, config.seed)
    }
}

/// What a training run came to.
#[derive(Debug)]
pub struct Trained {
    /// The timeline of the step with the lower median time, and its figures with all steps'.
    pub timeline: Arc<Timeline>,
    /// The figures, with all steps.
    pub report: Report,
    /// The first step's whole gradients, before clipping.
    pub gradients: Weights,
    /// The whole weights after the last step.
    pub weights: Weights,
}

/// Trains so many steps; `progress` is told of each.
pub fn train(
    config: &Config,
    inputs: &Inputs,
    steps: u64,
    progress: &mut dyn FnMut(u64, &StepReport),
) -> Result<Trained, TrainError> {
    let mut trainer = Trainer::new(config, inputs)?;
    if let Some(most) = trainer.batches.steps()
        && steps > most as u64
    {
        return Err(TrainError::Steps(most));
    }
    let stop = AtomicBool::new(false);
    let (mut reports, mut times, mut first) = (Vec::new(), Vec::new(), None);
    for step in 0..steps {
        let outcome = trainer.step(step == 0, &stop)?;
        let makespan = trainer.makespan_of(&outcome.took);
        let report = StepReport {
            loss: outcome.loss,
            grad_norm: outcome.grad_norm,
            time_s: makespan.secs(),
        };
        progress(step, &report);
        reports.push(report);
        times.push((makespan, outcome.took));
        first = first.or(outcome.gradients);
    }
    times.sort_by_key(|&(makespan, _)| makespan);
    let (_, median) = times
        .get(times.len().saturating_sub(1) / 2)
        .ok_or(TrainError::NoSteps)?;
    let timeline = trainer.timeline_of(median)?;
    let report = Report {
        steps: reports,
        ..timeline.report.clone()
    };
    let gradients = first.ok_or(TrainError::NoSteps)?;
    Ok(Trained {
        timeline,
        report,
        gradients,
        weights: trainer.weights()?,
    })
}

impl StepRecord {
    /// Its figures.
    pub fn report(&self) -> StepReport {
        let time_s = self.timeline.trace.makespan.secs();
        StepReport {
            loss: self.loss,
            grad_norm: self.grad_norm,
            time_s,
        }
    }
}

/// Writes weights or gradients as safetensors under GPT-2's names.
pub fn save_weights(weights: &Weights, path: &Path) -> Result<(), TrainError> {
    Ok(weights.save(path)?)
}

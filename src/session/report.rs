//! The figures of a run: the object that `--json` prints, and what the window shows.

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError, Costs};
use super::traffic::TrafficReport;
use crate::engine::simulate;
use crate::plan::Plan;
use crate::shape::{Attention, Recompute};
use crate::trace::Trace;
use crate::units::{Bytes, Nanos};

/// A run's figures. Times are in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was run.
    pub config: Config,
    /// `simulated` (no maths), `emulated` (the real maths on virtual clocks) or `cpu` (on this machine's own).
    pub engine: String,
    /// What told the time: `virtual` or `wall`.
    pub clock: String,
    /// Whether durations are `simulated` (from a cost model) or `measured`.
    pub times: String,
    /// The cores that ranks shared, where they were threads of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Each step trained.
    pub steps: Vec<StepReport>,
    /// One step of all ranks, synchronisation and optimizer included; of several, the lower median one,
    /// which all that follows is of.
    pub makespan_s: f64,
    /// Tokens trained on in a second; null where no model was consulted.
    pub tokens_per_s: Option<f64>,
    /// Model FLOPs over what the GPUs could do in the time; null without a peak rate.
    pub mfu: Option<f64>,
    /// As `mfu`, with recomputation counted as work.
    pub hfu: Option<f64>,
    /// Whether every rank's peak fits its memory.
    pub fits: bool,
    /// How many times faster than one GPU.
    pub speedup: f64,
    /// Speed-up over GPUs.
    pub efficiency: f64,
    /// End of the last pass of a replica, the latest of them.
    pub pipeline_s: f64,
    /// Idle time over the pipelines' time.
    pub bubble_of_total: f64,
    /// Idle time over the time of all passes.
    pub bubble_of_ideal: f64,
    /// The zero-bubble paper's figure.
    pub bubble_stage_span: f64,
    /// Each rank's share.
    pub ranks: Vec<RankReport>,
    /// What moved between ranks.
    pub traffic: Vec<TrafficReport>,
}

/// A step trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Mean cross-entropy over the batch's tokens, before the step.
    pub loss: f64,
    /// The gradients' global norm, before clipping.
    pub grad_norm: f64,
    /// Its makespan.
    pub time_s: f64,
}

/// A rank's share of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// Its number.
    pub rank: u32,
    /// Data-parallel replica.
    pub dp: u32,
    /// Tensor-parallel slice.
    pub tp: u32,
    /// Pipeline position.
    pub pp: u32,
    /// How many ranks are like it, itself among them.
    pub count: u32,
    /// Computing.
    pub compute_s: f64,
    /// Nothing to compute because something needed is in flight.
    pub transfer_s: f64,
    /// In a collective whose members are not all there.
    pub wait_s: f64,
    /// The bubble.
    pub idle_s: f64,
    /// Most (micro-batch, chunk) pairs in flight.
    pub peak_in_flight: u32,
    /// Memory at its peak.
    pub peak_memory_bytes: MemoryReport,
}

/// Memory by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Parameters.
    pub parameters: Bytes,
    /// Their gradients.
    pub gradients: Bytes,
    /// The optimizer's state.
    pub optimizer: Bytes,
    /// Activations, at their peak.
    pub activations: Bytes,
}

impl Report {
    /// How many GPUs it is of.
    pub fn gpus(&self) -> u64 {
        self.ranks.iter().map(|rank| u64::from(rank.count)).sum()
    }

    /// The figures of `trace`, one step of `plan`, of `config`.
    pub fn new(
        config: &Config,
        plan: &Plan,
        trace: &Trace,
        engine: &str,
    ) -> Result<Self, ConfigError> {
        let makespan = trace.makespan.secs();
        let bubbles = trace.bubbles();
        let gpus = trace.gpus() as f64;
        let has_model = config.costs == Costs::Model;
        let one_gpu = one_gpu_time(config, trace)?;
        let speedup = one_gpu.secs() / makespan;
        let batch = config.layout.global_batch() as u64;
        let peak = config.hardware.peak_flops(config.precision);
        let mfu = has_model.then(|| config.model.step_flops(batch) / (makespan * gpus * peak));
        let capacity = config.hardware.memory();
        let tokens = batch as f64 * config.model.seq as f64;
        Ok(Self {
            config: config.clone(),
            engine: engine.to_owned(),
            clock: "virtual".to_owned(),
            times: "simulated".to_owned(),
            cores: None,
            steps: Vec::new(),
            makespan_s: makespan,
            tokens_per_s: has_model.then(|| tokens / makespan),
            mfu,
            hfu: mfu.map(|share| share * recomputed(config)),
            fits: trace.memory.iter().all(|memory| memory.peak() <= capacity),
            speedup,
            efficiency: speedup / gpus,
            pipeline_s: trace.pipeline_end().secs(),
            bubble_of_total: bubbles.of_total,
            bubble_of_ideal: bubbles.of_ideal,
            bubble_stage_span: bubbles.stage_span,
            ranks: RankReport::all(trace),
            traffic: TrafficReport::all(plan, trace),
        })
    }

    /// The same of a step that was timed on this machine: no peak rate is known of it, and one GPU would
    /// compute in a row what all ranks did.
    pub(super) fn timed(self, trace: &Trace) -> Self {
        let gpus = trace.ranks.len();
        let alone: Nanos = (0..gpus).map(|index| trace.split(index).compute).sum();
        let speedup = alone.secs() / self.makespan_s;
        Self {
            times: "measured".to_owned(),
            mfu: None,
            hfu: None,
            speedup,
            efficiency: speedup / gpus as f64,
            ..self
        }
    }

    /// The same of ranks that were threads of this machine, on so many cores.
    pub(super) fn on_cores(self, cores: usize) -> Self {
        Self {
            clock: "wall".to_owned(),
            cores: Some(cores as u64),
            ..self
        }
    }
}

/// All the work that is done over the model's own.
fn recomputed(config: &Config) -> f64 {
    let again = match config.methods.recompute {
        Recompute::None => 0.0,
        // A fused core does that itself, in its backward.
        Recompute::Selective if config.methods.attention == Attention::Fused => 0.0,
        Recompute::Selective => config.model.cores_flops(1),
        Recompute::Full => config.model.layers_flops(1),
    };
    1.0 + again / config.model.step_flops(1)
}

/// What one GPU would take for the same batch; with fixed passes, all of a replica's passes in a row, for
/// each replica.
fn one_gpu_time(config: &Config, trace: &Trace) -> Result<Nanos, ConfigError> {
    match config.costs {
        Costs::Model => {
            // One GPU sends nothing and runs one micro-batch like the next: two tell for any number.
            let alone = |micro_batches: usize| -> Result<Nanos, ConfigError> {
                let mut one = config.on_one_gpu();
                one.layout.micro_batches = micro_batches;
                Ok(simulate(&one.plan()?, one.pricing().as_ref()).makespan)
            };
            let more = config.layout.dp as u64 * config.layout.micro_batches as u64 - 1;
            let first = alone(1)?;
            Ok(first + alone(2)?.since(first) * more)
        }
        Costs::Passes { .. } => {
            let of_slice_0 = trace
                .ranks
                .iter()
                .enumerate()
                .filter(|(_, info)| info.tp == 0);
            Ok(of_slice_0
                .map(|(index, info)| {
                    let replicas = u64::from(info.count) / config.layout.tp as u64;
                    trace.pass_time(index) * replicas.max(1)
                })
                .sum())
        }
    }
}

impl RankReport {
    /// Of every rank of `trace`, in order.
    pub fn all(trace: &Trace) -> Vec<Self> {
        (0..trace.ranks.len())
            .map(|index| rank_report(trace, index))
            .collect()
    }
}

fn rank_report(trace: &Trace, index: usize) -> RankReport {
    let (info, split) = (trace.ranks[index], trace.split(index));
    // A table of spans knows of no memory.
    let memory = trace.memory.get(index).cloned().unwrap_or_default();
    RankReport {
        rank: info.rank.0,
        dp: info.dp,
        tp: info.tp,
        pp: info.pp,
        count: info.count,
        compute_s: split.compute.secs(),
        transfer_s: split.transfer.secs(),
        wait_s: split.waiting.secs(),
        idle_s: split.idle.secs(),
        peak_in_flight: info.peak_in_flight,
        peak_memory_bytes: MemoryReport {
            parameters: memory.fixed.parameters,
            gradients: memory.fixed.gradients,
            optimizer: memory.fixed.optimizer,
            activations: memory.peak_activations(),
        },
    }
}

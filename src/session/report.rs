//! The figures of a run: the object that `--json` prints, and what the window shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError, Costs};
use crate::engine::simulate;
use crate::mesh::Axis;
use crate::plan::{Op, Plan, What};
use crate::trace::{Phase, Span, Stream, Trace};
use crate::units::{Bytes, Nanos, Rank};

/// A run's figures. Times are in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was run.
    pub config: Config,
    /// `simulated` (no maths) or `emulated` (the real maths on virtual clocks).
    pub engine: String,
    /// What told the time: `virtual`.
    pub clock: String,
    /// Whether durations are `simulated` (from a cost model) or `measured`.
    pub times: String,
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

/// What moved in a group, per instance of it and step; instances that are alike share a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// The group's axis.
    pub group: String,
    /// `all_reduce` or `send_recv`.
    pub kind: String,
    /// The ranks of the first such instance.
    pub ranks: Vec<u32>,
    /// How many instances are like it.
    pub instances: u32,
    /// Operations.
    pub count: u64,
    /// Their size, as nccl-tests would print it, times the count.
    pub bytes: u64,
    /// What the ranks really moved.
    pub wire_bytes: u64,
    /// Time in transfer, without waiting.
    pub time_s: f64,
    /// Bytes over time, in bytes a second.
    pub algbw: f64,
    /// What that asks of each link: algbw x 2(n-1)/n for an all-reduce of n, x 1 for a send.
    pub busbw: f64,
}

impl Report {
    /// The figures of `trace`, one step of `plan`, of `config`.
    pub fn new(
        config: &Config,
        plan: &Plan,
        trace: &Trace,
        engine: &str,
    ) -> Result<Self, ConfigError> {
        let makespan = trace.makespan.secs();
        let bubbles = trace.bubbles();
        let gpus = trace.ranks.len() as f64;
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
            steps: Vec::new(),
            makespan_s: makespan,
            tokens_per_s: has_model.then(|| tokens / makespan),
            mfu,
            hfu: mfu,
            fits: trace.memory.iter().all(|memory| memory.peak() <= capacity),
            speedup,
            efficiency: speedup / gpus,
            pipeline_s: trace.pipeline_end().secs(),
            bubble_of_total: bubbles.of_total,
            bubble_of_ideal: bubbles.of_ideal,
            bubble_stage_span: bubbles.stage_span,
            ranks: RankReport::all(trace),
            traffic: traffic(plan, trace),
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
            Ok(of_slice_0.map(|(index, _)| trace.pass_time(index)).sum())
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

/// Sums over the operations of an instance of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sums {
    count: u64,
    bytes: u64,
    time: Nanos,
}

impl Sums {
    /// Counts an operation; its time comes from its span, which one that takes none has not.
    fn count(&mut self, plan: &Plan, op: &Op) {
        self.count += 1;
        self.bytes += plan.program().labels[op.label.0 as usize].bytes;
    }
}

fn traffic(plan: &Plan, trace: &Trace) -> Vec<TrafficReport> {
    let program = plan.program();
    let mesh = program.mesh;
    // A pipeline is known by its first rank, which is below all others.
    let pipelines = mesh.dp() * mesh.tp();
    let mut sends = vec![Sums::default(); pipelines];
    let mut collectives = vec![Sums::default(); program.groups.len()];
    for rank in (0..mesh.ranks() as u32).map(Rank) {
        let pipeline = &mut sends[rank.index() % pipelines];
        for id in program.ops_of(rank) {
            let op = program.op(id);
            match op.what {
                What::Send { .. } => pipeline.count(plan, op),
                // Every member counts the same: the first one tells.
                What::AllReduce { group, .. } => {
                    let group = group as usize;
                    if program.groups[group].ranks[0] == rank {
                        collectives[group].count(plan, op);
                    }
                }
                What::Compute { .. } | What::Optimizer | What::Receive { .. } => {}
            }
        }
        for stream in [Stream::SendNext, Stream::SendPrev] {
            pipeline.time += transfer(trace, rank, stream, Axis::Pp);
        }
    }
    let mut rows: BTreeMap<(Axis, usize, Sums), (Vec<Rank>, u32)> = BTreeMap::new();
    let mut add = |axis: Axis, ranks: &[Rank], sums: Sums| {
        if sums.count > 0 {
            rows.entry((axis, ranks.len(), sums))
                .or_insert_with(|| (ranks.to_vec(), 0))
                .1 += 1;
        }
    };
    for (group, mut sums) in program.groups.iter().zip(collectives) {
        for stream in [Stream::Tp, Stream::Dp] {
            sums.time += transfer(trace, group.ranks[0], stream, group.axis);
        }
        add(group.axis, &group.ranks, sums);
    }
    for (ranks, sums) in mesh.groups(Axis::Pp).iter().zip(sends) {
        add(Axis::Pp, ranks, sums);
    }
    rows.into_iter()
        .map(|((axis, _, sums), (ranks, instances))| row(axis, &ranks, instances, sums))
        .collect()
}

/// Time in transfer on a stream of a rank, for groups along `axis`.
fn transfer(trace: &Trace, rank: Rank, stream: Stream, axis: Axis) -> Nanos {
    let is_it = |span: &&Span| {
        let group = trace.label(span.label).group.as_deref();
        span.phase == Phase::Transfer && group == Some(axis.name())
    };
    let spans = trace.lane(rank.index(), stream).spans().iter();
    spans.filter(is_it).map(Span::duration).sum()
}

fn row(axis: Axis, ranks: &[Rank], instances: u32, sums: Sums) -> TrafficReport {
    let is_send = axis == Axis::Pp;
    let n = ranks.len() as f64;
    let share = if is_send { 1.0 } else { 2.0 * (n - 1.0) / n };
    let algbw = if sums.time == Nanos::ZERO {
        0.0
    } else {
        sums.bytes as f64 / sums.time.secs()
    };
    TrafficReport {
        group: axis.name().to_owned(),
        kind: if is_send { "send_recv" } else { "all_reduce" }.to_owned(),
        ranks: ranks.iter().map(|rank| rank.0).collect(),
        instances,
        count: sums.count,
        bytes: sums.bytes,
        wire_bytes: if is_send {
            sums.bytes
        } else {
            2 * (ranks.len() as u64 - 1) * sums.bytes
        },
        time_s: sums.time.secs(),
        algbw,
        busbw: algbw * share,
    }
}

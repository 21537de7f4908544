//! What drawing needs to know of a whole trace, gathered once per trace and not once per frame.

use std::sync::Arc;

use super::density::{self, Density};
use super::lineup::{Arrangement, Lineup};
use crate::trace::{Kind, Memory, Phase, Span, Stream, Trace};
use crate::units::{Bytes, Nanos, Pass};

/// Which kinds of thing a trace holds, for tracks and legend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of kinds, each by its name"
)]
pub struct Holds {
    /// Whether passes `F`, `B`, `I`, `W` occur.
    pub passes: [bool; 4],
    /// The optimizer's step.
    pub optimizer: bool,
    /// Kernels, of other programs' traces.
    pub kernels: bool,
    /// Communication kernels among them.
    pub communication: bool,
    /// Copies, and what threads do.
    pub others: bool,
    /// Sends between stages.
    pub sends: bool,
    /// Sends to both neighbours at once.
    pub sends_overlap: bool,
    /// Tensor-parallel collectives.
    pub tp: bool,
    /// Reduce-scatters and all-gathers among them.
    pub tp_shares: bool,
    /// Data-parallel collectives.
    pub dp: bool,
    /// Reduce-scatters and all-gathers among them.
    pub dp_shares: bool,
    /// Transfers that computing waits for.
    pub exposed: bool,
    /// Waiting for members of a collective.
    pub waiting: bool,
    /// The bubble.
    pub idle: bool,
    /// Memory.
    pub memory: bool,
}

impl Holds {
    /// Whether `pass` occurs.
    pub fn pass(&self, pass: Pass) -> bool {
        self.passes[pass as usize]
    }

    /// What either holds.
    pub fn or(self, other: Self) -> Self {
        let mut passes = self.passes;
        for (own, others) in passes.iter_mut().zip(other.passes) {
            *own |= others;
        }
        Self {
            passes,
            optimizer: self.optimizer || other.optimizer,
            kernels: self.kernels || other.kernels,
            communication: self.communication || other.communication,
            others: self.others || other.others,
            sends: self.sends || other.sends,
            sends_overlap: self.sends_overlap || other.sends_overlap,
            tp: self.tp || other.tp,
            tp_shares: self.tp_shares || other.tp_shares,
            dp: self.dp || other.dp,
            dp_shares: self.dp_shares || other.dp_shares,
            exposed: self.exposed || other.exposed,
            waiting: self.waiting || other.waiting,
            idle: self.idle || other.idle,
            memory: self.memory || other.memory,
        }
    }
}

/// A trace's rows, scales and sums. Another arrangement of the rows shares all that is costly.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The rows, from the top.
    pub lineup: Lineup,
    /// The most memory any rank takes.
    pub peak_memory: Bytes,
    /// What there is.
    pub holds: Holds,
    /// Replicas, stages on the pipeline, slices.
    pub degrees: (u32, u32, u32),
    pub(super) index: Arc<Index>,
}

/// Sums are kept for blocks of so many spans.
const BLOCK: usize = 32;

/// What is found once for all spans of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// For each rank, the stages it holds, in order.
    pub(super) stages: Vec<Vec<u32>>,
    /// The class of each label's spans, and of each lane the shares of classes over time.
    pub(super) classes: Vec<u8>,
    pub(super) densities: Vec<Density>,
    /// For each rank and block of spans of its compute lane, how long the rank was idle before.
    idle_before: Vec<Vec<Nanos>>,
    /// Arrows by when they leave, and the longest one's time.
    arrows: Vec<u32>,
    longest_flight: Nanos,
}

/// For each row from the top, the rank's place in [`Trace::ranks`]: by replica, then stage, then slice.
pub fn row_order(trace: &Trace) -> Vec<usize> {
    let lineup = Lineup::new(trace, &Arrangement::default());
    (0..lineup.len())
        .filter_map(|row| lineup.first(row))
        .collect()
}

impl Overview {
    /// Reads all of `trace` once.
    pub fn new(trace: &Trace) -> Self {
        let count = trace.ranks.len();
        let mut arrows: Vec<u32> = (0..trace.arrows.len() as u32).collect();
        arrows.sort_by_key(|&index| trace.arrows[index as usize].left);
        let flights = trace
            .arrows
            .iter()
            .map(|arrow| arrow.arrived.since(arrow.left));
        let most = |axis: fn(&crate::trace::RankInfo) -> u32| {
            trace
                .ranks
                .iter()
                .map(axis)
                .max()
                .map_or(1, |most| most.saturating_add(1))
        };
        let classes = density::classes(trace);
        let index = Index {
            densities: trace
                .lanes
                .iter()
                .map(|lane| Density::new(lane, &classes))
                .collect(),
            classes,
            stages: (0..count).map(|index| stages(trace, index)).collect(),
            idle_before: (0..count).map(|index| idle_before(trace, index)).collect(),
            arrows,
            longest_flight: flights.max().unwrap_or_default(),
        };
        Self {
            lineup: Lineup::new(trace, &Arrangement::default()),
            index: Arc::new(index),
            peak_memory: trace
                .memory
                .iter()
                .map(Memory::peak)
                .max()
                .unwrap_or_default(),
            holds: holds(trace),
            degrees: (
                most(|info| info.dp),
                most(|info| info.pp),
                most(|info| info.tp),
            ),
        }
    }

    /// The same with other rows.
    pub fn arranged(&self, trace: &Trace, how: &Arrangement) -> Self {
        Self {
            lineup: Lineup::new(trace, how),
            ..self.clone()
        }
    }

    /// Which of a rank's stages `stage` is.
    pub fn chunk(&self, rank_index: usize, stage: Option<u32>) -> usize {
        let stages = &self.index.stages[rank_index];
        let found = stage.and_then(|stage| stages.iter().position(|&own| own == stage));
        found.unwrap_or(0)
    }

    /// The share of idle time in a rank's pipeline time, as far as it has come at `until`.
    pub fn idle_share(&self, trace: &Trace, rank_index: usize, until: Nanos) -> f64 {
        let until = until.min(trace.ranks[rank_index].pipeline_end);
        let spans = trace.lane(rank_index, Stream::Compute).spans();
        let after = spans.partition_point(|span| span.start < until);
        let Some(last) = after.checked_sub(1) else {
            return 0.0;
        };
        let part = match spans[last].phase {
            Phase::Idle => until.min(spans[last].end).since(spans[last].start),
            Phase::Busy | Phase::Transfer | Phase::Waiting => Nanos::ZERO,
        };
        let block = last / BLOCK;
        let within = &spans[block * BLOCK..last];
        let before = self.index.idle_before[rank_index][block] + idle_of(within);
        (before + part).0 as f64 / until.0.max(1) as f64
    }

    /// The arrows that are under way between two times, as places in [`Trace::arrows`].
    pub fn arrows_between<'a>(
        &'a self,
        trace: &'a Trace,
        from: Nanos,
        to: Nanos,
    ) -> impl Iterator<Item = usize> + 'a {
        let left = |index: &u32| trace.arrows[*index as usize].left;
        let reach = from.since(self.index.longest_flight);
        let first = self
            .index
            .arrows
            .partition_point(|index| left(index) < reach);
        self.index.arrows[first..]
            .iter()
            .take_while(move |index| left(index) < to)
            .map(|&index| index as usize)
            .filter(move |&index| trace.arrows[index].arrived >= from)
    }
}

fn stages(trace: &Trace, rank_index: usize) -> Vec<u32> {
    let spans = trace.lane(rank_index, Stream::Passes).spans();
    let mut stages: Vec<u32> = Vec::new();
    for span in spans {
        if let Some(stage) = trace.label(span.label).stage
            && !stages.contains(&stage)
        {
            stages.push(stage);
        }
    }
    stages.sort_unstable();
    stages
}

fn idle_before(trace: &Trace, rank_index: usize) -> Vec<Nanos> {
    let spans = trace.lane(rank_index, Stream::Compute).spans();
    let mut idle = Nanos::ZERO;
    spans
        .chunks(BLOCK)
        .map(|block| {
            let before = idle;
            idle += idle_of(block);
            before
        })
        .collect()
}

fn idle_of(spans: &[Span]) -> Nanos {
    let idle = spans.iter().filter(|span| span.phase == Phase::Idle);
    idle.map(Span::duration).sum()
}

fn holds(trace: &Trace) -> Holds {
    let mut holds = Holds {
        sends_overlap: (0..trace.ranks.len()).any(|index| sends_overlap(trace, index)),
        memory: trace
            .memory
            .iter()
            .any(|memory| memory.peak() > Bytes::ZERO),
        ..Holds::default()
    };
    for lane in &trace.lanes {
        for span in lane.spans() {
            let label = trace.label(span.label);
            holds.waiting |= span.phase == Phase::Waiting;
            match (lane.id.stream, span.phase) {
                (Stream::Compute, Phase::Idle) => holds.idle = true,
                (Stream::Compute, Phase::Transfer) => holds.exposed = true,
                (Stream::Passes, _) => {
                    holds.optimizer |= label.kind == Kind::Optimizer;
                    holds.kernels |= label.kind == Kind::Kernel;
                    holds.others |= matches!(label.kind, Kind::Copy | Kind::Other);
                    holds.communication |= is_communication(label.kind);
                    if let Some(pass) = label.pass {
                        holds.passes[pass as usize] = true;
                    }
                }
                (Stream::Tp, _) => {
                    holds.tp = true;
                    holds.tp_shares |= shares(label.kind);
                }
                (Stream::Dp, _) => {
                    holds.dp = true;
                    holds.dp_shares |= shares(label.kind);
                }
                (Stream::SendNext | Stream::SendPrev, _) => holds.sends = true,
                (Stream::Compute, _) => {}
            }
        }
    }
    holds
}

/// Whether ranks do it together.
pub(super) fn is_communication(kind: Kind) -> bool {
    match kind {
        Kind::AllReduce | Kind::ReduceScatter | Kind::AllGather | Kind::Collective | Kind::Send => {
            true
        }
        Kind::Pass
        | Kind::Segment
        | Kind::Optimizer
        | Kind::Kernel
        | Kind::Copy
        | Kind::End
        | Kind::Other => false,
    }
}

fn shares(kind: Kind) -> bool {
    matches!(kind, Kind::ReduceScatter | Kind::AllGather)
}

/// Whether a rank ever sends to both neighbours at once.
fn sends_overlap(trace: &Trace, rank_index: usize) -> bool {
    let previous = trace.lane(rank_index, Stream::SendPrev);
    let next = trace.lane(rank_index, Stream::SendNext).spans();
    next.iter()
        .any(|span| previous.overlapping(span.start, span.end).next().is_some())
}

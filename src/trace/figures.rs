//! The figures that follow from a trace alone, in the words of the field.

use serde::{Deserialize, Serialize};

use super::{Kind, Phase, Stream, Trace};
use crate::units::Nanos;

/// Where a rank's time went: each instant of the step once, so that they sum to the makespan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Computing.
    pub compute: Nanos,
    /// Nothing to compute because something needed is in flight.
    pub transfer: Nanos,
    /// In a collective whose members are not all there.
    pub waiting: Nanos,
    /// The micro-batch needed is not produced yet, or no pass is left before the pipeline's end.
    pub idle: Nanos,
}

impl TimeSplit {
    /// Counts some time of a rank's compute lane.
    pub fn add(&mut self, phase: Phase, time: Nanos) {
        *match phase {
            Phase::Busy => &mut self.compute,
            Phase::Transfer => &mut self.transfer,
            Phase::Waiting => &mut self.waiting,
            Phase::Idle => &mut self.idle,
        } += time;
    }

    /// Counts another's time, so many times.
    pub fn add_times(&mut self, other: Self, count: u32) {
        let times = |time: Nanos| Nanos(time.0.saturating_mul(u64::from(count)));
        self.compute += times(other.compute);
        self.transfer += times(other.transfer);
        self.waiting += times(other.waiting);
        self.idle += times(other.idle);
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.compute + self.transfer + self.waiting + self.idle
    }
}

/// A step's bubble by each of the definitions in use; a figure on screen always says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bubbles {
    /// Idle time over the pipelines' time: `(p-1)/(m+p-1)` for GPipe and 1F1B with even stages.
    pub of_total: f64,
    /// Idle time over the time of all passes: `(p-1)/m`.
    pub of_ideal: f64,
    /// The zero-bubble paper's: of the rank with the longest time from its own first pass to its last,
    /// the part of that time in which it runs none.
    pub stage_span: f64,
}

/// A rank's passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Passes {
    first: Nanos,
    last: Nanos,
    busy: Nanos,
}

impl Trace {
    /// Where the time of the rank at `rank_index` went.
    pub fn split(&self, rank_index: usize) -> TimeSplit {
        let mut split = TimeSplit::default();
        for span in self.lane(rank_index, Stream::Compute).spans() {
            split.add(span.phase, span.duration());
        }
        split
    }

    /// The end of the last pass of any replica.
    pub fn pipeline_end(&self) -> Nanos {
        self.ranks
            .iter()
            .map(|info| info.pipeline_end)
            .max()
            .unwrap_or_default()
    }

    /// The bubble, by each definition.
    pub fn bubbles(&self) -> Bubbles {
        let weighted = |index: usize, time: Nanos| (time, self.ranks[index].count);
        let ranks = 0..self.ranks.len();
        let idle = total(
            ranks
                .clone()
                .map(|index| weighted(index, self.split(index).idle)),
        );
        let pipelines = total(
            ranks
                .clone()
                .map(|index| weighted(index, self.ranks[index].pipeline_end)),
        );
        let passes: Vec<Passes> = (0..self.ranks.len())
            .map(|index| self.passes(index))
            .collect();
        let busy = total(ranks.map(|index| weighted(index, passes[index].busy)));
        let widest = passes
            .iter()
            .max_by_key(|passes| passes.last.since(passes.first))
            .copied();
        let Passes {
            first,
            last,
            busy: widest_busy,
        } = widest.unwrap_or_default();
        let span = last.since(first);
        Bubbles {
            of_total: share(idle, pipelines),
            of_ideal: share(idle, busy),
            stage_span: ratio(span.since(widest_busy), span),
        }
    }

    /// The time of all passes of the rank at `rank_index`, their tensor-parallel time included.
    pub fn pass_time(&self, rank_index: usize) -> Nanos {
        self.passes(rank_index).busy
    }

    fn passes(&self, rank_index: usize) -> Passes {
        let spans = self.lane(rank_index, Stream::Passes).spans();
        let mut of_passes = spans
            .iter()
            .filter(|span| self.label(span.label).kind == Kind::Pass);
        let Some(first) = of_passes.next() else {
            return Passes::default();
        };
        let start = Passes {
            first: first.start,
            last: first.end,
            busy: first.duration(),
        };
        of_passes.fold(start, |passes, span| Passes {
            first: passes.first,
            last: passes.last.max(span.end),
            busy: passes.busy + span.duration(),
        })
    }

    /// The share of idle time in the pipeline's time, of the rank at `rank_index`.
    pub fn idle_share(&self, rank_index: usize) -> f64 {
        ratio(
            self.split(rank_index).idle,
            self.ranks[rank_index].pipeline_end,
        )
    }
}

fn ratio(part: Nanos, whole: Nanos) -> f64 {
    if whole == Nanos::ZERO {
        0.0
    } else {
        part.0 as f64 / whole.0 as f64
    }
}

/// A sum over ranks, each for as many as it stands for; many could take it past what a [`Nanos`] holds.
fn total(times: impl Iterator<Item = (Nanos, u32)>) -> u128 {
    times
        .map(|(time, count)| u128::from(time.0) * u128::from(count))
        .sum()
}

fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

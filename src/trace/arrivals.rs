//! What arrives where and when, found without going through all messages.

use super::{Arrow, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Pass, Rank};

/// A trace's messages by who receives them and when; made once for a trace.
#[derive(Clone, Debug, Default)]
pub struct Arrivals(Vec<(Rank, Nanos, u32)>);

impl Arrivals {
    /// Those of `trace`.
    pub fn new(trace: &Trace) -> Self {
        let all = (0_u32..).zip(&trace.arrows);
        let mut all: Vec<_> = all
            .map(|(index, arrow)| (arrow.to, arrow.arrived, index))
            .collect();
        all.sort_unstable();
        Self(all)
    }

    /// What arrives at `rank` at `time`, in the trace's order; `trace` is the one that they were found in.
    pub fn at<'a>(
        &'a self,
        trace: &'a Trace,
        rank: Rank,
        time: Nanos,
    ) -> impl Iterator<Item = &'a Arrow> {
        let key = (rank, time);
        let first = self.0.partition_point(|&(to, at, _)| (to, at) < key);
        self.0[first..]
            .iter()
            .take_while(move |&&(to, at, _)| (to, at) == key)
            .map(|&(.., index)| &trace.arrows[index as usize])
    }

    /// The message that ends a gap on a rank's compute lane; of several, the one of what runs after it.
    pub fn awaited<'a>(
        &'a self,
        trace: &'a Trace,
        rank_index: usize,
        gap: &Span,
    ) -> Option<&'a Arrow> {
        let rank = trace.ranks[rank_index].rank;
        let next = trace.label(gap.label);
        let fits = |arrow: &&Arrow| {
            let label = trace.label(arrow.label);
            let forward = |pass: Option<Pass>| pass == Some(Pass::Forward);
            label.micro_batch == next.micro_batch && forward(label.pass) == forward(next.pass)
        };
        trace.gap_ends(rank_index, gap).into_iter().find_map(|end| {
            let mut fitting = self.at(trace, rank, end).filter(fits);
            fitting.next().or_else(|| self.at(trace, rank, end).next())
        })
    }
}

impl Trace {
    /// When what a gap on a rank's compute lane waits for may arrive: at its end, or at that of the transfer after it.
    pub fn gap_ends(&self, rank_index: usize, gap: &Span) -> [Nanos; 2] {
        let next = self.lane(rank_index, Stream::Compute).at(gap.end);
        let after = next
            .filter(|span| span.phase == Phase::Transfer)
            .map_or(gap.end, |span| span.end);
        [gap.end, after]
    }
}

//! Where passes start and end: the places that a press of an arrow key goes to.

use crate::trace::{Stream, Trace};
use crate::units::Nanos;

/// When the next pass starts or ends on any rank.
pub(super) fn next_event(trace: &Trace, after: Nanos) -> Option<Nanos> {
    let of_rank = |index: usize| {
        let spans = trace.lane(index, Stream::Passes).spans();
        let first = spans.partition_point(|span| span.end <= after);
        let times = spans[first..].iter().take(2);
        times
            .flat_map(|span| [span.start, span.end])
            .filter(|&time| time > after)
            .min()
    };
    let next = (0..trace.ranks.len()).filter_map(of_rank).min();
    next.or_else(|| (trace.makespan > after).then_some(trace.makespan))
}

/// When the last pass before a time started or ended on any rank.
pub(super) fn event_before(trace: &Trace, before: Nanos) -> Option<Nanos> {
    let of_rank = |index: usize| {
        let spans = trace.lane(index, Stream::Passes).spans();
        let until = spans.partition_point(|span| span.start < before);
        let times = spans[..until].iter().rev().take(2);
        times
            .flat_map(|span| [span.start, span.end])
            .filter(|&time| time < before)
            .max()
    };
    let last = (0..trace.ranks.len()).filter_map(of_rank).max();
    last.or_else(|| (before > Nanos::ZERO).then_some(Nanos::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{LabelId, Phase, RankInfo, Span};
    use crate::units::Rank;

    #[test]
    fn events_are_found_across_ranks_in_both_directions() {
        let info = |rank| RankInfo {
            rank: Rank(rank),
            dp: 0,
            tp: 0,
            pp: rank,
            count: 1,
            pipeline_end: Nanos(40),
            peak_in_flight: 1,
        };
        let mut trace = Trace::new(vec![info(0), info(1)], Vec::new());
        for (index, start, end) in [(0, 0, 10), (1, 12, 20), (0, 22, 40)] {
            trace.lane_mut(index, Stream::Passes).push(Span {
                start: Nanos(start),
                end: Nanos(end),
                label: LabelId(0),
                phase: Phase::Busy,
            });
        }
        trace.makespan = Nanos(45);
        let mut at = Nanos::ZERO;
        let mut there = Vec::new();
        while let Some(next) = next_event(&trace, at) {
            there.push(next.0);
            at = next;
        }
        assert_eq!(there, [10, 12, 20, 22, 40, 45]);
        let mut back = Vec::new();
        while let Some(last) = event_before(&trace, at) {
            back.push(last.0);
            at = last;
        }
        assert_eq!(back, [40, 22, 20, 12, 10, 0]);
    }
}

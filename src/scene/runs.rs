//! Walks the visible spans of a lane at the cost of what can be seen: spans too narrow to see apart come as one
//! run, and are skipped over, not looked at one by one.

use crate::trace::{Lane, Span};
use crate::units::Nanos;

use super::scale::Scale;

/// A span narrower than this is not drawn by itself.
const NARROW: f32 = 1.0;
/// A run is at most this many points wide.
const RUN_POINTS: u32 = 3;
/// Up to so many spans are looked at one by one.
const LOOK_AT: usize = 32;
/// So many spans of a run stand for all of it.
const SAMPLES: usize = 16;

/// What is drawn as one piece.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<'a> {
    /// A span wide enough to see.
    One(&'a Span),
    /// Neighbours too narrow to see apart; at least one.
    Many(&'a [Span]),
}

impl<'a> Run<'a> {
    /// Spans that stand for the run: all, or some evenly spaced.
    pub(super) fn samples(self) -> impl Iterator<Item = &'a Span> {
        let spans = match self {
            Self::One(span) => std::slice::from_ref(span),
            Self::Many(spans) => spans,
        };
        let step = spans.len().div_ceil(SAMPLES).max(1);
        spans.iter().step_by(step)
    }

    /// From when to when.
    pub(super) fn times(self) -> (Nanos, Nanos) {
        match self {
            Self::One(span) => (span.start, span.end),
            Self::Many(spans) => {
                let start = spans.first().map_or(Nanos::ZERO, |span| span.start);
                let tail = spans.len().saturating_sub(LOOK_AT);
                let end = spans[tail..].iter().map(|span| span.end).max();
                (start, end.unwrap_or(start))
            }
        }
    }
}

/// The visible runs of `lane`, up to the time `until`.
pub(super) fn runs<'a>(lane: &'a Lane, scale: &Scale, until: Nanos) -> Vec<Run<'a>> {
    let to = scale.to.min(until);
    let spans = lane.spans();
    let Some(first) = lane.overlapping(scale.from, to).next() else {
        return Vec::new();
    };
    let mut at = spans.partition_point(|span| span.start < first.start);
    let last = spans.partition_point(|span| span.start < to);
    let mut found = Vec::new();
    while at < last {
        if spans[at].end <= scale.from {
            at += 1;
        } else if is_wide(&spans[at], scale) {
            found.push(Run::One(&spans[at]));
            at += 1;
        } else {
            let end = run_end(&spans[..last], at, scale);
            found.push(Run::Many(&spans[at..end]));
            at = end;
        }
    }
    found
}

fn is_wide(span: &Span, scale: &Scale) -> bool {
    scale.width_of(span.duration()) >= NARROW
}

/// Where the run of narrow spans that starts at `at` ends: before a wide one, or when it is wide enough itself.
fn run_end(spans: &[Span], at: usize, scale: &Scale) -> usize {
    let mut end = at + 1;
    let step = scale.duration_of(NARROW);
    for points in 1..=u64::from(RUN_POINTS) {
        let limit = Nanos(spans[at].start.0.saturating_add(step.0 * points));
        let next = end + spans[end..].partition_point(|span| span.start < limit);
        // A lane's spans follow each other, so that of all that start within a point only the last can be
        // wide. Where they overlap, as in files of others, a look at each of a few is affordable.
        let looked_at = next.saturating_sub(LOOK_AT).max(end);
        if let Some(wide) = (looked_at..next).find(|&index| is_wide(&spans[index], scale)) {
            return wide;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{LabelId, LaneId, Phase, Stream};
    use crate::units::Rank;

    fn lane(spans: impl IntoIterator<Item = (u64, u64)>) -> Lane {
        let mut lane = Lane::new(LaneId {
            rank: Rank(0),
            stream: Stream::Compute,
        });
        for (start, end) in spans {
            lane.push(Span {
                start: Nanos(start),
                end: Nanos(end),
                label: LabelId(0),
                phase: Phase::Busy,
            });
        }
        lane
    }

    #[test]
    fn a_million_spans_cost_what_the_screen_costs_and_none_vanishes() {
        let lane = lane((0..1_000_000).map(|index| (index * 10, index * 10 + 5)));
        let scale = Scale::new(Nanos(0), Nanos(10_000_000), 0.0, 1000.0);
        let found = runs(&lane, &scale, Nanos(u64::MAX));
        assert!(found.len() <= 1001, "{}", found.len());
        let covered: usize = found
            .iter()
            .map(|run| match run {
                Run::One(_) => 1,
                Run::Many(spans) => spans.len(),
            })
            .sum();
        assert_eq!(covered, 1_000_000);
    }

    #[test]
    fn wide_spans_stay_apart_and_narrow_ones_merge() {
        let lane = lane([(0, 100), (100, 101), (101, 102), (102, 300), (900, 901)]);
        let scale = Scale::new(Nanos(0), Nanos(1000), 0.0, 100.0);
        let found = runs(&lane, &scale, Nanos(u64::MAX));
        let sizes: Vec<usize> = found
            .iter()
            .map(|run| match run {
                Run::One(_) => 0,
                Run::Many(spans) => spans.len(),
            })
            .collect();
        assert_eq!(sizes, [0, 2, 0, 1]);
    }
}

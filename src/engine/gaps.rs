//! What a rank does while it computes nothing: transfer, waiting or idleness, each instant once, in that
//! order.

use crate::trace::{LabelId, Lane, Phase, Span};
use crate::units::Nanos;

/// Something that the next computation waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocker {
    /// The rank is in a collective from here on.
    joined: Nanos,
    /// It is in flight from here on.
    flies: Nanos,
    /// It is there from here on.
    there: Nanos,
}

impl Blocker {
    /// A message, in flight from when it was made.
    pub(super) fn sent(made: Nanos, there: Nanos) -> Self {
        Self {
            joined: made,
            flies: made,
            there,
        }
    }

    /// A collective that the rank joined, that then started, and ended.
    pub(super) fn collective(joined: Nanos, started: Nanos, ended: Nanos) -> Self {
        Self {
            joined,
            flies: started,
            there: ended,
        }
    }

    fn phase_at(&self, time: Nanos) -> Option<Phase> {
        if (self.flies..self.there).contains(&time) {
            Some(Phase::Transfer)
        } else if (self.joined..self.flies).contains(&time) {
            Some(Phase::Waiting)
        } else {
            None
        }
    }
}

/// Tiles the time from `gap.0` to `gap.1`: idle until `bubble`; then by what the blockers do, with transfer
/// before waiting; and as `what.1` where they do nothing. Spans carry the label `what.0`.
pub(super) fn fill(
    lane: &mut Lane,
    gap: (Nanos, Nanos),
    bubble: Nanos,
    blockers: &[Blocker],
    what: (LabelId, Phase),
) {
    let (from, until) = gap;
    let mut edges: Vec<Nanos> = blockers
        .iter()
        .flat_map(|blocker| [blocker.joined, blocker.flies, blocker.there])
        .chain([bubble, until])
        .filter(|&edge| edge > from && edge <= until)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let mut piece: Option<Span> = None;
    let mut start = from;
    for end in edges {
        let of_blockers = || {
            blockers
                .iter()
                .filter_map(|blocker| blocker.phase_at(start))
                .min()
        };
        let phase = if start < bubble {
            Phase::Idle
        } else {
            of_blockers().unwrap_or(what.1)
        };
        match &mut piece {
            Some(span) if span.phase == phase => span.end = end,
            _ => {
                piece
                    .replace(Span {
                        start,
                        end,
                        label: what.0,
                        phase,
                    })
                    .into_iter()
                    .for_each(|span| lane.push(span));
            }
        }
        start = end;
    }
    if let Some(span) = piece {
        lane.push(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{LaneId, Stream};
    use crate::units::Rank;

    #[test]
    fn transfer_comes_before_waiting_before_idle() {
        let mut lane = Lane::new(LaneId {
            rank: Rank(0),
            stream: Stream::Compute,
        });
        let blockers = [
            Blocker::sent(Nanos(20), Nanos(40)),
            Blocker::collective(Nanos(10), Nanos(50), Nanos(60)),
        ];
        fill(
            &mut lane,
            (Nanos(0), Nanos(60)),
            Nanos::ZERO,
            &blockers,
            (LabelId(0), Phase::Idle),
        );
        let pieces: Vec<_> = lane
            .spans()
            .iter()
            .map(|span| (span.phase, span.start.0, span.end.0))
            .collect();
        let expected = [
            (Phase::Idle, 0, 10),
            (Phase::Waiting, 10, 20),
            (Phase::Transfer, 20, 40),
            (Phase::Waiting, 40, 50),
            (Phase::Transfer, 50, 60),
        ];
        assert_eq!(pieces, expected);
    }
}

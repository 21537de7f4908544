//! What ranks send to each other over a stretch of time: messages as they are, collectives as a ring of their members.

use std::collections::{BTreeMap, HashMap};

use super::group::Groups;
use super::{Kind, Phase, Span, Stream, Trace};
use crate::units::{Axis, Nanos};

/// What one rank sends to another in groups of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// The sender, by its place in [`Trace::ranks`].
    pub from: usize,
    /// The receiver; the sender itself where that is a rank that it stands for.
    pub to: usize,
    /// In which groups.
    pub axis: Axis,
    /// Bytes; of what is in flight at the edge, its share.
    pub bytes: f64,
    /// How long something was in flight.
    pub busy: Nanos,
}

/// Who receives what a rank sends in a ring of a group along an axis: the next member by number; itself if the others are ranks
/// that it stands for.
fn next(groups: &mut Groups<'_>, trace: &Trace, rank: usize, axis: Axis) -> usize {
    let members = groups.members(rank, axis);
    let own = trace.ranks[rank].rank;
    let number = |&&index: &&usize| trace.ranks[index].rank;
    let after = members.iter().filter(|index| number(index) > own);
    let next = after
        .min_by_key(number)
        .or(members.iter().min_by_key(number));
    next.copied().unwrap_or(rank)
}

/// A part of a transfer: who, to whom, along which axis, the bytes on the wire, and the span.
type Piece<'a> = (usize, usize, Axis, f64, &'a Span);

/// Calls `each` with every transfer of which some part lies between two times.
fn transfers(
    trace: &Trace,
    (from, to): (Nanos, Nanos),
    of: impl Fn(usize) -> bool,
    mut each: impl FnMut(Piece<'_>),
) {
    let mut groups = Groups::new(trace);
    let mut rings: HashMap<(usize, Axis), usize> = HashMap::new();
    for rank in (0..trace.ranks.len()).filter(|&rank| of(rank)) {
        for stream in [Stream::Tp, Stream::Dp] {
            for span in trace.lane(rank, stream).overlapping(from, to) {
                let label = trace.label(span.label);
                let known = label.axis().zip(label.bus_share());
                if let Some((axis, share)) = known.filter(|_| span.phase == Phase::Transfer) {
                    let next = *rings
                        .entry((rank, axis))
                        .or_insert_with(|| next(&mut groups, trace, rank, axis));
                    each((rank, next, axis, label.bytes as f64 * share, span));
                }
            }
        }
    }
    let places: HashMap<_, _> = (0..)
        .zip(&trace.ranks)
        .map(|(at, info)| (info.rank, at))
        .collect();
    for arrow in &trace.arrows {
        let label = trace.label(arrow.label);
        let (Some(&sender), Some(&receiver)) = (places.get(&arrow.from), places.get(&arrow.to))
        else {
            continue;
        };
        let seen = arrow.left < to && arrow.arrived > from
            || arrow.left == arrow.arrived && (from..to).contains(&arrow.left);
        if label.kind == Kind::Send && seen && of(sender) {
            let span = Span {
                start: arrow.left,
                end: arrow.arrived,
                label: arrow.label,
                phase: Phase::Transfer,
            };
            each((sender, receiver, Axis::Pp, label.bytes as f64, &span));
        }
    }
}

/// What ranks send to each other between two times, by sender, receiver and axis.
pub fn sent(trace: &Trace, from: Nanos, to: Nanos) -> Vec<Sent> {
    let mut sums: BTreeMap<(usize, usize, Axis), (f64, Times)> = BTreeMap::new();
    transfers(
        trace,
        (from, to),
        |_| true,
        |(sender, receiver, axis, bytes, span)| {
            let (start, end) = (span.start.max(from), span.end.min(to));
            let sum = sums.entry((sender, receiver, axis)).or_default();
            let share = end.since(start).0 as f64 / span.duration().0.max(1) as f64;
            // What takes no time is there as a whole.
            let share = if span.end == span.start { 1.0 } else { share };
            sum.0 += bytes * share;
            sum.1.push((start, end));
        },
    );
    let all = sums.into_iter();
    all.map(|((from, to, axis), (bytes, times))| Sent {
        from,
        to,
        axis,
        bytes,
        busy: union(times),
    })
    .collect()
}

/// From when to when, each.
type Times = Vec<(Nanos, Nanos)>;

/// How long any of some times lasts.
fn union(mut times: Times) -> Nanos {
    times.sort_unstable();
    let mut reached = Nanos::ZERO;
    let mut all = Nanos::ZERO;
    for (start, end) in times {
        all += end.since(start.max(reached));
        reached = reached.max(end);
    }
    all
}

/// A link out of a rank, over a stretch of time cut into even parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Who receives.
    pub to: usize,
    /// In which groups.
    pub axis: Axis,
    /// The mean rate in each part, in bytes a second.
    pub rates: Vec<f64>,
}

/// The links out of `rank` between two times, in `parts` even parts.
pub fn counters(
    trace: &Trace,
    rank: usize,
    (from, to): (Nanos, Nanos),
    parts: usize,
) -> Vec<Counter> {
    let parts = parts.max(1);
    let length = to.since(from).0.max(1) as f64 / parts as f64;
    let mut all: BTreeMap<(usize, Axis), Vec<f64>> = BTreeMap::new();
    transfers(
        trace,
        (from, to),
        |sender| sender == rank,
        |(_, receiver, axis, bytes, span)| {
            let rates = all
                .entry((receiver, axis))
                .or_insert_with(|| vec![0.0; parts]);
            let rate = bytes / span.duration().0.max(1) as f64;
            let place = |time: Nanos| time.clamp(from, to).since(from).0 as f64 / length;
            let (first, last) = (place(span.start), place(span.end));
            for (index, sum) in rates.iter_mut().enumerate().skip(first as usize) {
                let (left, right) = (index as f64, index as f64 + 1.0);
                if left >= last {
                    break;
                }
                // Of a part, the share in which it is in flight; from bytes a nanosecond.
                *sum += rate * (last.min(right) - first.max(left)).max(0.0) * 1e9;
            }
        },
    );
    let all = all.into_iter();
    all.map(|((to, axis), rates)| Counter { to, axis, rates })
        .collect()
}

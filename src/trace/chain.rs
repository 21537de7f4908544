//! Why something did not happen earlier: the chain of operations behind it, back to the start of the step.

use std::collections::HashMap;

use super::arrivals::Arrivals;
use super::group::Groups;
use super::{Arrow, Lane, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Rank};

/// An operation of a chain: from when to when it ran, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The rank, by its place in [`Trace::ranks`].
    pub rank_index: usize,
    /// The lane on which it is to be seen.
    pub stream: Stream,
    /// The operation, as much of it as the chain goes through.
    pub span: Span,
}

/// A chain told pass by pass: what a pass computes and the collectives within it as one.
pub fn by_pass(trace: &Trace, links: &[Link]) -> Vec<Link> {
    let pass = |link: &Link| {
        let label = trace.label(link.span.label);
        let within = matches!(link.stream, Stream::Passes | Stream::Tp);
        let of = (
            label.pass?,
            label.micro_batch?,
            label.stage,
            link.rank_index,
        );
        within.then_some(of)
    };
    let mut told: Vec<Link> = Vec::new();
    for link in links {
        let own = pass(link);
        match told.last_mut() {
            Some(last) if own.is_some() && pass(last) == own => {
                last.span.start = link.span.start;
                if link.stream == Stream::Passes {
                    (last.stream, last.span.label) = (link.stream, link.span.label);
                }
            }
            _ => told.push(*link),
        }
    }
    told
}

/// Chains longer than this are cut.
const LONGEST: usize = 100_000;

/// The chain of operations that end where the next one starts, behind what starts at a time on a rank; the latest first.
///
/// A computation starts when the one before it on its rank has ended, a message or a collective that it needs has arrived. A
/// message leaves when what it carries is made, or the one before it has left. A collective starts when its last member has
/// come to it.
pub fn chain_behind(trace: &Trace, rank_index: usize, time: Nanos) -> Vec<Link> {
    let mut walk = Walk::new(trace);
    walk.back_from(rank_index, time);
    walk.links
}

/// The chain of operations that makes a step as long as it is, the latest first.
pub fn critical_path(trace: &Trace) -> Vec<Link> {
    let end_of = |lane: &Lane| {
        let working = lane.spans().iter().rev().find(|span| {
            matches!(span.phase, Phase::Busy | Phase::Transfer) && span.end > span.start
        });
        working.map_or(Nanos::ZERO, |span| span.end)
    };
    let streams = [Stream::Compute, Stream::Dp, Stream::Tp];
    let ends = (0..trace.ranks.len()).flat_map(|rank| {
        let ends = streams.map(|stream| (end_of(trace.lane(rank, stream)), rank, stream));
        // The first rank of those that end last, and its computation before its communication.
        ends.into_iter()
    });
    let last = ends.min_by_key(|&(end, rank, stream)| (std::cmp::Reverse(end), rank, stream));
    let Some((end, rank, stream)) = last.filter(|(end, ..)| *end > Nanos::ZERO) else {
        return Vec::new();
    };
    let mut walk = Walk::new(trace);
    if stream == Stream::Compute {
        walk.back_from(rank, end);
    } else if let Some((rank, at)) = walk.collective(rank, stream, end) {
        walk.back_from(rank, at);
    }
    walk.links
}

struct Walk<'a> {
    trace: &'a Trace,
    /// Found when the first is looked for.
    arrivals: Option<Arrivals>,
    groups: Groups<'a>,
    places: Option<HashMap<Rank, usize>>,
    links: Vec<Link>,
}

impl<'a> Walk<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            arrivals: None,
            groups: Groups::new(trace),
            places: None,
            links: Vec::new(),
        }
    }

    fn back_from(&mut self, mut rank: usize, mut time: Nanos) {
        // What takes no time hands on to another rank; nothing leads round in a circle.
        let mut hops = 0;
        while time > Nanos::ZERO && self.links.len() < LONGEST && hops <= self.trace.ranks.len() {
            let Some((next, at)) = self.step(rank, time) else {
                return;
            };
            hops = if at < time { 0 } else { hops + 1 };
            (rank, time) = (next, at);
        }
    }

    /// What ends at `time` so that something can start on `rank`: where to go on from.
    fn step(&mut self, rank: usize, time: Nanos) -> Option<(usize, Nanos)> {
        let lane = self.trace.lane(rank, Stream::Compute);
        let before = lane.at(Nanos(time.0 - 1)).copied();
        if let Some(span) = before.filter(|span| span.phase == Phase::Busy && span.end <= time) {
            self.computed(rank, span);
            return Some((rank, span.start));
        }
        if let Some(arrow) = self.arrived(rank, time) {
            return self.message(arrow);
        }
        for stream in [Stream::Tp, Stream::Dp] {
            if let Some(on) = self.collective(rank, stream, time) {
                return Some(on);
            }
        }
        // Waited for nothing that is known: what ran before it on its rank.
        let last = lane.spans()[..lane.spans().partition_point(|span| span.end <= time)]
            .iter()
            .rev()
            .find(|span| span.phase == Phase::Busy)
            .copied()?;
        self.computed(rank, last);
        Some((rank, last.start))
    }

    /// A computation, told as the pass that it is a piece of.
    fn computed(&mut self, rank: usize, span: Span) {
        let pass = self.trace.lane(rank, Stream::Passes).at(span.start);
        let label = pass.map_or(span.label, |pass| pass.label);
        if let Some(last) = self.links.last_mut() {
            let same = last.rank_index == rank
                && last.stream == Stream::Passes
                && last.span.label == label
                && last.span.start == span.end;
            if same {
                last.span.start = span.start;
                return;
            }
        }
        self.links.push(Link {
            rank_index: rank,
            stream: Stream::Passes,
            span: Span { label, ..span },
        });
    }

    fn arrived(&mut self, rank: usize, time: Nanos) -> Option<Arrow> {
        let trace = self.trace;
        let all = self.arrivals.get_or_insert_with(|| Arrivals::new(trace));
        let mut here = all.at(trace, trace.ranks[rank].rank, time);
        here.next().copied()
    }

    /// A message: on from when it left.
    fn message(&mut self, arrow: Arrow) -> Option<(usize, Nanos)> {
        let trace = self.trace;
        // In a file, one may arrive before it leaves.
        if arrow.left > arrow.arrived {
            return None;
        }
        let places = self.places.get_or_insert_with(|| {
            let all = trace.ranks.iter().enumerate();
            all.map(|(index, info)| (info.rank, index)).collect()
        });
        let from = *places.get(&arrow.from)?;
        let label = arrow.label;
        let of = |stream: Stream| {
            let span = *trace.lane(from, stream).at(arrow.left)?;
            (span.label == label && span.start == arrow.left).then_some((stream, span))
        };
        let sent = [Stream::SendNext, Stream::SendPrev]
            .into_iter()
            .find_map(of);
        if let Some((stream, span)) = sent {
            self.links.push(Link {
                rank_index: from,
                stream,
                span,
            });
        }
        Some((from, arrow.left))
    }

    /// A collective on a lane of `rank` that ends at `time`: on from when its last member came to it, on that one; or, where that
    /// one came late because the collective before had not ended, on from there, and so on.
    fn collective(
        &mut self,
        mut rank: usize,
        stream: Stream,
        mut time: Nanos,
    ) -> Option<(usize, Nanos)> {
        let mut on = None;
        while self.links.len() < LONGEST {
            let Some((last, start)) = self.joined(rank, stream, time) else {
                break;
            };
            on = Some((last, start));
            if start >= time || !self.queued(last, stream, start) {
                break;
            }
            (rank, time) = (last, start);
        }
        on
    }

    /// Of a collective that ends at `time`: who came last, and when.
    fn joined(&mut self, rank: usize, stream: Stream, time: Nanos) -> Option<(usize, Nanos)> {
        let lane = self.trace.lane(rank, stream);
        let ended = *lane.at(Nanos(time.0.checked_sub(1)?))?;
        if ended.end != time {
            return None;
        }
        let (start, transfer) = match ended.phase {
            Phase::Transfer => (ended.start, Some(ended)),
            // One that takes no time has its waiting alone.
            Phase::Waiting => (ended.end, None),
            Phase::Busy | Phase::Idle => return None,
        };
        let axis = self.trace.label(ended.label).axis()?;
        if let Some(span) = transfer {
            self.links.push(Link {
                rank_index: rank,
                stream,
                span,
            });
        }
        // Of several that came last at once, the rank itself.
        let members = self.groups.members(rank, axis).to_vec();
        let mut candidates = std::iter::once(rank).chain(members);
        let last = candidates.find(|&member| self.came_last(member, stream, (start, ended)));
        Some((last.unwrap_or(rank), start))
    }

    /// Whether a member is in the collective but waited for nobody.
    fn came_last(&self, member: usize, stream: Stream, (start, ended): (Nanos, Span)) -> bool {
        let lane = self.trace.lane(member, stream);
        let takes_time = ended.phase == Phase::Transfer;
        let inside = lane.at(start).filter(|_| takes_time);
        let shares =
            !takes_time || inside.is_some_and(|span| (span.start, span.end) == (start, ended.end));
        let waited = start
            .0
            .checked_sub(1)
            .and_then(|before| lane.at(Nanos(before)));
        let waited = waited.is_some_and(|span| span.phase == Phase::Waiting && span.end == start);
        shares && !waited
    }

    /// Whether a rank came to a collective only when the one before it on its stream had ended, and had computed what it takes
    /// before.
    fn queued(&self, rank: usize, stream: Stream, start: Nanos) -> bool {
        let Some(just_before) = start.0.checked_sub(1).map(Nanos) else {
            return false;
        };
        let compute = self.trace.lane(rank, Stream::Compute).at(just_before);
        let made = compute.is_some_and(|span| span.phase == Phase::Busy && span.end == start);
        let before = self.trace.lane(rank, stream).at(just_before);
        !made && before.is_some_and(|span| span.phase == Phase::Transfer && span.end == start)
    }
}

//! The virtual clock: when each operation of a plan starts and ends, given what it costs.
//!
//! An operation starts at the later of the end of the one before it on its stream and its waits. A receive
//! is an event; a send occupies its stream and arrives when it is through. A collective starts when its
//! last member arrives and ends for all at once. Since a plan's nodes come in an order in which each
//! follows all that it waits for, one pass over them is enough.

use super::gaps::{self, Blocker};
use crate::hardware::Price;
use crate::plan::{Node, Op, OpId, Plan, Program, What};
use crate::trace::{Arrow, Kind, Label, Memory, Phase, RankInfo, Span, Stream, Trace};
use crate::units::{Bytes, Nanos, Rank};

/// When an operation was ready, ran and was through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// All that it needs is there and its stream is free: for a collective, the member's arrival.
    pub ready: Nanos,
    /// It runs: for a collective, its last member has arrived.
    pub start: Nanos,
    /// It is through: what it made can be used.
    pub end: Nanos,
}

/// What is known of a rank so far.
#[derive(Clone, Copy, Debug, Default)]
struct RankState {
    /// When each stream is free.
    free: [Nanos; Stream::ALL.len()],
    /// Start of the pass being run.
    pass_start: Nanos,
    /// Activations held.
    held: i64,
    /// End of its last pass.
    passes_end: Nanos,
}

struct Run<'a> {
    program: &'a Program,
    plan: &'a Plan,
    owners: Vec<u32>,
    times: Vec<Times>,
    ranks: Vec<RankState>,
    /// The replica of each rank.
    replica_of: Vec<usize>,
    /// End of the last pass of each replica.
    replicas: Vec<Nanos>,
    trace: Trace,
    blockers: Vec<Blocker>,
}

/// Runs one step; `price` says what an operation costs.
pub(super) fn run(plan: &Plan, price: impl Fn(OpId, &Op) -> Price) -> Trace {
    let program = plan.program();
    let mut run = Run::new(plan);
    for node in plan.nodes() {
        match node {
            Node::Op(id) => {
                let op = program.op(id);
                run.op(id, op, price(id, op));
            }
            Node::Collective(members) => {
                let price = price(members[0], program.op(members[0]));
                run.collective(members, price);
            }
        }
    }
    run.finish()
}

/// The trace of one step whose operations ran at `times`, one for each of the plan's, on whatever clock.
pub fn recorded(plan: &Plan, times: &[Times]) -> Trace {
    let mut run = Run::new(plan);
    for node in plan.nodes() {
        match node {
            Node::Op(id) => run.replay(id, times[id.index()]),
            Node::Collective(members) => {
                for &id in members {
                    run.replay(id, times[id.index()]);
                }
            }
        }
    }
    run.finish()
}

/// Room for what each lane will hold, but for gaps: a million spans that are moved time and again cost more than they
/// take to compute.
fn make_room(trace: &mut Trace, program: &Program) {
    let mut sends = 0;
    for rank in 0..program.mesh.ranks() {
        let mut spans = [0_usize; Stream::ALL.len()];
        for id in program.ops_of(Rank(rank as u32)) {
            let op = program.op(id);
            let stream = op.stream as usize;
            match op.what {
                What::Receive { .. } => {}
                What::Collective { .. } => spans[stream] += 2,
                What::Send { .. } => {
                    spans[stream] += 1;
                    sends += 1;
                }
                What::Optimizer => spans[stream] += 1,
                What::Compute { place, .. } => {
                    spans[stream] += 1;
                    spans[Stream::Passes as usize] += usize::from(place.last);
                }
            }
        }
        for stream in Stream::ALL {
            trace.lane_mut(rank, stream).reserve(spans[stream as usize]);
        }
    }
    trace.arrows.reserve_exact(sends);
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan) -> Self {
        let program = plan.program();
        let ranks = program.mesh.ranks();
        let fold = &program.fold;
        let info = |(index, cell): (usize, crate::mesh::Coord)| {
            let at = fold.coord(cell);
            RankInfo {
                rank: fold.mesh.rank(at),
                dp: at.dp as u32,
                tp: at.tp as u32,
                pp: at.pp as u32,
                count: fold.ranks(cell) as u32,
                pipeline_end: Nanos::ZERO,
                peak_in_flight: program.peak_in_flight[index],
            }
        };
        let infos = program.mesh.coords().enumerate().map(info).collect();
        let mut trace = Trace::new(infos, program.labels.clone());
        trace.memory = program
            .memory
            .iter()
            .map(|&fixed| Memory {
                fixed,
                activations: Vec::new(),
            })
            .collect();
        make_room(&mut trace, program);
        Self {
            program,
            plan,
            owners: program.owners(),
            times: vec![Times::default(); program.ops().len()],
            ranks: vec![RankState::default(); ranks],
            replica_of: program.mesh.coords().map(|at| at.dp).collect(),
            replicas: vec![Nanos::ZERO; program.mesh.dp()],
            trace,
            blockers: Vec::new(),
        }
    }

    fn op(&mut self, id: OpId, op: &Op, price: Price) {
        let rank = self.owners[id.index()] as usize;
        if let What::Receive { .. } = op.what {
            let sent = self.times[self.plan.partner(id).index()];
            self.times[id.index()] = Times {
                ready: sent.ready,
                start: sent.ready,
                end: sent.end,
            };
            return;
        }
        let made = self
            .program
            .waits(op)
            .iter()
            .map(|wait| self.times[wait.index()].end)
            .max();
        let made = made.unwrap_or_default();
        let start = made.max(self.ranks[rank].free[op.stream as usize]);
        let through = start + price.occupies;
        let times = match op.what {
            // A send is in flight from when what it sends was made, even while it queues.
            What::Send { .. } => Times {
                ready: made,
                start,
                end: through + price.delay,
            },
            What::Compute { .. }
            | What::Optimizer
            | What::Receive { .. }
            | What::Collective { .. } => Times {
                ready: start,
                start,
                end: through,
            },
        };
        self.ran(rank, id, times);
        self.ranks[rank].free[op.stream as usize] = through;
    }

    /// An operation that is not a collective's, and when it ran.
    fn ran(&mut self, rank: usize, id: OpId, times: Times) {
        let op = self.program.op(id);
        if op.stream == Stream::Compute {
            self.gap(rank, op, times.start);
            self.computed(rank, op, times);
        } else {
            self.sent(rank, op, times);
        }
        self.times[id.index()] = times;
    }

    /// An operation that ran at these times.
    fn replay(&mut self, id: OpId, times: Times) {
        let op = self.program.op(id);
        let rank = self.owners[id.index()] as usize;
        if let What::Receive { .. } = op.what {
            self.times[id.index()] = times;
            return;
        }
        // Clocks are read one after the other: spans of a stream must not overlap by what lies between.
        let free = self.ranks[rank].free[op.stream as usize];
        let start = times.start.max(free);
        let times = Times {
            ready: times.ready.max(free).min(start),
            start,
            end: times.end.max(start),
        };
        match op.what {
            What::Collective { .. } => self.joined(rank, id, times),
            What::Compute { .. } | What::Optimizer | What::Send { .. } | What::Receive { .. } => {
                self.ran(rank, id, times);
            }
        }
        self.ranks[rank].free[op.stream as usize] = times.end;
    }

    /// A member's part in a collective: it waits from its arrival until the last one's.
    fn joined(&mut self, rank: usize, id: OpId, times: Times) {
        let Times { ready, start, end } = times;
        let op = self.program.op(id);
        let lane = self.trace.lane_mut(rank, op.stream);
        for (start, end, phase) in [
            (ready, start, Phase::Waiting),
            (start, end, Phase::Transfer),
        ] {
            lane.push(Span {
                start,
                end,
                label: op.label,
                phase,
            });
        }
        self.times[id.index()] = times;
    }

    /// A computation: its span, its pass, its memory.
    fn computed(&mut self, rank: usize, op: &Op, times: Times) {
        let Times { start, end, .. } = times;
        let span = Span {
            start,
            end,
            label: op.label,
            phase: Phase::Busy,
        };
        self.trace.lane_mut(rank, Stream::Compute).push(span);
        self.remember(rank, op.memory, if op.memory > 0 { start } else { end });
        match op.what {
            What::Compute { place, .. } => {
                let state = &mut self.ranks[rank];
                if place.first {
                    state.pass_start = start;
                }
                if place.last {
                    state.passes_end = end;
                    let span = Span {
                        start: state.pass_start,
                        end,
                        label: place.label,
                        phase: Phase::Busy,
                    };
                    self.trace.lane_mut(rank, Stream::Passes).push(span);
                    let replica = &mut self.replicas[self.replica_of[rank]];
                    *replica = (*replica).max(end);
                }
            }
            What::Optimizer
            | What::Send { .. }
            | What::Receive { .. }
            | What::Collective { .. } => {
                self.trace.lane_mut(rank, Stream::Passes).push(span);
            }
        }
    }

    fn remember(&mut self, rank: usize, change: i64, at: Nanos) {
        if change == 0 {
            return;
        }
        let held = &mut self.ranks[rank].held;
        *held = held.saturating_add(change);
        let now = (at, Bytes((*held).max(0) as u64));
        let points = &mut self.trace.memory[rank].activations;
        match points.last_mut() {
            Some(last) if last.0 == at => last.1 = now.1.max(last.1),
            _ => points.push(now),
        }
    }

    fn sent(&mut self, rank: usize, op: &Op, times: Times) {
        let Times { start, end, .. } = times;
        let span = Span {
            start,
            end,
            label: op.label,
            phase: Phase::Transfer,
        };
        self.trace.lane_mut(rank, op.stream).push(span);
        if let What::Send { to, .. } = op.what {
            self.trace.arrows.push(Arrow {
                from: self.trace.ranks[rank].rank,
                left: start,
                to: self.trace.ranks[to.index()].rank,
                arrived: end,
                label: op.label,
            });
        }
    }

    /// All members of a collective: each waits from its arrival until the last one's.
    fn collective(&mut self, members: &[OpId], price: Price) {
        let mut start = Nanos::ZERO;
        for &id in members {
            let op = self.program.op(id);
            let free = self.ranks[self.owners[id.index()] as usize].free[op.stream as usize];
            let made = self
                .program
                .waits(op)
                .iter()
                .map(|wait| self.times[wait.index()].end)
                .max();
            let ready = free.max(made.unwrap_or_default());
            self.times[id.index()].ready = ready;
            start = start.max(ready);
        }
        let end = start + price.occupies;
        for &id in members {
            let op = self.program.op(id);
            let rank = self.owners[id.index()] as usize;
            let ready = self.times[id.index()].ready;
            self.ranks[rank].free[op.stream as usize] = end;
            self.joined(rank, id, Times { ready, start, end });
        }
    }

    /// What the collectives `waits` are in, and those before them on their stream that they queue behind: each has
    /// been in the way since the first of them could have begun.
    fn block_by_collectives(&mut self, rank: usize, stream: Stream, waits: &[OpId]) {
        let (mut from, mut until) = (Nanos(u64::MAX), Nanos::ZERO);
        for &id in waits {
            let op = self.program.op(id);
            if op.stream != stream || !matches!(op.what, What::Collective { .. }) {
                continue;
            }
            let inputs = self.program.waits(op).iter();
            let made = inputs.map(|input| self.times[input.index()].end).max();
            from = from.min(made.unwrap_or_default());
            until = until.max(self.times[id.index()].end);
        }
        if from >= until {
            return;
        }
        let lane = self.trace.lane(rank, stream);
        // From the end: collectives of a stream follow one another, and what is waited for came last or nearly so.
        let latest = lane.spans().iter().rev();
        let since = latest.take_while(|span| span.end > from);
        for span in since.filter(|span| span.start < until) {
            self.blockers.push(match span.phase {
                Phase::Waiting => Blocker::collective(span.start, span.end, span.end),
                Phase::Transfer | Phase::Busy | Phase::Idle => Blocker::sent(span.start, span.end),
            });
        }
    }

    /// Fills the time before a computation: why was there nothing to compute?
    fn gap(&mut self, rank: usize, op: &Op, until: Nanos) {
        let from = self.ranks[rank].free[Stream::Compute as usize];
        if until <= from {
            return;
        }
        self.blockers.clear();
        let waits = self.program.waits(op);
        for &wait in waits {
            let Times { ready, end, .. } = self.times[wait.index()];
            if let What::Receive { .. } = self.program.op(wait).what {
                self.blockers.push(Blocker::sent(ready, end));
            }
        }
        for stream in [Stream::Tp, Stream::Dp] {
            self.block_by_collectives(rank, stream, waits);
        }
        let is_pass = matches!(op.what, What::Compute { .. });
        // No pass is left: until the pipeline's end that is the bubble, whatever runs underneath.
        let bubble = if is_pass {
            Nanos::ZERO
        } else {
            self.replicas[self.replica_of[rank]]
        };
        let lane = self.trace.lane_mut(rank, Stream::Compute);
        let rest = if is_pass { Phase::Idle } else { Phase::Waiting };
        gaps::fill(
            lane,
            (from, until),
            bubble,
            &self.blockers,
            (op.label, rest),
        );
    }

    /// The step ends for all at once: who is through earlier waits for the others.
    fn finish(mut self) -> Trace {
        let makespan = self
            .times
            .iter()
            .map(|times| times.end)
            .max()
            .unwrap_or_default();
        let label = crate::trace::LabelId(self.trace.labels.len() as u32);
        self.trace
            .labels
            .push(Label::new(Kind::End, "end of the step"));
        for rank in 0..self.ranks.len() {
            let pipeline_end = self.replicas[self.replica_of[rank]];
            self.trace.ranks[rank].pipeline_end = pipeline_end;
            let from = self.ranks[rank].free[Stream::Compute as usize];
            let lane = self.trace.lane_mut(rank, Stream::Compute);
            gaps::fill(
                lane,
                (from, makespan),
                pipeline_end,
                &[],
                (label, Phase::Waiting),
            );
        }
        self.trace.makespan = makespan;
        self.trace
    }
}

//! A collective in the making: who is there, with what.

use super::buffer::Buffer;
use super::fault::{Fault, Wanted};
use super::sync::Arc;
use super::work::Work;
use super::{Algorithm, Call, Done, Kind};
use crate::units::Nanos;

/// A member that is there.
#[derive(Debug)]
struct Seat {
    rank: u32,
    call: Call,
    lengths: Vec<usize>,
    /// Until it is taken back.
    buffer: Option<Buffer>,
}

impl Seat {
    fn elements(&self) -> usize {
        self.lengths.iter().sum()
    }
}

/// A collective in the making.
#[derive(Debug)]
pub(super) struct Meeting {
    /// In the order of the group's members.
    seats: Vec<Option<Seat>>,
    began: Nanos,
    ended: Option<Nanos>,
    #[cfg(loom)]
    work: Option<Arc<Work>>,
}

impl Meeting {
    pub(super) fn new(members: usize) -> Self {
        Self {
            seats: (0..members).map(|_| None).collect(),
            began: Nanos::ZERO,
            ended: None,
            #[cfg(loom)]
            work: None,
        }
    }

    /// The `index`-th member joins; an error if it wants something else than those before it.
    pub(super) fn join(
        &mut self,
        index: usize,
        rank: u32,
        call: Call,
        buffer: Buffer,
    ) -> Result<(), ()> {
        let lengths = buffer.lengths();
        let agrees = self
            .seats
            .iter()
            .flatten()
            .all(|seat| seat.call == call && seat.lengths == lengths);
        self.seats[index] = Some(Seat {
            rank,
            call,
            lengths,
            buffer: Some(buffer),
        });
        if agrees { Ok(()) } else { Err(()) }
    }

    /// What those that are there wanted, if it is not all the same.
    pub(super) fn mismatch(
        &self,
        members: &[u32],
        sequence: u64,
        name: &dyn Fn(u32) -> String,
    ) -> Fault {
        let wanted = |seat: &Seat| Wanted {
            rank: seat.rank,
            kind: seat.call.kind.name(),
            elements: seat.elements(),
            details: self.details(seat),
            what: name(seat.call.what),
        };
        Fault::Mismatch {
            members: members.to_vec(),
            sequence,
            wanted: self.seats.iter().flatten().map(wanted).collect(),
        }
    }

    /// What a member may differ in from others, beside kind, elements and what it is of.
    fn details(&self, seat: &Seat) -> String {
        let root = match seat.call.kind {
            Kind::Broadcast { root } => Some(format!("from member {root}")),
            Kind::AllReduce(_) | Kind::ReduceScatter | Kind::AllGather | Kind::Barrier => None,
        };
        let details: Vec<String> = root.into_iter().chain(self.cut(seat)).collect();
        details.join(", ")
    }

    /// How a member's elements are cut into parts, if that is all that its size differs in from others'.
    fn cut(&self, seat: &Seat) -> Option<String> {
        let others = || self.seats.iter().flatten();
        if others().any(|other| other.elements() != seat.elements()) {
            return None;
        }
        let parts = seat.lengths.len();
        if others().any(|other| other.lengths.len() != parts) {
            let plural = if parts == 1 { "" } else { "s" };
            return Some(format!("in {parts} part{plural}"));
        }
        let mut lengths = seat.lengths.iter().enumerate();
        let (part, len) = lengths
            .find(|&(part, len)| others().any(|other| other.lengths.get(part) != Some(len)))?;
        Some(format!("{len} of them in part {part}"))
    }

    /// Whether the `index`-th member has joined and not taken its memory back.
    pub(super) fn holds(&self, index: usize) -> bool {
        let seat = self.seats.get(index).and_then(Option::as_ref);
        seat.is_some_and(|seat| seat.buffer.is_some())
    }

    /// Whether all are there.
    pub(super) fn is_full(&self) -> bool {
        self.seats.iter().all(Option::is_some)
    }

    /// The indices of those that are not.
    pub(super) fn absent(&self) -> impl Iterator<Item = usize> + '_ {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(index, seat)| seat.is_none().then_some(index))
    }

    /// All are there: what there is to do.
    pub(super) fn begin(
        &mut self,
        key: (u32, u64),
        kind: Kind,
        algorithm: Algorithm,
        now: Nanos,
    ) -> Arc<Work> {
        self.began = now;
        let seats = self.seats.iter().flatten();
        let buffers: Vec<&Buffer> = seats.filter_map(|seat| seat.buffer.as_ref()).collect();
        let work = Arc::new(Work::new(key, kind, algorithm, &buffers));
        #[cfg(loom)]
        {
            self.work = Some(Arc::clone(&work));
        }
        work
    }

    /// It is through.
    pub(super) fn end(&mut self, now: Nanos) {
        self.ended = Some(now);
    }

    /// The `index`-th member's memory, with the result in it.
    pub(super) fn take(&mut self, index: usize) -> Option<Done<Buffer>> {
        let ended = self.ended?;
        let buffer = self.seats.get_mut(index)?.as_mut()?.buffer.take()?;
        #[cfg(loom)]
        if let Some(work) = &self.work {
            work.give_back();
        }
        Some(Done {
            buffer,
            began: self.began,
            ended,
        })
    }

    /// Whether all have taken theirs.
    pub(super) fn is_over(&self) -> bool {
        let mut seats = self.seats.iter().flatten();
        seats.all(|seat| seat.buffer.is_none())
    }
}

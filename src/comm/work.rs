//! A collective whose members are all there: what is left is work, in chunks that any thread may take.

use std::ops::Range;

use super::buffer::Buffer;
use super::reduce::Columns;
use super::sync::{AtomicUsize, Ordering};
use super::{Algorithm, Fold, Kind};

/// Elements of a chunk: large enough that taking it costs nothing beside it, small enough to share out a bucket.
const CHUNK: usize = 32 * 1024;

/// Up to so many elements (of all members together) the last to join does the work at once, rather than wake others.
const SMALL: usize = 64 * 1024;

/// What one thread does at a time.
#[derive(Clone, Debug)]
struct Item {
    part: usize,
    range: Range<usize>,
    /// In a ring: from whom to whom, and whether it is added.
    pass: Option<(usize, usize, bool)>,
}

/// What is left to be done of a collective.
#[derive(Debug)]
pub(super) struct Work {
    /// Of which group, and which of its collectives.
    pub(super) key: (u32, u64),
    kind: Kind,
    columns: Vec<Columns>,
    items: Vec<Item>,
    /// Items of a phase, of which each begins once the one before it is through.
    phase: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    small: bool,
}

/// How far a work is after an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Others are still at it, or more can be taken.
    Under,
    /// The next phase may begin.
    Phase,
    /// All is done.
    Through,
}

impl Work {
    /// Of buffers with parts of the same lengths, the members' in order.
    pub(super) fn new(
        key: (u32, u64),
        kind: Kind,
        algorithm: Algorithm,
        buffers: &[&Buffer],
    ) -> Self {
        let parts = buffers.first().map_or(0, |buffer| buffer.parts().len());
        let column = |part: usize| {
            let of_all: Vec<_> = buffers.iter().map(|buffer| &buffer.parts()[part]).collect();
            Columns::new(&of_all)
        };
        let columns: Vec<Columns> = (0..parts).map(column).collect();
        let all: usize = columns.iter().map(Columns::len).sum();
        let (items, phase) = match (algorithm, kind) {
            (Algorithm::Ring, Kind::AllReduce(_)) if buffers.len() > 1 => {
                ring(&columns, buffers.len())
            }
            _ => direct(&columns),
        };
        Self {
            key,
            kind,
            columns,
            phase: phase.max(1),
            items,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            small: all * buffers.len() <= SMALL,
        }
    }

    /// Whether one thread had better do it all at once.
    pub(super) fn is_small(&self) -> bool {
        self.small
    }

    /// Whether every item has been taken.
    pub(super) fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.items.len()
    }

    /// Takes an item and does it; nothing if there is none to be taken now.
    pub(super) fn help(&self) -> Option<Progress> {
        let index = self.claim()?;
        self.run(&self.items[index]);
        // Whoever sees the count sees what was written before it was raised.
        let done = self.done.fetch_add(1, Ordering::AcqRel) + 1;
        Some(if done == self.items.len() {
            Progress::Through
        } else if done.is_multiple_of(self.phase) {
            Progress::Phase
        } else {
            Progress::Under
        })
    }

    fn claim(&self) -> Option<usize> {
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            if next >= self.items.len() {
                return None;
            }
            let before = next / self.phase * self.phase;
            if self.done.load(Ordering::Acquire) < before {
                return None;
            }
            let taken =
                self.next
                    .compare_exchange(next, next + 1, Ordering::AcqRel, Ordering::Relaxed);
            match taken {
                Ok(_) => return Some(next),
                Err(now) => next = now,
            }
        }
    }

    #[expect(unsafe_code, reason = "chunks of lent memory, side by side")]
    fn run(&self, item: &Item) {
        let (columns, range) = (&self.columns[item.part], item.range.clone());
        match item.pass {
            // SAFETY: the buffers lie in the meeting until the work is through or the world ends, so their memory is
            // the collective's alone; this item was claimed by this thread only, and no other's range meets it.
            None => unsafe { columns.run(self.kind, range) },
            Some((from, to, add)) => {
                let fold = match self.kind {
                    Kind::AllReduce(fold) => fold,
                    Kind::ReduceScatter
                    | Kind::AllGather
                    | Kind::Broadcast { .. }
                    | Kind::Barrier => Fold::Sum,
                };
                // SAFETY: as above; within a phase of a ring, each share of each member is touched by one item.
                unsafe { columns.pass_on(from, to, range, add.then_some(fold)) }
            }
        }
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

fn direct(columns: &[Columns]) -> (Vec<Item>, usize) {
    let mut items = Vec::new();
    for (part, column) in columns.iter().enumerate() {
        let mut start = 0;
        while start < column.len() {
            let range = start..column.len().min(start + CHUNK);
            start = range.end;
            items.push(Item {
                part,
                range,
                pass: None,
            });
        }
    }
    let all = items.len();
    (items, all)
}

/// First the shares go round and are added up, then the sums go round.
fn ring(columns: &[Columns], members: usize) -> (Vec<Item>, usize) {
    let mut items = Vec::new();
    for step in 0..2 * (members - 1) {
        let add = step + 1 < members;
        for (part, column) in columns.iter().enumerate() {
            for from in 0..members {
                // Adding: member `from` passes on the share that it has just added to; then the one it just got.
                let share = if add {
                    (from + members - step) % members
                } else {
                    (from + 1 + 2 * members - 1 - step) % members
                };
                items.push(Item {
                    part,
                    range: column.share(share),
                    pass: Some((from, (from + 1) % members, add)),
                });
            }
        }
    }
    (items, columns.len() * members)
}

//! A collective whose members are all there: what is left is work, in chunks that any thread may take.

use std::ops::Range;

use super::buffer::Buffer;
use super::reduce::Columns;
#[cfg(loom)]
use super::sync::Touched;
use super::sync::{AtomicUsize, Ordering};
use super::{Algorithm, Kind};

/// Elements of a chunk: large enough that taking it costs nothing beside it, small enough to share out a bucket.
const CHUNK: usize = if cfg!(loom) { 1 } else { 32 * 1024 };

/// Up to so many elements (of all members together) the last to join does the work at once, rather than wake others.
const SMALL: usize = if cfg!(loom) { 2 } else { 64 * 1024 };

/// What one thread does at a time: elements of a part.
#[derive(Clone, Debug)]
struct Chunk {
    part: usize,
    range: Range<usize>,
}

/// Chunks side by side that one member begins with, so that it finds in its cache what it left there; whoever is
/// through with its own takes from others'.
#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    next: AtomicUsize,
    end: usize,
}

/// What is left to be done of a collective.
#[derive(Debug)]
pub(super) struct Work {
    /// Of which group, and which of its collectives.
    pub(super) key: (u32, u64),
    kind: Kind,
    algorithm: Algorithm,
    columns: Vec<Columns>,
    chunks: Vec<Chunk>,
    /// One for each member.
    lanes: Vec<Lane>,
    done: AtomicUsize,
    small: bool,
    /// The memory of each chunk.
    #[cfg(loom)]
    touched: Vec<Touched>,
}

/// How far a work is after a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Others are still at it, or more can be taken.
    Under,
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
        let members = buffers.len();
        // One that is alone has the result already.
        let chunks = if kind == Kind::Barrier || members < 2 {
            Vec::new()
        } else {
            cut(&columns)
        };
        let lane = |member| Lane {
            next: AtomicUsize::new(chunks.len() * member / members),
            end: chunks.len() * (member + 1) / members,
        };
        Self {
            key,
            kind,
            algorithm,
            columns,
            lanes: (0..members).map(lane).collect(),
            done: AtomicUsize::new(0),
            small: all * members <= SMALL,
            #[cfg(loom)]
            touched: chunks.iter().map(|_| Touched::default()).collect(),
            chunks,
        }
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether one thread had better do it all at once.
    pub(super) fn is_small(&self) -> bool {
        self.small
    }

    /// Whether every chunk has been taken.
    pub(super) fn is_taken(&self) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.all(|lane| lane.next.load(Ordering::Relaxed) >= lane.end)
    }

    /// Takes a chunk, of lane `own` if it has any, and does it; nothing if all have been taken.
    pub(super) fn help(&self, own: usize) -> Option<Progress> {
        let index = self.claim(own)?;
        #[cfg(loom)]
        self.touched[index].touch();
        self.run(&self.chunks[index]);
        // Whoever sees the count sees what was written before it was raised.
        let done = self.done.fetch_add(1, Ordering::AcqRel) + 1;
        Some(if done == self.chunks.len() {
            Progress::Through
        } else {
            Progress::Under
        })
    }

    /// The memory goes back to its owners.
    #[cfg(loom)]
    pub(super) fn give_back(&self) {
        self.touched.iter().for_each(Touched::touch);
    }

    fn claim(&self, own: usize) -> Option<usize> {
        let count = self.lanes.len();
        let mut lanes = (0..count).map(|step| &self.lanes[(own + step) % count]);
        lanes.find_map(|lane| {
            // Looked at first, so that a lane at its end is not written to again and again.
            if lane.next.load(Ordering::Relaxed) >= lane.end {
                return None;
            }
            let next = lane.next.fetch_add(1, Ordering::Relaxed);
            (next < lane.end).then_some(next)
        })
    }

    #[expect(unsafe_code, reason = "chunks of lent memory, side by side")]
    fn run(&self, chunk: &Chunk) {
        let (columns, range) = (&self.columns[chunk.part], chunk.range.clone());
        // SAFETY: the buffers lie in the meeting until the work is through or the world ends, so their memory is
        // the collective's alone; this chunk was claimed by this thread only, and no other's range meets it.
        unsafe { columns.run(self.kind, self.algorithm, range) }
    }
}

fn cut(columns: &[Columns]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (part, column) in columns.iter().enumerate() {
        let mut start = 0;
        while start < column.len() {
            let range = start..column.len().min(start + CHUNK);
            start = range.end;
            chunks.push(Chunk { part, range });
        }
    }
    chunks
}

//! Memory that a collective works on in place.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

/// One stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) start: NonNull<f32>,
    pub(super) len: usize,
}

/// Stretches of float32 in memory that a rank lends to a collective: the result is written over them, so nothing is
/// copied that need not be.
pub struct Buffer {
    parts: Vec<Part>,
    /// Keeps the memory.
    owner: Box<dyn Any + Send>,
}

impl Buffer {
    /// Memory of others.
    ///
    /// # Safety
    /// For as long as the buffer lives, each part must be valid for reads and writes of so many elements, and be
    /// read and written by nobody else; no two parts may overlap. `owner` is dropped with the buffer and may be what
    /// keeps the memory.
    #[expect(
        unsafe_code,
        reason = "collectives work in place on tensors' memory, whose owner alone knows that nobody else does"
    )]
    pub unsafe fn lent(parts: Vec<(NonNull<f32>, usize)>, owner: Box<dyn Any + Send>) -> Self {
        let parts = parts.into_iter().map(|(start, len)| Part { start, len });
        Self {
            parts: parts.collect(),
            owner,
        }
    }

    /// No memory: for a barrier.
    pub fn empty() -> Self {
        Self {
            parts: Vec::new(),
            owner: Box::new(()),
        }
    }

    /// Elements of each part.
    pub fn lengths(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.len).collect()
    }

    /// Elements of all parts.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// A part's elements.
    #[expect(
        unsafe_code,
        reason = "a buffer at hand is in no collective: its memory is its own"
    )]
    pub fn read(&self, part: usize) -> &[f32] {
        match self.parts.get(part) {
            // SAFETY: `lent` promises that the memory is valid and touched by nobody else while the buffer lives, and
            // a collective that works on it has taken the buffer.
            Some(part) => unsafe { std::slice::from_raw_parts(part.start.as_ptr(), part.len) },
            None => &[],
        }
    }

    /// What it was made of, for a buffer made of a vector; else nothing.
    pub fn into_vec(self) -> Option<Vec<f32>> {
        self.owner.downcast::<Vec<f32>>().ok().map(|owner| *owner)
    }
}

impl From<Vec<f32>> for Buffer {
    fn from(mut owner: Vec<f32>) -> Self {
        let parts = NonNull::new(owner.as_mut_ptr()).map(|start| Part {
            start,
            len: owner.len(),
        });
        Self {
            parts: parts.into_iter().collect(),
            owner: Box::new(owner),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("lengths", &self.lengths())
            .finish_non_exhaustive()
    }
}

#[expect(
    unsafe_code,
    reason = "it holds pointers, which are not Send of themselves"
)]
// SAFETY: the owner is Send, and `lent` promises that nobody else touches the memory while the buffer lives.
unsafe impl Send for Buffer {}

//! What one thread does to one chunk of all members' memory.

use std::ops::Range;
use std::ptr::NonNull;

use super::buffer::Part;
use super::{Algorithm, Fold, Kind};

/// Elements that are summed at a time: they stay in the first cache.
const BLOCK: usize = 1024;

/// One part of every member's buffer; all are of the same length.
#[derive(Debug)]
pub(super) struct Columns {
    starts: Vec<NonNull<f32>>,
    len: usize,
}

impl Columns {
    pub(super) fn new(members: &[&Part]) -> Self {
        Self {
            starts: members.iter().map(|part| part.start).collect(),
            len: members.first().map_or(0, |part| part.len),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Elements that member `index` of `of` has as its share.
    fn share(&self, index: usize) -> Range<usize> {
        let of = self.starts.len();
        self.len * index / of..self.len * (index + 1) / of
    }

    /// Does `kind` to `range` of every member's part.
    ///
    /// # Safety
    /// The members' memory must be theirs alone ([`super::Buffer::lent`]), and `range` of it be touched by no other
    /// thread until this returns.
    #[expect(
        unsafe_code,
        reason = "threads work on chunks of the same memory side by side"
    )]
    pub(super) unsafe fn run(&self, kind: Kind, algorithm: Algorithm, range: Range<usize>) {
        match kind {
            Kind::AllReduce(fold) => match algorithm {
                // SAFETY: as promised to this function.
                Algorithm::Direct => unsafe { self.all_reduce(fold, range) },
                Algorithm::Ring => self.each_share(range, |owner, range| {
                    // SAFETY: as promised to this function; the shares' ranges lie in it.
                    unsafe { self.go_round(fold, owner, range) };
                }),
            },
            Kind::ReduceScatter => self.each_share(range, |owner, range| {
                // SAFETY: as promised to this function; the shares' ranges lie in it.
                unsafe { self.reduce_to(owner, range) };
            }),
            Kind::AllGather => self.each_share(range, |owner, range| {
                // SAFETY: as above.
                unsafe { self.copy_from(owner, range) };
            }),
            // SAFETY: as promised to this function.
            Kind::Broadcast { root } => unsafe { self.copy_from(root as usize, range) },
            Kind::Barrier => {}
        }
    }

    /// The parts of `range` that lie in each member's share.
    fn each_share(&self, range: Range<usize>, mut act: impl FnMut(usize, Range<usize>)) {
        for owner in 0..self.starts.len() {
            let share = self.share(owner);
            let (start, end) = (share.start.max(range.start), share.end.min(range.end));
            if start < end {
                act(owner, start..end);
            }
        }
    }

    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn all_reduce(&self, fold: Fold, range: Range<usize>) {
        if let ([_, _], Fold::Sum) = (self.starts.as_slice(), fold) {
            // SAFETY: as promised to `run`; the two members' memory does not overlap.
            let (a, b) = unsafe { (self.write(0, &range), self.write(1, &range)) };
            sum_both(a, b);
            return;
        }
        blocks(range, |block| {
            let mut sums = [0.0; BLOCK];
            let sums = &mut sums[..block.len()];
            // SAFETY: as promised to `run`; one member's memory at a time.
            unsafe { self.fold_all(fold, &block, sums) };
            for member in 0..self.starts.len() {
                // SAFETY: as above.
                unsafe { self.write(member, &block) }.copy_from_slice(sums);
            }
        });
    }

    /// A chunk of `owner`'s share goes round: each member adds its own to what the one before it has, then the sum
    /// goes round.
    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn go_round(&self, fold: Fold, owner: usize, range: Range<usize>) {
        let members = self.starts.len();
        blocks(range, |block| {
            for step in 0..2 * (members - 1) {
                let (from, to) = ((owner + step) % members, (owner + step + 1) % members);
                // SAFETY: as promised to `run`; two members' memory does not overlap.
                let (from, to) = unsafe { (self.read(from, &block), self.write(to, &block)) };
                if step + 1 < members {
                    fold_into(fold, to, from);
                } else {
                    to.copy_from_slice(from);
                }
            }
        });
    }

    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn reduce_to(&self, owner: usize, range: Range<usize>) {
        blocks(range, |block| {
            let mut sums = [0.0; BLOCK];
            let sums = &mut sums[..block.len()];
            // SAFETY: as promised to `run`; one member's memory at a time.
            unsafe { self.fold_all(Fold::Sum, &block, sums) };
            // SAFETY: as above.
            unsafe { self.write(owner, &block) }.copy_from_slice(sums);
        });
    }

    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn fold_all(&self, fold: Fold, block: &Range<usize>, sums: &mut [f32]) {
        for member in 0..self.starts.len() {
            // SAFETY: as promised to `run`.
            let part = unsafe { self.read(member, block) };
            if member == 0 {
                sums.copy_from_slice(part);
            } else {
                fold_into(fold, sums, part);
            }
        }
    }

    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn copy_from(&self, owner: usize, range: Range<usize>) {
        for member in (0..self.starts.len()).filter(|&member| member != owner) {
            // SAFETY: as promised to `run`; two members' memory does not overlap.
            let (from, to) = unsafe { (self.read(owner, &range), self.write(member, &range)) };
            to.copy_from_slice(from);
        }
    }

    #[expect(unsafe_code, reason = "as `run`")]
    unsafe fn read(&self, member: usize, range: &Range<usize>) -> &[f32] {
        debug_assert!(range.end <= self.len, "a chunk lies in its part");
        // SAFETY: the range lies in the member's memory, which nobody writes meanwhile.
        unsafe {
            std::slice::from_raw_parts(self.starts[member].as_ptr().add(range.start), range.len())
        }
    }

    #[expect(
        unsafe_code,
        clippy::mut_from_ref,
        reason = "as `run`: the memory is lent, not owned"
    )]
    unsafe fn write(&self, member: usize, range: &Range<usize>) -> &mut [f32] {
        debug_assert!(range.end <= self.len, "a chunk lies in its part");
        // SAFETY: the range lies in the member's memory, which nobody else touches meanwhile.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.starts[member].as_ptr().add(range.start),
                range.len(),
            )
        }
    }
}

#[expect(
    unsafe_code,
    reason = "it holds pointers, which are not Send of themselves"
)]
// SAFETY: whoever dereferences them does so through an unsafe function that says what must hold.
unsafe impl Send for Columns {}
#[expect(
    unsafe_code,
    reason = "it holds pointers, which are not Sync of themselves"
)]
// SAFETY: as for Send.
unsafe impl Sync for Columns {}

fn blocks(range: Range<usize>, mut act: impl FnMut(Range<usize>)) {
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + BLOCK);
        act(start..end);
        start = end;
    }
}

fn fold_into(fold: Fold, sums: &mut [f32], part: &[f32]) {
    match fold {
        Fold::Sum => {
            for (sum, more) in sums.iter_mut().zip(part) {
                *sum += more;
            }
        }
        // As the emulated ranks compare, so that a NaN stays or goes alike.
        Fold::Max => {
            for (most, more) in sums.iter_mut().zip(part) {
                *most = if *more > *most { *more } else { *most };
            }
        }
    }
}

fn sum_both(a: &mut [f32], b: &mut [f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        let sum = *a + *b;
        *a = sum;
        *b = sum;
    }
}

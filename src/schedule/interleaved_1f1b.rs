//! Interleaved 1F1B (Narayanan 2021): each rank holds `v` chunks, stage `s` on rank `s mod p`, so that the
//! pipe fills `v` times faster.

use super::kind::Cut;
use super::row::Row;

/// Micro-batches go through all chunks of a rank in groups of about `p`. Rank `i` warms up with
/// `min(2(p-1-i) + (v-1) group, mv)` forwards, then a forward and a backward in turn, then cools down.
pub(super) fn row(cut: Cut, i: usize) -> Row {
    let loops = Loops::new(cut, i);
    let warm_up = loops.warm_up(2);
    let mut row = Row::new(cut.m);
    for step in 0..warm_up {
        row.forward(loops.forward(step));
    }
    for step in warm_up..loops.steps {
        row.forward(loops.forward(step));
        row.backward(loops.backward(step - warm_up));
    }
    for step in loops.steps - warm_up..loops.steps {
        row.backward(loops.backward(step));
    }
    row
}

/// How groups of micro-batches go round the chunks of rank `i`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    cut: Cut,
    i: usize,
    /// Micro-batches that go through a chunk before the next chunk's turn.
    group: usize,
    /// Forwards, or backwards, of all chunks.
    pub(super) steps: usize,
}

impl Loops {
    pub(super) fn new(cut: Cut, i: usize) -> Self {
        Self {
            cut,
            i,
            group: cut.m / rounds(cut.p, cut.m),
            steps: cut.m * cut.v,
        }
    }

    /// Forwards before the first backward: all but the last chunk's first group, and `apart` for each rank
    /// between this one and the last.
    pub(super) fn warm_up(&self, apart: usize) -> usize {
        let Cut { p, v, .. } = self.cut;
        (apart * (p - 1 - self.i) + (v - 1) * self.group).min(self.steps)
    }

    /// The stage of a forward step.
    pub(super) fn forward(&self, step: usize) -> usize {
        let chunk = step / self.group % self.cut.v;
        chunk * self.cut.p + self.i
    }

    /// The stage of a backward step: from the last chunk to the first.
    pub(super) fn backward(&self, step: usize) -> usize {
        let chunk = self.cut.v - 1 - step / self.group % self.cut.v;
        chunk * self.cut.p + self.i
    }
}

/// How many groups the micro-batches make; they must be alike.
pub(super) fn rounds(p: usize, m: usize) -> usize {
    (m / p).max(1)
}

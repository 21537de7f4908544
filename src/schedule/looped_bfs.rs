//! Looped breadth-first (Lamy-Poirier 2022): every micro-batch through a chunk before the next chunk begins.

use super::kind::Cut;
use super::row::Row;
use crate::units::Pass;

/// Chunk by chunk all forwards, ascending; then the chunks in reverse, their micro-batches descending.
pub(super) fn row(Cut { p, m, v }: Cut, i: usize) -> Row {
    let mut row = Row::new(m);
    for chunk in 0..v {
        for _ in 0..m {
            row.forward(chunk * p + i);
        }
    }
    for chunk in (0..v).rev() {
        for micro_batch in (0..m).rev() {
            row.push(Pass::Backward, chunk * p + i, micro_batch);
        }
    }
    row
}

//! 1F1B (Narayanan 2019, PipeDream-Flush): as few micro-batches in flight as keep the pipe full.

use super::kind::Cut;
use super::row::Row;

/// Rank `i` runs stage `i`: `min(p-1-i, m)` forwards to warm up, then a forward and a backward in turn,
/// then the remaining backwards to cool down.
pub(super) fn row(Cut { p, m, .. }: Cut, i: usize) -> Row {
    let warm_up = (p - 1 - i).min(m);
    let mut row = Row::new(m);
    for _ in 0..warm_up {
        row.forward(i);
    }
    for _ in warm_up..m {
        row.forward(i);
        row.backward(i);
    }
    for _ in 0..warm_up {
        row.backward(i);
    }
    row
}

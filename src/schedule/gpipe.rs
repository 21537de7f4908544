//! GPipe (Huang 2019): all forwards, then all backwards.

use super::kind::Cut;
use super::row::Row;

/// Rank `i` runs stage `i`: `F0 F1 … B0 B1 …`.
pub(super) fn row(cut: Cut, i: usize) -> Row {
    let mut row = Row::new(cut.m);
    for _ in 0..cut.m {
        row.forward(i);
    }
    for _ in 0..cut.m {
        row.backward(i);
    }
    row
}

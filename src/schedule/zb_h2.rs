//! ZB-H2 (Qi 2023): about twice 1F1B's micro-batches in flight, and no bubble from a stage's first pass to
//! its last.

use super::kind::Cut;
use super::row::Row;

/// Rank `i` warms up with `min(2(p-1-i) + 1, m)` forwards, then `I` and `F` in turn. It does a
/// weight-gradient once it owes more than `2i`; when it cools down, one after each `I`; the rest at the end.
pub(super) fn row(Cut { p, m, .. }: Cut, i: usize) -> Row {
    let warm_up = (2 * (p - 1 - i) + 1).min(m);
    let mut row = Row::new(m);
    for _ in 0..warm_up {
        row.forward(i);
    }
    for _ in warm_up..m {
        row.input_grad(i);
        if row.owed() > 2 * i {
            row.weight_grad();
        }
        row.forward(i);
    }
    for _ in 0..warm_up {
        row.input_grad(i);
        row.weight_grad();
    }
    row.all_weight_grads();
    row
}

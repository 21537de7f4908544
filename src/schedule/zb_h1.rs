//! ZB-H1 (Qi 2023): 1F1B with the backward in two, in no more memory.

use super::kind::Cut;
use super::row::Row;

/// 1F1B's order with `I` for `B`. Rank `i` does a weight-gradient once it owes more than `i`; when it cools
/// down, one after each `I`; the rest at the end.
pub(super) fn row(Cut { p, m, .. }: Cut, i: usize) -> Row {
    let warm_up = (p - 1 - i).min(m);
    let mut row = Row::new(m);
    for _ in 0..warm_up {
        row.forward(i);
    }
    for _ in warm_up..m {
        row.forward(i);
        row.input_grad(i);
        if row.owed() > i {
            row.weight_grad();
        }
    }
    for _ in 0..warm_up {
        row.input_grad(i);
        row.weight_grad();
    }
    row.all_weight_grads();
    row
}

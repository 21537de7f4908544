//! ZB-V (Qi 2024): two chunks a rank, placed down and back up, so that the last stage's gradient starts
//! where the first stage's forward did; no bubble when `F = I = W`, in 1F1B's memory.

use super::kind::Cut;
use super::row::Row;

/// Made for at least `2p-1` micro-batches; what would be of more than there are is left out. Rank `i` holds
/// stages `i` and `2p-1-i`.
pub(super) fn row(Cut { p, m, .. }: Cut, i: usize) -> Row {
    let (down, up) = (i, 2 * p - 1 - i);
    let made_for = m.max(2 * p - 1);
    let mut row = Row::new(m);
    // Warm-up: down only, then both ways, then with the first gradients.
    let mut downs = 2 * (p - i) - 1;
    for _ in 0..downs {
        row.forward(down);
    }
    for _ in 0..i {
        row.forward(up);
        row.forward(down);
    }
    downs += i;
    let mut ups = i;
    for _ in 0..p - i {
        forward_and_gradients(&mut row, up);
    }
    ups += p - i;
    // Steady: one whole micro-batch on each chunk in turn.
    while ups < made_for || downs < made_for {
        if downs < made_for {
            row.forward(down);
            downs += 1;
        }
        row.input_grad(down);
        row.weight_grad_of(down);
        if ups < made_for {
            forward_and_gradients(&mut row, up);
            ups += 1;
        }
    }
    // Cool-down.
    for _ in 0..i {
        row.input_grad(down);
        row.input_grad(up);
    }
    for _ in 0..p - i {
        row.input_grad(down);
        row.weight_grad_of(down);
    }
    for _ in 0..m {
        row.weight_grad_of(up);
    }
    row.all_weight_grads();
    row
}

fn forward_and_gradients(row: &mut Row, stage: usize) {
    row.forward(stage);
    row.input_grad(stage);
    row.weight_grad_of(stage);
}

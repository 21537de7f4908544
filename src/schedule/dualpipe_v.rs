//! DualPipeV (DeepSeek 2025; PyTorch's `ScheduleDualPipeV`): ZB-V's placement, and a forward of one chunk
//! that overlaps with a backward of the other, so that each hides the other's communication.

use super::kind::Cut;
use super::row::Row;

/// In eight phases, for at least `2p` micro-batches. Rank `i` holds stages `i` and `2p-1-i`.
pub(super) fn row(Cut { p, m, .. }: Cut, i: usize) -> Row {
    let (down, up) = (i, 2 * p - 1 - i);
    let to_last = p - 1 - i;
    let mut row = Row::new(m);
    // 1. Down only.
    for _ in 0..2 * to_last {
        row.forward(down);
    }
    // 2. Both ways.
    for _ in 0..=i {
        row.forward(down);
        row.forward(up);
    }
    // 3. The first gradients, in two.
    for _ in 0..to_last {
        row.input_grad(up);
        row.weight_grad();
        row.forward(up);
    }
    // 4. Steady: each chunk's forward with the other's backward. The last rank's first two depend on each
    // other, so they do not overlap.
    for step in 0..m + i + 1 - 2 * p {
        if step == 0 && i + 1 == p {
            row.forward(down);
            row.backward(up);
        } else {
            row.pair(down, up);
        }
        row.pair(up, down);
    }
    // 5. No forward is left for the way down.
    for _ in 0..to_last {
        row.backward(up);
        row.pair(up, down);
    }
    // 6. Gradients only; from half way on in two, to let the neighbours go on sooner.
    let half = i.div_ceil(2);
    for step in 0..=i {
        let (up_in_two, down_in_two) = if i.is_multiple_of(2) {
            (step > half, step >= half)
        } else {
            (step >= half, step >= half)
        };
        gradient(&mut row, up, up_in_two);
        gradient(&mut row, down, down_in_two);
    }
    // 7. and 8. What weight-gradients fill.
    for _ in 0..to_last {
        row.weight_grad();
        row.input_grad(down);
    }
    row.all_weight_grads();
    row
}

fn gradient(row: &mut Row, stage: usize, in_two: bool) {
    if in_two {
        row.input_grad(stage);
    } else {
        row.backward(stage);
    }
}

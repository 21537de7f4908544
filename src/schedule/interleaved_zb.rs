//! Interleaved zero bubble (PyTorch's `ScheduleInterleavedZeroBubble`): interleaved 1F1B with the backward
//! in two, so that weight-gradients fill the gaps and the warm-up is shorter.

use super::interleaved_1f1b::Loops;
use super::kind::Cut;
use super::row::Row;

/// Interleaved 1F1B's order with `I` for `B` and one forward less a rank to warm up. Rank `i` holds back `i`
/// weight-gradients, then does one after each `I`; what is left comes last.
pub(super) fn row(cut: Cut, i: usize) -> Row {
    let loops = Loops::new(cut, i);
    let warm_up = loops.warm_up(1);
    let mut row = Row::new(cut.m);
    for step in 0..warm_up {
        row.forward(loops.forward(step));
    }
    for back in 0..loops.steps {
        if warm_up + back < loops.steps {
            row.forward(loops.forward(warm_up + back));
        }
        row.input_grad(loops.backward(back));
        if row.owed() > i {
            row.weight_grad();
        }
    }
    row.all_weight_grads();
    row
}

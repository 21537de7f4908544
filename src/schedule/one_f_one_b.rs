//! 1F1B (Narayanan 2019, PipeDream-Flush): as few micro-batches in flight as keep the pipe full.

use super::{Action, Turn};
use crate::units::Pass;

/// Rank `r` runs stage `r`: `min(p-1-r, m)` forwards to warm up, then a forward and a backward in turn,
/// then the remaining backwards to cool down.
pub(super) fn rows(pp: usize, micro_batches: usize) -> Vec<Vec<Turn>> {
    let row = |stage: usize| {
        let act = |pass, micro_batch: usize| {
            Turn::One(Action {
                stage: stage as u32,
                pass,
                micro_batch: micro_batch as u32,
            })
        };
        let warm_up = (pp - 1 - stage).min(micro_batches);
        let mut turns: Vec<Turn> = (0..warm_up).map(|mb| act(Pass::Forward, mb)).collect();
        for mb in warm_up..micro_batches {
            turns.push(act(Pass::Forward, mb));
            turns.push(act(Pass::Backward, mb - warm_up));
        }
        turns.extend((micro_batches - warm_up..micro_batches).map(|mb| act(Pass::Backward, mb)));
        turns
    };
    (0..pp).map(row).collect()
}

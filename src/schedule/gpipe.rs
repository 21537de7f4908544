//! GPipe (Huang 2019): all forwards, then all backwards.

use super::{Action, Turn};
use crate::units::Pass;

/// Rank `r` runs stage `r`: `F0 F1 … B0 B1 …`.
pub(super) fn rows(pp: usize, micro_batches: usize) -> Vec<Vec<Turn>> {
    let row = |stage: u32| {
        let all = move |pass| {
            (0..micro_batches as u32).map(move |micro_batch| {
                Turn::One(Action {
                    stage,
                    pass,
                    micro_batch,
                })
            })
        };
        all(Pass::Forward).chain(all(Pass::Backward)).collect()
    };
    (0..pp as u32).map(row).collect()
}

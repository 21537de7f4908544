//! Which levels were solved, and how well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::board::Board;

/// The best that was reached on a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// The score: less is better.
    pub score: u32,
    /// The stars for it.
    pub stars: u8,
}

/// Which levels were solved, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    best: BTreeMap<String, Best>,
}

impl Progress {
    /// Takes note of a board, if everything is placed; whether that is the best of its level so far.
    pub fn note(&mut self, board: &Board) -> bool {
        let (Some(score), Some(stars)) = (board.score(), board.stars()) else {
            return false;
        };
        let name = board.level().name.clone().into_owned();
        let known = self.best.get(&name).copied();
        let better = known.is_none_or(|best| score < best.score);
        if better {
            self.best.insert(name, Best { score, stars });
        }
        better
    }

    /// The best on the level of that name.
    pub fn best(&self, name: &str) -> Option<Best> {
        self.best.get(name).copied()
    }

    /// How many stars there are, of all levels.
    pub fn stars(&self) -> u32 {
        self.best.values().map(|best| u32::from(best.stars)).sum()
    }
}

//! A schedule built by hand, like a puzzle: passes of micro-batches placed on a grid of pipeline ranks and time units.
//!
//! A [`Board`] takes a pass only where a pipeline could run it, and says in a sentence what else is missing. Units are of the
//! grid: passes last whole units, and what one rank makes is at the next one at once.

mod board;
mod exchange;
mod figures;
mod hints;
mod illegal;
mod ladder;
mod level;
mod progress;
mod recognise;
mod reference;
mod rules;
mod run;

pub use board::{Board, Placed, Ready};
pub use exchange::{ExchangeError, check_order};
pub use figures::Figures;
pub use hints::{Hint, Step};
pub use illegal::Illegal;
pub use ladder::LADDER;
pub use level::{
    Backward, Level, LevelError, MOST_PASSES, MOST_RANKS, Measure, Text, Times, short,
};
pub use progress::{Best, Progress};
pub use recognise::Likeness;
pub use reference::Reference;
pub use run::DRAWN;

/// The level of the ladder of that name, by its place.
pub fn level_named(name: &str) -> Option<usize> {
    LADDER.iter().position(|level| level.name == name)
}

#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod tests;

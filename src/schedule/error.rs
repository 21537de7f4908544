//! What is wrong with a schedule.

use super::kind::Chunks;
use super::{Action, MAX_ACTIONS, MAX_COUNT};

/// Why a schedule cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No such name.
    #[error("no schedule is called {name:?}; there are {known}, or give a .csv file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Zero of something, or too many.
    #[error("{what} is {value}, but must be from 1 to {MAX_COUNT}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        value: usize,
    },
    /// More actions than anyone reads.
    #[error(
        "{stages} stages x {micro_batches} micro-batches are over {MAX_ACTIONS} passes; lower one of them"
    )]
    TooLarge {
        /// Stages, of all ranks.
        stages: usize,
        /// Micro-batches.
        micro_batches: usize,
    },
    /// Another number of chunks than the schedule is for.
    #[error("{name} holds {legal} a rank, not {chunks}; use --chunks {}", .legal.count())]
    Chunks {
        /// The schedule.
        name: &'static str,
        /// How many were asked for.
        chunks: usize,
        /// How many there must be.
        legal: Chunks,
    },
    /// A number of micro-batches that the schedule cannot take.
    #[error(
        "{name} cannot take {micro_batches} micro-batches on {pp} pipeline ranks: {why}; nearest legal: {}",
        .legal.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    MicroBatches {
        /// The schedule.
        name: &'static str,
        /// How many were asked for.
        micro_batches: usize,
        /// Pipeline ranks.
        pp: usize,
        /// What it needs.
        why: &'static str,
        /// The next numbers that it takes.
        legal: Vec<usize>,
    },
    /// A cell that is not an action.
    #[error(
        "row {row}, cell {cell}: {text:?} is not an action such as 2F3 or (0F3;3B1)OVERLAP_F_B"
    )]
    Cell {
        /// Row, from 1.
        row: usize,
        /// Cell, from 1.
        cell: usize,
        /// What stands there.
        text: String,
    },
    /// No rows.
    #[error("the schedule has no rows; it needs one for each pipeline rank")]
    Empty,
    /// A stage on two ranks.
    #[error(
        "stage {stage} is on rank {first} and again on rank {second}; a stage lives on one rank"
    )]
    TwoHomes {
        /// The stage.
        stage: usize,
        /// The rank that has it.
        first: usize,
        /// The rank that has it too.
        second: usize,
    },
    /// The same action twice.
    #[error("rank {rank} runs {action} twice")]
    Twice {
        /// Where.
        rank: usize,
        /// What.
        action: Action,
    },
    /// An action that does not happen.
    #[error(
        "{missing} is missing: every stage needs, for every micro-batch, F and either B or both I and W"
    )]
    Missing {
        /// What.
        missing: Action,
    },
    /// A weight-gradient or backward before what it needs on the same rank.
    #[error("rank {rank} runs {action} before {needs}, which it needs")]
    TooEarly {
        /// Where.
        rank: usize,
        /// What.
        action: Action,
        /// After what it must come.
        needs: Action,
    },
}

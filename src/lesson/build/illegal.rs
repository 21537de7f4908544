//! Why a pass cannot be placed, in a sentence.

use super::level::short;
use crate::schedule::Action;

/// Why a pass cannot be placed. Ranks are GPUs here, as on the grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// There is no such rank, stage or micro-batch.
    #[error("There is no {what} {value}: there are {count}, counted from 0.")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// Which was meant.
        value: usize,
        /// How many there are.
        count: usize,
    },
    /// The level places backward passes in another way.
    #[error("{} is not of this level: {rule}.", short(*.action))]
    Rule {
        /// What was to be placed.
        action: Action,
        /// How they are placed here.
        rule: &'static str,
    },
    /// Not this rank's stage.
    #[error("Stage {} is not GPU {rank}'s: GPU {holder} holds it.", .action.stage)]
    Stage {
        /// What was to be placed.
        action: Action,
        /// Where.
        rank: usize,
        /// Where it belongs.
        holder: usize,
    },
    /// Done already.
    #[error("{} of stage {} is already placed, at {start}.", short(*.action), .action.stage)]
    Placed {
        /// What.
        action: Action,
        /// When.
        start: u32,
    },
    /// Its backward pass was begun the other way.
    #[error("{} of stage {} is no longer needed: {} is placed, at {start}.", short(*.action), .action.stage, short(*.other))]
    OtherWay {
        /// What was to be placed.
        action: Action,
        /// What is placed instead.
        other: Action,
        /// When.
        start: u32,
    },
    /// It needs a pass of its own rank that is not there.
    #[error("{} of stage {} needs {} of the same stage first, which GPU {rank} has not placed yet.", short(*.action), .action.stage, short(*.needs))]
    Own {
        /// What was to be placed.
        action: Action,
        /// What it needs.
        needs: Action,
        /// Where.
        rank: usize,
    },
    /// It needs what another stage makes, which is not placed.
    #[error("{} of stage {} needs {} of stage {}, which GPU {holder} has not placed yet.", short(*.action), .action.stage, short(*.needs), .needs.stage)]
    Other {
        /// What was to be placed.
        action: Action,
        /// What it needs.
        needs: Action,
        /// The rank that makes it.
        holder: usize,
    },
    /// What it needs is not ready at the time that was chosen.
    #[error("{} of stage {} cannot start at {at}: it needs {} of stage {}, which GPU {holder} has ready at {ready}.", short(*.action), .action.stage, short(*.needs), .needs.stage)]
    Early {
        /// What was to be placed.
        action: Action,
        /// When.
        at: u32,
        /// What it needs.
        needs: Action,
        /// The rank that makes it.
        holder: usize,
        /// When that is ready.
        ready: u32,
    },
    /// Something else runs then.
    #[error("The time is taken: GPU {rank} runs {} from {start} to {end}, and {} would run from {at} to {until}.", short(*.other), short(*.action))]
    Taken {
        /// What was to be placed.
        action: Action,
        /// Where.
        rank: usize,
        /// From when.
        at: u32,
        /// Until when.
        until: u32,
        /// What runs.
        other: Action,
        /// From when.
        start: u32,
        /// Until when.
        end: u32,
    },
    /// There is no memory for another micro-batch.
    #[error("Memory cap: GPU {rank} already holds {holds} {of}; a backward (B or I) must end before {} can start.", short(*.action))]
    Memory {
        /// What was to be placed.
        action: Action,
        /// Where.
        rank: usize,
        /// What it holds.
        holds: usize,
        /// Of what.
        of: &'static str,
    },
    /// Further on than a board reaches.
    #[error("Nothing is placed later than {most}.")]
    Late {
        /// The latest start.
        most: u32,
    },
}

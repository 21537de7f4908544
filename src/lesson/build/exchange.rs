//! Boards from schedules and back: checked for deadlock before anything runs, in PyTorch's CSV too.

use super::board::Board;
use super::illegal::Illegal;
use super::level::{Level, LevelError};
use crate::mesh::{Mesh, MeshError};
use crate::plan::{Job, Load, PlanError, lower};
use crate::schedule::{Schedule, ScheduleError, Turn};

/// Why an order of work does not go on a board, or a board makes no schedule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExchangeError {
    /// It is too large for one.
    #[error("it does not go on a board: {0}")]
    Level(#[from] LevelError),
    /// It is no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// It has more ranks than there can be.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Its ranks would wait for each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It breaks the level's rules.
    #[error("{0}")]
    Illegal(#[from] Illegal),
    /// Passes that overlap are no pieces of this puzzle.
    #[error("it has passes that overlap ({0}); a board takes one at a time")]
    Overlap(String),
    /// Something is still to be placed.
    #[error("{left} passes are still to be placed")]
    Unfinished {
        /// How many.
        left: usize,
    },
}

/// Whether `schedule` can run: refused, with ranks and operations named, if its ranks would wait for each other.
pub fn check_order(schedule: &Schedule) -> Result<(), ExchangeError> {
    lower(&Job {
        fold: None,
        mesh: Mesh::new(1, 1, schedule.pp())?,
        schedule,
        load: Load::Passes,
    })?;
    Ok(())
}

impl Board {
    /// `schedule` on a board without further rules, each pass at its earliest.
    pub fn from_schedule(schedule: &Schedule) -> Result<Self, ExchangeError> {
        // Only then it is known that it is not too large to be looked at.
        let level = Level::of(schedule)?;
        check_order(schedule)?;
        Self::with_order(level, schedule)
    }

    /// `schedule` on a board of `level`, each pass at its earliest; refused if it breaks the level's rules.
    pub fn with_order(level: Level, schedule: &Schedule) -> Result<Self, ExchangeError> {
        let mut board = Self::new(level)?;
        let mut next = vec![0; schedule.pp()];
        loop {
            let mut moved = false;
            let mut stopped = None;
            for (rank, turns) in schedule.rows().iter().enumerate() {
                while let Some(turn) = turns.get(next[rank]) {
                    let action = match turn {
                        Turn::One(action) => *action,
                        Turn::Pair(one, other) => {
                            return Err(ExchangeError::Overlap(format!("{one} and {other}")));
                        }
                    };
                    if let Err(why) = board.place(rank, action, None) {
                        stopped.get_or_insert(why);
                        break;
                    }
                    next[rank] += 1;
                    moved = true;
                }
            }
            match stopped {
                None => break,
                Some(why) if !moved => return Err(why.into()),
                Some(_) => {}
            }
        }
        board.forget();
        Ok(board)
    }

    /// From PyTorch's CSV, on a board without further rules.
    pub fn from_csv(text: &str) -> Result<Self, ExchangeError> {
        Self::from_schedule(&Schedule::from_csv(text)?)
    }

    /// The order of work that was built, once it is whole.
    pub fn to_schedule(&self) -> Result<Schedule, ExchangeError> {
        if !self.is_complete() {
            let left = self.left();
            return Err(ExchangeError::Unfinished { left });
        }
        let rows = self.rows().iter();
        let turns = rows.map(|row| row.iter().map(|placed| Turn::One(placed.action)).collect());
        Ok(Schedule::from_rows(turns.collect())?)
    }

    /// The same in PyTorch's CSV.
    pub fn to_csv(&self) -> Result<String, ExchangeError> {
        Ok(self.to_schedule()?.to_csv())
    }
}

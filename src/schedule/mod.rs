//! Orders of work: for each pipeline rank, which pass of which micro-batch on which stage comes next.
//!
//! A schedule is data. Each known one is a pure function in a file of its own, which reads like its page in
//! a textbook; others are read from PyTorch's CSV.

mod csv;
mod error;
mod kind;
mod row;
mod textbook;

mod dualpipe_v;
mod gpipe;
mod interleaved_1f1b;
mod interleaved_zb;
mod looped_bfs;
mod one_f_one_b;
mod zb_h1;
mod zb_h2;
mod zb_v;

pub use error::ScheduleError;
pub use kind::{Chunks, ScheduleKind};
pub use textbook::{Shares, Textbook};

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Pass;

/// The most micro-batches or stages that a schedule may have.
pub const MAX_COUNT: usize = u16::MAX as usize;

/// The most micro-batches, over all stages, of a schedule.
pub const MAX_ACTIONS: usize = 1 << 22;

/// A pass of a micro-batch on a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Action {
    /// On which stage, from 0.
    pub stage: u32,
    /// Which pass.
    pub pass: Pass,
    /// Of which micro-batch, from 0.
    pub micro_batch: u32,
}

/// As PyTorch writes it: `2F3` is stage 2, forward, micro-batch 3.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}{}",
            self.stage,
            self.pass.letter(),
            self.micro_batch
        )
    }
}

/// What a rank does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Turn {
    /// One action.
    One(Action),
    /// A forward and a backward that overlap, as one: it starts with all inputs of both.
    Pair(Action, Action),
}

impl Turn {
    /// Its actions, in order.
    pub fn actions(&self) -> impl Iterator<Item = Action> + use<> {
        let (first, second) = match *self {
            Self::One(action) => (action, None),
            Self::Pair(forward, backward) => (forward, Some(backward)),
        };
        std::iter::once(first).chain(second)
    }
}

/// The order of work of every pipeline rank; complete and consistent, but not yet known to be free of
/// deadlock: a plan's check says that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    rows: Vec<Vec<Turn>>,
    stages: usize,
    micro_batches: usize,
    /// The pipeline rank that holds each stage.
    holders: Vec<usize>,
}

impl Schedule {
    /// From each rank's turns; refused unless every stage has all its passes of every micro-batch, once,
    /// on one rank.
    pub fn from_rows(rows: Vec<Vec<Turn>>) -> Result<Self, ScheduleError> {
        let actions = || rows.iter().flatten().flat_map(Turn::actions);
        let count = |largest: Option<u32>| largest.map_or(0, |index| index as usize + 1);
        let stages = count(actions().map(|action| action.stage).max());
        let micro_batches = count(actions().map(|action| action.micro_batch).max());
        if stages == 0 {
            return Err(ScheduleError::Empty);
        }
        for (what, value) in [("stages", stages), ("micro-batches", micro_batches)] {
            if value > MAX_COUNT {
                return Err(ScheduleError::Count { what, value });
            }
        }
        let holders = holders(&rows, stages)?;
        let schedule = Self {
            rows,
            stages,
            micro_batches,
            holders,
        };
        schedule.check_order()?;
        Ok(schedule)
    }

    /// Each pipeline rank's turns, in order.
    pub fn rows(&self) -> &[Vec<Turn>] {
        &self.rows
    }

    /// Pipeline ranks.
    pub fn pp(&self) -> usize {
        self.rows.len()
    }

    /// Stages, of all ranks.
    pub fn stages(&self) -> usize {
        self.stages
    }

    /// Chunks of the rank that has most.
    pub fn chunks(&self) -> usize {
        (0..self.pp())
            .map(|rank| self.stages_of(rank).count())
            .max()
            .unwrap_or(1)
    }

    /// Micro-batches.
    pub fn micro_batches(&self) -> usize {
        self.micro_batches
    }

    /// The pipeline rank that holds `stage`.
    pub fn holder(&self, stage: usize) -> usize {
        self.holders[stage]
    }

    /// The stages that pipeline rank `rank` holds, ascending.
    pub fn stages_of(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.stages).filter(move |&stage| self.holders[stage] == rank)
    }

    /// The most (micro-batch, chunk) pairs that `rank` has in flight: from F's start to the end of its
    /// I or B, released before the next is taken.
    pub fn peak_in_flight(&self, rank: usize) -> usize {
        let mut now = 0_usize;
        let mut peak = 0;
        for turn in &self.rows[rank] {
            let forwards = turn
                .actions()
                .filter(|action| action.pass == Pass::Forward)
                .count();
            let ends = turn
                .actions()
                .filter(|action| action.pass.makes_input_grad())
                .count();
            now += forwards;
            peak = peak.max(now);
            now = now.saturating_sub(ends);
        }
        peak
    }

    /// There are enough actions for every stage and micro-batch, so that a table of them is no larger
    /// than the schedule itself.
    fn check_count(&self) -> Result<(), ScheduleError> {
        let actions = || self.rows.iter().flatten().flat_map(Turn::actions);
        if actions().count() >= 2 * self.stages * self.micro_batches {
            return Ok(());
        }
        let all = (0..self.stages as u32).flat_map(|stage| {
            let wants = [Pass::Forward, Pass::Backward].into_iter();
            let of_stage =
                (0..self.micro_batches as u32).map(move |micro_batch| (stage, micro_batch));
            of_stage.flat_map(move |(stage, micro_batch)| {
                wants.clone().map(move |pass| Action {
                    stage,
                    pass,
                    micro_batch,
                })
            })
        });
        let have: HashSet<Action> = actions().collect();
        let has = |action: &Action| {
            have.contains(action)
                || action.pass == Pass::Backward
                    && have.contains(&Action {
                        pass: Pass::InputGrad,
                        ..*action
                    })
        };
        let missing = all.into_iter().find(|action| !has(action));
        missing.map_or(Ok(()), |missing| Err(ScheduleError::Missing { missing }))
    }

    /// Every stage has all its passes, each once and after what it needs on its own rank.
    fn check_order(&self) -> Result<(), ScheduleError> {
        self.check_count()?;
        let index = |action: Action| {
            action.stage as usize * self.micro_batches + action.micro_batch as usize
        };
        let mut seen = vec![0_u8; self.stages * self.micro_batches];
        for (rank, turns) in self.rows.iter().enumerate() {
            for action in turns.iter().flat_map(Turn::actions) {
                let had = &mut seen[index(action)];
                check_turn(rank, action, *had)?;
                *had |= bits(action.pass);
            }
        }
        for (at, &had) in seen.iter().enumerate() {
            let (stage, micro_batch) = (
                (at / self.micro_batches) as u32,
                (at % self.micro_batches) as u32,
            );
            let lacks = [Pass::Forward, Pass::InputGrad, Pass::WeightGrad]
                .into_iter()
                .find(|&pass| had & bits(pass) == 0);
            if let Some(lacks) = lacks {
                let neither = had & bits(Pass::Backward) == 0 && lacks != Pass::Forward;
                let pass = if neither { Pass::Backward } else { lacks };
                return Err(ScheduleError::Missing {
                    missing: Action {
                        stage,
                        pass,
                        micro_batch,
                    },
                });
            }
        }
        Ok(())
    }
}

/// A bit for each pass; the full backward is both of its parts.
fn bits(pass: Pass) -> u8 {
    match pass {
        Pass::Forward => 1,
        Pass::InputGrad => 2,
        Pass::WeightGrad => 4,
        Pass::Backward => 6,
    }
}

fn check_turn(rank: usize, action: Action, had: u8) -> Result<(), ScheduleError> {
    if had & bits(action.pass) != 0 {
        return Err(ScheduleError::Twice { rank, action });
    }
    let needs = match action.pass {
        Pass::Forward => return Ok(()),
        Pass::Backward | Pass::InputGrad => Pass::Forward,
        Pass::WeightGrad => Pass::InputGrad,
    };
    if had & bits(needs) == 0 {
        return Err(ScheduleError::TooEarly {
            rank,
            action,
            needs: Action {
                pass: needs,
                ..action
            },
        });
    }
    Ok(())
}

fn holders(rows: &[Vec<Turn>], stages: usize) -> Result<Vec<usize>, ScheduleError> {
    let mut holders = vec![None; stages];
    for (rank, turns) in rows.iter().enumerate() {
        for action in turns.iter().flat_map(Turn::actions) {
            let stage = action.stage as usize;
            let first = *holders[stage].get_or_insert(rank);
            if first != rank {
                return Err(ScheduleError::TwoHomes {
                    stage,
                    first,
                    second: rank,
                });
            }
        }
    }
    let homeless = holders.iter().position(Option::is_none);
    if let Some(stage) = homeless {
        let missing = Action {
            stage: stage as u32,
            pass: Pass::Forward,
            micro_batch: 0,
        };
        return Err(ScheduleError::Missing { missing });
    }
    Ok(holders.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;

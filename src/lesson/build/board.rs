//! What was placed so far, what can be placed next, and the way back.

use serde::{Deserialize, Serialize};

use super::illegal::Illegal;
use super::level::{Backward, Level, LevelError};
use crate::schedule::Action;
use crate::units::Pass;

/// A pass on the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Which.
    pub action: Action,
    /// When it starts, in units.
    pub start: u32,
}

/// A pass that can be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Which.
    pub action: Action,
    /// When at the earliest, after all that is on its rank.
    pub start: u32,
    /// What it would wait for although its rank is free, and that one's rank.
    pub waits: Option<(Action, usize)>,
}

/// What was done, so that it can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Move {
    Place(usize, Placed),
    Cut(Vec<(usize, Placed)>),
}

/// Who makes each part of a micro-batch on a stage: F, the input-gradient, the weight-gradient.
pub(super) type Made = [Option<Placed>; 3];

pub(super) const FORWARD: usize = 0;
pub(super) const INPUT: usize = 1;
const WEIGHT: usize = 2;

/// The parts that a pass makes.
fn parts(pass: Pass) -> &'static [usize] {
    match pass {
        Pass::Forward => &[FORWARD],
        Pass::InputGrad => &[INPUT],
        Pass::WeightGrad => &[WEIGHT],
        Pass::Backward => &[INPUT, WEIGHT],
    }
}

/// A schedule in the making. Whatever is on it could run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Board {
    level: Level,
    /// What each rank does, by its start.
    rows: Vec<Vec<Placed>>,
    made: Vec<Made>,
    done: Vec<Move>,
    undone: Vec<Move>,
}

/// A board as it is kept: without the way back.
#[derive(Serialize, Deserialize)]
struct Saved {
    level: Level,
    rows: Vec<Vec<Placed>>,
}

impl From<Board> for Saved {
    fn from(board: Board) -> Self {
        Self {
            level: board.level,
            rows: board.rows,
        }
    }
}

/// Why a kept board is none.
#[derive(Debug, thiserror::Error)]
enum SavedError {
    #[error(transparent)]
    Level(#[from] LevelError),
    #[error(transparent)]
    Illegal(#[from] Illegal),
}

impl TryFrom<Saved> for Board {
    type Error = SavedError;

    fn try_from(saved: Saved) -> Result<Self, SavedError> {
        let mut board = Self::new(saved.level)?;
        let rows = saved.rows.into_iter().enumerate();
        let mut all: Vec<(usize, Placed)> = rows
            .flat_map(|(rank, row)| row.into_iter().map(move |placed| (rank, placed)))
            .collect();
        // Whatever a pass needs started before it.
        all.sort_by_key(|(rank, placed)| (placed.start, *rank));
        for (rank, placed) in all {
            board.place(rank, placed.action, Some(placed.start))?;
        }
        board.forget();
        Ok(board)
    }
}

impl Board {
    /// An empty one.
    pub fn new(level: Level) -> Result<Self, LevelError> {
        level.check()?;
        Ok(Self {
            rows: vec![Vec::new(); level.ranks],
            made: vec![Made::default(); level.stages() * level.micro_batches],
            done: Vec::new(),
            undone: Vec::new(),
            level,
        })
    }

    /// Its rules.
    pub fn level(&self) -> &Level {
        &self.level
    }

    /// What each rank does, by its start.
    pub fn rows(&self) -> &[Vec<Placed>] {
        &self.rows
    }

    /// When a pass on the board ends.
    pub fn end(&self, placed: Placed) -> u32 {
        placed.start + self.level.times.of(placed.action.pass)
    }

    /// When a rank has done all that is on its row.
    pub fn free_at(&self, rank: usize) -> u32 {
        let last = self.rows.get(rank).and_then(|row| row.last());
        last.map_or(0, |&placed| self.end(placed))
    }

    /// How many passes are placed.
    pub fn placed(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// How many passes are still to be placed, a backward in two counted as two where nothing else is known.
    pub fn left(&self) -> usize {
        let of = |made: &Made| {
            let halves = [INPUT, WEIGHT]
                .iter()
                .filter(|&&part| made[part].is_none())
                .count();
            let backward = match self.level.backward {
                Backward::Split => halves,
                Backward::Whole | Backward::Either => halves.min(1),
            };
            usize::from(made[FORWARD].is_none()) + backward
        };
        self.made.iter().map(of).sum()
    }

    /// Whether every stage has all its passes of every micro-batch.
    pub fn is_complete(&self) -> bool {
        self.made.iter().flatten().all(Option::is_some)
    }

    /// Whether something is missing and nothing can be placed.
    pub fn is_stuck(&self) -> bool {
        let none = |rank| self.ready_set(rank).is_empty();
        !self.is_complete() && (0..self.level.ranks).all(none)
    }

    /// The pass that makes the same as `action`, or a part of it, if it is placed.
    pub fn find(&self, action: Action) -> Option<Placed> {
        let made = self.made_of(action)?;
        parts(action.pass).iter().find_map(|&part| made[part])
    }

    fn index(&self, action: Action) -> Option<usize> {
        let (stage, micro_batch) = (action.stage as usize, action.micro_batch as usize);
        let known = stage < self.level.stages() && micro_batch < self.level.micro_batches;
        known.then(|| stage * self.level.micro_batches + micro_batch)
    }

    pub(super) fn made_of(&self, action: Action) -> Option<&Made> {
        self.index(action).map(|index| &self.made[index])
    }

    /// Where in a rank's row what starts at `at` comes.
    pub(super) fn place_of(&self, rank: usize, at: u32) -> usize {
        self.rows[rank].partition_point(|placed| placed.start < at)
    }

    /// Places `action` after all that is on the rank's row, at its earliest start; or at a chosen one, be it in a gap.
    pub fn place(
        &mut self,
        rank: usize,
        action: Action,
        at: Option<u32>,
    ) -> Result<Placed, Illegal> {
        let start = match at {
            None => self.why_not(rank, action)?.start,
            Some(at) => self.why_not_at(rank, action, at).map(|()| at)?,
        };
        let placed = Placed { action, start };
        self.put(rank, placed);
        self.did(Move::Place(rank, placed));
        Ok(placed)
    }

    fn did(&mut self, what: Move) {
        self.done.push(what);
        self.undone.clear();
    }

    fn put(&mut self, rank: usize, placed: Placed) {
        let at = self.place_of(rank, placed.start);
        self.rows[rank].insert(at, placed);
        self.mark(placed.action, Some(placed));
    }

    fn lift(&mut self, rank: usize, placed: Placed) {
        self.rows[rank].retain(|other| *other != placed);
        self.mark(placed.action, None);
    }

    fn mark(&mut self, action: Action, by: Option<Placed>) {
        if let Some(index) = self.index(action) {
            for &part in parts(action.pass) {
                self.made[index][part] = by;
            }
        }
    }

    /// Takes back the last pass of a rank, and on other ranks what came from it with all behind that; what went.
    pub fn take_back(&mut self, rank: usize) -> Vec<(usize, Placed)> {
        let count = self.rows.get(rank).map_or(0, Vec::len);
        self.cut(rank, count.saturating_sub(1))
    }

    /// Takes back a rank's passes from `index` on, and on other ranks what came from them with all behind that.
    pub fn cut(&mut self, rank: usize, index: usize) -> Vec<(usize, Placed)> {
        let mut gone = Vec::new();
        let mut cuts = vec![(rank, index)];
        while let Some((rank, index)) = cuts.pop() {
            let Some(row) = self.rows.get_mut(rank) else {
                continue;
            };
            let tail = row.split_off(index.min(row.len()));
            for placed in &tail {
                self.mark(placed.action, None);
            }
            gone.extend(tail.into_iter().map(|placed| (rank, placed)));
            cuts.extend(self.first_orphan());
        }
        if !gone.is_empty() {
            self.did(Move::Cut(gone.clone()));
        }
        gone
    }

    /// The first pass of any rank that lacks what it needs.
    fn first_orphan(&self) -> Option<(usize, usize)> {
        self.rows.iter().enumerate().find_map(|(rank, row)| {
            let lacks = |placed: &Placed| self.needs(placed.action).iter().any(Result::is_err);
            row.iter().position(lacks).map(|index| (rank, index))
        })
    }

    /// Takes back everything.
    pub fn reset(&mut self) {
        let rows = self.rows.iter_mut().enumerate();
        let gone: Vec<(usize, Placed)> = rows
            .flat_map(|(rank, row)| row.drain(..).map(move |placed| (rank, placed)))
            .collect();
        self.made.fill(Made::default());
        if !gone.is_empty() {
            self.did(Move::Cut(gone));
        }
    }

    /// Undoes the last move; whether there was one.
    pub fn undo(&mut self) -> bool {
        let Some(last) = self.done.pop() else {
            return false;
        };
        match &last {
            Move::Place(rank, placed) => self.lift(*rank, *placed),
            Move::Cut(gone) => {
                for &(rank, placed) in gone {
                    self.put(rank, placed);
                }
            }
        }
        self.undone.push(last);
        true
    }

    /// Does again what was undone last; whether there was anything.
    pub fn redo(&mut self) -> bool {
        let Some(next) = self.undone.pop() else {
            return false;
        };
        match &next {
            Move::Place(rank, placed) => self.put(*rank, *placed),
            Move::Cut(gone) => {
                for &(rank, placed) in gone {
                    self.lift(rank, placed);
                }
            }
        }
        self.done.push(next);
        true
    }

    /// Whether there is something to undo, and something to do again.
    pub fn history(&self) -> (bool, bool) {
        (!self.done.is_empty(), !self.undone.is_empty())
    }

    /// No way back from here.
    pub(super) fn forget(&mut self) {
        self.done.clear();
        self.undone.clear();
    }
}

/// What is in flight with a further pass.
pub(super) fn counted(held: usize, placed: Placed) -> usize {
    match placed.action.pass {
        Pass::Forward => held + 1,
        Pass::Backward | Pass::InputGrad => held.saturating_sub(1),
        Pass::WeightGrad => held,
    }
}

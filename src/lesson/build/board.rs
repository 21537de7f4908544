//! What was placed so far, what can be placed next, and the way back.

use serde::{Deserialize, Serialize};

use super::illegal::Illegal;
use super::level::{Backward, Level, LevelError};
use crate::schedule::Action;
use crate::units::Pass;

/// The latest start on a board.
const LATEST: u32 = 1_000_000;

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
type Made = [Option<Placed>; 3];

const FORWARD: usize = 0;
const INPUT: usize = 1;
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

    fn made_of(&self, action: Action) -> Option<&Made> {
        self.index(action).map(|index| &self.made[index])
    }

    /// What `action` needs: its own stage's earlier pass, and what another stage hands over. Where it is not placed, the
    /// pass that would do.
    pub(super) fn needs(&self, action: Action) -> Vec<Result<Placed, Action>> {
        let gradient = self.level.backward.gradient();
        let of = |stage: u32, pass: Pass, part: usize| {
            let needs = Action {
                stage,
                pass,
                ..action
            };
            let found = self.made_of(needs).and_then(|made| made[part]);
            found.ok_or(needs)
        };
        let stage = action.stage;
        let last = stage as usize + 1 == self.level.stages();
        match action.pass {
            Pass::Forward if stage == 0 => Vec::new(),
            Pass::Forward => vec![of(stage - 1, Pass::Forward, FORWARD)],
            Pass::WeightGrad => vec![of(stage, Pass::InputGrad, INPUT)],
            Pass::Backward | Pass::InputGrad => {
                let mut all = vec![of(stage, Pass::Forward, FORWARD)];
                if !last {
                    all.push(of(stage + 1, gradient, INPUT));
                }
                all
            }
        }
    }

    /// Whether a rank can do `action` after all that is on its row, and when at the earliest; or what is missing.
    pub fn why_not(&self, rank: usize, action: Action) -> Result<Ready, Illegal> {
        self.check_name(rank, action)?;
        self.check_placed(action)?;
        let mut ready = (0, None);
        for need in self.needs(action) {
            let placed = need.map_err(|needs| self.lacks(rank, action, needs))?;
            let end = self.end(placed);
            if end > ready.0 {
                let holder = self.level.holders[placed.action.stage as usize];
                ready = (end, Some((placed.action, holder)));
            }
        }
        let free = self.free_at(rank);
        let start = free.max(ready.0);
        if start > LATEST {
            return Err(Illegal::Late { most: LATEST });
        }
        self.check_memory(rank, action, start)?;
        Ok(Ready {
            action,
            start,
            waits: ready.1.filter(|_| ready.0 > free),
        })
    }

    /// Whether a rank can start `action` at `at`, be it in a gap of its row; or what is missing.
    pub fn why_not_at(&self, rank: usize, action: Action, at: u32) -> Result<(), Illegal> {
        self.check_name(rank, action)?;
        self.check_placed(action)?;
        if at > LATEST {
            return Err(Illegal::Late { most: LATEST });
        }
        for need in self.needs(action) {
            let placed = need.map_err(|needs| self.lacks(rank, action, needs))?;
            let ready = self.end(placed);
            if ready > at {
                return Err(Illegal::Early {
                    action,
                    at,
                    needs: placed.action,
                    holder: self.level.holders[placed.action.stage as usize],
                    ready,
                });
            }
        }
        let until = at + self.level.times.of(action.pass);
        let meets = |placed: &&Placed| placed.start < until && self.end(**placed) > at;
        if let Some(&other) = self.rows[rank].iter().find(meets) {
            return Err(Illegal::Taken {
                action,
                rank,
                at,
                until,
                other: other.action,
                start: other.start,
                end: self.end(other),
            });
        }
        self.check_memory(rank, action, at)
    }

    fn lacks(&self, rank: usize, action: Action, needs: Action) -> Illegal {
        if needs.stage == action.stage {
            Illegal::Own {
                action,
                needs,
                rank,
            }
        } else {
            Illegal::Other {
                action,
                needs,
                holder: self.level.holders[needs.stage as usize],
            }
        }
    }

    /// There is such a rank and such a pass, and they belong together.
    fn check_name(&self, rank: usize, action: Action) -> Result<(), Illegal> {
        let (stage, micro_batch) = (action.stage as usize, action.micro_batch as usize);
        for (what, value, count) in [
            ("GPU", rank, self.level.ranks),
            ("stage", stage, self.level.stages()),
            ("micro-batch", micro_batch, self.level.micro_batches),
        ] {
            if value >= count {
                return Err(Illegal::Unknown { what, value, count });
            }
        }
        if !self.level.backward.passes().contains(&action.pass) {
            let rule = match self.level.backward {
                Backward::Split => "the backward pass is in two, I and then W",
                Backward::Whole | Backward::Either => "the backward pass is whole, B",
            };
            return Err(Illegal::Rule { action, rule });
        }
        let holder = self.level.holders[stage];
        if holder == rank {
            Ok(())
        } else {
            Err(Illegal::Stage {
                action,
                rank,
                holder,
            })
        }
    }

    /// Nothing that `action` makes is made already.
    fn check_placed(&self, action: Action) -> Result<(), Illegal> {
        match self.find(action) {
            None => Ok(()),
            Some(Placed {
                action: other,
                start,
            }) if other != action => Err(Illegal::OtherWay {
                action,
                other,
                start,
            }),
            Some(Placed { start, .. }) => Err(Illegal::Placed { action, start }),
        }
    }

    /// No more in flight than the cap, at any time from `at` on.
    fn check_memory(&self, rank: usize, action: Action, at: u32) -> Result<(), Illegal> {
        let Some(cap) = self.level.cap.filter(|_| action.pass == Pass::Forward) else {
            return Ok(());
        };
        let (before, after) = self.rows[rank].split_at(self.place_of(rank, at));
        let mut held = before.iter().fold(0, |held, placed| counted(held, *placed));
        let mut most = held;
        for placed in after {
            held = counted(held, *placed);
            most = most.max(held);
        }
        if most < cap {
            return Ok(());
        }
        let of = self.level.in_flight_words();
        Err(Illegal::Memory {
            action,
            rank,
            holds: most,
            of,
        })
    }

    /// Where in a rank's row what starts at `at` comes.
    fn place_of(&self, rank: usize, at: u32) -> usize {
        self.rows[rank].partition_point(|placed| placed.start < at)
    }

    /// All passes that a rank can do next, with the earliest starts.
    pub fn ready_set(&self, rank: usize) -> Vec<Ready> {
        let passes = self.level.passes_of(rank);
        passes
            .filter_map(|action| self.why_not(rank, action).ok())
            .collect()
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

//! The rules of a board: who holds which stage, how long passes last, what memory there is, what counts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::schedule::{Action, Chunks, Schedule, ScheduleKind};
use crate::units::Pass;

/// A text of the ladder, or of a level that somebody made.
pub type Text = Cow<'static, str>;

/// The most pipeline ranks of a board: more rows than anybody builds by hand.
pub const MOST_RANKS: usize = 32;

/// The most passes of a board.
pub const MOST_PASSES: usize = 6_000;

/// The longest that a pass may last, in units.
const LONGEST_PASS: u32 = 100;

/// How long a stage's passes last, in units of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// `F`.
    pub forward: u32,
    /// `I`.
    pub input_grad: u32,
    /// `W`; `B` lasts as long as `I` and `W` together.
    pub weight_grad: u32,
}

impl Times {
    /// The textbook's: `F = I = W = 1`, so `B = 2`.
    pub const EVEN: Self = Self {
        forward: 1,
        input_grad: 1,
        weight_grad: 1,
    };

    /// How long a pass lasts.
    pub fn of(self, pass: Pass) -> u32 {
        match pass {
            Pass::Forward => self.forward,
            Pass::InputGrad => self.input_grad,
            Pass::WeightGrad => self.weight_grad,
            Pass::Backward => self.input_grad + self.weight_grad,
        }
    }
}

/// How the backward pass is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backward {
    /// As one: `B`.
    Whole,
    /// In two: `I`, which the stage before waits for, and `W`, which nobody does.
    Split,
    /// Either way, micro-batch by micro-batch.
    Either,
}

impl Backward {
    /// The passes that there are, in the order in which they are offered.
    pub fn passes(self) -> &'static [Pass] {
        match self {
            Self::Whole => &[Pass::Forward, Pass::Backward],
            Self::Split => &[Pass::Forward, Pass::InputGrad, Pass::WeightGrad],
            Self::Either => &[
                Pass::Forward,
                Pass::Backward,
                Pass::InputGrad,
                Pass::WeightGrad,
            ],
        }
    }

    /// The pass that hands a gradient to the stage before, where it is not yet known which will.
    pub(super) fn gradient(self) -> Pass {
        match self {
            Self::Whole | Self::Either => Pass::Backward,
            Self::Split => Pass::InputGrad,
        }
    }
}

/// What a level counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measure {
    /// From the first pass of all ranks to the last.
    Makespan,
    /// The longest time from a rank's own first pass to its own last: the zero-bubble paper's.
    StageSpan,
}

/// The rules of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// What it is called.
    pub name: Text,
    /// What is to be reached.
    pub goal: Text,
    /// What it is about: the first hint.
    pub concept: Text,
    /// How it is done: the second.
    pub principle: Text,
    /// Pipeline ranks.
    pub ranks: usize,
    /// The rank that holds each stage.
    pub holders: Cow<'static, [usize]>,
    /// Micro-batches.
    pub micro_batches: usize,
    /// How long passes last.
    pub times: Times,
    /// How the backward pass is placed.
    pub backward: Backward,
    /// The most (micro-batch, chunk) pairs that a rank has in flight, from F's start to the end of its I or B.
    pub cap: Option<usize>,
    /// What counts.
    pub measure: Measure,
}

/// Why there is no such level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// Too few or too many of something.
    #[error("{what} is {value}, but a board takes from 1 to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        value: usize,
        /// The most.
        most: usize,
    },
    /// A stage on a rank that is not there.
    #[error("stage {stage} is on rank {rank}, but there are {ranks} ranks, counted from 0")]
    Holder {
        /// The stage.
        stage: usize,
        /// Its rank.
        rank: usize,
        /// How many there are.
        ranks: usize,
    },
}

impl Level {
    /// Whether a board can be made of it.
    pub fn check(&self) -> Result<(), LevelError> {
        let passes = self.stages().saturating_mul(self.micro_batches);
        let passes = passes.saturating_mul(self.backward.passes().len());
        let time = |pass| self.times.of(pass) as usize;
        let longest = LONGEST_PASS as usize;
        for (what, value, most) in [
            ("the number of pipeline ranks", self.ranks, MOST_RANKS),
            ("the number of stages", self.stages(), MOST_PASSES),
            (
                "the number of micro-batches",
                self.micro_batches,
                MOST_PASSES,
            ),
            ("the number of passes", passes, MOST_PASSES),
            ("the time of F", time(Pass::Forward), longest),
            ("the time of I", time(Pass::InputGrad), longest),
            ("the time of W", time(Pass::WeightGrad), longest),
            ("the memory cap", self.cap.unwrap_or(1), MOST_PASSES),
        ] {
            if !(1..=most).contains(&value) {
                return Err(LevelError::Count { what, value, most });
            }
        }
        let ranks = self.ranks;
        let lost = self.holders.iter().position(|&rank| rank >= ranks);
        match lost {
            None => Ok(()),
            Some(stage) => Err(LevelError::Holder {
                stage,
                rank: self.holders[stage],
                ranks,
            }),
        }
    }

    /// A board for oneself: `ranks`, `micro_batches` and `chunks` a rank, placed as `kind` places them.
    pub fn free(
        kind: ScheduleKind,
        ranks: usize,
        micro_batches: usize,
        chunks: usize,
    ) -> Result<Self, LevelError> {
        let chunks = match kind.chunks() {
            Chunks::One | Chunks::Vee => kind.chunks().count(),
            Chunks::Loop => chunks,
        };
        let what = "the number of chunks";
        let most = MOST_RANKS;
        if !(1..=most).contains(&chunks) || !(1..=most).contains(&ranks) {
            let (what, value) = if (1..=most).contains(&ranks) {
                (what, chunks)
            } else {
                ("the number of pipeline ranks", ranks)
            };
            return Err(LevelError::Count { what, value, most });
        }
        let stages = 0..ranks * chunks;
        let holders = stages.map(|stage| match kind.chunks() {
            Chunks::One | Chunks::Loop => stage % ranks,
            Chunks::Vee => stage.min(2 * ranks - 1 - stage),
        });
        let level = Self {
            ranks,
            holders: holders.collect(),
            micro_batches,
            ..Self::open()
        };
        level.check()?;
        Ok(level)
    }

    /// The board that `schedule` lies on.
    pub fn of(schedule: &Schedule) -> Result<Self, LevelError> {
        let level = Self {
            ranks: schedule.pp(),
            holders: (0..schedule.stages())
                .map(|stage| schedule.holder(stage))
                .collect(),
            micro_batches: schedule.micro_batches(),
            ..Self::open()
        };
        level.check()?;
        Ok(level)
    }

    /// No rules but the pipeline's own, and nothing to place yet.
    fn open() -> Self {
        Self {
            name: "A free board".into(),
            goal: "Build any order of work. Nothing is capped, and each backward pass may be whole (B) or in two (I, then W)."
                .into(),
            concept: "A pass can start when its input is there: F follows F of the stage before, B or I follows that of the \
                      stage after, W follows its own I."
                .into(),
            principle: "Keep the last stage busy and start its backwards early: everybody else waits for those."
                .into(),
            ranks: 0,
            holders: Cow::Borrowed(&[]),
            micro_batches: 0,
            times: Times::EVEN,
            backward: Backward::Either,
            cap: None,
            measure: Measure::Makespan,
        }
    }

    /// Stages, of all ranks.
    pub fn stages(&self) -> usize {
        self.holders.len()
    }

    /// The stages of a rank, ascending.
    pub fn stages_of(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.stages()).filter(move |&stage| self.holders[stage] == rank)
    }

    /// Stages of the rank that has most.
    pub fn chunks(&self) -> usize {
        let of = |rank| self.stages_of(rank).count();
        (0..self.ranks).map(of).max().unwrap_or(1)
    }

    /// All passes of a rank that there are, stage by stage and kind by kind.
    pub fn passes_of(&self, rank: usize) -> impl Iterator<Item = Action> + '_ {
        self.stages_of(rank).flat_map(move |stage| {
            let passes = self.backward.passes().iter();
            passes.flat_map(move |&pass| {
                (0..self.micro_batches).map(move |micro_batch| Action {
                    stage: stage as u32,
                    pass,
                    micro_batch: micro_batch as u32,
                })
            })
        })
    }

    /// A pass in words: `F3`, and where ranks hold several stages `F3 of stage 5`.
    pub fn words(&self, action: Action) -> String {
        let name = short(action);
        if self.chunks() > 1 {
            format!("{name} of stage {}", action.stage)
        } else {
            name
        }
    }

    /// What of memory a rank has in flight: micro-batches, or one of them on one of its chunks.
    pub fn in_flight_words(&self) -> &'static str {
        if self.chunks() > 1 {
            "micro-batches of its chunks"
        } else {
            "micro-batches"
        }
    }
}

/// Letter and micro-batch, as on a block: `F3`.
pub fn short(action: Action) -> String {
    format!("{}{}", action.pass.letter(), action.micro_batch)
}

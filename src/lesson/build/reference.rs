//! The known schedules that fit a level, and the best of them: its par.

use super::board::Board;
use super::level::{Backward, Level};
use crate::schedule::{Chunks, Schedule, ScheduleKind, Turn};
use crate::units::Pass;

/// A known schedule on a level's board.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Which.
    pub kind: ScheduleKind,
    /// Its order of work.
    pub schedule: Schedule,
    /// The same on a board.
    pub board: Board,
    /// What the level counts of it.
    pub score: u32,
}

impl Level {
    /// The known schedules for the level's ranks, stages, micro-batches and kinds of passes, whatever its memory; none with
    /// passes that overlap.
    pub(super) fn known(&self) -> Vec<(ScheduleKind, Schedule)> {
        let chunks = self.chunks();
        let build = |kind: ScheduleKind| {
            // Of one chunk, they are the others again.
            if kind.chunks() == Chunks::Loop && chunks == 1 {
                return None;
            }
            let schedule = kind.build(self.ranks, self.micro_batches, chunks).ok()?;
            let mut stages = 0..self.stages();
            let fits = schedule.stages() == self.stages()
                && stages.all(|stage| schedule.holder(stage) == self.holders[stage]);
            let turns = || schedule.rows().iter().flatten();
            let single = turns().all(|turn| matches!(turn, Turn::One(_)));
            let actions = turns().flat_map(Turn::actions);
            let own = actions.map(|action| action.pass).all(|pass| self.has(pass));
            (fits && single && own).then_some((kind, schedule))
        };
        ScheduleKind::ALL.into_iter().filter_map(build).collect()
    }

    /// The known schedules that keep to all its rules, the best first.
    pub fn references(&self) -> Vec<Reference> {
        let known = self.known().into_iter();
        let references = known.filter_map(|(kind, schedule)| {
            let board = Board::with_order(self.clone(), &schedule).ok()?;
            let score = board.score()?;
            Some(Reference {
                kind,
                schedule,
                board,
                score,
            })
        });
        let mut references: Vec<Reference> = references.collect();
        references.sort_by_key(|reference| reference.score);
        references
    }

    /// The best score of the known schedules that keep to its rules, if there are any.
    pub fn par(&self) -> Option<u32> {
        self.references().first().map(|best| best.score)
    }

    /// Whether a pass of that kind can be placed.
    pub fn has(&self, pass: Pass) -> bool {
        self.backward.passes().contains(&pass)
    }

    /// Whether backward passes may be in two.
    pub fn splits(&self) -> bool {
        self.backward != Backward::Whole
    }
}

//! What a pass needs, and why it cannot be placed.

use super::board::{Board, FORWARD, INPUT, Placed, Ready, counted};
use super::illegal::Illegal;
use super::level::Backward;
use crate::schedule::Action;
use crate::units::Pass;

/// The latest start on a board.
const LATEST: u32 = 1_000_000;

impl Board {
    /// What `action` needs: its own stage's earlier pass, and what another stage hands over. Where it is not placed, the
    /// pass that would do.
    pub(super) fn needs(&self, action: Action) -> Vec<Result<Placed, Action>> {
        let gradient = self.level().backward.gradient();
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
        let last = stage as usize + 1 == self.level().stages();
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
                let holder = self.level().holders[placed.action.stage as usize];
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
                    holder: self.level().holders[placed.action.stage as usize],
                    ready,
                });
            }
        }
        let until = at + self.level().times.of(action.pass);
        let meets = |placed: &&Placed| placed.start < until && self.end(**placed) > at;
        if let Some(&other) = self.rows()[rank].iter().find(meets) {
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
                holder: self.level().holders[needs.stage as usize],
            }
        }
    }

    /// There is such a rank and such a pass, and they belong together.
    fn check_name(&self, rank: usize, action: Action) -> Result<(), Illegal> {
        let (stage, micro_batch) = (action.stage as usize, action.micro_batch as usize);
        for (what, value, count) in [
            ("GPU", rank, self.level().ranks),
            ("stage", stage, self.level().stages()),
            ("micro-batch", micro_batch, self.level().micro_batches),
        ] {
            if value >= count {
                return Err(Illegal::Unknown { what, value, count });
            }
        }
        if !self.level().backward.passes().contains(&action.pass) {
            let rule = match self.level().backward {
                Backward::Split => "the backward pass is in two, I and then W",
                Backward::Whole | Backward::Either => "the backward pass is whole, B",
            };
            return Err(Illegal::Rule { action, rule });
        }
        let holder = self.level().holders[stage];
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
        let Some(cap) = self.level().cap.filter(|_| action.pass == Pass::Forward) else {
            return Ok(());
        };
        let (before, after) = self.rows()[rank].split_at(self.place_of(rank, at));
        let mut held = before.iter().fold(0, |held, placed| counted(held, *placed));
        let mut most = held;
        for placed in after {
            held = counted(held, *placed);
            most = most.max(held);
        }
        if most < cap {
            return Ok(());
        }
        let of = self.level().in_flight_words();
        Err(Illegal::Memory {
            action,
            rank,
            holds: most,
            of,
        })
    }

    /// All passes that a rank can do next, with the earliest starts.
    pub fn ready_set(&self, rank: usize) -> Vec<Ready> {
        let passes = self.level().passes_of(rank);
        passes
            .filter_map(|action| self.why_not(rank, action).ok())
            .collect()
    }
}

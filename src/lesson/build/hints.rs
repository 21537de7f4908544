//! Hints in three steps: what a level is about, how it is done, the next move.

use super::board::{Board, Ready};
use super::level::short;
use super::recognise::Order;
use crate::schedule::{Action, ScheduleKind};
use crate::units::Pass;

/// How much a hint gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What it is about.
    Concept,
    /// How it is done.
    Principle,
    /// The next move.
    Move,
}

impl Step {
    /// All of them, the least telling first.
    pub const ALL: [Self; 3] = [Self::Concept, Self::Principle, Self::Move];
}

/// A hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// What it says.
    pub text: String,
    /// The move that it gives away: on which rank, what.
    pub next: Option<(usize, Ready)>,
}

impl Board {
    /// A hint for what is to be done next.
    pub fn hint(&self, step: Step) -> Hint {
        let said = |text: &str| Hint {
            text: text.to_owned(),
            next: None,
        };
        match step {
            Step::Concept => said(&self.level().concept),
            Step::Principle => said(&self.level().principle),
            Step::Move => self.move_hint(),
        }
    }

    fn move_hint(&self) -> Hint {
        if self.is_complete() {
            return Hint {
                text: "Everything is placed.".to_owned(),
                next: None,
            };
        }
        if let Some((kind, rank, ready)) = self.towards_reference() {
            let does = self.does(rank, ready);
            return Hint {
                text: format!("Next, towards {}: {does}.", kind.title()),
                next: Some((rank, ready)),
            };
        }
        let back = self.way_back();
        match self.earliest() {
            Some((rank, ready)) => Hint {
                text: format!("{back}On your own way: {}.", self.does(rank, ready)),
                next: Some((rank, ready)),
            },
            None => Hint {
                text: format!("{back}Nothing can be placed any more: take something back."),
                next: None,
            },
        }
    }

    /// A move in words: `GPU 2: F3 at 5, when GPU 1's F3 is ready`.
    fn does(&self, rank: usize, ready: Ready) -> String {
        let name = self.level().words(ready.action);
        let waits = match ready.waits {
            Some((for_it, holder)) => {
                format!(
                    ", when {} of GPU {holder} is ready",
                    self.level().words(for_it)
                )
            }
            None => String::new(),
        };
        format!("GPU {rank}: {name} at {}{waits}", ready.start)
    }

    /// The next move towards the best reference that can still be reached; the one that starts first.
    fn towards_reference(&self) -> Option<(ScheduleKind, usize, Ready)> {
        let order = Order::of(self);
        let references = self.level().references();
        let mut reachable = references
            .iter()
            .filter(|reference| self.parting(&reference.schedule, &order).is_none());
        reachable.find_map(|reference| {
            let rows = self.rows().iter().zip(reference.schedule.rows());
            let moves = rows.enumerate().filter_map(|(rank, (row, turns))| {
                let next = turns.get(row.len())?.actions().next()?;
                let ready = self.why_not(rank, order.own(next)).ok()?;
                Some((rank, ready))
            });
            let first = moves.min_by_key(|(rank, ready)| (ready.start, *rank));
            first.map(|(rank, ready)| (reference.kind, rank, ready))
        })
    }

    /// Where the way of the best reference was left, if there is one.
    fn way_back(&self) -> String {
        let references = self.level().references();
        let Some(best) = references.first() else {
            return String::new();
        };
        let order = Order::of(self);
        let Some(parting) = self.parting(&best.schedule, &order) else {
            return String::new();
        };
        let own = self.rows()[parting.rank][parting.index];
        let known = parting.known.map_or("nothing".to_owned(), short);
        format!(
            "No known schedule can be reached from here: {} of GPU {} at {} is where {} has {known}. ",
            short(own.action),
            parting.rank,
            own.start,
            best.kind.title()
        )
    }

    /// Of all that can be placed what starts first: gradients that others wait for before forwards, `W` last.
    fn earliest(&self) -> Option<(usize, Ready)> {
        let all = (0..self.level().ranks).flat_map(|rank| {
            let ready = self.ready_set(rank).into_iter();
            ready.map(move |ready| (rank, ready))
        });
        all.min_by_key(|(rank, ready)| (ready.start, urgency(ready.action), *rank))
    }
}

fn urgency(action: Action) -> u8 {
    match action.pass {
        Pass::Backward | Pass::InputGrad => 0,
        Pass::Forward => 1,
        Pass::WeightGrad => 2,
    }
}

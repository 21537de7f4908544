//! Which known schedule a board is, or is on the way to.

use super::board::Board;
use crate::schedule::{Action, Schedule, ScheduleKind};
use crate::units::Pass;

/// What a board is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// Nothing is placed.
    Empty,
    /// So far it may become any of these.
    SoFar(Vec<ScheduleKind>),
    /// These, action for action.
    Same(Vec<ScheduleKind>),
    /// These, with the micro-batches in another order.
    Renumbered(Vec<ScheduleKind>),
    /// All forwards come before all backwards.
    ForwardsFirst,
    /// After a warm-up, forwards and backwards take turns.
    InTurn {
        /// Whether weight-gradients are put off, as zero-bubble schedules do.
        deferred: bool,
    },
    /// An order of its own.
    Own,
}

impl Likeness {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Empty => "Nothing is placed yet".to_owned(),
            Self::SoFar(kinds) => format!("So far like {}", titles(kinds, ", ")),
            Self::Same(kinds) => match kinds.as_slice() {
                [kind] => format!("This is {}, action for action", kind.title()),
                kinds => format!("This is {}: the same here", titles(kinds, " and ")),
            },
            Self::Renumbered(kinds) => format!(
                "This is {} with the micro-batches in another order",
                titles(kinds, " and ")
            ),
            Self::ForwardsFirst => {
                "Of GPipe's family: all forwards before all backwards".to_owned()
            }
            Self::InTurn { deferred: false } => {
                "Of 1F1B's family: forwards and backwards in turn".to_owned()
            }
            Self::InTurn { deferred: true } => {
                "Of the zero-bubble family: forwards and backwards in turn, W put off".to_owned()
            }
            Self::Own => "An order of your own: no schedule known here".to_owned(),
        }
    }
}

fn titles(kinds: &[ScheduleKind], between: &str) -> String {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title()).collect();
    titles.join(between)
}

/// Micro-batches by the order in which they enter the first stage; those that have not yet, after them.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The micro-batch that comes at each place.
    at: Vec<u32>,
    /// The place of each micro-batch.
    of: Vec<u32>,
}

impl Order {
    /// As they are numbered.
    fn plain(count: usize) -> Self {
        let at: Vec<u32> = (0..count as u32).collect();
        Self { of: at.clone(), at }
    }

    /// As they enter the first stage of `board`.
    pub(super) fn of(board: &Board) -> Self {
        let count = board.level().micro_batches;
        let mut order = Self::plain(count);
        let first = board.level().holders[0];
        let entered = board.rows()[first].iter().map(|placed| placed.action);
        let entered = entered.filter(|action| action.stage == 0 && action.pass == Pass::Forward);
        let mut at: Vec<u32> = entered.map(|action| action.micro_batch).collect();
        let mut is_in = vec![false; count];
        for &micro_batch in &at {
            is_in[micro_batch as usize] = true;
        }
        at.extend((0..count as u32).filter(|&micro_batch| !is_in[micro_batch as usize]));
        for (place, &micro_batch) in at.iter().enumerate() {
            order.of[micro_batch as usize] = place as u32;
        }
        order.at = at;
        order
    }

    /// A pass of a known schedule, as it is numbered on the board.
    pub(super) fn own(&self, known: Action) -> Action {
        Action {
            micro_batch: self.at[known.micro_batch as usize],
            ..known
        }
    }

    /// A pass of the board, as a known schedule numbers it.
    fn known(&self, own: Action) -> Action {
        Action {
            micro_batch: self.of[own.micro_batch as usize],
            ..own
        }
    }
}

/// Where a board leaves a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parting {
    /// On which rank.
    pub(super) rank: usize,
    /// At which of its passes.
    pub(super) index: usize,
    /// What the schedule has there, as the board numbers micro-batches; nothing if it is at an end.
    pub(super) known: Option<Action>,
}

impl Board {
    /// Where it leaves `schedule` first, with micro-batches numbered by `order`; nowhere if it may still become it.
    pub(super) fn parting(&self, schedule: &Schedule, order: &Order) -> Option<Parting> {
        let rows = self.rows().iter().zip(schedule.rows()).enumerate();
        let mut partings = rows.filter_map(|(rank, (row, turns))| {
            let mut known = turns.iter().flat_map(crate::schedule::Turn::actions);
            let parting = |(index, action): (usize, Action)| {
                let there = known.next();
                let other = there != Some(order.known(action));
                other.then(|| Parting {
                    rank,
                    index,
                    known: there.map(|action| order.own(action)),
                })
            };
            let own = row.iter().map(|placed| placed.action).enumerate();
            own.into_iter().find_map(parting)
        });
        partings.next()
    }

    /// Which known schedule it is, or is on the way to, or is like.
    pub fn recognise(&self) -> Likeness {
        if self.placed() == 0 {
            return Likeness::Empty;
        }
        let known = self.level().known();
        let like = |order: &Order| -> Vec<ScheduleKind> {
            let same = known
                .iter()
                .filter(|(_, schedule)| self.parting(schedule, order).is_none());
            same.map(|(kind, _)| *kind).collect()
        };
        let plain = like(&Order::plain(self.level().micro_batches));
        let renumbered = like(&Order::of(self));
        match (self.is_complete(), plain.is_empty(), renumbered.is_empty()) {
            (true, false, _) => Likeness::Same(plain),
            (true, true, false) => Likeness::Renumbered(renumbered),
            (false, _, false) => Likeness::SoFar(renumbered),
            (false, false, true) => Likeness::SoFar(plain),
            (false, true, true) => Likeness::Own,
            (true, true, true) => self.family(),
        }
    }

    /// The pattern of a whole board that is no known schedule.
    fn family(&self) -> Likeness {
        let all = |holds: fn(&[Pass]) -> bool| {
            self.rows().iter().all(|row| {
                let passes: Vec<Pass> = row.iter().map(|placed| placed.action.pass).collect();
                holds(&passes)
            })
        };
        if all(forwards_first) {
            Likeness::ForwardsFirst
        } else if all(in_turn) {
            let deferred = !all(at_once);
            Likeness::InTurn { deferred }
        } else {
            Likeness::Own
        }
    }
}

fn forwards_first(passes: &[Pass]) -> bool {
    let last = passes.iter().rposition(|&pass| pass == Pass::Forward);
    let first = passes.iter().position(|pass| pass.makes_input_grad());
    last < first
}

/// From the first gradient on, forwards and gradients alternate as long as there are forwards.
fn in_turn(passes: &[Pass]) -> bool {
    let begun = passes.iter().position(|pass| pass.makes_input_grad());
    let rest = &passes[begun.unwrap_or(0)..];
    let last = rest.iter().rposition(|&pass| pass == Pass::Forward);
    let steady: Vec<bool> = rest[..last.map_or(0, |last| last + 1)]
        .iter()
        .filter(|&&pass| pass != Pass::WeightGrad)
        .map(|&pass| pass == Pass::Forward)
        .collect();
    steady.windows(2).all(|pair| pair[0] != pair[1])
}

/// Each weight-gradient comes right after its input-gradient.
fn at_once(passes: &[Pass]) -> bool {
    let mut pairs = passes.windows(2);
    let last = passes.last() == Some(&Pass::InputGrad);
    !last && pairs.all(|pair| pair[0] != Pass::InputGrad || pair[1] == Pass::WeightGrad)
}

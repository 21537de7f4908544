//! Moves on the board: what is placed or taken back, and what is said of it.

use crate::lesson::build::{Placed, Step, short};
use crate::schedule::Action;
use crate::ui::wish::Direction;
use crate::units::Pass;

use super::{Builder, Tone};

impl Builder {
    pub(super) fn next_pick(&mut self, direction: Direction) {
        let open = self.open_passes();
        if open.is_empty() {
            return;
        }
        let at = open.iter().position(|action| Some(*action) == self.pick);
        let count = open.len();
        let next = match (at, direction) {
            (None, _) => 0,
            (Some(at), Direction::Up) => (at + 1) % count,
            (Some(at), Direction::Down) => (at + count - 1) % count,
        };
        (self.pick, self.wait) = (Some(open[next]), 0);
    }

    pub(super) fn place_pick(&mut self) {
        let Some(action) = self.pick else {
            self.say(
                Tone::Plain,
                format!("GPU {} has nothing left to place", self.rank),
            );
            return;
        };
        let earliest = self
            .board()
            .why_not(self.rank, action)
            .map(|ready| ready.start);
        let at = earliest.ok().filter(|_| self.wait > 0);
        self.put(action, at.map(|start| start.saturating_add(self.wait)));
    }

    /// The pass of that kind that can start first; if none can, why the first one cannot.
    pub(super) fn place_next(&mut self, pass: Pass) {
        let ready = self.board().ready_set(self.rank);
        let of_kind = ready.iter().filter(|ready| ready.action.pass == pass);
        let first = of_kind.min_by_key(|ready| (ready.start, ready.action.micro_batch));
        let open = self.open_passes();
        let next = first.map(|ready| ready.action).or_else(|| {
            let mut of_kind = open.iter().filter(|action| action.pass == pass);
            of_kind.next().copied()
        });
        match next {
            Some(action) => self.put(action, None),
            None if self.board().level().has(pass) => self.say(
                Tone::Wrong,
                format!("GPU {} has no {} left to place.", self.rank, pass.letter()),
            ),
            None => {
                let splits = self.board().level().splits();
                let rule = if splits {
                    "in two, I and then W"
                } else {
                    "whole, B"
                };
                self.say(Tone::Wrong, format!("The backward pass is {rule} here."));
            }
        }
    }

    pub(super) fn put(&mut self, action: Action, at: Option<u32>) {
        let rank = self.rank;
        let waits = self.board().why_not(rank, action).ok();
        match self.board_mut().place(rank, action, at) {
            Ok(placed) => {
                self.hint = None;
                let name = self.board().level().words(action);
                let waited = waits.filter(|_| at.is_none()).and_then(|ready| ready.waits);
                let waited = waited.map_or(String::new(), |(other, holder)| {
                    let other = self.board().level().words(other);
                    format!(", when {other} of GPU {holder} is ready")
                });
                self.say(
                    Tone::Plain,
                    format!("GPU {rank}: {name} at {}{waited}", placed.start),
                );
                self.pick = self.after(action);
                self.refresh();
                self.judge();
            }
            Err(why) => {
                let own = self.board().level().holders.get(action.stage as usize) == Some(&rank);
                if own && self.board().find(action).is_none() {
                    self.pick = Some(action);
                }
                self.say(Tone::Wrong, why.to_string());
            }
        }
    }

    /// The next micro-batch of the same kind, if it can be placed.
    pub(super) fn after(&self, action: Action) -> Option<Action> {
        let next = Action {
            micro_batch: action.micro_batch + 1,
            ..action
        };
        let ready = self.board().why_not(self.rank, next);
        ready.ok().map(|ready| ready.action)
    }

    /// Says so when everything is placed, or nothing more can be.
    pub(super) fn judge(&mut self) {
        if self.board().is_complete() {
            let (units, par) = (self.known.score.unwrap_or_default(), self.par());
            if !self.is_free() {
                self.progress.note(&self.sheets[self.at].board);
            }
            let beside = match par {
                Some(par) if units < par => {
                    format!(": better than any schedule known here (par {par})")
                }
                Some(par) if units == par => ", which is par".to_owned(),
                Some(par) => format!(", par is {par}"),
                None => String::new(),
            };
            let text = format!(
                "All placed: {units} units{beside}. {}. Run it (G) to train by it.",
                self.known.likeness.words()
            );
            self.say(Tone::Good, text);
        } else if self.known.ready.iter().all(|&ready| ready == 0) {
            self.say(
                Tone::Wrong,
                "Stuck: no GPU can place anything more. Take something back (Backspace), so that a backward finds memory.",
            );
        }
    }

    pub(super) fn par(&self) -> Option<u32> {
        self.sheet().references.first().map(|best| best.score)
    }

    pub(super) fn explain(&mut self, rank: usize, index: usize) {
        let row = self.board().rows().get(rank);
        let Some(&placed) = row.and_then(|row| row.get(index)) else {
            return;
        };
        let text = self.why(rank, placed);
        self.choose(rank);
        self.say(Tone::Plain, text);
    }

    /// Why a placed pass starts when it does.
    pub(super) fn why(&self, rank: usize, placed: Placed) -> String {
        let board = self.board();
        let (start, end) = (placed.start, board.end(placed));
        let name = board.level().words(placed.action);
        let cause = match board.cause(rank, placed) {
            None if start == 0 => "nothing comes before it".to_owned(),
            None => "it was placed later than it could be".to_owned(),
            Some((_, other)) if board.end(other) < start => {
                "it was placed later than it could be".to_owned()
            }
            Some((of, other)) if of == rank => {
                format!(
                    "GPU {rank} was busy with {} until then",
                    short(other.action)
                )
            }
            Some((of, other)) => {
                let other = board.level().words(other.action);
                format!("it waited for {other} of GPU {of}")
            }
        };
        format!("GPU {rank}: {name} from {start} to {end}; {cause}")
    }

    pub(super) fn take_back(&mut self) {
        let rank = self.rank;
        let gone = self.board_mut().take_back(rank);
        let text = match gone.as_slice() {
            [] => format!("GPU {rank} has nothing to take back"),
            [(_, placed)] => format!("Took {} of GPU {rank} back", short(placed.action)),
            [(_, placed), others @ ..] => format!(
                "Took {} of GPU {rank} back, and {} passes that came of it",
                short(placed.action),
                others.len()
            ),
        };
        let first = gone.first().map(|(_, placed)| placed.action);
        self.moved(!gone.is_empty(), &text, &text);
        self.pick = first.or(self.pick);
    }

    pub(super) fn moved(&mut self, done: bool, yes: &str, no: &str) {
        if done {
            self.hint = None;
            self.refresh();
        }
        self.say(Tone::Plain, if done { yes } else { no });
    }

    /// The next step of the hint; after the last one the move itself.
    pub(super) fn next_hint(&mut self) {
        if self.board().is_complete() {
            self.hint = None;
            self.say(
                Tone::Plain,
                "Everything is placed: try to do it in less, or run it (G)",
            );
            return;
        }
        let next = match &self.hint {
            None => Step::Concept,
            Some((Step::Concept, _)) => Step::Principle,
            Some((Step::Principle, _)) => Step::Move,
            Some((Step::Move, hint)) => {
                if let Some((rank, ready)) = hint.next {
                    self.rank = rank;
                    self.put(ready.action, None);
                    // From now on, moves.
                    let more = !self.board().is_complete();
                    self.hint = more.then(|| (Step::Move, self.board().hint(Step::Move)));
                }
                return;
            }
        };
        self.hint = Some((next, self.board().hint(next)));
    }
}

//! Where the playhead is and how it moves: a training step, and the virtual time in it. Pure logic: it is told how
//! much real time has passed.

use std::time::Duration;

use crate::units::Nanos;

use super::speed::Speed;

/// A place in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Training step, from 0.
    pub step: u64,
    /// Virtual time in it.
    pub time: Nanos,
}

/// The longest time between two frames that counts; a window that was covered must not leap.
const LONGEST_FRAME: Duration = Duration::from_millis(250);

/// Whether time goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// No.
    Paused,
    /// Yes.
    Playing,
    /// Until this place, and then no more.
    PlayingTo(Position),
}

/// What there is to play.
#[derive(Clone, Copy, Debug)]
pub(super) struct Road<F: Fn(u64) -> Nanos> {
    /// Steps trained so far.
    pub(super) trained: u64,
    /// Whether there can be more.
    pub(super) trains: bool,
    /// A step's makespan.
    pub(super) length: F,
}

impl<F: Fn(u64) -> Nanos> Road<F> {
    /// The last place that can be reached now. A step's timeline is known before it is trained, so that one step
    /// may be watched while it is trained; its end is reached when it is.
    fn end(&self) -> Position {
        let step = if self.trains {
            self.trained
        } else {
            self.trained.saturating_sub(1)
        };
        Position {
            step,
            time: (self.length)(step),
        }
    }

    fn end_of(&self, step: u64) -> Position {
        Position {
            step,
            time: (self.length)(step),
        }
    }
}

/// The playhead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Playback {
    at: Position,
    /// The furthest that has been seen: what is before it stays drawn when the playhead goes back.
    seen: Position,
    motion: Motion,
    speed: Speed,
    /// Whether somebody has chosen the speed; until then it follows the length of a step.
    speed_chosen: bool,
}

impl Playback {
    /// At the start, playing or not.
    pub(super) fn new(motion: Motion) -> Self {
        Self {
            at: Position::default(),
            seen: Position::default(),
            motion,
            speed: Speed::PerSecond(Nanos(2_000_000)),
            speed_chosen: false,
        }
    }

    /// Where the playhead is.
    pub(super) fn at(&self) -> Position {
        self.at
    }

    /// The furthest that has been seen.
    pub(super) fn seen(&self) -> Position {
        self.seen
    }

    /// Whether time goes on by itself.
    pub(super) fn is_playing(&self) -> bool {
        self.motion != Motion::Paused
    }

    /// The speed.
    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    /// Back to the start, for another run of steps of `length`; it goes on playing if it does.
    pub(super) fn restart(&mut self, length: Nanos) {
        self.at = Position::default();
        self.seen = Position::default();
        if let Motion::PlayingTo(_) = self.motion {
            self.motion = Motion::Paused;
        }
        if !self.speed_chosen {
            self.speed = Speed::comfortable(length);
        }
    }

    /// Plays on, or stops.
    pub(super) fn toggle(&mut self) {
        self.motion = match self.motion {
            Motion::Paused => Motion::Playing,
            Motion::Playing | Motion::PlayingTo(_) => Motion::Paused,
        };
    }

    /// A step faster.
    pub(super) fn faster(&mut self) {
        self.choose(self.speed.faster());
    }

    /// A step slower.
    pub(super) fn slower(&mut self) {
        self.choose(self.speed.slower());
    }

    fn choose(&mut self, speed: Speed) {
        self.speed = speed;
        self.speed_chosen = true;
    }

    /// Puts the playhead somewhere, as far as there is anything, and stops it.
    pub(super) fn scrub<F: Fn(u64) -> Nanos>(&mut self, to: Position, road: &Road<F>) {
        self.motion = Motion::Paused;
        self.put(to.min(road.end()));
    }

    /// Plays to the end of this training step, or of the next if it is at an end, and stops there; if it is on
    /// its way there already, it leaps.
    pub(super) fn step_forward<F: Fn(u64) -> Nanos>(&mut self, road: &Road<F>) {
        if let Motion::PlayingTo(target) = self.motion {
            if target <= road.end() {
                self.scrub(target, road);
            }
            return;
        }
        let ended = self.at >= road.end_of(self.at.step);
        let step = self.at.step + u64::from(ended && (road.trains || self.at < road.end()));
        self.motion = Motion::PlayingTo(road.end_of(step));
    }

    /// To the end of the training step before, or to the start of the first, and stops.
    pub(super) fn step_back<F: Fn(u64) -> Nanos>(&mut self, road: &Road<F>) {
        let to = match self.at.step.checked_sub(1) {
            Some(step) => road.end_of(step),
            None => Position::default(),
        };
        self.scrub(to, road);
    }

    /// How many steps are to be trained by now: this one, and some ahead so that playing need not wait.
    pub(super) fn wants(&self) -> u64 {
        let started = self.is_playing() || self.seen > Position::default();
        let ahead = match (self.motion, self.speed) {
            (Motion::Paused | Motion::PlayingTo(_), _) => 0,
            (Motion::Playing, Speed::PerSecond(_)) => 1,
            (Motion::Playing, Speed::Fastest) => 8,
        };
        let target = match self.motion {
            Motion::PlayingTo(target) => target.step,
            Motion::Paused | Motion::Playing => self.at.step,
        };
        if started { target + 1 + ahead } else { 0 }
    }

    /// Lets `passed` of real time go by; whether the playhead moved.
    pub(super) fn advance<F: Fn(u64) -> Nanos>(
        &mut self,
        passed: Duration,
        road: &Road<F>,
    ) -> bool {
        let before = self.at;
        match (self.motion, self.speed) {
            (Motion::Paused, _) => return false,
            (_, Speed::Fastest) => self.leap(road),
            (_, Speed::PerSecond(shown)) => {
                let passed = passed.min(LONGEST_FRAME).as_secs_f64();
                self.glide(Nanos((passed * shown.0 as f64) as u64), road);
            }
        }
        if let Motion::PlayingTo(target) = self.motion
            && self.at >= target
        {
            self.put(target);
            self.motion = Motion::Paused;
        }
        self.at != before
    }

    /// To the end of all that is trained.
    fn leap<F: Fn(u64) -> Nanos>(&mut self, road: &Road<F>) {
        if let Some(last) = road.trained.checked_sub(1) {
            self.put(road.end_of(last).max(self.at));
        } else if !road.trains {
            self.put(road.end());
        }
    }

    /// On by `shown` of virtual time, through as many steps as it takes, but not beyond what is trained.
    fn glide<F: Fn(u64) -> Nanos>(&mut self, shown: Nanos, road: &Road<F>) {
        let mut to = Position {
            time: self.at.time + shown,
            ..self.at
        };
        loop {
            let length = (road.length)(to.step);
            let trained = to.step < road.trained;
            let last = !road.trains && to.step + 1 >= road.trained;
            if to.time < length {
                break;
            }
            if !trained || last || length == Nanos::ZERO {
                to.time = length;
                break;
            }
            to = Position {
                step: to.step + 1,
                time: to.time - length,
            };
        }
        self.put(to);
    }

    fn put(&mut self, at: Position) {
        self.at = at;
        self.seen = self.seen.max(at);
    }
}

#[cfg(test)]
#[path = "playback_tests.rs"]
mod tests;

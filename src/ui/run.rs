//! The run that is shown: the session, its latest snapshot, the configuration asked for, and the playhead.

use std::sync::Arc;
use std::time::Duration;

use crate::session::{Command, Config, Session, Snapshot, Status, StepRecord, Timeline};
use crate::trace::Trace;
use crate::units::Nanos;

use super::edit::{Change, Field, Offer, Refusal, next, refuse};
use super::events::{event_before, next_event};
use super::history::History;
use super::playback::{Motion, Playback, Position, Road};
use super::wish::{Direction, Travel};

/// Where snapshots come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A session of one's own; dropping it ends its thread.
    Live(Session),
    /// A snapshot that never changes.
    Still(Arc<Snapshot>),
}

impl Source {
    fn snapshot(&self) -> Arc<Snapshot> {
        match self {
            Self::Live(session) => session.snapshot(),
            Self::Still(snapshot) => Arc::clone(snapshot),
        }
    }

    fn send(&self, command: Command) {
        if let Self::Live(session) = self {
            session.send(command);
        }
    }
}

/// The run that is shown.
#[derive(Debug)]
pub(super) struct Run {
    source: Source,
    snapshot: Arc<Snapshot>,
    /// What the controls show: the session may still be on its way there.
    config: Config,
    /// What was last asked for, until the session has answered; with how many were refused before.
    asked: Option<(Option<Change>, u64)>,
    history: History,
    refusal: Option<Refusal>,
    playback: Playback,
    /// How many steps were asked for.
    ordered: u64,
}

impl Run {
    /// A run from `source`.
    pub(super) fn new(source: Source, motion: Motion) -> Self {
        let snapshot = source.snapshot();
        let mut run = Self {
            config: (*snapshot.config).clone(),
            source,
            asked: None,
            history: History::default(),
            refusal: None,
            playback: Playback::new(motion),
            ordered: 0,
            snapshot,
        };
        run.restart_playback();
        run
    }

    /// What the controls show.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// What the session shows.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The last change refused, if nothing was changed since.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// What can be undone and redone.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// The playhead.
    pub(super) fn playback(&self) -> &Playback {
        &self.playback
    }

    /// The timeline of a step, as far as it is known.
    pub(super) fn timeline_of(&self, step: u64) -> Option<&Arc<Timeline>> {
        let trained = self.record_of(step).map(|record| &record.timeline);
        trained.or(self.snapshot.preview.as_ref())
    }

    /// The timeline at the playhead.
    pub(super) fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline_of(self.playback.at().step)
    }

    /// Whether its times were measured.
    pub(super) fn is_measured(&self) -> bool {
        self.timeline()
            .is_some_and(|timeline| timeline.report.times == "measured")
    }

    /// The timeline of the step before, which shows what is still to come.
    pub(super) fn timeline_before(&self) -> Option<&Arc<Timeline>> {
        let before = self.playback.at().step.checked_sub(1)?;
        self.timeline_of(before)
    }

    /// A step that was trained.
    pub(super) fn record_of(&self, step: u64) -> Option<&StepRecord> {
        let index = usize::try_from(step).ok()?;
        self.snapshot.steps.get(index).map(Arc::as_ref)
    }

    /// The steps trained up to the one at the playhead.
    pub(super) fn records(&self) -> &[Arc<StepRecord>] {
        let steps = &self.snapshot.steps;
        let seen = self.playback.seen().step as usize + 1;
        &steps[..steps.len().min(seen)]
    }

    /// Whether the playhead waits for training.
    pub(super) fn waits(&self) -> bool {
        let at = self.playback.at();
        let trained = self.snapshot.steps.len() as u64;
        self.trains()
            && self.playback.is_playing()
            && at.step >= trained
            && at.time >= self.length()
    }

    /// The makespan of the step at the playhead.
    pub(super) fn length(&self) -> Nanos {
        length_of(&self.snapshot, self.playback.at().step)
    }

    fn trains(&self) -> bool {
        self.snapshot.only_simulated.is_none() && !matches!(self.snapshot.status, Status::Failed(_))
    }

    /// Takes the latest snapshot; whether it is of another start than the one before.
    pub(super) fn poll(&mut self) -> bool {
        let latest = self.source.snapshot();
        if Arc::ptr_eq(&latest, &self.snapshot) {
            return false;
        }
        let restarted = latest.generation != self.snapshot.generation;
        self.snapshot = latest;
        if restarted {
            self.asked = None;
            self.ordered = 0;
            self.restart_playback();
            if self.config != *self.snapshot.config {
                self.order(None);
            }
        } else {
            self.hear_refusal();
        }
        restarted
    }

    fn restart_playback(&mut self) {
        let length = length_of(&self.snapshot, 0);
        self.playback.restart(length);
    }

    /// The session may find what a check beforehand did not; then the controls go back to what is run.
    fn hear_refusal(&mut self) {
        let Some((change, refused)) = self.asked.as_ref() else {
            return;
        };
        let news = self.snapshot.refusals > *refused;
        let Some(reason) = self.snapshot.refusal.as_ref().filter(|_| news) else {
            return;
        };
        let asked = change
            .clone()
            .unwrap_or(Change::Overlap(self.config.overlap));
        self.refusal = Some(Refusal {
            asked,
            reason: reason.clone(),
            offers: Vec::new(),
        });
        self.config = (*self.snapshot.config).clone();
        self.history.undo(&self.config);
        self.asked = None;
    }

    /// Lets real time pass; whether the playhead moved.
    pub(super) fn advance(&mut self, passed: Duration) -> bool {
        let moved = self.with_road(|playback, road| playback.advance(passed, road));
        let wants = self.playback.wants();
        if self.trains() && self.asked.is_none() && wants > self.ordered {
            self.ordered = wants;
            self.source.send(Command::TrainUntil(wants));
        }
        moved
    }

    fn with_road<R>(
        &mut self,
        act: impl FnOnce(&mut Playback, &Road<Box<dyn Fn(u64) -> Nanos>>) -> R,
    ) -> R {
        let snapshot = Arc::clone(&self.snapshot);
        let road: Road<Box<dyn Fn(u64) -> Nanos>> = Road {
            trained: snapshot.steps.len() as u64,
            trains: self.trains(),
            length: Box::new(move |step| length_of(&snapshot, step)),
        };
        act(&mut self.playback, &road)
    }

    /// Asks for a change, or says why it cannot be.
    pub(super) fn change(&mut self, change: Change) {
        match change.applied(&self.config) {
            Ok(config) => self.configure(config, Some(change)),
            Err(error) => self.refusal = Some(refuse(&self.config, change, &error)),
        }
    }

    /// Takes another configuration as a whole; whether it can be. A refusal is told at the schedule.
    pub(super) fn load(&mut self, config: Config) -> bool {
        let change = Change::Schedule(config.layout.schedule);
        match config.check() {
            Ok(()) => {
                self.configure(config, Some(change));
                true
            }
            Err(error) => {
                self.refusal = Some(refuse(&self.config, change, &error));
                false
            }
        }
    }

    /// Asks something beside the run.
    pub(super) fn ask(&self, question: Command) {
        self.source.send(question);
    }

    /// The next value of a control.
    pub(super) fn next(&mut self, field: Field, direction: Direction) {
        let change = next(&self.config, self.refusal.as_ref(), field, direction);
        self.change(change);
    }

    /// Takes an offer: all its changes at once.
    pub(super) fn take(&mut self, offer: &Offer) {
        let mut config = self.config.clone();
        for change in offer {
            match change.made_to(&config) {
                Ok(changed) => config = changed,
                Err(error) => {
                    self.refusal = Some(refuse(&self.config, change.clone(), &error));
                    return;
                }
            }
        }
        self.configure(config, offer.first().cloned());
    }

    fn configure(&mut self, config: Config, change: Option<Change>) {
        self.refusal = None;
        if config != self.config {
            let left = std::mem::replace(&mut self.config, config);
            self.history.leave(left);
            self.order(change);
        }
    }

    /// Asks the session for the configuration. While it is busy with another, it is asked when it has answered, so
    /// that of many changes in a row it prepares only the last.
    fn order(&mut self, change: Option<Change>) {
        if let (Source::Live(session), None) = (&self.source, &self.asked) {
            session.send(Command::Configure(Box::new(self.config.clone())));
            self.asked = Some((change, self.snapshot.refusals));
        }
    }

    /// Whether what is shown is still of another configuration than the controls show.
    pub(super) fn is_behind(&self) -> bool {
        self.asked.is_some()
    }

    /// Back to the configuration before.
    pub(super) fn undo(&mut self) {
        if let Some(config) = self.history.undo(&self.config) {
            self.config = config;
            self.refusal = None;
            self.order(None);
        }
    }

    /// And forth again.
    pub(super) fn redo(&mut self) {
        if let Some(config) = self.history.redo(&self.config) {
            self.config = config;
            self.refusal = None;
            self.order(None);
        }
    }

    /// Forgets the refused change; whether there was one.
    pub(super) fn dismiss(&mut self) -> bool {
        self.refusal.take().is_some()
    }

    /// Goes through the run.
    pub(super) fn travel(&mut self, travel: Travel) {
        let at = self.playback.at();
        let to = |time: Nanos| Position { time, ..at };
        match travel {
            Travel::PlayPause => self.play_or_pause(),
            Travel::StepForward => self.with_road(Playback::step_forward),
            Travel::StepBack => self.with_road(Playback::step_back),
            Travel::EventForward => self.go_to_event(next_event),
            Travel::EventBack => self.go_to_event(event_before),
            Travel::StepStart => self.scrub(to(Nanos::ZERO)),
            Travel::StepEnd => self.scrub(to(self.length())),
            Travel::To(time) => self.scrub(to(time.min(self.length()))),
            Travel::Faster => self.playback.faster(),
            Travel::Slower => self.playback.slower(),
            Travel::Reset => self.reset(),
        }
    }

    fn scrub(&mut self, to: Position) {
        self.with_road(|playback, road| playback.scrub(to, road));
    }

    /// Where there is nothing more to play, it plays again.
    fn play_or_pause(&mut self) {
        let at_end = !self.trains() && self.playback.at().time >= self.length();
        if at_end && !self.playback.is_playing() {
            self.scrub(Position::default());
        }
        self.playback.toggle();
    }

    fn go_to_event(&mut self, find: fn(&Trace, Nanos) -> Option<Nanos>) {
        let at = self.playback.at();
        let found = self
            .timeline()
            .and_then(|timeline| find(&timeline.trace, at.time));
        let to = match found {
            Some(time) => Position { time, ..at },
            // Over the edge of a step lies the next one.
            None if at.time > Nanos::ZERO => Position {
                step: at.step + 1,
                time: Nanos::ZERO,
            },
            None => at.step.checked_sub(1).map_or(at, |step| Position {
                step,
                time: length_of(&self.snapshot, step),
            }),
        };
        self.scrub(to);
    }

    fn reset(&mut self) {
        self.refusal = None;
        self.ordered = 0;
        self.restart_playback();
        // A start that is on its way already is as fresh; a second would be of the configuration before it.
        if self.is_behind() {
            return;
        }
        self.asked = Some((None, self.snapshot.refusals));
        self.source.send(Command::Reset);
        if let Source::Still(_) = self.source {
            self.asked = None;
        }
    }
}

fn length_of(snapshot: &Snapshot, step: u64) -> Nanos {
    let index = usize::try_from(step).unwrap_or(usize::MAX);
    let trained = snapshot.steps.get(index).map(|record| &record.timeline);
    trained
        .or(snapshot.preview.as_ref())
        .map_or(Nanos::ZERO, |timeline| timeline.trace.makespan)
}

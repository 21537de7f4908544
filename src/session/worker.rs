//! The session's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use super::config::Config;
use super::shared::Shared;
use super::snapshot::{Command, Snapshot, Status, StepRecord, Timeline};
use super::study::{Question, Study};
use super::trainer::{Inputs, TrainError, Trainer};
use crate::engine::StepError;

/// Commands that may wait to be read; whoever sends more waits.
const QUEUE: usize = 64;

/// Steps from one sample of text to the next.
const SAMPLE_EVERY: u64 = 5;

/// A running session; dropping it ends its thread, mid-step if need be.
#[derive(Debug)]
pub struct Session {
    commands: Option<SyncSender<Command>>,
    shared: Arc<Shared>,
    study: Study,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts a session; `changed` is called from its threads whenever there is a new snapshot.
    pub fn start(
        config: Config,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = sync_channel(QUEUE);
        let first = Snapshot {
            config: Arc::new(config.clone()),
            ..Snapshot::default()
        };
        let shared = Arc::new(Shared::new(first, changed));
        let study = Study::start(Arc::clone(&shared))?;
        let mut worker = Worker::new(config, inbox, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            commands: Some(commands),
            shared,
            study,
            thread: Some(thread),
        })
    }

    /// Tells it something. A new start does not wait for the step in hand, nor do questions for steps.
    pub fn send(&self, command: Command) {
        match command {
            Command::Curve(config) => self.study.ask(Question::Curve(config)),
            Command::Sweep(spec) => self.study.ask(Question::Sweep(spec)),
            Command::Guide(spec) => self.study.ask(Question::Guide(spec)),
            Command::Configure(_) | Command::Reset | Command::TrainUntil(_) => self.order(command),
        }
    }

    fn order(&self, command: Command) {
        let starts_anew = match &command {
            // One that will be refused must not end a step that then goes on.
            Command::Configure(config) => config.check().is_ok(),
            Command::Reset => true,
            Command::TrainUntil(_) | Command::Curve(_) | Command::Sweep(_) | Command::Guide(_) => {
                false
            }
        };
        if starts_anew {
            self.shared.interrupt.store(true, Ordering::Relaxed);
        }
        if let Some(commands) = &self.commands {
            // Fails only if the thread is gone, and then the last snapshot says why.
            drop(commands.send(command));
        }
    }

    /// What it shows now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Closed first, so that the thread finds no one to work for once its step has ended.
        self.commands = None;
        self.shared.interrupt.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its thread already.
            drop(thread.join());
        }
    }
}

/// The layout asked for, and one GPU beside it.
#[derive(Debug)]
struct Pair {
    trainer: Trainer,
    reference: Trainer,
}

struct Worker {
    config: Config,
    inbox: Receiver<Command>,
    shared: Arc<Shared>,
    snapshot: Snapshot,
    pair: Option<Pair>,
    target: u64,
    /// The step or the preparation in hand was ended for something newer.
    interrupted: bool,
}

impl Worker {
    fn new(config: Config, inbox: Receiver<Command>, shared: Arc<Shared>) -> Self {
        Self {
            config,
            inbox,
            shared,
            snapshot: Snapshot::default(),
            pair: None,
            target: 0,
            interrupted: false,
        }
    }

    /// Until no one is left to send commands: obeys them, and trains in between.
    fn run(&mut self) {
        self.restart(self.config.clone());
        loop {
            let next = if self.has_steps_to_do() {
                self.inbox.try_recv()
            } else {
                self.set_status(Status::Ready);
                self.inbox
                    .recv()
                    .map_err(|RecvError| TryRecvError::Disconnected)
            };
            match next {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => self.train(),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn has_steps_to_do(&self) -> bool {
        self.pair.is_some() && (self.snapshot.steps.len() as u64) < self.target
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure(config) => self.restart(*config),
            Command::Reset => self.restart(self.config.clone()),
            Command::TrainUntil(steps) => self.target = self.target.max(steps),
            // Answered by another thread.
            Command::Curve(_) | Command::Sweep(_) | Command::Guide(_) => {}
        }
    }

    /// Starts anew: first the timeline, which is there at once, then weights and the text before training.
    fn restart(&mut self, config: Config) {
        self.shared.interrupt.store(false, Ordering::Relaxed);
        match Timeline::simulated(&config, "emulated") {
            Ok(preview) => {
                self.target = 0;
                self.pair = None;
                self.snapshot = Snapshot {
                    generation: self.snapshot.generation + 1,
                    refusals: self.snapshot.refusals,
                    config: Arc::new(config.clone()),
                    preview: Some(Arc::new(preview)),
                    ..Snapshot::default()
                };
                self.config = config;
                self.publish();
                self.prepare();
            }
            // The old one stays.
            Err(error) => {
                self.snapshot.refusal = Some(error.to_string());
                self.snapshot.refusals += 1;
                // Unless what looked like a new start ended its step.
                if self.interrupted {
                    self.snapshot.steps.clear();
                    self.snapshot.generation += 1;
                    self.target = 0;
                    self.prepare();
                }
            }
        }
        self.publish();
    }

    /// Makes what trains. Whoever wants something else does not wait for it.
    fn prepare(&mut self) {
        self.interrupted = false;
        let interrupt = &self.shared.interrupt;
        let unless_interrupted = || {
            if interrupt.load(Ordering::Relaxed) {
                Err(TrainError::Step(StepError::Stopped))
            } else {
                Ok(())
            }
        };
        let prepared = Trainer::new(&self.config, &Inputs::default()).and_then(|trainer| {
            unless_interrupted()?;
            let reference = Trainer::new(&self.config.on_one_gpu(), &Inputs::default())?;
            let text = trainer.sample(interrupt)?;
            unless_interrupted()?;
            self.snapshot.text_before = Some(text);
            Ok(Pair { trainer, reference })
        });
        match prepared {
            Ok(pair) => self.pair = Some(pair),
            Err(TrainError::Step(StepError::Stopped)) => self.interrupted = true,
            Err(error) if error.is_refusal() => {
                self.snapshot.only_simulated = Some(error.to_string());
            }
            Err(error) => self.snapshot.status = Status::Failed(error.to_string()),
        }
    }

    fn train(&mut self) {
        self.set_status(Status::Training);
        match self.step() {
            Ok(()) => {}
            Err(TrainError::Step(StepError::Stopped)) => self.interrupted = true,
            Err(error) => {
                self.pair = None;
                self.snapshot.status = Status::Failed(error.to_string());
            }
        }
        self.publish();
    }

    fn step(&mut self) -> Result<(), TrainError> {
        let Some(Pair { trainer, reference }) = &mut self.pair else {
            return Ok(());
        };
        let interrupt = &self.shared.interrupt;
        let stepped = trainer.step(false, interrupt);
        let both = stepped.and_then(|outcome| Ok((outcome, reference.step(false, interrupt)?)));
        let (outcome, alone) = match both {
            Ok(both) => both,
            Err(error) => {
                // Half a step is no state to go on from; what interrupted it starts anew.
                self.pair = None;
                return Err(error);
            }
        };
        let record = StepRecord {
            reference_loss: Some(alone.loss),
            ..trainer.record(&outcome)?
        };
        self.snapshot.steps.push(Arc::new(record));
        if (self.snapshot.steps.len() as u64).is_multiple_of(SAMPLE_EVERY) {
            let text = trainer.sample(interrupt)?;
            if !interrupt.load(Ordering::Relaxed) {
                self.snapshot.text_now = Some(text);
            }
        }
        Ok(())
    }

    /// Says what it is doing, if that is news; a failure stays until the next start.
    fn set_status(&mut self, status: Status) {
        if self.snapshot.status != status && !matches!(self.snapshot.status, Status::Failed(_)) {
            self.snapshot.status = status;
            self.publish();
        }
    }

    /// All but what is answered beside the run.
    fn publish(&self) {
        self.shared.change(|latest| {
            let (curve, sweep) = (latest.curve.take(), latest.sweep.take());
            let guide = latest.guide.take();
            *latest = Snapshot {
                curve,
                sweep,
                guide,
                ..self.snapshot.clone()
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Device, SweepSpec, SweepState};
    use std::time::Duration;

    /// Waits, at most a minute, until a snapshot is as wanted.
    fn until(session: &Session, wanted: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        for _ in 0..6000 {
            let snapshot = session.snapshot();
            if wanted(&snapshot) {
                return snapshot;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never came: {:?}", session.snapshot().status);
    }

    fn small() -> Config {
        let mut config = Config::default();
        config.layout.micro_batches = 2;
        config.layout.micro_batch_size = 1;
        config
    }

    #[test]
    fn ranks_that_are_threads_train_alike_and_a_failure_leaves_the_session_usable() {
        let mut config = Config {
            device: Device::Cpu,
            ..small()
        };
        let session = Session::start(config.clone(), || {}).unwrap();
        session.send(Command::TrainUntil(2));
        let snapshot = until(&session, |snapshot| snapshot.steps.len() == 2);
        for step in &snapshot.steps {
            assert!((step.loss - step.reference_loss.unwrap()).abs() < 1e-4);
            assert_eq!(step.timeline.report.times, "measured");
            assert_eq!(step.timeline.report.clock, "wall");
        }
        // The weights are no numbers after one step, and the loss is none in the next.
        let good = config.clone();
        config.model.optimizer.lr = f64::MAX;
        session.send(Command::Configure(Box::new(config)));
        session.send(Command::TrainUntil(3));
        let failed = |snapshot: &Snapshot| matches!(snapshot.status, Status::Failed(_));
        let snapshot = until(&session, failed);
        let Status::Failed(why) = &snapshot.status else {
            unreachable!("just looked at");
        };
        assert!(why.contains("is not a finite number"), "{why}");
        session.send(Command::Configure(Box::new(good)));
        session.send(Command::TrainUntil(1));
        until(&session, |snapshot| {
            snapshot.steps.len() == 1 && snapshot.status == Status::Ready
        });
    }

    #[test]
    fn it_trains_as_one_gpu_does_with_equal_replicas() {
        let session = Session::start(small(), || {}).unwrap();
        session.send(Command::TrainUntil(3));
        let snapshot = until(&session, |snapshot| snapshot.steps.len() == 3);
        for step in &snapshot.steps {
            assert!((step.loss - step.reference_loss.unwrap()).abs() < 1e-4);
            assert_eq!(step.replicas.len(), 2);
            assert_eq!(step.replicas[0], step.replicas[1]);
        }
        assert!(snapshot.text_before.is_some());
    }

    #[test]
    fn a_refused_configuration_leaves_the_old_one_at_work() {
        let session = Session::start(small(), || {}).unwrap();
        let mut wrong = small();
        wrong.layout.tp = 3;
        session.send(Command::Configure(Box::new(wrong)));
        let snapshot = until(&session, |snapshot| snapshot.refusal.is_some());
        assert!(
            snapshot
                .refusal
                .as_deref()
                .unwrap()
                .contains("legal tp: 1, 2, 4, 8")
        );
        assert_eq!(*snapshot.config, small());
    }

    #[test]
    fn a_new_start_does_not_wait_for_a_long_step() {
        let mut large = small();
        large.layout.micro_batches = 512;
        large.layout.micro_batch_size = 8;
        let session = Session::start(large, || {}).unwrap();
        session.send(Command::TrainUntil(1));
        until(&session, |snapshot| snapshot.status == Status::Training);
        session.send(Command::Configure(Box::new(small())));
        session.send(Command::TrainUntil(1));
        let snapshot = until(&session, |snapshot| snapshot.steps.len() == 1);
        assert_eq!(
            *snapshot.config,
            small(),
            "the long step was not waited for"
        );
        // Dropping it mid-step joins its thread.
        session.send(Command::TrainUntil(1_000_000));
    }

    #[test]
    fn a_refusal_found_only_by_the_plan_leaves_the_old_one_at_work() {
        let session = Session::start(small(), || {}).unwrap();
        session.send(Command::TrainUntil(1_000_000));
        until(&session, |snapshot| !snapshot.steps.is_empty());
        // Each rank's own order is sound, but together they wait in a circle.
        let circle = "0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0";
        let mut wrong = small();
        wrong.layout.pp = 2;
        wrong.custom = Some(crate::schedule::Schedule::from_csv(circle).unwrap());
        wrong.layout.micro_batches = 2;
        session.send(Command::Configure(Box::new(wrong)));
        until(&session, |snapshot| snapshot.refusal.is_some());
        session.send(Command::TrainUntil(2));
        let snapshot = until(&session, |snapshot| snapshot.steps.len() >= 2);
        assert_eq!(*snapshot.config, small());
    }

    #[test]
    fn what_cannot_be_trained_is_simulated_and_said() {
        let mut config = small();
        config.model = crate::shape::ModelShape::preset("gpt3-175b").unwrap();
        let session = Session::start(config, || {}).unwrap();
        let snapshot = until(&session, |snapshot| snapshot.only_simulated.is_some());
        assert!(snapshot.preview.is_some());
    }

    #[test]
    fn questions_are_answered_beside_the_training() {
        let session = Session::start(small(), || {}).unwrap();
        session.send(Command::TrainUntil(1_000_000));
        session.send(Command::Curve(Box::new(small())));
        let spec = SweepSpec::around(&small(), 8);
        session.send(Command::Sweep(Some(Box::new(spec))));
        let whole = |snapshot: &Snapshot| {
            let curve = snapshot.curve.as_ref();
            matches!(snapshot.sweep, Some(SweepState::Found { .. }))
                && curve.is_some_and(|curve| curve.points.iter().any(|&(m, _)| m == 16))
        };
        let snapshot = until(&session, whole);
        let curve = snapshot.curve.as_ref().unwrap();
        assert_eq!(*curve.of, small());
        for pair in curve.points.windows(2) {
            assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{pair:?}");
        }
        // The run's own point is its figure.
        let own = curve.points.iter().find(|(m, _)| *m == 2).unwrap();
        let preview = snapshot.preview.as_ref().unwrap();
        assert_eq!(own.1, preview.report.bubble_of_total);
        session.send(Command::Sweep(None));
        until(&session, |snapshot| snapshot.sweep.is_none());
    }

    #[test]
    fn a_long_sweep_ends_when_no_one_wants_it() {
        let session = Session::start(small(), || {}).unwrap();
        let mut config = small();
        config.model = crate::shape::ModelShape::preset("gpt3-175b").unwrap();
        config.hardware = crate::hardware::Hardware::profile("h100").unwrap();
        let spec = SweepSpec {
            global_batch: 3072,
            top: 1000,
            ..SweepSpec::around(&config, 3072)
        };
        session.send(Command::Sweep(Some(Box::new(spec))));
        let far = |snapshot: &Snapshot| match &snapshot.sweep {
            Some(SweepState::Running { done, .. }) => *done >= 500,
            Some(SweepState::Found { .. } | SweepState::Refused(_)) => panic!("it was no long one"),
            None => false,
        };
        until(&session, far);
        session.send(Command::Sweep(None));
        until(&session, |snapshot| snapshot.sweep.is_none());
        // Another is found although the first would have gone on for long.
        session.send(Command::Sweep(Some(Box::new(SweepSpec::around(
            &small(),
            8,
        )))));
        let found = |snapshot: &Snapshot| matches!(snapshot.sweep, Some(SweepState::Found { .. }));
        until(&session, found);
        // Dropping it joins both threads.
    }
}

//! The session's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::config::{Config, ConfigError};
use super::report::Report;
use super::snapshot::{Command, Snapshot, Status, Timeline};
use crate::engine::simulate;

/// Commands that may wait to be read; whoever sends more waits.
const QUEUE: usize = 64;

/// A running session; dropping it ends its thread.
#[derive(Debug)]
pub struct Session {
    commands: Option<SyncSender<Command>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
struct Shared {
    snapshot: Mutex<Arc<Snapshot>>,
    stop: AtomicBool,
    changed: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Session {
    /// Starts a session; `changed` is called from its thread whenever there is a new snapshot.
    pub fn start(
        config: Config,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = sync_channel(QUEUE);
        let first = Snapshot {
            config: Arc::new(config.clone()),
            ..Snapshot::default()
        };
        let shared = Arc::new(Shared {
            snapshot: Mutex::new(Arc::new(first)),
            stop: AtomicBool::new(false),
            changed: Box::new(changed),
        });
        let mut worker = Worker::new(config, inbox, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            commands: Some(commands),
            shared,
            thread: Some(thread),
        })
    }

    /// Tells it something.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // Fails only if the thread is gone, and then the last snapshot says why.
            drop(commands.send(command));
        }
    }

    /// What it shows now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(
            &self
                .shared
                .snapshot
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its thread already.
            drop(thread.join());
        }
    }
}

struct Worker {
    config: Config,
    inbox: Receiver<Command>,
    shared: Arc<Shared>,
    snapshot: Snapshot,
    target: u64,
}

impl Worker {
    fn new(config: Config, inbox: Receiver<Command>, shared: Arc<Shared>) -> Self {
        Self {
            config,
            inbox,
            shared,
            snapshot: Snapshot::default(),
            target: 0,
        }
    }

    fn run(&mut self) {
        self.restart();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let command = match self.inbox.try_recv() {
                Ok(command) => Some(command),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => match self.inbox.recv() {
                    Ok(command) => Some(command),
                    Err(_) => return,
                },
            };
            if let Some(command) = command {
                self.obey(command);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure(config) => {
                self.config = *config;
                self.restart();
            }
            Command::Reset => self.restart(),
            Command::TrainUntil(steps) => self.target = self.target.max(steps),
        }
    }

    fn restart(&mut self) {
        match timeline(&self.config, "emulated") {
            Ok(preview) => {
                self.target = 0;
                self.snapshot = Snapshot {
                    generation: self.snapshot.generation + 1,
                    config: Arc::new(self.config.clone()),
                    status: Status::Ready,
                    preview: Some(Arc::new(preview)),
                    ..Snapshot::default()
                };
            }
            Err(error) => self.snapshot.refusal = Some(error.to_string()),
        }
        self.publish();
    }

    fn publish(&self) {
        let snapshot = Arc::new(self.snapshot.clone());
        *self
            .shared
            .snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = snapshot;
        (self.shared.changed)();
    }
}

/// The simulated timeline of a configuration.
fn timeline(config: &Config, engine: &str) -> Result<Timeline, ConfigError> {
    let plan = config.plan()?;
    let trace = simulate(&plan, config.pricing().as_ref());
    let report = Report::new(config, &plan, &trace, engine)?;
    let program = plan.program();
    let (stages, holders) = (program.stages.clone(), program.holders.clone());
    Ok(Timeline {
        trace,
        report,
        formula: config.bubble_formula(),
        stages,
        holders,
    })
}

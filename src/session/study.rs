//! What is asked beside the run: simulations on a thread of their own, so that neither waits for the other.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use super::config::Config;
use super::guide::{GuideError, GuideSpec, guide};
use super::shared::Shared;
use super::snapshot::{Curve, GuideState, SweepState};
use super::sweep::{SweepSpec, sweep};
use super::trainer::simulate_step;

/// Questions that may wait to be read: seconds of a number that is dragged.
const QUEUE: usize = 256;
/// A sweep tells its progress every so many layouts.
const TELL_EVERY: usize = 100;
/// The most points of a curve.
const MOST_POINTS: usize = 24;

/// What is asked.
#[derive(Debug)]
pub(super) enum Question {
    /// The bubble of a configuration against its micro-batches.
    Curve(Box<Config>),
    /// Every legal layout; the last one asked for counts. Or no sweep any more.
    Sweep(Option<Box<SweepSpec>>),
    /// The layout to take; the last one asked for counts. Or no such question any more.
    Guide(Option<Box<GuideSpec>>),
}

/// The thread that answers; dropping it ends it, mid-sweep if need be.
#[derive(Debug)]
pub(super) struct Study {
    /// Whoever asks hardly waits: a sweep ends when another is asked for.
    questions: Option<SyncSender<(Question, u64)>>,
    /// Rises with each question about sweeps or the layout to take: those before are no longer wanted.
    outdated: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Study {
    pub(super) fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let (questions, inbox) = sync_channel(QUEUE);
        let outdated = Arc::new(AtomicU64::new(0));
        let mut student = Student {
            inbox,
            shared,
            outdated: Arc::clone(&outdated),
            curve: None,
            sweep: None,
            guide: None,
        };
        let thread = std::thread::Builder::new()
            .name("study".to_owned())
            .spawn(move || student.run())?;
        Ok(Self {
            questions: Some(questions),
            outdated,
            thread: Some(thread),
        })
    }

    pub(super) fn ask(&self, question: Question) {
        // A long question ends when another one is asked: only one of them is looked at.
        let long = u64::from(matches!(question, Question::Sweep(_) | Question::Guide(_)));
        let count = self.outdated.fetch_add(long, Ordering::Relaxed) + long;
        if let Some(questions) = &self.questions {
            // Fails only if the thread is gone, which has told why.
            drop(questions.send((question, count)));
        }
    }
}

impl Drop for Study {
    fn drop(&mut self) {
        self.questions = None;
        self.outdated.fetch_add(1, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its thread already.
            drop(thread.join());
        }
    }
}

/// A curve in the making.
#[derive(Debug)]
struct Plot {
    config: Arc<Config>,
    /// Micro-batches still to be tried, the last first.
    left: Vec<usize>,
}

struct Student {
    inbox: Receiver<(Question, u64)>,
    shared: Arc<Shared>,
    outdated: Arc<AtomicU64>,
    curve: Option<Plot>,
    /// With the count of questions about sweeps when it was asked for.
    sweep: Option<(Box<SweepSpec>, u64)>,
    /// The same of the layout to take.
    guide: Option<(Box<GuideSpec>, u64)>,
}

impl Student {
    /// Until no one is left to ask.
    fn run(&mut self) {
        loop {
            let idle = self.curve.is_none() && self.sweep.is_none() && self.guide.is_none();
            let next = if idle {
                let received = self.inbox.recv();
                received.map_err(|RecvError| TryRecvError::Disconnected)
            } else {
                self.inbox.try_recv()
            };
            match next {
                Ok((Question::Curve(config), _)) => self.start_curve(*config),
                Ok((Question::Sweep(Some(spec)), count)) => self.sweep = Some((spec, count)),
                Ok((Question::Sweep(None), _)) => {
                    self.sweep = None;
                    self.shared.change(|snapshot| snapshot.sweep = None);
                }
                Ok((Question::Guide(Some(spec)), count)) => self.guide = Some((spec, count)),
                Ok((Question::Guide(None), _)) => {
                    self.guide = None;
                    self.shared.change(|snapshot| snapshot.guide = None);
                }
                Err(TryRecvError::Empty) => self.work(),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// A point of the curve, or all of a long question.
    fn work(&mut self) {
        if let Some(plot) = &mut self.curve {
            match plot.left.pop() {
                Some(micro_batches) => self.add_point(micro_batches),
                None => self.curve = None,
            }
        } else if let Some((spec, count)) = self.sweep.take() {
            self.run_sweep(&spec, count);
        } else if let Some((spec, count)) = self.guide.take() {
            self.run_guide(*spec, count);
        }
    }

    fn start_curve(&mut self, config: Config) {
        let config = Arc::new(config);
        let mut left = micro_batches_of(config.layout.micro_batches);
        left.reverse();
        self.shared.change(|snapshot| {
            snapshot.curve = Some(Curve {
                of: Arc::clone(&config),
                points: Vec::new(),
            });
        });
        self.curve = Some(Plot { config, left });
    }

    /// Not every schedule takes every number of micro-batches.
    fn add_point(&self, micro_batches: usize) {
        let Some(plot) = &self.curve else { return };
        let mut config = (*plot.config).clone();
        config.layout.micro_batches = micro_batches;
        let Ok(trace) = simulate_step(&config) else {
            return;
        };
        let bubble = trace.bubbles().of_total;
        self.shared.change(|snapshot| {
            if let Some(curve) = &mut snapshot.curve {
                curve.points.push((micro_batches, bubble));
            }
        });
    }

    fn run_sweep(&self, spec: &SweepSpec, count: u64) {
        let tell = |state: SweepState| {
            self.shared.change(|snapshot| snapshot.sweep = Some(state));
        };
        let found = sweep(spec, &mut |done, all| {
            self.goes_on(count, (done, all), || {
                tell(SweepState::Running { done, all });
            })
        });
        match found {
            // Stopped: something newer is wanted.
            Ok(None) => {}
            Ok(Some(found)) => tell(SweepState::Found {
                spec: Arc::new(spec.clone()),
                found: Arc::new(found),
            }),
            Err(error) => tell(SweepState::Refused(error.to_string())),
        }
    }

    fn run_guide(&self, spec: GuideSpec, count: u64) {
        let tell = |state: GuideState| {
            self.shared.change(|snapshot| snapshot.guide = Some(state));
        };
        let found = guide(&spec, &mut |done, all| {
            self.goes_on(count, (done, all), || {
                tell(GuideState::Running { done, all });
            })
        });
        let spec = Arc::new(spec);
        match found {
            // Stopped: something newer is wanted.
            Ok(None) => {}
            Ok(Some(found)) => tell(GuideState::Found {
                spec,
                found: Arc::new(found),
            }),
            Err(error) => tell(GuideState::Refused {
                spec,
                why: error.to_string(),
                fewest: fewest(&error),
            }),
        }
    }

    /// Whether the long question of that count is still wanted; tells its progress every so often.
    fn goes_on(&self, count: u64, (done, all): (usize, usize), tell: impl Fn()) -> ControlFlow<()> {
        if self.outdated.load(Ordering::Relaxed) != count {
            return ControlFlow::Break(());
        }
        if done.is_multiple_of(TELL_EVERY) || all.saturating_sub(done) < TELL_EVERY {
            tell();
        }
        ControlFlow::Continue(())
    }
}

/// GPUs that would do, and the global batch with them.
fn fewest(error: &GuideError) -> Option<(usize, usize)> {
    match error {
        GuideError::NothingFits { fewest, .. } => {
            let fewest = fewest.as_ref()?;
            Some((fewest.gpus, fewest.global_batch))
        }
        GuideError::Config(_) | GuideError::NoLayout { .. } => None,
    }
}

/// How far a plot of the bubble against micro-batches goes for a run of `now`.
pub fn most_micro_batches(now: usize) -> usize {
    now.saturating_mul(2).clamp(16, 4096)
}

/// The numbers of micro-batches that are tried: all up to a few, then ever fewer, and `now`.
fn micro_batches_of(now: usize) -> Vec<usize> {
    let most = most_micro_batches(now);
    let steps = MOST_POINTS as f64 - 1.0;
    let growth = (most as f64).powf(1.0 / steps);
    let mut all: Vec<usize> = (0..MOST_POINTS)
        .map(|step| growth.powf(step as f64).round() as usize)
        // Divisible by what schedules ask for, where that is near.
        .chain([2, 4, 8, 12, 16, 24, 32, 48, 64, now])
        .filter(|&count| (1..=most).contains(&count))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_micro_batches_are_all_tried_and_many_in_growing_steps() {
        let few = micro_batches_of(8);
        assert!(few.starts_with(&[1, 2, 3, 4, 5, 6]) && few.ends_with(&[14, 16]));
        let many = micro_batches_of(1000);
        assert!(many.len() < 40 && many.contains(&1000) && many.ends_with(&[2000]));
    }
}

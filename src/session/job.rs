//! Long work on a thread of its own, whose progress is seen; it is told to end when nobody wants it any longer.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// How far work is, and whether it is still wanted.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
    all: AtomicUsize,
    unwanted: AtomicBool,
}

impl Progress {
    /// Tells how far it is; breaks if nobody wants it any longer.
    pub fn tell(&self, done: usize, all: usize) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
        if self.unwanted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Work under way. Dropping it ends and joins its thread.
#[derive(Debug)]
pub struct Job<T> {
    progress: Arc<Progress>,
    result: Arc<Mutex<Option<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Job<T> {
    /// Starts `work` on a thread called `name`; `changed` is called there when it is done.
    pub fn start(
        name: &str,
        work: impl FnOnce(&Progress) -> T + Send + 'static,
        changed: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let result = Arc::new(Mutex::new(None));
        let (told, made) = (Arc::clone(&progress), Arc::clone(&result));
        let run = move || {
            let done = work(&told);
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            changed();
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)?;
        Ok(Self {
            progress,
            result,
            thread: Some(thread),
        })
    }

    /// How much is done, and of how much.
    pub fn progress(&self) -> (usize, usize) {
        let progress = &self.progress;
        (
            progress.done.load(Ordering::Relaxed),
            progress.all.load(Ordering::Relaxed),
        )
    }

    /// What came of it, once it is done; nothing while it is under way.
    pub fn take(&mut self) -> Option<T> {
        self.result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether its thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.progress.unwanted.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to give, and has ended.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_done_and_ends_when_it_is_not_wanted() {
        let mut job =
            Job::start("count", |progress| progress.tell(2, 3).is_continue(), || ()).unwrap();
        let mut tries = 0;
        let done = loop {
            if let Some(done) = job.take() {
                break done;
            }
            tries += 1;
            assert!(tries < 10_000, "it was never done");
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        assert!(done);
        assert_eq!(job.progress(), (2, 3));
        let endless = |progress: &Progress| {
            while progress.tell(0, 0).is_continue() {
                std::thread::yield_now();
            }
        };
        drop(Job::start("endless", endless, || ()).unwrap());
    }
}

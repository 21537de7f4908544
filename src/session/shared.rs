//! The snapshot that a session's threads write and its owner reads.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::snapshot::Snapshot;

/// What a session's threads and its owner share.
pub(super) struct Shared {
    snapshot: Mutex<Arc<Snapshot>>,
    /// Ends the step being trained: something newer is wanted.
    pub(super) interrupt: AtomicBool,
    changed: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(first: Snapshot, changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            snapshot: Mutex::new(Arc::new(first)),
            interrupt: AtomicBool::new(false),
            changed: Box::new(changed),
        }
    }

    /// The latest.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a new one of the latest.
    pub(super) fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut latest = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot = Snapshot::clone(&latest);
        change(&mut snapshot);
        *latest = Arc::new(snapshot);
        drop(latest);
        (self.changed)();
    }
}

//! Locks and atomics: the standard ones, or those of the model checker, which tries every order of threads and stale
//! values of atomics too.

#[cfg(tsan)]
pub(super) use crate::seen_locks::{Condvar, Mutex, MutexGuard};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::Arc;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
#[cfg(not(any(loom, tsan)))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks what cannot be left broken: nothing panics while it holds the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stands for memory whose every touch the model checker is told of: it finds two that nothing orders.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(super) struct Touched(loom::cell::UnsafeCell<()>);

#[cfg(loom)]
impl Touched {
    /// The memory is written.
    pub(super) fn touch(&self) {
        self.0.with_mut(|_| ());
    }
}

#[cfg(loom)]
#[expect(unsafe_code, reason = "the checker's cell is not Sync of itself")]
// SAFETY: there is nothing in it.
unsafe impl Sync for Touched {}

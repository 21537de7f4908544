//! Locks for ThreadSanitizer: it sees only what it was built into, and the standard library's locks are not among that.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::LockResult;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::wall::Stopwatch;

/// A lock for whose turn a thread looks again and again.
pub(crate) struct Mutex<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: whoever holds the lock has the value alone.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Never poisoned.
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        while self.locked.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        Ok(MutexGuard(self))
    }
}

/// Holds a lock.
pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

/// Wakes all that wait, for one or all.
pub(crate) struct Condvar(AtomicU32);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn notify_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for a notification, or as long as `left`.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        left: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let mutex = guard.0;
        let seen = self.0.load(Ordering::Relaxed);
        drop(guard);
        let since = Stopwatch::start();
        while self.0.load(Ordering::Relaxed) == seen
            && u128::from(since.elapsed().0) < left.as_nanos()
        {
            thread::sleep(Duration::from_micros(20));
        }
        match mutex.lock() {
            Ok(guard) => Ok((guard, ())),
            Err(_) => unreachable!("it is never poisoned"),
        }
    }
}

//! The wall clock: the one place that reads it.

use std::time::Instant;

use crate::units::Nanos;

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[expect(
        clippy::disallowed_methods,
        reason = "measured durations need a wall clock, and this is the place that has it"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Until now.
    pub(crate) fn elapsed(self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos().min(u128::from(u64::MAX)) as u64)
    }
}

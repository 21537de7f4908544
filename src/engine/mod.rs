//! Engines: what executes a plan and emits a trace. The same trace, whichever it is.

mod clock;
mod disturb;
mod emulate;
mod estimate;
mod gaps;
mod simulate;

pub use disturb::{Disturbance, Slow, SlowPair};
pub use emulate::{EmulateError, Emulator, Outcome};
pub use estimate::{Estimate, estimate};
pub use simulate::{measured, simulate, simulate_disturbed};

#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod tests;

//! Engines: what executes a plan and emits a trace. The same trace, whichever it is.

#[cfg(not(target_arch = "wasm32"))]
mod calibrate;
mod clock;
mod disturb;
mod emulate;
mod estimate;
mod gaps;
#[cfg(not(target_arch = "wasm32"))]
mod parallel;
mod ranks;
mod simulate;
mod step;
mod training;

#[cfg(not(target_arch = "wasm32"))]
pub use calibrate::{CollectiveTime, Speeds, calibrate};
pub use clock::{Times, recorded};
pub use disturb::{Disturbance, Slow, SlowPair};
pub use emulate::Emulator;
pub use estimate::{Estimate, estimate};
#[cfg(not(target_arch = "wasm32"))]
pub use parallel::{Parallel, TIMEOUT};
pub use simulate::{measured, simulate, simulate_disturbed};
pub use step::{Measured, Outcome, StepError};
pub use training::{Training, cores};

#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tiny;

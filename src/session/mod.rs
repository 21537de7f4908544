//! A training session: commands in, snapshots out. Owns the thread that trains.
//!
//! Whoever shows it (the window, a test, later a browser) sends a [`Command`] and reads the latest
//! [`Snapshot`]; both are plain data. Nothing here knows a widget.

mod beside;
#[cfg(not(target_arch = "wasm32"))]
mod calibrate;
mod config;
mod costs;
#[cfg(not(target_arch = "wasm32"))]
mod devices;
mod fit;
mod guide;
mod job;
mod prediction;
mod report;
mod settings;
mod shared;
mod snapshot;
mod study;
mod sweep;
#[cfg(test)]
mod trace_tests;
mod traffic;
mod trainer;
mod validate;
mod words;
mod worker;

pub use beside::listed;
#[cfg(not(target_arch = "wasm32"))]
pub use calibrate::Calibration;
pub use config::{Clock, Config, ConfigError, Costs, Device};
#[cfg(not(target_arch = "wasm32"))]
pub use devices::{DeviceKind, Gpu, Machine};
pub use fit::what_would_fit;
pub use guide::{
    Allowed, Fact, Fault, Fewest, Guide, GuideError, GuideSpec, Measured, Reason, Rejected,
    TOLERANCE, Topic, Value, Verdict, Way, guide,
};
pub use job::{Job, Progress};
pub use prediction::{Difference, Prediction};
pub use report::{MemoryReport, RankReport, Report, StepReport};
pub use settings::{Framework, settings_of, unsaid};
pub use snapshot::{
    Command, Curve, GuideState, Replica, Snapshot, Status, StepRecord, SweepState, Timeline,
};
pub use study::most_micro_batches;
pub use sweep::{Fixed, Sweep, SweepRow, SweepSpec, TOP, sweep};
pub use traffic::TrafficReport;
pub use trainer::{Inputs, TrainError, Trained, Trainer, save_weights, train};
pub use validate::{Comparison, Validation, validate};
pub use words::Figure;
pub use worker::Session;

//! Shardscope: see how large language models are trained on many GPUs.
//!
//! A schedule, a mesh and a model's shape become a plan; an engine runs the plan and emits a trace;
//! the window, the pictures and the figures read the trace. `ARCHITECTURE.md` has the layers.

#[cfg(feature = "desktop")]
pub mod cli;

pub mod comm;
pub mod engine;
#[cfg(feature = "desktop")]
pub mod export;
pub mod hardware;
pub mod lesson;
pub mod mesh;
pub mod model;
pub mod plan;
pub mod scene;
pub mod schedule;
pub mod session;
pub mod shape;
pub mod trace;
#[cfg(feature = "desktop")]
pub mod ui;
pub mod units;
mod wall;
pub mod words;

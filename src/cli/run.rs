//! `shardscope run`: a small transformer, trained for real.

use super::error::{CliError, CliResult};
use super::options::RunOptions;

/// Trains, and delivers the figures and the timeline.
pub(super) fn run(_options: &RunOptions) -> CliResult {
    Err(CliError::failed("not yet"))
}

//! `shardscope simulate`: a step from a cost model.

use super::error::CliResult;
use super::figures;
use super::options::SimulateOptions;
use super::output::deliver;
use crate::session::Timeline;

/// Reckons a step, and delivers its figures and timeline.
pub(super) fn run(options: &SimulateOptions) -> CliResult {
    let Timeline { trace, report, .. } = Timeline::simulated(&options.config, "simulated")?;
    deliver(&report, &figures::text(&report), &trace, &options.output)
}

//! `shardscope simulate`: a step from a cost model.

use super::error::{CliError, CliResult};
use super::figures;
use super::options::SimulateOptions;
use super::output::deliver;
use crate::engine;
use crate::session::{Config, Report};
use crate::trace::Trace;

/// Reckons a step, and delivers its figures and timeline.
pub(super) fn run(options: &SimulateOptions) -> CliResult {
    let (trace, report) = step(&options.config)?;
    deliver(&report, &figures::text(&report), &trace, &options.output)
}

/// One simulated step with its figures.
pub(super) fn step(config: &Config) -> CliResult<(Trace, Report)> {
    let plan = config.plan()?;
    let trace = engine::simulate(&plan, config.pricing().as_ref());
    let report = Report::new(config, &plan, &trace, "simulated").map_err(CliError::failed)?;
    Ok((trace, report))
}

//! `shardscope simulate`: a step from a cost model.

use super::error::CliResult;
use super::figures;
use super::options::SimulateOptions;
use super::output::deliver;
use crate::session::{Config, Timeline, what_would_fit};

/// Reckons a step, and delivers its figures and timeline.
pub(super) fn run(options: &SimulateOptions) -> CliResult {
    let Timeline { trace, report, .. } = Timeline::simulated(&options.config, "simulated")?;
    let mut text = figures::text(&report);
    if !report.fits {
        text += &would_fit(&options.config);
    }
    deliver(&report, &text, &trace, &options.output)
}

fn would_fit(config: &Config) -> String {
    let offers = what_would_fit(config);
    let lines = offers
        .iter()
        .map(|(change, memory)| format!("  {change} ({memory})\n"));
    match offers.len() {
        0 => String::new(),
        _ => format!(
            "\nit does not fit; it would with\n{}",
            lines.collect::<String>()
        ),
    }
}

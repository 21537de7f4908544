//! What the cost model predicted of a step, beside what it took on this machine.

use serde::Serialize;

use super::config::{Clock, Config, ConfigError, Costs, Device};
use super::report::Report;
use super::snapshot::Timeline;
use crate::hardware::Precision;

/// One part of a rank's time, the mean of all ranks: predicted and measured, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Which part.
    pub part: &'static str,
    /// As predicted.
    pub predicted_s: f64,
    /// As measured.
    pub measured_s: f64,
    /// What makes them differ.
    pub because: &'static str,
}

/// A prediction beside what was measured.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The predicted step.
    pub timeline: Timeline,
    /// Where the two differ, in the order in which a rank's time is told; the parts sum to the steps.
    pub differences: Vec<Difference>,
}

impl Prediction {
    /// Of the step that `measured` is of.
    pub fn of(measured: &Report) -> Result<Self, ConfigError> {
        let config = Config {
            device: Device::Emulated,
            clock: Clock::Modelled,
            costs: Costs::Model,
            // What is trained here is computed in 32 bits.
            precision: Precision::F32,
            ..measured.config.clone()
        };
        let timeline = Timeline::simulated(&config, "simulated")?;
        let differences = differences(&timeline.report, measured);
        Ok(Self {
            timeline,
            differences,
        })
    }
}

fn differences(predicted: &Report, measured: &Report) -> Vec<Difference> {
    let mean = |report: &Report, of: fn(&super::report::RankReport) -> f64| {
        let ranks = &report.ranks;
        let sum: f64 = ranks
            .iter()
            .map(|rank| of(rank) * f64::from(rank.count))
            .sum();
        sum / ranks
            .iter()
            .map(|rank| f64::from(rank.count))
            .sum::<f64>()
            .max(1.0)
    };
    let part = |part, because, of: fn(&super::report::RankReport) -> f64| Difference {
        part,
        predicted_s: mean(predicted, of),
        measured_s: mean(measured, of),
        because,
    };
    vec![
        part(
            "compute",
            "rates by size, caches, and what it takes to launch each operation",
            |rank| rank.compute_s,
        ),
        part(
            "transfer",
            "how fast messages and collectives move, and how soon who waits for them is awake",
            |rank| rank.transfer_s,
        ),
        part(
            "waiting",
            "ranks that come late to a collective or to the end of the step",
            |rank| rank.wait_s,
        ),
        part(
            "idle",
            "the bubble: passes that others took longer for than was thought",
            |rank| rank.idle_s,
        ),
    ]
}

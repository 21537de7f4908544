//! A board for real: the configuration that trains by it, and the timeline as it was drawn.

use super::board::Board;
use super::exchange::ExchangeError;
use crate::engine::Disturbance;
use crate::plan::Layout;
use crate::schedule::ScheduleKind;
use crate::session::{Config, ConfigError, Costs, Timeline};
use crate::shape::ModelShape;
use crate::trace::{Span, Stream, Trace};
use crate::units::Nanos;

/// What is said to have made a drawn timeline, in place of an engine.
pub const DRAWN: &str = "drawn";

impl Board {
    /// `base` as it trains by this board's order: one replica of nano, a pipeline rank each GPU.
    pub fn to_config(&self, base: &Config) -> Result<Config, ExchangeError> {
        let schedule = self.to_schedule()?;
        let layout = Layout {
            dp: 1,
            tp: 1,
            pp: schedule.pp(),
            micro_batches: schedule.micro_batches(),
            chunks: schedule.chunks(),
            schedule: ScheduleKind::one_f_one_b(schedule.chunks()),
            ..base.layout
        };
        // Ships with the program.
        let model = ModelShape::preset("nano").unwrap_or_else(|_| base.model.clone());
        Ok(Config {
            layout,
            model,
            layers_per_stage: None,
            disturbance: Disturbance::default(),
            custom: Some(schedule),
            ..base.clone()
        })
    }

    /// The timeline as it was drawn, each pass at its earliest: even stages, sends that take no time, and a unit as long as it
    /// is on average in `real`, the timeline of `config`.
    pub fn drawn(&self, config: &Config, real: &Trace) -> Result<Timeline, ConfigError> {
        let times = self.level().times;
        let units: u64 = self
            .rows()
            .iter()
            .flatten()
            .map(|placed| u64::from(times.of(placed.action.pass)))
            .sum();
        let lanes = (0..real.ranks.len()).map(|rank| real.lane(rank, Stream::Passes));
        let spans = lanes.flat_map(|lane| lane.spans().iter());
        let took: Nanos = spans.map(Span::duration).sum();
        // Pass times are of all chunks of a rank.
        let chunks = self.level().chunks() as u64;
        let unit = Nanos((took.0 / units.max(1)).max(1)) * chunks;
        let costs = Costs::Passes {
            forward: unit * u64::from(times.forward),
            input_grad: unit * u64::from(times.input_grad),
            weight_grad: unit * u64::from(times.weight_grad),
            comm: Nanos::ZERO,
        };
        let drawn = Config {
            costs,
            ..config.clone()
        };
        Timeline::simulated(&drawn, DRAWN)
    }
}

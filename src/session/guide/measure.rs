//! What a layout comes to: in closed form, or simulated with where the time goes.

use super::{GuideSpec, Measured};
use crate::engine::estimate;
use crate::hardware::Pricing;
use crate::plan::Layout;
use crate::session::config::{Config, ConfigError};
use crate::session::report::{MemoryReport, RankReport};
use crate::session::trainer::simulate_step;
use crate::shape::Methods;

/// What a simulation says beside the step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// The fullest GPU's memory.
    pub(super) memory: MemoryReport,
    /// Seconds of a GPU, on average over all of them: computing.
    pub(super) compute_s: f64,
    /// In transfers and waiting for those that are in them.
    pub(super) transfer_s: f64,
    /// In the bubble.
    pub(super) idle_s: f64,
}

/// In closed form.
pub(super) fn estimated(config: &Config, pricing: &dyn Pricing) -> Result<Measured, ConfigError> {
    let one = estimate(&config.layout, &config.model_load(), pricing)?;
    Ok(Measured {
        layout: config.layout,
        sequence_parallel: config.methods.sequence_parallel,
        zero: config.methods.zero,
        recompute: config.methods.recompute,
        step_s: one.step.secs(),
        simulated: false,
        peak_memory_bytes: one.memory,
        fits: one.memory <= config.hardware.memory(),
        bubble_of_total: one.bubble,
    })
}

/// A layout that need not be among those that a sweep looks at, in closed form; refused if it cannot be.
pub(super) fn other(
    spec: &GuideSpec,
    layout: Layout,
    methods: Methods,
) -> Result<Measured, ConfigError> {
    let config = Config {
        layout,
        methods,
        ..spec.base.clone()
    };
    config.check()?;
    estimated(&config, config.pricing().as_ref())
}

/// Simulated.
pub(super) fn simulated(spec: &GuideSpec, one: &Measured) -> Result<(Measured, Seen), ConfigError> {
    let config = spec.config_of(one);
    let trace = simulate_step(&config)?;
    let ranks = RankReport::all(&trace);
    let total = |memory: &MemoryReport| {
        memory.parameters + memory.gradients + memory.optimizer + memory.activations
    };
    let memories = ranks.iter().map(|rank| rank.peak_memory_bytes);
    let fullest = memories.max_by_key(total).unwrap_or_default();
    let peak = total(&fullest);
    let gpus = trace.gpus().max(1) as f64;
    let mean = |time: fn(&RankReport) -> f64| {
        let times = ranks.iter().map(|rank| time(rank) * f64::from(rank.count));
        times.sum::<f64>() / gpus
    };
    let seen = Seen {
        memory: fullest,
        compute_s: mean(|rank| rank.compute_s),
        transfer_s: mean(|rank| rank.transfer_s + rank.wait_s),
        idle_s: mean(|rank| rank.idle_s),
    };
    let measured = Measured {
        step_s: trace.makespan.secs(),
        simulated: true,
        peak_memory_bytes: peak,
        fits: peak <= config.hardware.memory(),
        bubble_of_total: trace.bubbles().of_total,
        ..*one
    };
    Ok((measured, seen))
}

/// About how many operations a simulation of it has: what it takes to simulate.
pub(super) fn operations(spec: &GuideSpec, one: &Measured) -> u64 {
    let Layout {
        tp,
        pp,
        micro_batches,
        chunks,
        ..
    } = one.layout;
    let layer = match (tp > 1, one.sequence_parallel) {
        (false, _) => 4,
        (true, false) => 8,
        (true, true) => 16,
    };
    let passes = (spec.base.model.layers * layer + pp * chunks * 6) as u64;
    passes.saturating_mul(micro_batches as u64)
}

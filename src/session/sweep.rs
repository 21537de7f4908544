//! Every legal layout for a number of GPUs, ranked: closed forms for all, the simulation for the best.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError, Costs};
use super::trainer::simulate_step;
use crate::engine::{Disturbance, estimate};
use crate::plan::Layout;
use crate::schedule::ScheduleKind;
use crate::shape::{Methods, Recompute};
use crate::trace::Memory;
use crate::units::{Bytes, Nanos};

/// The largest micro-batch that is tried.
const LARGEST_MICRO_BATCH: usize = 64;

/// What is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSpec {
    /// Model, hardware, formats and methods; its layout is not looked at.
    pub base: Config,
    /// GPUs, all of them used.
    pub gpus: usize,
    /// Sequences of a step.
    pub global_batch: usize,
    /// Tokens of the whole training.
    pub tokens: f64,
    /// What is held fixed.
    pub fixed: Fixed,
    /// How many of the best are simulated and told.
    pub top: usize,
}

/// What is held fixed of the layouts that are swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// Data-parallel degree.
    pub dp: Option<usize>,
    /// Tensor-parallel degree.
    pub tp: Option<usize>,
    /// Pipeline-parallel degree.
    pub pp: Option<usize>,
    /// Sequences of a micro-batch.
    pub micro_batch_size: Option<usize>,
    /// Chunks of a rank.
    pub chunks: Option<usize>,
    /// What is recomputed; all three ways if not fixed.
    pub recompute: Option<Recompute>,
}

/// A layout, and what it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The layout.
    #[serde(flatten)]
    pub layout: Layout,
    /// What is recomputed.
    pub recompute: Recompute,
    /// A step.
    pub step_s: f64,
    /// Whether the step is simulated, rather than in closed form.
    pub simulated: bool,
    /// The fullest rank's memory at its peak.
    pub peak_memory_bytes: Bytes,
    /// Whether it fits.
    pub fits: bool,
    /// Idle time over the pipelines' time.
    pub bubble_of_total: f64,
    /// Tokens a second, of all GPUs.
    pub tokens_per_s: f64,
    /// Model FLOPs over what the GPUs could do.
    pub mfu: f64,
    /// Of the whole training.
    pub gpu_hours: f64,
    /// What those cost, where the hardware's price is known.
    pub usd: Option<f64>,
    /// What they take at full load, where the hardware's power is known.
    pub kwh: Option<f64>,
    /// Whether no other that fits is both faster and smaller.
    pub pareto: bool,
}

/// A sweep's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Layouts that were looked at.
    pub layouts: usize,
    /// Those of them that fit.
    pub fitting: usize,
    /// The best, fastest first; where none fits, the smallest.
    pub rows: Vec<SweepRow>,
    /// Time against memory: the layouts that no other one beats in both, fastest first.
    pub pareto: Vec<SweepRow>,
}

/// Sweeps; `progress` is told how many of how many layouts are done, the best of them counted again when they are
/// simulated, and may end it: then nothing is found.
pub fn sweep(
    spec: &SweepSpec,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Sweep>, ConfigError> {
    spec.base.model.check()?;
    let candidates = spec.candidates();
    let mut rows = Vec::with_capacity(candidates.len());
    for (done, config) in candidates.iter().enumerate() {
        let simulated = candidates.len().min(2 * spec.top);
        if progress(done, candidates.len() + simulated).is_break() {
            return Ok(None);
        }
        let pricing = config.pricing();
        let one = estimate(&config.layout, &config.model_load(), pricing.as_ref())?;
        rows.push(spec.row(config, one.step, one.memory, one.bubble));
    }
    let fitting = rows.iter().filter(|row| row.fits).count();
    let layouts = rows.len();
    if fitting > 0 {
        rows.retain(|row| row.fits);
        rows.sort_by(|a, b| a.step_s.total_cmp(&b.step_s));
        mark_pareto(&mut rows);
    } else {
        rows.sort_by_key(|row| row.peak_memory_bytes);
    }
    let pareto = rows.iter().filter(|row| row.pareto).copied().collect();
    // Twice as many as are told, lest closed forms a few per cent off leave out one of the best.
    rows.truncate(2 * spec.top);
    let all = layouts + rows.len();
    for (done, row) in rows.iter_mut().enumerate() {
        if progress(layouts + done, all).is_break() {
            return Ok(None);
        }
        *row = spec.simulated(row)?;
    }
    if progress(all, all).is_break() {
        return Ok(None);
    }
    if fitting > 0 {
        rows.sort_by(|a, b| a.step_s.total_cmp(&b.step_s));
    }
    rows.truncate(spec.top);
    Ok(Some(Sweep {
        layouts,
        fitting,
        rows,
        pareto,
    }))
}

/// Marks those than which no other is both faster and smaller; rows come fastest first.
fn mark_pareto(rows: &mut [SweepRow]) {
    let mut smallest = Bytes(u64::MAX);
    for row in rows {
        if row.peak_memory_bytes < smallest {
            smallest = row.peak_memory_bytes;
            row.pareto = true;
        }
    }
}

fn allowed(fixed: Option<usize>, value: usize) -> bool {
    fixed.is_none_or(|fixed| fixed == value)
}

/// Tokens a parameter that training takes, where none are given: Hoffmann 2022.
const TOKENS_PER_PARAMETER: f64 = 20.0;
/// How many of the best are told, where none are given.
pub const TOP: usize = 10;

impl SweepSpec {
    /// The layouts of `gpus` GPUs for what `config` trains: its model, hardware and global batch.
    pub fn around(config: &Config, gpus: usize) -> Self {
        Self {
            base: Config {
                layout: Layout::default(),
                methods: Methods {
                    recompute: Recompute::None,
                    ..config.methods
                },
                layers_per_stage: None,
                custom: None,
                disturbance: Disturbance::default(),
                costs: Costs::Model,
                ..config.clone()
            },
            gpus,
            global_batch: config.layout.global_batch(),
            tokens: TOKENS_PER_PARAMETER * config.model.params() as f64,
            fixed: Fixed::default(),
            top: TOP,
        }
    }

    /// Every legal layout: tensor-parallel ranks within a node, at least one layer a stage.
    pub(super) fn candidates(&self) -> Vec<Config> {
        let mut all = Vec::new();
        let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
        let node = self.base.hardware.gpus_per_node;
        // A group that straddles two nodes is in neither.
        let within = |tp: &usize| node.is_multiple_of(*tp) && allowed(self.fixed.tp, *tp);
        for tp in divisors(self.gpus).filter(within) {
            for pp in divisors(self.gpus / tp) {
                let dp = self.gpus / tp / pp;
                let few = pp <= self.base.model.layers;
                if few && allowed(self.fixed.pp, pp) && allowed(self.fixed.dp, dp) {
                    self.of_degrees([dp, tp, pp], &mut all);
                }
            }
        }
        all
    }

    fn of_degrees(&self, [dp, tp, pp]: [usize; 3], all: &mut Vec<Config>) {
        let layers = self.base.model.layers;
        let powers = (0..).map(|power| 1_usize << power);
        let powers = powers.take_while(|&size| size <= LARGEST_MICRO_BATCH);
        let sizes: Vec<usize> = match self.fixed.micro_batch_size {
            Some(size) => vec![size],
            None => powers.collect(),
        };
        for size in sizes {
            let Ok(micro_batches) = Layout::micro_batches_of(self.global_batch, dp, size) else {
                continue;
            };
            for chunks in (1..=layers / pp).filter(|&chunks| allowed(self.fixed.chunks, chunks)) {
                // Interleaved where there are several stages a rank, all with as many layers.
                let even = layers.is_multiple_of(pp * chunks) && micro_batches.is_multiple_of(pp);
                if chunks > 1 && (pp == 1 || !even) {
                    continue;
                }
                let layout = Layout {
                    dp,
                    tp,
                    pp,
                    micro_batches,
                    micro_batch_size: size,
                    schedule: ScheduleKind::one_f_one_b(chunks),
                    chunks,
                };
                for recompute in [Recompute::None, Recompute::Selective, Recompute::Full] {
                    if self.fixed.recompute.is_none_or(|fixed| fixed == recompute) {
                        all.extend(self.config(layout, recompute));
                    }
                }
            }
        }
    }

    /// A row's configuration.
    pub fn config_of(&self, row: &SweepRow) -> Config {
        Config {
            layout: row.layout,
            methods: Methods {
                recompute: row.recompute,
                ..self.base.methods
            },
            custom: None,
            layers_per_stage: None,
            ..self.base.clone()
        }
    }

    /// The layout as a configuration, if the model goes with it.
    fn config(&self, layout: Layout, recompute: Recompute) -> Option<Config> {
        let methods = Methods {
            recompute,
            ..self.base.methods
        };
        let legal = layout.check(&self.base.model, methods).is_ok();
        legal.then(|| Config {
            layout,
            methods,
            custom: None,
            layers_per_stage: None,
            ..self.base.clone()
        })
    }

    fn row(&self, config: &Config, step: Nanos, memory: Bytes, bubble: f64) -> SweepRow {
        let step_s = step.secs().max(f64::MIN_POSITIVE);
        let (gpus, hardware) = (self.gpus as f64, &config.hardware);
        let tokens_per_s = (self.global_batch * config.model.seq) as f64 / step_s;
        let peak = hardware.peak_flops(config.precision);
        let gpu_hours = self.tokens / tokens_per_s / 3600.0 * gpus;
        SweepRow {
            layout: config.layout,
            recompute: config.methods.recompute,
            step_s,
            simulated: false,
            peak_memory_bytes: memory,
            fits: memory <= hardware.memory(),
            bubble_of_total: bubble,
            tokens_per_s,
            mfu: config.model.step_flops(self.global_batch as u64) / (step_s * gpus * peak),
            gpu_hours,
            usd: hardware.usd_per_hour.map(|price| price * gpu_hours),
            kwh: hardware.watts.map(|watts| watts / 1e3 * gpu_hours),
            pareto: false,
        }
    }

    fn simulated(&self, row: &SweepRow) -> Result<SweepRow, ConfigError> {
        let config = self.config_of(row);
        let trace = simulate_step(&config)?;
        let memory = trace.memory.iter().map(Memory::peak).max();
        let bubble = trace.bubbles().of_total;
        Ok(SweepRow {
            simulated: true,
            pareto: row.pareto,
            ..self.row(&config, trace.makespan, memory.unwrap_or_default(), bubble)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::shape::ModelShape;

    fn spec(gpus: usize, global_batch: usize) -> SweepSpec {
        let hardware = Hardware::profile("a100-80gb").unwrap();
        SweepSpec {
            base: Config {
                model: ModelShape::preset("gpt3-175b").unwrap(),
                precision: hardware.precision,
                hardware,
                ..Config::default()
            },
            gpus,
            global_batch,
            tokens: 300e9,
            fixed: Fixed::default(),
            top: 5,
        }
    }

    #[test]
    fn the_best_fit_are_ranked_and_simulated() {
        let found = sweep(&spec(64, 64), &mut |_, _| ControlFlow::Continue(()))
            .unwrap()
            .unwrap();
        assert!(found.layouts > 100 && found.fitting > 0, "{found:?}");
        assert_eq!(found.rows.len(), 5);
        for pair in found.rows.windows(2) {
            assert!(pair[0].step_s <= pair[1].step_s);
        }
        for row in &found.rows {
            let Layout { dp, tp, pp, .. } = row.layout;
            assert_eq!((dp * tp * pp, row.layout.global_batch()), (64, 64));
            assert!(row.simulated && row.fits && tp <= 8 && row.usd.is_some());
        }
        for pair in found.pareto.windows(2) {
            assert!(pair[0].step_s <= pair[1].step_s);
            assert!(pair[0].peak_memory_bytes > pair[1].peak_memory_bytes);
        }
    }

    #[test]
    fn where_nothing_fits_the_smallest_is_told() {
        let mut small = spec(8, 8);
        small.fixed.recompute = Some(Recompute::None);
        let found = sweep(&small, &mut |_, _| ControlFlow::Continue(()))
            .unwrap()
            .unwrap();
        assert_eq!(found.fitting, 0);
        assert!(!found.rows.is_empty() && found.pareto.is_empty());
    }

    #[test]
    fn what_is_fixed_stays() {
        let mut spec = spec(64, 128);
        spec.fixed = Fixed {
            tp: Some(8),
            micro_batch_size: Some(1),
            ..Fixed::default()
        };
        let found = sweep(&spec, &mut |_, _| ControlFlow::Continue(()))
            .unwrap()
            .unwrap();
        let kept = |row: &SweepRow| row.layout.tp == 8 && row.layout.micro_batch_size == 1;
        assert!(found.rows.iter().all(kept));
    }
}

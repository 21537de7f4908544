//! The cost model against what is published: steps on A100s and H100s, and memory.

use serde::Serialize;

use super::config::{Clock, Config, ConfigError, Costs, Device};
use super::trainer::simulate_step;
use crate::engine::{Disturbance, estimate};
use crate::hardware::Hardware;
use crate::plan::Layout;
use crate::schedule::ScheduleKind;
use crate::shape::{Attention, Methods, ModelShape, Optimizer, Recompute, Segment, Slices, Zero};

/// A published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Which.
    pub name: String,
    /// As published.
    pub published: f64,
    /// As reckoned here.
    pub ours: f64,
}

impl Comparison {
    /// Ours over the published one, less one.
    pub fn error(&self) -> f64 {
        self.ours / self.published - 1.0
    }
}

/// A table of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// Of what.
    pub title: &'static str,
    /// The unit of its figures.
    pub unit: &'static str,
    /// Its rows.
    pub rows: Vec<Comparison>,
}

impl Validation {
    /// The mean of the errors' sizes.
    pub fn mean_error(&self) -> f64 {
        let sum: f64 = self.rows.iter().map(|row| row.error().abs()).sum();
        sum / self.rows.len().max(1) as f64
    }

    /// The largest error's size.
    pub fn worst_error(&self) -> f64 {
        let sizes = self.rows.iter().map(|row| row.error().abs());
        sizes.fold(0.0, f64::max)
    }
}

/// A row of a table, by its columns' names.
struct Row<'a> {
    columns: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn text(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|name| *name == column);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or("")
    }

    fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }

    fn count(&self, column: &str) -> usize {
        self.number(column) as usize
    }
}

fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let split = |line| -> Vec<&str> { str::split(line, ',').map(str::trim).collect() };
    let mut lines = text.lines();
    let columns = lines.next().map(split).unwrap_or_default();
    lines.map(move |line| Row {
        columns: columns.clone(),
        cells: split(line),
    })
}

const KORTHIKANTI: &str = include_str!("../../assets/published/korthikanti.csv");
const SC21: &str = include_str!("../../assets/published/megatron_sc21.csv");
const LLAMA3: &str = include_str!("../../assets/published/llama3.csv");
const VTRAIN_SINGLE: &str = include_str!("../../assets/published/vtrain_single.csv");
const VTRAIN_MULTI: &str = include_str!("../../assets/published/vtrain_multi.csv");

const FULL: Methods = Methods {
    recompute: Recompute::Full,
    sequence_parallel: false,
    zero: Zero::Off,
    grad_dtype: crate::shape::GradFormat::F32,
    attention: Attention::Unfused,
    no_sync: false,
};

const SELECTIVE: Methods = Methods {
    recompute: Recompute::Selective,
    sequence_parallel: true,
    ..FULL
};

fn gpt([layers, hidden, heads, seq]: [usize; 4]) -> ModelShape {
    ModelShape {
        name: "published".to_owned(),
        layers,
        hidden,
        heads,
        vocab: 51_200,
        seq,
        kv_heads: None,
        ffn_hidden: None,
        gated: false,
        tied: true,
        rope: false,
        optimizer: Optimizer::default(),
    }
}

fn config(
    hardware: &str,
    model: ModelShape,
    layout: Layout,
    methods: Methods,
) -> Result<Config, ConfigError> {
    let hardware = Hardware::profile(hardware)?;
    Ok(Config {
        layout,
        model,
        precision: hardware.precision,
        hardware,
        overlap: false,
        methods,
        layers_per_stage: None,
        disturbance: Disturbance::default(),
        costs: Costs::Model,
        clock: Clock::Modelled,
        device: Device::Emulated,
        seed: 1,
        custom: None,
    })
}

/// All tables.
pub fn validate() -> Result<Vec<Validation>, ConfigError> {
    Ok(vec![
        memory(),
        korthikanti()?,
        sc21()?,
        llama3()?,
        vtrain("vTrain, single node", VTRAIN_SINGLE)?,
        vtrain("vTrain, many nodes", VTRAIN_MULTI)?,
    ])
}

fn korthikanti() -> Result<Validation, ConfigError> {
    let mut found = Vec::new();
    for row in rows(KORTHIKANTI) {
        let shape = ["layers", "hidden", "heads"].map(|name| row.count(name));
        let layout = Layout {
            dp: 1,
            tp: row.count("tp"),
            pp: row.count("pp"),
            micro_batches: row.count("batch") / row.count("micro_batch"),
            micro_batch_size: row.count("micro_batch"),
            schedule: ScheduleKind::one_f_one_b(row.count("chunks")),
            chunks: row.count("chunks"),
        };
        for (what, methods) in [("full", FULL), ("selective", SELECTIVE)] {
            let model = gpt([shape[0], shape[1], shape[2], 2048]);
            let config = config("a100-80gb", model, layout, methods)?;
            found.push(Comparison {
                name: format!("{} {what}", row.text("name")),
                published: row.number(&format!("{what}_s")),
                ours: simulate_step(&config)?.makespan.secs(),
            });
        }
    }
    Ok(Validation {
        title: "Korthikanti 2022, table 5",
        unit: "s",
        rows: found,
    })
}

fn sc21() -> Result<Validation, ConfigError> {
    let mut found = Vec::new();
    for row in rows(SC21) {
        let shape = ["layers", "hidden", "heads"].map(|name| row.count(name));
        let model = gpt([shape[0], shape[1], shape[2], 2048]);
        let [tp, pp, batch] = ["tp", "pp", "batch"].map(|name| row.count(name));
        let dp = row.count("gpus") / tp / pp;
        let Some(fastest) = fastest(&model, [dp, tp, pp], batch)? else {
            continue;
        };
        let config = config("a100-80gb", model, fastest, FULL)?;
        let (b, v) = (fastest.micro_batch_size, fastest.chunks);
        found.push(Comparison {
            name: format!("{} (micro-batches of {b}, chunks {v})", row.text("name")),
            published: published_seconds(&config.model, &row),
            ours: simulate_step(&config)?.makespan.secs(),
        });
    }
    Ok(Validation {
        title: "Narayanan 2021, table 1",
        unit: "s",
        rows: found,
    })
}

/// A step in seconds, from the rate that is printed: its FLOPs count full recomputation.
fn published_seconds(model: &ModelShape, row: &Row<'_>) -> f64 {
    let (b, s) = (row.number("batch"), model.seq as f64);
    let (l, h, v) = (model.layers as f64, model.hidden as f64, model.vocab as f64);
    let flops = 96.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
    flops / (row.number("tflops") * 1e12 * row.number("gpus"))
}

/// The fastest micro-batch size and chunks that fit.
fn fastest(
    model: &ModelShape,
    [dp, tp, pp]: [usize; 3],
    batch: usize,
) -> Result<Option<Layout>, ConfigError> {
    let chunks = (1..=model.layers / pp).filter(|v| (model.layers / pp).is_multiple_of(*v));
    let chunks: Vec<usize> = if pp == 1 { vec![1] } else { chunks.collect() };
    let mut best: Option<(u64, Layout)> = None;
    for size in [1, 2, 4, 8, 16] {
        let Ok(micro_batches) = Layout::micro_batches_of(batch, dp, size) else {
            continue;
        };
        for &chunks in chunks
            .iter()
            .filter(|&&v| v == 1 || micro_batches.is_multiple_of(pp))
        {
            let layout = Layout {
                dp,
                tp,
                pp,
                micro_batches,
                micro_batch_size: size,
                schedule: ScheduleKind::one_f_one_b(chunks),
                chunks,
            };
            let config = config("a100-80gb", model.clone(), layout, FULL)?;
            let one = estimate(&layout, &config.model_load(), config.pricing().as_ref())?;
            let fits = one.memory <= config.hardware.memory();
            if fits && best.is_none_or(|(time, _)| one.step.0 < time) {
                best = Some((one.step.0, layout));
            }
        }
    }
    Ok(best.map(|(_, layout)| layout))
}

fn llama3() -> Result<Validation, ConfigError> {
    let mut found = Vec::new();
    for row in rows(LLAMA3) {
        let [dp, tp, pp] = ["dp", "tp", "pp"].map(|name| row.count(name));
        let layout = Layout {
            dp,
            tp,
            pp,
            micro_batches: row.count("batch") / dp,
            micro_batch_size: 1,
            schedule: ScheduleKind::Interleaved,
            // A layer a chunk.
            chunks: 8,
        };
        let methods = Methods {
            recompute: Recompute::None,
            sequence_parallel: true,
            zero: Zero::Optimizer,
            attention: Attention::Fused,
            ..FULL
        };
        let model = ModelShape::preset("llama3-405b")?;
        let config = Config {
            overlap: true,
            ..config("h100", model, layout, methods)?
        };
        let step = simulate_step(&config)?.makespan.secs();
        let flops = config.model.step_flops(row.count("batch") as u64);
        let peak = config.hardware.peak_flops(config.precision) * row.number("gpus");
        found.push(Comparison {
            name: format!("405B on {} H100s", row.text("gpus")),
            published: row.number("mfu"),
            ours: flops / (step * peak),
        });
    }
    Ok(Validation {
        title: "Llama 3 2024, table 4",
        unit: "MFU",
        rows: found,
    })
}

fn vtrain(title: &'static str, text: &str) -> Result<Validation, ConfigError> {
    let mut found = Vec::new();
    for row in rows(text) {
        let shape = [
            "# layers",
            "hidden size",
            "attention heads",
            "sequence length",
        ];
        let model = gpt(shape.map(|name| row.count(name)));
        let degrees = [
            "data parallelism",
            "tensor parallelism",
            "pipeline parallelism",
        ];
        let [dp, tp, pp] = degrees.map(|name| row.count(name));
        let [batch, size] = ["global batch", "micro batch"].map(|name| row.count(name));
        let layout = Layout {
            dp,
            tp,
            pp,
            micro_batches: Layout::micro_batches_of(batch, dp, size)?,
            micro_batch_size: size,
            ..Layout::default()
        };
        let config = config("a100-80gb", model, layout, FULL)?;
        let [layers, hidden, ..] = shape.map(|name| row.count(name));
        found.push(Comparison {
            name: format!("L{layers} h{hidden} batch {batch}/{size} DP{dp} TP{tp} PP{pp}"),
            published: row.number("iteration time (ms)") / 1e3,
            ours: simulate_step(&config)?.makespan.secs(),
        });
    }
    Ok(Validation {
        title,
        unit: "s",
        rows: found,
    })
}

/// By the published formulas: parameters without embeddings and biases and with them, and the first stage's activations.
fn memory() -> Validation {
    const GIB: f64 = (1_u64 << 30) as f64;
    let mut found = Vec::new();
    for row in rows(KORTHIKANTI) {
        let [layers, hidden, heads] = ["layers", "hidden", "heads"].map(|name| row.count(name));
        let model = gpt([layers, hidden, heads, 2048]);
        let [tp, pp, chunks] = ["tp", "pp", "chunks"].map(|name| row.number(name));
        let params = 12.0 * layers as f64 * (hidden as f64).powi(2) / (tp * pp);
        let interleaved = if chunks > 1.0 {
            1.0 + (pp - 1.0) / (pp * chunks)
        } else {
            1.0
        };
        let activations = |methods: Methods| {
            let slices = Slices {
                tp: tp as usize,
                sequence: methods.sequence_parallel,
            };
            let tokens = row.count("micro_batch") * model.seq;
            let of = |segment| model.megatron_stash_bytes(segment, tokens, slices, methods);
            let layer = of(Segment::Attention(0)) + of(Segment::Mlp(0));
            layer as f64 * layers as f64 * interleaved / GIB
        };
        let none = Methods {
            recompute: Recompute::None,
            ..FULL
        };
        // What the first stage holds in truth: embeddings and biases too, all of it cut by TP.
        let [h, v] = [hidden, model.vocab + model.seq].map(|size| size as f64);
        let besides = (v * h + 13.0 * h * layers as f64 / pp) / tp;
        let figures = [
            ("parameters and optimizer", "state_gib", 18.0 * params / GIB),
            (
                "the same, first stage",
                "first_gib",
                18.0 * (params + besides) / GIB,
            ),
            ("activations", "activations_gib", activations(none)),
            (
                "activations, selective and SP",
                "saved_gib",
                activations(SELECTIVE),
            ),
        ];
        found.extend(figures.map(|(what, column, ours)| Comparison {
            name: format!("{} {what}", row.text("name")),
            published: row.number(column),
            ours,
        }));
    }
    Validation {
        title: "Korthikanti 2022, memory",
        unit: "GiB",
        rows: found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_memory_comes_out_exactly() {
        let memory = memory();
        assert_eq!(memory.rows.len(), 16);
        for row in &memory.rows {
            // The first stages' are published to two digits behind the point.
            let ours = if row.name.contains("first stage") {
                (row.ours * 100.0).round() / 100.0
            } else {
                row.ours
            };
            assert!((ours - row.published).abs() < 1e-9, "{row:?}");
        }
    }

    #[test]
    fn published_times_come_out_within_a_few_per_cent() {
        let (first, second) = (korthikanti().unwrap(), sc21().unwrap());
        assert_eq!((first.rows.len(), second.rows.len()), (8, 10));
        let rows: Vec<Comparison> = first.rows.into_iter().chain(second.rows).collect();
        let both = Validation {
            title: "both",
            unit: "s",
            rows,
        };
        assert!(both.mean_error() < 0.05, "{}", both.mean_error());
        assert!(both.worst_error() < 0.12, "{}", both.worst_error());
        for row in llama3().unwrap().rows {
            assert!((row.ours - row.published).abs() < 0.02, "{row:?}");
        }
    }

    #[test]
    fn vtrains_times_come_out_within_a_few_per_cent() {
        let single = vtrain("single", VTRAIN_SINGLE).unwrap();
        let multi = vtrain("multi", VTRAIN_MULTI).unwrap();
        assert_eq!((single.rows.len(), multi.rows.len()), (721, 57));
        assert!(single.mean_error() < 0.08, "{}", single.mean_error());
        assert!(multi.mean_error() < 0.14, "{}", multi.mean_error());
    }
}

//! A run's figures in words: the same on the command line and in pictures. Every figure has its unit and
//! says how it is defined.

use super::config::Costs;
use super::report::{MemoryReport, Report};
use crate::units::{Bytes, Nanos, large, percent, three_digits};

/// A figure as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What it is: `bubble of total`.
    pub name: &'static str,
    /// It, with its unit: `27.3 %`.
    pub value: String,
    /// How it is defined, or what it is compared with.
    pub note: String,
}

impl MemoryReport {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.parameters + self.gradients + self.optimizer + self.activations
    }
}

impl Report {
    /// What was run: `nano, 1.6 M parameters`, or the passes where no model was consulted.
    pub fn model_line(&self) -> String {
        match self.config.costs {
            Costs::Model => {
                let model = &self.config.model;
                format!("{}, {} parameters", model.name, short_count(model.params()))
            }
            Costs::Passes {
                forward,
                input_grad,
                weight_grad,
                comm,
            } => format!("no model: F {forward}, I {input_grad}, W {weight_grad}, send {comm}"),
        }
    }

    /// On what: `8 × classroom GPU, f32`; nothing where it was not consulted.
    pub fn hardware_line(&self) -> Option<String> {
        let config = &self.config;
        let (title, precision) = (&config.hardware.title, config.precision.name());
        let has_model = config.costs == Costs::Model;
        if self.cores.is_some() {
            return Some("this machine's cores, f32".to_owned());
        }
        has_model.then(|| format!("{} × {title}, {precision}", self.gpus()))
    }

    /// How the times came about: `simulated`, `emulated, simulated times`, or `cpu, measured times, 2 ranks on 2 cores`.
    pub fn engine_line(&self) -> String {
        if let Some(cores) = self.cores {
            let (engine, times, ranks) = (&self.engine, &self.times, self.gpus());
            let threads = if ranks > cores {
                format!("{ranks} ranks share {cores} cores, unlike GPUs: emulate for their picture")
            } else {
                format!("{ranks} ranks on {cores} cores")
            };
            format!("{engine}, {times} times, {threads}")
        } else if self.engine == self.times {
            self.engine.clone()
        } else {
            format!("{}, {} times", self.engine, self.times)
        }
    }

    /// The step's figures, most looked-at first.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![
            Figure {
                name: "step",
                value: time(self.makespan_s),
                note: "all ranks, synchronisation and optimizer included".to_owned(),
            },
            Figure {
                name: "pipeline",
                value: time(self.pipeline_s),
                note: "to the end of a replica's last pass".to_owned(),
            },
        ];
        figures.extend(self.tokens_per_s.map(|rate| Figure {
            name: "throughput",
            value: format!("{} tokens/s", large(rate)),
            note: "of all ranks together".to_owned(),
        }));
        figures.extend(self.mfu.map(|share| self.mfu_figure(share)));
        if self.gpus() > 1 {
            figures.push(Figure {
                name: "speed-up",
                value: format!("{} ×", three_digits(self.speedup)),
                note: format!(
                    "one GPU with the same batch; efficiency {}",
                    percent(self.efficiency)
                ),
            });
        }
        figures.extend(self.bubbles());
        if self.config.costs == Costs::Model {
            figures.push(self.memory_figure());
        }
        figures
    }

    fn mfu_figure(&self, share: f64) -> Figure {
        let config = &self.config;
        let peak = config.hardware.peak_flops(config.precision) / 1e12;
        Figure {
            name: "MFU",
            value: percent(share),
            note: format!(
                "model FLOPs over {} × {} TFLOP/s ({})",
                self.gpus(),
                three_digits(peak),
                config.precision.name()
            ),
        }
    }

    fn bubbles(&self) -> [Figure; 3] {
        let formula = self.config.bubble_formula().map_or(String::new(), |share| {
            format!("; textbook {}", percent(share))
        });
        [
            Figure {
                name: "bubble of total",
                value: percent(self.bubble_of_total),
                note: format!("idle / pipeline time{formula}"),
            },
            Figure {
                name: "bubble of ideal",
                value: percent(self.bubble_of_ideal),
                note: "idle / time of all passes".to_owned(),
            },
            Figure {
                name: "bubble of stage span",
                value: percent(self.bubble_stage_span),
                note: "largest (span - work) / span of a stage, as in the zero-bubble paper"
                    .to_owned(),
            },
        ]
    }

    fn memory_figure(&self) -> Figure {
        let largest = self.peak_memory();
        let capacity = self.config.hardware.memory();
        let fits = if self.fits { "fits" } else { "does not fit" };
        Figure {
            name: "peak memory",
            value: largest.to_string(),
            note: format!("fullest rank, of {capacity}: {fits}"),
        }
    }
}

/// Seconds in the unit that fits.
fn time(seconds: f64) -> String {
    Nanos::from_secs(seconds).to_string()
}

/// Three digits and a word: `1.63 M`.
fn short_count(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{} k", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} M", three_digits(value / 1e6)),
        _ => format!("{} B", three_digits(value / 1e9)),
    }
}

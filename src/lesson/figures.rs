//! The figures that lessons may ask for, by name: of a layout, and of a run of it.

use super::expr::{Asked, Formula};
use crate::schedule::ScheduleKind;
use crate::session::{Config, MemoryReport, RankReport, Report};
use crate::units::Bytes;

/// A figure that a formula may name: its name, and what it is.
pub type Known = (&'static str, &'static str);

/// Figures of a layout; known before anything runs.
pub const OF_LAYOUT: [Known; 16] = [
    ("dp", "data-parallel degree"),
    ("tp", "tensor-parallel degree"),
    ("pp", "pipeline-parallel degree"),
    ("gpus", "GPUs: dp x tp x pp"),
    ("micro_batches", "micro-batches of each replica"),
    ("micro_batch_size", "sequences of a micro-batch"),
    (
        "global_batch",
        "sequences of a step, of all replicas together",
    ),
    ("chunks", "stages of a pipeline rank"),
    ("stages", "stages of the pipeline"),
    ("layers", "the model's layers"),
    ("hidden", "the model's hidden size"),
    ("heads", "the model's attention heads"),
    ("seq", "tokens of a sequence"),
    ("gpus_per_node", "GPUs that share fast links"),
    ("memory", "memory of a GPU, in bytes"),
    ("zero", "ZeRO's stage"),
];

/// Figures of a run. Times are in seconds and sizes in bytes.
pub const OF_RUN: [Known; 14] = [
    (
        "makespan",
        "time of a step, synchronisation and optimizer included",
    ),
    ("pipeline", "end of the last pass"),
    (
        "bubble_of_total",
        "idle time over the pipelines' time: (p-1)/(m+p-1) in the textbook",
    ),
    (
        "bubble_of_ideal",
        "idle time over the passes' time: (p-1)/m in the textbook",
    ),
    ("bubble_stage_span", "the zero-bubble paper's bubble"),
    ("tokens_per_s", "tokens trained on in a second"),
    ("mfu", "model FLOPs over what the GPUs could do"),
    ("speedup", "how many times faster than one GPU"),
    ("efficiency", "speed-up over GPUs"),
    ("fits", "1 if every GPU's peak fits its memory"),
    (
        "dp_bytes",
        "bytes of the data-parallel collectives of a step, of one group",
    ),
    (
        "tp_bytes",
        "bytes of the tensor-parallel collectives of a step, of one group",
    ),
    (
        "pp_bytes",
        "bytes sent between stages in a step, there and back, of one pipeline",
    ),
    (
        "loss_apart",
        "how far the last loss is from the one-GPU run's; only once a step was trained",
    ),
];

/// Figures of a GPU, as `peak_memory(0)`; without a number the largest of all.
pub const OF_GPU: [Known; 10] = [
    ("peak_memory", "memory at its peak"),
    ("parameters", "memory of parameters"),
    ("gradients", "memory of gradients"),
    ("optimizer", "memory of the optimizer's state"),
    ("activations", "memory of activations at their peak"),
    ("in_flight", "most micro-batches (of a chunk) in flight"),
    ("compute", "time computing"),
    ("transfer", "time in which what is needed is in flight"),
    (
        "waiting",
        "time in collectives whose members are not all there",
    ),
    ("idle", "the bubble's time"),
];

/// What figures are read from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What is run.
    pub config: &'a Config,
    /// Its figures, once it was.
    pub report: Option<&'a Report>,
    /// How far the last trained loss is from the one-GPU run's.
    pub loss_apart: Option<f64>,
}

impl<'a> Source<'a> {
    /// Of a run.
    pub fn of_run(report: &'a Report) -> Self {
        Self {
            config: &report.config,
            report: Some(report),
            loss_apart: None,
        }
    }

    /// The figure that is asked for, whatever run it names.
    pub fn figure(&self, asked: &Asked) -> Option<f64> {
        let name = asked.figure.as_str();
        match asked.rank {
            Some(rank) => self.of_gpu(name, Some(rank)),
            None => self
                .of_layout(name)
                .or_else(|| self.of_run_named(name))
                .or_else(|| self.of_gpu(name, None)),
        }
    }

    fn of_layout(&self, name: &str) -> Option<f64> {
        let (layout, model) = (&self.config.layout, &self.config.model);
        if let Some(schedule) = name.strip_prefix("is_") {
            let kind = kind_named(schedule)?;
            let is = self.config.custom.is_none() && layout.schedule == kind;
            return Some(f64::from(u8::from(is)));
        }
        let count = match name {
            "dp" => layout.dp,
            "tp" => layout.tp,
            "pp" => layout.pp,
            "gpus" => layout.dp * layout.tp * layout.pp,
            "micro_batches" => layout.micro_batches,
            "micro_batch_size" => layout.micro_batch_size,
            "global_batch" => layout.global_batch(),
            "chunks" => layout.chunks,
            "stages" => self.config.stages(),
            "layers" => model.layers,
            "hidden" => model.hidden,
            "heads" => model.heads,
            "seq" => model.seq,
            "gpus_per_node" => self.config.hardware.gpus_per_node,
            "memory" => self.config.hardware.memory().0 as usize,
            "zero" => usize::from(u8::from(self.config.methods.zero)),
            _ => return None,
        };
        Some(count as f64)
    }

    fn of_run_named(&self, name: &str) -> Option<f64> {
        if name == "loss_apart" {
            return self.loss_apart;
        }
        let report = self.report?;
        let bytes = |group: &str| -> f64 {
            let rows = report.traffic.iter().filter(|row| row.group == group);
            // Instances that are not alike have rows of their own: the one that moves most stands for all.
            let mut kinds: Vec<(&str, u64)> = Vec::new();
            for row in rows {
                match kinds.iter_mut().find(|(kind, _)| *kind == row.kind) {
                    Some((_, most)) => *most = (*most).max(row.bytes),
                    None => kinds.push((&row.kind, row.bytes)),
                }
            }
            kinds.iter().map(|(_, bytes)| *bytes as f64).sum()
        };
        match name {
            "makespan" => Some(report.makespan_s),
            "pipeline" => Some(report.pipeline_s),
            "bubble_of_total" => Some(report.bubble_of_total),
            "bubble_of_ideal" => Some(report.bubble_of_ideal),
            "bubble_stage_span" => Some(report.bubble_stage_span),
            "tokens_per_s" => report.tokens_per_s,
            "mfu" => report.mfu,
            "speedup" => Some(report.speedup),
            "efficiency" => Some(report.efficiency),
            "fits" => Some(f64::from(u8::from(report.fits))),
            "dp_bytes" => Some(bytes("dp")),
            "tp_bytes" => Some(bytes("tp")),
            "pp_bytes" => Some(bytes("pp")),
            _ => None,
        }
    }

    fn of_gpu(&self, name: &str, rank: Option<usize>) -> Option<f64> {
        let ranks = &self.report?.ranks;
        let of = of_gpu(name)?;
        match rank {
            Some(rank) => {
                // Of many GPUs some are told by others: then only those that are listed are known.
                ranks.iter().find(|row| row.rank as usize == rank).map(of)
            }
            None => ranks.iter().map(of).reduce(f64::max),
        }
    }
}

fn kind_named(name: &str) -> Option<ScheduleKind> {
    let same = |kind: &ScheduleKind| kind.name().replace('-', "_") == name;
    ScheduleKind::ALL.into_iter().find(same)
}

fn of_gpu(name: &str) -> Option<fn(&RankReport) -> f64> {
    fn bytes(bytes: Bytes) -> f64 {
        bytes.0 as f64
    }
    Some(match name {
        "peak_memory" => |row| {
            let MemoryReport {
                parameters,
                gradients,
                optimizer,
                activations,
            } = row.peak_memory_bytes;
            bytes(parameters) + bytes(gradients) + bytes(optimizer) + bytes(activations)
        },
        "parameters" => |row| bytes(row.peak_memory_bytes.parameters),
        "gradients" => |row| bytes(row.peak_memory_bytes.gradients),
        "optimizer" => |row| bytes(row.peak_memory_bytes.optimizer),
        "activations" => |row| bytes(row.peak_memory_bytes.activations),
        "in_flight" => |row| f64::from(row.peak_in_flight),
        "compute" => |row| row.compute_s,
        "transfer" => |row| row.transfer_s,
        "waiting" => |row| row.wait_s,
        "idle" => |row| row.idle_s,
        _ => return None,
    })
}

/// Whether there is a figure of that name, of all GPUs or of one.
pub fn is_known(asked: &Asked) -> bool {
    let named = |all: &[Known]| all.iter().any(|(name, _)| *name == asked.figure);
    let schedule = asked.figure.strip_prefix("is_").and_then(kind_named);
    match asked.rank {
        Some(_) => named(&OF_GPU),
        None => named(&OF_LAYOUT) || named(&OF_RUN) || named(&OF_GPU) || schedule.is_some(),
    }
}

/// The names nearest to one that is not known.
pub fn near(name: &str) -> Vec<&'static str> {
    let known = OF_LAYOUT.iter().chain(&OF_RUN).chain(&OF_GPU);
    let mut all: Vec<(usize, &str)> = known.map(|(own, _)| (apart(own, name), *own)).collect();
    all.sort_unstable();
    all.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many letters must be changed, put in or left out to make one of the other (Levenshtein 1966).
fn apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// How a number in a text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Three figures.
    #[default]
    Plain,
    /// In per cent.
    Percent,
    /// Bytes in powers of two.
    Bytes,
    /// A time in SI units.
    Time,
    /// A whole number.
    Whole,
}

impl Style {
    /// All of them by name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("plain", Self::Plain),
        ("percent", Self::Percent),
        ("bytes", Self::Bytes),
        ("time", Self::Time),
        ("whole", Self::Whole),
    ];

    /// From its name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(own, _)| *own == name);
        found.map(|(_, style)| *style)
    }

    /// `value` written so.
    pub fn write(self, value: f64) -> String {
        if !value.is_finite() {
            return "not a number".to_owned();
        }
        match self {
            Self::Plain => plain(value),
            Self::Percent => format!("{:.1} %", value * 100.0),
            Self::Bytes => Bytes(value.max(0.0).round() as u64).to_string(),
            Self::Time => crate::units::Nanos::from_secs(value.max(0.0)).to_string(),
            Self::Whole => format!("{value:.0}"),
        }
    }

    /// What suits the figure that a formula names, if it is one alone.
    pub fn of(formula: &Formula) -> Self {
        let asked = formula.asked();
        let named = |names: &[&str]| {
            !asked.is_empty()
                && asked
                    .iter()
                    .all(|asked| names.contains(&asked.figure.as_str()))
        };
        if asked.len() != 1 {
            return Self::Plain;
        }
        if named(&[
            "bubble_of_total",
            "bubble_of_ideal",
            "bubble_stage_span",
            "mfu",
            "efficiency",
        ]) {
            Self::Percent
        } else if named(&[
            "peak_memory",
            "parameters",
            "gradients",
            "optimizer",
            "activations",
            "memory",
            "dp_bytes",
            "tp_bytes",
            "pp_bytes",
        ]) {
            Self::Bytes
        } else if named(&[
            "makespan", "pipeline", "compute", "transfer", "waiting", "idle",
        ]) {
            Self::Time
        } else {
            Self::Plain
        }
    }
}

/// Whole numbers as they are, others with three figures.
fn plain(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

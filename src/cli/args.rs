//! The command line as it is typed: raw options, one struct a command. What they mean is in `options`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use super::guide::GuideArgs;
use crate::hardware::PROFILES;
use crate::schedule::ScheduleKind;
use crate::session::{Framework, TOP};
use crate::shape::{Attention, GradFormat, PRESETS, Recompute};

/// See how large language models are trained on many GPUs.
///
/// Pick data-, tensor- and pipeline-parallel degrees; a small transformer really trains that way, and every GPU's
/// timeline is drawn. Without a command, the window opens.
#[derive(Debug, Parser)]
#[command(
    name = "shardscope",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(after_help = "Exit status: 0 done, 1 failed while running, 2 refused input.")]
pub(super) struct Cli {
    /// What to do; the window without it.
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,

    #[command(flatten)]
    pub(super) window: WindowArgs,
}

/// How the window opens.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct WindowArgs {
    /// The lesson that the window opens with, by its name in `lesson list`
    #[arg(long, value_name = "ID")]
    pub(super) lesson: Option<String>,

    /// A class kit: the line that Export in the window copies, or a file with it; restores layout, seed, lesson, page and
    /// hidden controls
    #[arg(long, value_name = "LINE|FILE", conflicts_with = "lesson")]
    pub(super) kit: Option<String>,

    /// A folder of lessons of one's own for the window, read again whenever one is saved
    #[arg(long, value_name = "FOLDER")]
    pub(super) lessons: Option<PathBuf>,

    /// The language of the window and its lessons: en (the default) or de
    #[arg(long, value_name = "en|de")]
    pub(super) language: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Train a small transformer on emulated GPUs: the real maths of every rank, on virtual clocks
    Run(RunArgs),
    /// Reckon a training step from a cost model: no maths, from one GPU to tens of thousands
    Simulate(SimulateArgs),
    /// Print a pipeline schedule: PyTorch's CSV, a grid, or a picture
    Schedule(ScheduleArgs),
    /// Rank every legal layout for a number of GPUs: time, memory, bubble, GPU-hours, money, energy. Degrees, the
    /// micro-batch size, chunks and recomputation are swept where they are not given; the global batch is a
    /// sequence a GPU if not given
    Sweep(SweepArgs),
    /// Choose a layout for a model, GPUs and links, and say why: the questions that an engineer asks, each with its
    /// figures, and what was rejected. Degrees, micro-batches and chunks are chosen; `--sequence-parallel`, `--zero` and
    /// `--recompute` say how far it may go (true, 1 and full if not given); the global batch is a sequence a GPU if not
    /// given
    Guide(GuideArgs),
    /// Reckon steps of two or more layouts, and draw them one above the other on one time axis
    Compare(CompareArgs),
    /// Read files that `run` or `simulate` wrote, or traces of `PyTorch`'s profiler and others in Chrome's format: print
    /// their figures, or write them in another format
    View(ViewArgs),
    /// Lessons: which there are, one to be read, and all of them held to the engine
    Lesson(LessonArgs),
    /// Say what can train on this machine
    Devices(DevicesArgs),
    /// Measure this machine (products by size, copies, messages, collectives) and write it as a hardware file, which
    /// `--hardware` takes
    Calibrate(CalibrateArgs),
}

/// `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) settings: Settings,

    /// Steps to train; 10 if not given
    #[arg(long, value_name = "N")]
    pub(super) steps: Option<u64>,

    /// Where the ranks run: `emulated`, any number on virtual clocks; `cpu`, a thread each on the wall clock. `cuda` is
    /// not in this build
    #[arg(long, value_enum, default_value_t = DeviceArg::Emulated, hide_possible_values = true, value_name = "emulated|cpu|cuda")]
    pub(super) device: DeviceArg,

    /// Where an operation's duration comes from: the cost model (exactly reproducible; the default), or its own time
    /// on this machine
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "modelled|measured"
    )]
    pub(super) clock: Option<ClockArg>,

    /// Beside a measured step, what the cost model predicts of it: above it in pictures, on the same time axis, and part
    /// by part in figures. Measure this machine with `calibrate` first, and give its file as --hardware
    #[arg(long)]
    pub(super) predict: bool,

    /// Start from these weights (safetensors, GPT-2 names) instead of random ones
    #[arg(long, value_name = "FILE")]
    pub(super) weights: Option<PathBuf>,

    /// Train on these tokens: safetensors with `tokens` of shape [step, batch, seq + 1]
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub(super) tokens: Option<PathBuf>,

    /// Train on this file's bytes, instead of the text that comes with the program
    #[arg(long, value_name = "FILE")]
    pub(super) text: Option<PathBuf>,

    /// Write the weights after the last step (safetensors, GPT-2 names)
    #[arg(long, value_name = "FILE")]
    pub(super) save_weights: Option<PathBuf>,

    /// Write the gradients of the first step, before clipping (safetensors, GPT-2 names)
    #[arg(long, value_name = "FILE")]
    pub(super) save_gradients: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// `simulate`.
#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    pub(super) settings: Settings,

    /// What operations cost. `model`: what the hardware makes of the model (the default). `f=MS,i=MS,w=MS,comm=MS`:
    /// passes of a stage in milliseconds (forward, input-gradient, weight-gradient; `b=` is taken for `i=`) and the
    /// delay of a send; the model is not consulted. `unit`: f=1,i=1,w=1,comm=0
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), value_name = "model|unit|f=MS,i=MS,w=MS,comm=MS")]
    pub(super) costs: Option<String>,

    /// Hold the cost model to published times and memory instead, and print the tables, error by error
    #[arg(long)]
    pub(super) validate: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What `run` and `simulate` are of: the keys of a configuration file are these, and the flags win.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
#[command(next_help_heading = "Layout, model and hardware")]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Settings {
    /// Data-parallel degree: replicas of the model; 1 if not given
    #[arg(long, value_name = "N")]
    pub(super) dp: Option<usize>,

    /// Tensor-parallel degree: ranks that share each layer; 1 if not given
    #[arg(long, value_name = "N")]
    pub(super) tp: Option<usize>,

    /// Pipeline-parallel degree: ranks that each hold some of the layers; 1 if not given
    #[arg(long, value_name = "N")]
    pub(super) pp: Option<usize>,

    /// Micro-batches of each replica and step; 1 if not given
    #[arg(long, value_name = "M")]
    pub(super) micro_batches: Option<usize>,

    /// Sequences of a micro-batch; 1 if not given
    #[arg(long, value_name = "B")]
    pub(super) micro_batch_size: Option<usize>,

    /// Sequences of a step, of all replicas together; gives the micro-batches, in place of --micro-batches
    #[arg(long, value_name = "N", conflicts_with = "micro_batches")]
    pub(super) global_batch: Option<usize>,

    #[arg(long, value_name = "NAME|FILE.csv", help = schedule_help())]
    pub(super) schedule: Option<String>,

    /// Model chunks of each pipeline rank; as many as the schedule takes if not given (2 where that is any number)
    #[arg(long, value_name = "V")]
    pub(super) chunks: Option<usize>,

    #[arg(long, value_name = "PRESET|FILE.toml|config.json", help = model_help())]
    pub(super) model: Option<String>,

    #[arg(long, value_name = "NAME|FILE.toml", help = hardware_help())]
    pub(super) hardware: Option<String>,

    /// The format that costs and memory are reckoned in; the hardware's usual one if not given
    #[arg(long, value_enum, hide_possible_values = true, value_name = "bf16|f32")]
    pub(super) precision: Option<PrecisionArg>,

    /// Whether gradients are reduced over the replicas while the backward pass goes on; on if not given
    #[arg(long, value_enum, hide_possible_values = true, value_name = "on|off")]
    pub(super) overlap: Option<OnOff>,

    /// What a backward pass computes again instead of keeping it: nothing, attention's core, or each layer;
    /// `simulate` only
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "none|selective|full"
    )]
    pub(super) recompute: Option<Recompute>,

    /// Tensor-parallel ranks also share what lies between their matrices, along the sequence: reduce-scatter and
    /// all-gather in place of all-reduce
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "true|false", hide_possible_values = true)]
    pub(super) sequence_parallel: Option<bool>,

    /// What data-parallel ranks share instead of each holding all of it: 0 nothing, 1 the optimizer's state, 2
    /// gradients too, 3 parameters too. 2 and 3 are for `simulate` only: each micro-batch's gradients are reduced, and with
    /// 3 each layer's weights are gathered before each pass, the next layer's meanwhile
    #[arg(long, value_name = "0|1|2|3")]
    pub(super) zero: Option<u8>,

    /// The format in which gradients are kept and reduced, where training is in 16 bits; f32 if not given
    #[arg(long, value_enum, hide_possible_values = true, value_name = "f32|bf16")]
    pub(super) grad_dtype: Option<GradFormat>,

    /// How attention's core is costed: each step written to memory, or in one kernel (`FlashAttention`); unfused if
    /// not given
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "fused|unfused"
    )]
    pub(super) attention: Option<Attention>,

    /// Leave out the reduction of gradients over the replicas, which then drift apart
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "true|false", hide_possible_values = true)]
    pub(super) no_sync: Option<bool>,

    /// Layers of each stage by hand, such as 3,2,2,1; evenly if not given
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub(super) layers_per_stage: Option<Vec<usize>>,

    /// A GPU that takes FACTOR times as long to compute; may be given more than once. `none` puts aside a file's
    #[arg(long, value_name = "GPU=FACTOR", action = ArgAction::Append)]
    pub(super) slow: Vec<String>,

    /// A GPU over whose links all takes FACTOR times as long, or two GPUs (`0-4=10`) and the link between them; may be
    /// given more than once. `none` puts aside a file's
    #[arg(long, value_name = "GPU[-GPU]=FACTOR", action = ArgAction::Append)]
    pub(super) slow_link: Vec<String>,

    /// By how many per cent a computation takes longer at most, drawn by the seed for each one of each GPU
    #[arg(long, value_name = "PERCENT")]
    pub(super) jitter: Option<f64>,

    /// Of weights and batches; 1 if not given
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Read these options from a file, as `pp = 4`, and `steps`, `clock` (of `run`) and `costs` (of `simulate`) too;
    /// flags win over it, and its paths start where it is
    #[arg(long, value_name = "FILE.toml")]
    #[serde(skip)]
    pub(super) config: Option<PathBuf>,

    /// As `--steps` of `run`; only from a file here, as the next two.
    #[arg(skip)]
    pub(super) steps: Option<u64>,

    /// As `--clock` of `run`.
    #[arg(skip)]
    pub(super) clock: Option<ClockArg>,

    /// As `--costs` of `simulate`.
    #[arg(skip)]
    pub(super) costs: Option<String>,
}

/// Where results go.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write the timeline: .png, .svg or .pdf for a picture, .gif or .apng for one that moves, .json, .json.gz or .pftrace for Chrome and ui.perfetto.dev,
    /// .csv for a table of spans; may be given more than once
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub(super) out: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) picture: PictureArgs,

    /// Print all figures as one JSON object on standard output; everything else goes to standard error
    #[arg(long)]
    pub(super) json: bool,
}

/// How pictures are made.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct PictureArgs {
    /// Colours of pictures: dark, light, or paper for print; light if not given, or the file's
    #[arg(long, value_name = "NAME")]
    pub(super) theme: Option<ThemeArg>,

    /// Size of pictures in points, such as 1920x1080; 1280x720 if not given
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub(super) size: Option<String>,

    /// Pixels a point, such as 3 for 3840x2160 pixels; 2 if not given, 1 for pictures that move
    #[arg(long, value_name = "PIXELS")]
    pub(super) scale: Option<f32>,

    /// How long a picture that moves takes; 10 if not given
    #[arg(long, value_name = "SECONDS")]
    pub(super) seconds: Option<f64>,
}

/// Colours of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ThemeArg {
    Dark,
    Light,
    Paper,
}

/// `schedule`.
#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    #[arg(long, value_name = "NAME|FILE.csv", help = schedule_help())]
    pub(super) schedule: Option<String>,

    /// Pipeline-parallel degree; 1 if not given, or the file's
    #[arg(long, value_name = "P")]
    pub(super) pp: Option<usize>,

    /// Micro-batches; 1 if not given, or the file's
    #[arg(long, value_name = "M")]
    pub(super) micro_batches: Option<usize>,

    /// Model chunks of each pipeline rank; if not given, the file's, or as many as the schedule takes
    #[arg(long, value_name = "V")]
    pub(super) chunks: Option<usize>,

    /// `csv`: as PyTorch reads and writes it, a row a rank. `text`: a grid, each pass as long as it takes when
    /// F = I = W = 1. `svg`: a picture of the same
    #[arg(long, value_enum, default_value_t = ScheduleFormat::Csv, hide_possible_values = true, value_name = "csv|text|svg")]
    pub(super) format: ScheduleFormat,
}

/// `sweep`.
#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// GPUs, all of them used; tensor-parallel ranks stay within a node
    #[arg(long, value_name = "N")]
    pub(super) gpus: usize,

    #[command(flatten)]
    pub(super) settings: Settings,

    /// How many of the best are simulated and told
    #[arg(long, default_value_t = TOP, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000), value_name = "K")]
    pub(super) top: usize,

    /// Tokens of the whole training, for GPU-hours, money and energy; 20 a parameter if not given
    #[arg(long, value_name = "N")]
    pub(super) tokens: Option<f64>,

    /// Print the settings of the best layout for another program instead
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "megatron|deepspeed|torchtitan",
        conflicts_with = "json"
    )]
    pub(super) copy_as: Option<Framework>,

    /// Print one JSON object on standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// `compare`.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    pub(super) settings: Settings,

    /// What to compare it with: options in one word, such as `--against "--schedule gpipe --overlap off"`, in place of
    /// those of the first layout; may be given more than once
    #[arg(long, required = true, allow_hyphen_values = true, action = ArgAction::Append, value_name = "OPTIONS")]
    pub(super) against: Vec<String>,

    /// As `--costs` of `simulate`, for all of them
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), value_name = "model|unit|f=MS,i=MS,w=MS,comm=MS")]
    pub(super) costs: Option<String>,

    /// Write the picture: .png, .svg or .pdf; may be given more than once
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub(super) out: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) picture: PictureArgs,

    /// Print one JSON object on standard output: `compared`, a list of each one's `name` and `report`, which is what
    /// `simulate` prints
    #[arg(long)]
    pub(super) json: bool,
}

/// What `--against` holds.
#[derive(Debug, Parser)]
#[command(name = "--against", no_binary_name = true, disable_help_flag = true)]
pub(super) struct Against {
    #[command(flatten)]
    pub(super) settings: Settings,
}

/// `view`.
#[derive(Debug, Args)]
pub(super) struct ViewArgs {
    /// A file that Shardscope wrote (.json, .json.gz, .pftrace, .csv), or files of another program, one a rank: .json, .json.gz, a
    /// folder of them, a .tar or .tar.gz
    #[arg(required = true, value_name = "TRACE")]
    pub(super) files: Vec<PathBuf>,

    /// Print the figures, and open no window
    #[arg(long)]
    pub(super) text: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// `lesson`.
#[derive(Debug, Args)]
pub(super) struct LessonArgs {
    #[command(subcommand)]
    pub(super) verb: LessonVerb,
}

/// What is asked of lessons.
#[derive(Debug, Subcommand)]
pub(super) enum LessonVerb {
    /// The lessons there are, in their order
    List {
        #[command(flatten)]
        source: LessonSource,

        /// Print one JSON list on standard output
        #[arg(long)]
        json: bool,
    },
    /// A lesson as a text: what is asked, without the answers
    Show {
        /// Its name, as `lesson list` tells it
        id: String,

        #[command(flatten)]
        source: LessonSource,
    },
    /// Run every set-up of every lesson, and hold every answer that is stated to the engine
    Check {
        /// Lessons, or folders of them; if not given, those that come with the program, in all languages
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,

        /// Print one JSON object on standard output
        #[arg(long)]
        json: bool,
    },
}

/// Which lessons.
#[derive(Debug, Args)]
pub(super) struct LessonSource {
    /// A folder of lessons of one's own, in place of those that come with the program
    #[arg(long, value_name = "FOLDER")]
    pub(super) lessons: Option<PathBuf>,

    /// The language of those that come with the program: en (the default) or de
    #[arg(long, value_name = "en|de")]
    pub(super) language: Option<String>,
}

/// `devices`.
#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Print one JSON object on standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// `calibrate`.
#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Write the hardware here, such as machine.toml; on standard output if not given
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// Print all figures as one JSON object on standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DeviceArg {
    Emulated,
    Cpu,
    Cuda,
}

/// `--clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClockArg {
    Modelled,
    Measured,
}

/// `--precision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PrecisionArg {
    Bf16,
    F32,
}

/// `--overlap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnOff {
    On,
    Off,
}

/// `--format` of `schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScheduleFormat {
    Csv,
    Text,
    Svg,
}

impl Settings {
    /// These, and `file`'s where these say nothing. A batch size given here puts aside the file's other way to
    /// give it.
    pub(super) fn over(self, file: Self) -> Self {
        let batch_given = self.global_batch.is_some() || self.micro_batches.is_some();
        let (global_batch, micro_batches) = if batch_given {
            (self.global_batch, self.micro_batches)
        } else {
            (file.global_batch, file.micro_batches)
        };
        Self {
            dp: self.dp.or(file.dp),
            tp: self.tp.or(file.tp),
            pp: self.pp.or(file.pp),
            micro_batches,
            micro_batch_size: self.micro_batch_size.or(file.micro_batch_size),
            global_batch,
            schedule: self.schedule.or(file.schedule),
            chunks: self.chunks.or(file.chunks),
            model: self.model.or(file.model),
            hardware: self.hardware.or(file.hardware),
            precision: self.precision.or(file.precision),
            overlap: self.overlap.or(file.overlap),
            recompute: self.recompute.or(file.recompute),
            sequence_parallel: self.sequence_parallel.or(file.sequence_parallel),
            zero: self.zero.or(file.zero),
            grad_dtype: self.grad_dtype.or(file.grad_dtype),
            attention: self.attention.or(file.attention),
            no_sync: self.no_sync.or(file.no_sync),
            layers_per_stage: self.layers_per_stage.or(file.layers_per_stage),
            slow: given_or(self.slow, file.slow),
            slow_link: given_or(self.slow_link, file.slow_link),
            jitter: self.jitter.or(file.jitter),
            seed: self.seed.or(file.seed),
            config: self.config,
            steps: self.steps.or(file.steps),
            clock: self.clock.or(file.clock),
            costs: self.costs.or(file.costs),
        }
    }
}

/// A list that is given takes the other's place.
fn given_or(given: Vec<String>, other: Vec<String>) -> Vec<String> {
    if given.is_empty() { other } else { given }
}

fn schedule_help() -> String {
    let names = ScheduleKind::ALL.map(ScheduleKind::name).join(", ");
    format!("Order of work: {names}, or a CSV file as PyTorch's; 1f1b if not given")
}

fn model_help() -> String {
    let names = joined(PRESETS);
    format!(
        "Model: {names}, a TOML file, with its [optimizer], or a Hugging Face config.json; nano if not given"
    )
}

fn hardware_help() -> String {
    let names = joined(PROFILES);
    format!("GPUs and links: {names}, or a TOML file; classroom if not given")
}

fn joined(catalogue: &[(&str, &str)]) -> String {
    let names: Vec<_> = catalogue.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

//! Validated options: what is to be done, with nothing left to be parsed or refused but what only running tells.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Parser as _;

use super::Window;
use super::args::{
    Against, Cli, ClockArg, CompareArgs, DeviceArg, LessonSource, LessonVerb, OutputArgs, RunArgs,
    ScheduleArgs, ScheduleFormat, Settings, SimulateArgs, SweepArgs, ThemeArg, Verb, ViewArgs,
    WindowArgs,
};
use super::calibrate::CalibrateOptions;
use super::config;
use super::error::{CliError, CliResult};
use super::guide::GuideOptions;
use crate::export::{Drawing, ExportError, Format, Kit, all_own};
use crate::lesson::{Course, Files};
use crate::scene::tokens::Theme;
use crate::scene::{Comparison, Picture, Size};
use crate::session::{Config, Costs, Device, Fixed, Framework, SweepSpec};
use crate::words::Language;

/// The most steps that a run trains.
const MOST_STEPS: u64 = 1_000_000;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Mode {
    Window(Window),
    Run(Box<RunOptions>),
    Simulate(Box<SimulateOptions>),
    Validate(Answer),
    Sweep(Box<SweepOptions>),
    Guide(Box<GuideOptions>),
    Compare(CompareOptions),
    Schedule(Box<ScheduleOptions>),
    View(ViewOptions),
    Lesson(LessonOptions),
    Devices(Answer),
    Calibrate(CalibrateOptions),
}

/// How the result is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// For people, on standard error.
    Text,
    /// One object on standard output.
    Json,
}

/// `run`.
#[derive(Debug)]
pub(super) struct RunOptions {
    pub(super) config: Config,
    pub(super) steps: u64,
    pub(super) predict: bool,
    pub(super) inputs: RunInputs,
    pub(super) save_weights: Option<PathBuf>,
    pub(super) save_gradients: Option<PathBuf>,
    pub(super) output: Output,
}

/// What a run starts from and trains on, where it is not what ships.
#[derive(Debug, Default)]
pub(super) struct RunInputs {
    pub(super) weights: Option<PathBuf>,
    pub(super) tokens: Option<PathBuf>,
    pub(super) text: Option<PathBuf>,
}

/// `simulate`.
#[derive(Debug)]
pub(super) struct SimulateOptions {
    pub(super) config: Config,
    pub(super) output: Output,
}

/// `sweep`.
#[derive(Debug)]
pub(super) struct SweepOptions {
    pub(super) spec: SweepSpec,
    pub(super) copy_as: Option<Framework>,
    pub(super) answer: Answer,
}

/// `compare`.
#[derive(Debug)]
pub(super) struct CompareOptions {
    /// The first is the one that others are compared with.
    pub(super) configs: Vec<Config>,
    pub(super) output: Output,
}

/// `schedule`.
#[derive(Debug)]
pub(super) struct ScheduleOptions {
    /// On unit time.
    pub(super) config: Config,
    pub(super) format: ScheduleFormat,
}

/// `view`.
#[derive(Debug)]
pub(super) struct ViewOptions {
    pub(super) files: Vec<PathBuf>,
    /// Whether they are shown in the window, and not printed or written.
    pub(super) window: bool,
    pub(super) output: Output,
}

/// `lesson`.
#[derive(Debug)]
pub(super) enum LessonOptions {
    List {
        source: (Language, Option<PathBuf>),
        answer: Answer,
    },
    Show {
        id: String,
        source: (Language, Option<PathBuf>),
    },
    Check {
        paths: Vec<PathBuf>,
        answer: Answer,
    },
}

/// Where results go.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) files: Vec<PathBuf>,
    pub(super) answer: Answer,
    theme: Option<Theme>,
    size: Option<Size>,
    pub(super) drawing: Drawing,
}

impl Mode {
    /// What `cli` asks for.
    pub(super) fn new(cli: Cli) -> CliResult<Self> {
        if cli.verb.is_some() && cli.window != WindowArgs::default() {
            return Err(CliError::refused(
                "--lesson, --kit, --lessons and --language before a command are for the window, which a command does not open; \
                 leave them out, or write them after `lesson list` and `lesson show`",
            ));
        }
        match cli.verb {
            None => Window::new(cli.window).map(Self::Window),
            Some(Verb::Run(args)) => RunOptions::new(args).map(|run| Self::Run(Box::new(run))),
            Some(Verb::Simulate(args)) => {
                if args.validate {
                    let alone = args.settings == Settings::default()
                        && args.costs.is_none()
                        && args.output.out.is_empty();
                    if !alone {
                        return Err(CliError::refused(
                            "--validate has layouts of its own; only --json goes with it",
                        ));
                    }
                    return Ok(Self::Validate(Answer::new(args.output.json)));
                }
                SimulateOptions::new(args).map(|simulate| Self::Simulate(Box::new(simulate)))
            }
            Some(Verb::Schedule(args)) => {
                ScheduleOptions::new(args).map(|schedule| Self::Schedule(Box::new(schedule)))
            }
            Some(Verb::Sweep(args)) => {
                SweepOptions::new(args).map(|sweep| Self::Sweep(Box::new(sweep)))
            }
            Some(Verb::Guide(args)) => {
                GuideOptions::new(args).map(|guide| Self::Guide(Box::new(guide)))
            }
            Some(Verb::Compare(args)) => CompareOptions::new(args).map(Self::Compare),
            Some(Verb::View(args)) => ViewOptions::new(args).map(Self::View),
            Some(Verb::Lesson(args)) => LessonOptions::new(args.verb).map(Self::Lesson),
            Some(Verb::Devices(args)) => Ok(Self::Devices(Answer::new(args.json))),
            Some(Verb::Calibrate(args)) => {
                if let Some(path) = &args.out {
                    check_folder(path)?;
                }
                Ok(Self::Calibrate(CalibrateOptions {
                    out: args.out,
                    answer: Answer::new(args.json),
                }))
            }
        }
    }
}

impl Window {
    fn new(args: WindowArgs) -> CliResult<Self> {
        let language = language(args.language.as_deref())?;
        if let Some(folder) = args.lessons.as_ref().filter(|folder| !folder.exists()) {
            return Err(CliError::unreadable(folder, "there is no such folder"));
        }
        let course = match &args.lessons {
            None => Course::bundled(language),
            Some(folder) => Files::new(folder)
                .poll()
                .unwrap_or_else(|| Ok(Course::default()))
                .map_err(|error| CliError::unreadable(folder, error))?,
        };
        if let Some(id) = args
            .lesson
            .as_deref()
            .filter(|id| course.lesson(id).is_none())
        {
            let ids: Vec<&str> = course
                .lessons
                .iter()
                .map(|lesson| lesson.id.as_str())
                .collect();
            let message = format!("there is no lesson {id:?}; there are {}", ids.join(", "));
            return Err(CliError::refused(message));
        }
        let kit = args.kit.as_deref().map(Kit::from_line_or_file).transpose();
        Ok(Self {
            language,
            lessons: args.lessons,
            lesson: args.lesson,
            kit: kit.map_err(CliError::refused)?.map(Box::new),
        })
    }
}

impl Answer {
    fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

impl LessonOptions {
    fn new(verb: LessonVerb) -> CliResult<Self> {
        Ok(match verb {
            LessonVerb::List { source, json } => Self::List {
                source: lessons(source)?,
                answer: Answer::new(json),
            },
            LessonVerb::Show { id, source } => Self::Show {
                id,
                source: lessons(source)?,
            },
            LessonVerb::Check { paths, json } => Self::Check {
                paths,
                answer: Answer::new(json),
            },
        })
    }
}

fn lessons(source: LessonSource) -> CliResult<(Language, Option<PathBuf>)> {
    let language = language(source.language.as_deref())?;
    Ok((language, source.lessons))
}

/// The language that is asked for, or English.
fn language(code: Option<&str>) -> CliResult<Language> {
    let Some(code) = code else {
        return Ok(Language::default());
    };
    Language::from_code(code).ok_or_else(|| {
        let codes = Language::ALL.map(Language::code).join(", ");
        CliError::refused(format!(
            "there is no language {code:?} here; there are {codes}"
        ))
    })
}

impl RunOptions {
    fn new(args: RunArgs) -> CliResult<Self> {
        let device = device(&args)?;
        let mut settings = config::with_file(args.settings)?;
        settings.clock = args.clock.or(settings.clock);
        let is_measured = settings.clock == Some(ClockArg::Measured) || !device.is_emulated();
        if args.predict && !is_measured {
            return Err(CliError::refused(
                "--predict puts a prediction beside what was measured, but nothing is: add --device cpu or --clock \
                 measured",
            ));
        }
        let steps = args.steps.or(settings.steps).unwrap_or(10);
        if !(1..=MOST_STEPS).contains(&steps) {
            return Err(CliError::refused(format!(
                "steps is {steps}, but must be from 1 to {MOST_STEPS}"
            )));
        }
        for path in [&args.save_weights, &args.save_gradients]
            .into_iter()
            .flatten()
        {
            check_folder(path)?;
        }
        Ok(Self {
            config: Config {
                device,
                ..config::config(&settings, Costs::Model)?
            },
            steps,
            predict: args.predict,
            inputs: RunInputs {
                weights: args.weights,
                tokens: args.tokens,
                text: args.text,
            },
            save_weights: args.save_weights,
            save_gradients: args.save_gradients,
            output: Output::new(args.output)?,
        })
    }
}

/// Where the ranks are to run.
fn device(args: &RunArgs) -> CliResult<Device> {
    match args.device {
        DeviceArg::Emulated => Ok(Device::Emulated),
        DeviceArg::Cpu if args.clock == Some(ClockArg::Modelled) => Err(CliError::refused(
            "ranks of --device cpu run on this machine's own clock, which --clock modelled is not; leave it out, or use \
             --device emulated",
        )),
        DeviceArg::Cpu => Ok(Device::Cpu),
        DeviceArg::Cuda => Err(CliError::refused(
            "ranks on GPUs (--device cuda) are not in this build; --device emulated does the same training on this \
             machine's cores, and --device cpu with a thread a rank",
        )),
    }
}

/// What a sweep cannot be asked for.
fn check_sweep(gpus: usize, tokens: Option<f64>, settings: &Settings) -> CliResult {
    let unused = [
        (
            settings.micro_batches.is_some(),
            "--micro-batches",
            "it follows from --global-batch",
        ),
        (
            settings.schedule.is_some(),
            "--schedule",
            "1F1B and interleaved 1F1B are swept",
        ),
        (
            settings.layers_per_stage.is_some(),
            "--layers-per-stage",
            "each layout has stages of its own",
        ),
    ];
    if let Some((_, name, why)) = unused.into_iter().find(|(given, ..)| *given) {
        return Err(CliError::refused(format!("sweep takes no {name}: {why}")));
    }
    if !(1..=crate::mesh::MAX_RANKS).contains(&gpus) {
        let most = crate::mesh::MAX_RANKS;
        return Err(CliError::refused(format!(
            "--gpus is {gpus}, but must be from 1 to {most}"
        )));
    }
    if tokens.is_some_and(|tokens| !(tokens.is_finite() && tokens > 0.0)) {
        return Err(CliError::refused("--tokens must be a number above 0"));
    }
    for (name, degree) in [
        ("dp", settings.dp),
        ("tp", settings.tp),
        ("pp", settings.pp),
    ] {
        if let Some(degree) = degree.filter(|&degree| degree == 0 || !gpus.is_multiple_of(degree)) {
            let divisors = (1..=gpus).filter(|n| gpus.is_multiple_of(*n));
            let nearest = divisors.min_by_key(|n| n.abs_diff(degree)).unwrap_or(1);
            return Err(CliError::refused(format!(
                "--{name} {degree} does not divide {gpus} GPUs; nearest legal: {nearest}"
            )));
        }
    }
    Ok(())
}

impl SweepOptions {
    fn new(args: SweepArgs) -> CliResult<Self> {
        let settings = config::with_file(args.settings)?;
        check_sweep(args.gpus, args.tokens, &settings)?;
        let fixed = Fixed {
            dp: settings.dp,
            tp: settings.tp,
            pp: settings.pp,
            micro_batch_size: settings.micro_batch_size,
            chunks: settings.chunks,
            recompute: settings.recompute,
        };
        let free = Settings {
            dp: None,
            tp: None,
            pp: None,
            micro_batch_size: None,
            global_batch: None,
            chunks: None,
            ..settings.clone()
        };
        let base = config::config(&free, Costs::Model)?;
        let around = SweepSpec::around(&base, args.gpus);
        Ok(Self {
            spec: SweepSpec {
                base,
                global_batch: settings.global_batch.unwrap_or(args.gpus),
                tokens: args.tokens.unwrap_or(around.tokens),
                fixed,
                top: args.top,
                ..around
            },
            copy_as: args.copy_as,
            answer: Answer::new(args.json),
        })
    }
}

/// Costs as a flag or a file gives them, or the model's.
fn costs_of(flag: Option<&str>, settings: &Settings) -> CliResult<Costs> {
    match flag.or(settings.costs.as_deref()) {
        Some(text) => Costs::from_text(text).map_err(|why| {
            CliError::refused(format!("--costs {text:?}: {why}")).hint(
                "write model, unit, or the passes in ms as f=18.5,i=18.1,w=9.3,comm=0.6 (comm is 0 if left out)",
            )
        }),
        None => Ok(Costs::Model),
    }
}

impl SimulateOptions {
    fn new(args: SimulateArgs) -> CliResult<Self> {
        let settings = config::with_file(args.settings)?;
        let costs = costs_of(args.costs.as_deref(), &settings)?;
        Ok(Self {
            config: config::config(&settings, costs)?,
            output: Output::new(args.output)?,
        })
    }
}

impl CompareOptions {
    fn new(args: CompareArgs) -> CliResult<Self> {
        let base = config::with_file(args.settings)?;
        let costs = costs_of(args.costs.as_deref(), &base)?;
        let mut configs = vec![config::config(&base, costs)?];
        for text in &args.against {
            let read = Against::try_parse_from(text.split_whitespace());
            let settings = read.map_err(|error| {
                let first = error.to_string();
                let first = first.lines().next().unwrap_or_default();
                let why = first.trim_start_matches("error: ");
                CliError::refused(format!("--against {text:?}: {why}"))
            })?;
            let settings = config::with_file(settings.settings)?.over(base.clone());
            configs.push(config::config(&settings, costs)?);
        }
        for path in &args.out {
            if !Format::from_path(path)
                .map_err(CliError::refused)?
                .is_picture()
            {
                return Err(CliError::refused(ExportError::NoTrace).in_file(path));
            }
        }
        Ok(Self {
            configs,
            output: Output::new(OutputArgs {
                out: args.out,
                picture: args.picture,
                json: args.json,
            })?,
        })
    }
}

impl ScheduleOptions {
    fn new(args: ScheduleArgs) -> CliResult<Self> {
        let settings = Settings {
            schedule: args.schedule,
            pp: args.pp,
            micro_batches: args.micro_batches,
            chunks: args.chunks,
            ..Settings::default()
        };
        Ok(Self {
            config: config::config(&settings, Costs::unit())?,
            format: args.format,
        })
    }
}

impl ViewOptions {
    fn new(args: ViewArgs) -> CliResult<Self> {
        let output = Output::new(args.output)?;
        // Files of ours stand alone each, and are told one after the other.
        let several = args.files.len() > 1 && all_own(&args.files).unwrap_or(false);
        let window =
            !several && !args.text && output.answer == Answer::Text && output.files.is_empty();
        Ok(Self {
            files: args.files,
            window,
            output,
        })
    }
}

impl Output {
    fn new(args: OutputArgs) -> CliResult<Self> {
        let picture = args.picture;
        for path in &args.out {
            Format::from_path(path).map_err(CliError::refused)?;
            check_folder(path)?;
        }
        Ok(Self {
            files: args.out,
            answer: Answer::new(args.json),
            theme: picture.theme.map(|theme| match theme {
                ThemeArg::Dark => Theme::Dark,
                ThemeArg::Light => Theme::Light,
                ThemeArg::Paper => Theme::Paper,
            }),
            size: picture.size.as_deref().map(size).transpose()?,
            drawing: Drawing {
                scale: within("--scale", picture.scale, (0.5, 8.0), "pixels a point")?,
                seconds: within("--seconds", picture.seconds, (0.5, 120.0), "seconds")?
                    .unwrap_or(Drawing::default().seconds),
            },
        })
    }

    /// `picture` in the colours and of the size asked for.
    pub(super) fn dressed(&self, picture: Picture) -> Picture {
        Picture {
            theme: self.theme.unwrap_or(picture.theme),
            size: self.size.unwrap_or(picture.size),
            ..picture
        }
    }

    /// `comparison` in the colours and of the size asked for.
    pub(super) fn dressed_too(&self, comparison: Comparison) -> Comparison {
        Comparison {
            theme: self.theme.unwrap_or(comparison.theme),
            size: self.size.unwrap_or(comparison.size),
            ..comparison
        }
    }
}

/// A number that is not beside all sense.
fn within<N: PartialOrd + Display + Copy>(
    name: &str,
    number: Option<N>,
    (least, most): (N, N),
    unit: &str,
) -> CliResult<Option<N>> {
    match number {
        Some(number) if !(number >= least && number <= most) => Err(CliError::refused(format!(
            "{name} is {number}, but takes {least} to {most} {unit}"
        ))),
        number => Ok(number),
    }
}

/// A size, as `1920x1080`.
fn size(text: &str) -> CliResult<Size> {
    let sides = text.split_once(['x', 'X', '×']);
    let side = |side: &str| {
        side.trim()
            .parse::<f32>()
            .ok()
            .filter(|side| (480.0..=8192.0).contains(side))
    };
    let size = sides.and_then(|(width, height)| Some(Size::new(side(width)?, side(height)?)));
    size.ok_or_else(|| {
        CliError::refused(format!(
            "--size is {text:?}, but takes a width and a height in points, such as 1920x1080, each from 480 to 8192"
        ))
    })
}

/// Whether a file can be put there, as far as can be told before a long run.
fn check_folder(path: &std::path::Path) -> CliResult {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(CliError::refused(format!(
            "cannot write {}: there is no folder {}",
            path.display(),
            folder.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

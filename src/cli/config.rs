//! Settings as typed, made into a checked [`Config`].

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::args::{ClockArg, OnOff, PrecisionArg, Settings};
use super::error::{CliError, CliResult};
use crate::engine::{Disturbance, Slow, SlowPair};
use crate::hardware::{Hardware, Precision};
use crate::plan::Layout;
use crate::schedule::{Schedule, ScheduleKind};
use crate::session::{Clock, Config, Costs, Device};
use crate::shape::{Methods, ModelShape, Zero};

/// The most bytes that are read of a file, weights included: more than can be trained here.
const MOST_BYTES: u64 = 1 << 30;

/// These settings, and those of the file that they name.
pub(super) fn with_file(settings: Settings) -> CliResult<Settings> {
    let Some(path) = settings.config.clone() else {
        return Ok(settings);
    };
    let mut file: Settings = toml::from_str(&read(&path)?).map_err(|error| {
        CliError::refused(format!("not a configuration: {error}")).in_file(&path)
    })?;
    // Paths in a file are seen from where the file is.
    let folder = path.parent().unwrap_or(Path::new(""));
    for value in [&mut file.schedule, &mut file.model, &mut file.hardware]
        .into_iter()
        .flatten()
    {
        if let Some(inner) = file_named(value) {
            *value = folder.join(inner).display().to_string();
        }
    }
    Ok(settings.over(file))
}

/// What is run, checked as far as it goes without making a plan.
pub(super) fn config(settings: &Settings, costs: Costs) -> CliResult<Config> {
    let model = model(settings.model.as_deref().unwrap_or("nano"))?;
    let hardware = hardware(settings.hardware.as_deref().unwrap_or("classroom"))?;
    let order = order(
        settings.schedule.as_deref().unwrap_or("1f1b"),
        Cut {
            pp: settings.pp,
            micro_batches: micro_batches(settings)?,
            chunks: settings.chunks,
        },
    )?;
    let layout = Layout {
        dp: settings.dp.unwrap_or(1),
        tp: settings.tp.unwrap_or(1),
        pp: order.pp,
        micro_batches: order.micro_batches,
        micro_batch_size: settings.micro_batch_size.unwrap_or(1),
        schedule: order.kind,
        chunks: order.chunks,
    };
    let precision = settings
        .precision
        .map_or(hardware.precision, |precision| match precision {
            PrecisionArg::Bf16 => Precision::Bf16,
            PrecisionArg::F32 => Precision::F32,
        });
    Ok(Config {
        layout,
        model,
        hardware,
        precision,
        overlap: settings.overlap != Some(OnOff::Off),
        methods: Methods {
            recompute: settings.recompute.unwrap_or_default(),
            sequence_parallel: settings.sequence_parallel.unwrap_or_default(),
            zero: zero(settings.zero)?,
            grad_dtype: settings.grad_dtype.unwrap_or_default(),
            attention: settings.attention.unwrap_or_default(),
            no_sync: settings.no_sync.unwrap_or_default(),
        },
        layers_per_stage: settings.layers_per_stage.clone(),
        disturbance: disturbance(settings)?,
        costs,
        clock: match settings.clock {
            Some(ClockArg::Measured) => Clock::Measured,
            Some(ClockArg::Modelled) | None => Clock::Modelled,
        },
        device: Device::default(),
        seed: settings.seed.unwrap_or(1),
        custom: order.custom,
    })
}

fn disturbance(settings: &Settings) -> CliResult<Disturbance> {
    let one = |text: &String| {
        slowed(text).ok_or_else(|| {
            CliError::refused(format!(
                "{text:?} is not of the form GPU=FACTOR, such as 3=1.5, with a factor from 0.01 to 1000"
            ))
        })
    };
    let given = |list: &[String]| -> Vec<String> {
        let none = |text: &&String| text.trim() == "none";
        list.iter().filter(|text| !none(text)).cloned().collect()
    };
    let (slow, slow_link) = (given(&settings.slow), given(&settings.slow_link));
    let (pairs, links): (Vec<&String>, Vec<&String>) = slow_link.iter().partition(|text| {
        text.split('=')
            .next()
            .is_some_and(|gpus| gpus.contains('-'))
    });
    let pair = |text: &String| {
        pair(text).ok_or_else(|| {
            CliError::refused(format!(
                "{text:?} is not of the form GPU-GPU=FACTOR, such as 0-4=10, of two GPUs and a factor from 0.01 to 1000"
            ))
        })
    };
    Ok(Disturbance {
        slow: slow.iter().map(one).collect::<CliResult<_>>()?,
        slow_links: links.into_iter().map(one).collect::<CliResult<_>>()?,
        slow_pairs: pairs.into_iter().map(pair).collect::<CliResult<_>>()?,
        jitter: jitter(settings.jitter)?,
    })
}

/// `3=1.5`: GPU 3 takes 1.5 times as long.
fn slowed(text: &str) -> Option<Slow> {
    let (rank, factor) = text.split_once('=')?;
    let (rank, factor) = (rank.trim().parse().ok()?, self::factor(factor)?);
    Some(Slow { rank, factor })
}

/// `0-4=10`: what goes between GPUs 0 and 4 takes 10 times as long.
fn pair(text: &str) -> Option<SlowPair> {
    let (ranks, factor) = text.split_once('=')?;
    let (one, other) = ranks.split_once('-')?;
    let ranks: [u32; 2] = [one.trim().parse().ok()?, other.trim().parse().ok()?];
    let factor = self::factor(factor)?;
    (ranks[0] != ranks[1]).then_some(SlowPair { ranks, factor })
}

fn factor(text: &str) -> Option<f64> {
    let factor = text.trim().parse().ok()?;
    (0.01..=1000.0).contains(&factor).then_some(factor)
}

/// Per cent, as a share.
fn jitter(percent: Option<f64>) -> CliResult<f64> {
    let percent = percent.unwrap_or_default();
    if (0.0..=1000.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err(CliError::refused("--jitter is in per cent, from 0 to 1000"))
    }
}

fn zero(stage: Option<u8>) -> CliResult<Zero> {
    Zero::try_from(stage.unwrap_or_default()).map_err(CliError::refused)
}

/// Micro-batches as given, or of the global batch.
fn micro_batches(settings: &Settings) -> CliResult<Option<usize>> {
    let Some(batch) = settings.global_batch else {
        return Ok(settings.micro_batches);
    };
    if settings.micro_batches.is_some() {
        return Err(CliError::refused(
            "global-batch and micro-batches are both given, but each follows from the other; leave one out",
        ));
    }
    let (dp, size) = (
        settings.dp.unwrap_or(1),
        settings.micro_batch_size.unwrap_or(1),
    );
    Layout::micro_batches_of(batch, dp, size)
        .map(Some)
        .map_err(CliError::refused)
}

/// How a schedule is cut, as far as it is given.
#[derive(Clone, Copy, Debug)]
struct Cut {
    pp: Option<usize>,
    micro_batches: Option<usize>,
    chunks: Option<usize>,
}

/// A schedule that is known by name, or read from a file, with its degrees.
#[derive(Clone, Debug)]
struct Order {
    kind: ScheduleKind,
    custom: Option<Schedule>,
    pp: usize,
    micro_batches: usize,
    chunks: usize,
}

/// The schedule that `value` names; a file says its degrees itself, and refuses others.
fn order(value: &str, cut: Cut) -> CliResult<Order> {
    let Some(path) = file_with_ending(value, ".csv") else {
        let kind = ScheduleKind::from_name(value).map_err(CliError::refused)?;
        return Ok(Order {
            kind,
            custom: None,
            pp: cut.pp.unwrap_or(1),
            micro_batches: cut.micro_batches.unwrap_or(1),
            chunks: cut.chunks.unwrap_or(kind.chunks().count()),
        });
    };
    let schedule = Schedule::from_csv(&read(&path)?)
        .map_err(|error| CliError::refused(error).in_file(&path))?;
    let agree = |what: &str, given: Option<usize>, holds: usize| match given {
        Some(given) if given != holds => Err(CliError::refused(format!(
            "the schedule has {what} {holds}, not {given}; leave {what} out, or give {holds}"
        ))
        .in_file(&path)),
        Some(_) | None => Ok(holds),
    };
    Ok(Order {
        kind: ScheduleKind::OneFOneB,
        pp: agree("pp", cut.pp, schedule.pp())?,
        micro_batches: agree("micro-batches", cut.micro_batches, schedule.micro_batches())?,
        chunks: agree("chunks", cut.chunks, schedule.chunks())?,
        custom: Some(schedule),
    })
}

fn model(value: &str) -> CliResult<ModelShape> {
    if let Some(path) = file_with_ending(value, ".json") {
        // A configuration is called by the folder that it is in.
        let folder = path.parent().and_then(Path::file_name);
        let name = folder.map_or(value.into(), |name| name.to_string_lossy());
        return ModelShape::from_hugging_face(&read(&path)?, &name)
            .map_err(|error| CliError::refused(error).in_file(&path));
    }
    match file_with_ending(value, ".toml") {
        None => ModelShape::preset(value).map_err(CliError::refused),
        Some(path) => ModelShape::from_toml(&read(&path)?)
            .map_err(|error| CliError::refused(error).in_file(&path)),
    }
}

fn hardware(value: &str) -> CliResult<Hardware> {
    match file_with_ending(value, ".toml") {
        None => Hardware::profile(value).map_err(CliError::refused),
        Some(path) => Hardware::from_toml(&read(&path)?)
            .map_err(|error| CliError::refused(error).in_file(&path)),
    }
}

fn file_named(value: &str) -> Option<PathBuf> {
    [".toml", ".csv", ".json"]
        .into_iter()
        .find_map(|ending| file_with_ending(value, ending))
}

fn file_with_ending(value: &str, ending: &str) -> Option<PathBuf> {
    value
        .to_lowercase()
        .ends_with(ending)
        .then(|| PathBuf::from(value))
}

/// A text file.
pub(super) fn read(path: &Path) -> CliResult<String> {
    String::from_utf8(read_bytes(path)?)
        .map_err(|error| CliError::unreadable(path, format!("it is not UTF-8 text ({error})")))
}

/// A file.
pub(super) fn read_bytes(path: &Path) -> CliResult<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::unreadable(path, error))?;
    if bytes.len() as u64 > MOST_BYTES {
        let why = format!("it is larger than {} MiB", MOST_BYTES >> 20);
        return Err(CliError::unreadable(path, why));
    }
    Ok(bytes)
}

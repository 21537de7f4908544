//! `shardscope guide`: which layout to take, why, and why not another.

use std::ops::ControlFlow;

use clap::Args;
use serde_json::{Value, json};

use super::args::{OnOff, PrecisionArg, Settings};
use super::config;
use super::error::{CliError, CliResult};
use super::output::{print, print_json, progress};
use super::table::{Align, Table};
use crate::hardware::Hardware;
use crate::mesh::MAX_RANKS;
use crate::session::{
    Allowed, Costs, Guide, GuideError, GuideSpec, Measured, Reason, TOLERANCE, guide,
};
use crate::shape::{Attention, GradFormat, Recompute, Zero};
use crate::units::{large, percent};

/// Columns of a reason's lines.
const WIDTH: usize = 100;

/// `guide`.
#[derive(Debug, Args)]
pub(super) struct GuideArgs {
    /// GPUs, all of them used; tensor-parallel ranks stay within a node
    #[arg(long, value_name = "N")]
    gpus: usize,

    #[command(flatten)]
    settings: Settings,

    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// `guide`, checked.
#[derive(Debug)]
pub(super) struct GuideOptions {
    spec: GuideSpec,
    settings: Settings,
    json: bool,
}

impl GuideOptions {
    pub(super) fn new(args: GuideArgs) -> CliResult<Self> {
        let settings = config::with_file(args.settings)?;
        check(args.gpus, &settings)?;
        let usual = Allowed::default();
        let allowed = Allowed {
            sequence_parallel: settings
                .sequence_parallel
                .unwrap_or(usual.sequence_parallel),
            zero: match settings.zero {
                Some(stage) => Zero::try_from(stage).map_err(CliError::refused)?,
                None => usual.zero,
            },
            recompute: settings.recompute.unwrap_or(usual.recompute),
        };
        let free = Settings {
            global_batch: None,
            ..settings.clone()
        };
        let base = config::config(&free, Costs::Model)?;
        Ok(Self {
            spec: GuideSpec {
                global_batch: settings.global_batch.unwrap_or(args.gpus),
                allowed,
                ..GuideSpec::around(&base, args.gpus)
            },
            settings,
            json: args.json,
        })
    }
}

/// What a guide cannot be asked for.
fn check(gpus: usize, settings: &Settings) -> CliResult {
    let chosen = [
        ("--dp", settings.dp.is_some()),
        ("--tp", settings.tp.is_some()),
        ("--pp", settings.pp.is_some()),
        ("--micro-batches", settings.micro_batches.is_some()),
        ("--micro-batch-size", settings.micro_batch_size.is_some()),
        ("--schedule", settings.schedule.is_some()),
        ("--chunks", settings.chunks.is_some()),
        ("--layers-per-stage", settings.layers_per_stage.is_some()),
    ];
    if let Some((name, _)) = chosen.into_iter().find(|(_, given)| *given) {
        return Err(CliError::refused(format!(
            "guide takes no {name}: it is what is chosen; sweep holds such things fixed"
        )));
    }
    if !(1..=MAX_RANKS).contains(&gpus) {
        return Err(CliError::refused(format!(
            "--gpus is {gpus}, but must be from 1 to {MAX_RANKS}"
        )));
    }
    if settings.global_batch == Some(0) {
        return Err(CliError::refused(
            "--global-batch is 0, but must be at least 1",
        ));
    }
    Ok(())
}

/// Chooses, and says why.
pub(super) fn run(options: &GuideOptions) -> CliResult {
    let bar = progress(0, "layout {pos}/{len}  {bar:40}  {eta} left");
    let found = guide(&options.spec, &mut |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let found = found.map_err(|error| refused(&error))?;
    // No one ends it but the system.
    let Some(found) = found else {
        return Ok(());
    };
    if options.json {
        print_json(&object(options, &found))
    } else {
        print(&text(options, &found))
    }
}

/// The refusal, with what to ask instead.
fn refused(error: &GuideError) -> CliError {
    let said = CliError::refused(error);
    match error {
        GuideError::NothingFits {
            fewest: Some(fewest),
            ..
        } => said.hint(format!(
            "--gpus {} --global-batch {}",
            fewest.gpus, fewest.global_batch
        )),
        GuideError::NothingFits { fewest: None, .. }
        | GuideError::Config(_)
        | GuideError::NoLayout { .. } => said,
    }
}

fn object(options: &GuideOptions, found: &Guide) -> Value {
    let mut object = json!({
        "gpus": options.spec.gpus,
        "global_batch": options.spec.global_batch,
        "allowed": options.spec.allowed,
        "command": command(&options.settings, &found.chosen),
    });
    if let (Some(object), Ok(Value::Object(own))) =
        (object.as_object_mut(), serde_json::to_value(found))
    {
        object.extend(own);
    }
    object
}

fn text(options: &GuideOptions, found: &Guide) -> String {
    let spec = &options.spec;
    let hardware: &Hardware = &spec.base.hardware;
    let chosen = &found.chosen;
    let mut parts = vec![format!(
        "{} on {} × {}, global batch {}\n\n  {}\n\n",
        spec.base.model.name,
        spec.gpus,
        hardware.title,
        spec.global_batch,
        chosen.named()
    )];
    let mut figures = Table::new(&[Align::Left]);
    figures.row(["step", &chosen.step_text()]);
    figures.row(["tokens/s", &large(found.tokens_per_s)]);
    figures.row(["MFU", &percent(found.mfu)]);
    let memory = format!(
        "{} of {}, the fullest GPU",
        chosen.peak_memory_bytes, found.capacity
    );
    figures.row(["memory", &memory]);
    figures.row([
        "bubble",
        &format!("{} of total", percent(chosen.bubble_of_total)),
    ]);
    parts.push(figures.render());
    parts.push("\nwhy\n\n".to_owned());
    let reasons = found.reasons.iter().enumerate();
    parts.extend(reasons.map(|(index, reason)| told(index + 1, reason)));
    parts.push("rejected\n\n".to_owned());
    let mut table = Table::new(&[Align::Left]);
    for one in &found.rejected {
        let layout = one
            .layout
            .map_or_else(|| "–".to_owned(), |one| degrees(&one));
        table.row([one.name.clone(), layout, one.why.clone()]);
    }
    parts.push(table.render());
    parts.push(format!(
        "\n{} layouts looked at, {} fit; taken is the simplest within {} of the fastest; *: taken; ≈: in closed \
         form, all else simulated\n\nto simulate it\n\n  {}\n",
        found.layouts,
        found.fitting,
        percent(TOLERANCE),
        command(&options.settings, chosen)
    ));
    parts.concat()
}

fn degrees(one: &Measured) -> String {
    let layout = &one.layout;
    format!("{} × {} × {}", layout.dp, layout.tp, layout.pp)
}

/// A question with its number, its answer and the figures behind it.
fn told(number: usize, reason: &Reason) -> String {
    let facts = reason.facts.iter();
    let facts: Vec<String> = facts
        .map(|fact| format!("{} {}", fact.name, fact.value))
        .collect();
    let ways = reason.ways.iter().map(|way| {
        let mark = if way.taken { "*" } else { "" };
        format!("{mark}{}: {}", way.name, way.best.outcome())
    });
    let ways: Vec<String> = ways.collect();
    let lines = [
        facts.join(", "),
        ways.join(" | "),
        reason.consequence.clone(),
    ];
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    let lines: String = lines.map(|line| wrapped(&line)).collect();
    format!(
        "{number:>3}  {} {}\n{lines}\n",
        reason.question, reason.answer
    )
}

/// A line, broken where it grows too long, under its question.
fn wrapped(line: &str) -> String {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last().map_or(0, |last| last.chars().count());
        if last > 0 && last + word.chars().count() >= WIDTH {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    format!("     {}\n", lines.join("\n     "))
}

/// The command that simulates it, on the same model and hardware.
fn command(settings: &Settings, chosen: &Measured) -> String {
    let layout = &chosen.layout;
    let mut parts = vec!["shardscope simulate".to_owned()];
    let mut set = |name: &str, value: String| parts.push(format!("--{name} {value}"));
    let quoted = |name: &String| {
        if name.contains(char::is_whitespace) {
            format!("\"{name}\"")
        } else {
            name.clone()
        }
    };
    if let Some(model) = &settings.model {
        set("model", quoted(model));
    }
    if let Some(hardware) = &settings.hardware {
        set("hardware", quoted(hardware));
    }
    set("dp", layout.dp.to_string());
    set("tp", layout.tp.to_string());
    set("pp", layout.pp.to_string());
    set("micro-batches", layout.micro_batches.to_string());
    set("micro-batch-size", layout.micro_batch_size.to_string());
    if layout.chunks > 1 {
        set("schedule", layout.schedule.name().to_owned());
        set("chunks", layout.chunks.to_string());
    }
    if chosen.zero != Zero::Off {
        set("zero", u8::from(chosen.zero).to_string());
    }
    if chosen.recompute != Recompute::None {
        set("recompute", chosen.recompute.name().to_owned());
    }
    match settings.precision {
        Some(PrecisionArg::Bf16) => set("precision", "bf16".to_owned()),
        Some(PrecisionArg::F32) => set("precision", "f32".to_owned()),
        None => {}
    }
    if settings.overlap == Some(OnOff::Off) {
        set("overlap", "off".to_owned());
    }
    if settings.grad_dtype == Some(GradFormat::Bf16) {
        set("grad-dtype", "bf16".to_owned());
    }
    if settings.attention == Some(Attention::Fused) {
        set("attention", "fused".to_owned());
    }
    if chosen.sequence_parallel {
        parts.push("--sequence-parallel".to_owned());
    }
    parts.join(" ")
}

//! `shardscope view`: files that `run` or `simulate` wrote, read back.

use std::path::Path;

use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::figures;
use super::options::{Answer, ViewOptions};
use super::output::{print_json, say, write_files};
use crate::export::{self, Export};
use crate::scene::Picture;
use crate::session::{RankReport, Report};
use crate::trace::Trace;
use crate::trace::import::Imported;
use crate::units::percent;

/// Reads each file, writes it in other formats, tells its figures.
pub(super) fn run(options: &ViewOptions) -> CliResult {
    for path in &options.files {
        view(path, options)?;
    }
    Ok(())
}

fn view(path: &Path, options: &ViewOptions) -> CliResult {
    let Imported {
        trace,
        picture,
        report,
    } = export::read(path).map_err(CliError::refused)?;
    let export = Export {
        trace: &trace,
        picture: &picture_of(path, picture)?,
        report: &report,
    };
    write_files(&export, &options.output)?;
    // A table of spans carries no report, and what follows from spans alone is told.
    let run: Option<Report> = known(path, "report", report)?;
    match (options.output.answer, run) {
        (Answer::Json, Some(run)) => print_json(&run),
        (Answer::Json, None) => print_json(&figures_of(&trace)),
        (Answer::Text, Some(run)) => {
            say(&figures::text(&run));
            Ok(())
        }
        (Answer::Text, None) => {
            say(&text_of(&trace));
            Ok(())
        }
    }
}

fn picture_of(path: &Path, value: Value) -> CliResult<Picture> {
    let picture: Option<Picture> = known(path, "picture", value)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(picture.unwrap_or_else(|| Picture {
        title: name.into_owned(),
        ..Picture::default()
    }))
}

/// A part of the file, which may be absent but not garbled.
fn known<T: serde::de::DeserializeOwned>(
    path: &Path,
    what: &str,
    value: Value,
) -> CliResult<Option<T>> {
    serde_json::from_value(value).map_err(|error| {
        CliError::unreadable(
            path,
            format!("its {what} is damaged ({error}); export it again"),
        )
    })
}

/// The figures that need nothing but spans.
fn figures_of(trace: &Trace) -> Value {
    let bubbles = trace.bubbles();
    json!({
        "makespan_s": trace.makespan.secs(),
        "pipeline_s": trace.pipeline_end().secs(),
        "bubble_of_total": bubbles.of_total,
        "bubble_of_ideal": bubbles.of_ideal,
        "bubble_stage_span": bubbles.stage_span,
        "ranks": RankReport::all(trace),
    })
}

fn text_of(trace: &Trace) -> String {
    let bubbles = trace.bubbles();
    let ranks = figures::ranks(&RankReport::all(trace), trace.makespan.secs());
    format!(
        "A table of spans, without the run's configuration\n\n  step {}, bubble of total {}\n\n{ranks}",
        trace.makespan,
        percent(bubbles.of_total)
    )
}

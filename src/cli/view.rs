//! `shardscope view`: files that `run` or `simulate` wrote, read back, and traces of other programs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::figures;
use super::options::{Answer, Output, ViewOptions};
use super::output::{print_json, progress, say, write_files};
use super::table::{Align, Table};
use crate::export::{self, Export, Opened};
use crate::scene::{Picture, Stamp};
use crate::session::{RankReport, Report};
use crate::trace::Trace;
use crate::trace::import::{Foreign, Imported};
use crate::units::percent;

/// Reads each file of ours, or all files of another program as one; writes it in other formats, tells its figures.
pub(super) fn run(options: &ViewOptions) -> CliResult {
    let files = options.files.as_slice();
    let told = options.output.answer == Answer::Text && options.output.files.is_empty();
    if files.len() > 1 && told && export::all_own(files).map_err(CliError::refused)? {
        return files
            .iter()
            .try_for_each(|path| view(std::slice::from_ref(path), &options.output));
    }
    view(files, &options.output)
}

/// A file of ours, or those of another program.
fn view(files: &[PathBuf], output: &Output) -> CliResult {
    let bar = progress(0, "reading {bytes}/{total_bytes}  {bar:40}  {eta} left");
    let opened = export::open(files, &mut |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    match (opened.map_err(CliError::refused)?, files) {
        (Opened::Own(imported), [path, ..]) => own(path, *imported, output),
        (Opened::Foreign(foreign), [path, ..]) => other(path, &foreign, output),
        (Opened::Own(_) | Opened::Foreign(_), []) => Ok(()),
    }
}

/// A trace of another program.
fn other(path: &Path, foreign: &Foreign, output: &Output) -> CliResult {
    let report = json!({
        "makespan_s": foreign.trace.makespan.secs(),
        "spans": foreign.trace.span_count(),
        "ranks": foreign.ranks,
        "notes": foreign.notes,
    });
    let picture = Picture {
        stamp: Stamp {
            layout: match foreign.ranks.len() {
                1 => "one rank".to_owned(),
                ranks => format!("{ranks} ranks"),
            },
            engine: "measured".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Stamp::default()
        },
        arrows: !foreign.trace.arrows.is_empty(),
        ..picture_of(path, Value::Null)?
    };
    let export = Export {
        trace: &foreign.trace,
        picture: &picture,
        report: &report,
    };
    write_files(&export, output)?;
    match output.answer {
        Answer::Json => print_json(&report),
        Answer::Text => {
            say(&text_of_other(foreign));
            Ok(())
        }
    }
}

fn text_of_other(foreign: &Foreign) -> String {
    let mut table = Table::new(&[Align::Right, Align::Left, Align::Right]);
    table.row(
        [
            "rank",
            "file",
            "kernels",
            "idle",
            "compute",
            "other",
            "overlapped",
            "waits",
            "clock",
        ]
        .map(str::to_owned),
    );
    let share =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| percent(share / 100.0));
    let micros =
        |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0} µs"));
    for rank in &foreign.ranks {
        table.row([
            rank.rank.to_string(),
            rank.file.clone(),
            rank.kernels.to_string(),
            share(rank.idle_pct),
            share(rank.compute_pct),
            share(rank.non_compute_pct),
            share(rank.comp_comm_overlap_pct),
            micros(rank.comm_wait_us),
            micros(rank.clock_offset_us),
        ]);
    }
    let notes: Vec<String> = foreign
        .notes
        .iter()
        .map(|note| format!("note: {note}\n"))
        .collect();
    let notes = notes.concat();
    format!(
        "A trace of another program: {} spans in {}\n\n{}\n{notes}",
        foreign.trace.span_count(),
        foreign.trace.makespan,
        table.render(),
    )
}

/// A trace of another program, in a file of ours.
fn again(path: &Path, trace: Trace, report: &Value, output: &Output) -> CliResult {
    if output.answer == Answer::Json {
        return print_json(report);
    }
    let part = |name: &str| report.get(name).cloned().unwrap_or_else(|| json!([]));
    let foreign = Foreign {
        trace,
        ranks: known(path, "table of ranks", part("ranks"))?.unwrap_or_default(),
        notes: known(path, "list of notes", part("notes"))?.unwrap_or_default(),
    };
    say(&text_of_other(&foreign));
    Ok(())
}

/// A trace of ours.
fn own(path: &Path, imported: Imported, output: &Output) -> CliResult {
    let Imported {
        trace,
        picture,
        report,
    } = imported;
    let export = Export {
        trace: &trace,
        picture: &picture_of(path, picture)?,
        report: &report,
    };
    write_files(&export, output)?;
    if !trace.tracks.is_empty() {
        return again(path, trace, &report, output);
    }
    // A table of spans carries no report, and what follows from spans alone is told.
    let run: Option<Report> = known(path, "report", report)?;
    match (output.answer, run) {
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
    // Without any of its endings.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let title = name.split('.').next().unwrap_or_default().to_owned();
    Ok(picture.unwrap_or_else(|| Picture {
        title,
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

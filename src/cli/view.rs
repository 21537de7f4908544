//! `shardscope view`: files that `run` or `simulate` wrote, read back, and traces of other programs.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::figures;
use super::options::{Answer, Output, ViewOptions};
use super::output::{print_json, progress, say, write_files};
use super::table::{Align, Table};
use crate::export::{self, Export, Others, Viewed};
use crate::session::RankReport;
use crate::trace::Trace;
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
    let mut viewed =
        Viewed::new(files, opened.map_err(CliError::refused)?).map_err(CliError::refused)?;
    viewed.picture = output.dressed(viewed.picture);
    let export = Export {
        drawing: output.drawing,
        ..viewed.export()
    };
    write_files(&export, &output.files)?;
    match (output.answer, &viewed.run, &viewed.others) {
        (Answer::Json, Some(run), _) => print_json(run),
        (Answer::Json, None, Some(_)) => print_json(&viewed.report),
        (Answer::Json, None, None) => print_json(&figures_of(&viewed.trace)),
        (Answer::Text, Some(run), _) => {
            say(&figures::text(run));
            Ok(())
        }
        (Answer::Text, None, Some(others)) => {
            say(&text_of_other(&viewed.trace, others));
            Ok(())
        }
        (Answer::Text, None, None) => {
            say(&text_of(&viewed.trace));
            Ok(())
        }
    }
}

fn text_of_other(trace: &Trace, others: &Others) -> String {
    let mut table = Table::new(&[Align::Right, Align::Left, Align::Right]);
    let cells = export::others_table(&others.ranks);
    for row in cells {
        table.row(row);
    }
    let notes: Vec<String> = others
        .notes
        .iter()
        .map(|note| format!("note: {note}\n"))
        .collect();
    let notes = notes.concat();
    let straggler = others
        .straggler_line()
        .map_or_else(String::new, |line| line + "\n");
    format!(
        "A trace of another program: {} spans in {}\n\n{}\n{straggler}{notes}",
        trace.span_count(),
        trace.makespan,
        table.render(),
    )
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

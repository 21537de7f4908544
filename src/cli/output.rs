//! Where text goes: results to standard output, all else to standard error; and timelines to files.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::error::{CliError, CliResult};
use super::options::{Answer, Output};
use crate::export::{self, Export};
use crate::session::Report;
use crate::trace::Trace;

/// Prints a result. A reader that has seen enough, such as `head`, is no error.
pub(super) fn print(text: &str) -> CliResult {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a result as one JSON object.
pub(super) fn print_json(value: &impl Serialize) -> CliResult {
    let text = serde_json::to_string_pretty(value).map_err(CliError::failed)?;
    print(&(text + "\n"))
}

/// Says something to whoever watches.
pub(super) fn say(text: &str) {
    // If even standard error is closed, no one watches.
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Writes a run's timeline to the files asked for, and tells its figures.
pub(super) fn deliver(report: &Report, text: &str, trace: &Trace, output: &Output) -> CliResult {
    if !output.files.is_empty() {
        let value = serde_json::to_value(report).map_err(CliError::failed)?;
        let picture = output.dressed(export::picture(report));
        let export = Export {
            trace,
            picture: &picture,
            report: &value,
            drawing: output.drawing,
        };
        write_files(&export, &output.files)?;
    }
    match output.answer {
        Answer::Json => print_json(report),
        Answer::Text => {
            say(text);
            Ok(())
        }
    }
}

/// Writes `export` to every file asked for.
pub(super) fn write_files<'a>(
    export: &Export<'_>,
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> CliResult {
    for path in files {
        export::write(path, export).map_err(CliError::failed)?;
        say(&format!("wrote {}\n", path.display()));
    }
    Ok(())
}

/// Progress of so many, told as `template` says; on a terminal only.
pub(super) fn progress(count: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(count).with_style(style)
}

//! Where text goes: results to standard output, all else to standard error; and timelines to files.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use serde::Serialize;

use super::error::{CliError, CliResult};
use super::options::{Answer, Output};
use crate::export::{self, Export, ExportError, Picture};
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
        let picture = export::picture(report);
        let export = Export {
            trace,
            picture: &picture,
            report: &value,
        };
        write_files(&export, output)?;
    }
    match output.answer {
        Answer::Json => print_json(report),
        Answer::Text => {
            say(text);
            Ok(())
        }
    }
}

//! What goes wrong, for the user: what, why and what to do, and the exit status that says it to scripts.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::session::ConfigError;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What was asked for cannot be; nothing has run.
    Refused,
    /// It began, and then something failed.
    Failed,
}

/// An error as it is shown.
#[derive(Debug)]
pub(super) struct CliError {
    pub(super) kind: Kind,
    message: String,
    hints: Vec<String>,
}

/// What a command comes to.
pub(super) type CliResult<T = ()> = Result<T, CliError>;

impl CliError {
    /// What was asked for cannot be.
    pub(super) fn refused(message: impl Display) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// Something failed on the way.
    pub(super) fn failed(message: impl Display) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// An input file that cannot be read.
    pub(super) fn unreadable(path: &Path, why: impl Display) -> Self {
        Self::refused(format!("cannot read {}: {why}", path.display()))
    }

    fn new(kind: Kind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            hints: Vec::new(),
        }
    }

    /// With something to try.
    pub(super) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// With the file that it is about named in front.
    pub(super) fn in_file(mut self, path: &Path) -> Self {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }

    /// Shows it on standard error.
    pub(super) fn report(&self) -> ExitCode {
        let hints: String = self
            .hints
            .iter()
            .flat_map(|hint| ["hint: ", hint, "\n"])
            .collect();
        let text = format!("error: {}\n{hints}", self.message.trim_end());
        // If even standard error is closed, the exit status must do.
        drop(std::io::stderr().lock().write_all(text.as_bytes()));
        ExitCode::from(match self.kind {
            Kind::Failed => 1,
            Kind::Refused => 2,
        })
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::refused(error)
    }
}

/// Results that could not be printed.
impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(format!("cannot write to standard output: {error}"))
    }
}

//! The command line: raw options (`args`), validated options (`options`), one match over what is to be done.
//!
//! A thin edge: nothing is computed here. Results for scripts go to standard output, all else to standard error.

mod args;
mod beside;
mod calibrate;
mod compare;
mod config;
mod devices;
mod error;
mod figures;
mod guide;
mod lesson;
mod options;
mod output;
mod reference;
mod run;
mod schedule;
mod simulate;
mod sweep;
mod table;
mod validate;
mod view;

pub use reference::reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::Cli;
use self::error::{CliError, CliResult};
use self::options::Mode;
use crate::export::Kit;
use crate::words::Language;

/// How the window on a run opens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// The language of texts.
    pub language: Language,
    /// A folder of lessons of one's own.
    pub lessons: Option<PathBuf>,
    /// The lesson that is open, by its name.
    pub lesson: Option<String>,
    /// What a class kit restores.
    pub kit: Option<Box<Kit>>,
}

/// What the window is to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// A run.
    Run(Window),
    /// Traces in files.
    Files(Vec<PathBuf>),
}

/// Does what the command line asks; `open_window` is called when it asks for a window.
pub fn main(open_window: impl FnOnce(Show) -> Result<(), String>) -> ExitCode {
    // Clap prints help, versions and its own refusals, and exits with 0 or 2.
    let done = Mode::new(Cli::parse()).and_then(|mode| dispatch(mode, open_window));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn dispatch(mode: Mode, open_window: impl FnOnce(Show) -> Result<(), String>) -> CliResult {
    match mode {
        Mode::Window(window) => open_window(Show::Run(window)).map_err(CliError::failed),
        Mode::Run(options) => run::run(&options),
        Mode::Simulate(options) => simulate::run(&options),
        Mode::Sweep(options) => sweep::run(&options),
        Mode::Guide(options) => guide::run(&options),
        Mode::Compare(options) => compare::run(&options),
        Mode::Validate(answer) => validate::run(answer),
        Mode::Schedule(options) => schedule::run(&options),
        Mode::View(options) if options.window => {
            open_window(Show::Files(options.files)).map_err(CliError::failed)
        }
        Mode::View(options) => view::run(&options),
        Mode::Lesson(options) => lesson::run(&options),
        Mode::Devices(answer) => devices::run(answer),
        Mode::Calibrate(options) => calibrate::run(&options),
    }
}

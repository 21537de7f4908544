//! Reads traces from files that Shardscope wrote, and Chrome JSON of others, PyTorch's profiler first. Whatever else comes
//! in is an error, never a panic.

mod align;
mod check;
mod chrome;
mod csv;
mod events;
mod foreign;
mod kernels;
pub(crate) mod pftrace;
mod scan;
#[cfg(test)]
mod tests;

pub use chrome::{FORMAT, chrome};
pub use csv::{COLUMNS, csv};
pub use foreign::{CollectiveWaits, Foreign, ForeignFile, foreign};
pub use kernels::GpuFigures;
pub use pftrace::perfetto;

use serde_json::Value;

use super::Trace;

/// A trace with what its file says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The trace.
    pub trace: Trace,
    /// The picture's title, stamp and cards, as the exporter wrote them; null from CSV.
    pub picture: Value,
    /// The figures of the run, as `--json` prints them; null from CSV.
    pub report: Value,
}

/// A file that is no trace of ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Neither JSON nor anything else.
    #[error("it is no valid JSON ({0}); it may be cut off, export it again")]
    Json(#[source] serde_json::Error),
    /// A trace of another program.
    #[error(
        "it was not written by Shardscope; of other programs' traces, Chrome's JSON format can be read"
    )]
    Foreign,
    /// Whoever wanted it wants it no longer.
    #[error("it was not read to its end")]
    Stopped,
    /// No trace at all.
    #[error(
        "no trace events are in {file}; give a trace of PyTorch's profiler, or another in Chrome's JSON format"
    )]
    NoEvents {
        /// Which file.
        file: String,
    },
    /// A picture, which holds no times.
    #[error("a picture cannot be read back; give the .json, .json.gz or .csv of the same run")]
    Picture,
    /// Written by a later version.
    #[error("it has format {found}, this version reads {FORMAT}; update Shardscope")]
    Later {
        /// The file's format.
        found: u32,
    },
    /// What is in it contradicts itself.
    #[error("{0}; the file is damaged, export it again")]
    Damaged(String),
}

fn damaged(why: impl Into<String>) -> ImportError {
    ImportError::Damaged(why.into())
}

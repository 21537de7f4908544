//! What can go wrong with a file.

use std::path::PathBuf;

use crate::trace::import::ImportError;

/// The formats that can be written, as endings.
pub const FORMATS: &str = ".png, .svg, .pdf, .gif, .apng, .json, .json.gz, .pftrace, .csv";

/// A file that was not written or read: what, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// An ending that stands for no format.
    #[error("cannot tell the format of {path}: its ending is none of {FORMATS}; add one of them")]
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// Several timelines are a picture, and no trace.
    #[error(
        "a comparison is written as a picture: .png, .svg or .pdf; write each timeline's trace by itself"
    )]
    NoTrace,
    /// A picture that could not be made.
    #[error("cannot make the {what}: {why}; write .svg instead, or a smaller picture")]
    Picture {
        /// Which format.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// A file system's refusal; a file that was there before is still whole.
    #[error("cannot write {path}: {source}; check that the folder exists and has room")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file that cannot be opened or unpacked.
    #[error("cannot read {path}: {source}; check that the file exists and is whole")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file that is too large.
    #[error("cannot read {path}: it holds more than {limit} bytes; export fewer ranks")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// A folder or an archive without traces.
    #[error("{path} holds no trace: neither .json nor .json.gz files are in it")]
    Empty {
        /// The folder or archive.
        path: PathBuf,
    },
    /// Several files, one of which is ours.
    #[error("{path} was written by Shardscope and holds all ranks of a run; open it by itself")]
    Several {
        /// The file.
        path: PathBuf,
    },
    /// A file that is no trace of ours.
    #[error("cannot read {path}: {source}")]
    Import {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ImportError,
    },
}

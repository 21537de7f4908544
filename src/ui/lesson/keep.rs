//! Progress kept between starts, in a file of the user's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::export;
use crate::lesson::Progress;
use crate::lesson::build::Progress as Built;

/// What is kept between starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::ui) struct Record {
    /// How far the reader is in each lesson.
    pub(super) lessons: BTreeMap<String, Progress>,
    /// Schedules built by hand.
    pub(super) built: Built,
    /// Whether the window was shown around, or that was declined.
    pub(super) toured: bool,
}

/// Where progress is kept: where the system keeps what programs remember. Nowhere if it does not say.
pub(in crate::ui) fn place() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let base = if cfg!(windows) {
        folder("APPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))
    };
    base.map(|base| base.join("shardscope").join("progress.json"))
}

/// What is kept in `path`; nothing if there is no such file, or another program wrote it.
pub(super) fn read(path: &Path) -> Record {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Record::default();
    };
    serde_json::from_str(&text).unwrap_or_else(|_damaged| {
        // Not written over: somebody may mend it.
        drop(std::fs::rename(path, path.with_extension("damaged.json")));
        Record::default()
    })
}

/// Keeps `record` in `path`. That it cannot is no reason to disturb a reader.
pub(super) fn write(path: &Path, record: &Record) {
    let Ok(text) = serde_json::to_string_pretty(record) else {
        return;
    };
    let folder = path.parent().map(std::fs::create_dir_all);
    if folder.is_some_and(|made| made.is_ok()) {
        drop(export::write_text(path, &text));
    }
}

//! A trace that was opened, with what its file says about it: for the window and for the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::scene::{Picture, Stamp};
use crate::session::Report;
use crate::trace::Trace;
use crate::trace::import::{CollectiveWaits, Foreign, GpuFigures, ImportError};
use crate::units::percent;

use super::error::ExportError;
use super::{Drawing, Export, Opened};

/// What another program's trace says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// Each file's GPU.
    pub ranks: Vec<GpuFigures>,
    /// Who waited for whom, the longest waits first.
    pub collectives: Vec<CollectiveWaits>,
    /// What there is to say: clocks that could not be aligned, events that could not be read.
    pub notes: Vec<String>,
}

/// A trace that was opened.
#[derive(Clone, Debug)]
pub struct Viewed {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Title, stamp, figures of a picture of it.
    pub picture: Picture,
    /// The figures, as `--json` prints them; null where only spans are known.
    pub report: Value,
    /// The same of a run of ours.
    pub run: Option<Box<Report>>,
    /// The same of another program's trace.
    pub others: Option<Others>,
}

impl Others {
    /// For whom others waited how long in all, in microseconds, and how often that rank came last; the longest first.
    pub fn stragglers(&self) -> Vec<(u64, f64, usize)> {
        let mut sums: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
        for one in &self.collectives {
            let sum = sums.entry(one.last).or_default();
            sum.0 += one.sum_us();
            sum.1 += 1;
        }
        let mut all: Vec<_> = sums
            .into_iter()
            .map(|(rank, (wait, times))| (rank, wait, times))
            .collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all
    }

    /// The same in a sentence, if there is one for whom others waited.
    pub fn straggler_line(&self) -> Option<String> {
        let &(rank, wait, times) = self
            .stragglers()
            .first()
            .filter(|(_, wait, _)| *wait > 0.0)?;
        let all = self.collectives.len();
        Some(format!(
            "Others waited longest for rank {rank}: {wait:.0} µs in all; it came last to {times} of {all} collectives"
        ))
    }
}

impl Viewed {
    /// What `opened` from `files` is.
    pub fn new(files: &[PathBuf], opened: Opened) -> Result<Self, ExportError> {
        let path = files.first().map_or(Path::new(""), PathBuf::as_path);
        match opened {
            Opened::Own(imported) => {
                let imported = *imported;
                own(path, imported.trace, imported.picture, imported.report)
            }
            Opened::Foreign(foreign) => Ok(other(path, *foreign)),
        }
    }

    /// What goes into a file.
    pub fn export(&self) -> Export<'_> {
        Export {
            trace: &self.trace,
            picture: &self.picture,
            report: &self.report,
            drawing: Drawing::default(),
        }
    }
}

fn own(path: &Path, trace: Trace, picture: Value, report: Value) -> Result<Viewed, ExportError> {
    let picture: Option<Picture> = known(path, "picture", picture)?;
    let picture = picture.unwrap_or_else(|| Picture {
        title: title(path),
        ..Picture::default()
    });
    // What another program wrote, in a file of ours.
    let others = if trace.tracks.is_empty() {
        None
    } else {
        Some(Others {
            ranks: part(path, &report, "ranks")?,
            collectives: part(path, &report, "collectives")?,
            notes: part(path, &report, "notes")?,
        })
    };
    // A table of spans carries no report.
    let run: Option<Report> = match others {
        Some(_) => None,
        None => known(path, "report", report.clone())?,
    };
    Ok(Viewed {
        trace: Arc::new(trace),
        picture,
        report,
        run: run.map(Box::new),
        others,
    })
}

fn other(path: &Path, foreign: Foreign) -> Viewed {
    let Foreign {
        trace,
        ranks,
        collectives,
        notes,
    } = foreign;
    let report = json!({
        "makespan_s": trace.makespan.secs(),
        "spans": trace.span_count(),
        "ranks": ranks,
        "collectives": collectives,
        "notes": notes,
    });
    let picture = Picture {
        title: title(path),
        stamp: Stamp {
            layout: match ranks.len() {
                1 => "one rank".to_owned(),
                ranks => format!("{ranks} ranks"),
            },
            engine: "measured".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Stamp::default()
        },
        arrows: !trace.arrows.is_empty(),
        ..Picture::default()
    };
    Viewed {
        trace: Arc::new(trace),
        picture,
        report,
        run: None,
        others: Some(Others {
            ranks,
            collectives,
            notes,
        }),
    }
}

/// A file's name without any of its endings.
fn title(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// A list in a report, which may be absent.
fn part<T: serde::de::DeserializeOwned + Default>(
    path: &Path,
    report: &Value,
    name: &'static str,
) -> Result<T, ExportError> {
    let value = report.get(name).cloned().unwrap_or(Value::Null);
    Ok(known(path, name, value)?.unwrap_or_default())
}

/// A part of the file, which may be absent but not garbled.
fn known<T: serde::de::DeserializeOwned>(
    path: &Path,
    what: &str,
    value: Value,
) -> Result<Option<T>, ExportError> {
    serde_json::from_value(value).map_err(|error| ExportError::Import {
        path: path.to_owned(),
        source: ImportError::Damaged(format!("its {what} cannot be read ({error})")),
    })
}

/// The figures of other programs' ranks as a table, its heads first.
pub fn others_table(ranks: &[GpuFigures]) -> Vec<[String; 9]> {
    let heads = [
        "rank",
        "file",
        "kernels",
        "idle",
        "compute",
        "other",
        "overlapped",
        "waits",
        "clock",
    ];
    let share =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| percent(share / 100.0));
    let micros =
        |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0} µs"));
    let row = |rank: &GpuFigures| {
        [
            rank.rank.to_string(),
            rank.file.clone(),
            rank.kernels.to_string(),
            share(rank.idle_pct),
            share(rank.compute_pct),
            share(rank.non_compute_pct),
            share(rank.comp_comm_overlap_pct),
            micros(rank.comm_wait_us),
            micros(rank.clock_offset_us),
        ]
    };
    std::iter::once(heads.map(str::to_owned))
        .chain(ranks.iter().map(row))
        .collect()
}

//! A timeline told in words: what every GPU does at a time, and all of it as a text for those who cannot see it.

mod account;
mod act;
mod headline;
mod words;

pub use account::account;

use std::collections::HashMap;

use crate::trace::{Arrivals, Groups, Trace};
use crate::units::Nanos;
use crate::words::Language;

use super::overview::row_order;
use act::{Act, Teller};
use headline::Course;

/// More lines than these nobody reads at once: ranks that do alike are then told together.
pub const MOST_LINES: usize = 12;

/// What happens at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Which phase of the step it is.
    pub headline: String,
    /// What every rank does, in the order of rows; at most [`MOST_LINES`].
    pub lines: Vec<Line>,
}

/// What some ranks do, all of them the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The ranks, by their places in [`Trace::ranks`].
    pub ranks: Vec<usize>,
    /// Who they are: `GPU 2 (stage 1)`.
    pub who: String,
    /// What they do: `forward of micro-batch 3`.
    pub what: String,
}

impl Line {
    /// All of it.
    pub fn text(&self) -> String {
        format!("{}: {}", self.who, self.what)
    }
}

/// Tells a trace; made once for it.
#[derive(Clone, Debug)]
pub struct Narrator {
    arrivals: Arrivals,
    rows: Vec<usize>,
    course: Course,
}

impl Narrator {
    /// The one of `trace`.
    pub fn new(trace: &Trace) -> Self {
        Self {
            arrivals: Arrivals::new(trace),
            rows: row_order(trace),
            course: Course::new(trace),
        }
    }

    /// What happens at `time`; `trace` is the one that it was made for.
    pub fn now(&self, trace: &Trace, time: Nanos, language: Language) -> Now {
        let mut teller = Teller {
            trace,
            arrivals: &self.arrivals,
            groups: Groups::new(trace),
            time,
            language,
        };
        let acts: Vec<(usize, Act)> = self
            .rows
            .iter()
            .map(|&rank| (rank, teller.act(rank)))
            .collect();
        let told = [Detail::All, Detail::NoPeers, Detail::Kinds];
        let folded = told
            .into_iter()
            .map(|detail| folded(trace, &acts, detail, language))
            .find(|lines| lines.len() <= MOST_LINES);
        Now {
            headline: self.course.headline(trace, time, language),
            lines: folded.unwrap_or_default(),
        }
    }
}

/// What happens at `time`, in English; for many times of one trace, a [`Narrator`] is faster.
pub fn now(trace: &Trace, time: Nanos) -> Now {
    Narrator::new(trace).now(trace, time, Language::English)
}

/// How much is told of what a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Everything.
    All,
    /// All but with whom.
    NoPeers,
    /// Of which kind it is.
    Kinds,
}

/// Ranks that do the same as one line each, by the first of them.
fn folded(trace: &Trace, acts: &[(usize, Act)], detail: Detail, language: Language) -> Vec<Line> {
    let mut groups: Vec<Vec<&(usize, Act)>> = Vec::new();
    let mut known = HashMap::new();
    for one in acts {
        let act = &one.1;
        let key = match detail {
            Detail::All => (act.doing, act.stage, act.what.as_str()),
            Detail::NoPeers => (act.doing, None, act.brief.as_str()),
            Detail::Kinds => (act.doing, None, ""),
        };
        let place = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(one);
    }
    groups
        .iter()
        .map(|group| {
            let ranks: Vec<usize> = group.iter().map(|(rank, _)| *rank).collect();
            let acts: Vec<&Act> = group.iter().map(|(_, act)| act).collect();
            let what = match detail {
                Detail::All => acts[0].what.clone(),
                Detail::NoPeers => acts[0].brief.clone(),
                Detail::Kinds => act::kind(&acts, language),
            };
            Line {
                who: format!(
                    "{}{}",
                    words::who(trace, &ranks, language),
                    stages(trace, &acts, language)
                ),
                what,
                ranks,
            }
        })
        .collect()
}

/// The stages whose passes run, where there are several.
fn stages(trace: &Trace, acts: &[&Act], language: Language) -> String {
    let stages: Vec<u32> = acts.iter().filter_map(|act| act.stage).collect();
    if stages.is_empty() || trace.ranks.iter().all(|info| info.pp == 0) {
        return String::new();
    }
    format!(
        " ({})",
        words::numbered(words::Noun::Stage, stages, language)
    )
}

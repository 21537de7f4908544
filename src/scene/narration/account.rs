//! A whole timeline as a text.

use std::collections::HashMap;

use crate::trace::{Kind, Stream, TimeSplit, Trace};
use crate::units::percent;
use crate::words::Language;

use super::super::overview::row_order;
use super::words::who;

/// Of more passes of a rank, the rest is counted.
const MOST_PASSES: usize = 64;

/// Of more kinds of rank, the rest is counted.
const MOST_RANKS: usize = 64;

/// The timeline in a few lines: how long it is, and of every rank its passes in order and where its time goes. Ranks that do
/// the same share a line.
pub fn account(trace: &Trace) -> String {
    let first = if trace.tracks.is_empty() {
        let (gpus, bubble) = (trace.gpus(), percent(trace.bubbles().of_total));
        let gpus = if gpus == 1 {
            "1 GPU".to_owned()
        } else {
            format!("{gpus} GPUs")
        };
        format!(
            "{gpus}, a training step of {}, bubble {bubble} of total",
            trace.makespan
        )
    } else {
        format!("{} rows, {} long", trace.ranks.len(), trace.makespan)
    };
    let mut alike: Vec<((String, TimeSplit), Vec<usize>)> = Vec::new();
    let mut known: HashMap<(String, [u64; 4]), usize> = HashMap::new();
    for rank in row_order(trace) {
        let (passes, split) = (order(trace, rank), trace.split(rank));
        let times = [split.compute, split.transfer, split.waiting, split.idle];
        let key = (passes.clone(), times.map(|time| time.0));
        let place = *known.entry(key).or_insert_with(|| {
            alike.push(((passes, split), Vec::new()));
            alike.len() - 1
        });
        alike[place].1.push(rank);
    }
    let mut lines = vec![first];
    for ((passes, split), ranks) in alike.iter().take(MOST_RANKS) {
        let who = who(trace, ranks, Language::English);
        let passes = if passes.is_empty() {
            String::new()
        } else {
            format!("{passes}; ")
        };
        lines.push(format!(
            "{who}: {passes}computes {}, in transfers {}, waits {}, idle {}",
            split.compute, split.transfer, split.waiting, split.idle
        ));
    }
    let rest = alike.iter().skip(MOST_RANKS);
    let rest: usize = rest.map(|(_, ranks)| ranks.len()).sum();
    if rest > 0 {
        lines.push(format!("and {rest} more"));
    }
    lines.join("\n")
}

/// A rank's passes in short; where it holds several stages, whenever another one's come, that one's name before.
fn order(trace: &Trace, rank: usize) -> String {
    let spans = trace.lane(rank, Stream::Passes).spans().iter();
    let passes = spans.map(|span| trace.label(span.label));
    let passes: Vec<_> = passes.filter(|label| label.kind == Kind::Pass).collect();
    let several = passes.iter().any(|label| label.stage != passes[0].stage);
    let mut words = Vec::new();
    let mut last = None;
    for label in passes.iter().take(MOST_PASSES) {
        if let Some(stage) = label.stage.filter(|_| several && label.stage != last) {
            words.push(format!("stage {stage}:"));
        }
        last = label.stage;
        words.push(label.short());
    }
    let rest = passes.len().saturating_sub(MOST_PASSES);
    if rest > 0 {
        words.push(format!("and {rest} more"));
    }
    words.join(" ")
}

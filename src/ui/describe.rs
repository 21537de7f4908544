//! What the pointer is over, in words: what it is, when, how long, and for a gap why.

use crate::scene::Hit;
use crate::session::Timeline;
use crate::trace::{Arrow, Kind, Label, Phase, Stream, Trace};
use crate::units::{Bytes, Nanos, Pass, Rank};

/// A description: a name, and lines under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    /// What it is: `F3 on GPU 2`.
    pub(super) name: String,
    /// More about it.
    pub(super) lines: Vec<String>,
}

impl Description {
    /// In one line.
    pub(super) fn line(&self) -> String {
        let parts = std::iter::once(&self.name).chain(&self.lines);
        parts.cloned().collect::<Vec<_>>().join("  ·  ")
    }
}

/// Describes what was hit.
pub(super) fn describe(timeline: &Timeline, hit: &Hit) -> Description {
    let trace = &timeline.trace;
    let rank = trace.ranks[hit.rank_index].rank;
    let label = trace.label(hit.span.label);
    let name = format!("{} on GPU {rank}", what(label, hit));
    let times = format!(
        "{} long, from {} to {}",
        hit.span.duration(),
        hit.span.start,
        hit.span.end
    );
    let mut lines = vec![times];
    lines.extend(why(trace, hit, label));
    Description { name, lines }
}

fn what(label: &Label, hit: &Hit) -> String {
    match (hit.stream, hit.span.phase, label.kind) {
        (Stream::Compute, Phase::Idle, _) => "Bubble (idle)".to_owned(),
        (Stream::Compute, Phase::Transfer, _) => "Exposed transfer".to_owned(),
        (_, Phase::Waiting, _) => "Waiting for others".to_owned(),
        (_, _, Kind::Pass) => {
            let pass = label.pass.map_or("pass", pass_name);
            let stage = label
                .stage
                .map_or(String::new(), |stage| format!(" on stage {stage}"));
            format!("{}, {pass}{stage}", label.short())
        }
        (_, _, Kind::Send) => format!("Send of {}", label.short()),
        _ => capital(&label.name),
    }
}

fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::Backward => "backward",
        Pass::InputGrad => "input gradient",
        Pass::WeightGrad => "weight gradient",
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Why a gap is there, or how much moves.
fn why(trace: &Trace, hit: &Hit, label: &Label) -> Option<String> {
    let rank = trace.ranks[hit.rank_index].rank;
    let gap = hit.stream == Stream::Compute;
    match hit.span.phase {
        Phase::Idle => Some(why_idle(trace, rank, hit, label)),
        Phase::Transfer if gap => Some(match arrival(trace, rank, hit.span.end) {
            Some(arrow) => format!(
                "{} from GPU {} is on its way",
                trace.label(arrow.label).short(),
                arrow.from
            ),
            None => format!("{} is under way", label.name),
        }),
        Phase::Waiting => Some("not all members of the group are there yet".to_owned()),
        Phase::Busy | Phase::Transfer if label.bytes > 0 => Some(moved(label, hit)),
        Phase::Busy | Phase::Transfer => None,
    }
}

fn why_idle(trace: &Trace, rank: Rank, hit: &Hit, label: &Label) -> String {
    if let Some(arrow) = arrival(trace, rank, hit.span.end)
        .or_else(|| arrival(trace, rank, after_transfer(trace, hit)))
    {
        let sent = trace.label(arrow.label).short();
        return format!("waits for {sent}, which GPU {} has yet to make", arrow.from);
    }
    match label.kind {
        Kind::Pass | Kind::Segment => format!("waits for what {} needs", label.short()),
        Kind::Optimizer
        | Kind::AllReduce
        | Kind::ReduceScatter
        | Kind::AllGather
        | Kind::Collective
        | Kind::Send
        | Kind::Kernel
        | Kind::Copy
        | Kind::End
        | Kind::Other => "has no pass left in this step".to_owned(),
    }
}

/// The end of the transfer that follows an idle gap, or of the gap itself.
fn after_transfer(trace: &Trace, hit: &Hit) -> Nanos {
    let next = trace.lane(hit.rank_index, Stream::Compute).at(hit.span.end);
    next.filter(|span| span.phase == Phase::Transfer)
        .map_or(hit.span.end, |span| span.end)
}

/// What arrives at `rank` at `time`.
fn arrival(trace: &Trace, rank: Rank, time: Nanos) -> Option<&Arrow> {
    trace
        .arrows
        .iter()
        .find(|arrow| arrow.to == rank && arrow.arrived == time)
}

fn moved(label: &Label, hit: &Hit) -> String {
    let rate = label.bytes as f64 / hit.span.duration().secs().max(1e-12) / 1e9;
    let group = label.group.as_deref().map_or(String::new(), |group| {
        format!(" in the {} group", group.to_uppercase())
    });
    format!("{}{group} at {rate:.2} GB/s", Bytes(label.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Hit;
    use crate::session::{Config, Session};

    #[test]
    fn a_bubble_says_what_it_waits_for() {
        let session = Session::start(Config::default(), || ()).unwrap();
        let preview = loop {
            if let Some(preview) = &session.snapshot().preview {
                break std::sync::Arc::clone(preview);
            }
            std::thread::yield_now();
        };
        let index = preview
            .trace
            .ranks
            .iter()
            .position(|info| info.pp == 1)
            .unwrap();
        let span = preview.trace.lane(index, Stream::Compute).spans()[0];
        let hit = Hit {
            rank_index: index,
            stream: Stream::Compute,
            span,
        };
        let said = describe(&preview, &hit);
        assert!(said.name.starts_with("Bubble"), "{said:?}");
        assert!(said.lines[1].contains("F0"), "{said:?}");
    }
}

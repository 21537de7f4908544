//! What the pointer is over, in words: what it is, when, how long, what it waited for, and for a gap why.

use crate::scene::{Hit, kernel_name, row_name};
use crate::trace::{Arrow, Kind, Label, Phase, Stream, Trace};
use crate::units::{Bytes, Nanos, Pass, Rank, three_digits};

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
        let parts = std::iter::once(&self.name).chain(self.lines.iter().take(2));
        parts.cloned().collect::<Vec<_>>().join("  ·  ")
    }
}

/// Describes what was hit.
pub(super) fn describe(trace: &Trace, hit: &Hit) -> Description {
    let label = trace.label(hit.span.label);
    let name = format!(
        "{} on {}",
        what(label, hit),
        row_name(trace, hit.rank_index)
    );
    let times = format!(
        "{} long, from {} to {}",
        hit.span.duration(),
        hit.span.start,
        hit.span.end
    );
    let mut lines = vec![times];
    lines.extend(why(trace, hit, label));
    lines.extend(waited(trace, hit));
    lines.extend(of_what(trace, hit, label));
    lines.extend(kept(trace, hit, label));
    // What it is called in full.
    lines.extend((label.kind == Kind::Kernel).then(|| label.name.to_string()));
    Description { name, lines }
}

/// How long a pass, or a message, could not start although what ran before it on its stream had ended.
fn waited(trace: &Trace, hit: &Hit) -> Option<String> {
    if hit.stream != Stream::Passes || hit.span.phase == Phase::Waiting || !trace.tracks.is_empty()
    {
        return None;
    }
    let spans = trace.lane(hit.rank_index, Stream::Compute).spans();
    let until = spans.partition_point(|span| span.end <= hit.span.start);
    // Before a rank's first pass there is nothing that ran.
    spans[..until]
        .iter()
        .find(|span| span.phase == Phase::Busy)?;
    let gaps = spans[..until]
        .iter()
        .rev()
        .take_while(|span| span.phase != Phase::Busy);
    let mut parts = [Nanos::ZERO; 3];
    for gap in gaps {
        let part = match gap.phase {
            Phase::Idle => 0,
            Phase::Transfer => 1,
            Phase::Waiting | Phase::Busy => 2,
        };
        parts[part] += gap.duration();
    }
    let names = ["idle", "for a transfer", "for others"];
    let told: Vec<String> = parts
        .iter()
        .zip(names)
        .filter(|(time, _)| **time > Nanos::ZERO)
        .map(|(time, name)| format!("{time} {name}"))
        .collect();
    Some(match told.as_slice() {
        [] => "started at once when what ran before it had ended".to_owned(),
        told => format!("before it the GPU waited {}", told.join(", ")),
    })
}

/// Micro-batch, stage, chunk and layer, as far as it has them.
fn of_what(trace: &Trace, hit: &Hit, label: &Label) -> Option<String> {
    // A gap has the label of what runs after it.
    if hit.stream == Stream::Compute && hit.span.phase != Phase::Busy {
        return None;
    }
    let mut parts = Vec::new();
    let mut say = |name: &str, number: Option<u32>| {
        parts.extend(number.map(|number| format!("{name} {number}")));
    };
    say("micro-batch", label.micro_batch);
    say("stage", label.stage);
    say(
        "chunk",
        label
            .stage
            .and_then(|stage| chunk(trace, hit.rank_index, stage)),
    );
    say("layer", label.layer);
    if let (Some(group), 2..) = (&label.group, label.members) {
        parts.push(format!(
            "{} group of {}",
            group.to_uppercase(),
            label.members
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Which of a rank's stages it is, if it holds several.
fn chunk(trace: &Trace, rank_index: usize, stage: u32) -> Option<u32> {
    let spans = trace.lane(rank_index, Stream::Passes).spans().iter();
    let mut stages: Vec<u32> = spans
        .filter_map(|span| trace.label(span.label).stage)
        .collect();
    stages.sort_unstable();
    stages.dedup();
    let own = stages.iter().position(|&one| one == stage)?;
    (stages.len() > 1).then_some(own as u32)
}

/// What is kept in memory before a pass and after it.
fn kept(trace: &Trace, hit: &Hit, label: &Label) -> Option<String> {
    let memory = trace.memory.get(hit.rank_index)?;
    if label.kind != Kind::Pass || hit.stream != Stream::Passes {
        return None;
    }
    // What a pass takes is there from its start on, and what it frees until its end.
    let steps = &memory.activations;
    let until = steps.partition_point(|&(at, _)| at < hit.span.start);
    let before = until
        .checked_sub(1)
        .map_or(Bytes::ZERO, |last| steps[last].1);
    let after = memory.activations_at(hit.span.end);
    let passes = trace.lane(hit.rank_index, Stream::Passes);
    let next = passes.at(hit.span.end);
    let with = match next.filter(|next| next.start == hit.span.end) {
        Some(next) => format!(" with {}", trace.label(next.label).short()),
        None => String::new(),
    };
    Some(format!(
        "activations {before} before it, {after} after it{with}"
    ))
}

fn what(label: &Label, hit: &Hit) -> String {
    match (hit.stream, hit.span.phase, label.kind) {
        (Stream::Compute, Phase::Idle, _) => "Bubble (idle)".to_owned(),
        (Stream::Compute, Phase::Transfer, _) => "Exposed transfer".to_owned(),
        (_, Phase::Waiting, _) => "Waiting for others".to_owned(),
        (_, _, Kind::Pass) => {
            let pass = label.pass.map_or("pass", Pass::name);
            let stage = label
                .stage
                .map_or(String::new(), |stage| format!(" on stage {stage}"));
            format!("{}, {pass}{stage}", label.short())
        }
        (_, _, Kind::Kernel) => kernel_name(&label.name),
        (_, _, Kind::Send) => format!("Send of {}", label.short()),
        _ => capital(&label.name),
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
    let mut ends = trace.gap_ends(hit.rank_index, &hit.span).into_iter();
    if let Some(arrow) = ends.find_map(|end| arrival(trace, rank, end)) {
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

/// What arrives at `rank` at `time`.
fn arrival(trace: &Trace, rank: Rank, time: Nanos) -> Option<&Arrow> {
    trace
        .arrows
        .iter()
        .find(|arrow| arrow.to == rank && arrow.arrived == time)
}

/// How much moves, and how fast: as nccl-tests would print it, and what that asks of each link.
fn moved(label: &Label, hit: &Hit) -> String {
    let algbw = label.bytes as f64 / hit.span.duration().secs().max(1e-12);
    let rate = |rate: f64| format!("{} GB/s", three_digits(rate / 1e9));
    let on_links = label.bus_share().map(|share| algbw * share);
    let group = label.group.as_deref().map_or(String::new(), |group| {
        format!(" in the {} group", group.to_uppercase())
    });
    let bytes = Bytes(label.bytes);
    match on_links.filter(|_| label.collective().is_some()) {
        Some(busbw) => format!(
            "{bytes}{group}: algbw {}, busbw {}",
            rate(algbw),
            rate(busbw)
        ),
        None => format!("{bytes}{group} at {}", rate(algbw)),
    }
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
        let said = describe(&preview.trace, &hit);
        assert!(said.name.starts_with("Bubble"), "{said:?}");
        assert!(said.lines[1].contains("F0"), "{said:?}");
    }
}

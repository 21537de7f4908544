//! Chrome's trace format, for `chrome://tracing` and ui.perfetto.dev; Shardscope reads it back exactly.
//!
//! A GPU is a process, a stream a thread, a span an `X` event, a send a flow, memory a counter. What events cannot
//! hold stands under `shardscope`. Times are microseconds with three decimals: whole nanoseconds.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::scene::row_order;
use crate::trace::import::FORMAT;
use crate::trace::{Arrow, Label, Memory, Phase, RankInfo, Span, Stream, Trace};
use crate::units::Nanos;

use super::Export;

/// What the events cannot hold; `trace::import` reads it.
#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    ranks: &'a [RankInfo],
    labels: &'a [Label],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tracks: &'a [String],
    memory: &'a [Memory],
    arrows: &'a [Arrow],
    makespan: Nanos,
    picture: &'a crate::scene::Picture,
    report: &'a Value,
}

/// `export` as Chrome JSON.
pub fn chrome(export: &Export<'_>) -> String {
    let trace = export.trace;
    let mut events = Events::default();
    name_tracks(trace, &mut events);
    for (index, lane) in trace.lanes.iter().enumerate() {
        let place = (index / Stream::ALL.len(), index % Stream::ALL.len());
        for span in lane.spans() {
            events.span(trace, place, span);
        }
    }
    for (id, arrow) in trace.arrows.iter().enumerate() {
        flow(trace, id, *arrow, &mut events);
    }
    for (pid, memory) in trace.memory.iter().enumerate() {
        count(pid, memory, &mut events);
    }
    format!(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"shardscope\":{},\n\"traceEvents\":[\n{}\n]}}\n",
        about(export),
        header(export),
        events.text
    )
}

/// What events cannot hold, as JSON.
pub(super) fn header(export: &Export<'_>) -> String {
    let trace = export.trace;
    text_of(&Header {
        format: FORMAT,
        ranks: &trace.ranks,
        labels: &trace.labels,
        tracks: &trace.tracks,
        memory: &trace.memory,
        arrows: &trace.arrows,
        makespan: trace.makespan,
        picture: export.picture,
        report: export.report,
    })
}

/// What a span is called in other programs' viewers.
pub(super) fn span_name(trace: &Trace, stream: usize, span: &Span) -> String {
    let label = trace.label(span.label);
    let short = label.short();
    match span.phase {
        Phase::Busy | Phase::Transfer if stream != Stream::Compute as usize => short,
        Phase::Busy => format!("{} {short}", label.name),
        Phase::Transfer => format!("transfer, then {short}"),
        Phase::Waiting => format!("waiting, then {short}"),
        Phase::Idle => format!("idle, then {short}"),
    }
}

/// The stamp, for those who look into the file or a viewer's metadata.
fn about(export: &Export<'_>) -> Value {
    let picture = export.picture;
    json!({ "title": picture.title, "stamp": picture.stamp })
}

/// JSON of plain data, which always has one.
fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Events, a line each.
#[derive(Default)]
struct Events {
    text: String,
}

impl Events {
    fn add(&mut self, event: std::fmt::Arguments<'_>) {
        if !self.text.is_empty() {
            self.text.push_str(",\n");
        }
        // Writing to a string cannot fail.
        self.text.write_fmt(event).unwrap_or_default();
    }

    fn span(&mut self, trace: &Trace, (pid, tid): (usize, usize), span: &Span) {
        let label = trace.label(span.label);
        let name = span_name(trace, tid, span);
        let phase = text_of(&span.phase);
        let mut args = format!("\"label\":{},\"phase\":{phase}", span.label.0);
        let numbers = [
            ("micro_batch", label.micro_batch),
            ("stage", label.stage),
            ("layer", label.layer),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                write!(args, ",\"{key}\":{value}").unwrap_or_default();
            }
        }
        if label.bytes > 0 {
            write!(args, ",\"bytes\":{}", label.bytes).unwrap_or_default();
        }
        self.add(format_args!(
            "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{},\"dur\":{},\"name\":{},\"cat\":{phase},\"args\":{{{args}}}}}",
            Micros(span.start),
            Micros(span.duration()),
            text_of(&name),
        ));
    }
}

/// Whole nanoseconds, as microseconds.
struct Micros(Nanos);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1000, self.0.0 % 1000)
    }
}

/// Processes by GPU in the order of rows, threads by stream.
fn name_tracks(trace: &Trace, events: &mut Events) {
    for (row, &pid) in row_order(trace).iter().enumerate() {
        let name = text_of(&crate::scene::row_name(trace, pid));
        events.add(format_args!(
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{name}}}}}"
        ));
        events.add(format_args!(
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{row}}}}}"
        ));
        for (tid, stream) in Stream::ALL.iter().enumerate() {
            if trace.lane(pid, *stream).spans().is_empty() {
                continue;
            }
            let name = text_of(&stream.name());
            events.add(format_args!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}}"
            ));
            events.add(format_args!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{tid}}}}}"
            ));
        }
    }
}

/// A flow from a send's lane to its receiver's compute lane.
fn flow(trace: &Trace, id: usize, arrow: Arrow, events: &mut Events) {
    let place = |rank| trace.ranks.iter().position(|info| info.rank == rank);
    let (Some(from), Some(to)) = (place(arrow.from), place(arrow.to)) else {
        return;
    };
    let sends = |stream: &Stream| {
        let mut spans = trace
            .lane(from, *stream)
            .overlapping(arrow.left, Nanos(arrow.left.0 + 1));
        spans.any(|span| span.label == arrow.label)
    };
    let lane = [Stream::SendNext, Stream::SendPrev].into_iter().find(sends);
    let tid = lane.unwrap_or(Stream::Compute) as usize;
    let name = text_of(&trace.label(arrow.label).short());
    let common = format!("\"id\":{id},\"name\":{name},\"cat\":\"send\"");
    events.add(format_args!(
        "{{\"ph\":\"s\",\"pid\":{from},\"tid\":{tid},\"ts\":{},{common}}}",
        Micros(arrow.left)
    ));
    events.add(format_args!(
        "{{\"ph\":\"f\",\"bp\":\"e\",\"pid\":{to},\"tid\":{},\"ts\":{},{common}}}",
        Stream::Compute as usize,
        Micros(arrow.arrived)
    ));
}

fn count(pid: usize, memory: &Memory, events: &mut Events) {
    let fixed = memory.fixed;
    let start = (Nanos::ZERO, crate::units::Bytes::ZERO);
    let from_start = memory
        .activations
        .first()
        .is_none_or(|first| first.0 > Nanos::ZERO);
    let first = from_start.then_some(start);
    for (time, activations) in first.into_iter().chain(memory.activations.iter().copied()) {
        events.add(format_args!(
            "{{\"ph\":\"C\",\"pid\":{pid},\"name\":\"memory (bytes)\",\"ts\":{},\"args\":{{\"parameters\":{},\
             \"gradients\":{},\"optimizer\":{},\"activations\":{}}}}}",
            Micros(time),
            fixed.parameters.0,
            fixed.gradients.0,
            fixed.optimizer.0,
            activations.0,
        ));
    }
}

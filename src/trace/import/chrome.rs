//! Chrome's trace format, as the exporter writes it: spans from the events, the rest from `shardscope`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::units::Nanos;

use super::super::{Arrow, Label, LabelId, Memory, Phase, RankInfo, Span, Stream, Trace};
use super::{ImportError, Imported, check, damaged};

/// The version of what stands under `shardscope`.
pub const FORMAT: u32 = 1;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    shardscope: Header,
}

/// What the events cannot hold.
#[derive(Deserialize)]
pub(super) struct Header {
    format: u32,
    ranks: Vec<RankInfo>,
    labels: Vec<Label>,
    #[serde(default)]
    tracks: Vec<String>,
    memory: Vec<Memory>,
    arrows: Vec<Arrow>,
    makespan: Nanos,
    #[serde(default)]
    picture: Value,
    #[serde(default)]
    report: Value,
}

#[derive(Deserialize)]
struct Event {
    ph: String,
    #[serde(default)]
    pid: usize,
    #[serde(default)]
    tid: usize,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Args {
    label: Option<u32>,
    phase: Option<Phase>,
}

/// Reads Chrome JSON that Shardscope wrote; it is equal to the trace that was written.
pub fn chrome(text: &[u8]) -> Result<Imported, ImportError> {
    let file: File = serde_json::from_slice(text).map_err(|error| why_not(text, &error))?;
    let (mut trace, rest) = begun(file.shardscope)?;
    let mut spans = Vec::new();
    for event in file.events.iter().filter(|event| event.ph == "X") {
        spans.push(read_span(event, &trace)?);
    }
    put(&mut trace, spans);
    finished(trace, rest)
}

/// What a header says besides the trace: the picture and the report.
pub(super) type Rest = (Value, Value);

/// A trace with all but its spans, checked.
pub(super) fn begun(header: Header) -> Result<(Trace, Rest), ImportError> {
    if header.format != FORMAT {
        return Err(ImportError::Later {
            found: header.format,
        });
    }
    let mut trace = Trace::new(header.ranks, header.labels);
    trace.tracks = header.tracks;
    trace.memory = header.memory;
    trace.arrows = header.arrows;
    trace.makespan = header.makespan;
    check::trace(&trace)?;
    Ok((trace, (header.picture, header.report)))
}

/// Spans on their lanes, sorted first: one by one, those of a file that has them the wrong way round would take for ever.
pub(super) fn put(trace: &mut Trace, mut spans: Vec<(usize, Span)>) {
    spans.sort_by_key(|(lane, span)| (*lane, span.start));
    for (lane, span) in spans {
        trace.lanes[lane].push(span);
    }
}

/// A trace with its spans, checked.
pub(super) fn finished(trace: Trace, (picture, report): Rest) -> Result<Imported, ImportError> {
    check::lanes(&trace)?;
    Ok(Imported {
        trace,
        picture,
        report,
    })
}

/// Whether what cannot be read is another program's, or damaged.
fn why_not(text: &[u8], error: &serde_json::Error) -> ImportError {
    #[derive(Deserialize)]
    struct Probe {
        shardscope: Option<IgnoredAny>,
    }
    if text.trim_ascii_start().starts_with(b"[") {
        return ImportError::Foreign;
    }
    match serde_json::from_slice::<Probe>(text) {
        Ok(Probe {
            shardscope: Some(_),
        }) => damaged(format!("a part of it is missing ({error})")),
        Ok(Probe { shardscope: None }) => ImportError::Foreign,
        Err(broken) if broken.is_data() => ImportError::Foreign,
        Err(broken) => ImportError::Json(broken),
    }
}

fn read_span(event: &Event, trace: &Trace) -> Result<(usize, Span), ImportError> {
    let (Some(label), Some(phase)) = (event.args.label, event.args.phase) else {
        return Err(damaged("a span has no label or phase"));
    };
    if event.pid >= trace.ranks.len() || event.tid >= Stream::ALL.len() {
        let (rank, stream) = (event.pid, event.tid);
        return Err(damaged(format!(
            "a span is on rank {rank}, stream {stream}, which is not there"
        )));
    }
    let start = nanos(event.ts)?;
    let duration = nanos(event.dur)?;
    let span = Span {
        start,
        end: Nanos(start.0.saturating_add(duration.0)),
        label: LabelId(label),
        phase,
    };
    let lane = event.pid * Stream::ALL.len() + event.tid;
    check::span(trace, span).map(|span| (lane, span))
}

/// From microseconds with three decimals, exactly.
fn nanos(micros: f64) -> Result<Nanos, ImportError> {
    let nanos = (micros * 1e3).round();
    if (0.0..9e15).contains(&nanos) {
        Ok(Nanos(nanos as u64))
    } else {
        Err(damaged(format!("{micros} is no time in microseconds")))
    }
}

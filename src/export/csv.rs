//! A table with a row a span, for spreadsheets and data frames.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::trace::import::COLUMNS;
use crate::trace::{Span, Stream, Trace};

/// `trace` as CSV (RFC 4180, with plain line feeds).
pub fn csv(trace: &Trace) -> String {
    let mut out = format!("{COLUMNS}\n");
    for (index, info) in trace.ranks.iter().enumerate() {
        for stream in Stream::ALL {
            for span in trace.lane(index, stream).spans() {
                let row = row(trace, stream, span);
                let (rank, dp, tp, pp) = (info.rank, info.dp, info.tp, info.pp);
                // Writing to a string cannot fail.
                let members = trace.label(span.label).members;
                writeln!(out, "{rank},{row},{dp},{tp},{pp},{members}").unwrap_or_default();
            }
        }
    }
    out
}

fn row(trace: &Trace, stream: Stream, span: &Span) -> String {
    let label = trace.label(span.label);
    let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    [
        word(&stream),
        word(&span.phase),
        word(&label.kind),
        quoted(&label.name).into_owned(),
        label
            .pass
            .map_or_else(String::new, |pass| pass.letter().to_string()),
        number(label.micro_batch),
        number(label.stage),
        number(label.layer),
        quoted(label.group.as_deref().unwrap_or_default()).into_owned(),
        label.bytes.to_string(),
        span.start.0.to_string(),
        span.end.0.to_string(),
    ]
    .join(",")
}

/// The word of an enumeration, as in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A field, in quotes if it needs them.
fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

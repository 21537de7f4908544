//! The table of spans, as the exporter writes it: spans and labels; memory and arrows are not in it.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::units::{Nanos, Pass, Rank};

use super::super::{Kind, Label, Labels, RankInfo, Span, Stream, Trace};
use super::{ImportError, Imported, check, damaged};

/// The table's header.
pub const COLUMNS: &str = "rank,stream,phase,kind,name,pass,micro_batch,stage,layer,group,bytes,start_ns,end_ns,dp,tp,pp,members";

/// Reads a table that Shardscope wrote: the same spans on the same lanes.
///
/// A rank's pipeline ends with its replica's last pass; what it has in flight is not known.
pub fn csv(text: &str) -> Result<Imported, ImportError> {
    let mut records = records(text)?.into_iter();
    let header = records.next().unwrap_or_default();
    // Without the last column, as tables were written before.
    let header = header.join(",");
    let before = COLUMNS.strip_suffix(",members");
    if header != COLUMNS && Some(header.as_str()) != before {
        return Err(ImportError::Foreign);
    }
    let mut labels = Labels::default();
    let mut ranks = BTreeMap::new();
    let mut spans = Vec::new();
    for (index, record) in records.enumerate() {
        let mut record = record;
        if Some(header.as_str()) == before {
            record.push("0".to_owned());
        }
        let row = read_row(&record, &mut labels)
            .ok_or_else(|| damaged(format!("line {} is no span", index + 2)))?;
        ranks.insert(row.info.rank, row.info);
        spans.push(row);
    }
    let mut trace = Trace::new(ranks.into_values().collect(), labels.into_vec());
    check::trace(&trace)?;
    let places = trace.ranks.iter().enumerate();
    let places: HashMap<Rank, usize> = places.map(|(index, info)| (info.rank, index)).collect();
    for row in spans {
        let span = check::span(&trace, row.span)?;
        trace.makespan = trace.makespan.max(span.end);
        trace
            .lane_mut(places[&row.info.rank], row.stream)
            .push(span);
    }
    check::lanes(&trace)?;
    end_pipelines(&mut trace);
    Ok(Imported {
        trace,
        picture: Value::Null,
        report: Value::Null,
    })
}

fn end_pipelines(trace: &mut Trace) {
    let mut ends: HashMap<u32, Nanos> = HashMap::new();
    for (index, info) in trace.ranks.iter().enumerate() {
        let spans = trace.lane(index, Stream::Passes).spans().iter();
        let passes = spans.filter(|span| trace.label(span.label).kind == Kind::Pass);
        let last = passes.map(|span| span.end).max().unwrap_or_default();
        let end = ends.entry(info.dp).or_default();
        *end = last.max(*end);
    }
    for info in &mut trace.ranks {
        info.pipeline_end = ends.get(&info.dp).copied().unwrap_or_default();
    }
}

struct Row {
    info: RankInfo,
    stream: Stream,
    span: Span,
}

fn read_row(record: &[String], labels: &mut Labels) -> Option<Row> {
    let [
        rank,
        stream,
        phase,
        kind,
        name,
        pass,
        micro_batch,
        stage,
        layer,
        group,
        bytes,
        start,
        end,
        dp,
        tp,
        pp,
        members,
    ] = record
    else {
        return None;
    };
    let label = Label {
        kind: word(kind)?,
        name: name.clone().into(),
        pass: match pass.chars().next() {
            Some(letter) => Some(Pass::from_letter(letter)?),
            None => None,
        },
        micro_batch: optional(micro_batch).ok()?,
        stage: optional(stage).ok()?,
        layer: optional(layer).ok()?,
        group: (!group.is_empty()).then(|| group.clone().into()),
        bytes: bytes.parse().ok()?,
        members: members.parse().ok()?,
    };
    Some(Row {
        info: RankInfo {
            rank: Rank(rank.parse().ok()?),
            dp: dp.parse().ok()?,
            tp: tp.parse().ok()?,
            pp: pp.parse().ok()?,
            count: 1,
            pipeline_end: Nanos::ZERO,
            peak_in_flight: 0,
        },
        stream: word(stream)?,
        span: Span {
            start: Nanos(start.parse().ok()?),
            end: Nanos(end.parse().ok()?),
            label: labels.id(label),
            phase: word(phase)?,
        },
    })
}

/// A word of one of the enumerations.
fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(Value::String(text.to_owned())).ok()
}

/// A number or nothing; an error if it is neither.
fn optional(text: &str) -> Result<Option<u32>, std::num::ParseIntError> {
    match text {
        "" => Ok(None),
        number => number.parse().map(Some),
    }
}

/// Records of fields by RFC 4180: a field in quotes may hold commas, line ends and doubled quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, ImportError> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quoted) {
            ('"', true) if characters.next_if_eq(&'"').is_some() => field.push('"'),
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            ('\r', false) if characters.peek() == Some(&'\n') => {}
            (other, _) => field.push(other),
        }
    }
    if quoted || !record.is_empty() || !field.is_empty() {
        return Err(damaged("its last line is cut off"));
    }
    Ok(records)
}

//! Perfetto's protobuf traces as the exporter writes them, read back: slices by their tracks, the rest from our own packet.

use super::super::{LabelId, Phase, Span, Stream};
use super::chrome::{Header, begun, finished, put};
use super::{ImportError, Imported, check, damaged};
use crate::units::Nanos;

// Of a trace and a packet.
pub(crate) const PACKET: u32 = 1;
pub(crate) const TIMESTAMP: u32 = 8;
pub(crate) const SEQUENCE: u32 = 10;
pub(crate) const EVENT: u32 = 11;
pub(crate) const DESCRIPTOR: u32 = 60;
/// A packet of our own, far beyond those that Perfetto has.
pub(crate) const OWN: u32 = 90_210;
// Of a track's descriptor.
pub(crate) const UUID: u32 = 1;
pub(crate) const NAME: u32 = 2;
pub(crate) const PROCESS: u32 = 3;
pub(crate) const PARENT: u32 = 5;
pub(crate) const COUNTER: u32 = 8;
pub(crate) const CHILD_ORDER: u32 = 11;
pub(crate) const ORDER: u32 = 12;
pub(crate) const EXPLICIT: u64 = 3;
pub(crate) const PID: u32 = 1;
pub(crate) const PROCESS_NAME: u32 = 6;
pub(crate) const UNIT: u32 = 3;
pub(crate) const UNIT_BYTES: u64 = 3;
// Of an event.
pub(crate) const ANNOTATION: u32 = 4;
pub(crate) const TYPE: u32 = 9;
pub(crate) const TRACK: u32 = 11;
pub(crate) const CATEGORY: u32 = 22;
pub(crate) const EVENT_NAME: u32 = 23;
pub(crate) const COUNT_VALUE: u32 = 30;
pub(crate) const FLOW: u32 = 47;
pub(crate) const FLOW_END: u32 = 48;
pub(crate) const BEGIN: u64 = 1;
pub(crate) const END: u64 = 2;
pub(crate) const COUNT: u64 = 4;
// Of an annotation.
pub(crate) const UINT: u32 = 3;
pub(crate) const ANNOTATION_NAME: u32 = 10;

/// Tracks of a GPU, its own among them.
const OF_A_PROCESS: u64 = 16;

/// The track of a GPU as a whole, by its place.
pub(crate) fn process(index: usize) -> u64 {
    (index as u64 + 1) * OF_A_PROCESS
}

/// The track of a GPU's stream.
pub(crate) fn track(index: usize, stream: usize) -> u64 {
    process(index) + 1 + stream as u64
}

/// The track of a GPU's memory.
pub(crate) fn memory(index: usize) -> u64 {
    process(index) + OF_A_PROCESS - 1
}

/// The lane of a stream's track.
fn lane(track: u64) -> Option<usize> {
    let index = (track / OF_A_PROCESS).checked_sub(1)?;
    let stream = (track % OF_A_PROCESS).checked_sub(1)?;
    let streams = Stream::ALL.len() as u64;
    (stream < streams)
        .then(|| index.checked_mul(streams)?.checked_add(stream))?
        .and_then(|lane| usize::try_from(lane).ok())
}

/// A field's value.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order; it ends at what is no field.
#[derive(Clone, Debug)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f)
                .checked_shl(shift)
                .unwrap_or_default();
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let field = u32::try_from(tag >> 3).ok()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(
                self.take(4)?.try_into().ok()?,
            ))),
            _ => return None,
        };
        Some((field, value))
    }
}

/// What a slice's event says.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    kind: u64,
    track: u64,
    label: Option<u32>,
    phase: Option<Phase>,
    /// Where slices overlap, an end does not tell which one's it is.
    lasts: Option<u64>,
}

fn phase(number: u64) -> Option<Phase> {
    let all = [Phase::Busy, Phase::Transfer, Phase::Waiting, Phase::Idle];
    all.into_iter().find(|&phase| phase as u64 == number)
}

fn event(bytes: &[u8]) -> Event {
    let mut event = Event::default();
    for field in Fields(bytes) {
        match field {
            (TYPE, Value::Number(kind)) => event.kind = kind,
            (TRACK, Value::Number(track)) => event.track = track,
            (ANNOTATION, Value::Bytes(bytes)) => {
                let (mut name, mut value): (&[u8], u64) = (b"", 0);
                for field in Fields(bytes) {
                    match field {
                        (UINT, Value::Number(number)) => value = number,
                        (ANNOTATION_NAME, Value::Bytes(bytes)) => name = bytes,
                        _ => {}
                    }
                }
                match name {
                    b"label" => event.label = u32::try_from(value).ok(),
                    b"phase" => event.phase = phase(value),
                    b"nanoseconds" => event.lasts = Some(value),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    event
}

/// Reads a Perfetto trace that Shardscope wrote; it is equal to the trace that was written.
pub fn perfetto(bytes: &[u8]) -> Result<Imported, ImportError> {
    let packets = || {
        Fields(bytes).filter_map(|field| match field {
            (PACKET, Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        })
    };
    let own = packets().find_map(|packet| match Fields(packet).next() {
        Some((OWN, Value::Bytes(bytes))) => Some(bytes),
        _ => None,
    });
    let header: Header = serde_json::from_slice(own.ok_or(ImportError::Foreign)?)
        .map_err(|error| damaged(format!("a part of it is missing ({error})")))?;
    let (mut trace, rest) = begun(header)?;
    let mut spans = Vec::new();
    for packet in packets() {
        let (mut at, mut of) = (Nanos::ZERO, Event::default());
        for field in Fields(packet) {
            match field {
                (TIMESTAMP, Value::Number(time)) => at = Nanos(time),
                (EVENT, Value::Bytes(bytes)) => of = event(bytes),
                _ => {}
            }
        }
        if of.kind != BEGIN {
            continue;
        }
        let (Some(label), Some(phase), Some(lasts)) = (of.label, of.phase, of.lasts) else {
            return Err(damaged("a slice has no label, phase or length"));
        };
        let span = Span {
            start: at,
            end: Nanos(at.0.saturating_add(lasts)),
            label: LabelId(label),
            phase,
        };
        let lane = lane(of.track).filter(|&lane| lane < trace.lanes.len());
        let lane = lane.ok_or_else(|| damaged("a slice is on a track that is not there"))?;
        let span = check::span(&trace, span)?;
        spans.push((lane, span));
    }
    put(&mut trace, spans);
    finished(trace, rest)
}

//! Perfetto's protobuf trace format, for ui.perfetto.dev; Shardscope reads it back exactly.
//!
//! A GPU is a process, a stream a track of it in a fixed order, a span a slice, a send a flow, memory a counter. What slices
//! cannot hold is a packet of our own, which others pass over. Field numbers are those of Perfetto's
//! `trace_packet.proto`, `track_event.proto` and `track_descriptor.proto`.

use std::collections::HashMap;

use crate::scene::row_order;
use crate::trace::import::pftrace as fields;
use crate::trace::{Arrow, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Rank};

use super::Export;
use super::chrome::{header, span_name};

/// `export` as Perfetto's protobuf.
pub fn perfetto(export: &Export<'_>) -> Vec<u8> {
    let trace = export.trace;
    let mut file = Message::default();
    let mut own = Message::default();
    own.bytes(fields::OWN, header(export).as_bytes());
    file.message(fields::PACKET, &own);
    tracks(trace, &mut file);
    let flows = flows(trace);
    for (index, lane) in trace.lanes.iter().enumerate() {
        let track = fields::track(index / Stream::ALL.len(), index % Stream::ALL.len());
        for (place, span) in lane.spans().iter().enumerate() {
            let of_span = flows.get(&(index, place));
            slice(
                trace,
                (track, index % Stream::ALL.len()),
                span,
                of_span,
                &mut file,
            );
        }
    }
    counters(trace, &mut file);
    file.0
}

/// A protobuf message in the making.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }
}

/// A packet at a time, with an event in it.
fn packet(file: &mut Message, at: Nanos, event: &Message) {
    let mut packet = Message::default();
    packet.number(fields::TIMESTAMP, at.0);
    packet.number(fields::SEQUENCE, 1);
    packet.message(fields::EVENT, event);
    file.message(fields::PACKET, &packet);
}

/// GPUs in the order of rows, their streams in the order of lanes.
fn tracks(trace: &Trace, file: &mut Message) {
    for (row, &index) in row_order(trace).iter().enumerate() {
        let mut process = Message::default();
        process.number(fields::PID, row as u64 + 1);
        let name = crate::scene::row_name(trace, index);
        process.bytes(fields::PROCESS_NAME, name.as_bytes());
        let mut descriptor = Message::default();
        descriptor.number(fields::UUID, fields::process(index));
        descriptor.message(fields::PROCESS, &process);
        descriptor.number(fields::CHILD_ORDER, fields::EXPLICIT);
        describe(file, &descriptor);
        for (rank, stream) in Stream::ALL.into_iter().enumerate() {
            if trace.lane(index, stream).spans().is_empty() {
                continue;
            }
            let mut descriptor = Message::default();
            descriptor.number(fields::UUID, fields::track(index, rank));
            descriptor.number(fields::PARENT, fields::process(index));
            descriptor.bytes(fields::NAME, stream.name().as_bytes());
            descriptor.number(fields::ORDER, rank as u64 + 1);
            describe(file, &descriptor);
        }
        if trace.memory.get(index).is_some() {
            let mut counter = Message::default();
            counter.number(fields::UNIT, fields::UNIT_BYTES);
            let mut descriptor = Message::default();
            descriptor.number(fields::UUID, fields::memory(index));
            descriptor.number(fields::PARENT, fields::process(index));
            descriptor.bytes(fields::NAME, b"memory");
            descriptor.message(fields::COUNTER, &counter);
            descriptor.number(fields::ORDER, Stream::ALL.len() as u64 + 1);
            describe(file, &descriptor);
        }
    }
}

fn describe(file: &mut Message, descriptor: &Message) {
    let mut packet = Message::default();
    packet.number(fields::SEQUENCE, 1);
    packet.message(fields::DESCRIPTOR, descriptor);
    file.message(fields::PACKET, &packet);
}

/// Flows that leave from a span and that end at it.
type Flows = HashMap<(usize, usize), (Vec<u64>, Vec<u64>)>;

/// Each arrow from its send's slice to what next runs on its receiver.
fn flows(trace: &Trace) -> Flows {
    let mut flows = Flows::new();
    let places: Places = (0..)
        .zip(&trace.ranks)
        .map(|(index, info)| (info.rank, index))
        .collect();
    for (id, arrow) in (1_u64..).zip(&trace.arrows) {
        if let (Some(from), Some(to)) = (
            source(trace, &places, *arrow),
            target(trace, &places, *arrow),
        ) {
            flows.entry(from).or_default().0.push(id);
            flows.entry(to).or_default().1.push(id);
        }
    }
    flows
}

/// Each rank's place among the trace's.
type Places = HashMap<Rank, usize>;

fn lane_of(places: &Places, rank: Rank, stream: Stream) -> Option<usize> {
    Some(places.get(&rank)? * Stream::ALL.len() + stream as usize)
}

fn source(trace: &Trace, places: &Places, arrow: Arrow) -> Option<(usize, usize)> {
    let found = [Stream::SendNext, Stream::SendPrev, Stream::Passes].into_iter();
    found
        .filter_map(|stream| lane_of(places, arrow.from, stream))
        .find_map(|lane| {
            let spans = trace.lanes[lane].spans();
            let after = spans.partition_point(|span| span.start <= arrow.left);
            let place = after.checked_sub(1)?;
            (spans[place].end >= arrow.left).then_some((lane, place))
        })
}

fn target(trace: &Trace, places: &Places, arrow: Arrow) -> Option<(usize, usize)> {
    let lane = lane_of(places, arrow.to, Stream::Passes)?;
    let spans = trace.lanes[lane].spans();
    let place = spans.partition_point(|span| span.end <= arrow.arrived);
    (place < spans.len()).then_some((lane, place))
}

fn slice(
    trace: &Trace,
    (track, stream): (u64, usize),
    span: &Span,
    flows: Option<&(Vec<u64>, Vec<u64>)>,
    file: &mut Message,
) {
    let mut begin = Message::default();
    for (name, value) in [
        ("label", u64::from(span.label.0)),
        ("phase", span.phase as u64),
        // Where slices overlap, an end does not tell which one's it is.
        ("nanoseconds", span.duration().0),
    ] {
        let mut annotation = Message::default();
        annotation.number(fields::UINT, value);
        annotation.bytes(fields::ANNOTATION_NAME, name.as_bytes());
        begin.message(fields::ANNOTATION, &annotation);
    }
    begin.number(fields::TYPE, fields::BEGIN);
    begin.number(fields::TRACK, track);
    let category: &[u8] = match span.phase {
        Phase::Busy => b"busy",
        Phase::Transfer => b"transfer",
        Phase::Waiting => b"waiting",
        Phase::Idle => b"idle",
    };
    begin.bytes(fields::CATEGORY, category);
    begin.bytes(
        fields::EVENT_NAME,
        span_name(trace, stream, span).as_bytes(),
    );
    if let Some((leave, end)) = flows {
        for &id in leave {
            begin.fixed(fields::FLOW, id);
        }
        for &id in end {
            begin.fixed(fields::FLOW_END, id);
        }
    }
    packet(file, span.start, &begin);
    let mut end = Message::default();
    end.number(fields::TYPE, fields::END);
    end.number(fields::TRACK, track);
    packet(file, span.end, &end);
}

/// All memory of a GPU, whenever it changes.
fn counters(trace: &Trace, file: &mut Message) {
    for (index, memory) in trace.memory.iter().enumerate() {
        let fixed = memory.fixed.total();
        let first = [(Nanos::ZERO, crate::units::Bytes::ZERO)];
        for &(at, activations) in first.iter().chain(&memory.activations) {
            let mut event = Message::default();
            event.number(fields::TYPE, fields::COUNT);
            event.number(fields::TRACK, fields::memory(index));
            event.number(fields::COUNT_VALUE, (fixed + activations).0);
            packet(file, at, &event);
        }
    }
}

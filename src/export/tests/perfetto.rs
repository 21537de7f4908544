//! Perfetto's protobuf, decoded by a library that knows nothing of the writer.

use std::collections::HashMap;

use prost::Message;
use serde_json::Value;

use crate::scene::Picture;
use crate::scene::sample::Sample;
use crate::trace::Stream;

use super::super::{Export, perfetto};

// As in Perfetto's .proto files; what they have besides is passed over.

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Counter {
    #[prost(int32, optional, tag = "3")]
    unit: Option<i32>,
}

/// A trace of ours, and what the other decoder makes of it.
fn decoded() -> (crate::trace::Trace, Trace) {
    let trace = Sample {
        dp: 2,
        tp: 1,
        pp: 2,
        micro_batches: 4,
    }
    .trace();
    let picture = Picture::default();
    let bytes = perfetto(&Export {
        trace: &trace,
        picture: &picture,
        report: &Value::Null,
        drawing: crate::export::Drawing::default(),
    });
    let decoded = Trace::decode(bytes.as_slice()).unwrap();
    (trace, decoded)
}

fn tracks(decoded: &Trace) -> HashMap<u64, &TrackDescriptor> {
    let packets = decoded.packet.iter();
    let tracks = packets.filter_map(|packet| packet.track_descriptor.as_ref());
    tracks.map(|track| (track.uuid.unwrap(), track)).collect()
}

fn events(decoded: &Trace) -> impl Iterator<Item = (u64, &TrackEvent)> {
    let packets = decoded.packet.iter();
    packets.filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
}

#[test]
fn another_decoder_finds_named_processes_and_tracks_in_order() {
    let (_, decoded) = decoded();
    let tracks = tracks(&decoded);
    // Replica by replica and stage by stage, as the rows are.
    let mut processes: Vec<(i32, &str)> = tracks
        .values()
        .filter_map(|track| track.process.as_ref())
        .map(|process| {
            (
                process.pid.unwrap(),
                process.process_name.as_deref().unwrap(),
            )
        })
        .collect();
    processes.sort_unstable();
    assert_eq!(
        processes,
        [(1, "GPU 0"), (2, "GPU 2"), (3, "GPU 1"), (4, "GPU 3")]
    );
    for track in tracks.values().filter(|track| track.process.is_none()) {
        let parent = tracks[&track.parent_uuid.unwrap()];
        assert_eq!(parent.child_ordering, Some(3), "explicit");
        assert!(track.name.is_some() && track.sibling_order_rank.is_some());
    }
}

#[test]
fn another_decoder_finds_every_slice_arrow_and_counter() {
    let (trace, decoded) = decoded();
    let tracks = tracks(&decoded);
    let events = || events(&decoded);
    let (mut begun, mut slices) = (HashMap::new(), 0);
    for (at, event) in events() {
        let track = event.track_uuid.unwrap();
        assert!(tracks.contains_key(&track));
        match event.kind {
            Some(1) => {
                assert!(event.name.as_deref().is_some_and(|name| !name.is_empty()));
                assert_eq!(
                    begun.insert(track, at),
                    None,
                    "slices of a track follow one another"
                );
            }
            Some(2) => {
                assert!(begun.remove(&track).unwrap() < at);
                slices += 1;
            }
            Some(4) => {
                assert!(tracks[&track].counter.is_some() && event.counter_value.unwrap() > 0);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(begun.is_empty());
    assert_eq!(slices, trace.span_count());
    // Every arrow leaves from a send and ends at a pass.
    let leaves: usize = events().map(|(_, event)| event.flow_ids.len()).sum();
    let ends: usize = events()
        .map(|(_, event)| event.terminating_flow_ids.len())
        .sum();
    assert_eq!((leaves, ends), (trace.arrows.len(), trace.arrows.len()));
    for (_, event) in events().filter(|(_, event)| !event.terminating_flow_ids.is_empty()) {
        let track = tracks[&event.track_uuid.unwrap()];
        assert_eq!(track.name.as_deref(), Some(Stream::Passes.name()));
    }
}

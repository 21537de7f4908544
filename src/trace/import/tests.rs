//! Traces of other programs: what is drawn of them, and that nothing in a file brings the program down.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::super::{Kind, Phase, Stream, Trace};
use super::{Foreign, ForeignFile, ImportError, foreign};
use crate::units::Nanos;

fn read(files: &[&str]) -> Result<Foreign, ImportError> {
    let sources: Vec<ForeignFile<'_>> = files
        .iter()
        .map(|text| ForeignFile {
            given: "a.json",
            name: "a.json",
            bytes: text.as_bytes(),
        })
        .collect();
    foreign(&sources, &mut |_| ControlFlow::Continue(()))
}

/// A rank's file: all-reduces of the given starts and lengths, in microseconds.
fn rank(rank: u32, calls: &[(i64, i64)]) -> String {
    let kernel = |&(start, length): &(i64, i64)| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32","pid":0,"tid":20,"ts":{start},"dur":{length}}}"#
        )
    };
    let all: Vec<String> = calls.iter().map(kernel).collect();
    format!(
        r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}]}}"#,
        all.join(",")
    )
}

fn spans(trace: &Trace, row: usize) -> Vec<(u64, u64, Phase)> {
    let spans = trace.lane(row, Stream::Passes).spans().iter();
    spans
        .map(|span| (span.start.0 / 1000, span.end.0 / 1000, span.phase))
        .collect()
}

#[test]
fn case_16_clocks_seconds_apart_are_aligned_on_the_ends_of_collectives() {
    // The second rank's clock is three seconds ahead, and it comes late to the second call.
    let ahead = 3_000_000;
    let first = rank(0, &[(100, 50), (200, 100), (400, 20)]);
    let second = rank(
        1,
        &[(ahead + 130, 20), (ahead + 280, 20), (ahead + 400, 20)],
    );
    // Given in any order.
    let found = read(&[&second, &first]).unwrap();
    let offsets: Vec<_> = found
        .ranks
        .iter()
        .map(|rank| rank.clock_offset_us)
        .collect();
    assert_eq!(offsets, [Some(0.0), Some(-3_000_000.0)]);
    assert!(found.notes.is_empty());
    let (waits, moves) = (Phase::Waiting, Phase::Transfer);
    // From the first start on.
    let of_first = [
        (0, 30, waits),
        (30, 50, moves),
        (100, 180, waits),
        (180, 200, moves),
        (300, 320, moves),
    ];
    assert_eq!(spans(&found.trace, 0), of_first);
    assert_eq!(
        spans(&found.trace, 1),
        [(30, 50, moves), (180, 200, moves), (300, 320, moves)]
    );
    let waited: Vec<_> = found.ranks.iter().map(|rank| rank.comm_wait_us).collect();
    assert_eq!(waited, [Some(110.0), Some(0.0)]);
}

/// A rank's file in which each all-reduce says its group's ranks.
fn grouped(rank: u32, calls: &[(&str, i64, i64)]) -> String {
    let kernel = |&(ranks, start, length): &(&str, i64, i64)| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32","pid":0,"tid":20,"ts":{start},"dur":{length},
            "args":{{"Process Group Name":"1","Process Group Ranks":{ranks},"Group size":2,"Collective name":"allreduce","dtype":"Float",
            "In msg nelems":1000}}}}"#
        )
    };
    let all: Vec<String> = calls.iter().map(kernel).collect();
    format!(
        r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}]}}"#,
        all.join(",")
    )
}

#[test]
fn case_16_groups_of_one_name_are_told_apart_by_their_ranks() {
    // Pairs (0, 1) and (2, 3), and across them (0, 2) and (1, 3): all of one name. The last rank shares no group with the first.
    let files = [
        grouped(0, &[("[0, 1]", 100, 50), ("[0, 2]", 200, 10)]),
        grouped(1, &[("[0, 1]", 1130, 20), ("[1, 3]", 1300, 30)]),
        grouped(2, &[("\"[2, 3]\"", 2400, 30), ("[0, 2]", 2170, 40)]),
        grouped(3, &[("\"[2, 3]\"", 3410, 20), ("[1, 3]", 3320, 10)]),
    ];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let found = read(&files).unwrap();
    let offsets: Vec<_> = found
        .ranks
        .iter()
        .map(|rank| rank.clock_offset_us)
        .collect();
    let expected = [0.0, -1000.0, -2000.0, -3000.0].map(Some);
    assert_eq!(offsets, expected, "{:?}", found.notes);
    let waits: Vec<_> = found.ranks.iter().map(|rank| rank.comm_wait_us).collect();
    assert_eq!(waits, [30.0, 20.0, 40.0, 0.0].map(Some));
    let label = &found.trace.labels[0];
    assert_eq!((label.members, label.bytes), (2, 4000));
    // The longest wait first, and for whom.
    let waits: Vec<_> = found
        .collectives
        .iter()
        .map(|one| (one.last, one.sum_us()))
        .collect();
    assert_eq!(waits, [(1, 30.0), (0, 30.0), (3, 20.0), (3, 10.0)]);
}

#[test]
fn clocks_that_cannot_be_trusted_are_left_alone_and_said() {
    let first = rank(0, &[(0, 10), (1_000_000, 10), (2_000_000, 10)]);
    let other = rank(1, &[(0, 10), (3_000_000, 10), (9_000_000, 10)]);
    let found = read(&[&first, &other]).unwrap();
    assert_eq!(found.ranks[1].clock_offset_us, None);
    assert!(
        found.notes[0].contains("not the same ones"),
        "{:?}",
        found.notes
    );
    let fewer = read(&[&first, &rank(1, &[(0, 10)])]).unwrap();
    assert!(
        fewer.notes[0].contains("equally often"),
        "{:?}",
        fewer.notes
    );
}

#[test]
fn case_16_arrows_of_one_number_in_two_files_are_two_arrows() {
    let file = |rank: u32| {
        format!(
            r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[
            {{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5}},{{"ph":"X","name":"b","pid":1,"tid":2,"ts":8,"dur":5}},
            {{"ph":"s","id":7,"name":"x","pid":1,"tid":1,"ts":1}},{{"ph":"f","bp":"e","id":7,"name":"x","pid":1,"tid":2,"ts":9}}]}}"#
        )
    };
    let found = read(&[&file(0), &file(1)]).unwrap();
    let joined: Vec<(u32, u32)> = found
        .trace
        .arrows
        .iter()
        .map(|arrow| (arrow.from.0, arrow.to.0))
        .collect();
    assert_eq!(joined, [(0, 1), (2, 3)]);
}

#[test]
fn case_17_what_overlaps_on_a_stream_is_all_drawn() {
    let kernels = [
        (0, 100),
        (10, 20),
        (15, 5),
        (50, 10),
        (100, 10),
        (105, 1),
        (106, 0),
    ];
    let events: Vec<String> = kernels
        .iter()
        .map(|(start, length)| {
            format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{start},"dur":{length}}}"#)
        })
        .collect();
    let found = read(&[&format!("[{}", events.join("\n"))]).unwrap();
    let rows = found.trace.ranks.len();
    let drawn: usize = (0..rows).map(|row| spans(&found.trace, row).len()).sum();
    assert_eq!((rows, drawn), (3, kernels.len()));
    let names: Vec<&str> = found.trace.tracks.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "GPU 0 · stream 7",
            "GPU 0 · stream 7 (2)",
            "GPU 0 · stream 7 (3)"
        ]
    );
    for row in 0..rows {
        for pair in found.trace.lane(row, Stream::Passes).spans().windows(2) {
            assert!(pair[0].end <= pair[1].start, "{pair:?}");
        }
    }
}

#[test]
fn a_trace_without_a_gpu_is_drawn_and_its_shares_are_unknown() {
    let found = read(&[r#"[{"ph":"X","name":"work","pid":1,"tid":1,"ts":5,"dur":1}"#]).unwrap();
    assert_eq!(found.trace.makespan, Nanos(1000));
    assert_eq!(found.trace.labels[0].kind, Kind::Other);
    assert_eq!((found.ranks[0].idle_pct, found.ranks[0].kernels), (None, 0));
}

#[test]
fn what_is_no_trace_is_refused() {
    for text in ["", "{}", "[]", "7", "{\"a\": [1, 2]}", "PNG"] {
        assert!(
            matches!(read(&[text]), Err(ImportError::NoEvents { .. })),
            "{text}"
        );
    }
    // Clocks that share nothing are no reason to refuse: each file starts at its own first event.
    let alone = r#"[{"ph":"X","cat":"kernel","name":"k","ts":1694128201428006,"dur":5}]"#;
    let found = read(&[&rank(0, &[(0, 10)]), alone]).unwrap();
    assert_eq!(
        (found.trace.makespan, found.ranks[1].clock_offset_us),
        (Nanos(10_000), None)
    );
    let apart = rank(0, &[(0, 1), (200_000_000_000_000, 1)]);
    assert!(matches!(read(&[&apart]), Err(ImportError::Damaged(_))));
}

fn anything() -> impl Strategy<Value = String> {
    let phases = prop::sample::select(vec!["X", "B", "E", "s", "t", "f", "M", "i", "Q", ""]);
    let numbers = prop::sample::select(vec![
        "0",
        "1",
        "2.5",
        "-3",
        "1e3",
        "NaN",
        "9223372036854775807",
        "18446744073709551615",
        "1e300",
        "\"7\"",
        "null",
        "{}",
    ]);
    let categories = prop::sample::select(vec!["kernel", "cuda_runtime", "gpu_memcpy", "", "x"]);
    let names = prop::sample::select(vec![
        "ncclDevKernel_AllReduce",
        "Memcpy",
        "ProfilerStep#1",
        "a\\u00e9",
        "thread_name",
    ]);
    let number = move || numbers.clone();
    let event = (phases, categories, names, number(), number(), (number(), number(), number())).prop_map(
        |(phase, category, name, at, lasts, (thread, id, correlation))| {
            format!(
                r#"{{"ph":"{phase}","cat":"{category}","name":"{name}","ts":{at},"dur":{lasts},"tid":{thread},"id":{id},"args":{{"correlation":{correlation},"name":"n"}}}}"#
            )
        },
    );
    prop::collection::vec(event, 0..30).prop_map(|events| format!("[{}]", events.join(",")))
}

proptest! {
    #[test]
    fn no_file_panics(text in anything(), cut in 0.0..1.0_f64, at in 0.0..1.0_f64, byte in any::<u8>()) {
        let end = (text.len() as f64 * cut) as usize;
        let mut bytes = text.as_bytes()[..end].to_vec();
        if !bytes.is_empty() {
            let place = ((bytes.len() - 1) as f64 * at) as usize;
            bytes[place] = byte;
        }
        for bytes in [text.as_bytes(), &bytes] {
            let source = ForeignFile { given: "a", name: "a", bytes };
            if let Ok(found) = foreign(&[source, source], &mut |_| ControlFlow::Continue(())) {
                for lane in &found.trace.lanes {
                    for pair in lane.spans().windows(2) {
                        prop_assert!(pair[0].start <= pair[1].start);
                    }
                    prop_assert!(lane.spans().iter().all(|span| span.end > span.start && span.end <= found.trace.makespan));
                }
            }
        }
    }
}

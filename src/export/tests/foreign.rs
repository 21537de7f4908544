//! Real traces of other programs, from outside: they are read as their own tools read them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::trace::import::{Foreign, GpuFigures};
use crate::trace::{Arrow, Stream};

use super::super::{Export, ExportError, Opened, open, read, write};

/// The traces, which are not part of the project; without them a test says that it was skipped.
fn fixtures() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures/traces");
    if !folder.is_dir() {
        eprintln!(
            "skipped: {} is not there, and real traces are too large to ship",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

fn opened(paths: &[PathBuf]) -> Result<Foreign, ExportError> {
    match open(paths, &mut |_, _| ControlFlow::Continue(()))? {
        Opened::Foreign(foreign) => Ok(*foreign),
        Opened::Own(_) => panic!("it is not ours"),
    }
}

/// The rows of Holistic Trace Analysis for a trace.
fn expected(folder: &Path, trace: &str) -> Vec<(u64, [f64; 8])> {
    let table = std::fs::read_to_string(folder.join("hta_expected.csv")).unwrap();
    let rows = table
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>());
    let of_trace = rows.filter(|cells| cells[0] == trace);
    of_trace
        .map(|cells| {
            let figures: Vec<f64> = cells[2..]
                .iter()
                .map(|cell| cell.parse().unwrap())
                .collect();
            (cells[1].parse().unwrap(), figures.try_into().unwrap())
        })
        .collect()
}

fn figures(of: &GpuFigures) -> [f64; 8] {
    [
        of.idle_us,
        of.compute_us,
        of.non_compute_us,
        of.kernel_span_us,
        of.idle_pct,
        of.compute_pct,
        of.non_compute_pct,
        of.comp_comm_overlap_pct,
    ]
    .map(Option::unwrap)
}

#[test]
fn shares_of_time_are_those_of_holistic_trace_analysis() {
    let Some(folder) = fixtures() else { return };
    let mut rows = 0;
    for trace in [
        "dlrm_8_ranks.tar.gz",
        "kineto_sampled_rank0.json.gz",
        "kineto_sampled_rank1.json.gz",
    ] {
        let found = opened(&[folder.join(trace)]).unwrap();
        let expected = expected(&folder, trace);
        let expected_alone = expected.len() == 1;
        assert_eq!(found.ranks.len(), expected.len(), "{trace}");
        for (ours, (rank, theirs)) in found.ranks.iter().zip(expected) {
            // A file read by itself was called rank 0 there, whatever it says of itself.
            assert!(ours.rank == rank || expected_alone);
            assert_eq!(ours.trace, trace);
            for (a, b) in figures(ours).into_iter().zip(theirs) {
                // They print two digits behind the point.
                assert!(
                    (a - b).abs() <= 0.005 + 1e-9,
                    "{trace} {rank}: {a} instead of {b}"
                );
            }
            rows += 1;
        }
    }
    assert_eq!(rows, 10);
}

#[test]
fn the_ends_of_collectives_of_eight_ranks_are_aligned() {
    let Some(folder) = fixtures() else { return };
    let found = opened(&[folder.join("dlrm_8_ranks.tar.gz")]).unwrap();
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let ends: Vec<Vec<u64>> = (0..found.trace.ranks.len())
        .map(|row| {
            let spans = found.trace.lane(row, Stream::Passes).spans().iter();
            let moved = spans.filter(|span| found.trace.label(span.label).name.starts_with("nccl"));
            let moved = moved.filter(|span| span.phase == crate::trace::Phase::Transfer);
            moved.map(|span| span.end.0).collect()
        })
        .filter(|ends: &Vec<u64>| !ends.is_empty())
        .collect();
    assert_eq!((ends.len(), ends[0].len()), (8, 8));
    for call in 0..8 {
        let ends = ends.iter().map(|ends| ends[call]);
        let apart = ends.clone().max().unwrap() - ends.min().unwrap();
        assert!(apart <= 7_000, "call {call}: {apart} ns");
    }
}

#[test]
fn arrows_join_the_slices_that_perfetto_joins() {
    let Some(folder) = fixtures() else { return };
    let found = opened(&[folder.join("flow_events_v1.json")]).unwrap();
    let trace = &found.trace;
    let name = |rank: crate::units::Rank, at| {
        let lane = trace.lane(rank.index(), Stream::Passes);
        lane.at(at)
            .map(|span| trace.label(span.label).name.to_string())
    };
    let joined = |arrow: &Arrow| (name(arrow.from, arrow.left), name(arrow.to, arrow.arrived));
    let mut all: Vec<_> = trace.arrows.iter().map(joined).collect();
    all.sort();
    let expected = [
        ("OtherSlice", "SomeSlice"),
        ("SenderA", "OtherSlice"),
        ("SenderB", "Blergh"),
    ];
    assert_eq!(
        all,
        expected.map(|(from, to)| (Some(from.to_owned()), Some(to.to_owned())))
    );
}

#[test]
fn a_trace_of_others_comes_back_from_our_own_file() {
    let Some(folder) = fixtures() else { return };
    let found = opened(&[folder.join("kineto_event_sync.json.gz")]).unwrap();
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("own.json.gz");
    let (picture, report) = (crate::scene::Picture::default(), serde_json::Value::Null);
    write(
        &path,
        &Export {
            trace: &found.trace,
            picture: &picture,
            report: &report,
            drawing: crate::export::Drawing::default(),
        },
    )
    .unwrap();
    assert_eq!(read(&path).unwrap().trace, found.trace);
}

#[test]
fn a_folder_holds_a_rank_a_file_and_what_is_ours_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let event = r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"tid":7}]}"#;
    for rank in 0..3 {
        std::fs::write(folder.path().join(format!("rank{rank}.json")), event).unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "none").unwrap();
    let found = opened(&[folder.path().to_owned()]).unwrap();
    assert_eq!((found.ranks.len(), found.trace.ranks.len()), (3, 3));
    let own = folder.path().join("rank3.json");
    let picture = crate::scene::Picture::default();
    write(
        &own,
        &Export {
            trace: &found.trace,
            picture: &picture,
            report: &serde_json::Value::Null,
            drawing: crate::export::Drawing::default(),
        },
    )
    .unwrap();
    let refused = opened(&[folder.path().to_owned()]).unwrap_err().to_string();
    assert!(refused.contains("open it by itself"), "{refused}");
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        opened(&[empty.path().to_owned()]),
        Err(ExportError::Empty { .. })
    ));
}

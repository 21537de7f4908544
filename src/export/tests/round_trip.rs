//! What is written comes back equal; what is damaged or foreign is refused; files are replaced whole.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scene::Picture;
use crate::scene::sample::Sample;
use crate::trace::import::{self, ImportError};
use crate::trace::{
    Arrow, FixedMemory, Kind, Label, LabelId, Memory, Phase, RankInfo, Span, Stream, Trace,
};
use crate::units::{Bytes, Nanos, Pass, Rank};

use super::super::{Export, ExportError, Format, chrome, csv, files, perfetto, read, write};

fn labels() -> impl Strategy<Value = Vec<Label>> {
    let kinds = prop::sample::select(vec![
        Kind::Pass,
        Kind::Segment,
        Kind::AllReduce,
        Kind::ReduceScatter,
        Kind::AllGather,
        Kind::Other,
    ]);
    let passes = prop::option::of(prop::sample::select(vec![Pass::Forward, Pass::WeightGrad]));
    let number = || prop::option::of(0..9_u32);
    let name = prop::collection::vec(
        prop::sample::select(vec!['a', '"', ',', '\n', '\\', 'é', '\r']),
        0..6,
    );
    let group = prop::option::of(prop::sample::select(vec!["dp", "tp, \"x\""]));
    let one = (
        kinds,
        name,
        passes,
        (number(), number(), number()),
        group,
        (0..9_u64, 0..3_u32),
    )
        .prop_map(
            |(kind, name, pass, (micro_batch, stage, layer), group, (bytes, members))| Label {
                kind,
                name: name.into_iter().collect::<String>().into(),
                pass,
                micro_batch,
                stage,
                layer,
                group: group.map(Into::into),
                bytes,
                members,
            },
        );
    prop::collection::vec(one, 1..5)
}

/// Gaps and lengths of the spans of a lane, with label and phase.
type Spans = Vec<(u64, u64, u32, Phase)>;

fn spans() -> impl Strategy<Value = Spans> {
    let phases = vec![Phase::Busy, Phase::Transfer, Phase::Waiting, Phase::Idle];
    let one = (
        0..1_u64 << 34,
        1..1_u64 << 34,
        0..4_u32,
        prop::sample::select(phases),
    );
    prop::collection::vec(one, 0..6)
}

fn traces() -> impl Strategy<Value = Trace> {
    let lanes = (1..4_usize)
        .prop_flat_map(|ranks| prop::collection::vec(spans(), ranks * Stream::ALL.len()));
    let memory = (0..1_u64 << 40, prop::collection::vec(0..1_u64 << 40, 0..4));
    (labels(), lanes, memory, 0..1_u64 << 40).prop_map(
        |(labels, lanes, (fixed, activations), end)| {
            let ranks = (lanes.len() / Stream::ALL.len()) as u32;
            let infos = (0..ranks).map(|rank| RankInfo {
                rank: Rank(rank),
                dp: rank % 2,
                tp: 0,
                pp: rank / 2,
                count: 1,
                pipeline_end: Nanos(end),
                peak_in_flight: rank,
            });
            let count = labels.len() as u32;
            let mut trace = Trace::new(infos.collect(), labels);
            for (lane, spans) in trace.lanes.iter_mut().zip(lanes) {
                let mut time = 0;
                for (gap, length, label, phase) in spans {
                    lane.push(Span {
                        start: Nanos(time + gap),
                        end: Nanos(time + gap + length),
                        label: LabelId(label % count),
                        phase,
                    });
                    time += gap + length;
                }
            }
            let steps = activations.iter().enumerate();
            trace.memory = (0..ranks)
                .map(|_| Memory {
                    fixed: FixedMemory {
                        parameters: Bytes(fixed),
                        ..FixedMemory::default()
                    },
                    activations: steps
                        .clone()
                        .map(|(at, size)| (Nanos(at as u64 * 7), Bytes(*size)))
                        .collect(),
                })
                .collect();
            trace.arrows.push(Arrow {
                from: Rank(0),
                left: Nanos(end / 2),
                to: Rank(ranks - 1),
                arrived: Nanos(end),
                label: LabelId(0),
            });
            trace.makespan = Nanos(end);
            trace
        },
    )
}

fn export<'a>(trace: &'a Trace, picture: &'a Picture, report: &'a Value) -> Export<'a> {
    Export {
        trace,
        picture,
        report,
        drawing: crate::export::Drawing::default(),
    }
}

/// All spans, with their labels spelled out.
fn spelled(trace: &Trace) -> Vec<(Rank, Stream, Nanos, Nanos, Phase, Label)> {
    let spans = trace.lanes.iter().flat_map(|lane| {
        lane.spans().iter().map(|span| {
            let label = trace.label(span.label).clone();
            (
                lane.id.rank,
                lane.id.stream,
                span.start,
                span.end,
                span.phase,
                label,
            )
        })
    });
    spans.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chrome_json_comes_back_equal(trace in traces()) {
        let report = json!({ "makespan_s": 0.0177, "ranks": [] });
        let picture = Picture { title: "a \"title\"".to_owned(), ..Picture::default() };
        let text = chrome(&export(&trace, &picture, &report));
        let back = import::chrome(text.as_bytes()).unwrap();
        prop_assert_eq!(&back.trace, &trace);
        prop_assert_eq!(serde_json::from_value::<Picture>(back.picture).unwrap(), picture);
        prop_assert_eq!(back.report, report);
    }

    #[test]
    fn perfettos_protobuf_comes_back_equal(trace in traces()) {
        let report = json!({ "makespan_s": 0.0177, "ranks": [] });
        let picture = Picture { title: "a \"title\"".to_owned(), ..Picture::default() };
        let bytes = perfetto(&export(&trace, &picture, &report));
        let back = import::perfetto(&bytes).unwrap();
        prop_assert_eq!(&back.trace, &trace);
        prop_assert_eq!(serde_json::from_value::<Picture>(back.picture).unwrap(), picture);
        prop_assert_eq!(back.report, report);
    }

    #[test]
    fn csv_brings_every_span_back(trace in traces()) {
        let back = import::csv(&csv(&trace)).unwrap();
        prop_assert_eq!(spelled(&back.trace), spelled(&trace));
    }

    #[test]
    fn cut_or_changed_bytes_never_panic(trace in traces(), at in 0.0..1.0_f64, byte in any::<u8>()) {
        let text = chrome(&export(&trace, &Picture::default(), &Value::Null)).into_bytes();
        // Up to the closing brace: a file that lacks only its last line end is whole.
        let at = (text.trim_ascii_end().len() as f64 * at) as usize;
        prop_assert!(import::chrome(&text[..at]).is_err());
        let mut changed = text;
        changed[at] = byte;
        drop(import::chrome(&changed));
        let mut protobuf = perfetto(&export(&trace, &Picture::default(), &Value::Null));
        let place = (protobuf.len() - 1).min(at);
        drop(import::perfetto(&protobuf[..place]));
        protobuf[place] = byte;
        drop(import::perfetto(&protobuf));
        let table = csv(&trace);
        let cut: String = table.chars().take(at).collect();
        drop(import::csv(&cut));
    }
}

#[test]
fn a_csv_of_a_whole_step_is_equal_but_for_memory_and_arrows() {
    let trace = Sample {
        dp: 2,
        tp: 2,
        pp: 2,
        micro_batches: 4,
    }
    .trace();
    let back = import::csv(&csv(&trace)).unwrap().trace;
    assert_eq!(back.makespan, trace.makespan);
    assert_eq!(back.bubbles(), trace.bubbles());
}

#[test]
fn what_others_wrote_is_refused_by_name() {
    let foreign = br#"{"schemaVersion":1,"traceEvents":[{"ph":"X","pid":"gpu","ts":1}]}"#;
    assert!(matches!(import::chrome(foreign), Err(ImportError::Foreign)));
    assert!(matches!(
        import::chrome(b"[{\"ph\":\"X\"}]"),
        Err(ImportError::Foreign)
    ));
    assert!(matches!(
        import::chrome(b"{\"traceEv"),
        Err(ImportError::Json(_))
    ));
    assert!(matches!(
        import::csv("a,b\n1,2\n"),
        Err(ImportError::Foreign)
    ));
}

#[test]
fn a_label_that_is_not_there_is_refused() {
    let trace = Sample {
        dp: 1,
        tp: 1,
        pp: 1,
        micro_batches: 1,
    }
    .trace();
    let picture = Picture::default();
    let text = chrome(&export(&trace, &picture, &Value::Null));
    let wrong = text.replacen("\"label\":0", "\"label\":4000000000", 1);
    assert!(matches!(
        import::chrome(wrong.as_bytes()),
        Err(ImportError::Damaged(_))
    ));
    let negative = text.replacen("\"ts\":0.000", "\"ts\":-5", 1);
    assert!(import::chrome(negative.as_bytes()).is_err());
}

#[test]
fn files_come_back_whatever_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Sample {
        dp: 1,
        tp: 1,
        pp: 2,
        micro_batches: 4,
    }
    .trace();
    let (picture, report) = (Picture::default(), json!({ "clock": "virtual" }));
    for name in ["a.json", "a.json.gz", "a.pftrace"] {
        let path = folder.path().join(name);
        write(&path, &export(&trace, &picture, &report)).unwrap();
        let back = read(&path).unwrap();
        assert_eq!((back.trace, back.report), (trace.clone(), report.clone()));
    }
}

#[test]
fn a_failed_export_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::default();
    let (picture, report) = (Picture::default(), Value::Null);
    let taken = folder.path().join("folder.csv");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("inside"), "old").unwrap();
    assert!(write(&taken, &export(&trace, &picture, &report)).is_err());
    assert_eq!(
        std::fs::read_to_string(taken.join("inside")).unwrap(),
        "old"
    );
    let path = folder.path().join("old.pdf");
    std::fs::write(&path, "old").unwrap();
    write(&path, &export(&trace, &picture, &report)).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(b"%PDF"));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left over"
    );
    let nowhere = folder.path().join("no/such/folder.csv");
    let error = write(&nowhere, &export(&trace, &picture, &report)).unwrap_err();
    assert!(error.to_string().contains("folder"), "{error}");
}

#[test]
fn a_table_without_its_last_column_is_read_as_before() {
    let trace = Sample {
        dp: 1,
        tp: 1,
        pp: 2,
        micro_batches: 2,
    }
    .trace();
    let cut = |line: &str| line.rsplit_once(',').unwrap().0.to_owned() + "\n";
    let older: String = csv(&trace).lines().map(cut).collect();
    let back = import::csv(&older).unwrap().trace;
    assert_eq!(back.span_count(), trace.span_count());
    assert!(back.labels.iter().all(|label| label.members == 0));
}

#[test]
fn endings_decide_the_format() {
    let format = |name: &str| Format::from_path(Path::new(name));
    assert_eq!(format("a/B.JSON.GZ").unwrap(), Format::ChromeGz);
    assert_eq!(format("x.json").unwrap(), Format::Chrome);
    assert_eq!(format("x.pftrace").unwrap(), Format::Perfetto);
    let error = format("x.bmp").unwrap_err().to_string();
    assert!(error.contains(".png") && error.contains("x.bmp"), "{error}");
}

#[test]
fn a_bomb_is_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.json.gz");
    let zeros = files::zipped(&vec![b' '; 1 << 20]).unwrap();
    // Packed members one after another count as one file: a gibibyte and more in about a mebibyte.
    std::fs::write(&path, zeros.repeat(1025)).unwrap();
    assert!(matches!(read(&path), Err(ExportError::TooLarge { .. })));
}

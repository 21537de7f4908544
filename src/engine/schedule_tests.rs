//! Every schedule on the clock: against the formulas of FACTS and the zero-bubble paper's table.

use proptest::prelude::*;

use super::simulate;
use crate::hardware::PassTimes;
use crate::mesh::Mesh;
use crate::plan::{Job, Load, lower};
use crate::schedule::{Chunks, ScheduleKind, Shares};
use crate::trace::{Stream, Trace};
use crate::units::Nanos;

/// A step of bare passes; times are of all chunks of a rank together. None where there is no such schedule.
fn run(kind: ScheduleKind, [pp, m, v]: [usize; 3], times: PassTimes) -> Option<Trace> {
    let v = match kind.chunks() {
        Chunks::Loop => v,
        Chunks::One | Chunks::Vee => kind.chunks().count(),
    };
    let schedule = kind.build(pp, m, v).ok()?;
    let plan = lower(&Job {
        fold: None,
        mesh: Mesh::new(1, 1, pp).unwrap(),
        schedule: &schedule,
        load: Load::Passes,
    });
    let chunks = v as u64;
    Some(simulate(&plan.unwrap(), &PassTimes { chunks, ..times }))
}

fn times(forward: u64, input_grad: u64, weight_grad: u64) -> PassTimes {
    PassTimes {
        forward: Nanos(forward),
        input_grad: Nanos(input_grad),
        weight_grad: Nanos(weight_grad),
        comm: Nanos::ZERO,
        chunks: 1,
    }
}

/// The longest time from a rank's own first pass to its last.
fn stage_span(trace: &Trace) -> u64 {
    let span = |rank| {
        let passes = trace.lane(rank, Stream::Passes).spans();
        passes[passes.len() - 1].end.since(passes[0].start).0
    };
    (0..trace.ranks.len()).map(span).max().unwrap()
}

/// What is published as the share of bubble beside the formula: four digits, or within 5 % of it.
#[derive(Clone, Copy)]
enum Digits {
    Four,
    FivePercent,
}

#[test]
fn the_zero_bubble_papers_table_comes_out() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/zero_bubble_table5_9.csv"
    );
    let columns = [
        (7, ScheduleKind::OneFOneB, Digits::Four),
        (8, ScheduleKind::Interleaved, Digits::FivePercent),
        (9, ScheduleKind::ZbH1, Digits::Four),
        (10, ScheduleKind::ZbH2, Digits::Four),
    ];
    let mut rows = 0;
    for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let millis = |index: usize| Nanos::from_millis(cells[index].parse().unwrap());
        let (pp, m): (usize, usize) = (cells[1].parse().unwrap(), cells[2].parse().unwrap());
        let layers = match cells[0] {
            "1.5B" => 22,
            "6.2B" => 30,
            "14.6B" => 46,
            _ => 62,
        };
        let costs = PassTimes {
            comm: millis(6),
            ..times(millis(3).0, millis(4).0, millis(5).0)
        };
        for (column, kind, digits) in columns {
            let trace = run(kind, [pp, m, (layers + 2) / pp], costs).unwrap();
            let ours = trace.bubbles().stage_span;
            let published: f64 = cells[column].parse().unwrap();
            match digits {
                Digits::Four => {
                    assert_eq!((ours * 1e4).round() / 1e4, published, "{kind:?}: {line}");
                }
                Digits::FivePercent => {
                    assert!((ours / published - 1.0).abs() < 0.05, "{ours}: {line}");
                }
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 8);
}

fn kinds() -> impl Strategy<Value = ScheduleKind> {
    prop::sample::select(ScheduleKind::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Where the textbook has a formula, for any pass times that it holds for.
    #[test]
    fn makespans_are_as_published(
        kind in kinds(), pp in 2usize..17, m in 1usize..65, v in 1usize..5,
        [f, i, w] in [1u64..40, 1u64..40, 1u64..40],
    ) {
        // Twelfths, so that they divide by two, three and four chunks.
        let [f, i, w] = [f, i, w].map(|time| time * 12);
        let Some(trace) = run(kind, [pp, m, v], times(f, i, w)) else { return Ok(()) };
        let v = if kind.chunks() == Chunks::Loop { v } else { kind.chunks().count() };
        let shares = Shares { forward: Nanos(f), input_grad: Nanos(i), weight_grad: Nanos(w) };
        let page = kind.textbook(pp, m, v);
        if let Some(published) = page.makespan(shares) {
            prop_assert_eq!(trace.makespan, published);
            let ours = trace.bubbles().of_total;
            prop_assert!((ours - page.bubble_of_total(shares).unwrap()).abs() < 1e-9);
        }
        for rank in 0..pp {
            prop_assert_eq!(trace.split(rank).total(), trace.makespan);
        }
    }

    /// ZB-H2's, ZB-V's and DualPipeV's are of the stage with the longest time.
    #[test]
    fn stage_spans_are_as_published(pp in 2usize..17, m in 1usize..65, [f, i, w] in [1u64..40, 1u64..40, 1u64..40]) {
        let (p, n) = (pp as u64, m as u64);
        if m >= 2 * pp - 1 && w <= f.min(i) {
            let trace = run(ScheduleKind::ZbH2, [pp, m, 1], times(f, i, w)).unwrap();
            let extra = (p - 1) * (f + i).saturating_sub(2 * w);
            prop_assert_eq!(stage_span(&trace), n * (f + i + w) + extra);
        }
        let even = times(2 * f, 2 * f, 2 * f);
        if m >= 2 * pp - 1 {
            let trace = run(ScheduleKind::ZbV, [pp, m, 2], even).unwrap();
            prop_assert_eq!(stage_span(&trace), n * 6 * f);
        }
        if let Some(trace) = run(ScheduleKind::DualPipeV, [pp, m, 2], even) {
            // In times of a chunk, f: F&B = 3, B = 2, W = 1.
            prop_assert_eq!(stage_span(&trace), n * 6 * f + (p - 1) * 2 * f);
        }
    }
}

#[test]
fn case_13_a_receive_never_blocks_what_does_not_need_it() {
    // PyTorch#188833: interleaved on 8 ranks; zero-bubble#73: rank 1's first forward waits for rank 0's second.
    let trace = run(
        ScheduleKind::Interleaved,
        [8, 16, 2],
        PassTimes {
            comm: Nanos(50),
            ..times(1000, 1000, 1000)
        },
    )
    .unwrap();
    for rank in 0..8 {
        let first = trace.lane(rank, Stream::Passes).spans()[0];
        assert_eq!(first.start, Nanos(rank as u64 * 550), "rank {rank}");
    }
    // The formula, and no more than what sends add on the way there and back.
    let formula = 16 * 3000 + 7 * 3000 / 2;
    assert!(
        (formula..formula + 40 * 50).contains(&trace.makespan.0),
        "{}",
        trace.makespan.0
    );
}

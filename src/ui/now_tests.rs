//! What is said of timelines of every kind.

use proptest::prelude::*;

use crate::engine::{Slow, simulate};
use crate::hardware::PassTimes;
use crate::mesh::Mesh;
use crate::plan::{Job, Load, lower};
use crate::scene::narration::{MOST_LINES, Narrator, account, now};
use crate::schedule::ScheduleKind;
use crate::session::{Config, Timeline};
use crate::trace::Trace;
use crate::units::Nanos;
use crate::words::Language;

/// Four stages, four micro-batches, 1F1B: a forward takes 1 µs, a backward 2 µs, messages nothing.
fn unit_costs() -> Trace {
    let schedule = ScheduleKind::OneFOneB.build(4, 4, 1).unwrap();
    let plan = lower(&Job {
        fold: None,
        mesh: Mesh::new(1, 1, 4).unwrap(),
        schedule: &schedule,
        load: Load::Passes,
    });
    let unit = Nanos(1_000);
    let times = PassTimes {
        forward: unit,
        input_grad: unit,
        weight_grad: unit,
        comm: Nanos::ZERO,
        chunks: 1,
    };
    simulate(&plan.unwrap(), &times)
}

fn config(kind: ScheduleKind, [dp, tp, pp]: [usize; 3]) -> Config {
    let mut config = Config::default();
    config.layout.dp = dp;
    config.layout.tp = tp;
    config.layout.pp = pp;
    config.layout.schedule = if pp == 1 { ScheduleKind::GPipe } else { kind };
    config.layout.chunks = config.layout.schedule.chunks().count();
    config.layout.micro_batches = 8;
    config.layout.micro_batch_size = 1;
    config
}

/// What is said at some times.
fn said(trace: &Trace, times: &[Nanos]) -> String {
    let narrator = Narrator::new(trace);
    let told = times.iter().map(|&time| {
        let now = narrator.now(trace, time, Language::English);
        let mut lines = vec![format!("at {time}: {}", now.headline)];
        lines.extend(now.lines.iter().map(|line| format!("  {}", line.text())));
        lines.join("\n")
    });
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_pipeline_at_unit_costs() {
    let trace = unit_costs();
    let times = [1_500, 7_500, 17_500].map(Nanos);
    insta::assert_snapshot!(said(&trace, &times));
}

#[test]
fn a_pipeline_as_a_text() {
    insta::assert_snapshot!(account(&unit_costs()));
}

#[test]
fn replicas_and_slices_with_the_cost_model() {
    let mut config = config(ScheduleKind::OneFOneB, [2, 2, 1]);
    config.overlap = false;
    config.disturbance.slow = vec![Slow {
        rank: 1,
        factor: 1.5,
    }];
    let trace = Timeline::simulated(&config, "simulated").unwrap().trace;
    let parts = [10, 13, 500, 970, 990, 1_000];
    let times = parts.map(|part| Nanos(trace.makespan.0 * part / 1_000));
    let text = format!("{}\n\n{}", said(&trace, &times), account(&trace));
    insta::assert_snapshot!(text);
}

#[test]
fn an_empty_trace_has_nothing_to_tell() {
    let told = now(&Trace::default(), Nanos(5));
    assert!(told.lines.is_empty());
    assert!(account(&Trace::default()).starts_with("0 GPUs"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn at_any_time_every_rank_is_in_one_line(
        kind in prop::sample::select(ScheduleKind::ALL.to_vec()),
        degrees in prop::sample::select(vec![[1, 1, 4], [2, 1, 2], [2, 2, 4], [8, 1, 4], [4, 2, 1]]),
        overlap in any::<bool>(),
        parts in prop::collection::vec(0..=1_001_u64, 8),
    ) {
        let mut config = config(kind, degrees);
        config.overlap = overlap;
        let trace = Timeline::simulated(&config, "simulated").unwrap().trace;
        let narrator = Narrator::new(&trace);
        for part in parts {
            let now = narrator.now(&trace, Nanos(trace.makespan.0 * part / 1_000), Language::English);
            let mut ranks: Vec<usize> = now.lines.iter().flat_map(|line| line.ranks.clone()).collect();
            ranks.sort_unstable();
            prop_assert!(ranks.into_iter().eq(0..trace.ranks.len()));
            prop_assert!(now.lines.len() <= MOST_LINES);
            prop_assert!(!now.headline.is_empty());
        }
    }
}

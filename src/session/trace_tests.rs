//! Questions to a trace, asked of runs of every kind: areas, chains, traffic between ranks.

use proptest::prelude::*;

use super::{Config, Costs, Timeline};
use crate::engine::Slow;
use crate::schedule::ScheduleKind;
use crate::shape::Zero;
use crate::trace::{
    Area, AreaFigures, Link, TimeSplit, Trace, chain_behind, counters, critical_path, sent,
};
use crate::units::Nanos;

fn kind() -> impl Strategy<Value = ScheduleKind> {
    prop::sample::select(ScheduleKind::ALL.to_vec())
}

/// A run of any kind, on even and on uneven clocks.
fn run() -> impl Strategy<Value = Timeline> {
    let degrees = prop::sample::select(vec![(1, 1, 4), (2, 1, 2), (2, 2, 2), (1, 2, 4), (4, 2, 1)]);
    (kind(), degrees, any::<bool>(), any::<bool>(), 0..3_u64).prop_map(
        |(kind, (dp, tp, pp), overlap, even, seed)| {
            let mut config = Config::default();
            config.layout.dp = dp;
            config.layout.tp = tp;
            config.layout.pp = pp;
            config.layout.schedule = if pp == 1 { ScheduleKind::GPipe } else { kind };
            config.layout.chunks = config.layout.schedule.chunks().count();
            config.layout.micro_batches = 8;
            config.layout.micro_batch_size = 1;
            config.overlap = overlap;
            config.methods.sequence_parallel = tp > 1 && seed == 1;
            config.methods.zero = [Zero::Off, Zero::Optimizer, Zero::Parameters][seed as usize];
            config.seed = seed;
            if !even {
                config.disturbance.jitter = 0.3;
                config.disturbance.slow = vec![Slow {
                    rank: 1,
                    factor: 1.7,
                }];
            }
            Timeline::simulated(&config, "simulated").unwrap()
        },
    )
}

/// Each operation ends where the one after it starts, back to the start of the step.
fn tiles(links: &[Link], end: Nanos) {
    let mut at = end;
    for link in links {
        assert_eq!(link.span.end, at, "{link:?} of {links:#?}");
        at = link.span.start;
    }
    assert_eq!(at, Nanos::ZERO, "{links:#?}");
}

fn all_of(trace: &Trace, from: Nanos, to: Nanos) -> Area {
    let ranks = (0..trace.ranks.len()).collect();
    Area { from, to, ranks }
}

fn sum(splits: impl IntoIterator<Item = TimeSplit>) -> TimeSplit {
    let mut sum = TimeSplit::default();
    splits.into_iter().for_each(|split| sum.add_times(split, 1));
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_critical_path_leads_through_all_of_the_step(step in run()) {
        let trace = &step.trace;
        tiles(&critical_path(trace), trace.makespan);
    }

    #[test]
    fn behind_every_pass_is_a_chain_to_the_start(step in run(), rank in 0..8_usize, at in 0..64_usize) {
        let trace = &step.trace;
        let rank = rank % trace.ranks.len();
        let passes = trace.lane(rank, crate::trace::Stream::Passes).spans();
        let pass = passes[at % passes.len()];
        tiles(&chain_behind(trace, rank, pass.start), pass.start);
    }

    #[test]
    fn areas_side_by_side_add_up_to_the_step(step in run(), cut in 0.0..1.0_f64) {
        let trace = &step.trace;
        let cut = Nanos((trace.makespan.0 as f64 * cut) as u64);
        let whole = AreaFigures::new(trace, &all_of(trace, Nanos::ZERO, trace.makespan));
        let left = AreaFigures::new(trace, &all_of(trace, Nanos::ZERO, cut));
        let right = AreaFigures::new(trace, &all_of(trace, cut, trace.makespan));
        prop_assert_eq!(whole.split, sum([left.split, right.split]));
        prop_assert_eq!(whole.split, sum((0..trace.ranks.len()).map(|rank| trace.split(rank))));
        let bytes = |figures: &AreaFigures| -> f64 { figures.operations.iter().map(|kind| kind.bytes).sum() };
        let apart = bytes(&whole) - bytes(&left) - bytes(&right);
        prop_assert!(apart.abs() < 1.0, "{}", apart);
    }

    #[test]
    fn links_carry_what_the_report_says_that_groups_move(step in run()) {
        let trace = &step.trace;
        let sent = sent(trace, Nanos::ZERO, trace.makespan);
        for axis in ["tp", "dp", "pp", "embedding", "model", "world"] {
            let report = step.report.traffic.iter().filter(|row| row.group == axis);
            let wire: u64 = report.map(|row| row.wire_bytes * u64::from(row.instances)).sum();
            let links: f64 = sent.iter().filter(|sent| sent.axis.name() == axis).map(|sent| sent.bytes).sum();
            prop_assert!((wire as f64 - links).abs() <= 1e-6 * wire as f64 + 1.0, "{}: {} {}", axis, wire, links);
        }
        // And so do the counters of each.
        let parts = 50;
        for rank in 0..trace.ranks.len() {
            for counter in counters(trace, rank, (Nanos::ZERO, trace.makespan), parts) {
                let carried: f64 = counter.rates.iter().map(|rate| rate * trace.makespan.secs() / parts as f64).sum();
                let whole = sent.iter().find(|one| (one.from, one.to, one.axis) == (rank, counter.to, counter.axis));
                let whole = whole.unwrap().bytes;
                prop_assert!((carried - whole).abs() <= 1e-6 * whole + 1.0, "{} {}", carried, whole);
            }
        }
    }
}

#[test]
fn a_slow_gpu_is_what_the_critical_path_leads_through() {
    let mut config = Config::default();
    config.layout.dp = 1;
    config.disturbance.slow = vec![Slow {
        rank: 2,
        factor: 3.0,
    }];
    let step = Timeline::simulated(&config, "simulated").unwrap();
    let path = critical_path(&step.trace);
    let on = |rank| -> Nanos {
        let links = path.iter().filter(|link| link.rank_index == rank);
        links.map(|link| link.span.duration()).sum()
    };
    assert!(on(2).0 * 2 > step.trace.makespan.0, "{:?}", on(2));
}

#[test]
fn on_unit_time_the_chain_hops_over_messages_that_take_none() {
    let config = Config {
        costs: Costs::unit(),
        ..Config::default()
    };
    let step = Timeline::simulated(&config, "simulated").unwrap();
    tiles(&critical_path(&step.trace), step.trace.makespan);
}

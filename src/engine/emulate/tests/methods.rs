//! Sequence parallelism, `ZeRO` and gradients left alone: each trains as it should.

use super::*;
use crate::shape::Zero;
use crate::units::Rank;

#[test]
fn sequence_parallelism_and_zero_reproduce_the_fixture() {
    let tiny = Tiny::load();
    let choices = [
        (true, Zero::Off),
        (false, Zero::Optimizer),
        (true, Zero::Optimizer),
    ];
    for (sequence_parallel, zero) in choices {
        let methods = Methods {
            sequence_parallel,
            zero,
            ..Methods::default()
        };
        for [dp, tp, pp, m] in [
            [1, 2, 1, 2],
            [1, 4, 2, 4],
            [2, 1, 2, 2],
            [2, 2, 2, 4],
            [4, 2, 2, 2],
            [8, 1, 1, 1],
            [2, 2, 4, 4],
        ] {
            for kind in [
                ScheduleKind::OneFOneB,
                ScheduleKind::ZbH1,
                ScheduleKind::ZbV,
            ] {
                let way = Way {
                    overlap: m > 2,
                    methods,
                    ..Way::of([dp, tp, pp, m])
                };
                let schedule = kind.build(pp, m, kind.chunks().count()).unwrap();
                reproduces(&tiny, way, &schedule);
            }
        }
    }
}

#[test]
fn without_the_all_reduce_replicas_drift_apart() {
    let tiny = Tiny::load();
    let run = |no_sync| {
        let methods = Methods {
            no_sync,
            ..Methods::default()
        };
        let way = Way {
            dp: 2,
            pp: 2,
            m: 2,
            methods,
            ..Way::default()
        };
        let schedule = ScheduleKind::OneFOneB.build(2, 2, 1).unwrap();
        let plan = plan(&tiny.shape, way, &schedule, 2);
        let mut emulator = Emulator::new(plan, &tiny.shape, &tiny.weights, 2, 2).unwrap();
        let stop = AtomicBool::new(false);
        for step in 0..3 {
            let tokens = tiny.batches.batch(step, 8).unwrap();
            emulator.step(&tokens, false, &stop).unwrap();
        }
        emulator.hashes().unwrap()
    };
    let (together, apart) = (run(false), run(true));
    assert_eq!(together[0], together[1]);
    assert_ne!(apart[0], apart[1]);
}

#[test]
fn under_zero_each_replica_holds_its_share_of_the_moments() {
    let tiny = Tiny::load();
    let zero = Methods {
        zero: Zero::Optimizer,
        ..Methods::default()
    };
    let of = |methods| {
        let way = Way {
            dp: 4,
            methods,
            ..Way::default()
        };
        let schedule = ScheduleKind::GPipe.build(1, 1, 1).unwrap();
        let plan = plan(&tiny.shape, way, &schedule, 2);
        let emulator = Emulator::new(plan, &tiny.shape, &tiny.weights, 2, 1).unwrap();
        let bytes = (0..4).flat_map(|rank| emulator.ranks.shards_of(Rank(rank)));
        bytes
            .map(|shard| shard.state_bytes().optimizer)
            .collect::<Vec<_>>()
    };
    let (whole, shares) = (of(Methods::default()), of(zero));
    assert_eq!(shares.iter().sum::<u64>(), whole[0]);
    assert!(
        shares
            .iter()
            .all(|&share| share.abs_diff(whole[0] / 4) < whole[0] / 100)
    );
}

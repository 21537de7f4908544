//! Parallel training is the same training: every layout against the single-device fixture.

mod methods;

use std::sync::atomic::AtomicBool;

use super::*;
use crate::engine::tiny::{Tiny, Way, assert_close, compare, mixes, plan, values};
use crate::model::data::{Batches, PRIMER, byte_tokens};
use crate::schedule::{Schedule, ScheduleKind};
use crate::shape::{Methods, Optimizer};

/// Trains the fixture's ten steps on `schedule` and compares everything that it has.
fn reproduces(tiny: &Tiny, way: Way, schedule: &Schedule) {
    let stop = AtomicBool::new(false);
    let size = 8 / way.dp / way.m;
    let plan = plan(&tiny.shape, way, schedule, size);
    let mut emulator = Emulator::new(plan, &tiny.shape, &tiny.weights, size, 2).unwrap();
    for step in 0..10 {
        let tokens = tiny.batches.batch(step, 8).unwrap();
        let outcome = emulator.step(&tokens, step == 0, &stop).unwrap();
        compare(tiny, way, step, &outcome);
    }
    let hashes = emulator.hashes().unwrap();
    assert!(
        hashes.iter().all(|hash| *hash == hashes[0]),
        "replicas differ: {way:?}"
    );
    tiny.compare_weights(&emulator.weights().unwrap());
}

fn every_mix_reproduces(kind: ScheduleKind) {
    let tiny = Tiny::load();
    let mut ways = 0;
    for (dp, tp, pp) in mixes() {
        for m in [1, 2, 4, 8].into_iter().filter(|m| 8 % (dp * m) == 0) {
            let way = Way {
                dp,
                tp,
                pp,
                m,
                overlap: m % 3 != 1,
                ..Way::default()
            };
            reproduces(&tiny, way, &kind.build(pp, m, 1).unwrap());
            ways += 1;
        }
    }
    assert_eq!(ways, 86);
}

#[test]
fn every_mix_reproduces_the_fixture_under_gpipe() {
    every_mix_reproduces(ScheduleKind::GPipe);
}

#[test]
fn every_mix_reproduces_the_fixture_under_1f1b() {
    every_mix_reproduces(ScheduleKind::OneFOneB);
}

#[test]
fn every_schedule_reproduces_the_fixture_with_tp_and_dp() {
    // Chunks, a V placement, split backwards and overlapped pairs: all that a plan can hold.
    let tiny = Tiny::load();
    let ways = [
        [1, 1, 2, 8],
        [1, 1, 4, 8],
        [1, 2, 4, 8],
        [2, 2, 2, 4],
        [1, 4, 2, 4],
        [2, 2, 4, 4],
        [2, 1, 1, 2],
    ];
    for kind in ScheduleKind::ALL {
        let mut count = 0;
        for [dp, tp, pp, m] in ways {
            // Not every schedule takes every number of micro-batches.
            if let Ok(schedule) = kind.build(pp, m, kind.chunks().count()) {
                let way = Way {
                    overlap: tp < 4,
                    ..Way::of([dp, tp, pp, m])
                };
                reproduces(&tiny, way, &schedule);
                count += 1;
            }
        }
        assert!(count >= 5, "{kind:?}: {count}");
    }
}

#[test]
fn layers_put_on_stages_by_hand_reproduce_the_fixture() {
    let tiny = Tiny::load();
    // A stage may hold most of the layers, or none.
    let splits: [&'static [usize]; 3] = [&[1, 7], &[8, 0], &[0, 8]];
    for layers in splits {
        let way = Way {
            layers: Some(layers),
            ..Way::of([2, 2, 2, 4])
        };
        reproduces(&tiny, way, &ScheduleKind::OneFOneB.build(2, 4, 1).unwrap());
    }
}

/// A model whose vocabulary divides by no degree, and layers by none either; text as tokens.
fn odd_model() -> (ModelShape, Weights, Batches) {
    let shape = ModelShape {
        layers: 5,
        hidden: 24,
        heads: 4,
        vocab: 97,
        seq: 12,
        ..ModelShape::preset("nano").unwrap()
    };
    let weights = Weights::init(&shape, 5).unwrap();
    let batches = Batches::new(byte_tokens(PRIMER, 97), shape.seq, 5).unwrap();
    (shape, weights, batches)
}

fn train_odd(way: Way, threads: usize) -> (Vec<f64>, Vec<f64>, Vec<u64>, Weights) {
    let (shape, weights, batches) = odd_model();
    let schedule = ScheduleKind::OneFOneB.build(way.pp, way.m, 1).unwrap();
    let size = 8 / way.dp / way.m;
    let mut emulator = Emulator::new(
        plan(&shape, way, &schedule, size),
        &shape,
        &weights,
        size,
        threads,
    )
    .unwrap();
    let (mut losses, mut norms) = (Vec::new(), Vec::new());
    let mut gradients = None;
    for step in 0..4 {
        let tokens = batches.batch(step, 8).unwrap();
        let outcome = emulator
            .step(&tokens, step == 0, &AtomicBool::new(false))
            .unwrap();
        losses.push(outcome.loss);
        norms.push(outcome.grad_norm);
        gradients = gradients.or(outcome.gradients);
    }
    (
        losses,
        norms,
        emulator.hashes().unwrap(),
        gradients.unwrap(),
    )
}

#[test]
fn cases_2_to_6_uneven_layers_and_vocabulary_train_as_on_one_gpu() {
    let alone = train_odd(
        Way {
            dp: 1,
            tp: 1,
            pp: 1,
            m: 1,
            overlap: true,
            ..Way::default()
        },
        1,
    );
    for (dp, tp, pp, m) in [
        (1, 2, 1, 2),
        (1, 1, 2, 4),
        (1, 1, 3, 2),
        (2, 2, 2, 2),
        (2, 4, 3, 1),
        (4, 1, 2, 2),
    ] {
        let way = Way {
            dp,
            tp,
            pp,
            m,
            overlap: m > 1,
            ..Way::default()
        };
        let (losses, norms, hashes, gradients) = train_odd(way, 2);
        for (ours, theirs) in losses.iter().zip(&alone.0) {
            assert!(
                (ours - theirs).abs() < 1e-5,
                "{way:?}: {ours} instead of {theirs}"
            );
        }
        // Clipped to 1.0 by the one global norm, whatever the layout (CASES 5).
        for (ours, theirs) in norms.iter().zip(&alone.1) {
            assert!(
                (ours / theirs - 1.0).abs() < 1e-4,
                "{way:?}: {ours} instead of {theirs}"
            );
        }
        for name in alone.3.names() {
            let (ours, theirs) = (gradients.get(name).unwrap(), alone.3.get(name).unwrap());
            assert_close(name, ours, theirs, 1e-4, 1e-6);
        }
        assert!(
            hashes.iter().all(|hash| *hash == hashes[0]),
            "replicas differ: {way:?}"
        );
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    for way in [
        Way {
            dp: 1,
            tp: 1,
            pp: 1,
            m: 8,
            overlap: true,
            ..Way::default()
        },
        Way {
            dp: 2,
            tp: 2,
            pp: 2,
            m: 2,
            overlap: true,
            ..Way::default()
        },
    ] {
        let bits = |threads| {
            let (losses, norms, hashes, _) = train_odd(way, threads);
            let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            (bits(losses), bits(norms), hashes)
        };
        let one = bits(1);
        for threads in [2, 3, 8] {
            assert_eq!(bits(threads), one, "{threads} threads");
        }
    }
}

#[test]
fn a_plan_counts_the_parameters_that_ranks_really_hold() {
    let (shape, weights, _) = odd_model();
    for (dp, tp, pp) in [(1, 1, 1), (2, 2, 2), (1, 4, 3)] {
        let way = Way {
            dp,
            tp,
            pp,
            m: 2,
            overlap: true,
            ..Way::default()
        };
        let schedule = ScheduleKind::GPipe.build(pp, 2, 1).unwrap();
        let plan = plan(&shape, way, &schedule, 1);
        let planned: Vec<u64> = plan
            .program()
            .memory
            .iter()
            .map(|memory| memory.parameters.0 / 4)
            .collect();
        let emulator = Emulator::new(plan, &shape, &weights, 1, 1).unwrap();
        assert_eq!(emulator.params(), planned);
    }
}

#[test]
fn a_step_can_be_stopped_and_a_wrong_batch_is_an_error() {
    let (shape, weights, batches) = odd_model();
    let way = Way {
        dp: 1,
        tp: 1,
        pp: 2,
        m: 2,
        overlap: true,
        ..Way::default()
    };
    let schedule = ScheduleKind::OneFOneB.build(2, 2, 1).unwrap();
    let mut emulator =
        Emulator::new(plan(&shape, way, &schedule, 4), &shape, &weights, 4, 2).unwrap();
    let tokens = batches.batch(0, 8).unwrap();
    let stopped = emulator
        .step(&tokens, false, &AtomicBool::new(true))
        .unwrap_err();
    assert!(matches!(stopped, StepError::Stopped), "{stopped}");
}

#[test]
fn a_loss_that_is_not_a_number_is_said() {
    let (mut shape, weights, batches) = odd_model();
    shape.optimizer.lr = f64::INFINITY;
    let way = Way {
        dp: 1,
        tp: 1,
        pp: 1,
        m: 1,
        overlap: true,
        ..Way::default()
    };
    let schedule = ScheduleKind::GPipe.build(1, 1, 1).unwrap();
    let mut emulator =
        Emulator::new(plan(&shape, way, &schedule, 8), &shape, &weights, 8, 1).unwrap();
    let mut step = |index| {
        emulator.step(
            &batches.batch(index, 8).unwrap(),
            false,
            &AtomicBool::new(false),
        )
    };
    step(0).unwrap();
    let said = step(1).unwrap_err().to_string();
    assert!(
        said.starts_with("step 1: the loss is not a finite number"),
        "{said}"
    );
}

#[test]
fn losses_fall_on_the_shipped_text_and_every_computation_takes_time() {
    let shape = ModelShape {
        layers: 4,
        hidden: 64,
        ..ModelShape::preset("nano").unwrap()
    };
    let weights = Weights::init(&shape, 1).unwrap();
    let batches = Batches::new(byte_tokens(PRIMER, 256), shape.seq, 1).unwrap();
    let way = Way {
        dp: 2,
        tp: 2,
        pp: 2,
        m: 2,
        overlap: true,
        ..Way::default()
    };
    let schedule = ScheduleKind::OneFOneB.build(2, 2, 1).unwrap();
    let plan = plan(&shape, way, &schedule, 2);
    let mut emulator = Emulator::new(Arc::clone(&plan), &shape, &weights, 2, 2).unwrap();
    let mut losses = Vec::new();
    for step in 0..30 {
        let tokens = batches.batch(step, 8).unwrap();
        let outcome = emulator
            .step(&tokens, false, &AtomicBool::new(false))
            .unwrap();
        losses.push(outcome.loss);
        let Measured::Durations(took) = &outcome.took else {
            panic!("emulated ranks have durations");
        };
        for (op, took) in plan.program().ops().iter().zip(took) {
            let computes = matches!(op.what, What::Compute { .. } | What::Optimizer);
            assert!(!computes || *took > Nanos::ZERO, "{op:?}");
        }
    }
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let (first, last) = (mean(&losses[..5]), mean(&losses[25..]));
    assert!(last < first - 1.0, "{first} fell to {last} only");
}

/// The gradients' norm, and how far one step takes a weight. With a large eps a step is as long as the gradient that
/// the optimizer sees, so that it tells whether that was clipped.
fn one_step(way: Way, clip: Option<f64>) -> (f64, f64) {
    let (mut shape, weights, batches) = odd_model();
    shape.optimizer = Optimizer {
        lr: 1.0,
        eps: 100.0,
        weight_decay: 0.0,
        clip,
        ..Optimizer::default()
    };
    let schedule = ScheduleKind::OneFOneB.build(way.pp, way.m, 1).unwrap();
    let size = 8 / way.dp / way.m;
    let plan = plan(&shape, way, &schedule, size);
    let mut emulator = Emulator::new(plan, &shape, &weights, size, 2).unwrap();
    let tokens = batches.batch(0, 8).unwrap();
    let outcome = emulator
        .step(&tokens, false, &AtomicBool::new(false))
        .unwrap();
    let of = |weights: &Weights| values(weights.get("transformer.h.2.mlp.c_fc.weight").unwrap());
    let (before, after) = (of(&weights), of(&emulator.weights().unwrap()));
    let squares = after
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before).powi(2));
    (outcome.grad_norm, squares.sum::<f64>().sqrt())
}

#[test]
fn case_5_clipping_scales_by_the_global_norm_once() {
    let settings = |clip| Optimizer {
        clip,
        ..Optimizer::default()
    };
    assert_eq!(clip_scale(&settings(Some(1.0)), 1.25), 0.8);
    assert_eq!(clip_scale(&settings(Some(1.0)), 0.8), 1.0);
    assert_eq!(clip_scale(&settings(None), 1e9), 1.0);
    let alone = Way {
        dp: 1,
        tp: 1,
        pp: 1,
        m: 1,
        overlap: true,
        ..Way::default()
    };
    let (norm, free) = one_step(alone, None);
    let clip = norm * 0.8;
    for way in [
        alone,
        Way {
            dp: 2,
            tp: 2,
            pp: 2,
            m: 2,
            overlap: true,
            ..Way::default()
        },
        Way {
            dp: 4,
            tp: 1,
            pp: 1,
            m: 1,
            overlap: false,
            ..Way::default()
        },
    ] {
        let (_, clipped) = one_step(way, Some(clip));
        assert!(
            (clipped / free - 0.8).abs() < 2e-3,
            "{way:?}: {}",
            clipped / free
        );
    }
}

//! Every cut is the uncut model; every order of work is the same work.

use super::driver::{
    Backward, Replica, Tolerance, assert_all_close, rough_weights, shape, tokens, values,
};
use crate::model::{ModelError, Reference, Shard, ShardPlace, gather, gather_gradients};
use crate::shape::{Bucket, ModelShape, Recompute, Slices};
use crate::units::Pass;

const CLOSE: Tolerance = Tolerance(2e-4, 2e-6);

/// Compares a layout with one device: loss, norm, gradients, weights after a clipped step.
fn compare(shape: &ModelShape, sizes: &[usize], slices: impl Into<Slices>, how: Backward) {
    let weights = rough_weights(shape, 3);
    let batch = tokens(shape, 4, 5);
    let one = Reference::new(shape, &weights).unwrap();
    let replica = Replica::new(shape, &weights, sizes, slices);
    let expected = one.accumulate(&batch, 1).unwrap();
    let loss = replica.accumulate(&batch, 2, how);
    assert!((loss - expected).abs() < 1e-5, "{loss}, not {expected}");
    let (norm, known) = (
        replica.grad_norm(),
        one.shard().square_norm().unwrap().sqrt(),
    );
    assert!(
        (norm / known - 1.0).abs() < 1e-5,
        "norm {norm}, not {known}"
    );
    let known = gather_gradients(shape, &[one.shard()]).unwrap();
    assert_all_close(&replica.gradients(), &known, CLOSE);
}

#[test]
fn odd_vocabularies_and_layers_equal_one_device() {
    let odd = shape([5, 16, 4, 97, 12]);
    compare(&odd, &[5], 2, Backward::Whole);
    compare(&odd, &[5], 4, Backward::Split);
    compare(&odd, &[3, 2], 2, Backward::Split);
}

#[test]
fn case_9_sequence_parallelism_equals_one_device_norms_and_all() {
    // Megatron-LM#1446, gpt-neox#1257: layer-norm gradients that differed over TP.
    let odd = shape([5, 16, 4, 97, 12]);
    let cut = |tp| Slices { tp, sequence: true };
    compare(&odd, &[5], cut(2), Backward::Whole);
    compare(&odd, &[5], cut(4), Backward::Split);
    compare(&odd, &[3, 2], cut(2), Backward::Split);
    compare(&odd, &[2, 0, 2, 1], cut(4), Backward::Whole);
    compare(&odd, &[0, 5, 0], cut(2), Backward::Whole);
    let untied = ModelShape { tied: false, ..odd };
    compare(&untied, &[2, 3], cut(2), Backward::Whole);
}

#[test]
fn ranks_of_nothing_but_padding_take_no_part() {
    // Five tokens on four ranks of two rows: the last holds none.
    compare(&shape([1, 16, 4, 5, 6]), &[1], 4, Backward::Whole);
}

#[test]
fn untied_heads_equal_one_device() {
    let untied = ModelShape {
        tied: false,
        ..shape([2, 16, 4, 23, 8])
    };
    compare(&untied, &[2], 2, Backward::Whole);
    compare(&untied, &[1, 1], 2, Backward::Split);
}

#[test]
fn eight_ranks_equal_one_device() {
    compare(&shape([1, 32, 8, 64, 16]), &[1], 8, Backward::Whole);
}

#[test]
fn split_backward_gives_the_same_bits_as_the_whole() {
    let shape = shape([2, 16, 4, 19, 8]);
    let (weights, batch) = (rough_weights(&shape, 1), tokens(&shape, 2, 1));
    let bits = |tp, how| {
        let replica = Replica::new(&shape, &weights, &[1, 1], tp);
        replica.accumulate(&batch, 2, how);
        replica.gradients().hash().unwrap()
    };
    for tp in [1, 2] {
        assert_eq!(bits(tp, Backward::Whole), bits(tp, Backward::Split));
    }
}

#[test]
fn micro_batches_may_overlap_without_changing_a_bit() {
    let shape = shape([2, 16, 4, 19, 8]);
    let weights = rough_weights(&shape, 1);
    let batches = [tokens(&shape, 2, 1), tokens(&shape, 2, 2)];
    let run = |overlapped: bool| {
        let replica = Replica::new(&shape, &weights, &[2], 1);
        let shard = &replica.stages[0][0];
        let steps = |pass| shard.place().stage.steps(pass, 1, Recompute::None);
        let mut flights = batches
            .each_ref()
            .map(|tokens| replica.flights(tokens, 0.1));
        if overlapped {
            for pass in [Pass::Forward, Pass::Backward] {
                for step in steps(pass) {
                    for flight in &mut flights {
                        shard
                            .compute(&mut flight[0][0], pass, step.segment)
                            .unwrap();
                    }
                }
            }
        } else {
            for flight in &mut flights {
                replica.forward(flight);
                replica.backward(flight, Backward::Whole);
            }
        }
        shard.optimize(&shape.optimizer, 1.0, 1).unwrap();
        shard.hash().unwrap()
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn what_is_kept_is_what_the_shape_says() {
    let shape = shape([3, 16, 4, 21, 8]);
    let weights = rough_weights(&shape, 1);
    let all = [1, 2, 4].map(|tp| [false, true].map(|sequence| Slices { tp, sequence }));
    for slices in all.into_iter().flatten() {
        let replica = Replica::new(&shape, &weights, &[1, 2], slices);
        let mut flights = replica.flights(&tokens(&shape, 3, 1), 1.0);
        replica.forward(&mut flights);
        for (shards, flights) in replica.stages.iter().zip(&flights) {
            let steps = shards[0]
                .place()
                .stage
                .steps(Pass::Forward, slices, Recompute::None);
            let of = |segment| shape.stash_elements(segment, 3 * shape.seq, slices);
            let predicted: u64 = steps.iter().map(|step| of(step.segment)).sum();
            assert!(
                flights
                    .iter()
                    .all(|flight| flight.stash_elements() == predicted)
            );
        }
    }
}

#[test]
fn buckets_hold_the_parameters_that_the_shape_says() {
    let shape = shape([3, 16, 4, 21, 8]);
    let weights = rough_weights(&shape, 1);
    let replica = Replica::new(&shape, &weights, &[1, 2], 2);
    replica.accumulate(&tokens(&shape, 2, 1), 1, Backward::Whole);
    for shard in replica.shards() {
        let mut all = 0;
        for bucket in shard.place().stage.buckets() {
            let gradients = shard.gradient(bucket).unwrap();
            let count: usize = gradients.iter().map(candle_core::Tensor::elem_count).sum();
            assert_eq!(
                count as u64,
                shape.bucket_params(bucket, 2, true),
                "{bucket:?}"
            );
            all += count as u64;
        }
        assert_eq!(all, shard.params());
    }
}

#[test]
fn gradients_replaced_by_their_sum_train_like_twice_the_batch() {
    let shape = shape([1, 16, 4, 19, 8]);
    let weights = rough_weights(&shape, 1);
    let replicas = [1, 2].map(|seed| {
        let replica = Replica::new(&shape, &weights, &[1], 2);
        replica.accumulate(&tokens(&shape, 2, seed), 1, Backward::Whole);
        replica
    });
    for rank in 0..2 {
        let shards = replicas.each_ref().map(|replica| &replica.stages[0][rank]);
        for bucket in shards[0].place().stage.buckets() {
            let parts = shards.map(|shard| shard.gradient(bucket).unwrap());
            let sum = crate::model::sum_gradients(&parts).unwrap();
            for shard in shards {
                shard.set_gradient(bucket, sum.clone()).unwrap();
            }
        }
        for shard in shards {
            shard.optimize(&shape.optimizer, 0.5, 1).unwrap();
        }
        assert_eq!(shards[0].hash().unwrap(), shards[1].hash().unwrap());
    }
    // A second step starts from fresh gradients and leaves the other replica's alone.
    let loss = replicas[0].accumulate(&tokens(&shape, 2, 1), 1, Backward::Whole);
    assert!(loss.is_finite());
    assert!(replicas[1].stages[0][0].gradient(Bucket::Layer(0)).is_err());
}

#[test]
fn last_stage_copy_of_a_tied_embedding_stays_equal() {
    let shape = shape([2, 16, 4, 19, 8]);
    let replica = Replica::new(&shape, &rough_weights(&shape, 1), &[1, 1], 1);
    for step in 1..4 {
        replica.accumulate(&tokens(&shape, 2, step), 1, Backward::Whole);
        for shard in replica.shards() {
            shard.optimize(&shape.optimizer, 1.0, step).unwrap();
        }
    }
    let first = &replica.stages[0][0].embedding().unwrap().tokens;
    let (copy, _) = replica.stages[1][0].head_matrix().unwrap();
    assert_eq!(values(first.value()), values(copy));
    gather(&shape, &replica.shards()).unwrap();
}

#[test]
fn impossible_cuts_and_wrong_orders_are_refused() {
    let shape = shape([1, 12, 3, 8, 4]);
    let weights = rough_weights(&shape, 1);
    let place = ShardPlace {
        tp: 2,
        ..ShardPlace::whole(&shape)
    };
    let error = Shard::new(&shape, place, &weights).unwrap_err();
    assert!(matches!(
        error,
        ModelError::Indivisible { size: 3, tp: 2, .. }
    ));

    let replica = Replica::new(&shape, &weights, &[1], 1);
    let mut flights = replica.flights(&tokens(&shape, 1, 1), 1.0);
    let head = crate::shape::Segment::Head;
    let shard = &replica.stages[0][0];
    let error = shard
        .compute(&mut flights[0][0], Pass::Backward, head)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Head of pass B was computed before its forward was there"
    );
}

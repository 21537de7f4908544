//! PyTorch's own run of a small GPT-2, reproduced in several layouts.

use candle_core::Tensor;
use serde::Deserialize;

use super::driver::{Backward, Replica, Tolerance, assert_all_close, assert_close};
use crate::model::data::Batches;
use crate::model::{Flight, Reference, Weights, gather};
use crate::shape::ModelShape;

#[derive(Deserialize)]
struct Expected {
    layers: usize,
    hidden: usize,
    heads: usize,
    vocab: usize,
    seq: usize,
    batch: usize,
    steps: usize,
    losses: Vec<f64>,
    grad_norms: Vec<f64>,
    parameters: u64,
}

struct Fixture {
    expected: Expected,
    shape: ModelShape,
    weights: Weights,
    batches: Batches,
}

fn file(name: &str) -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read(format!("{root}/tests/fixtures/gpt_tiny/{name}")).unwrap()
}

fn fixture() -> Fixture {
    let expected: Expected = serde_json::from_slice(&file("expected.json")).unwrap();
    let Expected {
        layers,
        hidden,
        heads,
        vocab,
        seq,
        ..
    } = expected;
    let shape = super::driver::shape([layers, hidden, heads, vocab, seq]);
    let weights = Weights::from_safetensors(&file("weights.safetensors"), &shape).unwrap();
    let batches = Batches::from_safetensors(&file("tokens.safetensors"), seq, shape.vocab).unwrap();
    assert_eq!(batches.steps(), Some(expected.steps));
    assert_eq!(batches.global_batch(), Some(expected.batch));
    assert_eq!(shape.params(), expected.parameters);
    Fixture {
        expected,
        shape,
        weights,
        batches,
    }
}

fn step0_grads() -> std::collections::HashMap<String, Tensor> {
    let bytes = file("step0_grads.safetensors");
    candle_core::safetensors::load_buffer(&bytes, &candle_core::Device::Cpu).unwrap()
}

impl Fixture {
    fn tokens(&self, step: usize) -> Tensor {
        self.batches.batch(step, self.expected.batch).unwrap()
    }

    fn assert_step(&self, step: usize, loss: f64, norm: f64) {
        let (known, known_norm) = (self.expected.losses[step], self.expected.grad_norms[step]);
        assert!(
            (loss - known).abs() < 1e-5,
            "step {step}: loss {loss}, not {known}"
        );
        assert!(
            (norm / known_norm - 1.0).abs() < 1e-4,
            "step {step}: norm {norm}, not {known_norm}"
        );
    }

    fn assert_final(&self, weights: &Weights) {
        let bytes = file("final_weights.safetensors");
        let known = Weights::from_safetensors(&bytes, &self.shape).unwrap();
        for (name, tensor) in known.iter() {
            // The key bias has no true gradient: AdamW turns rounding into steps.
            let absolute = if name.ends_with("c_attn.bias") {
                2e-4
            } else {
                2e-5
            };
            let found = weights.get(name).unwrap();
            assert_close(name, found, tensor, Tolerance(1e-3, absolute));
        }
    }

    /// Trains a layout for all steps and compares everything there is.
    fn run(&self, sizes: &[usize], tp: usize, micro_batches: usize, how: Backward) {
        let replica = Replica::new(&self.shape, &self.weights, sizes, tp);
        for step in 0..self.expected.steps {
            let loss = replica.accumulate(&self.tokens(step), micro_batches, how);
            self.assert_step(step, loss, replica.grad_norm());
            if step == 0 {
                let mut known = step0_grads();
                known.remove("logits");
                let known = Weights::from_tensors(known);
                assert_all_close(&replica.gradients(), &known, Tolerance(1e-4, 1e-6));
            }
            for shard in replica.shards() {
                shard
                    .optimize(&self.shape.optimizer, 1.0, step as u64 + 1)
                    .unwrap();
            }
        }
        self.assert_final(&gather(&self.shape, &replica.shards()).unwrap());
    }
}

#[test]
fn one_device_trains_as_pytorch_does() {
    let fixture = fixture();
    let mut reference = Reference::new(&fixture.shape, &fixture.weights).unwrap();
    for step in 0..fixture.expected.steps {
        let figures = reference.step(&fixture.tokens(step), 2).unwrap();
        fixture.assert_step(step, figures.loss, figures.grad_norm);
    }
    fixture.assert_final(&gather(&fixture.shape, &[reference.shard()]).unwrap());
}

#[test]
fn logits_are_pytorchs() {
    let fixture = fixture();
    let reference = Reference::new(&fixture.shape, &fixture.weights).unwrap();
    let flight = Flight::new(&fixture.tokens(0), 1.0).unwrap();
    let logits = reference.shard().logits(flight).unwrap();
    assert_close(
        "logits",
        &logits,
        &step0_grads()["logits"],
        Tolerance(1e-4, 1e-6),
    );
}

#[test]
fn tensor_parallel_ranks_train_as_pytorch_does() {
    fixture().run(&[8], 2, 1, Backward::Whole);
    fixture().run(&[8], 4, 2, Backward::Split);
}

#[test]
fn stages_train_as_pytorch_does() {
    fixture().run(&[3, 5], 1, 4, Backward::Whole);
    fixture().run(&[4, 0, 4], 1, 2, Backward::Split);
}

#[test]
fn stages_of_tensor_parallel_ranks_train_as_pytorch_does() {
    fixture().run(&[4, 4], 2, 2, Backward::Split);
    fixture().run(&[0, 8, 0], 2, 1, Backward::Whole);
}

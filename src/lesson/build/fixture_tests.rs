//! Built by hand, trained for real: the single-device fixture's losses, gradients and weights come out.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};

use super::Board;
use super::tests::one_f_one_b;
use crate::hardware::Precision;
use crate::model::Weights;
use crate::session::{Config, Inputs, train};
use crate::shape::{ModelShape, Optimizer};

fn fixture(name: &str) -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read(format!("{root}/tests/fixtures/gpt_tiny/{name}")).unwrap()
}

fn tensors(name: &str) -> BTreeMap<String, Tensor> {
    let tensors = candle_core::safetensors::load_buffer(&fixture(name), &Device::Cpu).unwrap();
    tensors.into_iter().collect()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    let tensor = tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap();
    tensor.to_vec1().unwrap()
}

fn assert_close(ours: &Weights, name: &str, theirs: &Tensor, (relative, absolute): (f64, f64)) {
    let ours = ours.get(name).unwrap();
    assert_eq!(ours.dims(), theirs.dims(), "{name}");
    for (a, b) in values(ours).into_iter().zip(values(theirs)) {
        let near = (a - b).abs() <= absolute + relative * b.abs();
        assert!(near, "{name}: {a} instead of {b}");
    }
}

fn tiny(expected: &serde_json::Value) -> ModelShape {
    let size = |key: &str| expected[key].as_u64().unwrap() as usize;
    let setting = |key: &str| expected["optimizer"][key].as_f64().unwrap();
    ModelShape {
        name: "tiny".to_owned(),
        layers: size("layers"),
        hidden: size("hidden"),
        heads: size("heads"),
        vocab: size("vocab"),
        seq: size("seq"),
        optimizer: Optimizer {
            lr: setting("lr"),
            beta1: setting("beta1"),
            beta2: setting("beta2"),
            eps: setting("eps"),
            weight_decay: setting("weight_decay"),
            clip: None,
        },
        ..ModelShape::preset("nano").unwrap()
    }
}

fn reproduces(board: &Board) {
    let expected: serde_json::Value = serde_json::from_slice(&fixture("expected.json")).unwrap();
    let mut config = board.to_config(&Config::default()).unwrap();
    config.model = tiny(&expected);
    config.precision = Precision::F32;
    config.layout.micro_batch_size = 8 / config.layout.micro_batches;
    let inputs = Inputs {
        weights: Some(fixture("weights.safetensors")),
        tokens: Some(fixture("tokens.safetensors")),
        text: None,
    };
    let trained = train(&config, &inputs, 10, &mut |_, _| ()).unwrap();
    for (step, report) in trained.report.steps.iter().enumerate() {
        let loss = expected["losses"][step].as_f64().unwrap();
        let norm = expected["grad_norms"][step].as_f64().unwrap();
        assert!(
            (report.loss - loss).abs() < 1e-5,
            "{step}: {} for {loss}",
            report.loss
        );
        assert!((report.grad_norm / norm - 1.0).abs() < 1e-4, "{step}");
    }
    let gradients = tensors("step0_grads.safetensors");
    for (name, theirs) in gradients.iter().filter(|(name, _)| *name != "logits") {
        assert_close(&trained.gradients, name, theirs, (1e-4, 1e-6));
    }
    for (name, theirs) in &tensors("final_weights.safetensors") {
        let absolute = if name.ends_with("c_attn.bias") {
            2e-4
        } else {
            2e-5
        };
        assert_close(&trained.weights, name, theirs, (1e-3, absolute));
    }
}

#[test]
fn one_f_one_b_by_hand_trains_as_one_gpu_does() {
    reproduces(&one_f_one_b());
}

#[test]
fn an_order_of_ones_own_trains_as_one_gpu_does() {
    // Micro-batches out of order, a backward in two beside whole ones, a weight-gradient put off to the end.
    let csv = "0F2,0F0,0B2,0F1,0I0,0F3,0B1,0B3,0W0\n1F2,1B2,1F0,1F1,1B0,1I1,1F3,1W1,1B3";
    reproduces(&Board::from_csv(csv).unwrap());
}

#[test]
fn what_was_drawn_is_as_long_as_its_score_says() {
    let board = one_f_one_b();
    let config = board.to_config(&Config::default()).unwrap();
    assert!(config.training_plan().is_ok());
    let real = crate::session::Timeline::simulated(&config, "simulated").unwrap();
    let drawn = board.drawn(&config, &real.trace).unwrap();
    assert!((drawn.report.bubble_of_total - 3.0 / 11.0).abs() < 1e-9);
    // What is drawn is what is trained, but for uneven stages, sends and the step's end.
    let (ours, theirs) = (drawn.report.pipeline_s, real.report.pipeline_s);
    assert!((0.6..1.0).contains(&(ours / theirs)), "{ours} for {theirs}");
}

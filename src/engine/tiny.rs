//! A small model's training as PyTorch did it in 64 bits on one device, for tests of what trains in parallel.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};

use super::step::Outcome;
use crate::hardware::Precision;
use crate::mesh::Mesh;
use crate::model::Weights;
use crate::model::data::Batches;
use crate::plan::{Job, Load, ModelLoad, Plan, lower};
use crate::schedule::Schedule;
use crate::shape::{Methods, ModelShape, Optimizer};

pub(super) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/fixtures/gpt_tiny/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

pub(super) fn tensors(name: &str) -> BTreeMap<String, Tensor> {
    let tensors = candle_core::safetensors::load_buffer(&fixture(name), &Device::Cpu).unwrap();
    tensors.into_iter().collect()
}

pub(super) struct Tiny {
    pub(super) shape: ModelShape,
    pub(super) weights: Weights,
    pub(super) batches: Batches,
    pub(super) losses: Vec<f64>,
    pub(super) grad_norms: Vec<f64>,
    pub(super) gradients: BTreeMap<String, Tensor>,
    pub(super) final_weights: BTreeMap<String, Tensor>,
}

impl Tiny {
    pub(super) fn load() -> Self {
        let expected: serde_json::Value =
            serde_json::from_slice(&fixture("expected.json")).unwrap();
        let size = |key: &str| expected[key].as_u64().unwrap() as usize;
        let setting = |key: &str| expected["optimizer"][key].as_f64().unwrap();
        let list =
            |key: &str| -> Vec<f64> { serde_json::from_value(expected[key].clone()).unwrap() };
        let shape = ModelShape {
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
        };
        Self {
            weights: Weights::from_tensors(tensors("weights.safetensors")),
            batches: Batches::from_safetensors(
                &fixture("tokens.safetensors"),
                shape.seq,
                shape.vocab,
            )
            .unwrap(),
            losses: list("losses"),
            grad_norms: list("grad_norms"),
            gradients: tensors("step0_grads.safetensors"),
            final_weights: tensors("final_weights.safetensors"),
            shape,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) dp: usize,
    pub(super) tp: usize,
    pub(super) pp: usize,
    pub(super) m: usize,
    pub(super) overlap: bool,
    pub(super) methods: Methods,
    pub(super) layers: Option<&'static [usize]>,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            dp: 1,
            tp: 1,
            pp: 1,
            m: 1,
            overlap: true,
            methods: Methods::default(),
            layers: None,
        }
    }
}

impl Way {
    pub(super) fn of([dp, tp, pp, m]: [usize; 4]) -> Self {
        Self {
            dp,
            tp,
            pp,
            m,
            ..Self::default()
        }
    }
}

pub(super) fn plan(shape: &ModelShape, way: Way, schedule: &Schedule, size: usize) -> Arc<Plan> {
    let mesh = Mesh::new(way.dp, way.tp, way.pp).unwrap();
    let load = ModelLoad {
        shape,
        micro_batch_size: size,
        precision: Precision::F32,
        overlap: way.overlap,
        methods: way.methods,
        gpus_per_node: 4,
        layers_per_stage: way.layers,
    };
    Arc::new(
        lower(&Job {
            fold: None,
            mesh,
            schedule,
            load: Load::Model(load),
        })
        .unwrap(),
    )
}

pub(super) fn values(tensor: &Tensor) -> Vec<f64> {
    tensor
        .to_dtype(DType::F64)
        .unwrap()
        .flatten_all()
        .unwrap()
        .to_vec1()
        .unwrap()
}

pub(super) fn assert_close(
    name: &str,
    ours: &Tensor,
    theirs: &Tensor,
    relative: f64,
    absolute: f64,
) {
    assert_eq!(ours.dims(), theirs.dims(), "{name}");
    for (a, b) in values(ours).into_iter().zip(values(theirs)) {
        assert!(
            (a - b).abs() <= absolute + relative * b.abs(),
            "{name}: {a} instead of {b}"
        );
    }
}

/// A step of the fixture, against what it came to.
pub(super) fn compare(tiny: &Tiny, way: Way, step: usize, outcome: &Outcome) {
    if let Some(gradients) = &outcome.gradients {
        compare_gradients(tiny, gradients);
    }
    let (loss, norm) = (tiny.losses[step], tiny.grad_norms[step]);
    assert!(
        (outcome.loss - loss).abs() < 1e-5,
        "{way:?} step {step}: {} instead of {loss}",
        outcome.loss
    );
    assert!(
        (outcome.grad_norm / norm - 1.0).abs() < 1e-4,
        "{way:?} step {step}: {}",
        outcome.grad_norm
    );
}

impl Tiny {
    /// The weights after ten steps.
    pub(super) fn compare_weights(&self, weights: &Weights) {
        for (name, theirs) in &self.final_weights {
            let absolute = if name.ends_with("c_attn.bias") {
                2e-4
            } else {
                2e-5
            };
            assert_close(name, weights.get(name).unwrap(), theirs, 1e-3, absolute);
        }
    }
}

fn compare_gradients(tiny: &Tiny, gradients: &Weights) {
    let mut compared = 0;
    for (name, theirs) in tiny.gradients.iter().filter(|(name, _)| *name != "logits") {
        assert_close(name, gradients.get(name).unwrap(), theirs, 1e-4, 1e-6);
        compared += 1;
    }
    assert_eq!(compared, tiny.final_weights.len());
}

/// All mixes whose product is at most 16 and that divide the fixture's batch of 8 and 4 heads.
pub(super) fn mixes() -> impl Iterator<Item = (usize, usize, usize)> {
    let degrees = [1, 2, 4, 8];
    degrees
        .into_iter()
        .flat_map(move |dp| {
            let of_tp = [1, 2, 4].into_iter();
            of_tp.flat_map(move |tp| degrees.into_iter().map(move |pp| (dp, tp, pp)))
        })
        .filter(|(dp, tp, pp)| dp * tp * pp <= 16)
}

//! Whole, uncut weights under GPT-2's names.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};

use super::error::{ModelError, Result};
use super::rng::Rng;
use crate::shape::ModelShape;

/// What every name starts with.
const PREFIX: &str = "transformer";

/// Standard deviation of GPT-2's initial weights.
const DEVIATION: f64 = 0.02;

/// Tensors by name: all weights of a model, or all their gradients. Linear weights are `[in, out]`.
#[derive(Clone, Debug)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// GPT-2's initial weights: normal with deviation 0.02, on the way back into the residual stream
    /// divided by `sqrt(2 layers)`; norms one, biases zero. A seed gives the same weights in any layout.
    pub fn init(shape: &ModelShape, seed: u64) -> Result<Self> {
        let mut tensors = BTreeMap::new();
        for (stream, (name, dims)) in expected(shape).into_iter().enumerate() {
            let tensor = initial(&name, &dims, shape.layers, Rng::new(seed, stream as u64))?;
            tensors.insert(name, tensor);
        }
        Ok(Self(tensors))
    }

    /// From tensors by name; [`Weights::check`] tells whether they fit a model.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self(tensors.into_iter().collect())
    }

    /// From the bytes of a safetensors file, in float32, checked against the model's shape.
    ///
    /// GPT-2's published files also hold the causal mask (`attn.bias`), and an `lm_head.weight` that
    /// repeats the embedding of a tied model: both are passed over, and a missing prefix is added.
    pub fn from_safetensors(bytes: &[u8], shape: &ModelShape) -> Result<Self> {
        let tensors = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?;
        let mut kept = BTreeMap::new();
        for (name, tensor) in sorted(tensors) {
            let name = full_name(&name);
            let repeated = shape.tied && name == "lm_head.weight";
            if !repeated && !is_mask(&name) {
                kept.insert(name, tensor.to_dtype(DType::F32)?);
            }
        }
        let weights = Self(kept);
        weights.check(shape)?;
        Ok(weights)
    }

    /// From a safetensors file, as [`Weights::from_safetensors`].
    pub fn load(path: &Path, shape: &ModelShape) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| ModelError::File {
            path: path.display().to_string(),
            source,
        })?;
        Self::from_safetensors(&bytes, shape)
    }

    /// As a safetensors file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let tensors: HashMap<String, Tensor> = self.0.clone().into_iter().collect();
        Ok(candle_core::safetensors::save(&tensors, path)?)
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.0
            .get(name)
            .ok_or_else(|| ModelError::Missing(name.to_owned()))
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names and tensors, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Whether these are exactly the tensors of a model.
    pub fn check(&self, shape: &ModelShape) -> Result<()> {
        let expected: BTreeMap<String, Vec<usize>> = expected(shape).into_iter().collect();
        for (name, dims) in &expected {
            let found = self.get(name)?.dims();
            if found != dims {
                return Err(ModelError::Size {
                    name: name.clone(),
                    expected: dims.clone(),
                    found: found.to_vec(),
                });
            }
        }
        match self.0.keys().find(|name| !expected.contains_key(*name)) {
            Some(name) => Err(ModelError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }

    /// A hash of all bits, the same whatever layout the weights were trained in, if the bits are.
    pub fn hash(&self) -> Result<u64> {
        super::hash::tensors(self.0.values())
    }
}

/// The name of a layer's parameter: `h.3.mlp.c_fc.weight` with prefix.
pub(crate) fn layer_name(layer: usize, rest: &str) -> String {
    format!("{PREFIX}.h.{layer}.{rest}")
}

/// The name of a parameter outside the layers.
pub(crate) fn outer_name(rest: &str) -> String {
    format!("{PREFIX}.{rest}")
}

/// The head's own matrix, of an untied model.
pub(crate) const HEAD_NAME: &str = "lm_head.weight";

/// Every parameter of the model with its dimensions, in a fixed order.
fn expected(shape: &ModelShape) -> Vec<(String, Vec<usize>)> {
    let (h, f) = (shape.hidden, shape.ffn());
    let mut all = vec![
        (outer_name("wte.weight"), vec![shape.vocab, h]),
        (outer_name("wpe.weight"), vec![shape.seq, h]),
    ];
    for layer in 0..shape.layers {
        let parameters = [
            ("ln_1.weight", vec![h]),
            ("ln_1.bias", vec![h]),
            ("attn.c_attn.weight", vec![h, 3 * h]),
            ("attn.c_attn.bias", vec![3 * h]),
            ("attn.c_proj.weight", vec![h, h]),
            ("attn.c_proj.bias", vec![h]),
            ("ln_2.weight", vec![h]),
            ("ln_2.bias", vec![h]),
            ("mlp.c_fc.weight", vec![h, f]),
            ("mlp.c_fc.bias", vec![f]),
            ("mlp.c_proj.weight", vec![f, h]),
            ("mlp.c_proj.bias", vec![h]),
        ];
        all.extend(parameters.map(|(name, dims)| (layer_name(layer, name), dims)));
    }
    all.push((outer_name("ln_f.weight"), vec![h]));
    all.push((outer_name("ln_f.bias"), vec![h]));
    if !shape.tied {
        all.push((HEAD_NAME.to_owned(), vec![shape.vocab, h]));
    }
    all
}

fn initial(name: &str, dims: &[usize], layers: usize, mut rng: Rng) -> Result<Tensor> {
    let count = dims.iter().product();
    let is = |ending: &str| name.ends_with(ending);
    let values: Vec<f32> = if is("bias") {
        vec![0.0; count]
    } else if name.contains("ln_") {
        vec![1.0; count]
    } else {
        let back = is("c_proj.weight");
        let scale = if back {
            1.0 / (2.0 * layers as f64).sqrt()
        } else {
            1.0
        };
        let mut draw = || (DEVIATION * scale * rng.normal()) as f32;
        (0..count).map(|_| draw()).collect()
    };
    Ok(Tensor::from_vec(values, dims, &Device::Cpu)?)
}

fn sorted(tensors: HashMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    tensors.into_iter().collect()
}

fn full_name(name: &str) -> String {
    if name.starts_with(PREFIX) || name == HEAD_NAME {
        name.to_owned()
    } else {
        outer_name(name)
    }
}

fn is_mask(name: &str) -> bool {
    name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> ModelShape {
        let text = "name='x'\nlayers=2\nhidden=8\nheads=2\nvocab=11\nseq=4";
        ModelShape::from_toml(text).unwrap()
    }

    #[test]
    fn initial_weights_fit_their_model_and_have_its_parameters() {
        for tied in [true, false] {
            let shape = ModelShape { tied, ..small() };
            let weights = Weights::init(&shape, 1).unwrap();
            weights.check(&shape).unwrap();
            let count: usize = weights.iter().map(|(_, t)| t.elem_count()).sum();
            assert_eq!(count as u64, shape.params());
        }
    }

    #[test]
    fn a_seed_gives_the_same_weights_and_another_does_not() {
        let hash = |seed| Weights::init(&small(), seed).unwrap().hash().unwrap();
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let weights = Weights::init(&small(), 1).unwrap();
        let wide = ModelShape {
            vocab: 12,
            ..small()
        };
        let error = weights.check(&wide).unwrap_err().to_string();
        assert!(
            error.contains("transformer.wte.weight is [11, 8]"),
            "{error}"
        );
        let deep = ModelShape {
            layers: 3,
            ..small()
        };
        let error = weights.check(&deep).unwrap_err().to_string();
        assert!(error.contains("transformer.h.2."), "{error}");
        let flat = ModelShape {
            layers: 1,
            ..small()
        };
        assert!(matches!(
            weights.check(&flat),
            Err(ModelError::Unexpected(_))
        ));
    }
}

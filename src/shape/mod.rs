//! A model's dimensions, and what they cost: parameters, the pieces of a pass, operations, bytes.
//!
//! The transformer is GPT-2's: pre-norm, learned positions, tanh-gelu, tied head. Sizes are per
//! tensor-parallel rank; `t` is the tensor-parallel degree, `n` the tokens of a micro-batch.

mod hugging_face;
mod methods;
mod optimizer;
mod presets;
mod stage;
mod stash;
mod work;

pub use methods::{Attention, GradFormat, Methods, Recompute, Slices, Zero};
pub use optimizer::Optimizer;
pub use presets::PRESETS;
pub use stage::{Bucket, PassStep, Reduce, Segment, StageShape};
pub use work::{Product, Work};

use serde::{Deserialize, Serialize};

/// A model's dimensions, as in its TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShape {
    /// What it is called.
    pub name: String,
    /// Transformer blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Attention heads; each rank holds whole ones.
    pub heads: usize,
    /// Distinct tokens.
    pub vocab: usize,
    /// Tokens of a sequence.
    pub seq: usize,
    /// Key and value heads (grouped-query attention); as many as `heads` if absent. Costs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Width inside the feed-forward network; `4 * hidden` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ffn_hidden: Option<usize>,
    /// A third matrix gates the feed-forward network (Llama). Costs only.
    #[serde(default)]
    pub gated: bool,
    /// The head is the embedding, transposed.
    #[serde(default = "yes")]
    pub tied: bool,
    /// Rotary instead of learned positions. Costs only.
    #[serde(default)]
    pub rope: bool,
    /// How it is optimised.
    #[serde(default)]
    pub optimizer: Optimizer,
}

fn yes() -> bool {
    true
}

/// Why a model cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A dimension of zero.
    #[error("the model's {0} is 0, but it must be at least 1")]
    Zero(&'static str),
    /// A dimension past all bounds.
    #[error("the model's {0} is {1}, over the limit of {2}")]
    TooLarge(&'static str, u64, u64),
    /// A setting of the optimizer that it cannot compute with.
    #[error("the optimizer's {name} must be {legal}")]
    Optimizer {
        /// Which.
        name: &'static str,
        /// What it may be.
        legal: &'static str,
    },
    /// Heads of unequal width.
    #[error(
        "hidden {hidden} is not a multiple of {heads} heads; nearest hidden sizes that are: {below} and {above}"
    )]
    Heads {
        /// The width asked for.
        hidden: usize,
        /// The heads asked for.
        heads: usize,
        /// The next smaller legal width.
        below: usize,
        /// The next larger legal width.
        above: usize,
    },
    /// Grouped-query attention with unequal groups.
    #[error("heads {heads} is not a multiple of kv_heads {kv_heads}")]
    KvHeads {
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// The text is not a model.
    #[error("not a model file: {0}")]
    Toml(String),
    /// The text is not a Hugging Face configuration.
    #[error("not a Hugging Face config.json: {0}")]
    Json(String),
    /// No preset is called that.
    #[error(
        "no model preset is called {name:?}; there are {known}, or give a .toml file or a Hugging Face config.json"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

impl ModelShape {
    /// A preset by its name.
    pub fn preset(name: &str) -> Result<Self, ShapeError> {
        let text = PRESETS
            .iter()
            .find(|(preset, _)| *preset == name)
            .map(|(_, text)| *text);
        let known = || {
            PRESETS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        text.ok_or_else(|| ShapeError::Unknown {
            name: name.to_owned(),
            known: known(),
        })
        .and_then(Self::from_toml)
    }

    /// From the text of a model TOML, checked.
    pub fn from_toml(text: &str) -> Result<Self, ShapeError> {
        let shape: Self =
            toml::from_str(text).map_err(|error| ShapeError::Toml(error.to_string()))?;
        shape.check()?;
        Ok(shape)
    }

    /// Whether it can be.
    pub fn check(&self) -> Result<(), ShapeError> {
        const MOST: usize = 1 << 24;
        const MOST_PARAMS: u64 = 1 << 50;
        let dimensions = [
            ("hidden", self.hidden, MOST),
            ("heads", self.heads, MOST),
            ("vocab", self.vocab, MOST),
            ("seq", self.seq, MOST),
            ("ffn_hidden", self.ffn(), MOST),
            ("kv_heads", self.kv_heads(), MOST),
        ];
        if let Some((name, ..)) = dimensions.iter().find(|(_, value, _)| *value == 0) {
            return Err(ShapeError::Zero(name));
        }
        let layers = ("layers", self.layers, usize::from(u16::MAX));
        if let Some(&(name, value, most)) = dimensions
            .iter()
            .chain([&layers])
            .find(|(_, value, most)| value > most)
        {
            return Err(ShapeError::TooLarge(name, value as u64, most as u64));
        }
        let (hidden, heads, kv_heads) = (self.hidden, self.heads, self.kv_heads());
        if !hidden.is_multiple_of(heads) {
            let below = (hidden / heads * heads).max(heads);
            return Err(ShapeError::Heads {
                hidden,
                heads,
                below,
                above: (hidden / heads + 1) * heads,
            });
        }
        self.optimizer.check()?;
        // Each dimension may be large, but not all of them: what follows is counted in 64 bits.
        let widths = (hidden as f64 + self.ffn() as f64) * hidden as f64;
        let params = 4.0 * widths * self.layers as f64 + self.vocab as f64 * hidden as f64;
        if params > MOST_PARAMS as f64 {
            return Err(ShapeError::TooLarge(
                "number of parameters",
                params as u64,
                MOST_PARAMS,
            ));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(ShapeError::KvHeads { heads, kv_heads });
        }
        Ok(())
    }

    /// Key and value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Width inside the feed-forward network.
    pub fn ffn(&self) -> usize {
        self.ffn_hidden.unwrap_or(4 * self.hidden)
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }

    /// Rows of the embedding that each of `t` ranks holds, the last of them padded.
    pub fn vocab_rows(&self, t: usize) -> usize {
        self.vocab.div_ceil(t)
    }

    /// What this program cannot train (it can cost it), if anything.
    pub fn untrainable(&self) -> Option<&'static str> {
        if self.kv_heads() != self.heads {
            Some("grouped-query attention (kv_heads)")
        } else if self.gated {
            Some("a gated feed-forward network")
        } else if self.rope {
            Some("rotary positions")
        } else {
            None
        }
    }

    /// Width of queries, keys and values together, of one rank.
    pub(crate) fn qkv(&self, t: usize) -> usize {
        (self.hidden + 2 * self.kv_heads() * self.head_dim()) / t
    }

    /// Parameters of one layer on one of `t` ranks: matrices and their biases cut, norms and the
    /// row-parallel biases whole.
    pub fn layer_params(&self, t: usize) -> u64 {
        let (h, f, qkv) = (self.hidden, self.ffn() / t, self.qkv(t));
        let up = if self.gated { 2 } else { 1 };
        let attention = h * qkv + qkv + self.hidden / t * h + h;
        let mlp = up * (h * f + f) + f * h + h;
        (attention + mlp + 4 * h) as u64
    }

    /// Parameters of the token embedding on one of `t` ranks, padding included.
    pub fn embedding_params(&self, t: usize) -> u64 {
        (self.vocab_rows(t) * self.hidden) as u64
    }

    /// Parameters of a bucket on one of `t` ranks.
    ///
    /// `Embedding` is token and position embedding; `Head` the final norm, and the head's own
    /// matrix where it has one (untied, or a copy on a last stage apart from the first).
    pub fn bucket_params(&self, bucket: Bucket, t: usize, head_has_matrix: bool) -> u64 {
        match bucket {
            Bucket::Embedding => {
                let positions = if self.rope { 0 } else { self.seq * self.hidden };
                self.embedding_params(t) + positions as u64
            }
            Bucket::Layer(_) => self.layer_params(t),
            Bucket::Head => {
                2 * self.hidden as u64
                    + if head_has_matrix {
                        self.embedding_params(t)
                    } else {
                        0
                    }
            }
        }
    }

    /// Parameters of one of a stage's buckets, on one of `t` ranks.
    pub fn stage_bucket(&self, stage: &StageShape, bucket: Bucket, t: usize) -> u64 {
        self.bucket_params(bucket, t, stage.last && (!stage.first || !self.tied))
    }

    /// Parameters of a stage, on one of `t` ranks.
    pub fn stage_params(&self, stage: &StageShape, t: usize) -> u64 {
        let buckets = stage.buckets().into_iter();
        buckets
            .map(|bucket| self.stage_bucket(stage, bucket, t))
            .sum()
    }

    /// Parameters of the whole model, each once.
    pub fn params(&self) -> u64 {
        let layers = self.layers as u64 * self.layer_params(1);
        layers
            + self.bucket_params(Bucket::Embedding, 1, false)
            + self.bucket_params(Bucket::Head, 1, !self.tied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads() {
        for (name, text) in PRESETS {
            let shape = ModelShape::from_toml(text).unwrap();
            assert_eq!(shape.name, *name);
        }
    }

    #[test]
    fn gpt_parameters_follow_the_formula() {
        let shape = ModelShape::preset("gpt3-175b").unwrap();
        let (l, h) = (shape.layers as u64, shape.hidden as u64);
        let vs = (shape.vocab + shape.seq) as u64;
        assert_eq!(shape.params(), 12 * l * h * h + 13 * l * h + vs * h + 2 * h);
    }

    #[test]
    fn heads_must_divide_the_width() {
        let text = "name='x'\nlayers=1\nhidden=10\nheads=4\nvocab=8\nseq=4";
        let error = ModelShape::from_toml(text).unwrap_err();
        assert_eq!(
            error,
            ShapeError::Heads {
                hidden: 10,
                heads: 4,
                below: 8,
                above: 12
            }
        );
    }
}

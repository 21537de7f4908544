//! Cutting a rank's piece out of the whole weights.

use super::cut::{Cut, Slice};
use super::error::Result;
use super::param::{Gradient, Linear, Norm, Param};
use super::shard::{Embedding, Half, Head, Layer};
use super::weights::{HEAD_NAME, Weights, layer_name, outer_name};
use crate::shape::{ModelShape, StageShape};

/// Cuts parameters for one rank.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) full: &'a Weights,
    pub(crate) slice: Slice,
}

impl Builder<'_> {
    fn param(&self, name: String, cut: Cut) -> Result<Param> {
        Param::new(self.full, name, cut, self.slice)
    }

    fn norm(&self, name: &str) -> Result<Norm> {
        Ok(Norm {
            weight: self.param(format!("{name}.weight"), Cut::Whole)?,
            bias: self.param(format!("{name}.bias"), Cut::Whole)?,
        })
    }

    fn linear(&self, name: &str, weight: Cut, bias: Cut) -> Result<Linear> {
        Ok(Linear {
            weight: self.param(format!("{name}.weight"), weight)?,
            bias: self.param(format!("{name}.bias"), bias)?,
        })
    }

    /// A layer.
    pub(crate) fn layer(&self, layer: usize) -> Result<Layer> {
        let name = |rest| layer_name(layer, rest);
        Ok(Layer {
            attention: Half {
                norm: self.norm(&name("ln_1"))?,
                up: self.linear(&name("attn.c_attn"), Cut::QkvColumns, Cut::QkvColumns)?,
                down: self.linear(&name("attn.c_proj"), Cut::Rows, Cut::Whole)?,
            },
            mlp: Half {
                norm: self.norm(&name("ln_2"))?,
                up: self.linear(&name("mlp.c_fc"), Cut::Columns, Cut::Columns)?,
                down: self.linear(&name("mlp.c_proj"), Cut::Rows, Cut::Whole)?,
            },
        })
    }

    /// The first stage's embedding.
    pub(crate) fn embedding(&self) -> Result<Embedding> {
        Ok(Embedding {
            tokens: self.param(outer_name("wte.weight"), Cut::Vocabulary)?,
            positions: self.param(outer_name("wpe.weight"), Cut::Whole)?,
        })
    }

    /// The last stage's head: with the embedding's own matrix, a copy of it, or (untied) another.
    pub(crate) fn head(&self, shape: &ModelShape, stage: &StageShape) -> Result<Head> {
        let own = if !shape.tied {
            Some(self.param(HEAD_NAME.to_owned(), Cut::Vocabulary)?)
        } else if stage.first {
            None
        } else {
            let copy = self.param(outer_name("wte.weight"), Cut::Vocabulary)?;
            Some(copy.into_copy())
        };
        Ok(Head {
            norm: self.norm(&outer_name("ln_f"))?,
            own,
            shared: Gradient::default(),
        })
    }
}

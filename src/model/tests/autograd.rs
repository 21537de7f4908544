//! The hand-written gradients against candle's automatic ones.

use std::collections::BTreeMap;

use candle_core::{D, DType, Device, Result, Tensor, Var};

use super::driver::{Tolerance, assert_close, rough_weights, shape, tokens};
use crate::model::{Reference, gather_gradients};
use crate::shape::ModelShape;

/// A plain GPT-2 in candle's differentiable operations.
struct Plain {
    shape: ModelShape,
    vars: BTreeMap<String, Var>,
}

impl Plain {
    fn var(&self, name: &str) -> &Tensor {
        self.vars[name].as_tensor()
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let x = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = x.sqr()?.mean_keepdim(D::Minus1)?;
        let x = x.broadcast_div(&(variance + 1e-5)?.sqrt()?)?;
        x.broadcast_mul(self.var(&format!("{name}.weight")))?
            .broadcast_add(self.var(&format!("{name}.bias")))
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        x.broadcast_matmul(self.var(&format!("{name}.weight")))?
            .broadcast_add(self.var(&format!("{name}.bias")))
    }

    fn attention(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let (batch, seq, hidden) = x.dims3()?;
        let heads = self.shape.heads;
        let qkv = self.linear(x, &format!("{name}.c_attn"))?;
        let part = |i: usize| {
            qkv.narrow(2, i * hidden, hidden)?
                .reshape((batch, seq, heads, hidden / heads))?
                .transpose(1, 2)?
                .contiguous()
        };
        let (q, k, v) = (part(0)?, part(1)?, part(2)?);
        let scores = (q.matmul(&k.t()?)? / ((hidden / heads) as f64).sqrt())?;
        let mask: Vec<f32> = (0..seq * seq)
            .map(|at| if at % seq > at / seq { -1e9 } else { 0.0 })
            .collect();
        let mask = Tensor::from_vec(mask, (seq, seq), &Device::Cpu)?;
        let scores = scores.broadcast_add(&mask)?;
        let weights = scores
            .broadcast_sub(&scores.max_keepdim(D::Minus1)?)?
            .exp()?;
        let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
        let out = weights
            .matmul(&v)?
            .transpose(1, 2)?
            .reshape((batch, seq, hidden))?;
        self.linear(&out, &format!("{name}.c_proj"))
    }

    fn loss(&self, tokens: &Tensor) -> Result<Tensor> {
        let (batch, length) = tokens.dims2()?;
        let seq = length - 1;
        let (wte, wpe) = (
            self.var("transformer.wte.weight"),
            self.var("transformer.wpe.weight"),
        );
        let inputs = tokens.narrow(1, 0, seq)?.flatten_all()?;
        let x = wte
            .index_select(&inputs, 0)?
            .reshape((batch, seq, self.shape.hidden))?;
        let mut x = x.broadcast_add(wpe)?;
        for layer in 0..self.shape.layers {
            let name = format!("transformer.h.{layer}");
            let input = self.norm(&x, &format!("{name}.ln_1"))?;
            x = (&x + self.attention(&input, &format!("{name}.attn"))?)?;
            let input = self.norm(&x, &format!("{name}.ln_2"))?;
            let up = self.linear(&input, &format!("{name}.mlp.c_fc"))?.gelu()?;
            x = (&x + self.linear(&up, &format!("{name}.mlp.c_proj"))?)?;
        }
        let x = self.norm(&x, "transformer.ln_f")?;
        let logits = x.flatten_to(1)?.matmul(&wte.t()?)?;
        let targets = tokens.narrow(1, 1, seq)?.flatten_all()?.unsqueeze(1)?;
        let largest = logits.max_keepdim(1)?;
        let total = logits
            .broadcast_sub(&largest)?
            .exp()?
            .sum_keepdim(1)?
            .log()?;
        let target = logits.contiguous()?.gather(&targets, 1)?;
        ((total + largest)? - target)?.mean_all()
    }
}

#[test]
fn gradients_equal_those_of_autograd() {
    let shape = shape([2, 24, 3, 37, 20]);
    let weights = rough_weights(&shape, 11);
    let batch = tokens(&shape, 3, 2);
    let vars = weights
        .iter()
        .map(|(name, tensor)| (name.to_owned(), Var::from_tensor(tensor).unwrap()))
        .collect();
    let plain = Plain {
        shape: shape.clone(),
        vars,
    };
    let loss = plain.loss(&batch).unwrap();
    let grads = loss.backward().unwrap();

    let reference = Reference::new(&shape, &weights).unwrap();
    let found = reference.accumulate(&batch, 1).unwrap();
    let loss = loss
        .to_dtype(DType::F64)
        .unwrap()
        .to_scalar::<f64>()
        .unwrap();
    assert!((found - loss).abs() < 1e-5, "loss {found}, not {loss}");
    let found = gather_gradients(&shape, &[reference.shard()]).unwrap();
    for (name, var) in &plain.vars {
        let expected = grads.get(var.as_tensor()).unwrap();
        assert_close(
            name,
            found.get(name).unwrap(),
            expected,
            Tolerance(2e-4, 2e-6),
        );
    }
}

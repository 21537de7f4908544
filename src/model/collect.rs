//! Across ranks: sums of partial results and gradients in a fixed order, and whole tensors from pieces.

use std::collections::BTreeMap;

use candle_core::Tensor;

use super::cut::Cut;
use super::error::{ModelError, Result};
use super::kernels::rows;
use super::ops;
use super::param::Param;
use super::shard::Shard;
use super::weights::Weights;
use crate::shape::{ModelShape, Reduce};

/// What tensor-parallel ranks' parts come to, added (or compared) in the order given: the same bits for
/// all members, which share the one tensor.
pub fn reduce(kind: Reduce, parts: &[Tensor]) -> Result<Tensor> {
    match kind {
        Reduce::LogitMax => fold(parts, rows::max_assign),
        Reduce::Hidden | Reduce::TargetLogit | Reduce::ExpSum => fold(parts, rows::add_assign),
    }
}

/// The sum of data ranks' gradients of a bucket, in the order given.
pub fn sum_gradients(parts: &[Vec<Tensor>]) -> Result<Vec<Tensor>> {
    let count = parts.first().map_or(0, Vec::len);
    if parts.iter().any(|part| part.len() != count) {
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        let what = format!("buckets of {lengths:?} gradients");
        return Err(ModelError::Parts(what));
    }
    let of_one = |i: usize| -> Vec<Tensor> { parts.iter().map(|part| part[i].clone()).collect() };
    (0..count)
        .map(|i| fold(&of_one(i), rows::add_assign))
        .collect()
}

fn fold(parts: &[Tensor], add: impl Fn(&mut [f32], &[f32])) -> Result<Tensor> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(ModelError::Parts("there are none".to_owned()));
    };
    if let Some(other) = rest.iter().find(|part| part.dims() != first.dims()) {
        let what = format!("{:?} beside {:?}", other.dims(), first.dims());
        return Err(ModelError::Parts(what));
    }
    let sum = first.copy()?;
    for part in rest {
        let part = ops::floats(part)?;
        ops::change(&sum, |sum| add(sum, &part))?;
    }
    Ok(sum)
}

/// The whole weights, from all shards of one replica in any order.
pub fn gather(shape: &ModelShape, shards: &[&Shard]) -> Result<Weights> {
    gather_with(shape, shards, |param| Ok(param.value().clone()))
}

/// The whole gradients under the weights' names, from all shards of one replica in any order.
pub fn gather_gradients(shape: &ModelShape, shards: &[&Shard]) -> Result<Weights> {
    for shard in shards {
        shard.merge_shared()?;
    }
    gather_with(shape, shards, Param::known_gradient)
}

fn gather_with(
    shape: &ModelShape,
    shards: &[&Shard],
    what: impl Fn(&Param) -> Result<Tensor>,
) -> Result<Weights> {
    let mut ordered = shards.to_vec();
    ordered.sort_by_key(|shard| shard.place().tp_index);
    let mut pieces: BTreeMap<&str, (Cut, Vec<Tensor>)> = BTreeMap::new();
    for param in ordered.iter().flat_map(|shard| shard.all()) {
        if !param.is_copy() {
            let entry = pieces.entry(param.name());
            let (_, found) = entry.or_insert_with(|| (param.cut(), Vec::new()));
            found.push(what(param)?);
        }
    }
    let mut whole = Vec::new();
    for (name, (cut, pieces)) in pieces {
        whole.push((name.to_owned(), cut.join(&pieces, shape.vocab)?));
    }
    let weights = Weights::from_tensors(whole);
    weights.check(shape)?;
    Ok(weights)
}

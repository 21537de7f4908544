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

/// What tensor-parallel ranks' parts come to, one result a member. Sums are added (or compared) in the order
/// given: the same bits for all members, which share the one tensor.
pub fn reduce(kind: Reduce, parts: &[Tensor]) -> Result<Vec<Tensor>> {
    let to_all = |one: Tensor| vec![one; parts.len()];
    match kind {
        Reduce::LogitMax => Ok(to_all(fold(parts, rows::max_assign)?)),
        Reduce::Hidden | Reduce::TargetLogit | Reduce::ExpSum => {
            Ok(to_all(fold(parts, rows::add_assign)?))
        }
        Reduce::GatherHidden => Ok(to_all(Tensor::cat(parts, 0)?)),
        Reduce::ScatterHidden => {
            let sum = fold(parts, rows::add_assign)?;
            let share = sum.dim(0)? / parts.len();
            let of_member = |index: usize| Ok(sum.narrow(0, index * share, share)?);
            (0..parts.len()).map(of_member).collect()
        }
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

/// All replicas' shards of one place get what each has updated (`ZeRO`).
pub fn gather_shares(peers: &[&Shard]) -> Result<()> {
    let params: Vec<Vec<&Param>> = peers.iter().map(|shard| shard.all()).collect();
    for index in 0..params.first().map_or(0, Vec::len) {
        let peers: Vec<&Param> = params.iter().map(|of_shard| of_shard[index]).collect();
        let whole = Param::join_shares(&peers, |param| Ok(param.value().clone()))?;
        peers.iter().try_for_each(|param| param.write(&whole))?;
    }
    Ok(())
}

/// The first of all replicas' shards of one place gets the sums that each holds its share of (`ZeRO`).
pub fn gather_gradient_shares(peers: &[&Shard]) -> Result<()> {
    peers.iter().try_for_each(|shard| shard.merge_shared())?;
    let params: Vec<Vec<&Param>> = peers.iter().map(|shard| shard.all()).collect();
    for index in 0..params.first().map_or(0, Vec::len) {
        let peers: Vec<&Param> = params.iter().map(|of_shard| of_shard[index]).collect();
        let whole = Param::join_shares(&peers, Param::known_gradient)?;
        let dims = peers[0].value().dims();
        peers[0].set_gradient(Tensor::from_vec(whole, dims, peers[0].value().device())?)?;
    }
    Ok(())
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

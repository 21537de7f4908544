//! A hash of tensors' bits, to see whether replicas agree to the last one.

use candle_core::Tensor;

use super::error::Result;
use super::ops;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
const LANES: usize = 4;

/// FNV-1a over 32-bit words in four interleaved lanes.
pub(crate) fn tensors<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<u64> {
    let mut lanes = [OFFSET, OFFSET + 1, OFFSET + 2, OFFSET + 3];
    for tensor in tensors {
        let flat = tensor.contiguous()?;
        let values = ops::floats(&flat)?;
        for chunk in values.chunks(LANES) {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane = step(*lane, u64::from(value.to_bits()));
            }
        }
    }
    Ok(lanes.into_iter().fold(OFFSET, step))
}

fn step(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(PRIME)
}

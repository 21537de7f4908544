//! Tensors' memory, lent to collectives.

use candle_core::Tensor;

use crate::comm::Buffer;
use crate::model::{Result, memory};

/// Lends the tensors' memory: what a collective makes of it is in the tensors afterwards.
///
/// # Safety
/// Until the buffer is dropped, nobody else may read or write the tensors' elements, through whatever shares their
/// memory; and no two of them may share it.
#[expect(
    unsafe_code,
    reason = "gradients are summed where they lie; a copy there and back would cost more than the sum"
)]
pub(super) unsafe fn lend(tensors: Vec<Tensor>) -> Result<Buffer> {
    let parts = tensors.iter().map(memory).collect::<Result<Vec<_>>>()?;
    // SAFETY: the tensors keep their memory, and the caller promises that nobody else touches it.
    Ok(unsafe { Buffer::lent(parts, Box::new(tensors)) })
}

//! Tensors in, tensors out: where each piece of arithmetic meets its device.
//!
//! On the CPU that is one of [`super::kernels`]. Another device gets its branch here, as candle
//! operations, and nothing above changes.

use std::cell::Cell;
use std::ops::Deref;
use std::ptr::NonNull;

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Storage, StorageRef, Tensor};

use super::error::Result;
use super::kernels::attention::{self, Heads};
use super::kernels::loss::{self, Columns, Sums};
use super::kernels::matmul::{self, Matrix};
use super::kernels::{embedding, gelu, norm, rows};
use super::param::{Linear, Norm};

/// A contiguous CPU tensor's elements, readable as long as this lives.
pub(crate) struct Floats<'a> {
    storage: StorageRef<'a>,
    start: usize,
    end: usize,
}

impl Deref for Floats<'_> {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(data)) => &data[self.start..self.end],
            // `floats` lets no other in.
            Storage::Cpu(_) | Storage::Cuda(_) | Storage::Metal(_) => &[],
        }
    }
}

/// The elements of a tensor, row-major.
pub(crate) fn floats(tensor: &Tensor) -> Result<Floats<'_>> {
    let (storage, layout) = tensor.storage_and_layout();
    let (start, end) = span(layout)?;
    if !matches!(&*storage, Storage::Cpu(CpuStorage::F32(_))) {
        return Err(candle_core::Error::Msg("not float32 on the CPU".to_owned()).into());
    }
    Ok(Floats {
        storage,
        start,
        end,
    })
}

fn span(layout: &Layout) -> candle_core::Result<(usize, usize)> {
    layout.contiguous_offsets().ok_or_else(|| {
        candle_core::Error::Msg(format!("{:?} is not contiguous", layout.shape())).bt()
    })
}

/// Changes a tensor's elements in place; whoever shares its memory sees the change.
pub(crate) fn change(tensor: &Tensor, how: impl Fn(&mut [f32])) -> Result<()> {
    struct Change<F>(F);
    impl<F: Fn(&mut [f32])> InplaceOp1 for Change<F> {
        fn name(&self) -> &'static str {
            "change"
        }
        fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
            let (start, end) = span(layout)?;
            let CpuStorage::F32(data) = storage else {
                candle_core::bail!("not a float32 tensor");
            };
            (self.0)(&mut data[start..end]);
            Ok(())
        }
    }
    Ok(tensor.inplace_op1(&Change(how))?)
}

/// Where a tensor's elements lie, and how many: of a contiguous float32 tensor on the CPU, there for as long as it or
/// a clone of it lives.
pub fn memory(tensor: &Tensor) -> Result<(NonNull<f32>, usize)> {
    let place = Cell::new((NonNull::dangling(), 0));
    change(tensor, |elements| {
        if let Some(start) = NonNull::new(elements.as_mut_ptr()) {
            place.set((start, elements.len()));
        }
    })?;
    Ok(place.get())
}

/// A matrix `[n, width]` on the CPU.
pub(crate) fn matrix(data: Vec<f32>, width: usize) -> Result<Tensor> {
    let n = data.len() / width.max(1);
    Ok(Tensor::from_vec(data, (n, width), &Device::Cpu)?)
}

/// A vector on the CPU.
pub(crate) fn vector(data: Vec<f32>) -> Result<Tensor> {
    let count = data.len();
    Ok(Tensor::from_vec(data, count, &Device::Cpu)?)
}

/// Borrows a two-dimensional tensor's elements as a matrix.
fn view<'a>(data: &'a Floats<'_>, tensor: &Tensor) -> Result<Matrix<'a>> {
    let (rows, columns) = tensor.dims2()?;
    Ok(Matrix::new(data, rows, columns))
}

/// `x * weight`: `[n, in]` by `[in, out]`.
pub fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (a, b) = (floats(x)?, floats(weight)?);
    matrix(
        matmul::product(view(&a, x)?, view(&b, weight)?),
        weight.dim(1)?,
    )
}

/// `x * weight^T`: `[n, out]` by `[in, out]`.
pub(crate) fn product_transposed(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (a, b) = (floats(x)?, floats(weight)?);
    let data = matmul::product(view(&a, x)?, view(&b, weight)?.transposed());
    matrix(data, weight.dim(0)?)
}

/// `a^T * b`, the gradient of a weight: `[n, in]` and `[n, out]` make `[in, out]`.
pub(crate) fn weight_gradient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (left, right) = (floats(a)?, floats(b)?);
    let data = matmul::product(view(&left, a)?.transposed(), view(&right, b)?);
    matrix(data, b.dim(1)?)
}

/// `sum += a^T * b`, in place.
pub(crate) fn add_weight_gradient(sum: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    let (left, right) = (floats(a)?, floats(b)?);
    let (left, right) = (view(&left, a)?.transposed(), view(&right, b)?);
    change(sum, |sum| matmul::add_product(sum, left, right))
}

/// `to = a^T * b`, in place.
pub(crate) fn write_weight_gradient(to: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    let (left, right) = (floats(a)?, floats(b)?);
    let (left, right) = (view(&left, a)?.transposed(), view(&right, b)?);
    let width = b.dim(1)?;
    change(to, |to| matmul::write_product(to, width, 1.0, left, right))
}

/// `x * weight + bias`.
pub(crate) fn linear(x: &Tensor, by: &Linear) -> Result<Tensor> {
    let weight = by.weight.value();
    let (a, b, bias) = (floats(x)?, floats(weight)?, floats(by.bias.value())?);
    let mut sum = rows::repeat(&bias, x.dim(0)?);
    matmul::add_product(&mut sum, view(&a, x)?, view(&b, weight)?);
    matrix(sum, weight.dim(1)?)
}

/// `base + x * weight + bias`: a linear layer back into the residual stream.
pub(crate) fn linear_onto(base: &Tensor, x: &Tensor, by: &Linear) -> Result<Tensor> {
    let weight = by.weight.value();
    let (a, b, bias) = (floats(x)?, floats(weight)?, floats(by.bias.value())?);
    let mut sum = rows::add_row(&floats(base)?, &bias);
    matmul::add_product(&mut sum, view(&a, x)?, view(&b, weight)?);
    matrix(sum, weight.dim(1)?)
}

/// `gelu(x * weight + bias)` and gelu's slope there.
pub(crate) fn linear_gelu(x: &Tensor, by: &Linear) -> Result<(Tensor, Tensor)> {
    let weight = by.weight.value();
    let (a, b, bias) = (floats(x)?, floats(weight)?, floats(by.bias.value())?);
    let mut sum = matmul::product(view(&a, x)?, view(&b, weight)?);
    let slope = gelu::forward(&mut sum, &bias);
    Ok((matrix(sum, bias.len())?, matrix(slope, bias.len())?))
}

/// The gradient before gelu: `(grad * weight^T) * slope`.
pub(crate) fn gelu_backward(grad: &Tensor, weight: &Tensor, slope: &Tensor) -> Result<Tensor> {
    let (a, b) = (floats(grad)?, floats(weight)?);
    let mut data = matmul::product(view(&a, grad)?, view(&b, weight)?.transposed());
    rows::multiply_assign(&mut data, &floats(slope)?);
    matrix(data, weight.dim(0)?)
}

/// `base + x + row` for each row.
pub(crate) fn add_with_row(base: &Tensor, x: &Tensor, row: &Tensor) -> Result<Tensor> {
    let row = floats(row)?;
    matrix(rows::add_rows(&floats(base)?, &floats(x)?, &row), row.len())
}

/// The sum of a matrix' rows.
pub(crate) fn column_sums(x: &Tensor) -> Result<Tensor> {
    vector(rows::column_sums(&floats(x)?, x.dim(1)?))
}

/// `sum += x`, in place.
pub(crate) fn add_assign(sum: &Tensor, x: &Tensor) -> Result<()> {
    let x = floats(x)?;
    change(sum, |sum| rows::add_assign(sum, &x))
}

/// What a layer norm's backward pass needs of its forward pass.
#[derive(Clone, Debug)]
pub(crate) struct NormStash {
    /// Normalised input, `[n, hidden]`.
    pub(crate) normalised: Tensor,
    /// Reciprocal deviations, `[n]`.
    pub(crate) scale: Tensor,
}

/// Layer norm: its output, and what its backward pass needs.
pub(crate) fn layer_norm(x: &Tensor, by: &Norm) -> Result<(Tensor, NormStash)> {
    let (weight, bias) = (floats(by.weight.value())?, floats(by.bias.value())?);
    let normed = norm::forward(&floats(x)?, &weight, &bias);
    let stash = NormStash {
        normalised: matrix(normed.normalised, weight.len())?,
        scale: vector(normed.scale)?,
    };
    Ok((matrix(normed.output, weight.len())?, stash))
}

/// The layer norm's output once more.
pub(crate) fn norm_output(stash: &NormStash, by: &Norm) -> Result<Tensor> {
    let (weight, bias) = (floats(by.weight.value())?, floats(by.bias.value())?);
    let output = norm::affine(&floats(&stash.normalised)?, &weight, &bias);
    matrix(output, weight.len())
}

/// Adds to the norm's gradients and returns its input's, the residual's added.
pub(crate) fn norm_backward(
    grad: &Tensor,
    stash: &NormStash,
    by: &Norm,
    residual: Option<&Tensor>,
) -> Result<Tensor> {
    let (normalised, scale) = (floats(&stash.normalised)?, floats(&stash.scale)?);
    let weight = floats(by.weight.value())?;
    let kept = norm::Kept {
        normalised: &normalised,
        scale: &scale,
        weight: &weight,
    };
    let residual = residual.map(floats).transpose()?;
    let grads = norm::backward(&floats(grad)?, kept, residual.as_deref());
    by.weight.gradient().add(vector(grads.weight)?)?;
    by.bias.gradient().add(vector(grads.bias)?)?;
    matrix(grads.input, weight.len())
}

/// Causal attention: probabilities and output.
pub(crate) fn attention(qkv: &Tensor, heads: &Heads) -> Result<(Tensor, Tensor)> {
    let (probabilities, output) = attention::forward(&floats(qkv)?, heads);
    let width = heads.count * heads.dim;
    Ok((matrix(probabilities, heads.seq)?, matrix(output, width)?))
}

/// The gradient of queries, keys and values.
pub(crate) fn attention_backward(
    grad: &Tensor,
    qkv: &Tensor,
    probabilities: &Tensor,
    heads: &Heads,
) -> Result<Tensor> {
    let data = attention::backward(
        &floats(grad)?,
        &floats(qkv)?,
        &floats(probabilities)?,
        heads,
    );
    matrix(data, qkv.dim(1)?)
}

/// The largest logit of each row.
pub(crate) fn largest_logits(logits: &Tensor, columns: &Columns) -> Result<Tensor> {
    vector(loss::largest(&floats(logits)?, columns))
}

/// Turns logits into exponentials, in place; the targets' logits and the sums.
pub(crate) fn exponentials(
    logits: &Tensor,
    columns: &Columns,
    targets: &[u32],
    largest: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let largest = floats(largest)?;
    let result = Cell::new((Vec::new(), Vec::new()));
    change(logits, |logits| {
        result.set(loss::exponentials(logits, columns, targets, &largest));
    })?;
    let (target, total) = result.into_inner();
    Ok((vector(target)?, vector(total)?))
}

/// Turns exponentials into the logits' gradient, in place; the sum of the losses.
pub(crate) fn finish_loss(
    exponentials: &Tensor,
    columns: &Columns,
    targets: &[u32],
    (target, total): (&Tensor, &Tensor),
    scale: f32,
) -> Result<f64> {
    let (target, total) = (floats(target)?, floats(total)?);
    let sums = Sums {
        target: &target,
        exponentials: &total,
    };
    let result = Cell::new(0.0);
    change(exponentials, |data| {
        result.set(loss::finish(data, columns, targets, sums, scale));
    })?;
    Ok(result.get())
}

/// Rows of a slice of the embedding, zero for tokens it lacks.
pub(crate) fn embed(table: &Tensor, columns: &Columns, tokens: &[u32]) -> Result<Tensor> {
    let width = table.dim(1)?;
    matrix(
        embedding::gather(&floats(table)?, width, &columns.tokens, tokens),
        width,
    )
}

/// Adds position embeddings to the rows of `x`, in place; so many rows of the batch come before.
pub(crate) fn add_positions_from(
    x: &Tensor,
    table: &Tensor,
    seq: usize,
    first: usize,
) -> Result<()> {
    let width = table.dim(1)?;
    let table = floats(table)?;
    change(x, |x| {
        embedding::add_positions_from(x, &table, (width, seq), first);
    })
}

/// Adds position embeddings to each sequence of `x`, in place.
pub(crate) fn add_positions(x: &Tensor, table: &Tensor, seq: usize) -> Result<()> {
    let length = seq * table.dim(1)?;
    let table = floats(table)?;
    change(x, |x| embedding::add_positions(x, &table, length))
}

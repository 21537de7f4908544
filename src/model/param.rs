//! One parameter's piece on one rank: value, gradient, moments.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_core::Tensor;

use super::cut::{Cut, Slice, zeros};
use super::error::{ModelError, Result};
use super::kernels::adamw::{self, Coefficients};
use super::kernels::rows;
use super::ops;
use super::weights::Weights;

/// A gradient summed over micro-batches; empty until the first arrives, which is taken as it is.
#[derive(Debug, Default)]
pub(crate) struct Gradient(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    sum: Option<Tensor>,
    /// Whether anyone else may hold the sum's memory.
    lent: bool,
    /// Memory of a sum that is used up, to be written over by the next: fresh memory costs page faults.
    spare: Option<Tensor>,
}

impl Gradient {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        // A tensor is replaced or added to whole: there is no broken state to fear.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a micro-batch's gradient, which must be shared with nobody.
    pub(crate) fn add(&self, more: Tensor) -> Result<()> {
        let mut slot = self.lock();
        if let Some(sum) = &slot.sum {
            return ops::add_assign(sum, &more);
        }
        slot.sum = Some(more);
        Ok(())
    }

    /// Adds `a^T * b`.
    pub(crate) fn add_product(&self, a: &Tensor, b: &Tensor) -> Result<()> {
        let mut slot = self.lock();
        if let Some(sum) = &slot.sum {
            return ops::add_weight_gradient(sum, a, b);
        }
        let sum = if let Some(spare) = slot.spare.take() {
            ops::write_weight_gradient(&spare, a, b)?;
            spare
        } else {
            ops::weight_gradient(a, b)?
        };
        slot.sum = Some(sum);
        Ok(())
    }

    /// Changes the sum in place, from zeros of `dims` if it is empty.
    pub(crate) fn change(&self, dims: &[usize], how: impl Fn(&mut [f32])) -> Result<()> {
        let mut slot = self.lock();
        if slot.sum.is_none() {
            slot.sum = Some(zeros(dims)?);
        }
        slot.sum
            .as_ref()
            .map_or(Ok(()), |sum| ops::change(sum, how))
    }

    /// The sum, leaving nothing.
    pub(crate) fn take(&self) -> Option<Tensor> {
        let mut slot = self.lock();
        slot.lent = false;
        slot.sum.take()
    }

    /// The sum, sharing its memory, to be read or changed at once and not kept.
    fn look(&self) -> Option<Tensor> {
        self.lock().sum.clone()
    }

    /// The sum, sharing its memory, to be kept by others.
    fn lend(&self) -> Option<Tensor> {
        let mut slot = self.lock();
        slot.lent = true;
        slot.sum.clone()
    }

    /// Replaces the sum by one whose memory others may hold.
    fn set(&self, sum: Tensor) {
        let mut slot = self.lock();
        slot.lent = true;
        slot.sum = Some(sum);
    }

    /// Forgets the sum, and keeps its memory if nobody else does.
    fn use_up(&self) {
        let mut slot = self.lock();
        let sum = slot.sum.take();
        if !slot.lent {
            slot.spare = sum;
        }
        slot.lent = false;
    }
}

/// A parameter's piece.
#[derive(Debug)]
pub(crate) struct Param {
    name: String,
    cut: Cut,
    value: Tensor,
    /// The elements that this replica updates: all, or a share (`ZeRO`).
    owned: Range<usize>,
    /// Mean and mean square of the gradients, `[2, owned]`.
    moments: Tensor,
    gradient: Gradient,
    /// How many leading elements this rank counts in the global gradient norm.
    counted: usize,
    /// Whether it repeats another stage's parameter.
    copy: bool,
}

impl Param {
    /// The piece that a rank holds of a whole parameter.
    pub(crate) fn new(full: &Weights, name: String, cut: Cut, slice: Slice) -> Result<Self> {
        let whole = full.get(&name)?;
        let value = cut.piece(whole, slice)?;
        let counted = match cut {
            Cut::Whole if slice.index > 0 => 0,
            // The last ranks' rows of padding belong to no parameter of the model.
            Cut::Vocabulary => {
                let rows = value.dim(0)?;
                let real = whole.dim(0)?.saturating_sub(slice.index * rows).min(rows);
                real * value.dim(1)?
            }
            Cut::Whole | Cut::Rows | Cut::Columns | Cut::QkvColumns => value.elem_count(),
        };
        Ok(Self {
            name,
            cut,
            owned: 0..value.elem_count(),
            moments: zeros(&[2, value.elem_count()])?,
            value,
            gradient: Gradient::default(),
            counted,
            copy: false,
        })
    }

    /// Leaves all but a share of its elements to other replicas.
    pub(crate) fn own_share(&mut self, index: usize, of: usize) -> Result<()> {
        let count = self.value.elem_count();
        self.owned = count * index / of..count * (index + 1) / of;
        self.moments = zeros(&[2, self.owned.len()])?;
        Ok(())
    }

    /// How many elements this replica updates.
    pub(crate) fn owned(&self) -> usize {
        self.owned.len()
    }

    /// Replaces its share of the gradient.
    pub(crate) fn set_gradient_share(&self, sum: &Tensor) -> Result<()> {
        let mine = self.known_gradient()?.copy()?;
        let sum = ops::floats(sum)?;
        let owned = self.owned.clone();
        ops::change(&mine, |mine| {
            mine[owned.clone()].copy_from_slice(&sum[owned.clone()]);
        })?;
        self.set_gradient(mine)
    }

    /// Puts together what each replica's parameter has updated or holds the sum of.
    pub(crate) fn join_shares(
        peers: &[&Self],
        of: impl Fn(&Self) -> Result<Tensor>,
    ) -> Result<Vec<f32>> {
        let mut whole = Vec::new();
        for peer in peers {
            let part = of(peer)?;
            whole.extend_from_slice(&ops::floats(&part)?[peer.owned.clone()]);
        }
        Ok(whole)
    }

    /// Writes over its elements.
    pub(crate) fn write(&self, whole: &[f32]) -> Result<()> {
        ops::change(&self.value, |value| value.copy_from_slice(whole))
    }

    /// Marks it as repeating another stage's parameter: it counts in no norm and is not gathered.
    pub(crate) fn into_copy(self) -> Self {
        Self {
            copy: true,
            counted: 0,
            ..self
        }
    }

    /// Its name in a GPT-2 checkpoint.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How it is cut.
    pub(crate) fn cut(&self) -> Cut {
        self.cut
    }

    /// Its elements on this rank.
    pub(crate) fn value(&self) -> &Tensor {
        &self.value
    }

    /// Its gradient.
    pub(crate) fn gradient(&self) -> &Gradient {
        &self.gradient
    }

    /// Whether it repeats another stage's parameter.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy
    }

    /// Its gradient to be kept by others, or an error that names it.
    pub(crate) fn known_gradient(&self) -> Result<Tensor> {
        self.gradient.lend().ok_or_else(|| self.no_gradient())
    }

    /// Its gradient, for a collective to change in place: unlike [`Param::known_gradient`], its memory is not kept
    /// by others afterwards.
    pub(crate) fn gradient_in_place(&self) -> Result<Tensor> {
        self.gradient.look().ok_or_else(|| self.no_gradient())
    }

    fn no_gradient(&self) -> ModelError {
        ModelError::NoGradient(self.name.clone())
    }

    /// Replaces the gradient by one of the same size.
    pub(crate) fn set_gradient(&self, gradient: Tensor) -> Result<()> {
        if gradient.dims() != self.value.dims() {
            return Err(ModelError::Size {
                name: self.name.clone(),
                expected: self.value.dims().to_vec(),
                found: gradient.dims().to_vec(),
            });
        }
        self.gradient.set(gradient);
        Ok(())
    }

    /// This rank's share of the squared global norm.
    pub(crate) fn square_norm(&self) -> Result<f64> {
        if self.counted == 0 {
            return Ok(0.0);
        }
        let gradient = self.gradient_in_place()?;
        let gradient = ops::floats(&gradient)?;
        let end = self.owned.end.min(self.counted);
        let start = self.owned.start.min(end);
        Ok(rows::square_sum(&gradient[start..end]))
    }

    /// One `AdamW` step; the gradient is used up.
    pub(crate) fn optimize(&self, with: &Coefficients) -> Result<()> {
        let gradient = self.gradient_in_place()?;
        let grad = ops::floats(&gradient)?;
        if !self.owned.is_empty() {
            let grad = &grad[self.owned.clone()];
            ops::change(&self.moments, |moments| {
                adamw::update_moments(moments, grad, with);
            })?;
            let moments = ops::floats(&self.moments)?;
            ops::change(&self.value, |value| {
                adamw::update_parameter(&mut value[self.owned.clone()], &moments, with);
            })?;
        }
        self.gradient.use_up();
        Ok(())
    }
}

/// A layer norm's parameters.
#[derive(Debug)]
pub(crate) struct Norm {
    /// `[hidden]`.
    pub(crate) weight: Param,
    /// `[hidden]`.
    pub(crate) bias: Param,
}

/// A linear layer's parameters.
#[derive(Debug)]
pub(crate) struct Linear {
    /// `[in, out]`.
    pub(crate) weight: Param,
    /// `[out]`.
    pub(crate) bias: Param,
}

impl Linear {
    /// Adds the gradients of `y = x * weight + bias` from `x` and `y`'s gradient.
    pub(crate) fn add_gradients(&self, x: &Tensor, grad: &Tensor) -> Result<()> {
        self.weight.gradient.add_product(x, grad)?;
        self.bias.gradient.add(ops::column_sums(grad)?)
    }
}

//! How tensor parallelism cuts each parameter, and how the pieces go together again.

use candle_core::{DType, Device, Tensor};

use super::error::{ModelError, Result};
use crate::shape::ModelShape;

/// How a parameter is spread over tensor-parallel ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Every rank holds all of it.
    Whole,
    /// Input rows of a row-parallel matrix `[in, out]`.
    Rows,
    /// Output columns of a column-parallel matrix, or its bias.
    Columns,
    /// As `Columns`, in each of the three parts q, k and v by itself: whole heads a rank.
    QkvColumns,
    /// Rows of the embedding, the last rank's padded with zeros.
    Vocabulary,
}

/// One of `tp` ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Which.
    pub(crate) index: usize,
    /// Of how many.
    pub(crate) tp: usize,
}

impl Cut {
    /// A rank's piece of a whole parameter, in memory of its own.
    pub(crate) fn piece(self, whole: &Tensor, slice: Slice) -> Result<Tensor> {
        let Slice { index, tp } = slice;
        let share = |of: &Tensor, dim: usize| -> Result<Tensor> {
            let size = of.dim(dim)? / tp;
            Ok(of.narrow(dim, index * size, size)?)
        };
        let last = whole.rank() - 1;
        let piece = match self {
            Self::Whole => whole.clone(),
            Self::Rows => share(whole, 0)?,
            Self::Columns => share(whole, last)?,
            Self::QkvColumns => {
                let parts = whole.chunk(3, last)?;
                let pieces: Vec<Tensor> = parts
                    .iter()
                    .map(|part| share(part, last))
                    .collect::<Result<_>>()?;
                Tensor::cat(&pieces, last)?
            }
            Self::Vocabulary => {
                let rows = whole.dim(0)?.div_ceil(tp);
                let padded = whole.pad_with_zeros(0, 0, rows * tp - whole.dim(0)?)?;
                padded.narrow(0, index * rows, rows)?
            }
        };
        Ok(piece.contiguous()?.copy()?)
    }

    /// The whole parameter from the pieces of all ranks, in memory of its own; `vocab` rows of an embedding.
    pub(crate) fn join(self, pieces: &[Tensor], vocab: usize) -> Result<Tensor> {
        let first = pieces
            .first()
            .ok_or_else(|| ModelError::Parts("there are none".to_owned()))?;
        let last = first.rank() - 1;
        let whole = match self {
            Self::Whole => first.clone(),
            Self::Rows => Tensor::cat(pieces, 0)?,
            Self::Columns => Tensor::cat(pieces, last)?,
            Self::QkvColumns => {
                let parts: Vec<Vec<Tensor>> = pieces
                    .iter()
                    .map(|piece| piece.chunk(3, last))
                    .collect::<candle_core::Result<_>>()?;
                let of = |part: usize| parts.iter().map(move |of_rank| &of_rank[part]);
                let ordered: Vec<&Tensor> = (0..3).flat_map(of).collect();
                Tensor::cat(&ordered, last)?
            }
            Self::Vocabulary => Tensor::cat(pieces, 0)?.narrow(0, 0, vocab)?,
        };
        Ok(whole.contiguous()?.copy()?)
    }
}

/// Whether the model can be cut into `tp` equal parts, and trained at all.
pub(crate) fn check(shape: &ModelShape, tp: usize) -> Result<()> {
    if let Some(what) = shape.untrainable() {
        return Err(ModelError::Untrainable {
            name: shape.name.clone(),
            what,
        });
    }
    for (what, size) in [("heads", shape.heads), ("ffn_hidden", shape.ffn())] {
        if tp == 0 || !size.is_multiple_of(tp) {
            return Err(ModelError::Indivisible { what, size, tp });
        }
    }
    Ok(())
}

/// Zeros of a shape.
pub(crate) fn zeros(dims: &[usize]) -> Result<Tensor> {
    Ok(Tensor::zeros(dims, DType::F32, &Device::Cpu)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(dims: &[usize]) -> Tensor {
        let count: usize = dims.iter().product();
        let data: Vec<f32> = (0..count).map(|i| i as f32).collect();
        Tensor::from_vec(data, dims, &Device::Cpu).unwrap()
    }

    fn values(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn pieces_join_to_the_whole() {
        let whole = counted(&[12, 12]);
        for cut in [
            Cut::Whole,
            Cut::Rows,
            Cut::Columns,
            Cut::QkvColumns,
            Cut::Vocabulary,
        ] {
            for tp in [1, 2, 4] {
                let piece = |index| cut.piece(&whole, Slice { index, tp }).unwrap();
                let pieces: Vec<Tensor> = (0..tp).map(piece).collect();
                let joined = cut.join(&pieces, 12).unwrap();
                assert_eq!(values(&joined), values(&whole), "{cut:?} by {tp}");
            }
        }
    }

    #[test]
    fn case_7_queries_keys_and_values_are_cut_apart() {
        let bias = counted(&[12]);
        let piece = Cut::QkvColumns.piece(&bias, Slice { index: 1, tp: 2 });
        assert_eq!(values(&piece.unwrap()), [2.0, 3.0, 6.0, 7.0, 10.0, 11.0]);
    }

    #[test]
    fn vocabulary_is_padded_with_zeros() {
        let table = counted(&[5, 1]);
        let piece = |index| {
            values(
                &Cut::Vocabulary
                    .piece(&table, Slice { index, tp: 3 })
                    .unwrap(),
            )
        };
        assert_eq!(
            [piece(0), piece(1), piece(2)],
            [[0.0, 1.0], [2.0, 3.0], [4.0, 0.0]]
        );
    }
}

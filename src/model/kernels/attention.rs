//! Causal self-attention of whole heads: `softmax(q k^T / sqrt(dim)) v`, each position seeing itself
//! and those before it.

use super::matmul::{Matrix, push_product, write_product};
use super::simd::{LANES, dot, exp, kernel, max, sum};

/// The dimensions of a rank's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Sequences.
    pub(crate) batch: usize,
    /// Positions of each.
    pub(crate) seq: usize,
    /// Heads of this rank.
    pub(crate) count: usize,
    /// Width of one.
    pub(crate) dim: usize,
}

impl Heads {
    /// Width of the rank's heads together.
    fn width(&self) -> usize {
        self.count * self.dim
    }

    /// Where a head's first element is in rows of `width`: `(sequence, head)` in the order of the
    /// probabilities' blocks.
    fn offsets(self, width: usize) -> impl Iterator<Item = usize> {
        let Self {
            batch,
            seq,
            count,
            dim,
        } = self;
        (0..batch).flat_map(move |b| (0..count).map(move |head| b * seq * width + head * dim))
    }

    fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
}

/// Queries, keys and values of one head, as windows into rows of `[q | k | v]`.
struct Head<'a> {
    query: Matrix<'a>,
    key: Matrix<'a>,
    value: Matrix<'a>,
}

impl<'a> Head<'a> {
    fn of(qkv: &'a [f32], at: usize, heads: &Heads) -> Self {
        let width = heads.width();
        let part =
            |i: usize| Matrix::strided(&qkv[at + i * width..], heads.seq, heads.dim, 3 * width);
        Self {
            query: part(0),
            key: part(1),
            value: part(2),
        }
    }
}

/// Forward of `qkv` `[batch * seq, 3 * width]`: probabilities `[batch, heads, seq, seq]` and the heads'
/// output `[batch * seq, width]`.
pub(crate) fn forward(qkv: &[f32], heads: &Heads) -> (Vec<f32>, Vec<f32>) {
    let (seq, width) = (heads.seq, heads.width());
    let mut probabilities = Vec::with_capacity(heads.batch * heads.count * seq * seq);
    let mut output = vec![0.0; heads.batch * seq * width];
    for (at, out_at) in heads.offsets(3 * width).zip(heads.offsets(width)) {
        let head = Head::of(qkv, at, heads);
        let start = probabilities.len();
        let scale = heads.scale();
        push_product(&mut probabilities, scale, head.query, head.key.transposed());
        let block = &mut probabilities[start..];
        causal_softmax(block, seq);
        let weights = Matrix::new(block, seq, seq);
        write_product(&mut output[out_at..], width, 1.0, weights, head.value);
    }
    (probabilities, output)
}

kernel! {
    /// Softmax of each row over its first elements up to the diagonal, zero after.
    fn causal_softmax(block: &mut [f32], seq: usize) {
        for (i, row) in block.chunks_exact_mut(seq).enumerate() {
            // Whole groups of lanes: a few exponentials too many cost less than single ones.
            let (row, after) = row.split_at_mut((i + 1).next_multiple_of(LANES).min(seq));
            let largest = max(&row[..=i]);
            for x in &mut *row {
                *x = exp::<FUSED>(*x - largest);
            }
            row[i + 1..].fill(0.0);
            after.fill(0.0);
            let share = 1.0 / sum(row, |x| x);
            for x in &mut *row {
                *x *= share;
            }
        }
    }
}

/// Backward: the gradient of `qkv`, from that of the output `[batch * seq, width]`.
pub(crate) fn backward(
    grad: &[f32],
    qkv: &[f32],
    probabilities: &[f32],
    heads: &Heads,
) -> Vec<f32> {
    let (seq, dim, width) = (heads.seq, heads.dim, heads.width());
    let row = 3 * width;
    let mut result = vec![0.0; qkv.len()];
    let mut scores = vec![0.0; seq * seq];
    let places = heads.offsets(row).zip(heads.offsets(width));
    for (block, (at, out_at)) in probabilities.chunks_exact(seq * seq).zip(places) {
        let head = Head::of(qkv, at, heads);
        let grad = Matrix::strided(&grad[out_at..], seq, dim, width);
        write_product(&mut scores, seq, 1.0, grad, head.value.transposed());
        softmax_backward(&mut scores, block, seq, heads.scale());
        let weights = Matrix::new(block, seq, seq);
        let scores = Matrix::new(&scores, seq, seq);
        write_product(&mut result[at..], row, 1.0, scores, head.key);
        write_product(
            &mut result[at + width..],
            row,
            1.0,
            scores.transposed(),
            head.query,
        );
        write_product(
            &mut result[at + 2 * width..],
            row,
            1.0,
            weights.transposed(),
            grad,
        );
    }
    result
}

kernel! {
    /// Turns the probabilities' gradients into the scores', times `scale`.
    fn softmax_backward(grads: &mut [f32], probabilities: &[f32], seq: usize, scale: f32) {
        let rows = probabilities.chunks_exact(seq);
        for (i, (grads, weights)) in grads.chunks_exact_mut(seq).zip(rows).enumerate() {
            let (grads, after) = grads.split_at_mut((i + 1).next_multiple_of(LANES).min(seq));
            after.fill(0.0);
            let weights = &weights[..grads.len()];
            let mean = dot(grads, weights);
            for (grad, weight) in grads.iter_mut().zip(weights) {
                *grad = scale * weight * (*grad - mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: Heads = Heads {
        batch: 2,
        seq: 19,
        count: 3,
        dim: 4,
    };

    fn wave(count: usize, step: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * step).sin()).collect()
    }

    /// Output in float64, position by position.
    fn naive(qkv: &[f64]) -> Vec<f64> {
        let Heads {
            batch,
            seq,
            count: heads,
            dim,
        } = HEADS;
        let width = heads * dim;
        let at = |b: usize, i: usize, part: usize, head: usize, d: usize| {
            qkv[(b * seq + i) * 3 * width + part * width + head * dim + d]
        };
        let mut out = vec![0.0; batch * seq * width];
        for place in 0..batch * heads * seq {
            let (b, head, i) = (place / (heads * seq), place / seq % heads, place % seq);
            let score = |j| -> f64 {
                let dot = (0..dim).map(|d| at(b, i, 0, head, d) * at(b, j, 1, head, d));
                (dot.sum::<f64>() / (dim as f64).sqrt()).exp()
            };
            let total: f64 = (0..=i).map(score).sum();
            for d in 0..dim {
                let sum: f64 = (0..=i).map(|j| score(j) * at(b, j, 2, head, d)).sum();
                out[(b * seq + i) * width + head * dim + d] = sum / total;
            }
        }
        out
    }

    #[test]
    fn output_and_gradient_equal_the_formula() {
        let width = HEADS.width();
        let qkv = wave(HEADS.batch * HEADS.seq * 3 * width, 1.7);
        let grad = wave(HEADS.batch * HEADS.seq * width, 0.6);
        let exact: Vec<f64> = qkv.iter().map(|&x| f64::from(x)).collect();
        let (probabilities, output) = forward(&qkv, &HEADS);
        let close = |found: f32, exact: f64| (f64::from(found) - exact).abs() < 2e-6;
        let expected = naive(&exact);
        assert!(output.iter().zip(&expected).all(|(y, e)| close(*y, *e)));

        let found = backward(&grad, &qkv, &probabilities, &HEADS);
        let value = |at: usize, by: f64| -> f64 {
            let mut nudged = exact.clone();
            nudged[at] += by;
            let output = naive(&nudged);
            output
                .iter()
                .zip(&grad)
                .map(|(y, g)| y * f64::from(*g))
                .sum()
        };
        for at in (0..qkv.len()).step_by(37) {
            let slope = (value(at, 1e-5) - value(at, -1e-5)) / 2e-5;
            assert!(close(found[at], slope), "{at}: {}, not {slope}", found[at]);
        }
    }
}

//! Softmax cross-entropy over a slice of the vocabulary, in the three parts between which
//! tensor-parallel ranks reduce: largest logit; exponentials and their sum; loss and gradient.
//!
//! Columns past the true vocabulary (padding) take no part: they get no probability and no gradient.

use std::ops::Range;

use super::simd::{exp, kernel, max, sum};

/// Which tokens the columns of a rank's logits stand for.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Columns of a row, padding included.
    pub(crate) stride: usize,
    /// The tokens of the columns that are not padding.
    pub(crate) tokens: Range<usize>,
}

impl Columns {
    /// The target's column, if this rank holds it.
    fn column(&self, target: u32) -> Option<usize> {
        let target = target as usize;
        self.tokens
            .contains(&target)
            .then(|| target - self.tokens.start)
    }
}

/// The largest logit of each row; negative infinity where all is padding.
pub(crate) fn largest(logits: &[f32], columns: &Columns) -> Vec<f32> {
    let mut found = vec![0.0; logits.len() / columns.stride];
    largest_rows(&mut found, logits, columns);
    found
}

kernel! {
    fn largest_rows(to: &mut [f32], logits: &[f32], columns: &Columns) {
        for (to, row) in to.iter_mut().zip(logits.chunks_exact(columns.stride)) {
            *to = max(&row[..columns.tokens.len()]);
        }
    }
}

/// Replaces the logits by `e^(logit - largest)`, padding by zero. Returns each row's `target - largest`
/// (zero where another rank holds the target), and sum of exponentials.
pub(crate) fn exponentials(
    logits: &mut [f32],
    columns: &Columns,
    targets: &[u32],
    largest: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let rows = logits
        .chunks_exact(columns.stride)
        .zip(targets)
        .zip(largest);
    let at_target = rows
        .map(|((row, &target), largest)| columns.column(target).map_or(0.0, |at| row[at] - largest))
        .collect();
    let mut sums = vec![0.0; largest.len()];
    exponential_rows(&mut sums, logits, columns, largest);
    (at_target, sums)
}

kernel! {
    fn exponential_rows(sums: &mut [f32], logits: &mut [f32], columns: &Columns, largest: &[f32]) {
        let rows = logits.chunks_exact_mut(columns.stride);
        for ((row, largest), to) in rows.zip(largest).zip(sums) {
            let (row, padding) = row.split_at_mut(columns.tokens.len());
            for x in &mut *row {
                *x = exp::<FUSED>(*x - largest);
            }
            padding.fill(0.0);
            *to = sum(row, |x| x);
        }
    }
}

/// The reduced figures of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<'a> {
    /// `target - largest`.
    pub(crate) target: &'a [f32],
    /// Sum of exponentials over the whole vocabulary.
    pub(crate) exponentials: &'a [f32],
}

/// Replaces the exponentials by the loss' gradient with respect to the logits, times `scale`.
/// Returns the sum of the rows' losses.
pub(crate) fn finish(
    exponentials: &mut [f32],
    columns: &Columns,
    targets: &[u32],
    sums: Sums<'_>,
    scale: f32,
) -> f64 {
    let rows = exponentials.chunks_exact_mut(columns.stride).zip(targets);
    for ((row, &target), total) in rows.zip(sums.exponentials) {
        multiply(row, scale / total);
        if let Some(at) = columns.column(target) {
            row[at] -= scale;
        }
    }
    let losses = sums.target.iter().zip(sums.exponentials);
    losses
        .map(|(&target, &total)| f64::from(total).ln() - f64::from(target))
        .sum()
}

kernel! {
    fn multiply(row: &mut [f32], by: f32) {
        for x in row {
            *x *= by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [u32; 2] = [3, 0];
    const LOGITS: [[f32; 5]; 2] = [[0.5, -1.0, 2.0, 0.25, 80.0], [3.0, 1.0, -2.0, 0.0, -80.0]];

    fn naive_loss(logits: &[f32], target: u32) -> f64 {
        let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        total.ln() - f64::from(logits[target as usize])
    }

    #[test]
    fn slices_with_padding_equal_the_whole() {
        // Five tokens on three ranks of two columns, the last one padded with garbage.
        let ranks = [0..2, 2..4, 4..5].map(|tokens| Columns { stride: 2, tokens });
        let mut slices: Vec<Vec<f32>> = ranks
            .iter()
            .map(|columns| {
                let at = |row: &[f32; 5], token: usize| row.get(token).copied().unwrap_or(1e30);
                let pair = |row| {
                    [
                        at(row, columns.tokens.start),
                        at(row, columns.tokens.start + 1),
                    ]
                };
                LOGITS.iter().flat_map(pair).collect()
            })
            .collect();
        let mut highest = vec![f32::NEG_INFINITY; 2];
        for (slice, columns) in slices.iter().zip(&ranks) {
            for (high, own) in highest.iter_mut().zip(largest(slice, columns)) {
                *high = high.max(own);
            }
        }
        assert_eq!(highest, [80.0, 3.0]);
        let (mut target, mut total) = ([0.0; 2], [0.0; 2]);
        for (slice, columns) in slices.iter_mut().zip(&ranks) {
            let (own_target, own_total) = exponentials(slice, columns, &TARGETS, &highest);
            for row in 0..2 {
                target[row] += own_target[row];
                total[row] += own_total[row];
            }
        }
        let sums = Sums {
            target: &target,
            exponentials: &total,
        };
        let expected: f64 = (0..2).map(|i| naive_loss(&LOGITS[i], TARGETS[i])).sum();
        for (slice, columns) in slices.iter_mut().zip(&ranks) {
            let loss = finish(slice, columns, &TARGETS, sums, 0.5);
            assert!((loss - expected).abs() < 1e-5);
        }
        assert_eq!(slices[2][1], 0.0, "padding has a gradient");
        let gradient: f32 = slices.iter().flatten().sum();
        assert!(gradient.abs() < 1e-6, "gradients of a softmax sum to zero");
    }
}

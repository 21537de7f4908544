//! Rows of a table by index, and their gradients back into the table.

use std::ops::Range;

/// Rows of `table` `[rows, width]`, of which it holds `range` of a larger table; zero for others.
pub(crate) fn gather(
    table: &[f32],
    width: usize,
    range: &Range<usize>,
    tokens: &[u32],
) -> Vec<f32> {
    let mut out = vec![0.0; tokens.len() * width];
    for (row, &token) in out.chunks_exact_mut(width).zip(tokens) {
        if range.contains(&(token as usize)) {
            let at = (token as usize - range.start) * width;
            row.copy_from_slice(&table[at..at + width]);
        }
    }
    out
}

/// Adds each row of `grad` `[n, width]` to the table's row of its token, if the table holds it.
pub(crate) fn scatter_add(table: &mut [f32], range: &Range<usize>, tokens: &[u32], grad: &[f32]) {
    let width = grad.len() / tokens.len().max(1);
    for (row, &token) in grad.chunks_exact(width.max(1)).zip(tokens) {
        if range.contains(&(token as usize)) {
            let at = (token as usize - range.start) * width;
            for (sum, grad) in table[at..at + width].iter_mut().zip(row) {
                *sum += grad;
            }
        }
    }
}

/// Adds the table's first rows to the rows of each sequence of `x` `[batch, seq, width]`.
pub(crate) fn add_positions(x: &mut [f32], table: &[f32], sequence: usize) {
    for one in x.chunks_exact_mut(sequence) {
        super::rows::add_assign(one, &table[..sequence]);
    }
}

/// Adds position embeddings to rows of `width` of a batch of sequences of `seq`, of which `first` come before.
pub(crate) fn add_positions_from(
    x: &mut [f32],
    table: &[f32],
    (width, seq): (usize, usize),
    first: usize,
) {
    for (row, one) in x.chunks_exact_mut(width).enumerate() {
        let position = (first + row) % seq;
        super::rows::add_assign(one, &table[position * width..][..width]);
    }
}

/// Adds each sequence's gradient `[seq * width]` to the table's first rows.
pub(crate) fn add_to_positions(table: &mut [f32], grad: &[f32], sequence: usize) {
    for one in grad.chunks_exact(sequence) {
        super::rows::add_assign(&mut table[..sequence], one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_rows_are_read_and_written() {
        let table = [1.0, 2.0, 3.0, 4.0];
        let tokens = [3, 0, 2, 3];
        let out = gather(&table, 2, &(2..4), &tokens);
        assert_eq!(out, [3.0, 4.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        let mut grads = [0.0; 4];
        scatter_add(&mut grads, &(2..4), &tokens, &[1.0; 8]);
        assert_eq!(grads, [1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn positions_start_anew_with_each_sequence() {
        let mut x = [0.0; 8];
        add_positions(&mut x, &[1.0, 2.0, 3.0, 4.0, 9.0, 9.0], 4);
        assert_eq!(x, [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
        let mut grads = [0.0; 6];
        add_to_positions(&mut grads, &x, 4);
        assert_eq!(grads, [2.0, 4.0, 6.0, 8.0, 0.0, 0.0]);
    }
}

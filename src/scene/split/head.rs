//! One attention head: scores, softmax, what it finds, and the way back.

use super::matrix::{Matrix, factor, number};
use super::step::{Share, Tile, Told};

/// What one head computes.
pub(super) struct Head {
    pub(super) letter: char,
    pub(super) q: Matrix,
    pub(super) k: Matrix,
    pub(super) v: Matrix,
    pub(super) s: Matrix,
    pub(super) p: Matrix,
    pub(super) c: Matrix,
}

/// The gradients of one head.
pub(super) struct Back {
    pub(super) dp: Matrix,
    pub(super) ds: Matrix,
    pub(super) dq: Matrix,
    pub(super) dk: Matrix,
    pub(super) dv: Matrix,
}

impl Head {
    /// From its columns of queries, keys and values.
    pub(super) fn new(index: usize, qkv: &Matrix) -> Self {
        let width = qkv.shape().1 / 3;
        let part = |at: usize| qkv.of_columns(at * width..(at + 1) * width);
        let (q, k, v) = (part(0), part(1), part(2));
        let s = q.times(&k.transposed());
        let p = softmax(&s, scale(width));
        Self {
            letter: letter(index),
            c: p.times(&v),
            q,
            k,
            v,
            s,
            p,
        }
    }

    pub(super) fn backward(&self, dc: &Matrix) -> Back {
        let dp = dc.times(&self.v.transposed());
        let scale = scale(self.q.shape().1);
        let sums = dp
            .zip(&self.p, |own, share| own * share)
            .per_row(|row| row.iter().sum());
        let ds = Matrix::from_fn(dp.shape(), |row, column| {
            scale * self.p.at(row, column) * (dp.at(row, column) - sums.at(row, 0))
        });
        Back {
            dq: ds.times(&self.k),
            dk: ds.transposed().times(&self.q),
            dv: self.p.transposed().times(dc),
            dp,
            ds,
        }
    }

    /// How a share comes about.
    pub(super) fn softmax_told(&self, row: usize, column: usize) -> Told {
        if column > row {
            return (vec!["a later token".to_owned()], "→");
        }
        let root = root(self.q.shape().1);
        let power = |inner: usize| format!("exp({}{root})", self.s.text(row, inner));
        let past = (0..=row).map(|inner| match inner {
            0 => format!("/ ({}", power(inner)),
            _ => format!("+ {}", power(inner)),
        });
        let mut terms: Vec<String> = std::iter::once(power(column)).chain(past).collect();
        if let Some(last) = terms.last_mut() {
            last.push(')');
        }
        (terms, "=")
    }

    /// How the gradient of a score comes about.
    pub(super) fn slope_told(&self, back: &Back, row: usize, column: usize) -> Told {
        if column > row {
            return (vec!["a later token".to_owned()], "→");
        }
        let (share, own) = (self.p.text(row, column), back.dp.text(row, column));
        let mean: f32 = (0..=row)
            .map(|inner| self.p.at(row, inner) * back.dp.at(row, inner))
            .sum();
        let mean = factor(&number(mean, 2));
        let root = root(self.q.shape().1);
        let terms = vec![format!("{share}·({own}"), format!("− {mean}){root}")];
        (terms, "≈")
    }

    /// `matrix` as this head's, on `gpu`.
    pub(super) fn tile(&self, name: &str, gpu: usize, matrix: &Matrix) -> Tile {
        let name = match name.split_once('ᵀ') {
            Some((before, _)) => format!("{before}{}ᵀ", self.letter),
            None => format!("{name}{}", self.letter),
        };
        Tile {
            name,
            ..Tile::new("", Share::Piece(gpu), matrix)
        }
    }
}

fn scale(width: usize) -> f32 {
    1.0 / (width as f32).sqrt()
}

/// By what scores are divided: by nothing where heads are one number wide.
fn root(width: usize) -> String {
    if width == 1 {
        String::new()
    } else {
        format!("/√{width}")
    }
}

/// Heads have letters, as GPUs have numbers.
pub(super) fn letter(head: usize) -> char {
    char::from(b'a' + (head % 26) as u8)
}

/// Of each row up to its own column: no token looks at those after it.
fn softmax(scores: &Matrix, scale: f32) -> Matrix {
    let past = |row: usize| (0..=row).map(move |column| scores.at(row, column) * scale);
    Matrix::from_fn(scores.shape(), |row, column| {
        let most = past(row).fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = past(row).map(|score| (score - most).exp()).sum();
        if column <= row {
            (scores.at(row, column) * scale - most).exp() / sum
        } else {
            0.0
        }
    })
}

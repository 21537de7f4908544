//! Element by element: sums of tensors, rows repeated, columns summed.

use super::simd::kernel;

kernel! {
    /// `a += b`.
    pub(crate) fn add_assign(a: &mut [f32], b: &[f32]) {
        for (a, b) in a.iter_mut().zip(b) {
            *a += b;
        }
    }
}

kernel! {
    /// `a *= b`, element by element.
    pub(crate) fn multiply_assign(a: &mut [f32], b: &[f32]) {
        for (a, b) in a.iter_mut().zip(b) {
            *a *= b;
        }
    }
}

kernel! {
    /// `a = max(a, b)`, element by element.
    pub(crate) fn max_assign(a: &mut [f32], b: &[f32]) {
        for (a, b) in a.iter_mut().zip(b) {
            *a = if *b > *a { *b } else { *a };
        }
    }
}

/// `row`, `n` times over.
pub(crate) fn repeat(row: &[f32], n: usize) -> Vec<f32> {
    row.repeat(n)
}

/// `x + row` for each row of `x`.
pub(crate) fn add_row(x: &[f32], row: &[f32]) -> Vec<f32> {
    let mut sum = x.to_vec();
    for sum in sum.chunks_exact_mut(row.len()) {
        add_assign(sum, row);
    }
    sum
}

/// `x + y + row` for each row of `x` and `y`.
pub(crate) fn add_rows(x: &[f32], y: &[f32], row: &[f32]) -> Vec<f32> {
    let mut sum = x.to_vec();
    for (sum, y) in sum
        .chunks_exact_mut(row.len())
        .zip(y.chunks_exact(row.len()))
    {
        add_two(sum, y, row);
    }
    sum
}

kernel! {
    /// `sum += a + b`.
    fn add_two(sum: &mut [f32], a: &[f32], b: &[f32]) {
        for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
            *sum += a + b;
        }
    }
}

/// The sum of the rows of `x` `[n, width]`.
pub(crate) fn column_sums(x: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    add_columns(&mut sums, x);
    sums
}

kernel! {
    /// Adds every row of `x` to `sums`.
    fn add_columns(sums: &mut [f32], x: &[f32]) {
        for row in x.chunks_exact(sums.len()) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}

kernel! {
    /// The sum of squares, in float64.
    pub(crate) fn square_sum(x: &[f32]) -> f64 {
        let (chunks, rest) = x.as_chunks::<8>();
        let mut lanes = [0.0_f64; 8];
        for chunk in chunks {
            for i in 0..8 {
                let x = f64::from(chunk[i]);
                lanes[i] += x * x;
            }
        }
        let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        lanes.iter().sum::<f64>() + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_where_they_should() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            add_row(&x, &[10.0, 20.0]),
            [11.0, 22.0, 13.0, 24.0, 15.0, 26.0]
        );
        assert_eq!(
            add_rows(&x, &x, &[1.0, 0.0, 2.0]),
            [3.0, 4.0, 8.0, 9.0, 10.0, 14.0]
        );
        assert_eq!(column_sums(&x, 2), [9.0, 12.0]);
        assert_eq!(column_sums(&x, 3), [5.0, 7.0, 9.0]);
        assert_eq!(repeat(&[1.0, 2.0], 2), [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(square_sum(&x), 91.0);
        assert_eq!(square_sum(&x.repeat(3)), 273.0);
    }

    #[test]
    fn in_place_ones_change_the_first() {
        let mut a = [1.0, -2.0];
        add_assign(&mut a, &[1.0, 1.0]);
        assert_eq!(a, [2.0, -1.0]);
        multiply_assign(&mut a, &[3.0, 4.0]);
        assert_eq!(a, [6.0, -4.0]);
        max_assign(&mut a, &[0.0, 0.0]);
        assert_eq!(a, [6.0, 0.0]);
    }
}

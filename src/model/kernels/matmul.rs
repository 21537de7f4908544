//! Matrix products on one thread: the only place that hands pointers to the `gemm` crate.
#![expect(
    unsafe_code,
    reason = "gemm takes raw pointers; every index is checked first"
)]

use gemm::Parallelism;

/// A matrix read from a slice: row-major, transposed, or a window of a wider one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Row-major `[rows, columns]`, rows `stride` elements apart.
    pub(crate) fn strided(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride, "rows overlap");
        assert!(
            data.len() >= extent(rows, columns, stride),
            "a matrix past its data"
        );
        Self {
            data,
            rows,
            columns,
            row_stride: stride,
            column_stride: 1,
        }
    }

    /// Row-major `[rows, columns]`.
    pub(crate) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// Its transpose, of the same data.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Elements from the first of a matrix to one past its last.
fn extent(rows: usize, columns: usize, stride: usize) -> usize {
    match (rows, columns) {
        (0, _) | (_, 0) => 0,
        _ => (rows - 1) * stride + columns,
    }
}

/// `a * b`, row-major.
pub(crate) fn product(a: Matrix<'_>, b: Matrix<'_>) -> Vec<f32> {
    let mut data = Vec::new();
    push_product(&mut data, 1.0, a, b);
    data
}

/// Appends `scale * a * b`, row-major: fresh memory is not cleared only to be written over.
pub(crate) fn push_product(to: &mut Vec<f32>, scale: f32, a: Matrix<'_>, b: Matrix<'_>) {
    let (start, elements) = (to.len(), a.rows * b.columns);
    if a.columns == 0 {
        to.resize(start + elements, 0.0);
        return;
    }
    to.reserve(elements);
    let free = to.spare_capacity_mut();
    // SAFETY: the free capacity is at least `rows * columns`, which is what a row-major product
    // without padding takes; it is not read, and gemm writes each element once, after which the
    // length is true.
    unsafe {
        run(free.as_mut_ptr().cast(), b.columns, None, scale, a, b);
        to.set_len(start + elements);
    }
}

/// `target += a * b`, row-major.
pub(crate) fn add_product(target: &mut [f32], a: Matrix<'_>, b: Matrix<'_>) {
    assert_eq!(
        target.len(),
        a.rows * b.columns,
        "a product of another size"
    );
    // SAFETY: the target has exactly the product's elements.
    unsafe { run(target.as_mut_ptr(), b.columns, Some(1.0), 1.0, a, b) }
}

/// `target = scale * a * b`, where the target's rows are `stride` elements apart.
pub(crate) fn write_product(
    target: &mut [f32],
    stride: usize,
    scale: f32,
    a: Matrix<'_>,
    b: Matrix<'_>,
) {
    assert!(b.columns <= stride, "rows overlap");
    assert!(
        target.len() >= extent(a.rows, b.columns, stride),
        "a product past its target"
    );
    // SAFETY: the target reaches to the product's last element, just checked.
    unsafe { run(target.as_mut_ptr(), stride, None, scale, a, b) }
}

/// `target = keep * target + scale * a * b`; without `keep` the target is not read.
///
/// # Safety
///
/// `target` must be valid for writes (and, with `keep`, reads) of `[a.rows, b.columns]` elements with
/// rows `stride` apart.
unsafe fn run(
    target: *mut f32,
    stride: usize,
    keep: Option<f32>,
    scale: f32,
    a: Matrix<'_>,
    b: Matrix<'_>,
) {
    assert_eq!(a.columns, b.rows, "inner dimensions differ");
    // SAFETY: a `Matrix` lies within its slice by construction; the caller vouches for the target.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            target,
            1,
            stride.cast_signed(),
            keep.is_some(),
            a.data.as_ptr(),
            a.column_stride.cast_signed(),
            a.row_stride.cast_signed(),
            b.data.as_ptr(),
            b.column_stride.cast_signed(),
            b.row_stride.cast_signed(),
            keep.unwrap_or(0.0),
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * step) % 11) as f32 - 5.0).collect()
    }

    fn naive(a: &[f32], b: &[f32], (m, k, n): (usize, usize, usize)) -> Vec<f32> {
        let element = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        (0..m * n).map(|at| element(at / n, at % n)).collect()
    }

    #[test]
    fn products_equal_the_naive_ones() {
        let (m, k, n) = (7, 5, 9);
        let (a, b) = (numbers(m * k, 3), numbers(k * n, 7));
        let expected = naive(&a, &b, (m, k, n));
        let (left, right) = (Matrix::new(&a, m, k), Matrix::new(&b, k, n));
        assert_eq!(product(left, right), expected);

        let mut sum = expected.clone();
        add_product(&mut sum, left, right);
        assert!(sum.iter().zip(&expected).all(|(s, e)| *s == 2.0 * e));

        let transposed = product(right.transposed(), left.transposed());
        assert!((0..m * n).all(|at| transposed[at % n * m + at / n] == expected[at]));
    }

    #[test]
    fn windows_touch_nothing_beside_them() {
        let a = numbers(12, 5);
        let left = Matrix::strided(&a[1..], 2, 3, 6);
        let mut target = [9.0; 8];
        write_product(&mut target[1..], 4, 0.5, left, left.transposed());
        let dot = |i: usize, j: usize| -> f32 {
            (0..3).map(|l| a[1 + 6 * i + l] * a[1 + 6 * j + l]).sum()
        };
        assert_eq!(target[1..3], [0.5 * dot(0, 0), 0.5 * dot(0, 1)]);
        assert_eq!(target[5..7], [0.5 * dot(1, 0), 0.5 * dot(1, 1)]);
        assert!([0, 3, 4, 7].iter().all(|&at| target[at] == 9.0));
    }

    #[test]
    #[should_panic(expected = "past its data")]
    fn a_matrix_must_fit_its_data() {
        assert_eq!(Matrix::new(&[0.0; 5], 2, 3).rows, 2);
    }
}

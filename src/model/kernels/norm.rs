//! Layer norm: `y = (x - mean) / sqrt(variance + eps) * weight + bias` over each row.

use super::simd::{LANES, add_lanes, dot, kernel, sum};

/// As in GPT-2.
const EPSILON: f32 = 1e-5;

/// What the forward pass makes of `x` `[n, width]`.
#[derive(Debug)]
pub(crate) struct Normed {
    /// `(x - mean) * scale`, `[n, width]`.
    pub(crate) normalised: Vec<f32>,
    /// `1 / sqrt(variance + eps)`, `[n]`.
    pub(crate) scale: Vec<f32>,
    /// `normalised * weight + bias`, `[n, width]`.
    pub(crate) output: Vec<f32>,
}

/// Forward.
pub(crate) fn forward(x: &[f32], weight: &[f32], bias: &[f32]) -> Normed {
    let mut normed = Normed {
        normalised: vec![0.0; x.len()],
        scale: vec![0.0; x.len() / weight.len()],
        output: vec![0.0; x.len()],
    };
    forward_rows(&mut normed, x, weight, bias);
    normed
}

kernel! {
    fn forward_rows(to: &mut Normed, x: &[f32], weight: &[f32], bias: &[f32]) {
        let width = weight.len();
        let rows = to.normalised.chunks_exact_mut(width).zip(to.output.chunks_exact_mut(width));
        for (((normal, out), row), scale) in rows.zip(x.chunks_exact(width)).zip(&mut to.scale) {
            let mean = sum(row, |x| x) / width as f32;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
            *scale = 1.0 / (variance + EPSILON).sqrt();
            for (normal, x) in normal.iter_mut().zip(row) {
                *normal = (x - mean) * *scale;
            }
            affine_row(out, normal, weight, bias);
        }
    }
}

#[inline(always)]
fn affine_row(out: &mut [f32], normal: &[f32], weight: &[f32], bias: &[f32]) {
    for (((out, normal), weight), bias) in out.iter_mut().zip(normal).zip(weight).zip(bias) {
        *out = normal * weight + bias;
    }
}

/// `normalised * weight + bias` once more, for the weight gradients of what follows the norm.
pub(crate) fn affine(normalised: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
    let mut output = vec![0.0; normalised.len()];
    affine_rows(&mut output, normalised, weight, bias);
    output
}

kernel! {
    fn affine_rows(output: &mut [f32], normalised: &[f32], weight: &[f32], bias: &[f32]) {
        let width = weight.len();
        for (out, normal) in output.chunks_exact_mut(width).zip(normalised.chunks_exact(width)) {
            affine_row(out, normal, weight, bias);
        }
    }
}

/// What the backward pass needs of the forward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    /// As in [`Normed`].
    pub(crate) normalised: &'a [f32],
    /// As in [`Normed`].
    pub(crate) scale: &'a [f32],
    /// `[width]`.
    pub(crate) weight: &'a [f32],
}

/// Gradients of a layer norm beside a residual connection.
#[derive(Debug)]
pub(crate) struct NormGrads {
    /// Of the input, the residual's own gradient added, `[n, width]`.
    pub(crate) input: Vec<f32>,
    /// Of the weight, `[width]`.
    pub(crate) weight: Vec<f32>,
    /// Of the bias, `[width]`.
    pub(crate) bias: Vec<f32>,
}

/// Backward: `grad` is the output's gradient, `residual` (if any) what reaches the input around the norm.
pub(crate) fn backward(grad: &[f32], kept: Kept<'_>, residual: Option<&[f32]>) -> NormGrads {
    let width = kept.weight.len();
    let mut grads = NormGrads {
        input: residual.map_or_else(|| vec![0.0; grad.len()], <[f32]>::to_vec),
        weight: vec![0.0; width],
        bias: vec![0.0; width],
    };
    backward_rows(&mut grads, grad, kept);
    grads
}

kernel! {
    fn backward_rows(to: &mut NormGrads, grad: &[f32], kept: Kept<'_>) {
        let width = kept.weight.len();
        let rows = to.input.chunks_exact_mut(width).zip(grad.chunks_exact(width));
        let kept_rows = kept.normalised.chunks_exact(width).zip(kept.scale);
        for ((input, grad), (normal, &scale)) in rows.zip(kept_rows) {
            add_to_parameters(&mut to.weight, &mut to.bias, grad, normal);
            let mean = dot(grad, kept.weight) / width as f32;
            let along = dot3(grad, kept.weight, normal) / width as f32;
            for (((input, grad), weight), normal) in
                input.iter_mut().zip(grad).zip(kept.weight).zip(normal)
            {
                *input += scale * (grad * weight - mean - normal * along);
            }
        }
    }
}

#[inline(always)]
fn add_to_parameters(weight: &mut [f32], bias: &mut [f32], grad: &[f32], normal: &[f32]) {
    for (((weight, bias), grad), normal) in weight.iter_mut().zip(bias).zip(grad).zip(normal) {
        *weight += grad * normal;
        *bias += grad;
    }
}

#[inline(always)]
fn dot3(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let (c_chunks, c_rest) = c.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for ((x, y), z) in a_chunks.iter().zip(b_chunks).zip(c_chunks) {
        for i in 0..LANES {
            lanes[i] += x[i] * y[i] * z[i];
        }
    }
    for (((lane, x), y), z) in lanes.iter_mut().zip(a_rest).zip(b_rest).zip(c_rest) {
        *lane += x * y * z;
    }
    add_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layer norm of one row in float64.
    fn naive(x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
        let width = x.len() as f64;
        let mean = x.iter().sum::<f64>() / width;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width;
        let one = |i: usize| (x[i] - mean) / (variance + 1e-5).sqrt() * weight[i] + bias[i];
        (0..x.len()).map(one).collect()
    }

    fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn value_and_gradients_equal_the_formula() {
        let width = 21;
        let row = |step: f32| -> Vec<f32> { (0..width).map(|i| (i as f32 * step).sin()).collect() };
        let (x, weight, bias, grad) = (row(1.3), row(0.7), row(2.1), row(0.9));
        let normed = forward(&x, &weight, &bias);
        let exact = naive(&wide(&x), &wide(&weight), &wide(&bias));
        let close = |found: f32, exact: f64| (f64::from(found) - exact).abs() < 3e-6;
        assert!(normed.output.iter().zip(&exact).all(|(y, e)| close(*y, *e)));
        assert_eq!(affine(&normed.normalised, &weight, &bias), normed.output);

        let kept = Kept {
            normalised: &normed.normalised,
            scale: &normed.scale,
            weight: &weight,
        };
        let grads = backward(&grad, kept, Some(&bias));
        let value = |x: &[f64], w: &[f64]| -> f64 {
            let y = naive(x, w, &wide(&bias));
            y.iter().zip(&grad).map(|(y, g)| y * f64::from(*g)).sum()
        };
        for i in 0..width {
            let nudged = |of: &[f32], by: f64| {
                let mut of = wide(of);
                of[i] += by;
                of
            };
            let along_x = |by| value(&nudged(&x, by), &wide(&weight));
            let along_weight = |by| value(&wide(&x), &nudged(&weight, by));
            let slope = (along_x(1e-5) - along_x(-1e-5)) / 2e-5;
            assert!(close(grads.input[i] - bias[i], slope));
            let slope = (along_weight(1e-5) - along_weight(-1e-5)) / 2e-5;
            assert!(close(grads.weight[i], slope));
        }
        assert_eq!(grads.bias, grad);
    }
}

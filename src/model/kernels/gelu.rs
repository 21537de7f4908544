//! Gelu in its tanh form, with its bias: `0.5 a (1 + tanh(u)) = a / (1 + e^(-2u))`, where
//! `u = sqrt(2/pi) (a + 0.044715 a^3)`.

use super::simd::{exp, kernel, mul_add};

const ROOT_2_OVER_PI: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// Replaces `x` `[n, width]` by `gelu(x + bias)` and returns the slope there, which is all that the
/// backward pass needs.
pub(crate) fn forward(x: &mut [f32], bias: &[f32]) -> Vec<f32> {
    // Slopes go through a piece that stays in the nearest cache, so that the result's memory is written once.
    const PIECE: usize = 256;
    let mut piece = [0.0; PIECE];
    let mut slope = Vec::with_capacity(x.len());
    for row in x.chunks_exact_mut(bias.len()) {
        for (x, bias) in row.chunks_mut(PIECE).zip(bias.chunks(PIECE)) {
            let slopes = &mut piece[..x.len()];
            value_and_slope(x, slopes, bias);
            slope.extend_from_slice(slopes);
        }
    }
    slope
}

kernel! {
    fn value_and_slope(x: &mut [f32], slope: &mut [f32], bias: &[f32]) {
        const TWICE: f32 = 2.0 * ROOT_2_OVER_PI;
        for ((x, slope), bias) in x.iter_mut().zip(slope).zip(bias) {
            let a = *x + bias;
            let square = a * a;
            let twice_u = a * mul_add::<FUSED>(TWICE * CUBIC, square, TWICE);
            let small = exp::<FUSED>(-twice_u);
            let share = 1.0 / (1.0 + small);
            let twice_du = mul_add::<FUSED>(3.0 * TWICE * CUBIC, square, TWICE);
            *x = a * share;
            // `1 - share` is `small * share`, without the cancellation.
            *slope = mul_add::<FUSED>(a * share * (small * share), twice_du, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(a: f64) -> f64 {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (a + 0.044_715 * a.powi(3));
        0.5 * a * (1.0 + u.tanh())
    }

    #[test]
    fn value_and_slope_equal_the_formula() {
        let bias = [0.25_f32, -1.5, 3.0];
        let inputs: Vec<f32> = (-300..300_i16).map(|i| f32::from(i) / 30.0).collect();
        let mut x = inputs.clone();
        let slope = forward(&mut x, &bias);
        for (i, input) in inputs.iter().enumerate() {
            let a = f64::from(input + bias[i % 3]);
            let steep = (exact(a + 1e-5) - exact(a - 1e-5)) / 2e-5;
            assert!((f64::from(x[i]) - exact(a)).abs() < 4e-7 * (1.0 + a.abs()));
            assert!((f64::from(slope[i]) - steep).abs() < 1e-6, "slope at {a}");
        }
    }
}

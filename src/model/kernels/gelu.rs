//! Gelu in its tanh form, with its bias: `0.5 a (1 + tanh(u)) = a / (1 + e^(-2u))`, where
//! `u = sqrt(2/pi) (a + 0.044715 a^3)`.

use super::simd::{exp, kernel};

const ROOT_2_OVER_PI: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// Replaces `x` `[n, width]` by `gelu(x + bias)` and returns the slope there, which is all that the
/// backward pass needs.
pub(crate) fn forward(x: &mut [f32], bias: &[f32]) -> Vec<f32> {
    let mut slope = vec![0.0; x.len()];
    rows(x, &mut slope, bias);
    slope
}

kernel! {
    fn rows(x: &mut [f32], slope: &mut [f32], bias: &[f32]) {
        let width = bias.len();
        for (row, slopes) in x.chunks_exact_mut(width).zip(slope.chunks_exact_mut(width)) {
            for ((x, slope), bias) in row.iter_mut().zip(slopes).zip(bias) {
                let a = *x + bias;
                let square = a * a;
                let twice_u = 2.0 * ROOT_2_OVER_PI * a * (1.0 + CUBIC * square);
                let small = exp(-twice_u);
                let share = 1.0 / (1.0 + small);
                let twice_du = 2.0 * ROOT_2_OVER_PI * (1.0 + 3.0 * CUBIC * square);
                *x = a * share;
                // `1 - share` is `small * share`, without the cancellation.
                *slope = share + a * share * (small * share) * twice_du;
            }
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

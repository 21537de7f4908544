//! `AdamW` (Loshchilov and Hutter 2019), with decoupled decay.

use super::simd::kernel;

/// The coefficients of one step, computed once in float64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coefficients {
    /// What each gradient is multiplied with: the clipping's share.
    pub(crate) scale: f32,
    /// Decay of the mean.
    pub(crate) beta1: f32,
    /// Decay of the mean square.
    pub(crate) beta2: f32,
    /// `lr / (1 - beta1^step)`.
    pub(crate) rate: f32,
    /// `1 / (1 - beta2^step)`.
    pub(crate) square_correction: f32,
    /// As in the optimizer's settings.
    pub(crate) eps: f32,
    /// `1 - lr * weight_decay`.
    pub(crate) decay: f32,
}

kernel! {
    /// Brings the moments `[2, count]` (mean, then mean square) up to date with a gradient.
    pub(crate) fn update_moments(moments: &mut [f32], grad: &[f32], with: &Coefficients) {
        let (mean, square) = moments.split_at_mut(grad.len());
        let Coefficients { scale, beta1, beta2, .. } = *with;
        for ((mean, square), grad) in mean.iter_mut().zip(square).zip(grad) {
            let grad = grad * scale;
            *mean = beta1 * *mean + (1.0 - beta1) * grad;
            *square = beta2 * *square + (1.0 - beta2) * (grad * grad);
        }
    }
}

kernel! {
    /// Moves a parameter along its moments `[2, count]`.
    pub(crate) fn update_parameter(parameter: &mut [f32], moments: &[f32], with: &Coefficients) {
        let (mean, square) = moments.split_at(parameter.len());
        let Coefficients { rate, square_correction, eps, decay, .. } = *with;
        for ((parameter, mean), square) in parameter.iter_mut().zip(mean).zip(square) {
            let root = (square * square_correction).sqrt() + eps;
            *parameter = *parameter * decay - rate * mean / root;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_step_moves_by_the_learning_rate_and_decays() {
        let (lr, decay) = (0.01_f32, 0.1_f32);
        let with = Coefficients {
            scale: 1.0,
            beta1: 0.9,
            beta2: 0.95,
            rate: lr / (1.0 - 0.9),
            square_correction: 1.0 / (1.0 - 0.95),
            eps: 1e-8,
            decay: 1.0 - lr * decay,
        };
        let grad = [3.0, -0.5, 20.0];
        let mut moments = [0.0; 6];
        let mut parameter = [1.0, 2.0, -1.0];
        update_moments(&mut moments, &grad, &with);
        update_parameter(&mut parameter, &moments, &with);
        for (at, (before, grad)) in [1.0_f32, 2.0, -1.0].iter().zip(grad).enumerate() {
            let expected = before * (1.0 - lr * decay) - lr * f32::signum(grad);
            assert!((parameter[at] - expected).abs() < 1e-6);
        }
    }
}

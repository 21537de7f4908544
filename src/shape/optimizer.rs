//! How a model is optimised.

use serde::{Deserialize, Serialize};

use super::ShapeError;

/// The settings of `AdamW`. It decays every parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of the latter.
    pub eps: f64,
    /// Share of each parameter taken away per unit of learning rate.
    pub weight_decay: f64,
    /// The largest global norm of the gradients; larger ones are scaled down to it. None: no clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            clip: None,
        }
    }
}

impl Optimizer {
    /// Whether it can be computed with.
    pub(super) fn check(&self) -> Result<(), ShapeError> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        let amount = |value: f64| value >= 0.0 && value.is_finite();
        let settings = [
            ("lr", amount(self.lr), "a number from 0"),
            ("beta1", share(self.beta1), "from 0 to below 1"),
            ("beta2", share(self.beta2), "from 0 to below 1"),
            ("eps", amount(self.eps), "a number from 0"),
            ("weight_decay", amount(self.weight_decay), "a number from 0"),
            (
                "clip",
                self.clip.is_none_or(|clip| clip > 0.0),
                "above 0, or left out",
            ),
        ];
        match settings.into_iter().find(|(_, legal, _)| !legal) {
            Some((name, _, legal)) => Err(ShapeError::Optimizer { name, legal }),
            None => Ok(()),
        }
    }
}

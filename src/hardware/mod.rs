//! GPUs and links, and what operations cost on them. Pure functions of data files under `assets/hardware` and
//! `assets/links`.

mod costs;
mod link;
mod reach;

pub use costs::{CostModel, PassTimes, Price, Pricing, Task};
pub use link::{LINKS, Link, Links};
pub use reach::Reach;

use serde::{Deserialize, Serialize};

use crate::shape::GradFormat;
use crate::units::Bytes;

/// The number format of weights and activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 16 bits, with 32-bit gradients, master weights and optimizer state: 18 bytes a parameter.
    Bf16,
    /// 32 bits throughout: 16 bytes a parameter.
    F32,
}

impl Precision {
    /// Bytes of a weight or an activation.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// Bytes of a gradient as it is kept and reduced.
    pub fn grad_bytes(self, format: GradFormat) -> u64 {
        match (self, format) {
            (Self::Bf16, GradFormat::Bf16) => 2,
            (Self::Bf16, GradFormat::F32) | (Self::F32, _) => 4,
        }
    }

    /// Bytes of the optimizer's state a parameter: two moments and, in 16 bits, a master copy.
    pub fn optimizer_bytes(self) -> u64 {
        match self {
            Self::Bf16 => 12,
            Self::F32 => 8,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }
}

/// Peak rates of matrix products, in TFLOP/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// In 16 bits, dense.
    pub bf16: f64,
    /// In 32 bits.
    pub f32: f64,
}

/// A kind of GPU, and how such GPUs are joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The name on the command line.
    pub name: String,
    /// The name in texts.
    pub title: String,
    /// Memory of a GPU, in MiB.
    pub memory_mib: f64,
    /// Memory bandwidth, in GB/s.
    pub memory_gb_per_s: f64,
    /// GPUs of a node.
    pub gpus_per_node: usize,
    /// Between GPUs of a node.
    #[serde(deserialize_with = "link::named_or_own")]
    pub in_node: Link,
    /// Between nodes, per GPU.
    #[serde(deserialize_with = "link::named_or_own")]
    pub between_nodes: Link,
    /// The format that training uses by default.
    pub precision: Precision,
    /// Peak rates of matrix products.
    pub peak_tflops: Peak,
    /// How much of its figures a GPU reaches, and what work costs beside them.
    #[serde(default)]
    pub reach: Reach,
    /// Power of a GPU at full load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// What an hour of a GPU costs, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<f64>,
    /// Where the figures are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Why hardware cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    /// The text is not hardware.
    #[error("not a hardware file: {0}")]
    Toml(String),
    /// A figure that no hardware has.
    #[error("the hardware's {0} must be a number above 0")]
    NotPositive(&'static str),
    /// No profile is called that.
    #[error("no hardware is called {name:?}; there are {known}, or give a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// The profiles: name and TOML.
pub const PROFILES: &[(&str, &str)] = &[
    (
        "classroom",
        include_str!("../../assets/hardware/classroom.toml"),
    ),
    ("v100", include_str!("../../assets/hardware/v100.toml")),
    (
        "a100-40gb",
        include_str!("../../assets/hardware/a100-40gb.toml"),
    ),
    (
        "a100-80gb",
        include_str!("../../assets/hardware/a100-80gb.toml"),
    ),
    ("h100", include_str!("../../assets/hardware/h100.toml")),
    ("h200", include_str!("../../assets/hardware/h200.toml")),
    ("b200", include_str!("../../assets/hardware/b200.toml")),
    ("mi300x", include_str!("../../assets/hardware/mi300x.toml")),
    (
        "rtx4090",
        include_str!("../../assets/hardware/rtx4090.toml"),
    ),
    ("l4", include_str!("../../assets/hardware/l4.toml")),
];

impl Hardware {
    /// A profile by its name.
    pub fn profile(name: &str) -> Result<Self, HardwareError> {
        let text = PROFILES
            .iter()
            .find(|(profile, _)| *profile == name)
            .map(|(_, text)| *text);
        let known = || {
            PROFILES
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        text.ok_or_else(|| HardwareError::Unknown {
            name: name.to_owned(),
            known: known(),
        })
        .and_then(Self::from_toml)
    }

    /// From the text of a hardware TOML, checked.
    pub fn from_toml(text: &str) -> Result<Self, HardwareError> {
        let hardware: Self =
            toml::from_str(text).map_err(|error| HardwareError::Toml(error.to_string()))?;
        hardware.check()?;
        Ok(hardware)
    }

    fn check(&self) -> Result<(), HardwareError> {
        let figures = [
            ("memory_mib", self.memory_mib),
            ("peak_tflops.bf16", self.peak_tflops.bf16),
            ("peak_tflops.f32", self.peak_tflops.f32),
            ("memory_gb_per_s", self.memory_gb_per_s),
            ("gpus_per_node", self.gpus_per_node as f64),
            ("in_node.gb_per_s", self.in_node.gb_per_s),
            ("in_node.reached", self.in_node.reached),
            ("between_nodes.gb_per_s", self.between_nodes.gb_per_s),
            ("between_nodes.reached", self.between_nodes.reached),
            ("watts", self.watts.unwrap_or(1.0)),
        ];
        let may_be_zero = [
            ("in_node.latency_us", self.in_node.latency_us),
            ("between_nodes.latency_us", self.between_nodes.latency_us),
            ("usd_per_hour", self.usd_per_hour.unwrap_or_default()),
        ];
        let above = |(_, value): &(&str, f64)| value.is_finite() && *value > 0.0;
        let from = |(_, value): &(&str, f64)| value.is_finite() && *value >= 0.0;
        let shares = self.reach.shares();
        let times = self.reach.times();
        let bad = figures.iter().chain(&shares).find(|figure| !above(figure));
        let negative = may_be_zero
            .iter()
            .chain(&times)
            .find(|figure| !from(figure));
        bad.or(negative)
            .map_or(Ok(()), |(name, _)| Err(HardwareError::NotPositive(name)))
    }

    /// Memory of a GPU.
    pub fn memory(&self) -> Bytes {
        Bytes((self.memory_mib * 1024.0 * 1024.0) as u64)
    }

    /// Peak rate in a format, in FLOP/s.
    pub fn peak_flops(&self, precision: Precision) -> f64 {
        1e12 * match precision {
            Precision::Bf16 => self.peak_tflops.bf16,
            Precision::F32 => self.peak_tflops.f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_reads() {
        for (name, text) in PROFILES {
            assert_eq!(Hardware::from_toml(text).unwrap().name, *name);
        }
    }

    #[test]
    fn impossible_hardware_is_refused() {
        let text = PROFILES[0].1.replace("products = 0.5", "products = nan");
        assert_eq!(
            Hardware::from_toml(&text),
            Err(HardwareError::NotPositive("reach.products"))
        );
        assert!(
            Hardware::profile("abacus")
                .unwrap_err()
                .to_string()
                .contains("classroom")
        );
    }
}

//! GPUs and links, and what operations cost on them. Pure functions of data files under `assets/hardware`.

mod costs;

pub use costs::{CostModel, Level, PassTimes, Price, Pricing, Task};

use serde::{Deserialize, Serialize};

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
    pub fn grad_bytes(self) -> u64 {
        match self {
            Self::Bf16 | Self::F32 => 4,
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

/// A link between GPUs, per GPU and direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// From the start of a transfer to its first byte, in microseconds.
    pub latency_us: f64,
    /// Bandwidth that a large transfer reaches, in GB/s (powers of ten).
    pub gb_per_s: f64,
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
    /// Peak rates of matrix products.
    pub peak_tflops: Peak,
    /// The share of the peak that large products reach.
    pub efficiency: f64,
    /// Memory bandwidth that element-wise work reaches, in GB/s.
    pub memory_gb_per_s: f64,
    /// Time from one kernel to the next, in microseconds.
    pub launch_us: f64,
    /// GPUs of a node.
    pub gpus_per_node: usize,
    /// Between GPUs of a node.
    pub in_node: Link,
    /// Between nodes, per GPU.
    pub between_nodes: Link,
    /// The format that training uses by default.
    pub precision: Precision,
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
    (
        "a100-40gb",
        include_str!("../../assets/hardware/a100-40gb.toml"),
    ),
    (
        "a100-80gb",
        include_str!("../../assets/hardware/a100-80gb.toml"),
    ),
    ("h100", include_str!("../../assets/hardware/h100.toml")),
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
            ("efficiency", self.efficiency),
            ("memory_gb_per_s", self.memory_gb_per_s),
            ("gpus_per_node", self.gpus_per_node as f64),
            ("in_node.gb_per_s", self.in_node.gb_per_s),
            ("between_nodes.gb_per_s", self.between_nodes.gb_per_s),
        ];
        let may_be_zero = [
            ("launch_us", self.launch_us),
            ("in_node.latency_us", self.in_node.latency_us),
            ("between_nodes.latency_us", self.between_nodes.latency_us),
        ];
        let bad = figures
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value > 0.0));
        let negative = may_be_zero
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value >= 0.0));
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
        let text = PROFILES[0]
            .1
            .replace("efficiency = 0.5", "efficiency = nan");
        assert_eq!(
            Hardware::from_toml(&text),
            Err(HardwareError::NotPositive("efficiency"))
        );
        assert!(
            Hardware::profile("abacus")
                .unwrap_err()
                .to_string()
                .contains("classroom")
        );
    }
}

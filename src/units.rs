//! Numbers with meaning: times, sizes, ranks and the kinds of pass. Nothing here computes a figure.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A time or a duration on some clock, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin of a clock, or no time at all.
    pub const ZERO: Self = Self(0);

    /// From seconds; what is negative or not a number counts as zero, what is too large saturates.
    pub fn from_secs(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// From milliseconds, as [`Nanos::from_secs`].
    pub fn from_millis(millis: f64) -> Self {
        Self((millis * 1e6).round() as u64)
    }

    /// In seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In milliseconds.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self - other`, or zero if `other` is later.
    pub fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// Three significant digits in the SI unit that fits: `17.7 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let (scaled, unit) = match self.0 {
            0 => return write!(f, "0 s"),
            1..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (value / 1e3, "µs"),
            1_000_000..1_000_000_000 => (value / 1e6, "ms"),
            _ => (value / 1e9, "s"),
        };
        write!(f, "{} {unit}", three_digits(scaled))
    }
}

/// A size in bytes; shown in powers of two.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// In MiB.
    pub fn mib(self) -> f64 {
        self.0 as f64 / (1024.0 * 1024.0)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// Three significant digits in a power of two: `24.8 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 {
            return write!(f, "{} B", self.0);
        }
        write!(f, "{} {}", three_digits(value), UNITS[unit])
    }
}

/// Three significant digits, never an exponent: `1.23`, `12.3`, `123`, `1234`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Three digits and, from ten thousand on, a thousand's letter: `1234`, `12.3 k`, `1.23 M`, `406 B`, `3.49 T`.
pub fn large(value: f64) -> String {
    let (scaled, letter) = match value {
        v if v >= 1e12 => (v / 1e12, " T"),
        v if v >= 1e9 => (v / 1e9, " B"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e4 => (v / 1e3, " k"),
        v => (v, ""),
    };
    format!("{}{letter}", three_digits(scaled))
}

/// A share as a percentage: `27.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A GPU of the job, from 0, in Megatron's order: tensor fastest, then data, then pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub u32);

impl Rank {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a pipeline pass computes, by the letter that schedules write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Pass {
    /// `F`: the forward pass.
    Forward,
    /// `B`: the full backward pass, input- and weight-gradient as one.
    Backward,
    /// `I`: the gradient with respect to the stage's input alone.
    InputGrad,
    /// `W`: the gradient with respect to the stage's weights alone.
    WeightGrad,
}

impl Pass {
    /// The letter in schedules and on blocks.
    pub fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGrad => 'I',
            Self::WeightGrad => 'W',
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::InputGrad => "input gradient",
            Self::WeightGrad => "weight gradient",
        }
    }

    /// The pass of a letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'F' => Some(Self::Forward),
            'B' => Some(Self::Backward),
            'I' => Some(Self::InputGrad),
            'W' => Some(Self::WeightGrad),
            _ => None,
        }
    }

    /// Whether this pass hands a gradient to the stage before: `B` and `I` do.
    pub fn makes_input_grad(self) -> bool {
        matches!(self, Self::Backward | Self::InputGrad)
    }

    /// Whether this pass adds to the weights' gradients: `B` and `W` do.
    pub fn makes_weight_grad(self) -> bool {
        matches!(self, Self::Backward | Self::WeightGrad)
    }
}

/// The axis along which the members of a process group differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Same shard of the model, other data.
    Dp,
    /// Same layers and data, other slice of each matrix.
    Tp,
    /// Same data, other layers.
    Pp,
    /// A whole replica of the model: all of TP and PP.
    Model,
    /// First and last stage, which both hold the tied embedding.
    Embedding,
    /// All ranks.
    World,
}

impl Axis {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Dp,
        Self::Tp,
        Self::Pp,
        Self::Model,
        Self::Embedding,
        Self::World,
    ];

    /// The name in figures and on lanes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dp => "dp",
            Self::Tp => "tp",
            Self::Pp => "pp",
            Self::Model => "model",
            Self::Embedding => "embedding",
            Self::World => "world",
        }
    }

    /// The axis of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

/// What the ranks of a group do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    /// Every rank gets the sum.
    AllReduce,
    /// Every rank gets its share of the sum.
    ReduceScatter,
    /// Every rank gets all shares.
    AllGather,
}

impl Collective {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
        }
    }

    /// The name in figures.
    pub fn id(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllGather => "all_gather",
        }
    }

    /// How often a ring of `n` goes round, in rounds of `n - 1` steps: an all-reduce is the other two in a row.
    pub fn rounds(self) -> u64 {
        match self {
            Self::AllReduce => 2,
            Self::ReduceScatter | Self::AllGather => 1,
        }
    }

    /// The part of the size that goes over each link, among `n` ranks: `2(n-1)/n` or `(n-1)/n`.
    pub fn bus_share(self, n: usize) -> f64 {
        let n = n.max(1) as f64;
        self.rounds() as f64 * (n - 1.0) / n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(Nanos(17_712_345).to_string(), "17.7 ms");
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Bytes(26_004_684).to_string(), "24.8 MiB");
        assert_eq!(Bytes(12).to_string(), "12 B");
        assert_eq!(percent(3.0 / 11.0), "27.3 %");
        assert_eq!(large(9999.0), "9999");
        assert_eq!(large(1.63e6), "1.63 M");
    }
}

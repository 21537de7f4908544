//! How memory and communication are saved: what a training run may choose beside its degrees.

use serde::{Deserialize, Serialize};

/// The choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct Methods {
    /// What a backward pass computes again instead of keeping it.
    pub recompute: Recompute,
    /// Whether tensor-parallel ranks also share what lies between their matrices, along the sequence.
    pub sequence_parallel: bool,
    /// What data-parallel ranks share instead of each holding all of it.
    pub zero: Zero,
    /// The format in which gradients are kept and reduced, where training is in 16 bits.
    pub grad_dtype: GradFormat,
    /// How attention's core is computed.
    pub attention: Attention,
    /// Data-parallel ranks keep their gradients to themselves, and drift apart: what the all-reduce is for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_sync: bool,
}

/// What a backward pass computes again.
#[cfg_attr(feature = "desktop", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    /// Nothing: all activations are kept.
    #[default]
    None,
    /// Attention's core: scores, softmax and context.
    Selective,
    /// Each layer's whole forward pass, from its input.
    Full,
}

impl Recompute {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selective => "selective",
            Self::Full => "full",
        }
    }
}

/// The stages of `ZeRO` (Rajbhandari 2020).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "u8", try_from = "u8")]
pub enum Zero {
    /// Every replica holds everything.
    #[default]
    Off,
    /// The optimizer's state is shared.
    Optimizer,
    /// Gradients too.
    Gradients,
    /// Parameters too.
    Parameters,
}

impl From<Zero> for u8 {
    fn from(zero: Zero) -> Self {
        match zero {
            Zero::Off => 0,
            Zero::Optimizer => 1,
            Zero::Gradients => 2,
            Zero::Parameters => 3,
        }
    }
}

impl TryFrom<u8> for Zero {
    type Error = String;

    fn try_from(stage: u8) -> Result<Self, String> {
        match stage {
            0 => Ok(Self::Off),
            1 => Ok(Self::Optimizer),
            2 => Ok(Self::Gradients),
            3 => Ok(Self::Parameters),
            _ => Err(format!(
                "there is no ZeRO stage {stage}; there are 0, 1, 2 and 3"
            )),
        }
    }
}

/// A gradient's format.
#[cfg_attr(feature = "desktop", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GradFormat {
    /// 32 bits, as Megatron-LM does.
    #[default]
    F32,
    /// 16 bits.
    Bf16,
}

/// How attention's core is computed.
#[cfg_attr(feature = "desktop", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// Product, softmax, product, each written to memory and read again.
    #[default]
    Unfused,
    /// In one kernel that keeps the scores to itself (`FlashAttention`).
    Fused,
}

/// How tensor-parallel ranks share a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    /// How many there are.
    pub tp: usize,
    /// Whether they share what lies between matrices too.
    pub sequence: bool,
}

impl Slices {
    /// Whether they share it, and are more than one.
    pub fn cuts_sequence(self) -> bool {
        self.sequence && self.tp > 1
    }

    /// By how much what lies between matrices is cut.
    pub fn between(self) -> usize {
        if self.sequence { self.tp } else { 1 }
    }
}

/// Ranks that share matrices only.
impl From<usize> for Slices {
    fn from(tp: usize) -> Self {
        Self {
            tp,
            sequence: false,
        }
    }
}

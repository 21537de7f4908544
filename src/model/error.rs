//! Why a model's computation cannot be done.

use crate::shape::{Bucket, Segment};
use crate::units::Pass;

/// What can go wrong in this layer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The shape is one that this program only costs.
    #[error("the model {name:?} has {what}, which this program can cost but not train")]
    Untrainable {
        /// The model's name.
        name: String,
        /// What it has.
        what: &'static str,
    },
    /// A dimension is not a multiple of the tensor-parallel degree.
    #[error(
        "{what} {size} cannot be cut into {tp} equal parts; legal tensor-parallel degrees divide it"
    )]
    Indivisible {
        /// Which dimension.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The tensor-parallel degree asked for.
        tp: usize,
    },
    /// A tensor that the model needs is not there.
    #[error(
        "the weights lack {0:?}; they must have GPT-2's names with the prefix \"transformer.\""
    )]
    Missing(String),
    /// A tensor that the model does not have.
    #[error("the weights have {0:?}, which the model does not")]
    Unexpected(String),
    /// A tensor of another size than the model's.
    #[error("{name} is {found:?}, but the model's shape makes it {expected:?}")]
    Size {
        /// Whose.
        name: String,
        /// By the model's shape.
        expected: Vec<usize>,
        /// What there is.
        found: Vec<usize>,
    },
    /// A token past the vocabulary.
    #[error("token {token} is past the vocabulary of {vocab}")]
    Token {
        /// The token.
        token: u32,
        /// Distinct tokens of the model.
        vocab: usize,
    },
    /// Tokens in a form that cannot be trained on.
    #[error("unusable tokens: {0}")]
    Tokens(String),
    /// A segment was asked for out of order.
    #[error("{segment:?} of pass {} was computed before {missing} was there", pass.letter())]
    Order {
        /// The pass.
        pass: Pass,
        /// The segment.
        segment: Segment,
        /// What it needs.
        missing: &'static str,
    },
    /// A segment that this stage does not hold.
    #[error("this stage does not hold {0:?}")]
    NotHere(Segment),
    /// A bucket that this stage does not hold.
    #[error("this stage has no gradients {0:?}")]
    NoBucket(Bucket),
    /// Gradients were asked for before any backward pass.
    #[error("{0} has no gradient yet")]
    NoGradient(String),
    /// Something to be taken from a flight is not there.
    #[error("the micro-batch has no {0} to hand on")]
    Nothing(&'static str),
    /// Parts to be reduced or put together do not fit each other.
    #[error("the ranks' parts do not fit together: {0}")]
    Parts(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The tensor library refused.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// The result of this layer's functions.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;

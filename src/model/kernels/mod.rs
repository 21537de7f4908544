//! The transformer's arithmetic on plain slices, one thread each: the caller decides what runs side by side.
//!
//! Every kernel is compiled several times and the best one for the machine is taken at run time
//! ([`simd::kernel`]), so a portable build is a fast one. Sums have a fixed order: on one machine
//! the same inputs give the same bits.
#![expect(
    clippy::inline_always,
    reason = "a helper left out of line is compiled without the caller's instruction set"
)]

pub(crate) mod adamw;
pub(crate) mod attention;
pub(crate) mod embedding;
pub(crate) mod gelu;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod rows;
pub(crate) mod simd;

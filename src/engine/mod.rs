//! Engines: what executes a plan and emits a trace. The same trace, whichever it is.

mod clock;
mod gaps;
mod simulate;

pub use simulate::simulate;

#[cfg(test)]
mod tests;

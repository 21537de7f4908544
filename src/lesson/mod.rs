//! What is learnt by doing: lessons over sessions, and schedules built by hand.

pub mod build;

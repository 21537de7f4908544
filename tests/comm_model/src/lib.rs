//! The communicators and what they need, without the rest of the program.

#[path = "../../../src/comm/mod.rs"]
pub mod comm;
#[cfg(tsan)]
mod seen_locks;
#[path = "../../../src/units.rs"]
pub mod units;
#[cfg(not(loom))]
#[path = "../../../src/wall.rs"]
mod wall;

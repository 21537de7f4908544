//! Ranks that talk: collectives on groups, messages from rank to rank, and what ends them when one fails.
//!
//! A [`Communicator`] is one rank's end. Calls are asynchronous: [`Communicator::start`] joins a collective and gives a
//! [`Ticket`], [`Communicator::wait`] takes its result. Every collective carries a fingerprint (group, sequence
//! number, kind, sizes); where ranks differ, all stop with a [`Fault`] that names them and what each wanted. A rank
//! that panics, fails or stays silent past the time-out stops the others as well: no wait is without an end.
//!
//! [`World`] makes the communicators of ranks that are threads of one process, over shared memory. Absent here:
//! threads (the caller owns them), plans, tensors.

mod buffer;
mod fault;
mod meeting;
mod reduce;
mod shared;
mod sync;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod work;
mod world;

pub use buffer::Buffer;
pub use fault::{Doing, Fault, Wanted};
pub use shared::{SharedComm, World};
pub use world::{Names, WorldSpec};

use crate::units::Nanos;

/// How the elements of several ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// They are added, in the order of the group's members.
    Sum,
    /// The largest is taken.
    Max,
}

/// What a group does together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Every member gets the sum (or the largest) of all.
    AllReduce(Fold),
    /// Member `i` of `n` gets the `i`-th of `n` shares of each part's sum; the rest of its memory stays as it was.
    ReduceScatter,
    /// Every member gets all shares; it brings its own in its place.
    AllGather,
    /// Every member gets what the `root`-th has.
    Broadcast {
        /// Which member, as an index in the group.
        root: u32,
    },
    /// Nobody goes on before all are there.
    Barrier,
}

impl Kind {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce(Fold::Sum) => "all-reduce",
            Self::AllReduce(Fold::Max) => "all-reduce (largest)",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
            Self::Broadcast { .. } => "broadcast",
            Self::Barrier => "barrier",
        }
    }
}

/// How a collective moves its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Each element is read once from every member's memory and written once to it, by whichever thread is free:
    /// the least that memory allows.
    #[default]
    Direct,
    /// Each member's share goes round from member to member, in chunks, as between machines. All-reduces only; sums
    /// are added in the ring's order, so their last bits differ from [`Algorithm::Direct`]'s.
    Ring,
}

/// A collective that a rank joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Of which group, as an index into [`WorldSpec::groups`].
    pub group: u32,
    /// What it does.
    pub kind: Kind,
    /// What it is of, for messages: an operation, named by [`WorldSpec::names`].
    pub what: u32,
}

/// A collective that was joined and is not waited for yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a collective's memory comes back by waiting for it"]
pub struct Ticket {
    pub(in crate::comm) group: u32,
    pub(in crate::comm) sequence: u64,
}

/// A collective that is through.
#[derive(Debug)]
pub struct Done<B> {
    /// The memory that was brought, with the result in it.
    pub buffer: B,
    /// When the last member joined.
    pub began: Nanos,
    /// When the result was there.
    pub ended: Nanos,
}

/// What another rank sent.
#[derive(Debug)]
pub struct Arrival<M> {
    /// What it sent.
    pub message: M,
    /// When.
    pub sent: Nanos,
}

/// One rank's end of a world of ranks.
pub trait Communicator: Send {
    /// Memory that collectives work on.
    type Buffer;
    /// What ranks send one another.
    type Message;

    /// Which rank this is.
    fn rank(&self) -> u32;

    /// Joins a collective and goes on. Calls on a group must come in the same order on all its members.
    ///
    /// # Errors
    /// If another member wants something else as this group's next collective, or a rank has failed.
    fn start(&mut self, call: Call, buffer: Self::Buffer) -> Result<Ticket, Fault>;

    /// Waits until a collective is through.
    ///
    /// # Errors
    /// If a rank failed, or a member has not joined within the time-out.
    fn wait(&mut self, ticket: Ticket) -> Result<Done<Self::Buffer>, Fault>;

    /// Hands a message over, for `to` to take by the same `what`; does not wait.
    ///
    /// # Errors
    /// If a rank has failed.
    fn send(&mut self, to: u32, what: u32, message: Self::Message) -> Result<(), Fault>;

    /// Waits for the message `what` of `from`.
    ///
    /// # Errors
    /// If a rank failed, or nothing came within the time-out.
    fn receive(&mut self, from: u32, what: u32) -> Result<Arrival<Self::Message>, Fault>;

    /// Notes what this rank does now, for others' messages when they wait for it; and tells whether one has failed.
    ///
    /// # Errors
    /// If a rank has failed.
    fn doing(&mut self, what: u32) -> Result<(), Fault>;

    /// Stops all ranks; the first fault is the one that is told.
    fn fail(&mut self, fault: Fault);

    /// Time since the world began.
    fn now(&self) -> Nanos;
}

//! Why ranks stopped.

use std::fmt;

use crate::units::Nanos;

/// A rank and what it did last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// Which.
    pub rank: u32,
    /// What.
    pub what: String,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} ({})", self.rank, self.what)
    }
}

/// What a rank wanted of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which rank.
    pub rank: u32,
    /// The collective's kind.
    pub kind: &'static str,
    /// Its elements.
    pub elements: usize,
    /// What else it may differ in from what others want, such as a broadcast's root; empty if there is nothing.
    pub details: String,
    /// What it is of.
    pub what: String,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank,
            kind,
            elements,
            details,
            what,
        } = self;
        let comma = if details.is_empty() { "" } else { ", " };
        write!(
            f,
            "rank {rank} wants {kind} of {elements} elements{comma}{details} ({what})"
        )
    }
}

/// Why ranks stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Members of a group want different things of it.
    #[error(
        "as collective {sequence} of the group of {}, {}; kind, sizes and order must be the same on every member, \
         or they would wait for one another for ever",
        ranks(members),
        list(wanted)
    )]
    Mismatch {
        /// The group's members.
        members: Vec<u32>,
        /// Which of the group's collectives, from 0.
        sequence: u64,
        /// What each that was there wanted.
        wanted: Vec<Wanted>,
    },
    /// Ranks did not come within the time-out.
    #[error("{waiter} waited {after} for {}; the run was stopped", list(missing))]
    Silent {
        /// Who waited, and in what.
        waiter: Doing,
        /// How long.
        after: Nanos,
        /// For whom, and what they did last.
        missing: Vec<Doing>,
    },
    /// A rank was through while others wait for it.
    #[error(
        "{waiter} waits for {}, which ended without it; the run was stopped",
        list(gone)
    )]
    Gone {
        /// Who waits, and in what.
        waiter: Doing,
        /// For whom, and what they did last.
        gone: Vec<Doing>,
    },
    /// A rank panicked.
    #[error("{0} panicked, so the other ranks were stopped")]
    Panicked(Doing),
    /// A rank's own work failed.
    #[error("{rank}: {why}")]
    Failed {
        /// Who, and in what.
        rank: Doing,
        /// How.
        why: String,
    },
    /// There is no such group, member or ticket.
    #[error("rank {rank} {what}")]
    Misuse {
        /// Who asked.
        rank: u32,
        /// For what.
        what: String,
    },
    /// The run was told to stop.
    #[error("stopped")]
    Stopped,
}

/// "a, b and c".
pub(super) fn list<T: fmt::Display>(of: &[T]) -> String {
    let texts: Vec<String> = of.iter().map(T::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((only, _)) => only.clone(),
        None => "nobody".to_owned(),
    }
}

fn ranks(of: &[u32]) -> String {
    format!(
        "{} {}",
        if of.len() == 1 { "rank" } else { "ranks" },
        list(of)
    )
}

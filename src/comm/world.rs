//! What ranks that are threads share: the collectives and messages under way, who waits for whom, and who is to blame.

use std::collections::{HashMap, VecDeque};
use std::fmt;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

use super::fault::{Doing, Fault};
use super::meeting::Meeting;
use super::sync::{Arc, AtomicBool, AtomicU32, Condvar, Mutex, Ordering, lock};
use super::work::{Progress, Work};
use super::{Algorithm, Arrival};
use crate::units::Nanos;
#[cfg(not(loom))]
use crate::wall::Stopwatch;

/// What ranks call an operation.
pub type Names = Box<dyn Fn(u32) -> String + Send + Sync>;

/// A world to be made.
pub struct WorldSpec {
    /// How many ranks.
    pub ranks: usize,
    /// The members of each group, ascending.
    pub groups: Vec<Vec<u32>>,
    /// How long a rank waits for another before the run is stopped.
    pub timeout: Nanos,
    /// How data moves.
    pub algorithm: Algorithm,
    /// Whether each rank has a core of its own, so that looking again is better than sleeping for a while.
    pub own_cores: bool,
    /// What operations are called.
    pub names: Names,
}

impl fmt::Debug for WorldSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldSpec")
            .field("ranks", &self.ranks)
            .field("groups", &self.groups)
            .field("timeout", &self.timeout)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// A rank has not said what it does.
const NOTHING: u32 = u32::MAX;

/// Wakes a rank.
pub(super) struct Bell {
    /// How often it was rung.
    pub(super) rung: AtomicU32,
    pub(super) condvar: Condvar,
}

/// What all ranks share, under one lock: it is held for a few instructions at a time.
pub(super) struct State<M> {
    pub(super) meetings: HashMap<(u32, u64), Meeting>,
    /// Messages under way: from, to, what.
    pub(super) mail: HashMap<(u32, u32, u32), Arrival<M>>,
    /// Collectives with chunks to be taken.
    pub(super) work: VecDeque<Arc<Work>>,
    /// Ranks that sleep.
    pub(super) asleep: Vec<bool>,
    /// For whom each rank waits.
    pub(super) awaits: Vec<Vec<u32>>,
    /// Ranks that are through.
    pub(super) ended: Vec<bool>,
    pub(super) fault: Option<Fault>,
}

/// A world, of which each rank has an end.
pub(super) struct Shared<M> {
    pub(super) spec: WorldSpec,
    /// The place of each rank in each group.
    pub(super) places: Vec<Vec<Option<usize>>>,
    pub(super) state: Mutex<State<M>>,
    pub(super) bells: Vec<Bell>,
    /// What each rank did last.
    pub(super) doing: Vec<AtomicU32>,
    /// Since when, in nanoseconds: a rank that goes from one operation to the next is not silent.
    #[cfg(not(loom))]
    pub(super) stamps: Vec<AtomicU64>,
    pub(super) failed: AtomicBool,
    #[cfg(not(loom))]
    pub(super) clock: Stopwatch,
}

#[cfg(not(loom))]
impl<M> State<M> {
    /// Those that keep `missing` from coming: ranks that wait for others are not to blame, the others are; all of
    /// them, if they wait for one another.
    pub(super) fn culprits(&self, missing: &[u32]) -> Vec<u32> {
        let mut seen = missing.to_vec();
        let mut at = 0;
        while at < seen.len() {
            let next = self.awaits[seen[at] as usize].iter();
            let new: Vec<u32> = next.filter(|rank| !seen.contains(rank)).copied().collect();
            seen.extend(new);
            at += 1;
        }
        seen.sort_unstable();
        let is_busy = |rank: &&u32| self.awaits[**rank as usize].is_empty();
        let busy: Vec<u32> = seen.iter().filter(is_busy).copied().collect();
        if busy.is_empty() { seen } else { busy }
    }
}

impl Bell {
    fn new() -> Self {
        Self {
            rung: AtomicU32::new(0),
            condvar: Condvar::new(),
        }
    }
}

impl<M> Shared<M> {
    pub(super) fn new(spec: WorldSpec) -> Self {
        let ranks = spec.ranks;
        let place = |rank: usize| {
            let in_group =
                |group: &Vec<u32>| group.iter().position(|&member| member as usize == rank);
            spec.groups.iter().map(in_group).collect()
        };
        Self {
            places: (0..ranks).map(place).collect(),
            state: Mutex::new(State {
                meetings: HashMap::new(),
                mail: HashMap::new(),
                work: VecDeque::new(),
                asleep: vec![false; ranks],
                awaits: vec![Vec::new(); ranks],
                ended: vec![false; ranks],
                fault: None,
            }),
            bells: (0..ranks).map(|_| Bell::new()).collect(),
            doing: (0..ranks).map(|_| AtomicU32::new(NOTHING)).collect(),
            #[cfg(not(loom))]
            stamps: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
            failed: AtomicBool::new(false),
            #[cfg(not(loom))]
            clock: Stopwatch::start(),
            spec,
        }
    }

    pub(super) fn now(&self) -> Nanos {
        #[cfg(not(loom))]
        return self.clock.elapsed();
        #[cfg(loom)]
        Nanos::ZERO
    }

    /// Wakes a rank; the lock is held, so that none falls asleep between looking and sleeping.
    pub(super) fn ring(&self, state: &State<M>, rank: u32) {
        let bell = &self.bells[rank as usize];
        bell.rung.fetch_add(1, Ordering::Release);
        if state.asleep[rank as usize] {
            bell.condvar.notify_one();
        }
    }

    pub(super) fn ring_all(&self, state: &State<M>) {
        for rank in 0..self.bells.len() as u32 {
            self.ring(state, rank);
        }
    }

    pub(super) fn doing(&self, rank: u32) -> Doing {
        let what = self.doing[rank as usize].load(Ordering::Relaxed);
        Doing {
            rank,
            what: if what == NOTHING {
                "before its first operation".to_owned()
            } else {
                (self.spec.names)(what)
            },
        }
    }

    pub(super) fn all_doing(&self, ranks: &[u32]) -> Vec<Doing> {
        ranks.iter().map(|&rank| self.doing(rank)).collect()
    }

    pub(super) fn fail(&self, state: &mut State<M>, fault: Fault) -> Fault {
        let first = state.fault.get_or_insert(fault).clone();
        self.failed.store(true, Ordering::Release);
        self.ring_all(state);
        first
    }

    /// Does chunks of `work`, those of its own lane first, while there are any and `more` says so; the thread that
    /// does the last tells those that wait. Whether it did any.
    pub(super) fn help(&self, work: &Work, rank: u32, more: impl Fn() -> bool) -> bool {
        let place = self.places[rank as usize][work.key.0 as usize];
        let own = place.unwrap_or(rank as usize);
        let mut helped = false;
        while let Some(progress) = work.help(own) {
            helped = true;
            match progress {
                Progress::Under => {}
                Progress::Through => self.end(work.key),
            }
            if !more() {
                break;
            }
        }
        helped
    }

    pub(super) fn end(&self, key: (u32, u64)) {
        let now = self.now();
        let mut state = lock(&self.state);
        if let Some(meeting) = state.meetings.get_mut(&key) {
            meeting.end(now);
        }
        state.work.retain(|work| work.key != key);
        for &member in &self.spec.groups[key.0 as usize] {
            self.ring(&state, member);
        }
    }
}

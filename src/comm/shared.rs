//! Ranks as threads of one process, over shared memory.

use std::fmt;
#[cfg(not(loom))]
use std::time::Duration;

use super::buffer::Buffer;
use super::fault::Fault;
use super::meeting::Meeting;
use super::sync::{Arc, MutexGuard, Ordering, lock};
use super::work::Work;
use super::world::{Bell, Shared, State, WorldSpec};
use super::{Arrival, Call, Communicator, Done, Kind, Ticket};
use crate::units::Nanos;

/// How long a rank with a core of its own looks again before it sleeps.
#[cfg(not(loom))]
const SPIN: Nanos = Nanos(30_000);

/// How often it looks before it lets others run.
#[cfg(not(loom))]
const LOOKS: u32 = 64;

/// The longest that a rank sleeps before it looks whether it has waited too long.
#[cfg(not(loom))]
const NAP: Duration = Duration::from_millis(100);

/// Makes the ends of a world of ranks in this process.
#[derive(Debug)]
pub struct World;

impl World {
    /// One end for each rank.
    pub fn create<M: Send>(spec: WorldSpec) -> Vec<SharedComm<M>> {
        let ranks = spec.ranks;
        let shared = Arc::new(Shared::new(spec));
        let end = |rank| SharedComm {
            rank,
            sequences: vec![0; shared.spec.groups.len()],
            shared: Arc::clone(&shared),
        };
        (0..ranks as u32).map(end).collect()
    }
}

/// A rank's end of a world of threads. Dropped by a panic, it stops the others; dropped otherwise, it says that
/// this rank is through.
pub struct SharedComm<M> {
    rank: u32,
    /// How many collectives of each group this rank has joined.
    sequences: Vec<u64>,
    shared: Arc<Shared<M>>,
}

impl<M> fmt::Debug for SharedComm<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedComm")
            .field("rank", &self.rank)
            .field("sequences", &self.sequences)
            .finish_non_exhaustive()
    }
}

/// What a rank waits for.
struct Awaited<'a, M, T> {
    /// Takes it, once it is there.
    take: &'a mut dyn FnMut(&mut State<M>) -> Option<T>,
    /// The ranks that have not done their part.
    missing: &'a dyn Fn(&State<M>) -> Vec<u32>,
}

impl<M> SharedComm<M> {
    /// Whether a rank has failed, for one that is busy for long.
    ///
    /// # Errors
    /// If one has.
    pub fn check(&self) -> Result<(), Fault> {
        if !self.shared.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let state = lock(&self.shared.state);
        Err(state.fault.clone().unwrap_or(Fault::Stopped))
    }

    fn misuse(&self, what: String) -> Fault {
        let fault = Fault::Misuse {
            rank: self.rank,
            what,
        };
        self.shared.fail(&mut lock(&self.shared.state), fault)
    }

    /// This rank's place in a group.
    fn place(&self, group: u32) -> Result<usize, Fault> {
        let places = &self.shared.places[self.rank as usize];
        let place = places.get(group as usize).copied().flatten();
        place.ok_or_else(|| self.misuse(format!("is not in group {group}")))
    }

    /// Helps others until what is awaited is there.
    fn until<T>(&self, awaited: Awaited<'_, M, T>) -> Result<T, Fault> {
        let Awaited { take, missing } = awaited;
        let since = self.shared.now();
        loop {
            let bell = &self.shared.bells[self.rank as usize];
            let seen = bell.rung.load(Ordering::Acquire);
            self.check()?;
            let work = {
                let mut state = lock(&self.shared.state);
                if let Some(there) = take(&mut state) {
                    state.awaits[self.rank as usize].clear();
                    return Ok(there);
                }
                let missing = missing(&state);
                self.look_for(&mut state, &missing, since)?;
                state.awaits[self.rank as usize] = missing;
                state.work.iter().find(|work| !work.is_taken()).cloned()
            };
            // No longer than nothing has come: that may be what is awaited.
            let more = || bell.rung.load(Ordering::Acquire) == seen;
            if !work.is_some_and(|work| self.shared.help(&work, self.rank, more)) {
                self.rest(seen);
            }
        }
    }

    /// Stops the run if those that are missing will not come, or have not come in time.
    fn look_for(&self, state: &mut State<M>, missing: &[u32], since: Nanos) -> Result<(), Fault> {
        let is_gone = |rank: &&u32| state.ended[**rank as usize];
        let gone: Vec<u32> = missing.iter().filter(is_gone).copied().collect();
        let waiter = || self.shared.doing(self.rank);
        let fault = if !gone.is_empty() {
            Fault::Gone {
                waiter: waiter(),
                gone: self.shared.all_doing(&gone),
            }
        } else if let Some(silent) = self.silent(state, missing, since) {
            Fault::Silent {
                waiter: waiter(),
                after: self.shared.spec.timeout,
                missing: self.shared.all_doing(&silent),
            }
        } else {
            return Ok(());
        };
        Err(self.shared.fail(state, fault))
    }

    /// Who keeps `missing` from coming, if this rank has waited for the time-out and they have begun nothing new in it.
    #[cfg(not(loom))]
    fn silent(&self, state: &State<M>, missing: &[u32], since: Nanos) -> Option<Vec<u32>> {
        let timeout = self.shared.spec.timeout;
        let is_long = |from: Nanos| self.shared.now().since(from) >= timeout;
        if missing.is_empty() || !is_long(since) {
            return None;
        }
        let culprits = state.culprits(missing);
        let stamp = |rank: &u32| self.shared.stamps[*rank as usize].load(Ordering::Relaxed);
        let latest = culprits.iter().map(stamp).max().unwrap_or_default();
        is_long(Nanos(latest)).then_some(culprits)
    }

    /// Time does not pass for the model checker.
    #[cfg(loom)]
    fn silent(&self, _: &State<M>, _: &[u32], _: Nanos) -> Option<Vec<u32>> {
        None
    }

    /// Until this rank's bell was rung after `seen`, or for a while.
    fn rest(&self, seen: u32) {
        let bell = &self.shared.bells[self.rank as usize];
        let is_rung = || bell.rung.load(Ordering::Acquire) != seen;
        #[cfg(not(loom))]
        if self.shared.spec.own_cores && self.spin(&is_rung) {
            return;
        }
        let mut state = lock(&self.shared.state);
        if is_rung() {
            return;
        }
        state.asleep[self.rank as usize] = true;
        let mut state = self.sleep(bell, state);
        state.asleep[self.rank as usize] = false;
    }

    /// Looks again and again for a while, which is sooner than being woken.
    #[cfg(not(loom))]
    fn spin(&self, is_rung: &impl Fn() -> bool) -> bool {
        let since = self.shared.clock.elapsed();
        loop {
            for _ in 0..LOOKS {
                if is_rung() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.shared.clock.elapsed().since(since) >= SPIN {
                return false;
            }
            // Should ranks share a core after all, one that spins keeps from running whom it waits for.
            std::thread::yield_now();
        }
    }

    #[cfg(not(loom))]
    fn sleep<'a>(
        &self,
        bell: &'a Bell,
        state: MutexGuard<'a, State<M>>,
    ) -> MutexGuard<'a, State<M>> {
        let left = Duration::from_nanos(self.shared.spec.timeout.0).min(NAP);
        let woken = bell.condvar.wait_timeout(state, left);
        woken.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    #[cfg(loom)]
    fn sleep<'a>(
        &self,
        bell: &'a Bell,
        state: MutexGuard<'a, State<M>>,
    ) -> MutexGuard<'a, State<M>> {
        let woken = bell.condvar.wait(state);
        woken.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Joins the meeting; the last to come gets what there is to do.
    fn join(
        &self,
        key: (u32, u64),
        call: Call,
        buffer: Buffer,
    ) -> Result<Option<Arc<Work>>, Fault> {
        let place = self.place(call.group)?;
        let members = &self.shared.spec.groups[call.group as usize];
        if let Kind::Broadcast { root } = call.kind
            && root as usize >= members.len()
        {
            let most = members.len();
            return Err(self.misuse(format!("wants a broadcast from member {root} of {most}")));
        }
        let mut state = lock(&self.shared.state);
        let meetings = &mut state.meetings;
        let meeting = meetings
            .entry(key)
            .or_insert_with(|| Meeting::new(members.len()));
        if meeting.join(place, self.rank, call, buffer).is_err() {
            let fault = meeting.mismatch(members, key.1, self.shared.spec.names.as_ref());
            return Err(self.shared.fail(&mut state, fault));
        }
        if !meeting.is_full() {
            return Ok(None);
        }
        let now = self.shared.now();
        let work = meeting.begin(key, call.kind, self.shared.spec.algorithm, now);
        if !work.is_small() {
            state.work.push_back(Arc::clone(&work));
            self.shared.ring_all(&state);
        }
        Ok(Some(work))
    }
}

impl<M: Send> Communicator for SharedComm<M> {
    type Buffer = Buffer;
    type Message = M;

    fn rank(&self) -> u32 {
        self.rank
    }

    fn start(&mut self, call: Call, buffer: Buffer) -> Result<Ticket, Fault> {
        self.check()?;
        let known = self.sequences.get(call.group as usize).copied();
        let sequence =
            known.ok_or_else(|| self.misuse(format!("is not in group {}", call.group)))?;
        let key = (call.group, sequence);
        if let Some(work) = self.join(key, call, buffer)? {
            if work.is_empty() {
                self.shared.end(key);
            } else if work.is_small() {
                self.shared.help(&work, self.rank, || true);
            }
        }
        self.sequences[call.group as usize] += 1;
        Ok(Ticket {
            group: call.group,
            sequence,
        })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Done<Buffer>, Fault> {
        let place = self.place(ticket.group)?;
        let key = (ticket.group, ticket.sequence);
        let is_own = {
            let state = lock(&self.shared.state);
            let meeting = state.meetings.get(&key);
            meeting.is_some_and(|meeting| meeting.holds(place))
        };
        if !is_own {
            return Err(self.misuse("waits for a collective that is not under way".to_owned()));
        }
        let members = &self.shared.spec.groups[ticket.group as usize];
        self.until(Awaited {
            take: &mut |state| {
                let meeting = state.meetings.get_mut(&key)?;
                let done = meeting.take(place)?;
                if meeting.is_over() {
                    state.meetings.remove(&key);
                }
                Some(done)
            },
            missing: &|state| {
                let absent = state.meetings.get(&key).map(|meeting| {
                    let absent = meeting.absent().map(|index| members[index]);
                    absent.collect::<Vec<u32>>()
                });
                absent.unwrap_or_default()
            },
        })
    }

    fn send(&mut self, to: u32, what: u32, message: M) -> Result<(), Fault> {
        self.check()?;
        if to as usize >= self.shared.bells.len() || to == self.rank {
            return Err(self.misuse(format!("sends to rank {to}")));
        }
        let arrival = Arrival {
            message,
            sent: self.shared.now(),
        };
        let mut state = lock(&self.shared.state);
        if state.mail.insert((self.rank, to, what), arrival).is_some() {
            drop(state);
            let name = (self.shared.spec.names)(what);
            return Err(self.misuse(format!("sends {name} twice to rank {to}")));
        }
        self.shared.ring(&state, to);
        Ok(())
    }

    fn receive(&mut self, from: u32, what: u32) -> Result<Arrival<M>, Fault> {
        if from as usize >= self.shared.bells.len() || from == self.rank {
            return Err(self.misuse(format!("receives from rank {from}")));
        }
        let key = (from, self.rank, what);
        self.until(Awaited {
            take: &mut |state| state.mail.remove(&key),
            missing: &|_| vec![from],
        })
    }

    fn doing(&mut self, what: u32) -> Result<(), Fault> {
        self.shared.doing[self.rank as usize].store(what, Ordering::Relaxed);
        #[cfg(not(loom))]
        self.shared.stamps[self.rank as usize].store(self.shared.now().0, Ordering::Relaxed);
        self.check()
    }

    fn fail(&mut self, fault: Fault) {
        self.shared.fail(&mut lock(&self.shared.state), fault);
    }

    fn now(&self) -> Nanos {
        self.shared.now()
    }
}

impl<M> Drop for SharedComm<M> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.ended[self.rank as usize] = true;
        if std::thread::panicking() {
            let panicked = Fault::Panicked(self.shared.doing(self.rank));
            self.shared.fail(&mut state, panicked);
        } else {
            self.shared.ring_all(&state);
        }
    }
}

//! What ranks that talk must do, on real threads: every wait in these tests has an end.
#![expect(
    clippy::panic,
    reason = "a rank that hangs or panics where it must not is a failing test"
)]

mod collectives;
mod faults;
mod late;
mod messages;
mod mixed;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::*;

/// Longer than any test takes, shorter than a patient reader waits.
const LIMIT: Duration = Duration::from_mins(2);

/// What a message is in these tests.
type Message = Vec<f32>;
type Comm = SharedComm<Message>;

/// Parts of a buffer.
type Parts = Vec<Vec<f32>>;

/// A world whose ranks wait for one another for longer than any test takes.
fn world(ranks: usize, groups: &[&[u32]]) -> WorldSpec {
    WorldSpec {
        ranks,
        groups: groups.iter().map(|group| group.to_vec()).collect(),
        timeout: Nanos(10 * LIMIT.as_nanos() as u64),
        algorithm: Algorithm::Direct,
        own_cores: false,
        names: Box::new(|what| format!("op {what}")),
    }
}

/// All ranks in one group.
fn together(ranks: usize) -> WorldSpec {
    let all: Vec<u32> = (0..ranks as u32).collect();
    world(ranks, &[&all])
}

/// Runs each rank on a thread of its own; nothing comes back of a rank that panics.
fn run_any<T: Send + 'static>(
    spec: WorldSpec,
    act: impl Fn(Comm) -> T + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let ranks = spec.ranks;
    let act = Arc::new(act);
    let (sender, results) = sync_channel(ranks);
    let mut threads = Vec::new();
    for comm in World::create(spec) {
        let (act, sender) = (Arc::clone(&act), sender.clone());
        let rank = comm.rank();
        let body = move || {
            let result = act(comm);
            sender.send((rank, result)).unwrap();
        };
        let name = format!("rank {rank}");
        threads.push(thread::Builder::new().name(name).spawn(body).unwrap());
    }
    drop(sender);
    let mut all: Vec<Option<T>> = (0..ranks).map(|_| None).collect();
    loop {
        match results.recv_timeout(LIMIT) {
            Ok((rank, result)) => all[rank as usize] = Some(result),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("a rank hangs"),
        }
    }
    for thread in threads {
        // An error if it panicked, which the lack of a result says too.
        drop(thread.join());
    }
    all
}

/// Runs each rank on a thread of its own.
fn run<T: Send + 'static>(
    spec: WorldSpec,
    act: impl Fn(Comm) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let results = run_any(spec, act).into_iter().enumerate();
    let expect = |(rank, result): (usize, Option<T>)| {
        result.unwrap_or_else(|| panic!("rank {rank} panicked"))
    };
    results.map(expect).collect()
}

/// Ends with the one fault that all ranks end with.
fn fault(
    spec: WorldSpec,
    act: impl Fn(&mut Comm) -> Result<(), Fault> + Send + Sync + 'static,
) -> Fault {
    let results = run(spec, move |mut comm| act(&mut comm));
    let mut faults = results.into_iter().map(Result::unwrap_err);
    let first = faults.next().unwrap();
    for fault in faults {
        assert_eq!(fault, first, "all ranks are told the same");
    }
    first
}

/// Collective `what` of group 0.
fn call(kind: Kind, what: u32) -> Call {
    Call {
        group: 0,
        kind,
        what,
    }
}

const SUM: Kind = Kind::AllReduce(Fold::Sum);

/// Joins a collective and waits for it.
fn collect(comm: &mut Comm, call: Call, buffer: Buffer) -> Result<Buffer, Fault> {
    let ticket = comm.start(call, buffer)?;
    Ok(comm.wait(ticket)?.buffer)
}

/// Lends several stretches of memory, as tensors would.
#[expect(unsafe_code, reason = "several vectors are lent as one buffer")]
fn lend(mut parts: Parts) -> Buffer {
    let stretch = |part: &mut Vec<f32>| {
        let len = part.len();
        (NonNull::new(part.as_mut_ptr()).unwrap(), len)
    };
    let stretches = parts.iter_mut().map(stretch).collect();
    // SAFETY: the vectors go along with the buffer, and nobody else has them.
    unsafe { Buffer::lent(stretches, Box::new(parts)) }
}

fn parts_of(buffer: &Buffer) -> Parts {
    let parts = 0..buffer.lengths().len();
    parts.map(|part| buffer.read(part).to_vec()).collect()
}

fn bits(parts: &Parts) -> Vec<Vec<u32>> {
    let of = |part: &Vec<f32>| part.iter().map(|value| value.to_bits()).collect();
    parts.iter().map(of).collect()
}

/// Numbers that follow from a seed.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Of either sign and very different sizes, so that the order of a sum shows in its last bits.
    fn value(&mut self) -> f32 {
        let mantissa = self.below(2_000_001) as f32 - 1e6;
        mantissa * 2.0_f32.powi(i32::try_from(self.below(24)).expect("small") - 30)
    }

    fn parts(&mut self, lengths: &[usize]) -> Parts {
        let part = |&len: &usize| (0..len).map(|_| self.value()).collect();
        lengths.iter().map(part).collect()
    }
}

/// What every member must have after a collective, computed one member after the other.
fn expected(kind: Kind, members: &[Parts]) -> Vec<Parts> {
    let mut after = members.to_vec();
    for part in 0..members[0].len() {
        let len = members[0][part].len();
        let mut column = Vec::new();
        for at in 0..len {
            column.clear();
            column.extend(members.iter().map(|parts| parts[part][at]));
            for (index, after) in after.iter_mut().enumerate() {
                after[part][at] = expected_at(kind, &column, index, (at, len));
            }
        }
    }
    after
}

/// One element of member `index`.
fn expected_at(kind: Kind, column: &[f32], index: usize, (at, len): (usize, usize)) -> f32 {
    let sum = || column[1..].iter().fold(column[0], |sum, more| sum + more);
    let largest = || {
        let rest = column[1..].iter();
        rest.fold(
            column[0],
            |most, &more| if more > most { more } else { most },
        )
    };
    let has = |member: usize| {
        let of = column.len();
        (len * member / of..len * (member + 1) / of).contains(&at)
    };
    match kind {
        Kind::AllReduce(Fold::Sum) => sum(),
        Kind::AllReduce(Fold::Max) => largest(),
        Kind::ReduceScatter if has(index) => sum(),
        Kind::ReduceScatter | Kind::Barrier => column[index],
        Kind::AllGather => column[(0..column.len()).find(|&member| has(member)).unwrap()],
        Kind::Broadcast { root } => column[root as usize],
    }
}

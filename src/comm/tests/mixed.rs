//! A random mix of calls, again and again: however threads are scheduled, the bits are the same.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::*;

const RANKS: u32 = 4;
const GROUPS: &[&[u32]] = &[
    &[0, 1],
    &[2, 3],
    &[0, 2],
    &[1, 3],
    &[0, 1, 2, 3],
    &[1, 2, 3],
    &[2],
];

/// One thing that happens in the world.
#[derive(Clone, Debug)]
enum Step {
    Collective { call: Call, lengths: Vec<usize> },
    Message { from: u32, to: u32, len: usize },
}

/// What a rank has begun and not yet taken.
enum Open {
    Collective(Ticket),
    Message { from: u32, what: u32 },
}

fn steps(seeded: &mut Seeded) -> Vec<Step> {
    (0..40).map(|what| step(seeded, what)).collect()
}

fn step(seeded: &mut Seeded, what: u32) -> Step {
    if seeded.below(4) == 0 {
        let from = seeded.below(RANKS as usize) as u32;
        let to = (from + 1 + seeded.below(RANKS as usize - 1) as u32) % RANKS;
        let len = seeded.below(50);
        return Step::Message { from, to, len };
    }
    let group = seeded.below(GROUPS.len());
    let root = seeded.below(GROUPS[group].len()) as u32;
    let kind = [
        SUM,
        SUM,
        Kind::AllReduce(Fold::Max),
        Kind::ReduceScatter,
        Kind::AllGather,
        Kind::Broadcast { root },
        Kind::Barrier,
    ][seeded.below(7)];
    let most = [3, 500, 50_000][seeded.below(3)];
    let lengths = (0..seeded.below(4)).map(|_| seeded.below(most)).collect();
    let group = group as u32;
    Step::Collective {
        call: Call { group, kind, what },
        lengths,
    }
}

/// What `rank` brings to a step.
fn brought(rank: u32, step: usize, lengths: &[usize]) -> Parts {
    Seeded(u64::from(rank) << 32 | step as u64).parts(lengths)
}

fn digest(parts: &Parts) -> u64 {
    let mut hasher = DefaultHasher::new();
    bits(parts).hash(&mut hasher);
    hasher.finish()
}

/// What `rank` has of each step after it, computed one step after the other.
fn naive(steps: &[Step], rank: u32) -> Vec<Option<u64>> {
    let each = steps.iter().enumerate().map(|(index, step)| match step {
        Step::Collective { call, lengths } => {
            let members = GROUPS[call.group as usize];
            let place = members.iter().position(|&member| member == rank)?;
            let all = members
                .iter()
                .map(|&member| brought(member, index, lengths));
            let after = expected(call.kind, &all.collect::<Vec<Parts>>());
            Some(digest(&after[place]))
        }
        Step::Message { from, to, len } => {
            (*to == rank).then(|| digest(&brought(*from, index, &[*len])))
        }
    });
    each.collect()
}

/// Does a rank's part of each step, and takes what it has begun sooner or later.
fn act(comm: &mut Comm, steps: &[Step], luck: &mut Seeded) -> Result<Vec<Option<u64>>, Fault> {
    let rank = comm.rank();
    let mut digests = vec![None; steps.len()];
    let mut open: Vec<(usize, Open)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Collective { call, lengths } => {
                if GROUPS[call.group as usize].contains(&rank) {
                    let ticket = comm.start(*call, lend(brought(rank, index, lengths)))?;
                    open.push((index, Open::Collective(ticket)));
                }
            }
            Step::Message { from, to, len } => {
                let (from, what) = (*from, index as u32);
                if from == rank {
                    comm.send(*to, what, brought(rank, index, &[*len]).swap_remove(0))?;
                } else if *to == rank {
                    open.push((index, Open::Message { from, what }));
                }
            }
        }
        while !open.is_empty() && luck.below(3) == 0 {
            let (step, taken) = open.swap_remove(luck.below(open.len()));
            digests[step] = Some(take(comm, taken)?);
        }
    }
    for (step, taken) in open {
        digests[step] = Some(take(comm, taken)?);
    }
    Ok(digests)
}

fn take(comm: &mut Comm, open: Open) -> Result<u64, Fault> {
    let parts = match open {
        Open::Collective(ticket) => parts_of(&comm.wait(ticket)?.buffer),
        Open::Message { from, what } => vec![comm.receive(from, what)?.message],
    };
    Ok(digest(&parts))
}

/// Bits of many repetitions of some random programs, against the naive computation.
fn same_bits(programs: u64, repetitions: u64) {
    for program in 0..programs {
        let steps = Arc::new(steps(&mut Seeded(program)));
        let expected: Vec<_> = (0..RANKS).map(|rank| naive(&steps, rank)).collect();
        for repetition in 0..repetitions {
            let spec = WorldSpec {
                own_cores: repetition % 4 == 3,
                ..world(RANKS as usize, GROUPS)
            };
            let theirs = Arc::clone(&steps);
            let got = run(spec, move |mut comm| {
                let rank = u64::from(comm.rank());
                let mut luck = Seeded(rank << 40 | program << 20 | repetition);
                act(&mut comm, &theirs, &mut luck).unwrap()
            });
            assert!(got == expected, "program {program}, run {repetition}");
        }
    }
}

#[test]
fn two_hundred_runs_of_a_mix_give_the_same_bits() {
    same_bits(5, 40);
}

//! Every order in which a few ranks' steps can come, up to some switches from thread to thread: nobody waits for ever,
//! and whoever has a result has it after all that were at work on it.
#![cfg(loom)]

use comm_model::comm::{
    Algorithm, Buffer, Call, Communicator as _, Fault, Fold, Kind, SharedComm, World, WorldSpec,
};
use comm_model::units::Nanos;
use loom::thread;

type Comm = SharedComm<u32>;

const SUM: Kind = Kind::AllReduce(Fold::Sum);

/// Each rank does `act` on a thread of its own; what that returns is kept until all are through.
fn check<T: 'static>(
    switches: usize,
    ranks: usize,
    act: impl Fn(Comm) -> T + Copy + Send + Sync + 'static,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(move || {
        let mut comms = World::create::<u32>(WorldSpec {
            ranks,
            groups: vec![(0..ranks as u32).collect(), vec![0, 1]],
            timeout: Nanos::ZERO,
            algorithm: Algorithm::Direct,
            own_cores: false,
            names: Box::new(|what| format!("op {what}")),
        });
        let first = comms.remove(0);
        let spawn = |comm| thread::spawn(move || act(comm));
        let others: Vec<_> = comms.into_iter().map(spawn).collect();
        let mut kept = vec![act(first)];
        for other in others {
            kept.push(other.join().expect("no rank panics"));
        }
    });
}

fn collect(comm: &mut Comm, group: u32, kind: Kind, buffer: Buffer) -> Result<Vec<f32>, Fault> {
    let ticket = comm.start(
        Call {
            group,
            kind,
            what: 0,
        },
        buffer,
    )?;
    let done = comm.wait(ticket)?;
    Ok(done.buffer.read(0).to_vec())
}

fn sums(comm: &mut Comm, group: u32, elements: usize) {
    let mine = vec![1.0 + comm.rank() as f32; elements];
    let sum = collect(comm, group, SUM, mine.into());
    assert_eq!(sum, Ok(vec![3.0; elements]));
}

#[test]
fn a_sum_that_one_rank_does() {
    check(4, 2, |mut comm| sums(&mut comm, 0, 1));
}

#[test]
fn a_sum_that_ranks_share() {
    check(4, 2, |mut comm| sums(&mut comm, 0, 2));
}

#[test]
fn two_sums_one_after_the_other() {
    check(3, 2, |mut comm| {
        sums(&mut comm, 0, 2);
        sums(&mut comm, 1, 2);
    });
}

#[test]
fn a_sum_with_the_help_of_a_rank_that_waits_for_a_message() {
    check(2, 3, |mut comm| {
        if comm.rank() == 2 {
            let arrival = comm.receive(0, 1).expect("it is sent");
            assert_eq!(arrival.message, 5);
        } else {
            sums(&mut comm, 1, 2);
            if comm.rank() == 0 {
                comm.send(2, 1, 5).expect("nobody fails");
            }
        }
    });
}

#[test]
fn a_barrier_of_two() {
    check(4, 2, |mut comm| {
        assert_eq!(
            collect(&mut comm, 0, Kind::Barrier, Buffer::empty()),
            Ok(Vec::new())
        );
    });
}

#[test]
fn a_barrier_of_three() {
    check(3, 3, |mut comm| {
        assert_eq!(
            collect(&mut comm, 0, Kind::Barrier, Buffer::empty()),
            Ok(Vec::new())
        );
    });
}

#[test]
fn messages_there_and_back() {
    check(4, 2, |mut comm| {
        let other = 1 - comm.rank();
        comm.send(other, 0, comm.rank()).expect("nobody fails");
        let arrival = comm.receive(other, 0).expect("it is sent");
        assert_eq!(arrival.message, other);
    });
}

#[test]
fn a_fault_reaches_a_rank_that_waits_for_a_message() {
    check(4, 2, |mut comm| {
        if comm.rank() == 0 {
            let told = comm.receive(1, 0).map(|arrival| arrival.message);
            assert_eq!(told, Err(Fault::Stopped));
        } else {
            comm.fail(Fault::Stopped);
        }
        // It does not end, which would ring as well.
        comm
    });
}

#[test]
fn a_fault_reaches_ranks_amid_a_sum() {
    check(3, 3, |mut comm| {
        if comm.rank() == 2 {
            comm.fail(Fault::Stopped);
            return comm;
        }
        let mine = vec![1.0 + comm.rank() as f32; 2];
        let told = collect(&mut comm, 1, SUM, mine.into());
        assert!(told == Ok(vec![3.0; 2]) || told == Err(Fault::Stopped));
        comm
    });
}

#[test]
fn a_rank_that_ends_reaches_one_that_waits_for_it() {
    check(4, 2, |mut comm| {
        if comm.rank() == 0 {
            let told = collect(&mut comm, 0, Kind::Barrier, Buffer::empty());
            assert!(matches!(told, Err(Fault::Gone { .. })));
        }
    });
}

#[test]
fn a_mismatch_reaches_both() {
    check(4, 2, |mut comm| {
        let mine = vec![0.0; 1 + comm.rank() as usize];
        let told = collect(&mut comm, 0, SUM, mine.into());
        assert!(matches!(told, Err(Fault::Mismatch { .. })));
        comm
    });
}

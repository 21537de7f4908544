//! Ranks that come too late: all ranks end, and are told who was late and with what.

use super::*;

/// Time-out of these worlds.
const TIMEOUT: Nanos = Nanos(500_000_000);

fn hasty(spec: WorldSpec) -> WorldSpec {
    WorldSpec {
        timeout: TIMEOUT,
        ..spec
    }
}

/// Ten seconds of operation `what`, or until the run is stopped.
fn dawdle(comm: &mut Comm, what: u32) -> Result<(), Fault> {
    comm.doing(what)?;
    for _ in 0..1000 {
        comm.check()?;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What all are told; who waited is any of `waiters`, whichever ran out of patience first.
fn told(fault: &Fault, waiters: &[&str], late: &str) {
    let text = fault.to_string();
    let expected = |waiter| format!("{waiter} waited 500 ms for {late}; the run was stopped");
    assert!(waiters.iter().any(|w| text == expected(*w)), "{text}");
}

#[test]
fn a_member_that_is_late_for_a_collective_is_named() {
    let fault = fault(hasty(together(4)), |comm| {
        if comm.rank() == 2 {
            return dawdle(comm, 7);
        }
        comm.doing(1)?;
        collect(comm, call(SUM, 1), vec![0.0; 3].into()).map(drop)
    });
    let waiters = ["rank 0 (op 1)", "rank 1 (op 1)", "rank 3 (op 1)"];
    told(&fault, &waiters, "rank 2 (op 7)");
}

#[test]
fn a_rank_that_goes_from_operation_to_operation_is_not_silent() {
    let sums = run(hasty(together(2)), |mut comm| {
        if comm.rank() == 1 {
            // Longer than the time-out in all, and each for less.
            for what in 0..8 {
                comm.doing(what).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        }
        collect(&mut comm, call(SUM, 1), vec![1.0].into()).is_ok()
    });
    assert_eq!(sums, [true, true]);
}

#[test]
fn a_sender_that_is_late_is_named() {
    let fault = fault(hasty(world(2, &[])), |comm| {
        if comm.rank() == 1 {
            return dawdle(comm, 3);
        }
        comm.receive(1, 8).map(drop)
    });
    told(
        &fault,
        &["rank 0 (before its first operation)"],
        "rank 1 (op 3)",
    );
}

#[test]
fn several_that_are_late_are_named() {
    let fault = fault(hasty(together(3)), |comm| {
        if comm.rank() > 0 {
            return dawdle(comm, 10 + comm.rank());
        }
        comm.doing(1)?;
        collect(comm, call(Kind::Barrier, 0), Buffer::empty()).map(drop)
    });
    told(
        &fault,
        &["rank 0 (op 1)"],
        "rank 1 (op 11) and rank 2 (op 12)",
    );
}

#[test]
fn a_rank_that_itself_waits_is_not_to_blame() {
    let fault = fault(hasty(world(4, &[&[0, 1]])), |comm| {
        comm.doing(comm.rank())?;
        match comm.rank() {
            // It runs out of patience first.
            0 => collect(comm, call(SUM, 0), vec![0.0].into()).map(drop),
            1 => {
                comm.receive(2, 1)?;
                comm.receive(2, 0).map(drop)
            }
            2 => {
                thread::sleep(Duration::from_millis(250));
                comm.send(1, 1, Vec::new())?;
                comm.receive(3, 0).map(drop)
            }
            _ => dawdle(comm, 9),
        }
    });
    let waiters = ["rank 0 (op 0)", "rank 1 (op 1)", "rank 2 (op 2)"];
    told(&fault, &waiters, "rank 3 (op 9)");
}

#[test]
fn ranks_that_wait_for_one_another_are_all_named() {
    let fault = fault(hasty(world(3, &[])), |comm| {
        comm.doing(comm.rank())?;
        comm.receive((comm.rank() + 1) % 3, 0).map(drop)
    });
    let all = "rank 0 (op 0), rank 1 (op 1) and rank 2 (op 2)";
    let waiters = ["rank 0 (op 0)", "rank 1 (op 1)", "rank 2 (op 2)"];
    told(&fault, &waiters, all);
}

#[test]
fn a_rank_that_has_been_waited_for_in_time_is_not_blamed_later() {
    let fault = fault(hasty(world(3, &[])), |comm| {
        match comm.rank() {
            // It waited for rank 2 before, and is now late itself.
            1 => {
                comm.receive(2, 0)?;
                dawdle(comm, 5)
            }
            0 => {
                comm.doing(1)?;
                comm.receive(1, 0).map(drop)
            }
            _ => {
                comm.send(1, 0, Vec::new())?;
                dawdle(comm, 6)
            }
        }
    });
    told(&fault, &["rank 0 (op 1)"], "rank 1 (op 5)");
}

#[test]
fn a_rank_in_time_is_waited_for() {
    let spec = WorldSpec {
        timeout: Nanos(20_000_000_000),
        ..together(2)
    };
    run(spec, |mut comm| {
        thread::sleep(Duration::from_millis(300 * u64::from(comm.rank())));
        collect(&mut comm, call(Kind::Barrier, 0), Buffer::empty()).unwrap();
    });
}

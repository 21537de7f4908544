//! Ranks that want different things, fail, end early or ask for what there is not: all ranks end, and are told why.

use super::*;

/// The end of every message on a mismatch.
const SAME: &str = "; kind, sizes and order must be the same on every member, or they would wait for one another \
                    for ever";

/// Joins one collective after the other (rank 0 first), then waits.
fn in_turn(comm: &mut Comm, call: Call, lengths: &[usize]) -> Result<(), Fault> {
    let rank = comm.rank();
    if let Some(before) = rank.checked_sub(1) {
        comm.receive(before, 0)?;
    }
    let parts = lengths.iter().map(|&len| vec![0.0; len]);
    let ticket = comm.start(call, lend(parts.collect()))?;
    if rank < 2 {
        comm.send(rank + 1, 0, Vec::new())?;
    }
    comm.wait(ticket).map(drop)
}

/// Three ranks want these, in turn: what all are told.
fn mismatch(wanted: [(Call, &'static [usize]); 3]) -> String {
    let fault = fault(together(3), move |comm| {
        let (call, lengths) = wanted[comm.rank() as usize];
        in_turn(comm, call, lengths)
    });
    assert!(matches!(fault, Fault::Mismatch { .. }));
    let text = fault.to_string();
    text.strip_suffix(SAME).unwrap_or(&text).to_owned()
}

#[test]
fn other_sizes_end_all_ranks() {
    let sum = call(SUM, 5);
    assert_eq!(
        mismatch([(sum, &[3]), (sum, &[3]), (sum, &[4, 1])]),
        "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants all-reduce of 3 elements (op 5), rank 1 \
         wants all-reduce of 3 elements (op 5) and rank 2 wants all-reduce of 5 elements (op 5)"
    );
}

#[test]
fn other_parts_of_the_same_size_end_all_ranks() {
    let sum = call(SUM, 5);
    assert_eq!(
        mismatch([(sum, &[4, 1, 2]), (sum, &[4, 1, 2]), (sum, &[4, 2, 1])]),
        "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants all-reduce of 7 elements, 1 of them in part \
         1 (op 5), rank 1 wants all-reduce of 7 elements, 1 of them in part 1 (op 5) and rank 2 wants all-reduce of \
         7 elements, 2 of them in part 1 (op 5)"
    );
    assert_eq!(
        mismatch([(sum, &[7]), (sum, &[7]), (sum, &[7, 0])]),
        "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants all-reduce of 7 elements, in 1 part (op 5), \
         rank 1 wants all-reduce of 7 elements, in 1 part (op 5) and rank 2 wants all-reduce of 7 elements, in 2 \
         parts (op 5)"
    );
}

#[test]
fn other_kinds_end_all_ranks() {
    let wanted = [
        (call(SUM, 1), &[8_usize][..]),
        (call(SUM, 1), &[8]),
        (call(Kind::AllGather, 1), &[8]),
    ];
    assert_eq!(
        mismatch(wanted),
        "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants all-reduce of 8 elements (op 1), rank 1 \
         wants all-reduce of 8 elements (op 1) and rank 2 wants all-gather of 8 elements (op 1)"
    );
}

#[test]
fn other_roots_end_all_ranks() {
    let from = |root| (call(Kind::Broadcast { root }, 1), &[8_usize][..]);
    assert_eq!(
        mismatch([from(1), from(1), from(2)]),
        "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants broadcast of 8 elements, from member 1 (op \
         1), rank 1 wants broadcast of 8 elements, from member 1 (op 1) and rank 2 wants broadcast of 8 elements, \
         from member 2 (op 1)"
    );
}

#[test]
fn another_order_ends_all_ranks() {
    let text = fault(together(2), |comm| {
        for round in 0..3 {
            collect(comm, call(SUM, round), vec![0.0; 2].into())?;
        }
        let order = if comm.rank() == 0 { [8, 9] } else { [9, 8] };
        for what in order {
            collect(comm, call(SUM, what), vec![0.0; 2].into())?;
        }
        Ok(())
    });
    assert_eq!(
        text.to_string(),
        format!(
            "as collective 3 of the group of ranks 0 and 1, rank 0 wants all-reduce of 2 elements (op 8) and rank 1 \
             wants all-reduce of 2 elements (op 9){SAME}"
        )
    );
}

#[test]
fn a_mismatch_names_those_that_are_there() {
    let fault = fault(together(3), |comm| {
        if comm.rank() == 2 {
            return comm.receive(0, 0).map(drop);
        }
        let len = 1 + comm.rank() as usize;
        collect(comm, call(SUM, 4), vec![0.0; len].into()).map(drop)
    });
    assert_eq!(
        fault.to_string(),
        format!(
            "as collective 0 of the group of ranks 0, 1 and 2, rank 0 wants all-reduce of 1 elements (op 4) and rank \
             1 wants all-reduce of 2 elements (op 4){SAME}"
        )
    );
}

/// What the others are told when rank 1 panics while each of them is at `act`.
fn panicked(act: impl Fn(&mut Comm) -> Result<(), Fault> + Send + Sync + 'static) {
    let results = run_any(together(3), move |mut comm| {
        if comm.rank() == 1 {
            comm.doing(9).unwrap();
            comm.receive(0, 100).unwrap();
            // As `panic!`, without its text among the tests' own.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        if comm.rank() == 0 {
            comm.send(1, 100, Vec::new()).unwrap();
        }
        act(&mut comm).unwrap_err().to_string()
    });
    let told = Some("rank 1 (op 9) panicked, so the other ranks were stopped".to_owned());
    assert_eq!(results, [told.clone(), None, told]);
}

#[test]
fn a_panic_ends_all_ranks() {
    panicked(|comm| collect(comm, call(SUM, 0), vec![0.0; 2].into()).map(drop));
    panicked(|comm| comm.receive(1, 0).map(drop));
    // A rank that works on its own looks now and then.
    panicked(|comm| {
        loop {
            comm.doing(3)?;
            thread::sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn a_panic_amid_the_work_of_others_frees_nothing_that_is_in_use() {
    let members: &[u32] = &[0, 1, 2];
    for _ in 0..20 {
        let results = run_any(world(4, &[members]), |mut comm| {
            if comm.rank() == 3 {
                comm.receive(0, 0).unwrap();
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            let big = vec![vec![1.0; 400_000]; 3];
            if comm.rank() == 0 {
                comm.send(3, 0, Vec::new()).unwrap();
            }
            // It may be through before the panic, or stopped by it.
            match collect(&mut comm, call(SUM, 0), lend(big)) {
                Ok(sum) => assert_eq!(sum.read(2)[399_999], 3.0),
                Err(fault) => assert!(matches!(fault, Fault::Panicked(_)), "{fault}"),
            }
        });
        assert_eq!(results, [Some(()), Some(()), Some(()), None]);
    }
}

#[test]
fn a_rank_that_ends_early_ends_those_that_wait_for_it() {
    let results = run(together(3), |mut comm| {
        if comm.rank() == 2 {
            comm.doing(6).unwrap();
            comm.receive(0, 0).unwrap();
            return None;
        }
        comm.doing(4).unwrap();
        let ticket = comm.start(call(SUM, 4), vec![0.0; 2].into()).unwrap();
        if comm.rank() == 0 {
            comm.receive(1, 0).unwrap();
            comm.send(2, 0, Vec::new()).unwrap();
        } else {
            comm.send(0, 0, Vec::new()).unwrap();
        }
        Some(comm.wait(ticket).unwrap_err().to_string())
    });
    // Whichever notices first.
    let told = |rank| {
        let text = "(op 4) waits for rank 2 (op 6), which ended without it; the run was stopped";
        format!("rank {rank} {text}")
    };
    assert_eq!(results[0], results[1]);
    let first = results[0].clone().unwrap();
    assert!([told(0), told(1)].contains(&first), "{first}");
}

#[test]
fn a_rank_that_never_sends_ends_who_waits_for_it() {
    let results = run(world(2, &[]), |mut comm| {
        (comm.rank() == 0).then(|| comm.receive(1, 5).unwrap_err().to_string())
    });
    let text = "rank 0 (before its first operation) waits for rank 1 (before its first operation), which ended \
                without it; the run was stopped";
    assert_eq!(results[0].as_deref(), Some(text));
}

/// What rank 0 is told of a call that it must not make; rank 1 is told the same.
fn misuse(act: impl Fn(&mut Comm) -> Result<(), Fault> + Send + Sync + 'static) -> String {
    let spec = world(2, &[&[0, 1], &[1]]);
    let fault = fault(spec, move |comm| {
        if comm.rank() == 1 {
            return comm.receive(0, 1000).map(drop);
        }
        act(comm)
    });
    assert!(matches!(fault, Fault::Misuse { rank: 0, .. }));
    fault.to_string()
}

#[test]
fn groups_that_a_rank_is_not_in_end_all_ranks() {
    let join = |group| {
        misuse(move |comm| {
            let call = Call {
                group,
                ..call(Kind::Barrier, 0)
            };
            comm.start(call, Buffer::empty()).map(drop)
        })
    };
    assert_eq!(join(1), "rank 0 is not in group 1");
    assert_eq!(join(2), "rank 0 is not in group 2");
    let wait = |group| {
        let ticket = move || Ticket { group, sequence: 0 };
        misuse(move |comm| comm.wait(ticket()).map(drop))
    };
    assert_eq!(wait(1), "rank 0 is not in group 1");
    assert_eq!(wait(7), "rank 0 is not in group 7");
}

#[test]
fn tickets_that_are_not_a_ranks_own_end_all_ranks() {
    let text = "rank 0 waits for a collective that is not under way";
    let ticket = |sequence| Ticket { group: 0, sequence };
    assert_eq!(misuse(move |comm| comm.wait(ticket(3)).map(drop)), text);
    // Another rank's, of a collective that this one has not joined, or has had the result of.
    let foreign = fault(together(2), move |comm| {
        if comm.rank() == 1 {
            let _ticket = comm.start(call(SUM, 0), vec![0.0].into())?;
            comm.send(0, 0, Vec::new())?;
            return comm.receive(0, 1).map(drop);
        }
        comm.receive(1, 0)?;
        comm.wait(ticket(0)).map(drop)
    });
    assert_eq!(foreign.to_string(), text);
    let twice = fault(together(2), move |comm| {
        let mine = comm.start(call(SUM, 0), vec![0.0].into())?;
        if comm.rank() == 1 {
            return comm.receive(0, 1).map(drop);
        }
        comm.wait(mine)?;
        comm.wait(ticket(0)).map(drop)
    });
    assert_eq!(twice.to_string(), text);
}

#[test]
fn ranks_that_are_not_there_end_all_ranks() {
    let root = misuse(|comm| {
        let call = call(Kind::Broadcast { root: 2 }, 0);
        comm.start(call, vec![0.0].into()).map(drop)
    });
    assert_eq!(root, "rank 0 wants a broadcast from member 2 of 2");
    let send = |to| misuse(move |comm| comm.send(to, 0, Vec::new()));
    assert_eq!(send(0), "rank 0 sends to rank 0");
    assert_eq!(send(2), "rank 0 sends to rank 2");
    let receive = |from| misuse(move |comm| comm.receive(from, 0).map(drop));
    assert_eq!(receive(0), "rank 0 receives from rank 0");
    assert_eq!(receive(2), "rank 0 receives from rank 2");
}

#[test]
fn a_message_sent_twice_ends_all_ranks() {
    let text = misuse(|comm| {
        comm.send(1, 5, Vec::new())?;
        comm.send(1, 5, Vec::new())
    });
    assert_eq!(text, "rank 0 sends op 5 twice to rank 1");
}

#[test]
fn the_first_fault_is_the_one_that_is_told() {
    let told = run(together(3), |mut comm| {
        if comm.rank() == 0 {
            comm.fail(Fault::Stopped);
            comm.fail(Fault::Misuse {
                rank: 0,
                what: "came second".to_owned(),
            });
            return comm.doing(0).unwrap_err().to_string();
        }
        if comm.rank() == 1 {
            return comm.receive(2, 0).unwrap_err().to_string();
        }
        collect(&mut comm, call(SUM, 0), vec![0.0].into())
            .unwrap_err()
            .to_string()
    });
    assert_eq!(told, ["stopped"; 3]);
}

#[test]
fn nothing_goes_on_after_a_fault() {
    run(together(2), |mut comm| {
        comm.fail(Fault::Failed {
            rank: Doing {
                rank: 0,
                what: "op 1".to_owned(),
            },
            why: "the disk is full".to_owned(),
        });
        let told = "rank 0 (op 1): the disk is full";
        let send = comm.send(1 - comm.rank(), 0, Vec::new());
        assert_eq!(send.unwrap_err().to_string(), told);
        let join = comm.start(call(SUM, 0), vec![0.0].into());
        assert_eq!(join.unwrap_err().to_string(), told);
    });
}

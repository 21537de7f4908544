//! Collectives against a naive computation, bit for bit.

use super::*;

/// Parts of odd lengths: none, one element, fewer than members, more than one chunk, more than is done at once.
const LENGTHS: &[&[usize]] = &[
    &[],
    &[0],
    &[1],
    &[3, 0, 5],
    &[7, 1, 33, 1025],
    &[32_768 + 7],
    &[13, 40_001, 0, 1, 4097],
];

fn kinds(members: usize) -> Vec<Kind> {
    let mut kinds = vec![
        SUM,
        Kind::AllReduce(Fold::Max),
        Kind::ReduceScatter,
        Kind::AllGather,
        Kind::Barrier,
    ];
    kinds.extend((0..members as u32).map(|root| Kind::Broadcast { root }));
    kinds
}

/// What each member brings to a collective.
fn brought(members: usize, seed: u64, lengths: &[usize]) -> Vec<Parts> {
    let of = |member| Seeded(seed * 100 + member as u64).parts(lengths);
    (0..members).map(of).collect()
}

/// Each kind, with buffers of each of these lengths, one after the other in one world.
fn matches_naive(spec: WorldSpec, lengths: &'static [&'static [usize]]) {
    let ranks = spec.ranks;
    let all = kinds(ranks);
    let calls: Vec<(Kind, &[usize])> = lengths
        .iter()
        .flat_map(|&lengths| all.iter().map(move |&kind| (kind, lengths)))
        .collect();
    let calls = Arc::new(calls);
    let theirs = Arc::clone(&calls);
    let results = run(spec, move |mut comm| {
        let each = theirs.iter().enumerate().map(|(index, &(kind, lengths))| {
            let mine = brought(ranks, index as u64, lengths).swap_remove(comm.rank() as usize);
            parts_of(&collect(&mut comm, call(kind, 0), lend(mine)).unwrap())
        });
        each.collect::<Vec<Parts>>()
    });
    for (index, &(kind, lengths)) in calls.iter().enumerate() {
        let expected = expected(kind, &brought(ranks, index as u64, lengths));
        for (rank, expected) in expected.iter().enumerate() {
            let got = bits(&results[rank][index]);
            assert!(
                got == bits(expected),
                "{kind:?} of {lengths:?} among {ranks}: rank {rank} got something else"
            );
        }
    }
}

#[test]
fn every_kind_gives_what_a_naive_computation_gives() {
    for ranks in 1..=8 {
        matches_naive(together(ranks), LENGTHS);
    }
}

#[test]
fn every_kind_gives_the_same_where_each_rank_has_a_core() {
    for ranks in [2, 3] {
        let spec = WorldSpec {
            own_cores: true,
            ..together(ranks)
        };
        matches_naive(spec, LENGTHS);
    }
}

#[test]
fn kinds_that_no_ring_does_are_the_same_with_it() {
    let results = |algorithm| {
        let spec = WorldSpec {
            algorithm,
            ..together(3)
        };
        run(spec, |mut comm| {
            let kinds = [
                Kind::ReduceScatter,
                Kind::AllGather,
                Kind::Broadcast { root: 2 },
            ];
            let each = kinds.map(|kind| {
                let parts = Seeded(u64::from(comm.rank())).parts(&[50_001, 2]);
                bits(&parts_of(
                    &collect(&mut comm, call(kind, 0), lend(parts)).unwrap(),
                ))
            });
            each.to_vec()
        })
    };
    assert!(results(Algorithm::Ring) == results(Algorithm::Direct));
}

#[test]
fn a_ring_differs_from_direct_by_rounding_alone() {
    let lengths: &[usize] = &[13, 40_001, 0, 1, 4097];
    for ranks in 1..=8 {
        let brought = brought(ranks, 1, lengths);
        let spec = WorldSpec {
            algorithm: Algorithm::Ring,
            ..together(ranks)
        };
        let theirs = brought.clone();
        let results = run(spec, move |mut comm| {
            let mine = theirs[comm.rank() as usize].clone();
            let sum = collect(&mut comm, call(SUM, 0), lend(mine.clone())).unwrap();
            let largest =
                collect(&mut comm, call(Kind::AllReduce(Fold::Max), 0), lend(mine)).unwrap();
            (parts_of(&sum), parts_of(&largest))
        });
        let sums = expected(SUM, &brought).swap_remove(0);
        let largest = expected(Kind::AllReduce(Fold::Max), &brought).swap_remove(0);
        for (sum, most) in &results {
            assert!(bits(most) == bits(&largest), "the largest has no rounding");
            assert!(
                bits(sum) == bits(&results[0].0),
                "all members get the same bits"
            );
            close(sum, &sums, &brought);
        }
    }
}

/// Whether sums differ by no more than so many additions may.
fn close(sums: &Parts, expected: &Parts, brought: &[Parts]) {
    for part in 0..sums.len() {
        for at in 0..sums[part].len() {
            let column = brought.iter().map(|parts| parts[part][at].abs());
            let bound = column.sum::<f32>() * f32::EPSILON * brought.len() as f32;
            let off = (sums[part][at] - expected[part][at]).abs();
            assert!(off <= bound, "part {part}, element {at}: off by {off:e}");
        }
    }
}

#[test]
fn a_nan_stays_or_goes_as_in_emulated_ranks() {
    let brought = [
        vec![f32::NAN, 1.0, -0.0, f32::NEG_INFINITY],
        vec![2.0, f32::NAN, 0.0, -1.0],
        vec![3.0, 0.5, -0.0, f32::NAN],
    ];
    let members: Vec<Parts> = brought.iter().map(|part| vec![part.clone()]).collect();
    let kind = Kind::AllReduce(Fold::Max);
    let expected = expected(kind, &members).swap_remove(0);
    assert!(expected[0][0].is_nan());
    let results = run(together(3), move |mut comm| {
        let mine = brought[comm.rank() as usize].clone();
        parts_of(&collect(&mut comm, call(kind, 0), mine.into()).unwrap())
    });
    for result in results {
        assert_eq!(bits(&result), bits(&expected));
    }
}

#[test]
fn memory_comes_back_where_it_was() {
    run(together(2), |mut comm| {
        for len in [10, 200_000] {
            let mine = vec![1.5; len];
            let place = mine.as_ptr();
            let done = collect(&mut comm, call(SUM, 0), mine.into()).unwrap();
            let back = done.into_vec().unwrap();
            assert_eq!(back.as_ptr(), place);
            assert!(back.iter().all(|&value| value == 3.0));
        }
    });
}

#[test]
fn a_collective_begins_once_all_are_there() {
    let times = run(together(3), |mut comm| {
        thread::sleep(Duration::from_millis(10 * u64::from(comm.rank())));
        let joined = comm.now();
        let ticket = comm.start(call(SUM, 0), vec![1.0; 100_000].into()).unwrap();
        let done = comm.wait(ticket).unwrap();
        (joined, done.began, done.ended, comm.now())
    });
    let last = times.iter().map(|time| time.0).max().unwrap();
    for &(_, began, ended, now) in &times {
        assert_eq!((began, ended), (times[0].1, times[0].2));
        assert!(last <= began && began <= ended && ended <= now);
    }
}

/// Two ways of tensor parallelism by three of data parallelism, and all.
const MESH: &[&[u32]] = &[
    &[0, 1],
    &[2, 3],
    &[4, 5],
    &[0, 2, 4],
    &[1, 3, 5],
    &[0, 1, 2, 3, 4, 5],
];

fn own_groups(rank: u32) -> impl Iterator<Item = u32> {
    let groups = MESH.iter().enumerate();
    groups.filter_map(move |(group, members)| members.contains(&rank).then_some(group as u32))
}

#[test]
fn groups_of_a_mesh_keep_apart() {
    let results = run(world(6, MESH), |mut comm| {
        let rank = comm.rank();
        let mut sums = Vec::new();
        for round in 0..20 {
            for group in own_groups(rank) {
                let kind = SUM;
                let mine = vec![(rank + 1) as f32; 1 + 9000 * round];
                let what = group;
                let call = Call { group, kind, what };
                sums.push((
                    group,
                    collect(&mut comm, call, mine.into()).unwrap().read(0)[0],
                ));
            }
        }
        sums
    });
    for (group, sum) in results.into_iter().flatten() {
        let members = MESH[group as usize].iter();
        assert_eq!(sum, members.map(|member| (member + 1) as f32).sum::<f32>());
    }
}

#[test]
fn many_are_under_way_and_waited_for_in_any_order() {
    let results = run(world(6, MESH), |mut comm| {
        let rank = comm.rank();
        let mut tickets = Vec::new();
        for round in 0..12 {
            for group in own_groups(rank) {
                let what = round;
                let kind = SUM;
                let len = [1, 40_000, 5, 100_000][round as usize % 4];
                let mine = vec![(rank + 1) as f32 * (round + 1) as f32; len];
                let call = Call { group, kind, what };
                let ticket = comm.start(call, mine.into()).unwrap();
                tickets.push((group, round, ticket));
            }
        }
        let mut seeded = Seeded(u64::from(rank));
        let mut sums = Vec::new();
        while !tickets.is_empty() {
            let (group, round, ticket) = tickets.swap_remove(seeded.below(tickets.len()));
            let done = comm.wait(ticket).unwrap();
            sums.push((group, round, done.buffer.read(0).to_vec()));
        }
        sums
    });
    for (group, round, sum) in results.into_iter().flatten() {
        let members = MESH[group as usize].iter();
        let one: f32 = members.map(|member| (member + 1) as f32).sum();
        let expected = one * (round + 1) as f32;
        assert!(sum.iter().all(|&value| value == expected));
    }
}

#[test]
fn two_rings_at_once_are_both_helped_with() {
    let spec = WorldSpec {
        algorithm: Algorithm::Ring,
        ..world(4, &[&[0, 1], &[2, 3], &[0, 1, 2, 3]])
    };
    run(spec, |mut comm| {
        let rank = comm.rank();
        for round in 0..30 {
            let group = rank / 2;
            let call = |group| Call {
                group,
                kind: SUM,
                what: round,
            };
            let pair = comm.start(call(group), vec![1.0; 90_001].into()).unwrap();
            let all = comm.start(call(2), vec![1.0; 80_003].into()).unwrap();
            let all = comm.wait(all).unwrap().buffer;
            let pair = comm.wait(pair).unwrap().buffer;
            assert!(pair.read(0).iter().all(|&value| value == 2.0));
            assert!(all.read(0).iter().all(|&value| value == 4.0));
        }
    });
}

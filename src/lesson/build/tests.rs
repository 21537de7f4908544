//! Boards against the textbook, the plan and the engine.

use proptest::prelude::*;

use super::*;
use crate::engine::simulate;
use crate::hardware::PassTimes;
use crate::mesh::Mesh;
use crate::plan::{Job, Load, lower};
use crate::schedule::{Action, Chunks, Schedule, ScheduleKind, Shares};
use crate::units::{Nanos, Pass};

fn action(text: &str) -> Action {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    Action {
        stage: text[..at].parse().unwrap(),
        pass: Pass::from_letter(text.as_bytes()[at].into()).unwrap(),
        micro_batch: text[at + 1..].parse().unwrap(),
    }
}

fn board(level: usize) -> Board {
    Board::new(LADDER[level].clone()).unwrap()
}

/// Places passes on a rank, one after another.
fn play(board: &mut Board, rank: usize, passes: &str) {
    for text in passes.split(' ') {
        board.place(rank, action(text), None).unwrap();
    }
}

/// 1F1B on four ranks with eight micro-batches, move by move: whoever can goes on with the textbook's row.
pub(super) fn one_f_one_b() -> Board {
    let mut board = board(3);
    let (p, m) = (4, 8);
    let rows: Vec<Vec<(Pass, u32)>> = (0..p)
        .map(|rank| {
            let warm_up = p - 1 - rank;
            let forwards = (0..warm_up).map(|micro_batch| (Pass::Forward, micro_batch));
            let pairs = (warm_up..m).flat_map(|micro_batch| {
                [
                    (Pass::Forward, micro_batch),
                    (Pass::Backward, micro_batch - warm_up),
                ]
            });
            let backwards = (m - warm_up..m).map(|micro_batch| (Pass::Backward, micro_batch));
            forwards.chain(pairs).chain(backwards).collect()
        })
        .collect();
    while !board.is_complete() {
        for (rank, row) in rows.iter().enumerate() {
            let Some(&(pass, micro_batch)) = row.get(board.rows()[rank].len()) else {
                continue;
            };
            let stage = rank as u32;
            let next = Action {
                stage,
                pass,
                micro_batch,
            };
            board.place(rank, next, None).ok();
        }
    }
    board
}

fn makespan(schedule: &Schedule) -> Nanos {
    let plan = lower(&Job {
        fold: None,
        mesh: Mesh::new(1, 1, schedule.pp()).unwrap(),
        schedule,
        load: Load::Passes,
    });
    // A unit of the grid is a pass of a chunk.
    simulate(&plan.unwrap(), &PassTimes::unit(1)).makespan
}

#[test]
fn the_ladder_has_the_textbooks_pars() {
    let found: Vec<String> = LADDER
        .iter()
        .map(|level| {
            let references = level.references();
            let named = references
                .iter()
                .map(|reference| format!("{} {}", reference.kind.title(), reference.score));
            let named: Vec<String> = named.collect();
            format!("{}: {}", level.name, named.join(", "))
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
        Two stages: GPipe 9, 1F1B 9
        One micro-batch: GPipe 12, 1F1B 12
        Four micro-batches: GPipe 21, 1F1B 21
        A cap on memory: 1F1B 33
        Two chunks a GPU: Interleaved 1F1B 33, Looped BFS 33
        The backward in two: ZB-H1 20
        Zero bubble: ZB-H2 18, ZB-H1 20
        A V: ZB-V 24
    "#);
}

#[test]
fn one_f_one_b_by_hand_is_the_reference_and_takes_33_units() {
    let board = one_f_one_b();
    assert_eq!((board.score(), board.stars()), (Some(33), Some(3)));
    assert_eq!(board.level().par(), Some(33));
    assert_eq!(
        board.recognise(),
        Likeness::Same(vec![ScheduleKind::OneFOneB])
    );
    let schedule = board.to_schedule().unwrap();
    assert_eq!(schedule, ScheduleKind::OneFOneB.build(4, 8, 1).unwrap());
    assert_eq!(makespan(&schedule), Nanos(33_000_000));
    let figures = board.figures();
    assert_eq!(figures.peaks, [4, 3, 2, 1]);
    assert!((figures.bubble_of_total - 3.0 / 11.0).abs() < 1e-9);
    let path = board.critical_path();
    assert_eq!(path[0].1.start, 0);
    for pair in path.windows(2) {
        assert_eq!(board.end(pair[0].1), pair[1].1.start, "{pair:?}");
    }
    let csv = board.to_csv().unwrap();
    assert_eq!(csv, schedule.to_csv());
    assert_eq!(Board::from_csv(&csv).unwrap().rows(), board.rows());
}

#[test]
fn each_illegal_move_is_told_why() {
    let mut whole = board(3);
    let said = |board: &Board, rank: usize, text: &str| {
        board.why_not(rank, action(text)).unwrap_err().to_string()
    };
    let mut all = vec![
        said(&whole, 1, "1F0"),
        said(&whole, 0, "0B0"),
        said(&whole, 0, "1F0"),
        said(&whole, 0, "0F8"),
        said(&whole, 9, "0F0"),
        said(&whole, 0, "0I0"),
    ];
    play(&mut whole, 0, "0F0 0F1 0F2 0F3");
    play(&mut whole, 1, "1F0");
    all.extend([
        said(&whole, 0, "0F0"),
        said(&whole, 0, "0F4"),
        said(&whole, 0, "0B0"),
        said(&whole, 1, "1B0"),
        whole
            .place(1, action("1F3"), Some(3))
            .unwrap_err()
            .to_string(),
        whole
            .place(1, action("1F1"), Some(u32::MAX))
            .unwrap_err()
            .to_string(),
    ]);
    let ready = whole.why_not(1, action("1F3")).unwrap();
    assert_eq!((ready.start, ready.waits), (4, Some((action("0F3"), 0))));
    whole.place(1, action("1F1"), Some(3)).unwrap();
    all.push(
        whole
            .place(1, action("1F2"), Some(3))
            .unwrap_err()
            .to_string(),
    );
    let mut split = board(5);
    play(&mut split, 0, "0F0");
    play(&mut split, 1, "1F0");
    play(&mut split, 2, "2F0");
    all.extend([said(&split, 2, "2W0"), said(&split, 2, "2B0")]);
    let mut free = Board::new(Level::free(ScheduleKind::OneFOneB, 1, 1, 1).unwrap()).unwrap();
    play(&mut free, 0, "0F0 0B0");
    all.push(said(&free, 0, "0I0"));
    insta::assert_snapshot!(all.join("\n"), @r#"
        F0 of stage 1 needs F0 of stage 0, which GPU 0 has not placed yet.
        B0 of stage 0 needs F0 of the same stage first, which GPU 0 has not placed yet.
        Stage 1 is not GPU 0's: GPU 1 holds it.
        There is no micro-batch 8: there are 8, counted from 0.
        There is no GPU 9: there are 4, counted from 0.
        I0 is not of this level: the backward pass is whole, B.
        F0 of stage 0 is already placed, at 0.
        Memory cap: GPU 0 already holds 4 micro-batches; a backward (B or I) must end before F4 can start.
        B0 of stage 0 needs B0 of stage 1, which GPU 1 has not placed yet.
        B0 of stage 1 needs B0 of stage 2, which GPU 2 has not placed yet.
        F3 of stage 1 cannot start at 3: it needs F3 of stage 0, which GPU 0 has ready at 4.
        Nothing is placed later than 1000000.
        The time is taken: GPU 1 runs F1 from 3 to 4, and F2 would run from 3 to 4.
        W0 of stage 2 needs I0 of the same stage first, which GPU 2 has not placed yet.
        B0 is not of this level: the backward pass is in two, I and then W.
        I0 of stage 0 is no longer needed: B0 is placed, at 1.
    "#);
}

#[test]
fn a_gap_takes_what_fits_and_memory_counts_to_the_end() {
    let mut board = board(5);
    play(&mut board, 0, "0F0 0F1");
    play(&mut board, 1, "1F0");
    play(&mut board, 2, "2F0 2I0");
    play(&mut board, 1, "1I0");
    play(&mut board, 0, "0I0");
    // GPU 0 is idle from 2 to 5.
    assert_eq!(board.rows()[0].last().unwrap().start, 5);
    board.place(0, action("0F2"), Some(3)).unwrap();
    let starts: Vec<u32> = board.rows()[0].iter().map(|placed| placed.start).collect();
    assert_eq!(starts, [0, 1, 3, 5]);
    // There would be four until I0 ends, in memory for three.
    let full = board.place(0, action("0F3"), Some(2)).unwrap_err();
    assert!(matches!(full, Illegal::Memory { holds: 3, .. }), "{full}");
    board.place(0, action("0F3"), None).unwrap();
}

#[test]
fn what_came_of_a_pass_goes_with_it() {
    let mut board = board(0);
    play(&mut board, 0, "0F0 0F1");
    play(&mut board, 1, "1F0 1F1 1B1 1B0");
    play(&mut board, 0, "0B1");
    let before = board.clone();
    board.take_back(0);
    board.take_back(0);
    // F1 is gone, and on the other rank all from F1 on: B0 was behind it.
    assert_eq!((board.rows()[0].len(), board.rows()[1].len()), (1, 1));
    assert!(board.undo() && board.undo());
    assert_eq!(board.rows(), before.rows());
    board.reset();
    assert_eq!(board.placed(), 0);
    assert!(board.undo());
    assert_eq!(board.rows(), before.rows());
}

#[test]
fn hints_lead_to_the_par_from_anywhere_that_leads_there() {
    for level in LADDER {
        let mut board = Board::new(level.clone()).unwrap();
        assert!(!board.hint(Step::Concept).text.is_empty());
        assert!(!board.hint(Step::Principle).text.is_empty());
        while let Some((rank, ready)) = board.hint(Step::Move).next {
            board.place(rank, ready.action, None).unwrap();
        }
        assert_eq!(board.score(), level.par(), "{}", level.name);
        assert_eq!(board.stars(), Some(3));
        assert!(matches!(board.recognise(), Likeness::Same(_)));
    }
}

#[test]
fn hints_say_where_the_way_was_left() {
    let mut board = board(3);
    play(&mut board, 0, "0F5 0F2 0F1");
    // Micro-batches may come in any order.
    let hint = board.hint(Step::Move);
    insta::assert_snapshot!(hint.text, @r#"
        Next, towards 1F1B: GPU 1: F5 at 1, when F5 of GPU 0 is ready.
    "#);
    play(&mut board, 1, "1F2");
    insta::assert_snapshot!(board.hint(Step::Move).text, @"No known schedule can be reached from here: F2 of GPU 1 at 2 is where 1F1B has F5. On your own way: GPU 0: F0 at 3.");
    assert_eq!(board.recognise(), Likeness::Own);
}

#[test]
fn orders_that_wait_in_a_circle_are_refused_with_ranks_and_passes() {
    let circle = "0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0";
    let said = Board::from_csv(circle).unwrap_err().to_string();
    assert!(
        said.contains("wait for each other forever") && said.contains("rank 1"),
        "{said}"
    );
    let overlapping = ScheduleKind::DualPipeV.build(2, 4, 2).unwrap();
    let said = Board::from_schedule(&overlapping).unwrap_err().to_string();
    assert!(said.contains("overlap"), "{said}");
    assert!(Board::from_csv("0F0,1F0").is_err());
    let unfinished = board(0).to_schedule().unwrap_err().to_string();
    assert_eq!(unfinished, "8 passes are still to be placed");
}

#[test]
fn orders_of_ones_own_are_told_by_their_pattern() {
    let of = |csv: &str| Board::from_csv(csv).unwrap().recognise();
    assert_eq!(
        of("0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0"),
        Likeness::ForwardsFirst
    );
    assert_eq!(
        of("0F1,0F0,0B1,0B0\n1F1,1B1,1F0,1B0"),
        Likeness::Renumbered(vec![ScheduleKind::OneFOneB])
    );
    assert_eq!(
        of("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1I0,1F1,1I1,1W1,1W0"),
        Likeness::InTurn { deferred: true }
    );
}

#[test]
fn a_kept_board_comes_back_and_a_broken_one_does_not() {
    let board = one_f_one_b();
    let text = serde_json::to_string(&board).unwrap();
    let back: Board = serde_json::from_str(&text).unwrap();
    assert_eq!(back.rows(), board.rows());
    // The last pass of GPU 0 moved to where another one runs.
    let broken = text.replacen("\"start\":31}", "\"start\":30}", 1);
    assert_ne!(broken, text);
    assert!(serde_json::from_str::<Board>(&broken).is_err());
}

#[test]
fn progress_keeps_the_best() {
    let mut progress = Progress::default();
    assert!(!progress.note(&board(3)));
    let best = one_f_one_b();
    assert!(progress.note(&best) && !progress.note(&best));
    let text = serde_json::to_string(&progress).unwrap();
    let back: Progress = serde_json::from_str(&text).unwrap();
    assert_eq!(back.best("A cap on memory").unwrap().score, 33);
    assert_eq!(back.stars(), 3);
}

#[test]
fn levels_that_cannot_be_are_refused() {
    let free = Level::free;
    let said = free(ScheduleKind::OneFOneB, 0, 4, 1)
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "the number of pipeline ranks is 0, but a board takes from 1 to 32"
    );
    assert!(free(ScheduleKind::Interleaved, 4, usize::MAX, 2).is_err());
    assert!(free(ScheduleKind::Interleaved, 4, 4, usize::MAX).is_err());
    assert!(free(ScheduleKind::ZbV, usize::MAX, 4, 2).is_err());
    let mut lost = LADDER[0].clone();
    lost.ranks = 1;
    assert!(Board::new(lost).is_err());
}

fn kinds() -> impl Strategy<Value = ScheduleKind> {
    prop::sample::select(ScheduleKind::ALL.to_vec())
}

fn levels() -> impl Strategy<Value = Level> {
    let ladder = prop::sample::select(LADDER.to_vec()).prop_map(Level::clone);
    let free = (kinds(), 1usize..5, 1usize..5, 1usize..4)
        .prop_map(|(kind, p, m, v)| Level::free(kind, p, m, v).unwrap());
    prop_oneof![ladder, free]
}

/// Random legal moves until nothing can be placed.
fn wander(board: &mut Board, seeds: &[u16]) {
    for seed in seeds.iter().cycle().take(2_000) {
        let all: Vec<(usize, Ready)> = (0..board.level().ranks)
            .flat_map(|rank| {
                let ready = board.ready_set(rank).into_iter();
                ready.map(move |ready| (rank, ready))
            })
            .collect();
        if all.is_empty() {
            return;
        }
        let (rank, ready) = all[usize::from(*seed) % all.len()];
        board.place(rank, ready.action, None).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_reference_can_be_placed_and_takes_the_textbooks_time(
        kind in kinds(), p in 1usize..7, m in 1usize..13, v in 1usize..4,
    ) {
        let v = if kind.chunks() == Chunks::Loop { v } else { kind.chunks().count() };
        let Ok(schedule) = kind.build(p, m, v) else { return Ok(()) };
        if kind == ScheduleKind::DualPipeV {
            prop_assert!(Board::from_schedule(&schedule).is_err());
            return Ok(());
        }
        let board = Board::from_schedule(&schedule).unwrap();
        prop_assert_eq!(board.to_schedule().unwrap(), schedule.clone());
        let unit = Nanos(v as u64);
        let shares = Shares { forward: unit, input_grad: unit, weight_grad: unit };
        let figures = board.figures();
        if let Some(published) = kind.textbook(p, m, v).makespan(shares) {
            prop_assert_eq!(u64::from(figures.makespan), published.0);
        }
        prop_assert_eq!(Nanos(u64::from(figures.makespan) * 1_000_000), makespan(&schedule));
        for rank in 0..p {
            prop_assert_eq!(figures.peaks[rank], schedule.peak_in_flight(rank));
        }
    }

    #[test]
    fn what_legal_moves_complete_can_run(level in levels(), seeds in prop::collection::vec(any::<u16>(), 8..64)) {
        let mut board = Board::new(level).unwrap();
        wander(&mut board, &seeds);
        prop_assert!(board.is_complete() || board.is_stuck());
        // Only memory can leave somebody stuck.
        prop_assert!(board.is_complete() || board.level().cap.is_some());
        if let Ok(schedule) = board.to_schedule() {
            prop_assert!(check_order(&schedule).is_ok());
            let times = u64::from(board.figures().makespan) * 1_000_000;
            prop_assert_eq!(makespan(&schedule), Nanos(times));
            for rank in 0..board.level().ranks {
                let peak = schedule.peak_in_flight(rank);
                prop_assert!(board.level().cap.is_none_or(|cap| peak <= cap));
            }
            let again = Board::with_order(board.level().clone(), &schedule).unwrap();
            prop_assert_eq!(again.rows(), board.rows());
        }
    }

    #[test]
    fn undo_and_redo_are_inverse(
        level in levels(), moves in prop::collection::vec((any::<u16>(), any::<u8>()), 1..60),
    ) {
        let mut board = Board::new(level).unwrap();
        let mut seen = vec![board.rows().to_vec()];
        for (seed, kind) in moves {
            let rank = usize::from(seed) % board.level().ranks;
            let ready = board.ready_set(rank);
            match kind % 8 {
                0 => { board.take_back(rank); }
                1 => board.reset(),
                _ if ready.is_empty() => {}
                2 => {
                    let next = ready[usize::from(seed) % ready.len()];
                    board.place(rank, next.action, Some(next.start + 3)).unwrap();
                }
                _ => {
                    let next = ready[usize::from(seed) % ready.len()];
                    board.place(rank, next.action, None).unwrap();
                }
            }
            if seen.last() != Some(&board.rows().to_vec()) {
                seen.push(board.rows().to_vec());
            }
        }
        for rows in seen.iter().rev() {
            prop_assert_eq!(board.rows(), rows.as_slice());
            board.undo();
        }
        prop_assert!(!board.undo());
        for rows in &seen {
            prop_assert_eq!(board.rows(), rows.as_slice());
            board.redo();
        }
        prop_assert!(!board.redo());
    }
}

//! Schedules against PyTorch's, and against FACTS.

use super::*;
use crate::mesh::Placement;
use proptest::prelude::*;

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/tests/fixtures/schedules/{name}.csv",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

/// The schedule that a fixture's name stands for: `Interleaved1F1B_pp4_mb8_v2`.
fn named(name: &str) -> Option<Schedule> {
    let mut parts = name.split('_');
    let kind = match parts.next()? {
        "GPipe" => ScheduleKind::GPipe,
        "Interleaved1F1B" => ScheduleKind::Interleaved,
        "LoopedBFS" => ScheduleKind::LoopedBfs,
        "InterleavedZeroBubble" => ScheduleKind::InterleavedZb,
        "ZBVZeroBubble" => ScheduleKind::ZbV,
        "DualPipeV" => ScheduleKind::DualPipeV,
        _ => return None,
    };
    let mut number = |prefix| parts.next()?.strip_prefix(prefix)?.parse().ok();
    let (pp, m) = (number("pp")?, number("mb")?);
    Some(kind.build(pp, m, number("v").unwrap_or(1)).unwrap())
}

#[test]
fn ours_are_pytorchs_action_for_action() {
    let dir = format!("{}/tests/fixtures/schedules", env!("CARGO_MANIFEST_DIR"));
    let mut same = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let ours = named(&name).unwrap_or_else(|| panic!("{name} is no schedule of ours"));
        assert_eq!(
            ours.to_csv().trim_end(),
            fixture(&name).trim_end(),
            "{name}"
        );
        assert_eq!(ours, Schedule::from_csv(&fixture(&name)).unwrap(), "{name}");
        same += 1;
    }
    assert_eq!(same, 16);
}

#[test]
fn every_fixture_is_read_and_written_back() {
    let dir = format!("{}/tests/fixtures/schedules", env!("CARGO_MANIFEST_DIR"));
    let mut read = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let schedule = Schedule::from_csv(&text).unwrap();
        assert_eq!(schedule.to_csv().trim_end(), text.trim_end());
        read += 1;
    }
    assert_eq!(read, 16);
}

#[test]
fn one_f_one_b_reads_like_its_textbook_page() {
    let csv = ScheduleKind::OneFOneB.build(3, 4, 1).unwrap().to_csv();
    insta::assert_snapshot!(csv, @r"
    0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3
    1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3
    2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3
    ");
}

#[test]
fn zero_bubble_reads_like_its_textbook_page() {
    let csv = |kind: ScheduleKind| kind.build(3, 6, 1).unwrap().to_csv();
    insta::assert_snapshot!(csv(ScheduleKind::ZbH1));
    insta::assert_snapshot!(csv(ScheduleKind::ZbH2));
}

#[test]
fn what_a_schedule_cannot_take_is_refused_with_the_nearest_that_it_can() {
    let say = |kind: ScheduleKind, pp, m, v| match kind.build(pp, m, v) {
        Err(error) => error.to_string(),
        Ok(_) => "taken".to_owned(),
    };
    let said = [
        say(ScheduleKind::OneFOneB, 4, 8, 2),
        say(ScheduleKind::ZbV, 4, 8, 3),
        say(ScheduleKind::DualPipeV, 4, 7, 2),
        say(ScheduleKind::Interleaved, 4, 11, 2),
        say(ScheduleKind::InterleavedZb, 2, 7, 2),
        say(ScheduleKind::LoopedBfs, 1000, 1000, 1000),
        say(ScheduleKind::Interleaved, 8, 1 << 15, 64),
        say(ScheduleKind::GPipe, 4, 0, 1),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_is_wrong_is_named() {
    let say = |csv: &str| Schedule::from_csv(csv).unwrap_err().to_string();
    let said = [
        "",
        "0F0,0X0",
        "0F0,0F0,0B0",
        "0F0",
        "0F0,0I0",
        "0B0,0F0",
        "0F0,0W0,0I0",
        "0F0,0B0,1F0\n1F1,1B1",
        "0F0,0B0\n2F0,2B0",
        "0F99999999999,0B0",
        "(0F0;0B0)",
    ]
    .map(say);
    insta::assert_snapshot!(said.join("\n"), @r#"
    the schedule has no rows; it needs one for each pipeline rank
    row 1, cell 2: "0X0" is not an action such as 2F3 or (0F3;3B1)OVERLAP_F_B
    rank 0 runs 0F0 twice
    0B0 is missing: every stage needs, for every micro-batch, F and either B or both I and W
    0W0 is missing: every stage needs, for every micro-batch, F and either B or both I and W
    rank 0 runs 0B0 before 0F0, which it needs
    rank 0 runs 0W0 before 0I0, which it needs
    stage 1 is on rank 0 and again on rank 1; a stage lives on one rank
    1F0 is missing: every stage needs, for every micro-batch, F and either B or both I and W
    row 1, cell 1: "0F99999999999" is not an action such as 2F3 or (0F3;3B1)OVERLAP_F_B
    row 1, cell 1: "(0F0;0B0)" is not an action such as 2F3 or (0F3;3B1)OVERLAP_F_B
    "#);
}

fn kinds() -> impl Strategy<Value = ScheduleKind> {
    prop::sample::select(ScheduleKind::ALL.to_vec())
}

proptest! {
    #[test]
    fn in_flight_is_as_published(kind in kinds(), pp in 2usize..17, m in 1usize..65, v in 1usize..5) {
        let v = if kind.chunks() == Chunks::Loop { v } else { kind.chunks().count() };
        let Ok(schedule) = kind.build(pp, m, v) else { return Ok(()) };
        let page = kind.textbook(pp, m, v);
        let peaks = || (0..pp).map(|rank| schedule.peak_in_flight(rank) as u64);
        let published: Vec<Option<u64>> = (0..pp).map(|rank| page.in_flight(rank)).collect();
        if kind.chunks() == Chunks::Vee {
            // Of these the largest is published.
            prop_assert!(published[0].is_none_or(|most| peaks().max() == Some(most)), "{:?}", peaks().max());
        } else {
            for (ours, published) in peaks().zip(published) {
                prop_assert!(published.is_none_or(|published| ours == published), "{ours}, not {published:?}");
            }
        }
    }

    #[test]
    fn stages_lie_in_loops_or_down_and_back_up(kind in kinds(), pp in 1usize..9, m in 1usize..20, v in 1usize..5) {
        let v = if kind.chunks() == Chunks::Loop { v } else { kind.chunks().count() };
        let Ok(schedule) = kind.build(pp, m, v) else { return Ok(()) };
        prop_assert_eq!(schedule.stages(), pp * v);
        for stage in 0..schedule.stages() {
            let placement = if kind.chunks() == Chunks::Vee { Placement::Vee } else { Placement::Loop };
            prop_assert_eq!(schedule.holder(stage), placement.holder(stage, pp));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9FBIW(),;OVERLAP_ \n]{0,60}") {
        // Must not panic; what is read can be written.
        if let Ok(schedule) = Schedule::from_csv(&text) {
            prop_assert_eq!(&Schedule::from_csv(&schedule.to_csv()).unwrap(), &schedule);
        }
    }
}

#[test]
fn a_rank_with_nothing_to_do_is_written_and_read_as_one() {
    let text = ",\n0F0,0B0\n,,\n1F0,1B0\n";
    let schedule = Schedule::from_csv(text).unwrap();
    assert_eq!(schedule.rows().len(), 4);
    assert_eq!(Schedule::from_csv(&schedule.to_csv()).unwrap(), schedule);
}

//! Schedules against PyTorch's, and against FACTS.

use super::*;
use proptest::prelude::*;

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/tests/fixtures/schedules/{name}.csv",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn gpipe_is_pytorchs_both_ways() {
    for (name, pp, m) in [("GPipe_pp2_mb2", 2, 2), ("GPipe_pp4_mb8", 4, 8)] {
        let ours = ScheduleKind::GPipe.build(pp, m, 1).unwrap();
        let theirs = Schedule::from_csv(&fixture(name)).unwrap();
        assert_eq!(ours, theirs);
        assert_eq!(ours.to_csv().trim_end(), fixture(name).trim_end());
    }
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

proptest! {
    #[test]
    fn in_flight_is_as_published(pp in 1usize..17, m in 1usize..65) {
        let gpipe = ScheduleKind::GPipe.build(pp, m, 1).unwrap();
        let ours = ScheduleKind::OneFOneB.build(pp, m, 1).unwrap();
        for rank in 0..pp {
            prop_assert_eq!(gpipe.peak_in_flight(rank), m);
            prop_assert_eq!(ours.peak_in_flight(rank), m.min(pp - rank));
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

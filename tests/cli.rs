//! The program end to end: figures, files, refusals and exit statuses, as scripts rely on them.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the program in a folder, so that messages hold no paths of this machine.
fn shardscope_in(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

fn shardscope(line: &str) -> Output {
    shardscope_in(Path::new("."), line)
}

fn json_of(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn json(line: &str) -> Value {
    json_of(&shardscope(&format!("{line} --json")))
}

fn stdout(line: &str) -> String {
    let output = shardscope(line);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What is said about input that is refused: exit status 2, and nothing on standard output.
fn refusal_in(folder: &Path, line: &str) -> String {
    let output = shardscope_in(folder, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    said
}

fn refusal(line: &str) -> String {
    refusal_in(Path::new("."), line)
}

fn float(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn unit_costs_give_the_textbooks_bubble() {
    for schedule in ["gpipe", "1f1b"] {
        let report = json(&format!(
            "simulate --costs unit --pp 4 --micro-batches 8 --schedule {schedule}"
        ));
        assert_eq!(float(&report, "makespan_s"), 0.033);
        assert!((float(&report, "bubble_of_total") - 3.0 / 11.0).abs() < 1e-12);
        assert!((float(&report, "bubble_of_ideal") - 3.0 / 8.0).abs() < 1e-12);
    }
}

#[test]
fn the_zero_bubble_papers_rates_come_out() {
    // Column of the table, and the schedule that it is of.
    const COLUMNS: [(usize, &str); 1] = [(7, "1f1b")];
    let table = std::fs::read_to_string("tests/fixtures/zero_bubble_table5_9.csv").unwrap();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [_, pp, micro_batches, f, b, w, comm, ..] = cells[..] else {
            panic!("{line}")
        };
        for (column, schedule) in COLUMNS {
            let report = json(&format!(
                "simulate --schedule {schedule} --pp {pp} --micro-batches {micro_batches} \
                 --costs f={f},b={b},w={w},comm={comm}"
            ));
            let rate = format!("{:.4}", float(&report, "bubble_stage_span"));
            let printed: f64 = cells[column].parse().unwrap();
            assert_eq!(rate, format!("{printed:.4}"), "{schedule}: {line}");
        }
    }
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let report = json("simulate --dp 2 --tp 2 --pp 2 --micro-batches 4");
    assert_eq!(
        keys(&report),
        [
            "bubble_of_ideal",
            "bubble_of_total",
            "bubble_stage_span",
            "clock",
            "config",
            "efficiency",
            "engine",
            "fits",
            "hfu",
            "makespan_s",
            "mfu",
            "pipeline_s",
            "ranks",
            "speedup",
            "steps",
            "times",
            "tokens_per_s",
            "traffic",
        ]
    );
    assert_eq!(
        keys(&report["ranks"][0]),
        [
            "compute_s",
            "dp",
            "idle_s",
            "peak_in_flight",
            "peak_memory_bytes",
            "pp",
            "rank",
            "tp",
            "transfer_s",
            "wait_s",
        ]
    );
    assert_eq!(
        keys(&report["ranks"][0]["peak_memory_bytes"]),
        ["activations", "gradients", "optimizer", "parameters"]
    );
    assert_eq!(
        keys(&report["traffic"][0]),
        [
            "algbw",
            "busbw",
            "bytes",
            "count",
            "group",
            "instances",
            "kind",
            "ranks",
            "time_s",
            "wire_bytes",
        ]
    );
    assert_eq!(report["ranks"].as_array().unwrap().len(), 8);
    assert_eq!(report["clock"], "virtual");
}

#[test]
fn a_ranks_time_is_the_step() {
    let report = json("simulate --dp 2 --tp 2 --pp 4 --micro-batches 8");
    for rank in report["ranks"].as_array().unwrap() {
        let split = ["compute_s", "transfer_s", "wait_s", "idle_s"];
        let sum: f64 = split.iter().map(|key| float(rank, key)).sum();
        assert!((sum - float(&report, "makespan_s")).abs() < 1e-9);
    }
}

#[test]
fn results_go_to_standard_output_and_all_else_to_standard_error() {
    let text = shardscope("simulate --pp 4 --micro-batches 8");
    assert!(text.stdout.is_empty());
    assert!(
        String::from_utf8(text.stderr)
            .unwrap()
            .contains("bubble of total")
    );
    let json = shardscope("simulate --pp 4 --micro-batches 8 --json");
    assert!(json.stderr.is_empty());
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let line = format!(
            "simulate --dp 2 --pp 4 --micro-batches 8 --json --out {name}.json --out {name}.svg --out {name}.csv"
        );
        let output = shardscope_in(folder.path(), &line);
        assert_eq!(output.status.code(), Some(0));
        let files = ["json", "svg", "csv"]
            .map(|ending| std::fs::read(folder.path().join(format!("{name}.{ending}"))).unwrap());
        (output.stdout, files)
    };
    assert!(run("a") == run("b"));
}

#[test]
fn schedules_are_pytorchs() {
    for (name, schedule, pp, micro_batches) in [
        ("GPipe_pp2_mb2", "gpipe", 2, 2),
        ("GPipe_pp4_mb8", "gpipe", 4, 8),
    ] {
        let line =
            format!("schedule --schedule {schedule} --pp {pp} --micro-batches {micro_batches}");
        let fixture =
            std::fs::read_to_string(format!("tests/fixtures/schedules/{name}.csv")).unwrap();
        assert_eq!(stdout(&line).trim(), fixture.trim().replace("\r\n", "\n"));
    }
}

#[test]
fn a_schedule_from_a_file_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let csv = stdout("schedule --schedule 1f1b --pp 4 --micro-batches 8");
    std::fs::write(folder.path().join("own.csv"), &csv).unwrap();
    let again = shardscope_in(folder.path(), "schedule --schedule own.csv");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), csv);
    let own = json_of(&shardscope_in(
        folder.path(),
        "simulate --schedule own.csv --costs unit --json",
    ));
    let known = json("simulate --schedule 1f1b --pp 4 --micro-batches 8 --costs unit");
    assert_eq!(own["ranks"], known["ranks"]);
    insta::assert_snapshot!(refusal_in(folder.path(), "simulate --schedule own.csv --pp 2"), @"");
}

#[test]
fn a_schedule_is_drawn_as_a_grid() {
    insta::assert_snapshot!(stdout("schedule --schedule 1f1b --pp 4 --micro-batches 6 --format text"), @"");
}

#[test]
fn a_schedule_is_drawn_as_a_picture() {
    let svg = stdout("schedule --pp 2 --micro-batches 2 --format svg");
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"));
}

#[test]
fn figures_are_told_in_words() {
    let told = shardscope("simulate --dp 2 --pp 2 --micro-batches 4 --micro-batch-size 4");
    insta::assert_snapshot!(String::from_utf8(told.stderr).unwrap(), @"");
}

#[test]
fn layouts_that_cannot_be_are_refused_with_legal_ones() {
    insta::assert_snapshot!(refusal("simulate --tp 3"), @"");
    insta::assert_snapshot!(refusal("simulate --dp 18 --micro-batch-size 7 --global-batch 256"), @"");
    insta::assert_snapshot!(refusal("simulate --dp 0"), @"");
    insta::assert_snapshot!(refusal("simulate --chunks 2"), @"");
    insta::assert_snapshot!(refusal("run --model gpt3-175b"), @"");
    let folder = tempfile::tempdir().unwrap();
    // Cases from the field, 8.
    let model = "name='big'\nlayers=2\nhidden=6656\nheads=52\nvocab=256\nseq=64\n";
    std::fs::write(folder.path().join("big.toml"), model).unwrap();
    insta::assert_snapshot!(refusal_in(folder.path(), "simulate --model big.toml --tp 8"), @"");
}

#[test]
fn names_that_are_not_known_are_refused() {
    insta::assert_snapshot!(refusal("simulate --model gpt5"), @"");
    insta::assert_snapshot!(refusal("simulate --hardware abacus"), @"");
    insta::assert_snapshot!(refusal("simulate --schedule 2f2b"), @"");
    insta::assert_snapshot!(refusal("simulate --costs f=1,x=2"), @"");
    insta::assert_snapshot!(refusal("simulate --out timeline.gif"), @"");
    insta::assert_snapshot!(refusal("simulate --out no/such/folder/timeline.png"), @"");
    insta::assert_snapshot!(refusal("run --device cuda"), @"");
    insta::assert_snapshot!(refusal("lessen"), @"");
}

#[test]
fn files_that_cannot_be_read_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |line: &str| refusal_in(folder.path(), line);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    insta::assert_snapshot!(refusal("simulate --model none.toml"), @"");
    write("bad.toml", "name = 'x'\nlayers = two\n");
    insta::assert_snapshot!(refusal("simulate --model bad.toml"), @"");
    write("odd.toml", "pp = 2\nmicrobatches = 8\n");
    insta::assert_snapshot!(refusal("simulate --config odd.toml"), @"");
    write("bad.csv", "0F0,0B0\n1F0,1X0\n");
    insta::assert_snapshot!(refusal("schedule --schedule bad.csv"), @"");
    write("other.json", "{\"traceEvents\": []}");
    insta::assert_snapshot!(refusal("view other.json"), @"");
    insta::assert_snapshot!(refusal("view none.json"), @"");
}

#[test]
fn a_configuration_file_has_the_flags_keys_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join("inner").join(name), text).unwrap()
    };
    write(
        "tiny.toml",
        "name='tiny'\nlayers=4\nhidden=32\nheads=4\nvocab=64\nseq=16\n",
    );
    write(
        "config.toml",
        "pp = 4\nmicro-batches = 8\nmodel = 'tiny.toml'\noverlap = 'off'\nprecision = 'bf16'\nseed = 7\nsteps = 3\n",
    );
    let config = |more: &str| {
        let line = format!("simulate --config inner/config.toml --json {more}");
        json_of(&shardscope_in(folder.path(), &line))["config"].clone()
    };
    let plain = config("");
    assert_eq!(
        (&plain["pp"], &plain["micro_batches"]),
        (&4.into(), &8.into())
    );
    assert_eq!(plain["model"]["name"], "tiny");
    assert_eq!(
        (&plain["overlap"], &plain["precision"]),
        (&false.into(), &"bf16".into())
    );
    let won = config("--pp 2 --global-batch 6");
    assert_eq!((&won["pp"], &won["micro_batches"]), (&2.into(), &6.into()));
}

#[test]
fn a_written_timeline_is_viewed_with_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let written = shardscope_in(
        folder.path(),
        "simulate --dp 2 --pp 4 --micro-batches 8 --json --out t.json.gz --out t.csv",
    );
    let viewed = shardscope_in(folder.path(), "view t.json.gz --json --out t.svg");
    assert_eq!(
        String::from_utf8_lossy(&viewed.stdout),
        String::from_utf8_lossy(&written.stdout)
    );
    assert!(folder.path().join("t.svg").exists());
    let spans = json_of(&shardscope_in(folder.path(), "view t.csv --json"));
    assert_eq!(spans["makespan_s"], json_of(&written)["makespan_s"]);
}

#[test]
fn devices_are_told() {
    let devices = json("devices");
    assert!(devices["cores"].as_u64().unwrap() >= 1);
    let names: Vec<_> = devices["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| {
            (
                device["name"].as_str().unwrap(),
                device["available"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(names, [("emulated", true), ("cpu", false), ("cuda", false)]);
}

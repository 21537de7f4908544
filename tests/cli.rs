//! The program end to end: figures, files, refusals and exit statuses, as scripts rely on them.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json as object};

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
    const COLUMNS: [(usize, &str); 3] = [(7, "1f1b"), (9, "zb-h1"), (10, "zb-h2")];
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
            "count",
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
            "size",
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
fn the_same_run_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let line = format!(
            "run --dp 2 --tp 2 --pp 2 --micro-batches 2 --steps 2 --json --out {name}.json \
             --save-weights {name}.safetensors"
        );
        let output = shardscope_in(folder.path(), &line);
        assert_eq!(output.status.code(), Some(0));
        let files = ["json", "safetensors"]
            .map(|ending| std::fs::read(folder.path().join(format!("{name}.{ending}"))).unwrap());
        (output.stdout, files)
    };
    assert!(run("a") == run("b"));
}

#[test]
fn case_7_training_goes_on_at_another_tp() {
    // ColossalAI#817: weights saved at one TP were cut wrongly at another.
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let line = format!("run --micro-batch-size 4 --json {line}");
        json_of(&shardscope_in(folder.path(), &line))
    };
    run("--tp 2 --steps 3 --save-weights half.safetensors");
    let losses = [1, 2, 4, 8].map(|tp| {
        let report = run(&format!("--tp {tp} --steps 1 --weights half.safetensors"));
        float(&report["steps"][0], "loss")
    });
    for loss in losses {
        assert!((loss - losses[0]).abs() < 1e-5, "{losses:?}");
    }
}

#[test]
fn tokens_past_the_vocabulary_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = "name='few'\nlayers=1\nhidden=8\nheads=2\nvocab=3\nseq=8";
    std::fs::write(folder.path().join("few.toml"), model).unwrap();
    let tokens = std::fs::canonicalize("tests/fixtures/gpt_tiny/tokens.safetensors").unwrap();
    std::fs::copy(tokens, folder.path().join("t.safetensors")).unwrap();
    let said = refusal_in(
        folder.path(),
        "run --model few.toml --tokens t.safetensors --micro-batch-size 8",
    );
    assert!(said.contains("unusable tokens"), "{said}");
}

#[test]
fn a_sweep_ranks_layouts_and_tells_their_settings() {
    let line =
        "sweep --gpus 64 --model megatron-18.4b --hardware a100-80gb --global-batch 256 --top 3";
    let found = json(line);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let degree = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(degree("dp") * degree("tp") * degree("pp"), 64);
        assert!(float(row, "step_s") > 0.0 && row["fits"] == true && row["simulated"] == true);
        // What the sweep tells is what a simulation of that layout does.
        let again = json(&format!(
            "simulate --model megatron-18.4b --hardware a100-80gb --dp {} --tp {} --pp {} --chunks {} --schedule {} \
             --micro-batches {} --micro-batch-size {} --recompute {}",
            degree("dp"),
            degree("tp"),
            degree("pp"),
            degree("chunks"),
            row["schedule"].as_str().unwrap(),
            degree("micro_batches"),
            degree("micro_batch_size"),
            row["recompute"].as_str().unwrap()
        ));
        assert_eq!(float(&again, "makespan_s"), float(row, "step_s"));
        assert!((float(&again, "mfu") - float(row, "mfu")).abs() < 1e-12);
    }
    let settings = stdout(&format!("{line} --copy-as torchtitan"));
    assert!(settings.contains("[parallelism]"), "{settings}");
    insta::assert_snapshot!(refusal("sweep --gpus 0"), @"error: --gpus is 0, but must be from 1 to 1048576");
    insta::assert_snapshot!(refusal("sweep --gpus 8 --schedule zb-v"), @"error: sweep takes no --schedule: 1F1B and interleaved 1F1B are swept");
    insta::assert_snapshot!(refusal("sweep --gpus 8 --zero 4"), @"error: there is no ZeRO stage 4; there are 0, 1, 2 and 3");
}

#[test]
fn a_guide_chooses_a_layout_and_says_why() {
    let line = "guide --gpus 16 --model megatron-3.6b --hardware a100-80gb --global-batch 64";
    insta::assert_snapshot!(stdout(line));
    let found = json(line);
    let chosen = &found["chosen"];
    assert!(chosen["fits"] == true && chosen["simulated"] == true);
    // The command that it tells simulates to the step that it tells.
    let command = found["command"].as_str().unwrap();
    let again = json(command.strip_prefix("shardscope ").unwrap());
    assert_eq!(float(&again, "makespan_s"), float(chosen, "step_s"));
    assert_eq!(float(&again, "tokens_per_s"), float(&found, "tokens_per_s"));
    assert!(found["reasons"].as_array().unwrap().len() > 4);
    assert!(found["rejected"].as_array().unwrap().len() >= 3);
    let none = json(&format!(
        "{line} --zero 0 --sequence-parallel=false --recompute none"
    ));
    assert_eq!(none["chosen"]["zero"], 0);
    insta::assert_snapshot!(refusal("guide --gpus 8 --model gpt3-175b --hardware a100-80gb"), @r"
    error: gpt3-175b does not fit 8 × A100 80 GB: what needs least needs 367 GiB of 80.0 GiB a GPU (DP 1 × TP 8 × PP 1, 8 micro-batches of 1, sequence parallel, full recomputation); doubling them, 64 GPUs are the first that would do, with 48.2 GiB a GPU (DP 1 × TP 8 × PP 8, 64 micro-batches of 1, sequence parallel, full recomputation)
    hint: --gpus 64 --global-batch 64
    ");
    insta::assert_snapshot!(refusal("guide --gpus 8 --tp 2"), @"error: guide takes no --tp: it is what is chosen; sweep holds such things fixed");
    insta::assert_snapshot!(refusal("guide --gpus 0"), @"error: --gpus is 0, but must be from 1 to 1048576");
}

#[test]
fn many_ranks_are_told_by_those_that_differ() {
    let report = json("simulate --dp 64 --tp 4 --pp 4 --micro-batches 8");
    let rows = report["ranks"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|rank| rank["count"] == 256));
    let groups: u64 = report["traffic"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["group"] == "tp")
        .map(|row| row["instances"].as_u64().unwrap())
        .sum();
    assert_eq!(groups, 64 * 4);
}

#[test]
fn methods_that_are_costs_only_are_simulated_and_not_trained_with() {
    let full = json("simulate --pp 2 --micro-batches 4 --recompute full");
    let none = json("simulate --pp 2 --micro-batches 4");
    assert!(float(&full, "makespan_s") > float(&none, "makespan_s"));
    assert!(float(&full, "hfu") > float(&full, "mfu"));
    assert_eq!(float(&none, "hfu"), float(&none, "mfu"));
    let memory = |report: &Value| report["ranks"][0]["peak_memory_bytes"]["activations"].as_u64();
    assert!(memory(&full) < memory(&none));
    insta::assert_snapshot!(refusal("run --recompute full --steps 1"), @"error: recomputation can be simulated but not trained with here; leave it out, or use `simulate`");
    insta::assert_snapshot!(refusal("run --dp 2 --zero 3 --steps 1"), @"error: ZeRO 2 or 3 can be simulated but not trained with here; leave it out, or use `simulate`");
}

#[test]
fn a_schedule_of_ones_own_with_chunks_is_trained() {
    let file = "tests/fixtures/schedules/ZBVZeroBubble_pp2_mb4_v2.csv";
    let own = json(&format!(
        "run --schedule {file} --steps 2 --micro-batch-size 2"
    ));
    let known = json("run --schedule zb-v --pp 2 --micro-batches 4 --steps 2 --micro-batch-size 2");
    assert_eq!(own["steps"], known["steps"]);
    assert_eq!(own["ranks"], known["ranks"]);
}

#[test]
fn a_profilers_ranks_are_one_trace_and_come_back_from_our_own_files() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        // The second rank's clock is a second ahead; kernels of no length and of one instant are there too.
        let at = |time: u64| rank * 1_000_000 + time;
        let event = |name: &str, stream: u32, start: u64, length: u64| {
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{},"dur":{length}}}"#,
                at(start)
            )
        };
        let events = [
            event("gemm", 7, 0, 50 + 10 * rank),
            event("k", 7, 90, 0),
            event("k", 7, 90, 0),
            event(
                "ncclDevKernel_AllReduce_Sum_f32",
                20,
                60 + 10 * rank,
                40 - 10 * rank,
            ),
        ];
        let text = format!(
            r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}]}}"#,
            events.join(",")
        );
        std::fs::write(folder.path().join(format!("rank{rank}.json")), text).unwrap();
    }
    let found = json_of(&shardscope_in(
        folder.path(),
        "view rank1.json rank0.json --json --out own.json --out own.pftrace --out own.svg",
    ));
    assert_eq!(found["ranks"][1]["clock_offset_us"], -1_000_000.0);
    assert_eq!(found["ranks"][0]["comm_wait_us"], 10.0);
    assert_eq!(
        (&found["spans"], &found["ranks"][0]["kernels"]),
        (&object!(9), &object!(4))
    );
    for own in ["own.json", "own.pftrace"] {
        let again = json_of(&shardscope_in(folder.path(), &format!("view {own} --json")));
        assert_eq!(again, found, "{own}");
        let said = shardscope_in(folder.path(), &format!("view {own} --text"));
        assert_eq!(said.status.code(), Some(0));
    }
    let refused = shardscope_in(folder.path(), "view own.json rank0.json --text");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn layouts_are_compared_on_one_axis() {
    let line = "compare --pp 4 --micro-batches 8 --costs unit";
    let against = ["--schedule gpipe --micro-batches 16", "--schedule zb-h1"];
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("a.svg");
    let output = Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .args(line.split_whitespace())
        .args(against.iter().flat_map(|options| ["--against", options]))
        .args(["--json", "--out"])
        .arg(&picture)
        .output()
        .unwrap();
    let compared = &json_of(&output)["compared"];
    let names: Vec<&str> = (0..3)
        .map(|index| compared[index]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "DP 1 × TP 1 × PP 4 · 8 micro-batches of 1 · 1F1B",
            "micro-batches 16, GPipe",
            "ZB-H1"
        ]
    );
    // Each as `simulate` tells it.
    let alone = json("simulate --pp 4 --micro-batches 16 --costs unit --schedule gpipe");
    assert_eq!(compared[1]["report"], alone);
    // Options take the place of the first's, and are not added to them.
    let slow = Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .args("compare --dp 4 --slow 3=2 --json".split_whitespace())
        .args(["--against", "--slow 3=4", "--against", "--slow none"])
        .output()
        .unwrap();
    let slow = &json_of(&slow)["compared"];
    let factors = |index: usize| slow[index]["report"]["config"]["disturbance"]["slow"].clone();
    assert_eq!(factors(1)[0]["factor"], 4.0);
    assert_eq!(
        (factors(1).as_array().unwrap().len(), factors(2)),
        (1, Value::Null)
    );
    let svg = std::fs::read_to_string(&picture).unwrap();
    for name in names {
        assert!(svg.contains(name), "{name}");
    }
    insta::assert_snapshot!(refusal("compare --pp 2 --against --foo"), @r#"error: --against "--foo": unexpected argument '--foo' found"#);
    insta::assert_snapshot!(refusal("compare --pp 2 --against --pp=3 --out a.csv"), @"error: a.csv: a comparison is written as a picture: .png, .svg or .pdf; write each timeline's trace by itself");
}

#[test]
fn layers_can_be_put_on_stages_by_hand() {
    let layout = "--pp 4 --micro-batches 4";
    let even = json(&format!("run {layout} --steps 2"));
    let uneven = json(&format!(
        "run {layout} --layers-per-stage 4,2,1,1 --steps 2"
    ));
    let losses = |report: &Value| -> Vec<f64> {
        let steps = report["steps"].as_array().unwrap().iter();
        steps.map(|step| float(step, "loss")).collect()
    };
    for (a, b) in losses(&even).into_iter().zip(losses(&uneven)) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    assert!(float(&uneven, "bubble_of_total") > float(&even, "bubble_of_total"));
    insta::assert_snapshot!(refusal("simulate --pp 3 --layers-per-stage 4,4"), @"error: layers per stage 4, 4 are 8 layers on 2 stages, but the model has 8 and the layout 3; evenly it is 3, 3, 2");
    insta::assert_snapshot!(refusal("simulate --pp 2 --costs unit --layers-per-stage 4,4"), @"error: layers per stage (--layers-per-stage) mean nothing where every stage's passes take a fixed time (--costs); leave out one of the two");
    insta::assert_snapshot!(refusal("sweep --gpus 2 --layers-per-stage 4,4"), @"error: sweep takes no --layers-per-stage: each layout has stages of its own");
}

#[test]
fn a_slow_gpu_is_told_and_one_that_is_not_there_refused() {
    let even = json("simulate --dp 64 --tp 4 --pp 4 --micro-batches 8");
    let slow = json("simulate --dp 64 --tp 4 --pp 4 --micro-batches 8 --slow 5=2");
    assert!(float(&slow, "makespan_s") > float(&even, "makespan_s"));
    let rows = slow["ranks"].as_array().unwrap();
    let gpus: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!((rows.len(), gpus), (16, 1024));
    assert_eq!(slow["config"]["disturbance"]["slow"][0]["rank"], 5);
    let trained = json("run --dp 2 --pp 2 --micro-batches 2 --steps 1 --slow 3=4 --jitter 10");
    assert!(float(&trained, "makespan_s") > 0.0);
    let pair = json("simulate --pp 4 --micro-batches 4 --slow-link 1-2=50");
    let whole = json("simulate --pp 4 --micro-batches 4");
    assert!(float(&pair, "makespan_s") > float(&whole, "makespan_s"));
    assert_eq!(
        pair["config"]["disturbance"]["slow_pairs"][0]["factor"],
        50.0
    );
    insta::assert_snapshot!(refusal("simulate --slow-link 1-1=3"), @r#"error: "1-1=3" is not of the form GPU-GPU=FACTOR, such as 0-4=10, of two GPUs and a factor from 0.01 to 1000"#);
    insta::assert_snapshot!(refusal("simulate --dp 2 --slow 2=2"), @"error: there is no GPU 2 to slow down: the layout has 2, counted from 0");
    insta::assert_snapshot!(refusal("simulate --slow 1:2"), @r#"error: "1:2" is not of the form GPU=FACTOR, such as 3=1.5, with a factor from 0.01 to 1000"#);
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
    insta::assert_snapshot!(refusal_in(folder.path(), "simulate --schedule own.csv --pp 2"), @"error: own.csv: the schedule has pp 4, not 2; leave pp out, or give 4");
}

#[test]
fn a_schedule_is_drawn_as_a_grid() {
    insta::assert_snapshot!(stdout("schedule --schedule 1f1b --pp 4 --micro-batches 6 --format text"), @r#"
    unit     0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26
    rank 0  │F0│F1│F2│F3│ ·  ·  ·  ·  ·  ·│B0   │F4│B1   │F5│B2   │ ·│B3   │ ·│B4   │ ·│B5   │
    rank 1    ·│F0│F1│F2│ ·  ·  ·  ·│B0   │F3│B1   │F4│B2   │F5│B3   │ ·│B4   │ ·│B5   │ ·  ·
    rank 2    ·  ·│F0│F1│ ·  ·│B0   │F2│B1   │F3│B2   │F4│B3   │F5│B4   │ ·│B5   │ ·  ·  ·  ·
    rank 3    ·  ·  ·│F0│B0   │F1│B1   │F2│B2   │F3│B3   │F4│B4   │F5│B5   │ ·  ·  ·  ·  ·  ·
    27 units of time (F = I = W = 1, B = 2); bubble of total 33.3 %, textbook 33.3 %
    "#);
}

#[test]
fn a_schedule_is_drawn_as_a_picture() {
    let svg = stdout("schedule --pp 2 --micro-batches 2 --format svg");
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"));
}

#[test]
fn figures_are_told_in_words() {
    // Hardware of its own, which no one tunes.
    let folder = tempfile::tempdir().unwrap();
    let hardware = "name = 'own'\ntitle = 'own GPU'\nmemory_mib = 96\nmemory_gb_per_s = 40\n\
        gpus_per_node = 4\nprecision = 'f32'\npeak_tflops = { bf16 = 2, f32 = 1 }\n\
        in_node = { latency_us = 5, gb_per_s = 5 }\nbetween_nodes = { latency_us = 15, gb_per_s = 2 }\n\
        [reach]\nproducts = 0.5\nmemory = 1\nlaunch_us = 0\nkernel_us = 2\npass_us = 0\ncollective_us = 0\n\
        collective_memory = 1\nsend_us = 0\n";
    std::fs::write(folder.path().join("own.toml"), hardware).unwrap();
    let line = "simulate --hardware own.toml --dp 2 --pp 2 --micro-batches 4 --micro-batch-size 4";
    let told = shardscope_in(folder.path(), line);
    insta::assert_snapshot!(String::from_utf8(told.stderr).unwrap(), @"
    DP 2 × TP 1 × PP 2 · 4 micro-batches of 4 · 1F1B
    nano, 1.63 M parameters · 4 × own GPU, f32 · simulated

      step                          29.2 ms  all ranks, synchronisation and optimizer included
      pipeline                      28.3 ms  to the end of a replica's last pass
      throughput            70.2 k tokens/s  of all ranks together
      MFU                            18.3 %  model FLOPs over 4 × 1.00 TFLOP/s (f32)
      speed-up                       3.08 ×  one GPU with the same batch; efficiency 77.1 %
      bubble of total                21.4 %  idle / pipeline time
      bubble of ideal                27.3 %  idle / time of all passes
      bubble of stage span           24.1 %  largest (span - work) / span of a stage, as in the zero-bubble paper
      peak memory                  30.7 MiB  fullest rank, of 96.0 MiB: fits

      rank  dp  tp  pp  compute ms  transfer ms  waiting ms  idle ms  in flight  peak memory
         0   0   0   0        22.1         0.38        0.00     6.70          2     30.7 MiB
         1   1   0   0        22.1         0.38        0.00     6.70          2     30.7 MiB
         2   0   0   1        23.5         0.08        0.21     5.41          1     22.0 MiB
         3   1   0   1        23.5         0.08        0.21     5.41          1     22.0 MiB

      group      kind        ranks  groups alike  count      size  on the wire     time  bus bandwidth
      dp         all-reduce  2,3               1      5  3.15 MiB     6.30 MiB   794 µs      4.16 GB/s
      dp         all-reduce  0,1               1      5  3.18 MiB     6.36 MiB   801 µs      4.17 GB/s
      pp         send-recv   0,2               2      8  1.00 MiB     1.00 MiB   250 µs      4.20 GB/s
      model      all-reduce  0,2               2      1       4 B          8 B  10.0 µs      0.40 MB/s
      embedding  all-reduce  0,2               2      1   128 KiB      256 KiB  39.5 µs      3.32 GB/s
    ");
}

#[test]
fn layouts_that_cannot_be_are_refused_with_legal_ones() {
    insta::assert_snapshot!(refusal("simulate --tp 3"), @"error: tp 3 does not divide the model's 8 heads: each rank holds whole heads; legal tp: 1, 2, 4, 8");
    insta::assert_snapshot!(refusal("simulate --dp 18 --micro-batch-size 7 --global-batch 256"), @"error: global batch 256 is not a multiple of dp x micro-batch size = 18 x 7 = 126: each of the 18 replicas takes whole micro-batches; nearest legal: 252, 378");
    insta::assert_snapshot!(refusal("simulate --dp 0"), @"error: dp is 0, but every degree counts GPUs and is at least 1; use 1 to leave dp out");
    insta::assert_snapshot!(refusal("simulate --chunks 2"), @"error: 1F1B holds one chunk a rank, not 2; use --chunks 1");
    insta::assert_snapshot!(refusal("run --model gpt3-175b"), @"error: training gpt3-175b this way for real would take some 2.80 TiB for all ranks, over the 12.0 GiB that emulation takes; use a smaller model such as nano or mini, fewer replicas, smaller or fewer micro-batches, or `simulate` for the figures alone");
    let folder = tempfile::tempdir().unwrap();
    // Cases from the field, 8.
    let model = "name='big'\nlayers=2\nhidden=6656\nheads=52\nvocab=256\nseq=64\n";
    std::fs::write(folder.path().join("big.toml"), model).unwrap();
    insta::assert_snapshot!(refusal_in(folder.path(), "simulate --model big.toml --tp 8"), @"error: tp 8 does not divide the model's 52 heads: each rank holds whole heads; legal tp: 1, 2, 4, 13, 26, 52");
}

#[test]
fn names_that_are_not_known_are_refused() {
    insta::assert_snapshot!(refusal("simulate --model gpt5"), @r#"error: no model preset is called "gpt5"; there are nano, mini, gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt3-175b, megatron-1.7b, megatron-3.6b, megatron-7.5b, megatron-18.4b, megatron-39.1b, megatron-76.1b, megatron-145.6b, megatron-310.1b, megatron-529.6b, megatron-1008b, llama2-7b, llama2-13b, llama2-70b, llama3-8b, llama3-70b, llama3-405b, or give a .toml file or a Hugging Face config.json"#);
    insta::assert_snapshot!(refusal("simulate --hardware abacus"), @r#"error: no hardware is called "abacus"; there are classroom, v100, a100-40gb, a100-80gb, h100, h200, b200, mi300x, rtx4090, l4, or give a .toml file"#);
    insta::assert_snapshot!(refusal("simulate --schedule 2f2b"), @r#"error: no schedule is called "2f2b"; there are gpipe, 1f1b, interleaved-1f1b, looped-bfs, zb-h1, zb-h2, interleaved-zb, zb-v, dualpipe-v, or give a .csv file"#);
    insta::assert_snapshot!(refusal("simulate --costs f=1,x=2"), @r#"
    error: --costs "f=1,x=2": "x" is none of f, i (or b), w and comm
    hint: write model, unit, or the passes in ms as f=18.5,i=18.1,w=9.3,comm=0.6 (comm is 0 if left out)
    "#);
    insta::assert_snapshot!(refusal("simulate --out timeline.bmp"), @"error: cannot tell the format of timeline.bmp: its ending is none of .png, .svg, .pdf, .gif, .apng, .json, .json.gz, .pftrace, .csv; add one of them");
    insta::assert_snapshot!(refusal("simulate --out no/such/folder/timeline.png"), @"error: cannot write no/such/folder/timeline.png: there is no folder no/such/folder");
    insta::assert_snapshot!(refusal("run --device cuda"), @"error: ranks on GPUs (--device cuda) are not in this build; --device emulated does the same training on this machine's cores, and --device cpu with a thread a rank");
    insta::assert_snapshot!(refusal("spectate"), @"
    error: unrecognized subcommand 'spectate'

    Usage: shardscope [OPTIONS] [COMMAND]

    For more information, try '--help'.
    ");
}

#[test]
fn files_that_cannot_be_read_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |line: &str| refusal_in(folder.path(), line);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    insta::assert_snapshot!(refusal("simulate --model none.toml"), @"error: cannot read none.toml: No such file or directory (os error 2)");
    write("bad.toml", "name = 'x'\nlayers = two\n");
    insta::assert_snapshot!(refusal("simulate --model bad.toml"), @r#"
    error: bad.toml: not a model file: TOML parse error at line 2, column 10
      |
    2 | layers = two
      |          ^^^
    invalid boolean, expected `true`
    "#);
    write("odd.toml", "pp = 2\nmicrobatches = 8\n");
    insta::assert_snapshot!(refusal("simulate --config odd.toml"), @"
    error: odd.toml: not a configuration: TOML parse error at line 2, column 1
      |
    2 | microbatches = 8
      | ^^^^^^^^^^^^
    unknown field `microbatches`, expected one of `dp`, `tp`, `pp`, `micro-batches`, `micro-batch-size`, `global-batch`, `schedule`, `chunks`, `model`, `hardware`, `precision`, `overlap`, `recompute`, `sequence-parallel`, `zero`, `grad-dtype`, `attention`, `no-sync`, `layers-per-stage`, `slow`, `slow-link`, `jitter`, `seed`, `steps`, `clock`, `costs`
    ");
    write("bad.csv", "0F0,0B0\n1F0,1X0\n");
    insta::assert_snapshot!(refusal("schedule --schedule bad.csv"), @r#"error: bad.csv: row 2, cell 2: "1X0" is not an action such as 2F3 or (0F3;3B1)OVERLAP_F_B"#);
    write("other.json", "{\"traceEvents\": []}");
    insta::assert_snapshot!(refusal("view other.json --text"), @"error: cannot read other.json: no trace events are in other.json; give a trace of PyTorch's profiler, or another in Chrome's JSON format");
    insta::assert_snapshot!(refusal("view none.json --text"), @"error: cannot read none.json: No such file or directory (os error 2); check that the file exists and is whole");
}

#[test]
fn a_configuration_file_has_the_flags_keys_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join("inner").join(name), text).unwrap();
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
    assert!(same(&json_of(&viewed), &json_of(&written)));
    assert!(folder.path().join("t.svg").exists());
    let spans = json_of(&shardscope_in(folder.path(), "view t.csv --json"));
    assert_eq!(spans["makespan_s"], json_of(&written)["makespan_s"]);
}

/// Equal but for the last digit, which reading a number as text may cost.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-14 * one.abs()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// The fixture that PyTorch trained in float64, as a model file.
fn tiny_model(folder: &Path) -> Value {
    let text = std::fs::read_to_string("tests/fixtures/gpt_tiny/expected.json").unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let size = |key: &str| format!("{key} = {}\n", expected[key]);
    let sizes: String = ["layers", "hidden", "heads", "vocab", "seq"]
        .map(size)
        .concat();
    let optimizer =
        "[optimizer]\nlr = 0.001\nbeta1 = 0.9\nbeta2 = 0.95\neps = 1e-8\nweight_decay = 0.1\n";
    std::fs::write(
        folder.join("tiny.toml"),
        format!("name = 'tiny'\n{sizes}{optimizer}"),
    )
    .unwrap();
    for name in ["weights", "tokens"] {
        let file = format!("{name}.safetensors");
        std::fs::copy(format!("tests/fixtures/gpt_tiny/{file}"), folder.join(file)).unwrap();
    }
    expected
}

#[test]
fn a_run_trains_as_pytorch_does() {
    let folder = tempfile::tempdir().unwrap();
    let expected = tiny_model(folder.path());
    let inputs = "--model tiny.toml --weights weights.safetensors --tokens tokens.safetensors";
    for layout in [
        "--micro-batches 2 --micro-batch-size 4",
        "--dp 2 --tp 2 --pp 2 --micro-batches 2 --micro-batch-size 2 --save-weights w.st --save-gradients g.st",
    ] {
        let line = format!("run {inputs} {layout} --json");
        let report = json_of(&shardscope_in(folder.path(), &line));
        let steps = report["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 10);
        for (index, step) in steps.iter().enumerate() {
            let loss = expected["losses"][index].as_f64().unwrap();
            assert!(
                (float(step, "loss") - loss).abs() < 1e-5,
                "{layout}, step {index}"
            );
            let norm = expected["grad_norms"][index].as_f64().unwrap();
            assert!(
                (float(step, "grad_norm") / norm - 1.0).abs() < 1e-4,
                "{layout}, step {index}"
            );
        }
    }
    assert!(folder.path().join("w.st").exists() && folder.path().join("g.st").exists());
    let other_batch = refusal_in(folder.path(), &format!("run {inputs} --micro-batches 3"));
    insta::assert_snapshot!(other_batch, @"error: the tokens are for a global batch of 8, but dp x micro-batches x micro-batch size = 3; choose degrees whose product is 8");
    let more_steps = refusal_in(
        folder.path(),
        &format!("run {inputs} --micro-batches 8 --steps 11"),
    );
    insta::assert_snapshot!(more_steps, @"error: the tokens are of 10 steps; ask for at most as many with --steps");
}

#[test]
fn a_run_is_reproducible_and_keeps_the_simulated_time() {
    let layout = "--dp 2 --pp 2 --micro-batches 2";
    let line = format!("run {layout} --steps 2 --json");
    let first = shardscope(&line);
    assert_eq!(first.stdout, shardscope(&line).stdout);
    let (run, simulated) = (json_of(&first), json(&format!("simulate {layout}")));
    assert_eq!(
        (&run["engine"], &run["times"]),
        (&"emulated".into(), &"simulated".into())
    );
    for key in ["makespan_s", "ranks", "traffic", "bubble_of_total"] {
        assert_eq!(run[key], simulated[key]);
    }
    let measured = json(&format!("run {layout} --steps 2 --clock measured"));
    assert_eq!(measured["times"], "measured");
    assert_eq!(measured["steps"][1]["loss"], run["steps"][1]["loss"]);
}

#[test]
fn what_fails_on_the_way_has_another_status_than_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("taken.svg")).unwrap();
    let output = shardscope_in(folder.path(), "simulate --out taken.svg");
    assert_eq!(output.status.code(), Some(1));
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
    assert_eq!(names, [("emulated", true), ("cpu", true), ("cuda", false)]);
}

#[test]
fn pictures_are_of_the_size_and_in_the_colours_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &str| shardscope_in(folder.path(), args);
    let made =
        run("simulate --pp 2 --micro-batches 2 --out a.png --size 640x480 --scale 3 --theme paper");
    assert!(made.status.success());
    let png = std::fs::read(folder.path().join("a.png")).unwrap();
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (1920, 1440));
    let made = run("simulate --pp 2 --micro-batches 2 --out a.gif --out a.apng --seconds 1");
    assert!(made.status.success());
    assert!(
        std::fs::read(folder.path().join("a.gif"))
            .unwrap()
            .starts_with(b"GIF89a")
    );
    for wrong in [
        "--size 20x20",
        "--size wide",
        "--scale 99",
        "--scale NaN",
        "--seconds 0",
    ] {
        let refused = run(&format!(
            "simulate --pp 2 --micro-batches 2 --out b.png {wrong}"
        ));
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(wrong.split(' ').next().unwrap()), "{said}");
    }
}

#[test]
fn lessons_are_listed_shown_and_held_to_the_engine() {
    let list = json("lesson list");
    let ids: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|lesson| lesson["id"].as_str().unwrap())
        .collect();
    assert_eq!((ids.len(), ids[2]), (16, "pipeline-bubble"));
    let german = json("lesson list --language de");
    assert_eq!(german[2]["title"], "Die Pipeline-Bubble");
    let checked =
        json("lesson check lessons/03-pipeline-bubble.md lessons/de/03-pipeline-bubble.md");
    assert_eq!(
        (
            checked["lessons"].as_u64(),
            checked["mistakes"].as_array().map(Vec::len)
        ),
        (Some(2), Some(0))
    );
    insta::assert_snapshot!(refusal("lesson show bubble"), @r#"error: there is no lesson "bubble"; there are why-split, data-parallel, pipeline-bubble, micro-batches, gpipe-and-1f1b, tensor-parallel, heads-and-vocabulary, collectives-and-rings, overlap, interleaving-and-zero-bubble, hybrids, choosing, zero-and-fsdp, reading-a-trace, stragglers, summary"#);
    insta::assert_snapshot!(refusal("lesson check no-such-folder"), @"error: cannot read no-such-folder: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal("--lesson bubble"), @r#"error: there is no lesson "bubble"; there are why-split, data-parallel, pipeline-bubble, micro-batches, gpipe-and-1f1b, tensor-parallel, heads-and-vocabulary, collectives-and-rings, overlap, interleaving-and-zero-bubble, hybrids, choosing, zero-and-fsdp, reading-a-trace, stragglers, summary"#);
    insta::assert_snapshot!(refusal("--kit shardscope-kit-1:AAAA"), @"error: this kit is not whole (unexpected end of file); copy the whole line again");
    insta::assert_snapshot!(refusal("--language fr"), @r#"error: there is no language "fr" here; there are en, de"#);
    insta::assert_snapshot!(refusal("--lesson pipeline-bubble devices"), @"error: --lesson, --kit, --lessons and --language before a command are for the window, which a command does not open; leave them out, or write them after `lesson list` and `lesson show`");
}

#[test]
fn ranks_on_threads_train_as_emulated_ones_on_the_wall_clock() {
    let how = "--pp 2 --dp 2 --micro-batches 4 --steps 3";
    let threads = json(&format!("run --device cpu {how}"));
    let emulated = json(&format!("run {how}"));
    let losses = |run: &Value| -> Vec<f64> {
        let steps = run["steps"].as_array().unwrap().iter();
        steps.map(|step| step["loss"].as_f64().unwrap()).collect()
    };
    assert_eq!(losses(&threads), losses(&emulated));
    assert_eq!(threads["clock"], "wall");
    assert_eq!(threads["times"], "measured");
    assert!(threads["cores"].as_u64().unwrap() >= 1);
    assert_eq!(emulated["clock"], "virtual");
    for rank in threads["ranks"].as_array().unwrap() {
        let part = |name: &str| rank[name].as_f64().unwrap();
        let sum = part("compute_s") + part("transfer_s") + part("wait_s") + part("idle_s");
        let makespan = threads["makespan_s"].as_f64().unwrap();
        assert!((sum / makespan - 1.0).abs() < 1e-9, "{sum} of {makespan}");
    }
}

#[test]
fn what_ranks_on_threads_cannot_have_is_refused() {
    insta::assert_snapshot!(refusal("run --device cpu --clock modelled"), @"error: ranks of --device cpu run on this machine's own clock, which --clock modelled is not; leave it out, or use --device emulated");
    insta::assert_snapshot!(refusal("run --device cpu --slow 0=2"), @"error: a GPU or a link made slower cannot be had of ranks on this machine's own clock; leave it out, or use --device emulated");
    insta::assert_snapshot!(refusal("run --device cpu --dp 256 --micro-batches 1"), @"error: 256 ranks would be as many threads, over the 128 that --device cpu starts; --device emulated runs any number of ranks on this machine's cores");
}

#[test]
fn a_prediction_stands_beside_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &str| {
        let output = shardscope_in(folder.path(), args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let measured = run("calibrate --out machine.toml --json");
    assert!(measured["copied_bytes_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(measured["collectives"].as_array().unwrap().len(), 4);
    // The costs were fitted to this step: what is off is rounding.
    let (modelled, took) = (&measured["step_modelled_s"], &measured["step_measured_s"]);
    let ratio = modelled.as_f64().unwrap() / took.as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    let both = run(
        "run --device cpu --hardware machine.toml --pp 2 --steps 3 --predict --out both.svg --json",
    );
    let differences = both["prediction"]["differences"].as_array().unwrap();
    let sum = |name: &str| -> f64 {
        let parts = differences.iter().map(|part| part[name].as_f64().unwrap());
        parts.sum()
    };
    let predicted = both["prediction"]["report"]["makespan_s"].as_f64().unwrap();
    assert!((sum("predicted_s") / predicted - 1.0).abs() < 1e-6);
    let makespan = both["makespan_s"].as_f64().unwrap();
    assert!((sum("measured_s") / makespan - 1.0).abs() < 1e-6);
    let picture = std::fs::read_to_string(folder.path().join("both.svg")).unwrap();
    assert!(picture.contains("Predicted by the cost model"));
    assert!(picture.contains("Measured on this machine"));
    insta::assert_snapshot!(refusal("run --predict"), @"error: --predict puts a prediction beside what was measured, but nothing is: add --device cpu or --clock measured");
}

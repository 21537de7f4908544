//! Training for real: one rank and eight emulated ones, beside the bare maths and, where there is one, PyTorch.
//!
//! With `TORCH_PYTHON` set to a Python that has torch, and `../shared/bench/torch_step.py` there, PyTorch eager takes
//! turns with ours on as many threads, and the ratios are printed: absolute figures drift, ratios in one run do not.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group};
use shardscope::engine::Emulator;
use shardscope::hardware::Precision;
use shardscope::mesh::Mesh;
use shardscope::model::data::{Batches, PRIMER, byte_tokens};
use shardscope::model::{Reference, Weights};
use shardscope::plan::{Job, Load, ModelLoad, Plan, lower};
use shardscope::schedule::ScheduleKind;
use shardscope::shape::ModelShape;

/// Sequences of a step.
const BATCH: usize = 32;
/// Micro-batches of a replica.
const MICRO_BATCHES: usize = 8;
/// Steps of a turn against PyTorch.
const STEPS: usize = 20;
/// Turns.
const ROUNDS: usize = 5;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is trained, and on what.
struct Bench {
    shape: ModelShape,
    weights: Weights,
    batches: Batches,
    threads: usize,
}

impl Bench {
    fn new() -> Self {
        let shape = ModelShape::preset("nano").expect("nano ships");
        let weights = Weights::init(&shape, 1).expect("weights");
        let tokens = byte_tokens(PRIMER, shape.vocab);
        let batches = Batches::new(tokens, shape.seq, 1).expect("batches");
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            shape,
            weights,
            batches,
            threads,
        }
    }

    fn plan(&self, [dp, tp, pp]: [usize; 3]) -> Arc<Plan> {
        let schedule = ScheduleKind::OneFOneB
            .build(pp, MICRO_BATCHES, 1)
            .expect("a schedule");
        let load = Load::Model(ModelLoad {
            shape: &self.shape,
            micro_batch_size: BATCH / dp / MICRO_BATCHES,
            precision: Precision::F32,
            overlap: true,
            methods: shardscope::shape::Methods::default(),
            gpus_per_node: 4,
            layers_per_stage: None,
        });
        let mesh = Mesh::new(dp, tp, pp).expect("a mesh");
        Arc::new(
            lower(&Job {
                fold: None,
                mesh,
                schedule: &schedule,
                load,
            })
            .expect("a plan"),
        )
    }

    fn emulator(&self, degrees: [usize; 3], threads: usize) -> Emulator {
        let size = BATCH / degrees[0] / MICRO_BATCHES;
        let plan = self.plan(degrees);
        Emulator::new(plan, &self.shape, &self.weights, size, threads).expect("ranks")
    }

    /// Tokens a second over a turn's steps, by their median.
    fn tokens_per_s(&self, emulator: &mut Emulator) -> f64 {
        let go_on = AtomicBool::new(false);
        let tokens = self.batches.batch(0, BATCH).expect("a batch");
        let mut times: Vec<Duration> = (0..STEPS)
            .map(|_| timed(|| drop(emulator.step(&tokens, false, &go_on).expect("a step"))))
            .collect();
        times.sort();
        (BATCH * self.shape.seq) as f64 / times[STEPS / 2].as_secs_f64()
    }

    /// What PyTorch reaches, on as many threads.
    fn torch(&self, python: &str, script: &Path) -> Option<f64> {
        let ModelShape {
            layers,
            hidden,
            heads,
            vocab,
            seq,
            ..
        } = self.shape;
        let sizes = [
            self.threads,
            layers,
            hidden,
            heads,
            vocab,
            seq,
            BATCH,
            MICRO_BATCHES,
            STEPS,
        ];
        let mut command = Command::new(python);
        command.arg(script).args(sizes.map(|size| size.to_string()));
        // These make OpenBLAS, and with it numpy and PyTorch, run on other kernels than they would choose.
        command
            .env_remove("OPENBLAS_CORETYPE")
            .env_remove("OPENBLAS_L2_SIZE");
        let said = String::from_utf8(command.output().ok()?.stdout).ok()?;
        said.split("tokens_per_s=").nth(1)?.trim().parse().ok()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark is about the wall clock"
)]
fn timed(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

fn training(criterion: &mut Criterion) {
    let bench = Bench::new();
    let tokens = bench.batches.batch(0, BATCH).expect("a batch");
    let mut group = criterion.benchmark_group("training");
    group
        .throughput(Throughput::Elements((BATCH * bench.shape.seq) as u64))
        .sample_size(20);
    let mut reference = Reference::new(&bench.shape, &bench.weights).expect("a model");
    group.bench_function("bare maths, 1 thread", |bencher| {
        bencher.iter(|| reference.step(&tokens, MICRO_BATCHES).expect("a step"));
    });
    let threads = bench.threads;
    let ways = [
        ("1 rank, 1 thread".to_owned(), [1, 1, 1], 1),
        (format!("1 rank, {threads} threads"), [1, 1, 1], threads),
        (format!("8 ranks, {threads} threads"), [2, 2, 2], threads),
    ];
    let go_on = AtomicBool::new(false);
    for (name, degrees, threads) in ways {
        let mut emulator = bench.emulator(degrees, threads);
        group.bench_function(name, |bencher| {
            bencher.iter(|| emulator.step(&tokens, false, &go_on).expect("a step"));
        });
    }
    group.finish();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Takes turns with PyTorch, and prints the ratios.
fn against_torch(python: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/bench/torch_step.py");
    let bench = Bench::new();
    let (mut alone, mut eight) = (
        bench.emulator([1, 1, 1], bench.threads),
        bench.emulator([2, 2, 2], bench.threads),
    );
    let mut rounds: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let Some(torch) = bench.torch(python, &script) else {
            println!(
                "no figure from {python} {}: is torch there?",
                script.display()
            );
            return;
        };
        rounds[0].push(torch);
        rounds[1].push(bench.tokens_per_s(&mut alone));
        rounds[2].push(bench.tokens_per_s(&mut eight));
    }
    let ratios = |ours: &[f64]| {
        ours.iter()
            .zip(&rounds[0])
            .map(|(ours, torch)| ours / torch)
            .collect()
    };
    let (one, many) = (median(ratios(&rounds[1])), median(ratios(&rounds[2])));
    let [torch, alone, eight] = rounds.map(median);
    println!(
        "PyTorch eager, {} threads: {torch:.0} tokens/s (median of {ROUNDS} turns)",
        bench.threads
    );
    println!("1 rank:  {alone:.0} tokens/s, {one:.2} times PyTorch");
    println!("8 ranks: {eight:.0} tokens/s, {many:.2} times PyTorch");
}

criterion_group!(benches, training);

fn main() {
    benches();
    match std::env::var("TORCH_PYTHON") {
        Ok(python) => against_torch(&python),
        Err(_) => println!("TORCH_PYTHON is not set: not compared with PyTorch"),
    }
    Criterion::default().configure_from_args().final_summary();
}

//! Training for real: one rank and eight emulated ones, beside the bare maths.
//!
//! `scripts/bench-torch` runs this and PyTorch in one run and prints the ratios.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
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

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn plan(shape: &ModelShape, [dp, tp, pp]: [usize; 3], m: usize, size: usize) -> Arc<Plan> {
    let schedule = ScheduleKind::OneFOneB.build(pp, m, 1).expect("a schedule");
    let load = Load::Model(ModelLoad {
        shape,
        micro_batch_size: size,
        precision: Precision::F32,
        overlap: true,
        gpus_per_node: 4,
    });
    let mesh = Mesh::new(dp, tp, pp).expect("a mesh");
    Arc::new(
        lower(&Job {
            mesh,
            schedule: &schedule,
            load,
        })
        .expect("a plan"),
    )
}

fn training(criterion: &mut Criterion) {
    let shape = ModelShape::preset("nano").expect("nano ships");
    let weights = Weights::init(&shape, 1).expect("weights");
    let batches = Batches::new(byte_tokens(PRIMER, shape.vocab), shape.seq, 1).expect("batches");
    let tokens = batches.batch(0, BATCH).expect("a batch");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut group = criterion.benchmark_group("training");
    group
        .throughput(Throughput::Elements((BATCH * shape.seq) as u64))
        .sample_size(20);
    let mut reference = Reference::new(&shape, &weights).expect("a model");
    group.bench_function("bare maths, 1 thread", |bencher| {
        bencher.iter(|| reference.step(&tokens, 8).expect("a step"));
    });
    let ways: [(String, [usize; 3], usize, usize); 3] = [
        ("1 rank, 1 thread".to_owned(), [1, 1, 1], 8, 1),
        (format!("1 rank, {threads} threads"), [1, 1, 1], 8, threads),
        (format!("8 ranks, {threads} threads"), [2, 2, 2], 8, threads),
    ];
    let go_on = AtomicBool::new(false);
    for (name, degrees, m, threads) in ways {
        let size = BATCH / degrees[0] / m;
        let plan = plan(&shape, degrees, m, size);
        let mut emulator = Emulator::new(plan, &shape, &weights, size, threads).expect("ranks");
        group.bench_function(name, |bencher| {
            bencher.iter(|| emulator.step(&tokens, false, &go_on).expect("a step"));
        });
    }
    group.finish();
}

criterion_group!(benches, training);
criterion_main!(benches);

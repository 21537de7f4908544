//! How fast plans are made and simulated, in operations a second: one step of GPT-3 175B on 64 GPUs.

use std::ops::ControlFlow;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardscope::engine::simulate;
use shardscope::hardware::Hardware;
use shardscope::plan::Layout;
use shardscope::schedule::ScheduleKind;
use shardscope::session::{Config, Fixed, SweepSpec, sweep};
use shardscope::shape::ModelShape;

/// Micro-batches that make about a tenth of a million, and about a million operations.
const SIZES: [usize; 2] = [16, 160];

fn config(micro_batches: usize) -> Config {
    Config {
        layout: Layout {
            tp: 8,
            pp: 8,
            micro_batches,
            ..Layout::default()
        },
        model: ModelShape::preset("gpt3-175b").expect("it ships"),
        hardware: Hardware::profile("a100-80gb").expect("it ships"),
        ..Config::default()
    }
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gpt3-175b on 64 GPUs");
    group.sample_size(10);
    for micro_batches in SIZES {
        let config = config(micro_batches);
        let plan = config.plan().expect("a legal layout");
        let pricing = config.pricing();
        let operations = plan.len();
        group.throughput(Throughput::Elements(operations as u64));
        group.bench_function(BenchmarkId::new("plan", operations), |bencher| {
            bencher.iter(|| config.plan());
        });
        group.bench_function(BenchmarkId::new("simulate", operations), |bencher| {
            bencher.iter(|| simulate(&plan, pricing.as_ref()));
        });
    }
    group.finish();
}

/// How many layouts were looked at.
fn swept(spec: &SweepSpec) -> usize {
    let found = sweep(spec, &mut |_, _| ControlFlow::Continue(()));
    found.expect("a legal sweep").expect("never ended").layouts
}

/// Layouts a second of a sweep: GPT-3 175B, 96 layers, on 3,072 GPUs.
fn sweeps(criterion: &mut Criterion) {
    let hardware = Hardware::profile("a100-80gb").expect("it ships");
    let spec = SweepSpec {
        base: Config {
            model: ModelShape::preset("gpt3-175b").expect("it ships"),
            precision: hardware.precision,
            hardware,
            ..Config::default()
        },
        gpus: 3072,
        global_batch: 3072,
        tokens: 300e9,
        fixed: Fixed::default(),
        top: 0,
    };
    let layouts = swept(&spec);
    let mut group = criterion.benchmark_group("gpt3-175b on 3072 GPUs");
    group.sample_size(10);
    group.throughput(Throughput::Elements(layouts as u64));
    group.bench_function("sweep", |bencher| {
        bencher.iter(|| swept(&spec));
    });
    group.finish();
}

/// A step of Llama 3 405B on 16,384 GPUs, planned and simulated.
fn cluster(criterion: &mut Criterion) {
    let hardware = Hardware::profile("h100").expect("it ships");
    let config = Config {
        layout: Layout {
            dp: 128,
            tp: 8,
            pp: 16,
            micro_batches: 16,
            schedule: ScheduleKind::Interleaved,
            chunks: 8,
            ..Layout::default()
        },
        model: ModelShape::preset("llama3-405b").expect("it ships"),
        precision: hardware.precision,
        hardware,
        ..Config::default()
    };
    let mut group = criterion.benchmark_group("llama3-405b on 16384 GPUs");
    group.sample_size(10);
    group.bench_function("plan and simulate", |bencher| {
        bencher.iter(|| {
            simulate(
                &config.plan().expect("a legal layout"),
                config.pricing().as_ref(),
            )
        });
    });
    group.finish();
}

criterion_group!(benches, engine, sweeps, cluster);
criterion_main!(benches);

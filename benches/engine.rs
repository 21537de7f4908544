//! How fast plans are made and simulated, in operations a second: one step of GPT-3 175B on 64 GPUs.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardscope::engine::simulate;
use shardscope::hardware::Hardware;
use shardscope::plan::Layout;
use shardscope::session::Config;
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

criterion_group!(benches, engine);
criterion_main!(benches);

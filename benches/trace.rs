//! Timelines of millions of spans: appended, drawn at any zoom, and read from files of other programs.

use std::ops::ControlFlow;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardscope::scene::{Look, Overview, Size, Timeline, Viewport};
use shardscope::trace::import::{ForeignFile, foreign};
use shardscope::trace::{Kind, Label, LabelId, Phase, RankInfo, Span, Stream, Trace};
use shardscope::units::{Nanos, Pass, Rank};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LANES: usize = 64;
/// From all of it down to a part in some two thousand million.
const ZOOMS: u32 = 12;

/// Spans on as many lanes as there are, of lengths from a few nanoseconds to many, every fourth with a gap after it.
fn trace(spans: usize) -> Trace {
    let info = |rank| RankInfo {
        rank: Rank(rank),
        dp: 0,
        tp: 0,
        pp: rank,
        count: 1,
        pipeline_end: Nanos::ZERO,
        peak_in_flight: 0,
    };
    let labels = (0..8).map(|micro_batch| Label {
        pass: Some(if micro_batch % 2 == 0 {
            Pass::Forward
        } else {
            Pass::Backward
        }),
        micro_batch: Some(micro_batch),
        stage: Some(0),
        ..Label::new(Kind::Pass, "pass")
    });
    let mut trace = Trace::new((0..LANES as u32).map(info).collect(), labels.collect());
    for rank in 0..LANES {
        append(&mut trace, rank, spans / LANES);
    }
    trace
}

fn append(trace: &mut Trace, rank: usize, count: usize) {
    let mut seed = rank as u64 + 1;
    let mut time = 0;
    let lane = trace.lane_mut(rank, Stream::Passes);
    for index in 0..count {
        // A multiplicative generator is random enough for lengths.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = 10 + (seed >> 52);
        lane.push(Span {
            start: Nanos(time),
            end: Nanos(time + length),
            label: LabelId((index % 8) as u32),
            phase: Phase::Busy,
        });
        time += length + if index % 4 == 0 { length / 2 } else { 0 };
    }
    trace.makespan = trace.makespan.max(Nanos(time));
}

fn drawing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scene of 1920 x 1080");
    for spans in [1_000_000, 10_000_000] {
        let trace = trace(spans);
        let overview = Overview::new(&trace);
        let look = Look::default();
        let whole = Viewport::whole(&trace, Size::new(1920.0, 1080.0));
        for zoom in 0..ZOOMS {
            // Each twelfth goes a sixth of the way down, in factors of ten, around a third of the time.
            let part = 10_f64.powf(-f64::from(zoom) * 0.6);
            let length = (whole.to.0 as f64 * part) as u64;
            let from = (whole.to.0 - length) / 3;
            let view = Viewport {
                from: Nanos(from),
                to: Nanos(from + length.max(10)),
                ..whole
            };
            let name = format!("{} M spans", spans / 1_000_000);
            group.bench_function(
                BenchmarkId::new(name, format!("zoom {zoom:02}")),
                |bencher| {
                    bencher.iter(|| Timeline::new(&trace, &overview, view, &look).scene());
                },
            );
        }
    }
    group.finish();
}

fn appending(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    let spans = 1_000_000;
    group.throughput(Throughput::Elements(spans as u64));
    group.bench_function("spans", |bencher| {
        bencher.iter(|| {
            let mut trace = trace(0);
            append(&mut trace, 0, spans);
            trace
        });
    });
    group.finish();
}

/// A file as PyTorch's profiler writes them, of about so many bytes.
fn kineto(bytes: usize) -> String {
    let mut text = String::from(
        "{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\"rank\": 0},\n\"traceEvents\": [\n",
    );
    let mut index = 0_u64;
    while text.len() < bytes {
        let (at, correlation) = (1_694_128_201_428_006 + index * 20, index + 7);
        let pair = format!(
            "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 59811, \"tid\": 59811,\n    \
             \"ts\": {at}, \"dur\": 6,\n    \"args\": {{\n      \"External id\": {correlation}, \"cbid\": 211, \"correlation\": \
             {correlation}\n    }}\n  }},\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void \
             at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, at::detail::Array<char*, 1> >(int, \
             at::native::FillFunctor<int>, at::detail::Array<char*, 1>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {}, \"dur\": 9,\n    \
             \"args\": {{\n      \"External id\": {correlation}, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, \
             \"correlation\": {correlation}, \"registers per thread\": 16, \"shared memory\": 0, \"blocks per SM\": 0.1, \"warps \
             per SM\": 2, \"grid\": [8, 1, 1], \"block\": [640, 1, 1], \"est. achieved occupancy %\": 3\n    }}\n  }},\n",
            at + 10
        );
        text.push_str(&pair);
        index += 1;
    }
    text += "  {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"tid\": 0, \"args\": {\"name\": \"python\"}}\n]}\n";
    text
}

fn reading(criterion: &mut Criterion) {
    let text = kineto(32 << 20);
    // For whoever wants to hold another reader to the same file: `scripts/bench-import`.
    if let Some(path) = std::env::var_os("SHARDSCOPE_BENCH_FILE") {
        std::fs::write(path, &text).expect("the file can be written");
    }
    let mut group = criterion.benchmark_group("read");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("a trace of PyTorch's profiler", |bencher| {
        bencher.iter(|| {
            let source = ForeignFile {
                given: "a.json",
                name: "a.json",
                bytes: text.as_bytes(),
            };
            foreign(&[source], &mut |_| ControlFlow::Continue(())).expect("a trace")
        });
    });
    group.finish();
}

criterion_group!(benches, drawing, appending, reading);
criterion_main!(benches);

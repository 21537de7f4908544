//! Frames of the window: with nothing in the timeline, with ten thousand blocks, with ten million spans. What a frame costs more
//! than an empty one is what drawing the timeline costs.

use std::path::PathBuf;

use criterion::{Criterion, criterion_group, criterion_main};
use egui_kittest::Harness;
use shardscope::export::{Opened, Viewed};
use shardscope::trace::import::Foreign;
use shardscope::trace::{Kind, Label, LabelId, Phase, RankInfo, Span, Stream, Trace};
use shardscope::ui::{Options, Viewer};
use shardscope::units::{Nanos, Pass, Rank};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// So many spans on so many lanes, side by side.
fn trace(lanes: u32, spans: usize) -> Trace {
    let info = |rank| RankInfo {
        rank: Rank(rank),
        dp: 0,
        tp: 0,
        pp: rank,
        count: 1,
        pipeline_end: Nanos::ZERO,
        peak_in_flight: 0,
    };
    let label = |micro_batch| Label {
        pass: Some([Pass::Forward, Pass::Backward][micro_batch as usize % 2]),
        micro_batch: Some(micro_batch),
        stage: Some(0),
        ..Label::new(Kind::Pass, "pass")
    };
    let mut trace = Trace::new((0..lanes).map(info).collect(), (0..8).map(label).collect());
    for rank in 0..lanes as usize {
        let lane = trace.lane_mut(rank, Stream::Passes);
        for index in 0..(spans / lanes as usize) as u64 {
            lane.push(Span {
                start: Nanos(index * 1000),
                end: Nanos(index * 1000 + 600 + (index * 7919) % 400),
                label: LabelId((index % 8) as u32),
                phase: Phase::Busy,
            });
        }
    }
    trace.makespan = Nanos((spans / lanes as usize) as u64 * 1000 + 1);
    trace
}

fn window(trace: Trace) -> Harness<'static, Viewer> {
    let foreign = Foreign {
        trace,
        ranks: Vec::new(),
        collectives: Vec::new(),
        notes: Vec::new(),
    };
    let files = [PathBuf::from("bench.json")];
    let viewed = Viewed::new(&files, Opened::Foreign(Box::new(foreign))).expect("a trace");
    let mut harness = Harness::builder()
        .with_size([1920.0, 1080.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| Viewer::with_viewed(cc, &Options::default(), viewed));
    harness.run_steps(3);
    harness
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame of 1920 x 1080");
    group.sample_size(20);
    for (name, lanes, spans) in [
        ("empty, 64 rows", 64, 0),
        ("10 000 blocks, 64 rows", 64, 9_984),
        ("10 M spans, 64 rows", 64, 10_000_000),
        // Rows high enough for names: each block is drawn by itself.
        ("empty, 32 rows", 32, 0),
        ("6 300 blocks, 32 rows", 32, 6_304),
        ("10 000 blocks, 32 rows", 32, 9_984),
    ] {
        let mut harness = window(trace(lanes, spans));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                harness.step();
                harness.render().expect("a picture")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);

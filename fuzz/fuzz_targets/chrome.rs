//! Our own files, as anybody may have damaged them: read, and drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shardscope::scene::{Look, Overview, Size, Timeline, Viewport};
use shardscope::trace::import::chrome;
use shardscope::trace::{AreaFigures, Area, critical_path, sent};
use shardscope::units::Nanos;

fuzz_target!(|data: &[u8]| {
    let Ok(found) = chrome(data) else { return };
    let trace = &found.trace;
    let overview = Overview::new(trace);
    let view = Viewport::whole(trace, Size::new(800.0, 400.0));
    Timeline::new(trace, &overview, view, &Look::default()).scene();
    critical_path(trace);
    sent(trace, Nanos::ZERO, trace.makespan);
    let area = Area {
        from: Nanos::ZERO,
        to: trace.makespan,
        ranks: (0..trace.ranks.len()).collect(),
    };
    AreaFigures::new(trace, &area);
    trace.bubbles();
});

//! What is done with a trace that was read, whatever is in it.

use shardscope::scene::{Arrangement, Fold, Look, Order, Overview, Size, Timeline, Viewport};
use shardscope::trace::{
    Area, AreaFigures, Trace, by_pass, chain_behind, counters, critical_path, sent,
};
use shardscope::units::Nanos;

/// Draws it, folded too, and asks it all that the window asks.
pub fn exercise(trace: &Trace) {
    let overview = Overview::new(trace);
    let view = Viewport::whole(trace, Size::new(800.0, 400.0));
    let look = Look::default();
    Timeline::new(trace, &overview, view, &look).scene();
    for fold in Fold::ALL {
        let how = Arrangement {
            fold,
            order: Order::Idle,
            pinned: trace.ranks.iter().take(1).map(|info| info.rank).collect(),
        };
        let overview = overview.arranged(trace, &how);
        let timeline = Timeline::new(trace, &overview, view, &look);
        timeline.scene();
        timeline.hit(400.0, 200.0);
    }
    by_pass(trace, &critical_path(trace));
    let whole = (Nanos::ZERO, trace.makespan);
    sent(trace, whole.0, whole.1);
    for rank in 0..trace.ranks.len().min(4) {
        chain_behind(trace, rank, trace.makespan);
        counters(trace, rank, whole, 16);
    }
    let area = Area {
        from: whole.0,
        to: whole.1,
        ranks: (0..trace.ranks.len()).collect(),
    };
    AreaFigures::new(trace, &area);
    trace.bubbles();
}

//! Which phase of the training step it is.

use crate::trace::{Kind, Phase, Stream, Trace};
use crate::units::Nanos;

/// When every rank's passes begin and end, and for how many GPUs it stands.
#[derive(Clone, Debug)]
pub(super) struct Course(Vec<(Nanos, Nanos, u64)>);

impl Course {
    pub(super) fn new(trace: &Trace) -> Self {
        let ranks = (0..trace.ranks.len()).filter_map(|rank| {
            let spans = trace.lane(rank, Stream::Passes).spans().iter();
            let mut passes = spans.filter(|span| trace.label(span.label).kind == Kind::Pass);
            let first = passes.next()?;
            let end = passes.fold(first.end, |end, span| end.max(span.end));
            Some((first.start, end, u64::from(trace.ranks[rank].count)))
        });
        Self(ranks.collect())
    }

    fn count(&self, is: impl Fn(Nanos, Nanos) -> bool) -> u64 {
        let those = self.0.iter().filter(|&&(first, last, _)| is(first, last));
        those.map(|&(.., count)| count).sum()
    }

    pub(super) fn headline(&self, trace: &Trace, time: Nanos) -> String {
        if time >= trace.makespan {
            return "The training step is done".to_owned();
        }
        if self.0.is_empty() {
            return format!(
                "{} of {} rows are busy",
                busy(trace, time),
                trace.ranks.len()
            );
        }
        let all = self.count(|_, _| true);
        let begun = self.count(|first, _| first <= time);
        let finished = self.count(|_, last| last <= time);
        let piped = trace.ranks.iter().any(|info| info.pp > 0);
        match (finished, begun) {
            (finished, _) if finished == all => after(trace, time),
            _ if !piped => "Passes: without a pipeline, every GPU does them all".to_owned(),
            (_, begun) if begun < all => {
                format!("Warm-up: {begun} of {all} GPUs have begun a pass")
            }
            (0, _) => format!("Steady: all {all} GPUs have begun, none has finished its passes"),
            (finished, _) => {
                format!("Cool-down: {finished} of {all} GPUs have finished their passes")
            }
        }
    }
}

fn busy(trace: &Trace, time: Nanos) -> usize {
    let lanes = (0..trace.ranks.len()).map(|rank| trace.lane(rank, Stream::Compute));
    lanes
        .filter_map(|lane| lane.at(time))
        .filter(|span| span.phase == Phase::Busy)
        .count()
}

/// What is left when all passes are done.
fn after(trace: &Trace, time: Nanos) -> String {
    let ranks = 0..trace.ranks.len();
    let labels = |stream: Stream| {
        let spans = ranks
            .clone()
            .filter_map(move |rank| trace.lane(rank, stream).at(time));
        spans.map(|span| trace.label(span.label))
    };
    let optimizer = labels(Stream::Passes).any(|label| label.kind == Kind::Optimizer);
    let weights = labels(Stream::Dp).any(|label| label.kind == Kind::AllGather);
    match (optimizer, weights) {
        (true, _) => "Optimizer: every GPU changes its weights",
        (false, true) => "Weights: GPUs gather what the others have changed",
        (false, false) => "Gradients: GPUs bring theirs together",
    }
    .to_owned()
}

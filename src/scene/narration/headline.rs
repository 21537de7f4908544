//! Which phase of the training step it is.

use crate::trace::{Kind, Phase, Stream, Trace};
use crate::units::Nanos;
use crate::words::{Language, say};

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

    pub(super) fn headline(&self, trace: &Trace, time: Nanos, language: Language) -> String {
        if time >= trace.makespan {
            return say!(language, "The training step is done").to_owned();
        }
        if self.0.is_empty() {
            return say!(
                language,
                "{busy} of {all} rows are busy",
                busy = busy(trace, time),
                all = trace.ranks.len()
            );
        }
        let all = self.count(|_, _| true);
        let begun = self.count(|first, _| first <= time);
        let finished = self.count(|_, last| last <= time);
        let piped = trace.ranks.iter().any(|info| info.pp > 0);
        match (finished, begun) {
            (finished, _) if finished == all => after(trace, time, language),
            _ if !piped => say!(
                language,
                "Passes: without a pipeline, every GPU does them all"
            )
            .to_owned(),
            (_, begun) if begun < all => {
                say!(
                    language,
                    "Warm-up: {begun} of {all} GPUs have begun a pass",
                    begun,
                    all
                )
            }
            (0, _) => say!(
                language,
                "Steady: all {all} GPUs have begun, none has finished its passes",
                all
            ),
            (finished, _) => {
                say!(
                    language,
                    "Cool-down: {finished} of {all} GPUs have finished their passes",
                    finished,
                    all
                )
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
fn after(trace: &Trace, time: Nanos, language: Language) -> String {
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
        (true, _) => say!(language, "Optimizer: every GPU changes its weights"),
        (false, true) => say!(
            language,
            "Weights: GPUs gather what the others have changed"
        ),
        (false, false) => say!(language, "Gradients: GPUs bring theirs together"),
    }
    .to_owned()
}

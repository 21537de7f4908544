//! What part of a trace is shown, and how.

use std::collections::BTreeSet;

use crate::trace::{Label, Span, Stream, Trace};
use crate::units::{Bytes, Nanos, Rank};

use super::shape::Size;
use super::tokens::{Sizes, Theme};

/// The part of a trace that is shown, and the room for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// The room, names and axis included.
    pub size: Size,
    /// The time at the left edge of the plot.
    pub from: Nanos,
    /// The time at its right edge.
    pub to: Nanos,
    /// How far the rows are scrolled up, in points.
    pub scroll: f32,
}

impl Viewport {
    /// All of `trace`, with a little air after its end.
    pub fn whole(trace: &Trace, size: Size) -> Self {
        Self {
            size,
            from: Nanos::ZERO,
            to: Self::end_of(trace),
            scroll: 0.0,
        }
    }

    /// Zoomed in by `factor` around the time `centre`; never closer than a few nanoseconds.
    pub fn zoomed(self, centre: Nanos, factor: f64) -> Self {
        let shrunk = |duration: Nanos| (duration.0 as f64 / factor.max(1e-6)) as u64;
        let before = shrunk(centre.since(self.from));
        let after = shrunk(self.to.since(centre)).max(10);
        Self {
            from: Nanos(centre.0.saturating_sub(before)),
            to: Nanos(centre.0.saturating_add(after)),
            ..self
        }
    }

    /// The end of `trace`, with a little air after it.
    pub(super) fn end_of(trace: &Trace) -> Nanos {
        let end = trace.makespan.0;
        Nanos(end.saturating_add(end / 60).max(1))
    }
}

/// Something of a trace that is pointed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rank, by its place in [`Trace::ranks`].
    pub rank_index: usize,
    /// The lane.
    pub stream: Stream,
    /// The span.
    pub span: Span,
}

/// What is lit while the rest is put back; where a set is empty, it leaves everything lit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lit {
    /// Micro-batches.
    pub micro_batches: BTreeSet<u32>,
    /// Ranks.
    pub ranks: BTreeSet<Rank>,
}

impl Lit {
    /// Whether a span with `label` on `rank` is lit.
    pub fn holds(&self, rank: Rank, label: &Label) -> bool {
        let batch_lit = self.micro_batches.is_empty()
            || label
                .micro_batch
                .is_some_and(|batch| self.micro_batches.contains(&batch));
        batch_lit && self.rank(rank)
    }

    /// Whether what belongs to `rank` as a whole, such as its name, is lit.
    pub fn rank(&self, rank: Rank) -> bool {
        self.ranks.is_empty() || self.ranks.contains(&rank)
    }

    /// Whether a gap on `rank` is lit: it belongs to no micro-batch.
    pub fn gap(&self, rank: Rank) -> bool {
        self.micro_batches.is_empty() && self.rank(rank)
    }
}

/// Whether sends are drawn as arrows to their receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrows {
    /// Not.
    #[default]
    Hidden,
    /// All that are visible, unless they are too many to tell apart.
    Shown,
}

/// What timelines on one axis have in common; nothing for one that stands alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Common {
    /// The column of names is at least so wide.
    pub names: f32,
    /// Memory is drawn to a scale that holds at least this.
    pub memory: Bytes,
}

/// How a timeline is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Colours.
    pub theme: Theme,
    /// Text sizes and distances.
    pub sizes: Sizes,
    /// Where the playhead stands.
    pub playhead: Option<Nanos>,
    /// Nothing later than this is drawn.
    pub until: Option<Nanos>,
    /// Arrows from sends to receives.
    pub arrows: Arrows,
    /// What is lit.
    pub lit: Lit,
    /// What the pointer is over.
    pub hovered: Option<Hit>,
    /// What is selected.
    pub selected: Option<Hit>,
    /// What memory a device has.
    pub capacity: Option<Bytes>,
    /// What it has in common with others.
    pub common: Common,
}

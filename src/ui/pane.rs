//! A timeline with what is looked at in it: the part that is seen, what is selected, searched for and lit. The window of a run
//! has one, and so has that of a file.

use std::sync::Arc;

use eframe::egui::Ui;

use crate::scene::{Fold, Hit, Lineup, Order};
use crate::trace::{Area, Phase, Stream, Trace, by_pass, chain_behind, critical_path};
use crate::units::{Nanos, Rank};

use super::attention::Attention;
use super::describe::describe;
use super::search::Search;
use super::timeline_view::{Reveal, TimelineView};
use super::walk;
use super::wish::{Look, Wish};

/// What is looked at in a timeline, for tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookedAt {
    /// The times at the edges of what is seen, in nanoseconds.
    pub seen: (u64, u64),
    /// What is selected, in words.
    pub selected: Option<String>,
    /// From when to when the selected area lasts, and how many ranks are in it.
    pub area: Option<(u64, u64, usize)>,
    /// Times that were marked.
    pub marks: Vec<u64>,
    /// How many operations of a chain are lit.
    pub lit: usize,
    /// How many spans were found.
    pub found: usize,
    /// How many rows there are, and how many of them are pinned.
    pub rows: (usize, usize),
    /// Whether what is seen was moved by hand, and stays.
    pub stays: bool,
    /// Left, top, right and bottom of where spans are drawn, in points.
    pub plot: [f32; 4],
}

/// A timeline with what is looked at in it.
#[derive(Debug, Default)]
pub(super) struct Pane {
    pub(super) timeline: TimelineView,
    pub(super) attention: Attention,
    pub(super) search: Search,
    /// The timeline that it is of.
    of: Option<Arc<Trace>>,
}

impl Pane {
    /// Another timeline is shown: what is selected is looked for in it, and what is lit is lit no longer.
    pub(super) fn turn_to(&mut self, trace: &Arc<Trace>) {
        let same = self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, trace));
        if !same {
            let selected = self.attention.selected;
            self.attention.selected = selected.and_then(|hit| walk::again(trace, &hit));
            self.attention.path.clear();
            self.of = Some(Arc::clone(trace));
        }
        self.search.update(trace);
    }

    /// What is looked at in `trace`.
    pub(super) fn looked_at(&self, trace: &Trace) -> LookedAt {
        let (from, to) = self.timeline.seen(trace);
        let lineup = Lineup::new(trace, self.timeline.arrangement());
        let plot = self.timeline.plot;
        let selected = self.attention.selected.as_ref();
        let area = self.attention.area.as_ref();
        LookedAt {
            seen: (from.0, to.0),
            selected: selected.map(|hit| describe(trace, hit).name),
            area: area.map(|area| (area.from.0, area.to.0, area.ranks.len())),
            marks: self.timeline.marks().iter().map(|time| time.0).collect(),
            lit: self.attention.path.len(),
            found: self.search.found().len(),
            rows: (lineup.len(), lineup.pinned()),
            stays: self.timeline.stays(),
            plot: plot.map_or([0.0; 4], |plot| {
                [plot.left(), plot.top(), plot.right(), plot.bottom()]
            }),
        }
    }

    /// As for a new start.
    pub(super) fn reset(&mut self) {
        self.timeline.reset();
        self.attention = Attention::default();
    }

    /// Grants a wish to look elsewhere in `trace`.
    pub(super) fn look(&mut self, look: Look, trace: &Arc<Trace>, playhead: Option<Nanos>) {
        match look {
            Look::NextGpu => self.neighbour(trace, 1),
            Look::PreviousGpu => self.neighbour(trace, -1),
            Look::FitSelection => self.fit_selection(),
            Look::NextSpan => self.beside(trace, true, playhead),
            Look::PreviousSpan => self.beside(trace, false, playhead),
            Look::AlongArrow => self.along(trace, true),
            Look::AgainstArrow => self.along(trace, false),
            Look::Search => self.search.open(),
            Look::NextFound | Look::PreviousFound => {
                self.search.update(trace);
                if let Some(hit) = self.search.go(look == Look::NextFound) {
                    self.go_to(trace, hit);
                }
            }
            Look::Path => self.light(trace),
            Look::Pin => {
                let selected = self
                    .attention
                    .selected
                    .and_then(|hit| trace.ranks.get(hit.rank_index));
                let rank = self.attention.chosen.or(selected.map(|info| info.rank));
                if let Some(rank) = rank {
                    self.timeline.pin(rank);
                }
            }
            Look::Fit
            | Look::ZoomIn
            | Look::ZoomOut
            | Look::Earlier
            | Look::Later
            | Look::Arrows
            | Look::Mark
            | Look::ForgetMarks
            | Look::Follow
            | Look::Fold
            | Look::Order => self.timeline.look(look, trace, playhead),
        }
    }

    /// What was clicked, and no area any more.
    pub(super) fn select(&mut self, hit: Option<Hit>) {
        self.attention.selected = hit;
        self.attention.area = None;
        self.attention.path.clear();
    }

    /// An area, and no span any more.
    pub(super) fn select_area(&mut self, area: Area) {
        self.attention.selected = None;
        self.attention.path.clear();
        self.attention.area = Some(area);
    }

    /// A GPU lit until another is chosen; chosen again, no longer.
    pub(super) fn choose(&mut self, rank: Option<Rank>) {
        let again = self.attention.chosen == rank;
        self.attention.chosen = rank.filter(|_| !again);
    }

    /// Selects a span and brings it to where it is seen.
    pub(super) fn go_to(&mut self, trace: &Trace, hit: Hit) {
        self.select(Some(hit));
        self.timeline.reveal = Some(Reveal {
            rank: trace.ranks.get(hit.rank_index).map(|info| info.rank),
            from: hit.span.start,
            to: hit.span.end,
            fit: false,
        });
    }

    /// Forgets what was searched for, or else what is selected and lit, or else the marks; whether there was anything.
    pub(super) fn dismiss(&mut self) -> bool {
        self.search.close() || self.attention.clear() || self.timeline.forget_marks()
    }

    fn fit_selection(&mut self) {
        let selected = self
            .attention
            .selected
            .map(|hit| (hit.span.start, hit.span.end));
        let area = self
            .attention
            .area
            .as_ref()
            .map(|area| (area.from, area.to));
        if let Some((from, to)) = selected.or(area) {
            self.timeline.reveal = Some(Reveal {
                rank: None,
                from,
                to,
                fit: true,
            });
        }
    }

    /// The span after the selected one, or before it; if none is, what the chosen GPU does at the playhead.
    fn beside(&mut self, trace: &Trace, after: bool, playhead: Option<Nanos>) {
        let next = if let Some(hit) = self.attention.selected {
            walk::beside(trace, &hit, after)
        } else {
            let chosen = self.attention.chosen;
            let rank = trace
                .ranks
                .iter()
                .position(|info| Some(info.rank) == chosen);
            walk::from_there(trace, rank.unwrap_or(0), playhead.unwrap_or_default())
        };
        if let Some(hit) = next {
            self.go_to(trace, hit);
        }
    }

    fn along(&mut self, trace: &Trace, forward: bool) {
        let selected = self.attention.selected;
        if let Some(hit) = selected.and_then(|hit| walk::along(trace, &hit, forward)) {
            self.go_to(trace, hit);
        }
    }

    /// Lights the chain behind what is selected, or else the critical path; what is lit, no longer.
    fn light(&mut self, trace: &Trace) {
        if !self.attention.path.is_empty() {
            self.attention.path.clear();
            return;
        }
        let path = match self.attention.selected {
            Some(hit) => {
                let (rank, time) = behind(&hit);
                chain_behind(trace, rank, time)
            }
            None => critical_path(trace),
        };
        self.attention.path = by_pass(trace, &path);
    }

    /// The GPU of the row below or above the chosen one.
    fn neighbour(&mut self, trace: &Arc<Trace>, by: isize) {
        let overview = self.timeline.overview(trace);
        let lineup = &overview.lineup;
        let row = self.attention.chosen.and_then(|rank| lineup.row(rank));
        let next = match row {
            None if by > 0 => Some(0),
            None => lineup.len().checked_sub(1),
            Some(row) => row.checked_add_signed(by),
        };
        let index = next.and_then(|row| lineup.first(row));
        self.attention.chosen = index.map(|index| trace.ranks[index].rank);
    }
}

/// From the right: back to following the playhead, and how the rows are arranged where that is not as usual.
pub(super) fn arranged(ui: &mut Ui, (pane, trace): (&Pane, &Trace), wishes: &mut Vec<Wish>) {
    let view = &pane.timeline;
    let mut button = |text: &str, hint: &str, look: Look| {
        if ui.button(text).on_hover_text(hint).clicked() {
            wishes.push(Wish::Look(look));
        }
    };
    if view.stays() && trace.tracks.is_empty() {
        button(
            "Follow",
            "Let what is seen move along with the playhead again (J)",
            Look::Follow,
        );
    }
    let how = view.arrangement();
    if how.fold != Fold::default() {
        button(how.fold.name(), "Fold in another way (U)", Look::Fold);
    }
    if how.order != Order::default() {
        button(how.order.name(), "Sort by something else (O)", Look::Order);
    }
}

/// Where the chain behind something begins: of a gap at its end, of what runs at its start.
pub(super) fn behind(hit: &Hit) -> (usize, Nanos) {
    let gap = hit.span.phase == Phase::Waiting
        || hit.stream == Stream::Compute && hit.span.phase != Phase::Busy;
    let time = if gap { hit.span.end } else { hit.span.start };
    (hit.rank_index, time)
}

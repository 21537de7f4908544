//! Which part of the timeline is seen and in which rows, its marks, and the painted scenes that are kept while nothing
//! changes.

use std::sync::Arc;

use eframe::egui::{Context, Pos2, Rect};

use crate::scene::narration::account;
use crate::scene::tokens::{Sizes, Theme};
use crate::scene::{
    Arrangement, Arrows, Fold, Lit, Look as SceneLook, Order, Overview, Scene, Size, Timeline,
    Viewport,
};
use crate::trace::Trace;
use crate::units::{Nanos, Rank};

use super::paint::Painted;
use super::wish::Look;

/// How far a key moves or zooms.
const ZOOM: f64 = 1.5;
const MOVE: f32 = 0.2;

/// So many rows can be pinned: others need room too.
const MOST_PINNED: usize = 4;

/// How many timelines are remembered as they were painted.
const MOST_KNOWN: usize = 6;

/// More marks than this are more than anyone tells apart; a further one takes the place of the first.
const MOST_MARKS: usize = 26;

/// All that a painted scene depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) viewport: Viewport,
    pub(super) look: SceneLook,
    pub(super) origin: Pos2,
    pub(super) pixels_per_point: f32,
}

/// A timeline with what drawing needs to know of it.
#[derive(Debug)]
struct Known {
    trace: Arc<Trace>,
    overview: Arc<Overview>,
    arranged: Arrangement,
    /// All of it as a text, once somebody reads it.
    account: Option<Arc<str>>,
    /// The scene, and the one without anything that happens, as painted for a setting.
    painted: Option<(Setting, Painted, Painted)>,
}

/// What is to be brought to where it is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reveal {
    pub(super) rank: Option<Rank>,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Whether it is to fill the room.
    pub(super) fit: bool,
}

/// A drag over the plot: where it began, in time and in points within the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drag {
    pub(super) time: Nanos,
    pub(super) y: f32,
    /// Whether it moves what is seen, and selects nothing.
    pub(super) pans: bool,
}

/// The part that is seen.
#[derive(Debug, Default)]
pub(super) struct TimelineView {
    /// The times at the edges, or all of the step.
    window: Option<(Nanos, Nanos)>,
    /// The time that is reached where other timelines share the axis.
    reach: Nanos,
    scroll: f32,
    arrows: Arrows,
    /// How its rows are arranged.
    arrangement: Arrangement,
    /// Times that were marked, in order.
    marks: Vec<Nanos>,
    /// Where the plot was drawn last.
    pub(super) plot: Option<Rect>,
    /// The time under the pointer, and the pointer's drag.
    pub(super) pointer: Option<Nanos>,
    pub(super) drag: Option<Drag>,
    /// What is to be seen as soon as it is known where its row is.
    pub(super) reveal: Option<Reveal>,
    /// Whether the part that is seen moves along with the playhead.
    pub(super) following: Following,
    /// The timelines drawn last: the step's, the one's before, from which what is to come is taken, and those that are
    /// compared with it.
    known: Vec<Known>,
}

/// Whether the part that is seen moves along with the playhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Following {
    /// Yes.
    #[default]
    Playhead,
    /// It was moved by hand, and stays.
    Nothing,
}

impl TimelineView {
    /// All of the step, for a new start.
    pub(super) fn reset(&mut self) {
        self.window = None;
        self.scroll = 0.0;
        self.following = Following::Playhead;
        self.drag = None;
        self.reveal = None;
        self.marks.clear();
        self.known.clear();
    }

    /// All of it, from now on along with the playhead.
    pub(super) fn fit(&mut self) {
        self.window = None;
        self.scroll = 0.0;
        self.following = Following::Playhead;
    }

    /// Whether a part of the step is seen that does not move along with the playhead.
    pub(super) fn stays(&self) -> bool {
        self.window.is_some() && self.following == Following::Nothing
    }

    /// The axis reaches to at least this time.
    pub(super) fn reach(&mut self, to: Nanos) {
        self.reach = to;
    }

    /// All of `trace`, and of what it is compared with.
    fn whole(&self, trace: &Trace, size: Size) -> Viewport {
        let whole = Viewport::whole(trace, size);
        Viewport {
            to: whole.to.max(self.reach),
            ..whole
        }
    }

    /// Arrows from sends to receives, or not.
    pub(super) fn arrows(&self) -> Arrows {
        self.arrows
    }

    /// How the rows are arranged.
    pub(super) fn arrangement(&self) -> &Arrangement {
        &self.arrangement
    }

    /// The part of `trace` that is seen, in room of `size`.
    pub(super) fn viewport(&self, trace: &Trace, size: Size) -> Viewport {
        let whole = self.whole(trace, size);
        let (from, to) = self.window.unwrap_or((whole.from, whole.to));
        Viewport {
            from,
            to,
            scroll: self.scroll,
            ..whole
        }
    }

    /// The times at the edges of what is seen of `trace`, none of them beyond its end.
    pub(super) fn seen(&self, trace: &Trace) -> (Nanos, Nanos) {
        let (from, to) = self.window.unwrap_or((Nanos::ZERO, trace.makespan));
        let end = trace.makespan.max(Nanos(1));
        (from.min(end), to.min(end))
    }

    /// Shows another part from now on.
    pub(super) fn move_to(&mut self, viewport: Viewport, trace: &Trace) {
        let whole = self.whole(trace, viewport.size);
        self.scroll = viewport.scroll;
        let covers = viewport.from <= whole.from && viewport.to >= whole.to;
        let length = viewport.to.since(viewport.from);
        // What is seen never leaves the step altogether.
        let latest = whole.to.since(length);
        let from = viewport.from.min(latest);
        self.window =
            (!covers).then(|| (from, Nanos(from.0.saturating_add(length.0)).min(whole.to)));
    }

    /// Keeps the playhead in what is seen, if it is followed.
    pub(super) fn follow(&mut self, playhead: Nanos) {
        let (Some((from, to)), Following::Playhead) = (self.window, self.following) else {
            return;
        };
        let length = to.since(from);
        let margin = Nanos(length.0 / 10);
        let inside = playhead >= from && playhead <= to.since(margin);
        if !inside {
            let from = playhead.since(margin);
            self.window = Some((from, Nanos(from.0.saturating_add(length.0))));
        }
    }

    /// Another part, by key.
    pub(super) fn look(&mut self, look: Look, trace: &Trace, playhead: Option<Nanos>) {
        let size = Size::new(1000.0, 1000.0);
        let viewport = self.viewport(trace, size);
        let length = viewport.to.since(viewport.from).0 as f32;
        let shift = Nanos((length * MOVE) as u64);
        let centre = self.pointer.or(playhead);
        let zoomed = |factor: f64| zoomed(viewport, centre, factor);
        let moved = |from: Nanos| Viewport {
            from,
            to: Nanos(from.0 + viewport.to.since(viewport.from).0),
            ..viewport
        };
        match look {
            Look::Fit => self.fit(),
            Look::ZoomIn => self.move_to(zoomed(ZOOM), trace),
            Look::ZoomOut => self.move_to(zoomed(1.0 / ZOOM), trace),
            Look::Earlier => self.pan(moved(viewport.from.since(shift)), trace),
            Look::Later => self.pan(moved(viewport.from + shift), trace),
            Look::Follow => self.following = Following::Playhead,
            Look::Arrows => {
                self.arrows = match self.arrows {
                    Arrows::Hidden => Arrows::Shown,
                    Arrows::Shown => Arrows::Hidden,
                }
            }
            Look::Order => self.arrangement.order = after(&Order::ALL, self.arrangement.order),
            Look::Fold => self.fold(trace),
            Look::Mark => self.mark(self.pointer.or(playhead).unwrap_or_default()),
            Look::ForgetMarks => self.marks.clear(),
            Look::NextGpu
            | Look::PreviousGpu
            | Look::FitSelection
            | Look::NextSpan
            | Look::PreviousSpan
            | Look::AlongArrow
            | Look::AgainstArrow
            | Look::Search
            | Look::NextFound
            | Look::PreviousFound
            | Look::Path
            | Look::Pin => {}
        }
    }

    /// Folds rows in the next way that makes a difference to `trace`.
    fn fold(&mut self, trace: &Trace) {
        let before = self.arrangement.fold;
        let foreign = !trace.tracks.is_empty();
        let differs = |fold: Fold| match fold {
            Fold::Nothing => true,
            Fold::Gpu => !foreign || trace.ranks.len() > 1,
            Fold::Stage => !foreign && trace.ranks.iter().any(|info| info.pp > 0),
            Fold::Replica => !foreign && trace.ranks.iter().any(|info| info.dp > 0),
        };
        let mut next = after(&Fold::ALL, before);
        while !differs(next) {
            next = after(&Fold::ALL, next);
        }
        self.arrangement.fold = next;
        self.scroll = 0.0;
    }

    /// Marks a time; one that is marked already, no longer.
    pub(super) fn mark(&mut self, time: Nanos) {
        match self.marks.binary_search(&time) {
            Ok(index) => {
                self.marks.remove(index);
            }
            Err(index) => {
                self.marks.insert(index, time);
                if self.marks.len() > MOST_MARKS {
                    self.marks.remove(0);
                }
            }
        }
    }

    /// The times that were marked, in order.
    pub(super) fn marks(&self) -> &[Nanos] {
        &self.marks
    }

    /// Forgets the marks; whether there were any.
    pub(super) fn forget_marks(&mut self) -> bool {
        !std::mem::take(&mut self.marks).is_empty()
    }

    /// A rank's row at the top, or back in its place.
    pub(super) fn pin(&mut self, rank: Rank) {
        if !self.arrangement.pinned.remove(&rank) && self.arrangement.pinned.len() < MOST_PINNED {
            self.arrangement.pinned.insert(rank);
        }
    }

    /// Another part, by hand: the playhead is followed no longer.
    pub(super) fn pan(&mut self, viewport: Viewport, trace: &Trace) {
        self.following = Following::Nothing;
        self.move_to(viewport, trace);
    }

    /// Brings what is to be seen into `scene`'s room.
    pub(super) fn revealed(&mut self, scene: &Timeline<'_>, trace: &Trace, overview: &Overview) {
        let Some(reveal) = self.reveal.take() else {
            return;
        };
        let mut view = scene.viewport();
        let length = view.to.since(view.from);
        let own = reveal.to.since(reveal.from);
        if reveal.fit {
            let air = Nanos((own.0 / 8).max(5));
            view.from = reveal.from.since(air);
            view.to = Nanos(reveal.to.0.saturating_add(air.0));
        } else if reveal.from < view.from || reveal.to > view.to {
            // As much of it as there is room for, in the middle.
            let middle = Nanos(reveal.from.0 + own.0.min(length.0) / 2);
            view.from = middle.since(Nanos(length.0 / 2));
            view.to = Nanos(view.from.0.saturating_add(length.0));
        }
        let row = reveal.rank.and_then(|rank| overview.lineup.row(rank));
        if let Some(row) = row {
            let (top, pitch) = (scene.row_top(row), scene.rows().pitch);
            let plot = scene.plot();
            let hidden = scene.hidden_to(row);
            if top < hidden {
                view.scroll -= hidden - top;
            } else if top + pitch > plot.bottom() {
                view.scroll += top + pitch - plot.bottom();
            }
        }
        if view != scene.viewport() {
            self.pan(view, trace);
        }
    }

    /// What drawing needs to know of `trace`, in the rows that are wanted.
    pub(super) fn overview(&mut self, trace: &Arc<Trace>) -> Arc<Overview> {
        let index = self.index_of(trace);
        Arc::clone(&self.known[index].overview)
    }

    /// The timeline as a text, for those who cannot see it.
    pub(super) fn account(&mut self, trace: &Arc<Trace>) -> Arc<str> {
        let index = self.index_of(trace);
        let known = &mut self.known[index].account;
        Arc::clone(known.get_or_insert_with(|| account(trace).into()))
    }

    fn index_of(&mut self, trace: &Arc<Trace>) -> usize {
        let found = self
            .known
            .iter()
            .position(|known| Arc::ptr_eq(&known.trace, trace));
        let index = found.unwrap_or_else(|| {
            if self.known.len() > MOST_KNOWN {
                self.known.remove(0);
            }
            self.known.push(Known {
                trace: Arc::clone(trace),
                overview: Arc::new(Overview::new(trace)),
                arranged: Arrangement::default(),
                account: None,
                painted: None,
            });
            self.known.len() - 1
        });
        let known = &mut self.known[index];
        if known.arranged != self.arrangement {
            known.overview = Arc::new(known.overview.arranged(trace, &self.arrangement));
            known.arranged = self.arrangement.clone();
            known.painted = None;
        }
        index
    }

    /// The timeline painted for `setting`, and the empty rows before anything happens.
    pub(super) fn painted(
        &mut self,
        ctx: &Context,
        trace: &Arc<Trace>,
        setting: &Setting,
    ) -> (&Painted, &Painted) {
        let index = self.index_of(trace);
        let known = &mut self.known[index];
        let kept = known
            .painted
            .take()
            .filter(|(of_setting, ..)| of_setting == setting);
        let (_, full, empty) = known.painted.insert(kept.unwrap_or_else(|| {
            let scene = |look: &SceneLook| -> Scene {
                Timeline::new(trace, &known.overview, setting.viewport, look).scene()
            };
            let paint = |scene| Painted::new(ctx, scene, setting.origin, setting.pixels_per_point);
            let before = SceneLook {
                until: Some(Nanos::ZERO),
                ..setting.look.clone()
            };
            (
                setting.clone(),
                paint(scene(&setting.look)),
                paint(scene(&before)),
            )
        }));
        (full, empty)
    }
}

/// What comes after `one` in `all`; after the last, the first.
fn after<T: Copy + PartialEq>(all: &[T], one: T) -> T {
    let at = all.iter().position(|other| *other == one);
    let next = at.map_or(0, |at| (at + 1) % all.len());
    all.get(next).copied().unwrap_or(one)
}

/// `viewport` closer around `centre`, or around its middle if that is not in it.
fn zoomed(viewport: Viewport, centre: Option<Nanos>, factor: f64) -> Viewport {
    let (from, to) = (viewport.from, viewport.to);
    let inside = centre.filter(|centre| (from..=to).contains(centre));
    let centre = inside.unwrap_or(Nanos(from.0 + to.since(from).0 / 2));
    viewport.zoomed(centre, factor)
}

/// How a timeline looks in the window.
pub(super) fn look(theme: Theme, sizes: Sizes, arrows: Arrows, lit: Lit) -> SceneLook {
    SceneLook {
        theme,
        sizes,
        arrows,
        lit,
        ..SceneLook::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_marked_twice_is_marked_no_longer() {
        let mut view = TimelineView::default();
        for time in [30, 10, 20, 30] {
            view.mark(Nanos(time));
        }
        assert_eq!(view.marks(), [Nanos(10), Nanos(20)]);
        assert!(view.forget_marks() && !view.forget_marks());
    }
}

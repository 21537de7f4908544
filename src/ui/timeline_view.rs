//! Which part of the timeline is seen, and the painted scenes that are kept while nothing changes.

use std::sync::Arc;

use eframe::egui::Pos2;

use crate::scene::tokens::{Sizes, Theme};
use crate::scene::{Arrows, Lit, Look as SceneLook, Overview, Scene, Size, Timeline, Viewport};
use crate::session::Timeline as Step;
use crate::units::Nanos;

use super::paint::Painted;
use super::wish::Look;

/// How far a key moves or zooms.
const ZOOM: f64 = 1.5;
const MOVE: f32 = 0.2;

/// How many timelines are remembered as they were painted.
const MOST_KNOWN: usize = 6;

/// All that a painted scene depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) viewport: Viewport,
    pub(super) look: SceneLook,
    pub(super) origin: Pos2,
    pub(super) pixels_per_point: f32,
}

/// A step's timeline with what drawing needs to know of it.
#[derive(Debug)]
struct Known {
    step: Arc<Step>,
    overview: Arc<Overview>,
    /// The scene, and the one without anything that happens, as painted for a setting.
    painted: Option<(Setting, Painted, Painted)>,
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
        self.known.clear();
    }

    /// The axis reaches to at least this time.
    pub(super) fn reach(&mut self, to: Nanos) {
        self.reach = to;
    }

    /// All of `step`, and of what it is compared with.
    fn whole(&self, step: &Step, size: Size) -> Viewport {
        let whole = Viewport::whole(&step.trace, size);
        Viewport {
            to: whole.to.max(self.reach),
            ..whole
        }
    }

    /// Arrows from sends to receives, or not.
    pub(super) fn arrows(&self) -> Arrows {
        self.arrows
    }

    /// The part of `step` that is seen, in room of `size`.
    pub(super) fn viewport(&self, step: &Step, size: Size) -> Viewport {
        let whole = self.whole(step, size);
        let (from, to) = self.window.unwrap_or((whole.from, whole.to));
        Viewport {
            from,
            to,
            scroll: self.scroll,
            ..whole
        }
    }

    /// Shows another part from now on.
    pub(super) fn move_to(&mut self, viewport: Viewport, step: &Step) {
        let whole = self.whole(step, viewport.size);
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
    pub(super) fn look(&mut self, look: Look, step: &Step, playhead: Nanos) {
        let size = Size::new(1000.0, 1000.0);
        let viewport = self.viewport(step, size);
        let length = viewport.to.since(viewport.from).0 as f32;
        let shift = Nanos((length * MOVE) as u64);
        let zoomed = |factor: f64| zoomed(viewport, playhead, factor);
        let moved = |from: Nanos| Viewport {
            from,
            to: Nanos(from.0 + viewport.to.since(viewport.from).0),
            ..viewport
        };
        match look {
            Look::Fit => self.reset(),
            Look::ZoomIn => self.move_to(zoomed(ZOOM), step),
            Look::ZoomOut => self.move_to(zoomed(1.0 / ZOOM), step),
            Look::Earlier => self.pan(moved(viewport.from.since(shift)), step),
            Look::Later => self.pan(moved(viewport.from + shift), step),
            Look::Arrows => {
                self.arrows = match self.arrows {
                    Arrows::Hidden => Arrows::Shown,
                    Arrows::Shown => Arrows::Hidden,
                }
            }
            Look::NextGpu | Look::PreviousGpu => {}
        }
    }

    /// Another part, by hand: the playhead is followed no longer.
    pub(super) fn pan(&mut self, viewport: Viewport, step: &Step) {
        self.following = Following::Nothing;
        self.move_to(viewport, step);
    }

    /// What drawing needs to know of `step`.
    pub(super) fn overview(&mut self, step: &Arc<Step>) -> Arc<Overview> {
        let index = self.index_of(step);
        Arc::clone(&self.known[index].overview)
    }

    fn index_of(&mut self, step: &Arc<Step>) -> usize {
        let found = self
            .known
            .iter()
            .position(|known| Arc::ptr_eq(&known.step, step));
        found.unwrap_or_else(|| {
            if self.known.len() > MOST_KNOWN {
                self.known.remove(0);
            }
            self.known.push(Known {
                step: Arc::clone(step),
                overview: Arc::new(Overview::new(&step.trace)),
                painted: None,
            });
            self.known.len() - 1
        })
    }

    /// The step painted for `setting`, and the empty rows before anything happens.
    pub(super) fn painted(&mut self, step: &Arc<Step>, setting: &Setting) -> (&Painted, &Painted) {
        let index = self.index_of(step);
        let known = &mut self.known[index];
        let kept = known
            .painted
            .take()
            .filter(|(of_setting, ..)| of_setting == setting);
        let (_, full, empty) = known.painted.insert(kept.unwrap_or_else(|| {
            let scene = |look: &SceneLook| -> Scene {
                Timeline::new(&step.trace, &known.overview, setting.viewport, look).scene()
            };
            let paint = |scene| Painted::new(scene, setting.origin, setting.pixels_per_point);
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

/// `viewport` closer around the playhead, or around its middle if the playhead is not in it.
fn zoomed(viewport: Viewport, playhead: Nanos, factor: f64) -> Viewport {
    let (from, to) = (viewport.from, viewport.to);
    let inside = (from..=to).contains(&playhead);
    let centre = if inside {
        playhead
    } else {
        Nanos(from.0 + to.since(from).0 / 2)
    };
    let shrunk = |part: Nanos| (part.0 as f64 / factor) as u64;
    Viewport {
        from: Nanos(centre.0.saturating_sub(shrunk(centre.since(from)))),
        to: Nanos(centre.0.saturating_add(shrunk(to.since(centre)).max(10))),
        ..viewport
    }
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

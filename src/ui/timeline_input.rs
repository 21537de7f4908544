//! Pointer and wheel over the timeline: scrub, select, measure, pan, zoom, explain.

use eframe::egui::{CursorIcon, PointerButton, Pos2, Response, Ui};

use crate::scene::Hit;
use crate::trace::{Area, Kind, Phase, Span, Stream, Trace};
use crate::units::Nanos;

use super::describe::describe;
use super::timeline::Canvas;
use super::timeline_view::{Drag, Reveal, TimelineView};
use super::wish::{Travel, Wish};

/// How near to an edge of a span an edge of an area or a mark is put on it, in points.
const SNAP: f32 = 6.0;

impl Canvas<'_> {
    fn local(&self, at: Pos2) -> (f32, f32) {
        (at.x - self.rect.left(), at.y - self.rect.top())
    }

    fn in_axis(&self, at: Pos2) -> bool {
        let (x, y) = self.local(at);
        x >= self.scene.plot().x - 4.0 && y < self.scene.plot().y
    }

    fn in_plot(&self, at: Pos2) -> bool {
        let (x, y) = self.local(at);
        self.scene.plot().contains(crate::scene::Point::new(x, y))
    }

    /// What is under the pointer, if it has been seen.
    pub(super) fn hovered(&self, response: &Response) -> Option<Hit> {
        let (x, y) = self.local(response.hover_pos()?);
        let hit = self.scene.hit(x, y)?;
        let Some(run) = self.sight.run else {
            return Some(hit);
        };
        let seen = run.playback().seen();
        let hidden = seen.step == 0 && hit.span.start >= seen.time;
        (!hidden).then_some(hit)
    }

    fn time_at(&self, at: Pos2) -> Nanos {
        self.scene.scale().time(self.local(at).0)
    }

    /// The time at a place; near an edge of a span of the row there, that edge.
    fn snapped(&self, at: Pos2) -> Nanos {
        let time = self.time_at(at);
        let (_, y) = self.local(at);
        let Some(rank) = self.scene.rank_at(y) else {
            return time;
        };
        let trace = self.sight.trace;
        let reach = self.scene.scale().duration_of(SNAP);
        let (from, to) = (time.since(reach), Nanos(time.0.saturating_add(reach.0)));
        let lanes = Stream::ALL.map(|stream| trace.lane(rank, stream));
        let edges = lanes
            .iter()
            .flat_map(|lane| lane.overlapping(from, to).take(64))
            // The pieces of a pass are no edges: the pass is.
            .filter(|span| span.phase != Phase::Busy || !is_piece(trace, span))
            .flat_map(|span| [span.start, span.end]);
        let apart = |edge: &Nanos| edge.since(time).max(time.since(*edge));
        let nearest = edges.min_by_key(apart);
        nearest.filter(|edge| apart(edge) <= reach).unwrap_or(time)
    }

    pub(super) fn interact(
        &self,
        ui: &Ui,
        response: &Response,
        hovered: Option<Hit>,
        timeline_view: &mut TimelineView,
        wishes: &mut Vec<Wish>,
    ) {
        let over = response.hover_pos().filter(|&at| self.in_plot(at));
        timeline_view.pointer = over.map(|at| self.snapped(at));
        self.drag(ui, response, timeline_view, wishes);
        self.wheel(ui, response, timeline_view);
        let pointer = response.interact_pointer_pos();
        if response.double_clicked() {
            Self::double_clicked(hovered, timeline_view);
        } else if response.clicked() {
            let on_axis = pointer.filter(|&at| self.in_axis(at) && self.sight.run.is_some());
            wishes.push(match on_axis {
                Some(at) => Wish::Travel(Travel::To(self.time_at(at))),
                None => self.clicked(hovered, pointer),
            });
        }
        self.explain(response, hovered);
    }

    /// On the axis a drag moves the playhead; over the rows it selects an area, or with Shift or the middle button it moves
    /// what is seen.
    fn drag(
        &self,
        ui: &Ui,
        response: &Response,
        timeline_view: &mut TimelineView,
        wishes: &mut Vec<Wish>,
    ) {
        let origin = ui.input(|input| input.pointer.press_origin());
        let pointer = response.interact_pointer_pos();
        let scrubs = origin.is_some_and(|at| self.in_axis(at)) && self.sight.run.is_some();
        if response.drag_started()
            && let Some(at) = origin
        {
            let shift = ui.input(|input| input.modifiers.shift);
            let primary = response.drag_started_by(PointerButton::Primary);
            let begins = scrubs || self.in_plot(at) || self.in_axis(at);
            timeline_view.drag = begins.then(|| Drag {
                time: self.snapped(at),
                y: self.local(at).1,
                pans: shift || !primary,
            });
        }
        if !response.dragged() {
            if response.drag_stopped() {
                timeline_view.drag = None;
            }
            return;
        }
        let Some(drag) = timeline_view.drag else {
            return;
        };
        if drag.pans {
            let delta = response.drag_delta();
            let mut moved = self.scene.panned(-delta.x);
            moved.scroll -= delta.y;
            timeline_view.pan(moved, self.sight.trace);
        } else if scrubs {
            wishes.extend(pointer.map(|at| Wish::Travel(Travel::To(self.time_at(at)))));
        } else if let Some(at) = pointer {
            wishes.push(Wish::Area(self.area(drag, at)));
        }
    }

    /// From where a drag began to where it is: of a file's axis, all rows.
    fn area(&self, drag: Drag, at: Pos2) -> Area {
        let (one, other) = (drag.time, self.snapped(at));
        let y = self.local(at).1;
        let plot = self.scene.plot();
        let rows = if drag.y < plot.y {
            (0..self.scene.row_count()).collect()
        } else {
            let y = y.max(plot.y + 0.5);
            let (top, bottom) = (drag.y.min(y), drag.y.max(y));
            self.scene.rows_between(top, bottom)
        };
        let mut ranks: Vec<usize> = rows
            .iter()
            .flat_map(|&row| self.scene.members(row).to_vec())
            .collect();
        ranks.sort_unstable();
        Area {
            from: one.min(other),
            to: one.max(other),
            ranks,
        }
    }

    /// A drag pans a timeline beside the run's, the wheel zooms both.
    pub(super) fn navigate(&self, ui: &Ui, response: &Response, timeline_view: &mut TimelineView) {
        if response.dragged() {
            let delta = response.drag_delta();
            let mut moved = self.scene.panned(-delta.x);
            moved.scroll -= delta.y;
            timeline_view.pan(moved, self.sight.trace);
        }
        if response.double_clicked() {
            timeline_view.fit();
        }
        self.wheel(ui, response, timeline_view);
    }

    /// On a span, it fills the room; beside all spans, all is seen.
    fn double_clicked(hovered: Option<Hit>, timeline_view: &mut TimelineView) {
        match hovered {
            Some(hit) => {
                timeline_view.reveal = Some(Reveal {
                    rank: None,
                    from: hit.span.start,
                    to: hit.span.end,
                    fit: true,
                });
            }
            None => timeline_view.fit(),
        }
    }

    /// A click on a span selects it, one on a name chooses the GPU.
    fn clicked(&self, hovered: Option<Hit>, at: Option<Pos2>) -> Wish {
        let beside = at
            .map(|at| self.local(at))
            .filter(|(x, _)| *x < self.scene.plot().x);
        let named = beside.and_then(|(_, y)| self.scene.rank_at(y));
        let rank = named.and_then(|index| Some(self.sight.trace.ranks.get(index)?.rank));
        match rank {
            Some(rank) => Wish::Choose(Some(rank)),
            None => Wish::Select(hovered),
        }
    }

    /// With Ctrl the wheel zooms at the pointer, with Shift or sideways it moves in time; by itself it scrolls rows where they
    /// do not fit, and else it zooms.
    fn wheel(&self, ui: &Ui, response: &Response, timeline_view: &mut TimelineView) {
        let Some(at) = response.hover_pos() else {
            return;
        };
        let (delta, shift, pinch) = ui.input(|input| {
            (
                input.smooth_scroll_delta(),
                input.modifiers.shift,
                input.zoom_delta(),
            )
        });
        let trace = self.sight.trace;
        let along = delta.x + if shift { delta.y } else { 0.0 };
        let up = if shift { 0.0 } else { delta.y };
        if pinch != 1.0 {
            // Ctrl and the wheel, or two fingers.
            let zoomed = self.scene.zoomed(self.local(at).0, f64::from(pinch));
            timeline_view.move_to(zoomed, trace);
        } else if up != 0.0 && self.scene.max_scroll() > 0.0 {
            let mut moved = self.scene.viewport();
            moved.scroll -= up;
            timeline_view.move_to(moved, trace);
        } else if up != 0.0 {
            let factor = (f64::from(up) * 0.004).exp();
            timeline_view.move_to(self.scene.zoomed(self.local(at).0, factor), trace);
        } else if along != 0.0 {
            timeline_view.pan(self.scene.panned(-along), trace);
        }
    }

    fn explain(&self, response: &Response, hovered: Option<Hit>) {
        if response.hover_pos().is_some_and(|at| self.in_axis(at)) {
            response
                .clone()
                .on_hover_cursor(CursorIcon::ResizeHorizontal);
        }
        if let Some(hit) = hovered.filter(|_| !response.dragged()) {
            explain_hit(response, self.sight.trace, &hit);
        }
    }
}

/// Whether a span is a piece of a pass.
fn is_piece(trace: &Trace, span: &Span) -> bool {
    trace.label(span.label).kind == Kind::Segment
}

/// Describes what was hit, at the pointer.
pub(super) fn explain_hit(response: &Response, trace: &Trace, hit: &Hit) {
    let said = describe(trace, hit);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.strong(said.name);
        for line in said.lines {
            ui.label(line);
        }
    });
}

//! Pointer and wheel over the timeline: scrub, pan, zoom, select, explain.

use std::sync::Arc;

use eframe::egui::{CursorIcon, Id, Pos2, Response, Ui};

use crate::scene::Hit;
use crate::session::Timeline as Step;
use crate::units::Nanos;

use super::describe::describe;
use super::timeline::Canvas;
use super::timeline_view::TimelineView;
use super::wish::{Travel, Wish};

impl Canvas<'_> {
    fn local(&self, at: Pos2) -> (f32, f32) {
        (at.x - self.rect.left(), at.y - self.rect.top())
    }

    fn in_axis(&self, at: Pos2) -> bool {
        let (x, y) = self.local(at);
        x >= self.scene.plot().x - 4.0 && y < self.scene.plot().y
    }

    /// What is under the pointer, if it has been seen.
    pub(super) fn hovered(&self, response: &Response) -> Option<Hit> {
        let (x, y) = self.local(response.hover_pos()?);
        let hit = self.scene.hit(x, y)?;
        let playback = self.stage.run.playback();
        let hidden = playback.seen().step == 0 && hit.span.start >= playback.seen().time;
        (!hidden).then_some(hit)
    }

    fn time_at(&self, at: Pos2) -> Nanos {
        self.scene.scale().time(self.local(at).0)
    }

    pub(super) fn interact(
        &self,
        ui: &Ui,
        response: &Response,
        (step, hovered): (&Arc<Step>, Option<Hit>),
        timeline_view: &mut TimelineView,
        wishes: &mut Vec<Wish>,
    ) {
        let scrubbing = Id::unique("scrubbing");
        if response.drag_started() || response.is_pointer_button_down_on() && response.clicked() {
            let on_axis = ui
                .input(|input| input.pointer.press_origin())
                .is_some_and(|at| self.in_axis(at));
            ui.data_mut(|data| data.insert_temp(scrubbing, on_axis));
        }
        let pointer = response.interact_pointer_pos();
        if response.dragged() && ui.data(|data| data.get_temp(scrubbing)).unwrap_or(false) {
            wishes.extend(pointer.map(|at| Wish::Travel(Travel::To(self.time_at(at)))));
        } else {
            self.navigate(ui, response, step, timeline_view);
        }
        if response.clicked() {
            let on_axis = pointer.filter(|&at| self.in_axis(at));
            wishes.push(match on_axis {
                Some(at) => Wish::Travel(Travel::To(self.time_at(at))),
                None => self.clicked(hovered, pointer),
            });
        }
        self.explain(response, step, hovered);
    }

    /// A drag pans, the wheel zooms, a double click shows all.
    pub(super) fn navigate(
        &self,
        ui: &Ui,
        response: &Response,
        step: &Arc<Step>,
        timeline_view: &mut TimelineView,
    ) {
        if response.dragged() {
            let delta = response.drag_delta();
            let mut moved = self.scene.panned(-delta.x);
            moved.scroll -= delta.y;
            timeline_view.pan(moved, step);
        }
        if response.double_clicked() {
            timeline_view.reset();
        }
        self.wheel(ui, response, step, timeline_view);
    }

    /// A click on a span selects it, one on a name chooses the GPU.
    fn clicked(&self, hovered: Option<Hit>, at: Option<Pos2>) -> Wish {
        let beside = at
            .map(|at| self.local(at))
            .filter(|(x, _)| *x < self.scene.plot().x);
        let named = beside.and_then(|(_, y)| self.scene.rank_at(y));
        let rank = named.and_then(|index| {
            let step = self.stage.run.timeline()?;
            Some(step.trace.ranks.get(index)?.rank)
        });
        match rank {
            Some(rank) => Wish::Choose(Some(rank)),
            None => Wish::Select(hovered),
        }
    }

    /// The wheel zooms at the pointer; with Shift it scrolls rows, sideways it pans.
    fn wheel(
        &self,
        ui: &Ui,
        response: &Response,
        step: &Arc<Step>,
        timeline_view: &mut TimelineView,
    ) {
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
        let up = delta.y + if shift { delta.x } else { 0.0 };
        if shift && up != 0.0 {
            let mut moved = self.scene.viewport();
            moved.scroll -= up;
            timeline_view.pan(moved, step);
        } else if delta.y != 0.0 || pinch != 1.0 {
            let factor = f64::from(pinch) * (f64::from(delta.y) * 0.004).exp();
            timeline_view.move_to(self.scene.zoomed(self.local(at).0, factor), step);
        } else if delta.x != 0.0 {
            timeline_view.pan(self.scene.panned(-delta.x), step);
        }
    }

    fn explain(&self, response: &Response, step: &Step, hovered: Option<Hit>) {
        if response.hover_pos().is_some_and(|at| self.in_axis(at)) {
            response
                .clone()
                .on_hover_cursor(CursorIcon::ResizeHorizontal);
        }
        if let Some(hit) = hovered {
            explain_hit(response, step, &hit);
        }
    }
}

/// Describes what was hit, at the pointer.
pub(super) fn explain_hit(response: &Response, step: &Step, hit: &Hit) {
    let said = describe(step, hit);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.strong(said.name);
        for line in said.lines {
            ui.label(line);
        }
    });
}

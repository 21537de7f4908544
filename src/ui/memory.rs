//! Memory per GPU as stacked bars: filled at the playhead, outlined to the peak, against what the GPU has.

use eframe::egui::{
    Align2, Rect, RichText, Role, Sense, Shape, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};

use crate::scene::fonts::Weight;
use crate::session::Timeline;
use crate::trace::Memory;
use crate::units::{Bytes, Nanos};
use crate::words::say;

use super::theme::{color, font};
use super::timeline::Stage;
use super::view::View;
use super::wish::Wish;

/// The capacity sets the scale if it is at most so many times the peak.
const NEAR: f64 = 2.5;
/// A bar is at least so wide, in points; what has no room is left out, and said.
const NARROWEST: f32 = 3.0;

/// Shows the panel.
pub(super) fn show(ui: &mut Ui, stage: Stage<'_>, step: &Timeline, wishes: &mut Vec<Wish>) {
    let (view, time) = (stage.view, stage.run.playback().at().time);
    let capacity = step.report.config.hardware.memory();
    let peak = step.trace.memory.iter().map(Memory::peak).max();
    let peak = peak.unwrap_or_default();
    heading(ui, (peak, capacity), view);
    let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::click());
    let gpus = step.trace.memory.len();
    let name = say!(
        view,
        "Memory of {gpus} GPUs, most {peak} of {capacity}",
        gpus,
        peak,
        capacity
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name.as_str()));
    let bars = Bars::new(rect, step, (peak, capacity), view);
    bars.paint(ui, step, time, stage);
    let rank = response
        .hover_pos()
        .and_then(|at| bars.at(at.x))
        .map(|index| (index, step.trace.ranks[index].rank));
    if let Some((index, rank)) = rank {
        wishes.push(Wish::Point(Some(rank)));
        let said = parts_text(&step.trace.memory[index], time, view);
        response.on_hover_ui_at_pointer(|ui| {
            ui.strong(format!("GPU {rank}"));
            for line in said {
                ui.label(line);
            }
        });
    }
}

fn heading(ui: &mut Ui, (peak, capacity): (Bytes, Bytes), view: &View) {
    let palette = view.palette();
    let (text, tint) = if peak > capacity {
        (
            say!(view, "Does not fit: {peak} of {capacity}", peak, capacity),
            palette.error,
        )
    } else {
        (
            say!(view, "Peak {peak} of {capacity} a GPU", peak, capacity),
            palette.text_weak,
        )
    };
    ui.label(RichText::new(text).color(color(tint)));
}

fn parts_text(memory: &Memory, time: Nanos, view: &View) -> Vec<String> {
    let fixed = &memory.fixed;
    vec![
        say!(view, "Parameters {bytes}", bytes = fixed.parameters),
        say!(view, "Gradients {bytes}", bytes = fixed.gradients),
        say!(view, "Optimizer state {bytes}", bytes = fixed.optimizer),
        say!(
            view,
            "Activations now {now}, peak {peak}",
            now = memory.activations_at(time),
            peak = memory.peak_activations()
        ),
    ]
}

struct Bars<'a> {
    area: Rect,
    pitch: f32,
    count: usize,
    top: f64,
    capacity: Bytes,
    view: &'a View,
}

impl<'a> Bars<'a> {
    fn new(rect: Rect, step: &Timeline, (peak, capacity): (Bytes, Bytes), view: &'a View) -> Self {
        let em = view.sizes().body;
        let area = Rect::from_min_max(
            rect.min + vec2(0.0, em * 0.3),
            rect.max - vec2(0.0, em * 1.2),
        );
        let near = capacity.0 as f64 <= peak.0 as f64 * NEAR;
        let top = if near { peak.max(capacity) } else { peak };
        let most = (area.width() / NARROWEST) as usize;
        let count = step.trace.memory.len().min(most.max(1));
        Self {
            pitch: (area.width() / count.max(1) as f32).min(em * 4.0),
            count,
            top: top.0.max(1) as f64 * 1.04,
            capacity,
            area,
            view,
        }
    }

    fn at(&self, x: f32) -> Option<usize> {
        let index = ((x - self.area.left()) / self.pitch).floor();
        (index >= 0.0 && (index as usize) < self.count).then_some(index as usize)
    }

    fn y(&self, bytes: Bytes) -> f32 {
        self.area.bottom() - (bytes.0 as f64 / self.top) as f32 * self.area.height()
    }

    fn paint(&self, ui: &Ui, step: &Timeline, time: Nanos, stage: Stage<'_>) {
        if self.area.height() < 4.0 {
            return;
        }
        let mesh = stage.run.config().layout.mesh().ok();
        let lit = stage.attention.lit(mesh.as_ref(), &step.trace);
        for index in 0..self.count {
            let rank = step.trace.ranks[index].rank;
            self.bar(ui, index, &step.trace.memory[index], time, lit.rank(rank));
            self.number(ui, index, rank.0);
        }
        let palette = self.view.palette();
        if (self.capacity.0 as f64) <= self.top {
            let y = self.y(self.capacity);
            let ends = [pos2(self.area.left(), y), pos2(self.area.right(), y)];
            let stroke = Stroke::new(1.5, color(palette.memory.capacity));
            ui.painter()
                .extend(Shape::dashed_line(&ends, stroke, 5.0, 4.0));
        }
    }

    fn bar(&self, ui: &Ui, index: usize, memory: &Memory, time: Nanos, lit: bool) {
        let palette = self.view.palette();
        let shade = |colour| color(if lit { colour } else { palette.dimmed(colour) });
        let gap = (self.pitch * 0.18).min(8.0);
        let left = self.area.left() + index as f32 * self.pitch + gap / 2.0;
        let right = left + self.pitch - gap;
        let parts = [
            (memory.fixed.parameters, palette.memory.parameters),
            (memory.fixed.gradients, palette.memory.gradients),
            (memory.fixed.optimizer, palette.memory.optimizer),
            (memory.activations_at(time), palette.memory.activations),
        ];
        let mut below = Bytes::ZERO;
        for (bytes, colour) in parts {
            let rect = Rect::from_min_max(
                pos2(left, self.y(below + bytes)),
                pos2(right, self.y(below)),
            );
            ui.painter().rect_filled(rect, 0.0, shade(colour));
            below += bytes;
        }
        let peak = memory.peak();
        let over = peak > self.capacity;
        let outline = if over {
            palette.error
        } else {
            palette.memory.activations
        };
        let rect = Rect::from_min_max(pos2(left, self.y(peak)), pos2(right, self.area.bottom()));
        let stroke = Stroke::new(1.0, shade(outline));
        ui.painter()
            .rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
    }

    fn number(&self, ui: &Ui, index: usize, rank: u32) {
        let small = self.view.sizes().small();
        let every = (small * 1.8 / self.pitch).ceil().max(1.0) as usize;
        if !index.is_multiple_of(every) {
            return;
        }
        let x = self.area.left() + (index as f32 + 0.5) * self.pitch;
        ui.painter().text(
            pos2(x, self.area.bottom() + small * 0.2),
            Align2::CENTER_TOP,
            rank.to_string(),
            font(small, Weight::Regular),
            color(self.view.palette().text_weak),
        );
    }
}

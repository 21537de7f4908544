//! A picture of the mesh: a row for each replica, a column for each pipeline position, a cell for each GPU; pointing
//! at one lights its groups here and in the timeline.

use eframe::egui::{
    Align2, Rect, RichText, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};

use crate::mesh::{Axis, Coord, Mesh};
use crate::scene::Colour;
use crate::scene::fonts::{Weight, shortened, width};
use crate::session::Timeline;
use crate::trace::Stream;
use crate::units::{Nanos, Rank};
use crate::words::say;

use super::attention::{AXES, Groups};
use super::holdings;
use super::theme::{color, font};
use super::timeline::Stage;
use super::view::View;
use super::wish::Wish;

/// With more passes than this, it is not told where a micro-batch is.
const MOST_PASSES: usize = 200_000;

/// Cells smaller than this, in points, are not drawn.
const SMALLEST: f32 = 3.0;

/// The colour of an axis' groups: that of what they send.
pub(super) fn axis_colour(view: &View, axis: Axis) -> Colour {
    let palette = view.palette();
    match axis {
        Axis::Tp => palette.all_reduce_tp,
        Axis::Dp => palette.all_reduce,
        Axis::Pp | Axis::Model | Axis::Embedding | Axis::World => palette.send,
    }
}

/// Shows the panel.
pub(super) fn show(ui: &mut Ui, stage: Stage<'_>, step: &Timeline, wishes: &mut Vec<Wish>) {
    let view = stage.view;
    let Ok(mesh) = step.report.config.layout.mesh() else {
        return;
    };
    let hovered = stage.attention.hovered;
    let under = hovered
        .and_then(|hit| step.trace.ranks.get(hit.rank_index))
        .map(|info| info.rank);
    let shown = stage.attention.gpu().or(under);
    let groups = shown.and_then(|rank| Groups::of(&mesh, rank));
    let lines = view.sizes().body * 3.1;
    let size = ui.available_size() - vec2(0.0, lines);
    let (rect, response) = ui.allocate_exact_size(size.max(vec2(1.0, 1.0)), Sense::click());
    let text = say!(
        view,
        "{gpus} GPUs, {dp} replicas of {pp} pipeline positions of {tp} slices",
        gpus = mesh.ranks(),
        dp = mesh.dp(),
        pp = mesh.pp(),
        tp = mesh.tp()
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text.as_str()));
    let grid = Grid::new(rect, &mesh, view);
    grid.paint(ui, step, groups.as_ref());
    let micro_batch = stage.attention.micro_batch(&step.trace);
    if let Some(micro_batch) = micro_batch {
        grid.paint_micro_batch(ui, step, micro_batch, stage.run.playback().at().time);
    }
    explain(ui, step, groups.as_ref(), view);
    let pointed = response.hover_pos().and_then(|at| grid.at(at));
    if let Some(rank) = pointed {
        wishes.push(Wish::Point(Some(rank)));
        if response.clicked() {
            wishes.push(Wish::Choose(Some(rank)));
        }
    }
}

/// What the GPU holds, and who is in its groups.
fn explain(ui: &mut Ui, step: &Timeline, groups: Option<&Groups>, view: &View) {
    let weak = color(view.palette().text_weak);
    let Some(groups) = groups else {
        let hint = say!(
            view,
            "Point at a GPU, or press ↓, to see what it holds and its groups"
        );
        ui.label(RichText::new(hint).small().color(weak));
        return;
    };
    let held = format!("GPU {}: {}", groups.rank, holdings::all(step, groups.at));
    let sequences = holdings::sequences(step, groups.at.dp);
    ui.label(RichText::new(held).small()).on_hover_text(say!(
        view,
        "{sequences} of the global batch",
        sequences
    ));
    ui.horizontal(|ui| {
        for (axis, members) in AXES.iter().zip(&groups.members) {
            if members.len() < 2 {
                continue;
            }
            let list: Vec<String> = members.iter().take(6).map(Rank::to_string).collect();
            let more = if members.len() > 6 { "…" } else { "" };
            let text = format!("{} {}{more}", axis.name().to_uppercase(), list.join(" "));
            let tint = color(axis_colour(view, *axis));
            let (rect, _) = ui.allocate_exact_size(
                vec2(view.sizes().body * 0.7, view.sizes().body * 0.7),
                Sense::hover(),
            );
            ui.painter()
                .rect_stroke(rect, 2.0, Stroke::new(2.0, tint), StrokeKind::Inside);
            ui.label(RichText::new(text).small());
        }
    });
}

struct Grid<'a> {
    mesh: &'a Mesh,
    view: &'a View,
    /// Of the cells.
    origin: eframe::egui::Pos2,
    /// Of a cell with all its slices, with the gap to the next.
    pitch: eframe::egui::Vec2,
    names: f32,
    heads: f32,
}

impl<'a> Grid<'a> {
    fn new(rect: Rect, mesh: &'a Mesh, view: &'a View) -> Self {
        let sizes = view.sizes();
        let small = sizes.small();
        let heads = small * 1.3;
        let names = if mesh.dp() > 1 {
            width(&replica(mesh.dp() - 1, view), small, Weight::Regular) + sizes.gap()
        } else {
            0.0
        };
        let origin = rect.min + vec2(names, heads);
        let room = rect.max - origin;
        let pitch = vec2(
            (room.x / mesh.pp() as f32).min(sizes.body * 11.0),
            (room.y / mesh.dp() as f32).min(sizes.body * 4.0),
        );
        Self {
            mesh,
            view,
            origin,
            pitch,
            names,
            heads,
        }
    }

    fn cell(&self, at: Coord) -> Rect {
        let gap = (self.pitch.min_elem() * 0.1).clamp(1.0, 6.0);
        let whole = vec2(self.pitch.x - gap, self.pitch.y - gap);
        let slice = whole.x / self.mesh.tp() as f32;
        let min = self.origin
            + vec2(at.pp as f32 * self.pitch.x, at.dp as f32 * self.pitch.y)
            + vec2(at.tp as f32 * slice, 0.0);
        let seam = if self.mesh.tp() > 1 { 1.0 } else { 0.0 };
        Rect::from_min_size(min, vec2(slice - seam, whole.y))
    }

    fn at(&self, at: eframe::egui::Pos2) -> Option<Rank> {
        let place = at - self.origin;
        let (column, row) = (place.x / self.pitch.x, place.y / self.pitch.y);
        let inside = column >= 0.0
            && row >= 0.0
            && column < self.mesh.pp() as f32
            && row < self.mesh.dp() as f32;
        if !inside {
            return None;
        }
        let slices = column.fract() * self.mesh.tp() as f32;
        let coord = Coord {
            dp: row as usize,
            pp: column as usize,
            tp: (slices as usize).min(self.mesh.tp() - 1),
        };
        Some(self.mesh.rank(coord))
    }

    fn paint(&self, ui: &Ui, step: &Timeline, groups: Option<&Groups>) {
        let slice = self.pitch.x / self.mesh.tp() as f32;
        if slice < SMALLEST || self.pitch.y < SMALLEST {
            let text = say!(
                self.view,
                "{gpus} GPUs, too many to draw here",
                gpus = self.mesh.ranks()
            );
            ui.painter().text(
                self.origin,
                Align2::LEFT_TOP,
                text,
                font(self.view.sizes().body, Weight::Regular),
                color(self.view.palette().text_weak),
            );
            return;
        }
        self.paint_names(ui, step);
        for (index, at) in self.mesh.coords().enumerate() {
            self.paint_cell(ui, step, (Rank(index as u32), at), groups);
        }
    }

    /// Where the lit micro-batch is at the playhead: the pass that works on it, or a bar where it is kept.
    fn paint_micro_batch(&self, ui: &Ui, step: &Timeline, micro_batch: u32, time: Nanos) {
        let (palette, trace) = (self.view.palette(), &step.trace);
        let slice = self.pitch.x / self.mesh.tp() as f32;
        // All passes of all GPUs are looked through.
        let passes = trace.lane(0, Stream::Passes).spans().len() * trace.ranks.len();
        if slice < SMALLEST || self.pitch.y < SMALLEST || passes > MOST_PASSES {
            return;
        }
        for (index, info) in trace.ranks.iter().enumerate() {
            if info.rank.index() >= self.mesh.ranks() {
                continue;
            }
            let rect = self.cell(self.mesh.coord(info.rank));
            let radius = self.view.sizes().radius() * 1.5;
            let now = trace.lane(index, Stream::Passes).at(time);
            let label = now.map(|span| trace.label(span.label));
            let works = label.filter(|label| label.micro_batch == Some(micro_batch));
            if let Some((label, pass)) = works.and_then(|label| Some((label, label.pass?))) {
                let fill = palette.pass(pass);
                ui.painter().rect_filled(rect, radius, color(fill));
                let (size, ink) = (self.view.sizes().small(), color(palette.text_on(fill)));
                let font = font(size, Weight::SemiBold);
                ui.painter().text(
                    rect.center(),
                    Align2::CENTER_CENTER,
                    label.short(),
                    font,
                    ink,
                );
            } else if trace
                .in_flight(index, micro_batch)
                .iter()
                .any(|&(from, to)| (from..to).contains(&time))
            {
                let bar = Rect::from_min_max(pos2(rect.left(), rect.bottom() - 3.0), rect.max);
                ui.painter().rect_filled(bar, 1.0, color(palette.accent));
            }
        }
    }

    /// Replicas at the left, stages and their layers above.
    fn paint_names(&self, ui: &Ui, step: &Timeline) {
        let small = self.view.sizes().small();
        let weak = color(self.view.palette().text_weak);
        let write = |at: eframe::egui::Pos2, anchor: Align2, text: String| {
            ui.painter()
                .text(at, anchor, text, font(small, Weight::Regular), weak);
        };
        if self.pitch.y >= small && self.names > 0.0 {
            for dp in 0..self.mesh.dp() {
                let y = self.origin.y + (dp as f32 + 0.45) * self.pitch.y;
                let at = pos2(self.origin.x - self.names, y);
                write(at, Align2::LEFT_CENTER, replica(dp, self.view));
            }
        }
        for pp in 0..self.mesh.pp() {
            let short = holdings::layers_short(step, pp);
            let texts = [
                holdings::layers(step, pp),
                say!(self.view, "layers {short}", short),
                short,
            ];
            let room = self.pitch.x - 4.0;
            let fitting = texts
                .into_iter()
                .find(|text| width(text, small, Weight::Regular) <= room);
            if let Some(text) = fitting {
                let x = self.origin.x + pp as f32 * self.pitch.x;
                let at = pos2(x, self.origin.y - self.heads * 0.55);
                write(at, Align2::LEFT_CENTER, text);
            }
        }
    }

    fn paint_cell(
        &self,
        ui: &Ui,
        step: &Timeline,
        (rank, at): (Rank, Coord),
        groups: Option<&Groups>,
    ) {
        let (palette, sizes) = (self.view.palette(), self.view.sizes());
        let rect = self.cell(at);
        let own = groups.is_some_and(|groups| groups.rank == rank);
        let axis = groups.and_then(|groups| groups.axis_of(rank));
        let fill = match axis {
            _ if own => palette.raised.mixed(palette.accent, 0.45),
            Some(axis) => palette.raised.mixed(axis_colour(self.view, axis), 0.3),
            None => palette.raised,
        };
        let radius = sizes.radius() * 1.5;
        ui.painter().rect_filled(rect, radius, color(fill));
        let outline = match axis {
            _ if own => Some(palette.accent),
            axis => axis.map(|axis| axis_colour(self.view, axis)),
        };
        if let Some(colour) = outline {
            let stroke = Stroke::new(2.0, color(colour));
            ui.painter()
                .rect_stroke(rect, radius, stroke, StrokeKind::Inside);
        }
        let lit = groups.is_none() || outline.is_some();
        self.paint_text(ui, step, (rank, at, rect), lit);
    }

    fn paint_text(
        &self,
        ui: &Ui,
        step: &Timeline,
        (rank, at, rect): (Rank, Coord, Rect),
        lit: bool,
    ) {
        let (palette, sizes) = (self.view.palette(), self.view.sizes());
        let size = sizes.small();
        // The second line is told apart by its weight: weak text would not read on a lit cell.
        let ink = color(palette.text_if_lit(lit));
        let room = rect.width() - 4.0;
        let names = [format!("GPU {rank}"), rank.to_string()];
        let Some(name) = names
            .into_iter()
            .find(|name| width(name, size, Weight::SemiBold) <= room)
        else {
            return;
        };
        if rect.height() < size {
            return;
        }
        let heads = holdings::heads(step, at.tp);
        let two = self.mesh.tp() > 1
            && rect.height() >= size * 2.5
            && width(&heads, size, Weight::Regular) <= room;
        let lift = if two { size * 0.62 } else { 0.0 };
        ui.painter().text(
            rect.center() - vec2(0.0, lift),
            Align2::CENTER_CENTER,
            name,
            font(size, Weight::SemiBold),
            ink,
        );
        if two {
            ui.painter().text(
                rect.center() + vec2(0.0, size * 0.62),
                Align2::CENTER_CENTER,
                shortened(&heads, size, Weight::Regular, room),
                font(size, Weight::Regular),
                ink,
            );
        }
    }
}

fn replica(dp: usize, view: &View) -> String {
    say!(view, "replica {index}", index = dp)
}

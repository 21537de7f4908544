//! The timeline in the window: what has happened is drawn, what is to come is veiled, the playhead between them.

use std::sync::Arc;

use eframe::egui::{
    Align2, Color32, Painter, Rect, Response, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo,
    pos2, vec2,
};

use crate::mesh::Mesh;
use crate::scene::fonts::Weight;
use crate::scene::{Common, Hit, Legend, Size, Timeline};
use crate::session::Timeline as Step;
use crate::trace::Trace;
use crate::units::{Bytes, Nanos};

use super::attention::Attention;
use super::kept::{Compared, holds, mark};
use super::paint::Painted;
use super::run::Run;
use super::theme::{color, font};
use super::timeline_view::{Setting, TimelineView, look};
use super::view::View;
use super::wish::Wish;

/// How strongly what has not happened yet is put back.
const VEIL: f32 = 0.62;

/// What of the window the timeline depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub(super) run: &'a Run,
    pub(super) view: &'a View,
    pub(super) attention: &'a Attention,
    /// Timelines that the run's is compared with.
    pub(super) kept: &'a [Arc<Step>],
}

/// A timeline on the canvas, and what it depends on: a run's, or a file's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub(super) trace: &'a Arc<Trace>,
    pub(super) view: &'a View,
    pub(super) attention: &'a Attention,
    /// The run that it is of, with its playhead; none for a file.
    pub(super) run: Option<&'a Run>,
    /// The mesh of its ranks, where that is known.
    pub(super) mesh: Option<&'a Mesh>,
    /// What memory a GPU has.
    pub(super) capacity: Option<Bytes>,
    /// What was searched for.
    pub(super) found: &'a [Hit],
}

impl Sight<'_> {
    fn playhead(&self) -> Option<Nanos> {
        self.run.map(|run| run.playback().at().time)
    }
}

/// Shows a run's timeline in all of the room, its legend under it.
pub(super) fn show(
    ui: &mut Ui,
    stage: Stage<'_>,
    (timeline_view, found): (&mut TimelineView, &[Hit]),
    wishes: &mut Vec<Wish>,
) -> Option<Hit> {
    let Some(step) = stage.run.timeline().map(Arc::clone) else {
        ui.centered_and_justified(|ui| ui.label("Preparing the first timeline…"));
        return None;
    };
    let sizes = stage.view.sizes();
    let holds = holds(stage, &step, timeline_view);
    let legend = Legend::said(
        stage.view.language,
        holds,
        (stage.view.theme, sizes),
        ui.available_width(),
    );
    let height = ui.available_height() - legend.height() - sizes.gap();
    let comparing = !stage.kept.is_empty();
    let compared = comparing.then(|| Compared::new(stage, &step, timeline_view, height));
    timeline_view.reach(
        compared
            .as_ref()
            .map_or(Nanos::ZERO, |compared| compared.stack.to),
    );
    if let Some(compared) = &compared {
        let spacing = std::mem::take(&mut ui.spacing_mut().item_spacing.y);
        compared.show(ui, stage, &step, timeline_view, wishes);
        ui.spacing_mut().item_spacing.y = spacing;
    }
    timeline_view.follow(stage.run.playback().at().time);
    let mesh = stage.run.config().layout.mesh().ok();
    let capacity = step.report.config.hardware.memory();
    let sight = Sight {
        trace: &step.trace,
        view: stage.view,
        attention: stage.attention,
        run: Some(stage.run),
        mesh: mesh.as_ref().filter(|mesh| fits(mesh, &step)),
        capacity: (capacity > Bytes::ZERO).then_some(capacity),
        found,
    };
    let common = compared.as_ref().map(|compared| compared.stack.common);
    shown(ui, sight, timeline_view, (legend, common), wishes)
}

/// Shows one timeline in all of the room, its legend under it.
pub(super) fn shown(
    ui: &mut Ui,
    sight: Sight<'_>,
    timeline_view: &mut TimelineView,
    (legend, common): (Legend, Option<Common>),
    wishes: &mut Vec<Wish>,
) -> Option<Hit> {
    let (trace, view) = (sight.trace, sight.view);
    let sizes = view.sizes();
    let room = ui.available_size() - vec2(0.0, legend.height() + sizes.gap());
    let (rect, response) =
        ui.allocate_exact_size(room.max(vec2(1.0, 1.0)), Sense::click_and_drag());
    let origin = ui.cursor().min;
    let ctx = ui.ctx().clone();
    let pixels_per_point = ui.pixels_per_point();
    Painted::new(&ctx, legend.into_scene(), origin, pixels_per_point).paint(ui.painter());
    name(&response, sight);
    ctx.accesskit_node_builder(response.id, |node| {
        node.set_description(timeline_view.account(trace).as_ref());
    });
    let lit = sight.attention.lit(sight.mesh, trace);
    let mut setting = Setting {
        viewport: timeline_view.viewport(trace, Size::new(rect.width(), rect.height())),
        look: look(view.theme, sizes, timeline_view.arrows(), lit),
        origin: rect.min,
        pixels_per_point,
    };
    setting.look.capacity = sight.capacity;
    setting.look.common = common.unwrap_or_default();
    let overview = timeline_view.overview(trace);
    if timeline_view.reveal.is_some() {
        let scene = Timeline::new(trace, &overview, setting.viewport, &setting.look);
        timeline_view.revealed(&scene, trace, &overview);
        setting.viewport = timeline_view.viewport(trace, setting.viewport.size);
    }
    let scene = Timeline::new(trace, &overview, setting.viewport, &setting.look);
    setting.viewport = scene.viewport();
    let canvas = Canvas {
        rect,
        scene: &scene,
        sight,
    };
    let plot = scene.plot();
    timeline_view.plot = Some(Rect::from_min_size(
        rect.min + vec2(plot.x, plot.y),
        vec2(plot.width, plot.height),
    ));
    canvas.paint(ui, &setting, timeline_view);
    canvas.paint_found(ui);
    let hovered = canvas.hovered(&response);
    canvas.paint_outlines(ui, hovered.as_ref());
    canvas.paint_path(ui);
    if common.is_some() {
        let stroke = Stroke::new(1.6, color(view.palette().accent));
        mark(ui, rect, &scene, trace.makespan, stroke);
    }
    canvas.paint_area(ui);
    canvas.paint_marks(ui, timeline_view.marks());
    canvas.paint_playhead(ui);
    canvas.interact(ui, &response, hovered, timeline_view, wishes);
    hovered
}

/// Whether a timeline is of that mesh; just after a change it may be of the one before.
fn fits(mesh: &Mesh, step: &Step) -> bool {
    mesh.ranks() as u64 == step.trace.gpus()
}

fn name(response: &Response, sight: Sight<'_>) {
    let trace = sight.trace;
    let text = match sight.run {
        Some(run) => {
            let at = run.playback().at();
            format!(
                "Timeline of {} GPUs, step {}, playhead at {} of {}",
                trace.gpus(),
                at.step + 1,
                at.time,
                trace.makespan
            )
        }
        None => format!(
            "Timeline of {} rows, {} long",
            trace.ranks.len(),
            trace.makespan
        ),
    };
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text.as_str()));
}

/// The timeline where it is drawn.
pub(super) struct Canvas<'a> {
    pub(super) rect: Rect,
    pub(super) scene: &'a Timeline<'a>,
    pub(super) sight: Sight<'a>,
}

impl Canvas<'_> {
    fn x(&self, time: Nanos) -> f32 {
        self.rect.left() + self.scene.scale().x(time)
    }

    /// The part of the canvas between two places along it.
    fn between(&self, from: f32, to: f32) -> Rect {
        Rect::from_x_y_ranges(from..=to.max(from), self.rect.y_range())
    }

    /// Left of the playhead what has happened; right of it what has been seen or was so in the step before,
    /// veiled; and then nothing. Of a file, all.
    fn paint(&self, ui: &Ui, setting: &Setting, timeline_view: &mut TimelineView) {
        let (trace, ctx) = (self.sight.trace, ui.ctx());
        let Some(run) = self.sight.run else {
            let painter = ui.painter().with_clip_rect(self.rect);
            timeline_view.painted(ctx, trace, setting).0.paint(&painter);
            return;
        };
        let (at, seen) = (run.playback().at(), run.playback().seen());
        let split = self.x(at.time);
        let known_to = if at.step < seen.step {
            self.rect.right()
        } else {
            self.x(seen.time)
        };
        let clipped = |from: f32, to: f32| ui.painter().with_clip_rect(self.between(from, to));
        let (full, empty) = timeline_view.painted(ctx, trace, setting);
        full.paint(&clipped(self.rect.left(), split));
        full.paint(&clipped(split, known_to));
        let rest = clipped(known_to.max(split), self.rect.right());
        let veiled_to = match run.timeline_before() {
            Some(before) if at.step >= seen.step => {
                if Arc::ptr_eq(&before.trace, trace) {
                    full.paint(&rest);
                } else {
                    let painted = timeline_view.painted(ctx, &before.trace, setting);
                    painted.0.paint(&rest);
                }
                self.rect.right()
            }
            _ => {
                empty.paint(&rest);
                known_to
            }
        };
        self.veil(ui.painter(), split, veiled_to);
    }

    fn veil(&self, painter: &Painter, from: f32, to: f32) {
        let plot = self.scene.plot();
        let top = self.rect.top() + plot.y;
        let area = Rect::from_min_max(pos2(from, top), pos2(to, self.rect.bottom()));
        if area.is_positive() {
            let ground = color(self.sight.view.palette().background.faded(VEIL));
            painter.rect_filled(area, 0.0, ground);
        }
    }

    fn paint_outlines(&self, ui: &Ui, hovered: Option<&Hit>) {
        let palette = self.sight.view.palette();
        let outlined = [
            (hovered, 1.5),
            (self.sight.attention.selected.as_ref(), 2.5),
        ];
        for (hit, width) in outlined {
            if let Some(rect) = hit.and_then(|hit| self.place(hit)) {
                let stroke = Stroke::new(width, color(palette.selected));
                let radius = self.sight.view.sizes().radius();
                let painter = ui.painter().with_clip_rect(self.plot_clip());
                painter.rect_stroke(rect, radius, stroke, StrokeKind::Outside);
            }
        }
    }

    /// The plot, with room for outlines.
    pub(super) fn plot_clip(&self) -> Rect {
        let plot = self.scene.plot();
        Rect::from_min_max(
            self.rect.min + vec2(plot.x - 2.0, plot.y - 2.0),
            self.rect.max,
        )
    }

    /// Where something is drawn, if it is.
    pub(super) fn place(&self, hit: &Hit) -> Option<Rect> {
        let place = self.scene.rect_of(hit)?;
        Some(Rect::from_min_size(
            self.rect.min + vec2(place.x, place.y),
            vec2(place.width, place.height),
        ))
    }

    /// A time on the axis is seen whole or not at all: what `pill` covers in part is taken away.
    pub(super) fn cover_labels(&self, painter: &Painter, pill: Rect) {
        let ground = color(self.sight.view.palette().background);
        for label in self.scene.axis_labels() {
            let label = Rect::from_min_size(
                self.rect.min + vec2(label.x, label.y),
                vec2(label.width, label.height),
            );
            if label.intersects(pill) {
                painter.rect_filled(label, 0.0, ground);
            }
        }
    }

    /// The line, and its time on the axis.
    fn paint_playhead(&self, ui: &Ui) {
        let Some(time) = self.sight.playhead() else {
            return;
        };
        let scale = self.scene.scale();
        if time < scale.from || time > scale.to {
            return;
        }
        let (palette, sizes) = (self.sight.view.palette(), self.sight.view.sizes());
        let plot = self.scene.plot();
        let x = ui.painter().round_to_pixel_center(self.x(time));
        let ink = color(palette.playhead);
        let rows = self.rect.top() + plot.y + self.scene.rows().height();
        let bottom = rows.min(self.rect.bottom());
        let painter = ui.painter().with_clip_rect(self.rect);
        let middle = self.rect.top() + plot.y - sizes.body;
        let font = font(sizes.small(), Weight::SemiBold);
        let galley = painter.layout_no_wrap(time.to_string(), font, color(palette.background));
        let half = vec2(
            galley.size().x.max(sizes.body * 3.0) / 2.0 + sizes.body * 0.45,
            sizes.body * 0.68,
        );
        let left = self.rect.left() + plot.x + half.x;
        let right = self.rect.left() + plot.right() - half.x;
        let centre = pos2(x.clamp(left, right.max(left)), middle);
        let pill = Rect::from_center_size(centre, half * 2.0);
        self.cover_labels(&painter, pill);
        painter.vline(x, middle..=bottom, Stroke::new(1.6, ink));
        painter.rect_filled(pill, half.y, ink);
        let place = Align2::CENTER_CENTER.anchor_size(centre, galley.size());
        painter.galley(place.min, galley, Color32::PLACEHOLDER);
    }
}

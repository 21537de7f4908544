//! Timelines kept to compare the run's with: before and after, or one schedule and another, on one time axis.

use std::sync::Arc;

use eframe::egui::{
    Align, Label, Layout, Rect, RichText, Sense, Stroke, Ui, UiBuilder, pos2, vec2,
};

use crate::export;
use crate::scene::fonts::Weight as FontWeight;
use crate::scene::{Holds, Lit, Overview, Part, Size, Stack, Timeline};
use crate::session::{Report, Timeline as Step};
use crate::trace::Trace;
use crate::units::Nanos;

use super::icon::{Icon, Weight, icon_button};
use super::theme::{color, font};
use super::timeline::{Canvas, Sight, Stage};
use super::timeline_input::explain_hit;
use super::timeline_view::{Setting, TimelineView, look};
use super::wish::Wish;

/// The most timelines that are kept; a further one takes the place of the one kept last.
const MOST: usize = 3;

/// How high the line over each timeline is, in body-text sizes.
const HEADING: f32 = 1.9;

/// The timelines that were kept, the one that others are compared with first.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    steps: Vec<Arc<Step>>,
}

impl Kept {
    /// Keeps another.
    pub(super) fn keep(&mut self, step: &Arc<Step>) {
        self.steps.truncate(MOST - 1);
        self.steps.push(Arc::clone(step));
    }

    /// No longer keeps that one.
    pub(super) fn forget(&mut self, index: usize) {
        if index < self.steps.len() {
            self.steps.remove(index);
        }
    }

    /// Keeps none; whether there was any.
    pub(super) fn clear(&mut self) -> bool {
        let had = !self.steps.is_empty();
        self.steps.clear();
        had
    }

    /// All of them.
    pub(super) fn steps(&self) -> &[Arc<Step>] {
        &self.steps
    }
}

/// What the run's timeline and the kept ones hold.
pub(super) fn holds(stage: Stage<'_>, step: &Arc<Step>, timeline_view: &mut TimelineView) -> Holds {
    let all = stage.kept.iter().chain([step]);
    let holds = all.map(|step| timeline_view.overview(&step.trace).holds);
    holds.fold(Holds::default(), Holds::or)
}

/// What kept timelines and the run's have in common.
pub(super) struct Compared {
    /// Time axis, scales, heights; the run's comes last.
    pub(super) stack: Stack,
    parts: Vec<Part>,
}

impl Compared {
    /// The kept timelines and `step` in room of `height`, the lines over them included.
    pub(super) fn new(
        stage: Stage<'_>,
        step: &Arc<Step>,
        timeline_view: &mut TimelineView,
        height: f32,
    ) -> Self {
        let all: Vec<&Arc<Step>> = stage.kept.iter().chain([step]).collect();
        let overviews: Vec<Arc<Overview>> = all
            .iter()
            .map(|step| timeline_view.overview(&step.trace))
            .collect();
        let known: Vec<(&Trace, &Overview)> = all
            .iter()
            .zip(&overviews)
            .map(|(step, overview)| (step.trace.as_ref(), overview.as_ref()))
            .collect();
        let sizes = stage.view.sizes();
        let reports: Vec<&Report> = all.iter().map(|step| &step.report).collect();
        let headings = HEADING * sizes.body * all.len() as f32;
        Self {
            stack: Stack::new(&known, sizes, height - headings),
            parts: export::comparison(&reports).parts,
        }
    }

    /// The kept timelines, each under its line, and the line over the run's.
    pub(super) fn show(
        &self,
        ui: &mut Ui,
        stage: Stage<'_>,
        step: &Arc<Step>,
        timeline_view: &mut TimelineView,
        wishes: &mut Vec<Wish>,
    ) {
        let micro_batch = stage.attention.micro_batch(&step.trace);
        let lit = Lit {
            micro_batches: micro_batch.into_iter().collect(),
            ..Lit::default()
        };
        for (index, kept) in stage.kept.iter().enumerate() {
            self.heading(ui, stage, index, wishes);
            self.one(ui, stage, (index, kept), &lit, timeline_view);
        }
        self.heading(ui, stage, stage.kept.len(), wishes);
    }

    /// What a timeline is of, and its figures beside the first's.
    fn heading(&self, ui: &mut Ui, stage: Stage<'_>, index: usize, wishes: &mut Vec<Wish>) {
        let (palette, sizes) = (stage.view.palette(), stage.view.sizes());
        let size = vec2(ui.available_width(), HEADING * sizes.body);
        let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
        let Some(part) = self.parts.get(index) else {
            return;
        };
        let now = index == stage.kept.len();
        let builder = UiBuilder::new()
            .max_rect(rect)
            .layout(Layout::right_to_left(Align::Center))
            .id_salt(("kept", index));
        ui.scope_builder(builder, |ui| {
            if !now {
                let name = format!("Compare no longer with {}", part.name);
                if icon_button(ui, Icon::Close, Weight::Plain, &name)
                    .on_hover_text(&name)
                    .clicked()
                {
                    wishes.push(Wish::Forget(index));
                }
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let prefix = if now { "Now: " } else { "" };
                let name = RichText::new(format!("{prefix}{}", part.name))
                    .font(font(sizes.body, FontWeight::SemiBold))
                    .color(color(palette.text));
                ui.add(Label::new(name));
                let figures = RichText::new(&part.figures).color(color(palette.text_weak));
                ui.add(Label::new(figures).truncate());
            });
        });
    }

    /// A kept timeline: all of it, with the playhead's time marked.
    fn one(
        &self,
        ui: &mut Ui,
        stage: Stage<'_>,
        (index, step): (usize, &Arc<Step>),
        lit: &Lit,
        timeline_view: &mut TimelineView,
    ) {
        let height = self.stack.heights.get(index).copied().unwrap_or_default();
        let size = vec2(ui.available_width(), height.max(1.0));
        let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
        let (view, sizes) = (stage.view, stage.view.sizes());
        let mut setting = Setting {
            viewport: timeline_view.viewport(&step.trace, Size::new(rect.width(), rect.height())),
            look: look(view.theme, sizes, timeline_view.arrows(), lit.clone()),
            origin: rect.min,
            pixels_per_point: ui.pixels_per_point(),
        };
        setting.look.common = self.stack.common;
        setting.look.capacity = self.parts.get(index).and_then(|part| part.capacity);
        let overview = timeline_view.overview(&step.trace);
        let scene = Timeline::new(&step.trace, &overview, setting.viewport, &setting.look);
        setting.viewport = scene.viewport();
        let (full, _) = timeline_view.painted(ui.ctx(), &step.trace, &setting);
        full.paint(&ui.painter().with_clip_rect(rect));
        mark(
            ui,
            rect,
            &scene,
            step.trace.makespan,
            Stroke::new(1.6, color(view.palette().accent)),
        );
        let playhead = stage.run.playback().at().time;
        mark(
            ui,
            rect,
            &scene,
            playhead,
            Stroke::new(1.0, color(view.palette().playhead)),
        );
        let canvas = Canvas {
            rect,
            scene: &scene,
            sight: Sight {
                trace: &step.trace,
                view,
                attention: stage.attention,
                run: None,
                mesh: None,
                capacity: None,
                found: &[],
            },
        };
        canvas.navigate(ui, &response, timeline_view);
        let local = response.hover_pos().map(|at| at - rect.min);
        if let Some(hit) = local.and_then(|at| scene.hit(at.x, at.y)) {
            explain_hit(&response, &step.trace, &hit);
        }
    }
}

/// A line over the rows at a time.
pub(super) fn mark(ui: &Ui, rect: Rect, scene: &Timeline<'_>, time: Nanos, stroke: Stroke) {
    let scale = scene.scale();
    if time < scale.from || time > scale.to {
        return;
    }
    let plot = scene.plot();
    let x = ui
        .painter()
        .round_to_pixel_center(rect.left() + scale.x(time));
    let top = rect.top() + plot.y;
    let bottom = (top + scene.rows().height()).min(rect.bottom());
    ui.painter()
        .line_segment([pos2(x, top), pos2(x, bottom)], stroke);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Config;

    #[test]
    fn the_first_stays_what_others_are_compared_with() {
        let step = |micro_batches| {
            let mut config = Config::default();
            config.layout.micro_batches = micro_batches;
            Arc::new(Step::simulated(&config, "simulated").unwrap())
        };
        let all: Vec<Arc<Step>> = (1..=5).map(step).collect();
        let mut kept = Kept::default();
        for step in &all {
            kept.keep(step);
        }
        assert_eq!(kept.steps().len(), MOST);
        assert!(Arc::ptr_eq(&kept.steps()[0], &all[0]));
        assert!(Arc::ptr_eq(&kept.steps()[MOST - 1], &all[4]));
        kept.forget(9);
        kept.forget(0);
        assert_eq!(kept.steps().len(), MOST - 1);
        assert!(kept.clear() && !kept.clear());
    }
}

//! The panels under the timeline, side by side: those that are open.

use eframe::egui::{
    Align, Button, Frame, Layout, Margin, Rect, RichText, ScrollArea, Ui, UiBuilder, vec2,
};

use crate::scene::fonts::Weight;
use crate::words::say;

use super::bubble_plot::BubblePlot;
use super::now::NowPanel;
use super::selection::SelectionPanel;
use super::theme::{color, font};
use super::timeline::Stage;
use super::timeline_view::TimelineView;
use super::traffic::{Traffic, TrafficPanel};
use super::view::{TextSize, View};
use super::wish::{Panel, Show, Wish};
use super::{loss, memory, mesh_view, replicas};

/// A panel's least width, in body-text sizes.
const LEAST_WIDTH: f32 = 19.0;

/// How high the panels are in a window of that height.
pub(super) fn height(view: &View, window: f32) -> f32 {
    let body = view.sizes().body;
    match view.text {
        TextSize::Desk => (window * 0.21).max(body * 10.5),
        TextSize::Presenter => body * 9.6,
    }
}

/// Switches for all panels.
pub(super) fn switches(ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
    let open = view.panels();
    ui.horizontal_wrapped(|ui| {
        for (index, panel) in Panel::ALL.into_iter().enumerate() {
            let text = RichText::new(view.language.say(panel.name())).small();
            let button = Button::selectable(open.contains(&panel), text);
            let key = index + 1;
            let response = ui.add(button);
            if response
                .on_hover_text(say!(view, "Open or close ({key})", key))
                .clicked()
            {
                wishes.push(Wish::Show(Show::Panel(panel)));
            }
        }
    });
}

/// How many panels have room side by side.
pub(super) fn room(view: &View, width: f32) -> usize {
    (width / (view.sizes().body * LEAST_WIDTH)) as usize
}

/// Panels that remember something, and what part of the timeline is seen.
pub(super) struct Panels<'a> {
    pub(super) bubbles: &'a BubblePlot,
    pub(super) traffic: &'a mut TrafficPanel,
    pub(super) selection: &'a mut SelectionPanel,
    pub(super) now: &'a mut NowPanel,
    pub(super) timeline: &'a TimelineView,
}

/// Shows the open panels.
pub(super) fn show(
    ui: &mut Ui,
    stage: Stage<'_>,
    panels_state: &mut Panels<'_>,
    wishes: &mut Vec<Wish>,
) {
    let view = stage.view;
    let panels = view.panels();
    let gap = view.sizes().gap();
    let count = panels.len().max(1) as f32;
    let even = (ui.available_width() - gap * (count - 1.0)) / count;
    let width = even.max(view.sizes().body * LEAST_WIDTH * 0.9);
    let height = ui.available_height();
    ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = gap;
            for panel in panels {
                let (rect, _) =
                    ui.allocate_exact_size(vec2(width, height), eframe::egui::Sense::hover());
                let builder = UiBuilder::new()
                    .max_rect(rect)
                    .layout(Layout::top_down(Align::Min))
                    .id_salt(panel.name());
                let mut inner = ui.new_child(builder);
                inner.shrink_clip_rect(rect);
                framed(
                    &mut inner,
                    rect,
                    (view.language.say(panel.name()), view),
                    &mut |ui| {
                        contents(ui, panel, (stage, &mut *panels_state), wishes);
                    },
                );
            }
        });
    });
}

/// A panel with its title.
pub(super) fn framed(
    ui: &mut Ui,
    rect: Rect,
    (title, view): (&str, &View),
    contents: &mut dyn FnMut(&mut Ui),
) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let margin = (sizes.body * 0.6) as i8;
    let frame = Frame::new()
        .fill(color(palette.panel))
        .corner_radius(sizes.panel_radius())
        .inner_margin(Margin::same(margin));
    frame.show(ui, |ui| {
        ui.set_min_size(rect.size() - vec2(2.0, 2.0) * f32::from(margin));
        ui.set_max_size(rect.size() - vec2(2.0, 2.0) * f32::from(margin));
        ui.spacing_mut().item_spacing.y = sizes.gap() * 0.5;
        let title = RichText::new(title).font(font(sizes.body, Weight::SemiBold));
        ui.label(title);
        contents(ui);
    });
}

fn contents(
    ui: &mut Ui,
    panel: Panel,
    (stage, panels): (Stage<'_>, &mut Panels<'_>),
    wishes: &mut Vec<Wish>,
) {
    match (panel, stage.run.timeline()) {
        (Panel::Loss, _) => loss::show(ui, stage.run, stage.view),
        (Panel::Replicas, _) => replicas::show(ui, stage.run, stage.view),
        (_, None) => {
            ui.label(RichText::new("Nothing yet").weak());
        }
        (Panel::Mesh, Some(step)) => mesh_view::show(ui, stage, step, wishes),
        (Panel::Memory, Some(step)) => memory::show(ui, stage, step, wishes),
        (Panel::Traffic, Some(step)) => {
            let hovered = stage.attention.hovered;
            let under = hovered.and_then(|hit| step.trace.ranks.get(hit.rank_index));
            let traffic = Traffic {
                trace: &step.trace,
                seen: panels.timeline.seen(&step.trace),
                groups: Some(&step.report.traffic),
                hardware: Some(&step.report.config.hardware),
                gpu: stage.attention.gpu().or(under.map(|info| info.rank)),
            };
            panels.traffic.show(ui, traffic, stage.view);
        }
        (Panel::Selection, Some(step)) => {
            let of = (&step.trace, stage.attention);
            let playhead = Some(stage.run.playback().at().time);
            panels
                .selection
                .show(ui, of, (stage.view, playhead), wishes);
        }
        (Panel::Now, Some(step)) => panels.now.show(ui, &step.trace, stage),
        (Panel::Bubble, Some(step)) => panels.bubbles.show(ui, stage.run, step, stage.view),
    }
}

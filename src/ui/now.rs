//! What every GPU does at the playhead, in words.

use std::sync::Arc;

use eframe::egui::accesskit::Live;
use eframe::egui::text::LayoutJob;
use eframe::egui::{FontSelection, Label, RichText, ScrollArea, Style, Ui};

use crate::scene::fonts::Weight;
use crate::scene::narration::{Line, Narrator, Now};
use crate::trace::Trace;
use crate::units::Nanos;
use crate::words::Language;

use super::theme::{color, font};
use super::timeline::Stage;
use super::view::View;

/// What was told last, and of what.
#[derive(Debug, Default)]
pub(super) struct NowPanel {
    of: Option<(Arc<Trace>, Narrator)>,
    told: Option<((Nanos, Language), Now)>,
}

impl NowPanel {
    /// Shows the panel.
    pub(super) fn show(&mut self, ui: &mut Ui, trace: &Arc<Trace>, stage: Stage<'_>) {
        let (view, playback) = (stage.view, stage.run.playback());
        let now = self.at(trace, playback.at().time, view.language);
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = view.sizes().gap() * 0.4;
            let headline = RichText::new(&now.headline);
            let headline = headline.font(font(view.sizes().body, Weight::SemiBold));
            let headline = ui.add(Label::new(headline.color(color(view.palette().accent))).wrap());
            let mut told = vec![headline];
            told.extend(now.lines.iter().map(|line| said(ui, line, view)));
            // Steps by hand are read aloud; playing, words would come faster than anyone speaks.
            for response in told.iter().filter(|_| !playback.is_playing()) {
                ui.ctx()
                    .accesskit_node_builder(response.id, |node| node.set_live(Live::Polite));
            }
        });
    }

    fn at(&mut self, trace: &Arc<Trace>, time: Nanos, language: Language) -> &Now {
        let same = self
            .of
            .as_ref()
            .is_some_and(|(of, _)| Arc::ptr_eq(of, trace));
        if !same {
            self.of = None;
            self.told = None;
        }
        let (_, narrator) = self
            .of
            .get_or_insert_with(|| (Arc::clone(trace), Narrator::new(trace)));
        let kept = self.told.take().filter(|(at, _)| *at == (time, language));
        let told = kept.unwrap_or_else(|| ((time, language), narrator.now(trace, time, language)));
        &self.told.insert(told).1
    }
}

/// A line: who, and what.
fn said(ui: &mut Ui, line: &Line, view: &View) -> eframe::egui::Response {
    let (palette, size) = (view.palette(), view.sizes().body);
    let mut job = LayoutJob::default();
    let parts = [
        (format!("{}: ", line.who), Weight::SemiBold),
        (line.what.clone(), Weight::Regular),
    ];
    for (text, weight) in parts {
        RichText::new(text)
            .font(font(size, weight))
            .color(color(palette.text))
            .append_to(
                &mut job,
                &Style::default(),
                FontSelection::Default,
                eframe::egui::Align::Center,
            );
    }
    ui.add(Label::new(job).wrap())
}

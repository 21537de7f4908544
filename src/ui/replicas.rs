//! The replicas' weights, which stay equal, and what the model writes before training and now.

use eframe::egui::{RichText, ScrollArea, TextStyle, Ui};

use crate::session::StepRecord;
use crate::words::say;

use super::run::Run;
use super::theme::color;
use super::view::View;

/// More hashes than this are told by their number.
const SHOWN: usize = 8;
/// At most so much of a text is shown.
const LETTERS: usize = 120;

/// Shows the panel.
pub(super) fn show(ui: &mut Ui, run: &Run, view: &View) {
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        match run.records().last() {
            Some(record) => hashes(ui, record, run.records().len(), view),
            None => {
                ui.label(RichText::new(say!(view, "No step is trained yet")).weak());
            }
        }
        text(
            ui,
            say!(view, "Before training"),
            run.snapshot().text_before.as_deref(),
        );
        text(ui, say!(view, "Now"), run.snapshot().text_now.as_deref());
    });
}

fn hashes(ui: &mut Ui, record: &StepRecord, step: usize, view: &View) {
    let replicas = &record.replicas;
    let Some(first) = replicas.first() else {
        return;
    };
    let equal = replicas.iter().all(|replica| replica == first);
    let palette = view.palette();
    let (text, tint) = match (replicas.len(), equal) {
        (1, _) => (
            say!(view, "One replica, after step {step}", step),
            palette.text_weak,
        ),
        (count, true) => (
            say!(
                view,
                "✓ {count} replicas, equal weights after step {step}",
                count,
                step
            ),
            palette.success,
        ),
        (count, false) => (
            say!(
                view,
                "✗ {count} replicas differ after step {step}",
                count,
                step
            ),
            palette.error,
        ),
    };
    ui.label(RichText::new(text).color(color(tint)));
    ui.horizontal_wrapped(|ui| {
        for (index, replica) in replicas.iter().take(SHOWN).enumerate() {
            let short = replica.hash >> 32;
            ui.label(
                RichText::new(say!(view, "replica {index}", index))
                    .weak()
                    .small(),
            );
            let hash = RichText::new(format!("{short:08x}")).text_style(TextStyle::Monospace);
            ui.label(hash)
                .on_hover_text(say!(view, "The start of a hash of all its weights"));
        }
        if replicas.len() > SHOWN {
            ui.label(say!(
                view,
                "and {count} more",
                count = replicas.len() - SHOWN
            ));
        }
    });
}

fn text(ui: &mut Ui, name: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    ui.label(RichText::new(name).weak().small());
    let printable: String = text
        .chars()
        .map(|letter| match letter {
            '\n' => '⏎',
            letter if letter.is_control() || letter == char::REPLACEMENT_CHARACTER => '·',
            letter => letter,
        })
        .take(LETTERS)
        .collect();
    ui.label(RichText::new(printable).text_style(TextStyle::Monospace));
}

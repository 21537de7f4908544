//! How a prediction came out: what was predicted, what a formula gives and what the run gave, as bars side by side.

use eframe::egui::{Grid, RichText, Role, Sense, Ui, WidgetInfo, vec2};

use crate::lesson::{Answer, Answered, Play, Predict, Verdict};
use crate::scene::fonts::Weight;
use crate::ui::theme::{color, font};
use crate::ui::view::View;
use crate::words::say;

/// Shows what was predicted, and once it was run, how it came out.
pub(super) fn show(
    ui: &mut Ui,
    (play, view): (&Play, &View),
    (block, predict): (usize, &Predict),
    answered: Answered,
) {
    let Some(verdict) = play.verdict(block, predict) else {
        let said = match (&predict.answer, answered) {
            (Answer::Choice(choices), Answered::Choice(index)) => choices
                .get(index)
                .map(|choice| play.filled(block, &choice.text))
                .unwrap_or_default(),
            (Answer::Number(number), Answered::Number(guess)) => number.style.write(guess),
            (Answer::Choice(_), Answered::Number(_)) | (Answer::Number(_), Answered::Choice(_)) => {
                String::new()
            }
        };
        ui.label(RichText::new(say!(ui, "You predict: {said}", said)).strong());
        return;
    };
    let palette = view.palette();
    let (text, tint) = if verdict.right {
        (say!(view, "You were right."), palette.accent)
    } else {
        (say!(view, "It came out otherwise."), palette.error)
    };
    ui.label(
        RichText::new(text)
            .font(font(view.sizes().body, Weight::SemiBold))
            .color(color(tint)),
    );
    rows(
        ui,
        view,
        &verdict,
        numbers(play, (block, predict), answered),
    );
}

/// Predicted, formula, run.
type Bars = [Option<f64>; 3];

fn numbers(play: &Play, (block, predict): (usize, &Predict), answered: Answered) -> Option<Bars> {
    let (Answer::Number(number), Answered::Number(guess)) = (&predict.answer, answered) else {
        return None;
    };
    let value = |formula: &crate::lesson::expr::Formula| play.value(block, formula);
    let formula = number.formula.as_ref().and_then(value);
    Some([Some(guess), formula, value(&number.figure)])
}

fn rows(ui: &mut Ui, view: &View, verdict: &Verdict, bars: Option<Bars>) {
    let most = bars.into_iter().flatten().flatten().fold(0.0, f64::max);
    let named = [
        (say!(view, "You"), Some(&verdict.predicted)),
        (say!(view, "Formula"), verdict.formula.as_ref()),
        (say!(view, "Run"), Some(&verdict.measured)),
    ];
    let weak = |name: &str| RichText::new(name).color(color(view.palette().text_weak));
    let Some(bars) = bars else {
        // Sentences: a column of a grid would be as narrow as a word of them.
        for (name, value) in named {
            if let Some(value) = value {
                ui.horizontal_wrapped(|ui| {
                    ui.label(weak(name));
                    ui.label(RichText::new(value).strong());
                });
            }
        }
        return;
    };
    Grid::new("outcome").num_columns(3).show(ui, |ui| {
        for ((name, value), length) in named.into_iter().zip(bars) {
            let Some(value) = value else {
                continue;
            };
            ui.label(weak(name));
            ui.label(RichText::new(value).strong());
            if let Some(length) = length.filter(|_| most > 0.0) {
                bar(ui, view, (length / most) as f32);
            }
            ui.end_row();
        }
    });
}

/// A bar over a share of the width that is left.
pub(super) fn bar(ui: &mut Ui, view: &View, share: f32) {
    let palette = view.palette();
    let size = vec2(
        ui.available_width().min(view.sizes().body * 16.0),
        view.sizes().body * 0.9,
    );
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let name = format!("Bar, {:.0} % of the longest", share * 100.0);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &name));
    let radius = view.sizes().body * 0.2;
    ui.painter()
        .rect_filled(rect, radius, color(palette.bubble_bed));
    let full = eframe::egui::Rect::from_min_size(
        rect.min,
        vec2(rect.width() * share.clamp(0.0, 1.0), rect.height()),
    );
    ui.painter()
        .rect_filled(full, radius, color(palette.accent));
}

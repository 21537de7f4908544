//! Loss of the parallel run over that of the run on one GPU: the same curve.

use std::sync::Arc;

use eframe::egui::{RichText, Ui, vec2};

use crate::session::StepRecord;
use crate::words::say;

use super::plot::{Plot, Ranges, around, mark};
use super::run::Run;
use super::theme::color;
use super::view::View;

/// Losses further apart than this are not the same training; float32 sums in another order differ by far less.
const SAME: f64 = 1e-3;
/// At most so many points are drawn.
const POINTS: usize = 400;

/// What the comparison with one GPU says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Check {
    /// Nothing yet.
    Pending,
    /// The same, with the largest difference.
    Equal(f64),
    /// Not the same, with the largest difference.
    Different(f64),
}

impl Check {
    /// Of all steps trained that have a loss on one GPU beside them.
    pub(super) fn of(records: &[Arc<StepRecord>]) -> Self {
        let differences = records.iter().filter_map(|record| {
            let reference = record.reference_loss?;
            Some((record.loss - reference).abs())
        });
        let largest = differences.reduce(|a, b| if a >= b { a } else { b });
        match largest {
            None => Self::Pending,
            Some(largest) if largest <= SAME => Self::Equal(largest),
            Some(largest) => Self::Different(largest),
        }
    }
}

/// Shows the panel.
pub(super) fn show(ui: &mut Ui, run: &Run, view: &View) {
    let records = run.records();
    let palette = view.palette();
    let layout = &run.snapshot().config.layout;
    let gpus = layout.dp * layout.tp * layout.pp;
    let (text, tint) = match Check::of(records) {
        Check::Pending if records.is_empty() => {
            (waiting_text(run, view).to_owned(), palette.text_weak)
        }
        Check::Pending => (
            say!(view, "The one-GPU run follows").to_owned(),
            palette.text_weak,
        ),
        Check::Equal(0.0) => (
            say!(view, "✓ {gpus} GPUs equal one GPU, to the bit", gpus),
            palette.success,
        ),
        Check::Equal(by) => (
            say!(
                view,
                "✓ {gpus} GPUs equal one GPU, to {by}",
                gpus,
                by = format!("{by:.0e}")
            ),
            palette.success,
        ),
        Check::Different(by) => (
            say!(
                view,
                "✗ differs from one GPU by {by}",
                by = format!("{by:.0e}")
            ),
            palette.error,
        ),
    };
    ui.label(RichText::new(text).color(color(tint)));
    let size = ui.available_size();
    let (rect, response) = ui.allocate_exact_size(size, eframe::egui::Sense::hover());
    let last = records.last().map_or(f64::NAN, |record| record.loss);
    response.widget_info(|| {
        let name = say!(
            view,
            "Loss over {count} steps, last {last}",
            count = records.len(),
            last = format!("{last:.3}")
        );
        eframe::egui::WidgetInfo::labeled(eframe::egui::Role::Image, true, name)
    });
    if rect.height() > view.sizes().body * 2.5 {
        draw(ui, rect, records, view);
    }
}

fn waiting_text(run: &Run, view: &View) -> &'static str {
    if run.snapshot().only_simulated.is_some() {
        say!(view, "This model is only simulated, not trained")
    } else {
        say!(view, "The first step is being trained")
    }
}

fn draw(ui: &Ui, rect: eframe::egui::Rect, records: &[Arc<StepRecord>], view: &View) {
    let palette = view.palette();
    let every = records.len().div_ceil(POINTS).max(1);
    let curve = |value: fn(&StepRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = records.iter().enumerate();
        let last = records.len().saturating_sub(1);
        points
            .filter(|(index, _)| index % every == 0 || *index == last)
            .filter_map(|(index, record)| Some((index as f64 + 1.0, value(record)?)))
            .collect()
    };
    let own = curve(|record| Some(record.loss));
    let one_gpu = curve(|record| record.reference_loss);
    let (low, high) = around(own.iter().chain(&one_gpu).map(|&(_, loss)| loss));
    let steps = records.len().max(10) as f64;
    let ranges = Ranges {
        x: (1.0, steps),
        y: (low, high),
    };
    let marks = if records.is_empty() {
        [
            say!(view, "step 1").to_owned(),
            String::new(),
            String::new(),
            String::new(),
        ]
    } else {
        [
            say!(view, "step 1").to_owned(),
            format!("{steps:.0}"),
            mark(low),
            mark(high),
        ]
    };
    let plot = Plot::new(ui.painter(), view, rect, ranges, marks);
    plot.line(&own, palette.accent, view.sizes().body * 0.26);
    plot.dashes(&one_gpu, palette.text, view.sizes().body * 0.11);
    if let Some(&last) = own.last() {
        plot.dot(last, palette.accent, view.sizes().body * 0.32);
        let text = format!("{:.3}", last.1);
        let away = vec2(view.sizes().body * 0.5, -view.sizes().body * 0.9);
        plot.word(last, &text, palette.text, away);
    }
}

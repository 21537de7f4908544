//! The bubble against the number of micro-batches: the formula as a line, the runs of this session as dots.

use eframe::egui::{RichText, Role, Sense, Ui, WidgetInfo, vec2};

use crate::schedule::Shares;
use crate::session::{Config, Timeline};
use crate::units::percent;

use super::plot::{Plot, Ranges};
use super::theme::color;
use super::view::View;

/// A run that was seen.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    config: Config,
    bubble: f64,
}

/// All runs that were seen, for comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct BubblePlot {
    seen: Vec<Seen>,
}

impl BubblePlot {
    /// Remembers a run.
    pub(super) fn remember(&mut self, step: &Timeline) {
        let config = &step.report.config;
        if !self.seen.iter().any(|seen| seen.config == *config) {
            self.seen.push(Seen {
                config: config.clone(),
                bubble: step.report.bubble_of_total,
            });
        }
    }

    /// Shows the panel.
    pub(super) fn show(&self, ui: &mut Ui, step: &Timeline, view: &View) {
        let (palette, sizes) = (view.palette(), view.sizes());
        let config = &step.report.config;
        let layout = &config.layout;
        ui.label(
            RichText::new("Of total · line even stages' formula · dots your runs")
                .small()
                .color(color(palette.text_weak)),
        );
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
        response.widget_info(|| {
            let name = "Bubble against micro-batches";
            WidgetInfo::labeled(Role::Image, true, name)
        });
        if rect.height() < sizes.body * 2.5 {
            return;
        }
        let most = (layout.micro_batches * 2).clamp(16, 64);
        let formula = |m: usize| {
            let page = layout.schedule.textbook(layout.pp, m, layout.chunks);
            page.bubble_of_total(Shares::EVEN)
        };
        let curve: Vec<(f64, f64)> = (1..=most)
            .filter_map(|m| Some((m as f64, formula(m)?)))
            .collect();
        let comparable = |seen: &&Seen| {
            let other = &seen.config.layout;
            other.pp == layout.pp && other.schedule == layout.schedule
        };
        let dots = self.seen.iter().filter(comparable);
        let dots: Vec<(f64, f64)> = dots
            .map(|seen| (seen.config.layout.micro_batches as f64, seen.bubble))
            .collect();
        let highest = curve
            .iter()
            .chain(&dots)
            .map(|&(_, y)| y)
            .fold(0.1, f64::max);
        let ranges = Ranges {
            x: (1.0, most as f64),
            y: (0.0, highest * 1.05),
        };
        let marks = [
            "1".to_owned(),
            format!("{most} micro-batches"),
            "0 %".to_owned(),
            format!("{:.0} %", highest * 105.0),
        ];
        let plot = Plot::new(ui.painter(), view, rect, ranges, marks);
        plot.line(&curve, palette.text_weak, 1.6);
        for &dot in &dots {
            plot.dot(dot, palette.accent, sizes.body * 0.26);
        }
        let now = (layout.micro_batches as f64, step.report.bubble_of_total);
        plot.dot(now, palette.accent, sizes.body * 0.4);
        let away = vec2(sizes.body * 0.7, -sizes.body * 0.6);
        plot.word(now, &percent(now.1), palette.text, away);
    }
}

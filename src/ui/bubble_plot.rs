//! The bubble against the number of micro-batches: the formula, the simulation, and what was trained on emulated
//! GPUs, together.

use eframe::egui::{RichText, Role, Sense, Ui, WidgetInfo, vec2};

use crate::schedule::Shares;
use crate::session::{Config, Curve, Timeline, most_micro_batches};
use crate::units::percent;
use crate::words::say;

use super::plot::{Plot, Ranges};
use super::run::Run;
use super::theme::color;
use super::view::View;

/// The furthest that the plot goes.
const FURTHEST: usize = 256;

/// A run that was trained.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    config: Config,
    bubble: f64,
}

/// All runs that were trained, for comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct BubblePlot {
    seen: Vec<Seen>,
    asked: Option<Config>,
}

/// The same but for its micro-batches.
fn same_but_micro_batches(one: &Config, other: &Config) -> bool {
    let mut one = one.clone();
    one.layout.micro_batches = other.layout.micro_batches;
    one == *other
}

impl BubblePlot {
    /// Remembers a run that has been trained at least a step.
    pub(super) fn remember(&mut self, step: &Timeline) {
        let config = &step.report.config;
        if !self.seen.iter().any(|seen| seen.config == *config) {
            self.seen.push(Seen {
                config: config.clone(),
                bubble: step.report.bubble_of_total,
            });
        }
    }

    /// What is to be simulated for the plot of `config`, if it is not known and was not asked for.
    pub(super) fn question(&mut self, config: &Config) -> Option<Box<Config>> {
        let most = |config: &Config| most_micro_batches(config.layout.micro_batches);
        let answers =
            |asked: &Config| same_but_micro_batches(asked, config) && most(asked) == most(config);
        if self.asked.as_ref().is_some_and(answers) {
            return None;
        }
        self.asked = Some(config.clone());
        Some(Box::new(config.clone()))
    }

    /// Shows the panel.
    pub(super) fn show(&self, ui: &mut Ui, run: &Run, step: &Timeline, view: &View) {
        let (palette, sizes) = (view.palette(), view.sizes());
        let config = &step.report.config;
        let layout = &config.layout;
        ui.label(
            RichText::new(say!(
                view,
                "Of total · grey: formula, even stages · blue: simulated · dots: trained"
            ))
            .small()
            .color(color(palette.text_weak)),
        );
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
        response.widget_info(|| {
            let name = say!(view, "Bubble against micro-batches");
            WidgetInfo::labeled(Role::Image, true, name)
        });
        if rect.height() < sizes.body * 2.5 {
            return;
        }
        let most = most_micro_batches(layout.micro_batches).min(FURTHEST.max(layout.micro_batches));
        let formula = formula(config, most);
        let simulated = simulated(run.snapshot().curve.as_ref(), config, most);
        let trained = self.trained(config, most);
        let highest = formula.iter().chain(&simulated).chain(&trained);
        let highest = highest.map(|&(_, y)| y).fold(0.1, f64::max);
        let ranges = Ranges {
            x: (1.0, most as f64),
            y: (0.0, highest * 1.05),
        };
        let marks = [
            "1".to_owned(),
            say!(view, "{most} micro-batches", most),
            "0 %".to_owned(),
            format!("{:.0} %", highest * 105.0),
        ];
        let plot = Plot::new(ui.painter(), view, rect, ranges, marks);
        plot.line(&formula, palette.text_weak, 1.6);
        plot.line(&simulated, palette.accent, 1.6);
        for &dot in &trained {
            plot.dot(dot, palette.accent, sizes.body * 0.26);
        }
        let now = (layout.micro_batches as f64, step.report.bubble_of_total);
        if trained.contains(&now) {
            plot.dot(now, palette.accent, sizes.body * 0.4);
        }
        let away = vec2(sizes.body * 0.7, -sizes.body * 0.6);
        plot.word(now, &percent(now.1), palette.text, away);
    }

    /// The runs that differ from `config` in their micro-batches alone.
    fn trained(&self, config: &Config, most: usize) -> Vec<(f64, f64)> {
        let comparable = |seen: &&Seen| {
            same_but_micro_batches(&seen.config, config) && seen.config.layout.micro_batches <= most
        };
        let seen = self.seen.iter().filter(comparable);
        seen.map(|seen| (seen.config.layout.micro_batches as f64, seen.bubble))
            .collect()
    }
}

/// The textbook's bubble for even stages whose input- and weight-gradient take as long as a forward pass.
fn formula(config: &Config, most: usize) -> Vec<(f64, f64)> {
    let layout = &config.layout;
    if config.custom.is_some() {
        return Vec::new();
    }
    let of = |m: usize| {
        let page = layout.schedule.textbook(layout.pp, m, layout.chunks);
        page.bubble_of_total(Shares::EVEN)
    };
    (1..=most)
        .filter_map(|m| Some((m as f64, of(m)?)))
        .collect()
}

/// The simulation's, as far as it is known of `config`.
fn simulated(curve: Option<&Curve>, config: &Config, most: usize) -> Vec<(f64, f64)> {
    let known = curve.filter(|curve| same_but_micro_batches(&curve.of, config));
    let points = known.map_or(&[][..], |curve| &curve.points);
    let points = points.iter().filter(|(m, _)| *m <= most);
    points.map(|&(m, bubble)| (m as f64, bubble)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_asked_for_once_and_again_when_it_says_something_else() {
        let mut plot = BubblePlot::default();
        let mut config = Config::default();
        assert!(plot.question(&config).is_some());
        assert!(plot.question(&config).is_none());
        config.layout.micro_batches = 4;
        assert!(plot.question(&config).is_none(), "it is on the same curve");
        config.layout.micro_batches = 40;
        assert!(plot.question(&config).is_some(), "the curve goes on");
        config.layout.pp = 2;
        assert!(plot.question(&config).is_some());
    }

    #[test]
    fn only_runs_that_differ_in_micro_batches_are_compared() {
        let mut plot = BubblePlot::default();
        let step = |micro_batches, pp| {
            let mut config = Config::default();
            config.layout.micro_batches = micro_batches;
            config.layout.pp = pp;
            Timeline::simulated(&config, "emulated").unwrap()
        };
        for (micro_batches, pp) in [(2, 4), (8, 4), (8, 2)] {
            plot.remember(&step(micro_batches, pp));
        }
        let of = |pp| plot.trained(&step(8, pp).report.config, 16).len();
        assert_eq!([of(4), of(2), of(1)], [2, 1, 0]);
    }
}

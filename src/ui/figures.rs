//! The figures on the cards, each with what it is of.

use crate::scene::Card;
use crate::session::{Costs, Report, Timeline};
use crate::units::{Bytes, Nanos, percent, three_digits};
use crate::words::{Language, mark, say};

/// A card, and whether its figure is a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// Name, figure, definition.
    pub(super) card: Card,
    /// Whether it says that the run would fail.
    pub(super) fault: bool,
}

/// The figures of a step.
pub(super) fn figures(timeline: &Timeline, language: Language) -> Vec<Figure> {
    let report = &timeline.report;
    let mut all = vec![
        step(report),
        bubble(timeline, language),
        exposed(report, language),
        memory(report, language),
        speedup(report, language),
    ];
    all.extend(tokens(report, language));
    all
}

fn figure(label: &str, value: String, note: String) -> Figure {
    Figure {
        card: Card {
            label: label.to_owned(),
            value,
            note,
        },
        fault: false,
    }
}

fn step(report: &Report) -> Figure {
    let makespan = Nanos::from_secs(report.makespan_s);
    let note = match report.cores {
        Some(1) => "measured · 1 core".to_owned(),
        Some(cores) => format!("measured · {cores} cores"),
        None => format!("virtual · {}", report.config.hardware.title),
    };
    figure(mark!("Step"), makespan.to_string(), note)
}

fn bubble(timeline: &Timeline, language: Language) -> Figure {
    let report = &timeline.report;
    let note = if let Some(formula) = timeline.formula {
        let share = percent(formula);
        say!(language, "of total · formula {share}", share)
    } else {
        let share = percent(report.bubble_of_ideal);
        say!(language, "of total · {share} of ideal", share)
    };
    figure(mark!("Bubble"), percent(report.bubble_of_total), note)
}

fn exposed(report: &Report, language: Language) -> Figure {
    let gpus = report.gpus().max(1) as f64;
    let share = |time: fn(&crate::session::RankReport) -> f64| {
        let ranks = report.ranks.iter();
        let sum: f64 = ranks.map(|rank| time(rank) * f64::from(rank.count)).sum();
        sum / gpus / report.makespan_s.max(f64::MIN_POSITIVE)
    };
    let (transfer, waiting) = (share(|rank| rank.transfer_s), share(|rank| rank.wait_s));
    let note = say!(language, "waiting {share}", share = percent(waiting));
    figure(mark!("Exposed transfer"), percent(transfer), note)
}

fn memory(report: &Report, language: Language) -> Figure {
    if report.config.costs != Costs::Model {
        // A zero would be read as a measure.
        return figure(
            mark!("Peak memory"),
            "–".to_owned(),
            say!(language, "not modelled here").to_owned(),
        );
    }
    let peak_of = |rank: &crate::session::RankReport| {
        let memory = rank.peak_memory_bytes;
        memory.parameters + memory.gradients + memory.optimizer + memory.activations
    };
    let most = report
        .ranks
        .iter()
        .max_by_key(|rank| (peak_of(rank), std::cmp::Reverse(rank.rank)));
    let peak = most.map_or(Bytes::ZERO, peak_of);
    let capacity = report.config.hardware.memory();
    let fault = !report.fits;
    let note = if fault {
        say!(language, "does not fit in {capacity}", capacity)
    } else {
        let gpu = most.map_or(0, |rank| rank.rank);
        say!(language, "of {capacity} · GPU {gpu}", capacity, gpu)
    };
    Figure {
        fault,
        ..figure(mark!("Peak memory"), peak.to_string(), note)
    }
}

fn speedup(report: &Report, language: Language) -> Figure {
    let value = format!("{} ×", three_digits(report.speedup));
    let note = say!(
        language,
        "efficiency {share} · over one GPU",
        share = percent(report.efficiency)
    );
    figure(mark!("Speed-up"), value, note)
}

fn tokens(report: &Report, language: Language) -> Option<Figure> {
    let rate = report.tokens_per_s?;
    let (value, unit) = match rate {
        rate if rate >= 1e6 => (rate / 1e6, " M"),
        rate if rate >= 1e4 => (rate / 1e3, " k"),
        rate => (rate, ""),
    };
    let note = match report.mfu {
        Some(mfu) => format!("MFU {}", percent(mfu)),
        None => say!(language, "trained on").to_owned(),
    };
    Some(figure(
        mark!("Tokens"),
        format!("{}{unit}/s", three_digits(value)),
        note,
    ))
}

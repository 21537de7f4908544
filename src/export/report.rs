//! The picture of a run: its title, its stamp and its figures, from its report.

use crate::lesson::build::DRAWN;
use crate::scene::{Card, Comparison, Part, Picture, Stamp};
use crate::session::{Costs, Figure, Report};

/// The figures that go on cards, and what a card calls them.
const CARDS: [(&str, &str); 6] = [
    ("step", "Step"),
    ("throughput", "Throughput"),
    ("MFU", "MFU"),
    ("bubble of total", "Bubble of total"),
    ("speed-up", "Speed-up"),
    ("peak memory", "Peak memory"),
];

/// What a picture of the run says besides its timeline.
pub fn picture(report: &Report) -> Picture {
    let config = &report.config;
    let title = match report.gpus() {
        1 => "One GPU".to_owned(),
        ranks if report.cores.is_some() => {
            format!("{} on {ranks} CPU ranks", config.schedule_title())
        }
        gpus => format!("{} on {gpus} GPUs", config.schedule_title()),
    };
    Picture {
        title,
        stamp: Stamp {
            layout: config.layout_line(),
            model: report.model_line(),
            hardware: report.hardware_line().unwrap_or_default(),
            engine: report.engine_line(),
            bubble: "idle / pipeline time".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        cards: cards(&report.figures()),
        capacity: (config.costs == Costs::Model).then(|| config.hardware.memory()),
        ..Picture::default()
    }
}

/// A picture of several runs on one time axis; the first is the one that others are compared with.
pub fn comparison(reports: &[&Report]) -> Comparison {
    let Some((first, others)) = reports.split_first() else {
        return Comparison::default();
    };
    let config = &first.config;
    let part = |report: &Report, name: String, beside: Option<&Report>| Part {
        name,
        figures: report.line_beside(beside),
        capacity: (report.config.costs == Costs::Model).then(|| report.config.hardware.memory()),
    };
    let name = if first.engine == DRAWN {
        format!("As drawn: {}", config.layout_line())
    } else {
        config.layout_line()
    };
    let mut parts = vec![part(first, name, None)];
    parts.extend(others.iter().map(|report| {
        let name = report.config.name_beside(config);
        part(report, name, Some(first))
    }));
    let whole = picture(first);
    Comparison {
        title: format!("{} timelines on one time axis", reports.len()),
        stamp: common(reports, whole.stamp),
        size: whole.size,
        theme: whole.theme,
        parts,
    }
}

/// A step as it was predicted, above the same as it was measured.
pub fn prediction(predicted: &Report, measured: &Report) -> Comparison {
    let both = comparison(&[predicted, measured]);
    let names = ["Predicted by the cost model", "Measured on this machine"];
    let parts = both.parts.into_iter().zip(names);
    Comparison {
        title: format!(
            "{}: predicted and measured",
            measured.config.schedule_title()
        ),
        parts: parts
            .map(|(part, name)| Part {
                name: name.to_owned(),
                ..part
            })
            .collect(),
        stamp: Stamp {
            layout: measured.config.layout_line(),
            engine: measured.engine_line(),
            ..both.stamp
        },
        ..both
    }
}

/// What all have in common of the first one's stamp; what differs is in the parts' names.
fn common(reports: &[&Report], first: Stamp) -> Stamp {
    let all = |of: fn(&Report) -> String, own: String| {
        let same = reports.iter().all(|report| of(report) == own);
        if same { own } else { String::new() }
    };
    Stamp {
        layout: String::new(),
        model: all(Report::model_line, first.model),
        hardware: all(
            |report| report.hardware_line().unwrap_or_default(),
            first.hardware,
        ),
        engine: all(Report::engine_line, first.engine),
        ..first
    }
}

fn cards(figures: &[Figure]) -> Vec<Card> {
    let card = |(name, label): (&str, &str)| {
        let figure = figures.iter().find(|figure| figure.name == name)?;
        Some(Card {
            label: label.to_owned(),
            value: figure.value.clone(),
            note: figure.note.clone(),
        })
    };
    CARDS.into_iter().filter_map(card).collect()
}

//! The questions on the way to a layout, one under the other, as far as they are uncovered.

use eframe::egui::{
    Align, Align2, Frame, Margin, RichText, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo, vec2,
};

use crate::scene::fonts::Weight;
use crate::session::{Guide, Reason, Verdict, Way};

use super::theme::{color, font};
use super::view::View;

/// How far the questions are uncovered: each is asked first, and answered then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Walk {
    /// All of them, and the layout.
    #[default]
    All,
    /// So many steps: twice the answered questions, and one more once the next is asked.
    Steps(usize),
}

impl Walk {
    /// Everything.
    pub(super) const ALL: Self = Self::All;
    /// The first question, not answered.
    pub(super) const START: Self = Self::Steps(0);

    /// One more, of `count` questions.
    pub(super) fn next(&mut self, count: usize) {
        if let Self::Steps(steps) = *self {
            // The last answer shows the layout too.
            let last = (2 * count).saturating_sub(1);
            *self = if steps + 1 >= last {
                Self::All
            } else {
                Self::Steps(steps + 1)
            };
        }
    }

    /// One less.
    pub(super) fn back(&mut self, count: usize) {
        *self = match *self {
            Self::All => Self::Steps((2 * count).saturating_sub(2)),
            Self::Steps(steps) => Self::Steps(steps.saturating_sub(1)),
        };
    }

    /// Questions that are asked, and whether the last of them is answered.
    fn asked(self, count: usize) -> (usize, bool) {
        match self {
            Self::All => (count, true),
            Self::Steps(steps) => (steps / 2 + 1, steps % 2 == 1),
        }
    }

    /// Where it is: `question 3 of 12`.
    pub(super) fn text(self, count: usize) -> String {
        match self {
            Self::All => format!("{count} questions"),
            Self::Steps(_) => format!("question {} of {count}", self.asked(count).0),
        }
    }
}

/// Shows the path as far as `walk` goes.
pub(super) fn show(ui: &mut Ui, found: &Guide, walk: Walk, view: &View) {
    let count = found.reasons.len();
    let (asked, answered) = walk.asked(count);
    for (index, reason) in found.reasons.iter().take(asked).enumerate() {
        let last = index + 1 == asked && walk != Walk::ALL;
        let shown = Shown {
            number: index + 1,
            answered: answered || index + 1 < asked,
            lit: last,
        };
        question(ui, reason, shown, view);
    }
}

/// How a question is shown.
#[derive(Clone, Copy)]
struct Shown {
    number: usize,
    answered: bool,
    /// Whether it is the one that is being talked about.
    lit: bool,
}

fn question(ui: &mut Ui, reason: &Reason, shown: Shown, view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let border = if shown.lit {
        Stroke::new(2.0, color(palette.accent))
    } else {
        Stroke::new(1.0, color(palette.grid))
    };
    let frame = Frame::new()
        .fill(color(palette.panel))
        .stroke(border)
        .corner_radius(sizes.panel_radius())
        .inner_margin(Margin::same((sizes.gap() * 1.1) as i8));
    let response = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = sizes.gap() * 0.45;
        ui.horizontal_top(|ui| {
            number(ui, shown.number, view);
            ui.vertical(|ui| {
                let title = font(sizes.body, Weight::SemiBold);
                ui.label(RichText::new(&reason.question).font(title));
                if shown.answered {
                    answer(ui, reason, view);
                } else {
                    ui.label(RichText::new("?").font(font(sizes.figure(), Weight::SemiBold)));
                }
            });
        });
    });
    if shown.lit {
        response.response.scroll_to_me(Some(Align::BOTTOM));
    }
    ui.add_space(sizes.gap() * 0.3);
}

/// The question's number in a disc.
fn number(ui: &mut Ui, number: usize, view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let side = sizes.body * 1.6;
    let (rect, _) = ui.allocate_exact_size(vec2(side, side), Sense::hover());
    ui.painter()
        .circle_filled(rect.center(), side * 0.5, color(palette.raised));
    ui.painter().text(
        rect.center(),
        Align2::CENTER_CENTER,
        number.to_string(),
        font(sizes.small(), Weight::SemiBold),
        color(palette.text),
    );
}

/// The answer, what follows, the ways that there were, and the figures.
fn answer(ui: &mut Ui, reason: &Reason, view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let tint = match reason.verdict {
        Verdict::Yes => palette.success,
        Verdict::No => palette.error,
        Verdict::Choice => palette.accent,
    };
    ui.horizontal_wrapped(|ui| {
        let strong = font(sizes.body * 1.15, Weight::SemiBold);
        let text = capital(&reason.answer);
        ui.label(RichText::new(text).font(strong).color(color(tint)));
        let facts: Vec<String> = reason
            .facts
            .iter()
            .map(|fact| {
                // A figure and its unit stay on a line.
                let value = fact.value.to_string().replace(' ', "\u{a0}");
                format!("{} {value}", fact.name)
            })
            .collect();
        ui.label(
            RichText::new(facts.join(" · "))
                .small()
                .color(color(palette.text_weak)),
        );
    });
    if !reason.ways.is_empty() {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = sizes.gap() * 0.6;
            for one in &reason.ways {
                way(ui, one, view);
            }
        });
    }
    ui.label(&reason.consequence);
}

/// A way with what it comes to: framed if it is taken, struck out if it does not fit.
fn way(ui: &mut Ui, way: &Way, view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let (border, ink) = match (way.taken, way.best.fits) {
        (true, _) => (Stroke::new(2.0, color(palette.accent)), palette.text),
        (false, true) => (Stroke::new(1.0, color(palette.divider)), palette.text),
        (false, false) => (Stroke::new(1.0, color(palette.divider)), palette.text_weak),
    };
    let mark = if way.taken { "→ " } else { "" };
    let text = format!("{mark}{}: {}", way.name, way.best.outcome());
    let weight = if way.taken {
        Weight::SemiBold
    } else {
        Weight::Regular
    };
    let ink = color(ink);
    let room = ui.max_rect().width() - sizes.gap() * 1.6;
    let font = font(sizes.small(), weight);
    let galley = ui.painter().layout(text.clone(), font, ink, room);
    let size = galley.size() + vec2(sizes.gap() * 1.6, sizes.gap() * 0.9);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.as_str()));
    let (radius, fill) = (sizes.panel_radius(), color(palette.background));
    ui.painter()
        .rect(rect, radius, fill, border, StrokeKind::Inside);
    let at = rect.center() - galley.size() * 0.5;
    ui.painter().galley(at, galley, ink);
    let named = way.best.named();
    response.on_hover_text(format!("The best that goes this way: {named}"));
}

/// `yes` as it stands at the start of a line.
fn capital(text: &str) -> String {
    match text {
        "yes" => "Yes".to_owned(),
        "no" => "No".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_is_asked_and_then_answered_and_the_last_answer_shows_all() {
        let mut walk = Walk::START;
        let mut seen = vec![walk.asked(3)];
        while walk != Walk::ALL {
            walk.next(3);
            seen.push(walk.asked(3));
        }
        let wanted = [
            (1, false),
            (1, true),
            (2, false),
            (2, true),
            (3, false),
            (3, true),
        ];
        assert_eq!(seen, wanted);
        for &before in wanted.iter().rev().skip(1) {
            walk.back(3);
            assert_eq!(walk.asked(3), before);
        }
        walk.back(3);
        assert_eq!(walk, Walk::START);
    }
}

//! The course: all lessons, how long they take, and how far the reader is.

use eframe::egui::{Button, RichText, ScrollArea, TextEdit, Ui, vec2};

use super::{Classroom, Teach};
use crate::scene::fonts::{self, Weight};
use crate::ui::theme::{color, font};
use crate::ui::view::View;
use crate::ui::wish::Wish;
use crate::words::say;

/// So many mistakes are told at once.
const MOST_TOLD: usize = 40;

/// Shows the lessons.
pub(super) fn show(ui: &mut Ui, classroom: &mut Classroom, view: &View, wishes: &mut Vec<Wish>) {
    let sizes = view.sizes();
    ScrollArea::vertical()
        .id_salt("lessons")
        .auto_shrink(false)
        .show(ui, |ui| {
            mistakes(ui, classroom, view);
            for (index, lesson) in classroom.course.lessons.iter().enumerate() {
                let progress = classroom.record.lessons.get(&lesson.id);
                let (sign, told) = match progress {
                    Some(progress) if progress.done => ("✓", say!(ui, "done").to_owned()),
                    Some(progress) => (
                        "…",
                        say!(
                            ui,
                            "page {n} of {count}",
                            n = progress.page + 1,
                            count = lesson.pages.len()
                        ),
                    ),
                    None => ("", say!(ui, "{n} min", n = lesson.minutes)),
                };
                let title = RichText::new(format!("{}  {}", index + 1, lesson.title))
                    .font(font(sizes.body, Weight::SemiBold));
                let button = Button::new(title)
                    .right_text(RichText::new(format!("{sign} {told}")).small())
                    .wrap();
                let row = ui.add(button.min_size(vec2(ui.available_width(), 0.0)));
                if row.on_hover_text(&lesson.summary).clicked() {
                    wishes.push(Wish::Teach(Teach::Open(lesson.id.clone())));
                }
                ui.label(
                    RichText::new(&lesson.summary)
                        .small()
                        .color(color(view.palette().text_weak)),
                );
                ui.add_space(sizes.gap() * 0.6);
            }
            summary(ui, classroom, view, wishes);
        });
}

/// Where a page of what was done goes.
fn summary(ui: &mut Ui, classroom: &mut Classroom, view: &View, wishes: &mut Vec<Wish>) {
    ui.separator();
    ui.label(
        RichText::new(say!(ui, "What was done")).font(font(view.sizes().body, Weight::SemiBold)),
    );
    ui.label(say!(
        ui,
        "One page with predictions, answers and the timeline that is shown"
    ));
    ui.horizontal(|ui| {
        // What the button leaves, in whichever language it is.
        let save = say!(ui, "Save");
        let spacing = ui.spacing();
        let around = spacing.button_padding.x * 2.0 + spacing.item_spacing.x;
        let button = fonts::width(save, view.sizes().body, Weight::Regular) + around;
        let width = ui.available_width() - button;
        let field = TextEdit::singleline(&mut classroom.summary.0).desired_width(width);
        ui.add(field).accessible_name("File of the summary");
        if ui.button(save).clicked() {
            wishes.push(Wish::Teach(Teach::Summary(classroom.summary.0.clone())));
        }
    });
    match &classroom.summary.1 {
        None => {}
        Some(Ok(told)) => {
            ui.label(told);
        }
        Some(Err(why)) => {
            ui.label(RichText::new(why).color(color(view.palette().error)));
        }
    }
}

/// What is wrong with lessons of one's own: file, line, and what was expected.
pub(super) fn mistakes(ui: &mut Ui, classroom: &Classroom, view: &View) {
    let why = classroom.files.as_ref().and_then(|(_, why)| why.clone());
    let mistakes = classroom.course.mistakes.iter().map(ToString::to_string);
    let all: Vec<String> = why.into_iter().chain(mistakes).collect();
    if all.is_empty() {
        return;
    }
    let error = color(view.palette().error);
    ui.label(
        RichText::new(say!(ui, "Lessons with mistakes"))
            .font(font(view.sizes().body, Weight::SemiBold))
            .color(error),
    );
    let more = all.len().saturating_sub(MOST_TOLD);
    for mistake in all.into_iter().take(MOST_TOLD) {
        ui.label(RichText::new(mistake).small());
    }
    if more > 0 {
        ui.label(RichText::new(format!("… and {more} more")).small());
    }
    ui.add_space(view.sizes().gap());
}

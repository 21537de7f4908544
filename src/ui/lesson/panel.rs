//! The panel with the lessons: the course, or a page of the lesson that is read.

use eframe::egui::{
    Align, Button, Layout, RichText, Role, ScrollArea, Sense, Ui, WidgetInfo, vec2,
};

use super::{Classroom, Teach, blocks, list};
use crate::lesson::Play;
use crate::scene::fonts::Weight;
use crate::ui::icon::{Icon, Weight as Strength, icon_button, keyed_button};
use crate::ui::run::Run;
use crate::ui::theme::{color, font};
use crate::ui::view::{TextSize, View};
use crate::ui::wish::Wish;
use crate::words::say;

/// How wide the panel is.
pub(in crate::ui) fn width(view: &View, window: f32) -> f32 {
    let em = view.sizes().body;
    match view.text {
        TextSize::Desk => (em * 27.0).min(window * 0.36),
        TextSize::Presenter => (em * 24.0).min(window * 0.42),
    }
}

/// Shows the panel.
pub(in crate::ui) fn show(
    ui: &mut Ui,
    classroom: &mut Classroom,
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    head(ui, classroom, view, wishes);
    if classroom.play.is_none() {
        list::show(ui, classroom, view, wishes);
        return;
    }
    let foot = view.sizes().body * 2.4;
    let height = (ui.available_height() - foot).max(0.0);
    let page = classroom
        .play
        .as_ref()
        .map_or(0, |play| play.progress().page);
    ScrollArea::vertical()
        .id_salt(("page", page))
        .max_height(height)
        .auto_shrink(false)
        .show(ui, |ui| {
            ui.set_max_width(ui.available_width() - view.sizes().gap());
            list::mistakes(ui, classroom, view);
            blocks::show(ui, classroom, (run, view), wishes);
            ui.add_space(view.sizes().space());
        });
    if let Some(play) = &classroom.play {
        foot_line(ui, play, view, wishes);
    }
}

/// The title, and ways back to the course and out.
fn head(ui: &mut Ui, classroom: &Classroom, view: &View, wishes: &mut Vec<Wish>) {
    let sizes = view.sizes();
    ui.horizontal(|ui| {
        let title = match &classroom.play {
            Some(play) => {
                let back = icon_button(ui, Icon::Left, Strength::Plain, say!(ui, "All lessons"));
                if back.on_hover_text(say!(ui, "All lessons")).clicked() {
                    wishes.push(Wish::Teach(Teach::List));
                }
                play.lesson().title.clone()
            }
            None => say!(ui, "Lessons").to_owned(),
        };
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let named = (say!(ui, "Close the lessons"), "N");
            if keyed_button(ui, Icon::Close, Strength::Plain, named).clicked() {
                wishes.push(Wish::Teach(Teach::Toggle));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let title = RichText::new(title).font(font(sizes.title(), Weight::SemiBold));
                ui.add(eframe::egui::Label::new(title).truncate());
            });
        });
    });
    ui.add_space(sizes.gap() * 0.5);
}

/// Back, where the reader is, and on.
fn foot_line(ui: &mut Ui, play: &Play, view: &View, wishes: &mut Vec<Wish>) {
    let (page, count) = (play.progress().page, play.lesson().pages.len());
    ui.add_space(view.sizes().gap() * 0.5);
    ui.horizontal(|ui| {
        let back = ui.add_enabled(page > 0, Button::new(say!(ui, "Back")));
        if back
            .on_hover_text(say!(ui, "The page before (Page up)"))
            .clicked()
        {
            wishes.push(Wish::Teach(Teach::Back));
        }
        dots(ui, play, view, wishes);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let last = page + 1 == count;
            if last {
                if ui.button(say!(ui, "All lessons")).clicked() {
                    wishes.push(Wish::Teach(Teach::List));
                }
                let again = ui.button(say!(ui, "Start over")).on_hover_text(say!(
                    ui,
                    "This lesson from its start, all answers forgotten"
                ));
                if again.clicked() {
                    wishes.push(Wish::Teach(Teach::Restart));
                }
                return;
            }
            let done = play.is_page_done(page);
            let next = Button::new(RichText::new(say!(ui, "Next"))).selected(done);
            if ui
                .add(next)
                .on_hover_text(say!(ui, "The next page (Page down)"))
                .clicked()
            {
                wishes.push(Wish::Teach(Teach::Forward));
            }
        });
    });
}

/// A dot a page: full where everything was done, ringed where the reader is.
fn dots(ui: &mut Ui, play: &Play, view: &View, wishes: &mut Vec<Wish>) {
    let palette = view.palette();
    let side = view.sizes().body;
    for page in 0..play.lesson().pages.len() {
        let (rect, response) = ui.allocate_exact_size(vec2(side, side * 1.4), Sense::click());
        let done = play.is_page_done(page);
        let here = if page == play.progress().page {
            ", here"
        } else {
            ""
        };
        let done_too = if done { ", done" } else { "" };
        let name = format!("Page {}{done_too}{here}", page + 1);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &name));
        let (centre, radius) = (rect.center(), side * 0.26);
        let tint = color(palette.text_weak);
        let painter = ui.painter();
        if done {
            painter.circle_filled(centre, radius, color(palette.accent));
        } else {
            painter.circle_stroke(centre, radius, (1.2, tint));
        }
        if page == play.progress().page {
            painter.circle_stroke(centre, radius * 1.7, (1.4, color(palette.accent)));
        }
        if response.has_focus() {
            painter.rect_stroke(
                rect,
                2.0,
                (1.0, color(palette.accent)),
                eframe::egui::StrokeKind::Inside,
            );
        }
        let title = play.lesson().pages[page].title.as_str();
        if response.on_hover_text(title).clicked() {
            wishes.push(Wish::Teach(Teach::Page(page)));
        }
    }
}

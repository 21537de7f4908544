//! The keys, over the window.

use eframe::egui::{Button, Grid, Id, Key, Modal, RichText, ScrollArea, Ui};

use crate::scene::fonts::Weight;
use crate::words::{Language, say};

use super::bindings::BINDINGS;
use super::builder::BUILDING;
use super::keys::{Binding, Group};
use super::theme::font;
use super::view::View;
use super::wish::{Show, Wish};

/// Shows the keys.
pub(super) fn show(ui: &mut Ui, view: &View, listed: fn(&Binding) -> bool, wishes: &mut Vec<Wish>) {
    let sizes = view.sizes();
    let modal = Modal::new(Id::unique("keys")).show(ui.ctx(), |ui| {
        ui.label(RichText::new(say!(ui, "Keys")).font(font(sizes.title(), Weight::SemiBold)));
        let room = ui.ctx().content_rect().height() - sizes.body * 10.0;
        ScrollArea::vertical().max_height(room).show(ui, |ui| {
            ui.horizontal_top(|ui| {
                // The timeline has the most keys, and is in the middle.
                for groups in [[Group::Run, Group::Window].as_slice(), &[Group::Building, Group::Timeline], &[Group::Layout]] {
                    let list = |ui: &mut Ui| groups.iter().for_each(|&group| list(ui, (group, listed), view));
                    ui.vertical(list);
                    ui.add_space(sizes.space());
                }
            });
            ui.label(
                RichText::new("Tab goes from control to control, Enter presses one; in a number, type or use ↑ and ↓")
                    .weak(),
            );
        });
        ui.horizontal(|ui| {
            for language in Language::ALL {
                let button = Button::selectable(view.language == language, language.name());
                if ui.add(button).clicked() {
                    wishes.push(Wish::Show(Show::Language(language)));
                }
            }
        });
        let close = ui.button(say!(ui, "Close"));
        if close.clicked() || ui.input(|input| input.key_pressed(Key::Escape)) {
            wishes.push(Wish::Show(Show::Help));
        }
    });
    if modal.backdrop_response.clicked() {
        wishes.push(Wish::Show(Show::Help));
    }
}

fn list(ui: &mut Ui, (group, listed): (Group, fn(&Binding) -> bool), view: &View) {
    let sizes = view.sizes();
    let own = |binding: &&Binding| binding.group == group && listed(binding);
    let all = || BINDINGS.iter().chain(BUILDING);
    if !all().any(|binding| own(&binding)) {
        return;
    }
    ui.label(RichText::new(group.name()).font(font(sizes.body, Weight::SemiBold)));
    Grid::new(group.name())
        .num_columns(2)
        .min_row_height(sizes.body * 1.3)
        .show(ui, |ui| {
            for binding in all().filter(own) {
                let key = RichText::new(binding.shown).font(font(sizes.small(), Weight::SemiBold));
                ui.label(key);
                ui.label(RichText::new(binding.does).weak().small());
                ui.end_row();
            }
        });
    ui.add_space(sizes.gap());
}

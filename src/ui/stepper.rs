//! Controls of the left panel: a number with less and more, a choice with the one before and the next.

use eframe::egui::{Align, Button, ComboBox, DragValue, Layout, RichText, Ui, vec2};

use crate::words::{Language, Speaks as _, say};

use super::edit::{Change, Field};
use super::icon::{Icon, Weight, icon_button};
use super::wish::{Direction, Wish};

/// A number as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Which control.
    pub(super) field: Field,
    /// Its value; a refused one while it is refused.
    pub(super) value: usize,
    /// Whether it was refused.
    pub(super) refused: bool,
}

/// A row with the control's name on the left and `add` on the right.
pub(super) fn row(ui: &mut Ui, name: &str, add: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.label(name);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x *= 0.6;
            add(ui);
        });
    });
}

/// A number that can be stepped, dragged and typed.
pub(super) fn number(ui: &mut Ui, number: Number, wishes: &mut Vec<Wish>) {
    let Number {
        field,
        value,
        refused,
    } = number;
    let name = ui.language().say(field.name());
    row(ui, name, |ui| {
        if icon_button(
            ui,
            Icon::Plus,
            Weight::Plain,
            &say!(ui, "More {name}", name = lower(ui, name)),
        )
        .clicked()
        {
            wishes.push(Wish::Next(field, Direction::Up));
        }
        let mut shown = value;
        ui.scope(|ui| {
            let width = ui.spacing().interact_size.y * 1.45;
            if refused {
                let error = ui.visuals().error_fg_color;
                ui.visuals_mut().override_text_color = Some(error);
            }
            let drag = DragValue::new(&mut shown)
                .speed(0.04)
                .update_while_editing(false);
            let size = vec2(width, ui.spacing().interact_size.y);
            let response = ui.add_sized(size, drag).accessible_name(name);
            if response.changed() && shown != value {
                wishes.push(Wish::Change(Change::Number(field, shown)));
            }
        });
        if icon_button(
            ui,
            Icon::Minus,
            Weight::Plain,
            &say!(ui, "Fewer {name}", name = lower(ui, name)),
        )
        .clicked()
        {
            wishes.push(Wish::Next(field, Direction::Down));
        }
    });
}

/// A choice among names.
pub(super) fn choice(
    ui: &mut Ui,
    field: Field,
    (shown, refused): (&str, bool),
    choices: &[(String, Change)],
    wishes: &mut Vec<Wish>,
) {
    let name = ui.language().say(field.name());
    row(ui, name, |ui| {
        if icon_button(
            ui,
            Icon::Right,
            Weight::Plain,
            &say!(ui, "Next {name}", name = lower(ui, name)),
        )
        .clicked()
        {
            wishes.push(Wish::Next(field, Direction::Up));
        }
        let side = ui.spacing().interact_size.y;
        let width = ui.available_width() - side - ui.spacing().item_spacing.x;
        let mut text = RichText::new(shown);
        if refused {
            text = text.color(ui.visuals().error_fg_color);
        }
        let combo = ComboBox::from_id_salt(field.name())
            .selected_text(text)
            .width(width)
            .truncate();
        let response = combo.show_ui(ui, |ui| {
            ui.set_min_width(width.max(side * 6.0));
            for (text, change) in choices {
                let button = Button::selectable(text == shown, text);
                if ui.add(button).clicked() {
                    wishes.push(Wish::Change(change.clone()));
                }
            }
        });
        response.response.accessible_name(name);
        if icon_button(
            ui,
            Icon::Left,
            Weight::Plain,
            &say!(ui, "Previous {name}", name = lower(ui, name)),
        )
        .clicked()
        {
            wishes.push(Wish::Next(field, Direction::Down));
        }
    });
}

/// A name within a sentence: nouns keep their capitals in German.
fn lower(ui: &Ui, name: &str) -> String {
    match ui.language() {
        Language::English => name.to_lowercase(),
        Language::German => name.to_owned(),
    }
}

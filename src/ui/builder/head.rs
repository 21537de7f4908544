//! Over the grid: the ladder of levels, what is to be reached, and the size of the free board.

use eframe::egui::{Align, Button, ComboBox, DragValue, Label, Layout, RichText, Ui};

use crate::lesson::build::{LADDER, MOST_RANKS};
use crate::scene::fonts::Weight as FontWeight;
use crate::schedule::{Chunks, ScheduleKind};
use crate::ui::icon::{Icon, Weight, keyed_button};
use crate::ui::theme::{color, font};
use crate::ui::view::{Middle, View};
use crate::ui::wish::{Show, Wish};

use super::wishes::Start;
use super::{Build, Builder, wish};

/// The most micro-batches and chunks of a free board that its controls offer.
const MOST_MICRO_BATCHES: usize = 64;
const MOST_CHUNKS: usize = 8;

impl Builder {
    /// Shows the levels and the goal.
    pub(super) fn head(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        let sizes = view.sizes();
        ui.horizontal(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let named = ("Back to the timeline", "Esc");
                if keyed_button(ui, Icon::Close, Weight::Plain, named).clicked() {
                    wishes.push(Wish::Show(Show::Middle(Middle::Builder)));
                }
                let stars = format!("{} of {} ★", self.progress.stars(), 3 * LADDER.len());
                ui.label(RichText::new(stars).color(color(view.palette().text_weak)));
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    self.levels(ui, view, wishes);
                });
            });
        });
        let level = self.board().level();
        ui.horizontal_wrapped(|ui| {
            let title = font(sizes.body * 1.2, FontWeight::SemiBold);
            ui.label(RichText::new(level.name.as_ref()).font(title));
            ui.add(Label::new(RichText::new(level.goal.as_ref())).wrap());
        });
        if self.is_free() {
            ui.horizontal_wrapped(|ui| self.free_controls(ui, wishes));
        }
        ui.add_space(sizes.gap() * 0.5);
    }

    fn levels(&self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        ui.spacing_mut().item_spacing.x = view.sizes().gap() * 0.6;
        for (index, sheet) in self.sheets.iter().enumerate() {
            let level = sheet.board.level();
            let is_free = index == LADDER.len();
            let best = self.progress.best(&level.name).filter(|_| !is_free);
            let stars = best.map_or(0, |best| usize::from(best.stars));
            let number = if is_free {
                "Free".to_owned()
            } else {
                (index + 1).to_string()
            };
            let text = match stars {
                0 => number.clone(),
                stars => format!("{number} {}", "★".repeat(stars)),
            };
            let name = match stars {
                0 => format!("Level {number}: {}", level.name),
                stars => format!("Level {number}: {}, {stars} of 3 stars", level.name),
            };
            let button = ui.add(Button::new(text).selected(index == self.at));
            let button = button.accessible_name(&name).on_hover_text(&name);
            if button.clicked() {
                wishes.push(wish(Build::Level(index)));
            }
        }
    }

    /// Size, placement and start of the free board.
    fn free_controls(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let mut free = self.free;
        ComboBox::from_id_salt("placement")
            .selected_text(free.kind.title())
            .show_ui(ui, |ui| {
                for kind in ScheduleKind::ALL {
                    // Its passes overlap, which is no move.
                    if kind != ScheduleKind::DualPipeV {
                        ui.selectable_value(&mut free.kind, kind, kind.title());
                    }
                }
            })
            .response
            .accessible_name("Schedule to start from");
        number(ui, "GPUs", &mut free.ranks, MOST_RANKS);
        number(
            ui,
            "micro-batches",
            &mut free.micro_batches,
            MOST_MICRO_BATCHES,
        );
        if free.kind.chunks() == Chunks::Loop {
            number(ui, "chunks a GPU", &mut free.chunks, MOST_CHUNKS);
        }
        let empty = ui.button("Empty board");
        let empty = empty
            .on_hover_text("Stages placed as the schedule places them, and nothing on the board");
        if empty.clicked() {
            wishes.push(wish(Build::Free(free, Start::Empty)));
        }
        let filled = ui.button("Start from the schedule");
        let filled = filled.on_hover_text("The whole schedule on the board, to be changed");
        if filled.clicked() {
            wishes.push(wish(Build::Free(free, Start::Filled)));
        }
        self.free = free;
    }
}

fn number(ui: &mut Ui, name: &str, value: &mut usize, most: usize) {
    let drag = DragValue::new(value).range(1..=most).speed(0.05);
    ui.add(drag).accessible_name(name);
    ui.label(name);
}

//! Beside the grid: score and figures, what was said, hints, and what can be done.

use eframe::egui::{Button, Frame, Margin, RichText, ScrollArea, TextEdit, Ui};

use crate::lesson::build::{Measure, Step};
use crate::scene::fonts::Weight;
use crate::ui::theme::{color, font};
use crate::ui::view::View;
use crate::ui::wish::Wish;
use crate::units::percent;

use super::wishes::FileWish;
use super::{Aid, Build, Builder, Tone, wish};

impl Builder {
    /// Shows it.
    pub(super) fn side(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        ScrollArea::vertical()
            .id_salt("side")
            .auto_shrink(false)
            .show(ui, |ui| {
                self.score(ui, view);
                self.saying(ui, view);
                self.hints(ui, view, wishes);
                self.moves(ui, wishes);
                self.aids(ui, wishes);
                self.ways_out(ui, view, wishes);
            });
    }

    /// How good it is.
    fn score(&self, ui: &mut Ui, view: &View) {
        let (palette, sizes) = (view.palette(), view.sizes());
        let (board, known) = (self.board(), &self.known);
        let measure = board.level().measure;
        ui.horizontal(|ui| {
            let units = known.figures.score(measure);
            let big = font(sizes.figure(), Weight::SemiBold);
            ui.label(RichText::new(words(units)).font(big));
            if let Some(par) = self.par() {
                ui.label(RichText::new(format!("par {par}")).color(color(palette.accent)));
            }
            if let Some(stars) = known.stars {
                let stars = usize::from(stars);
                let text = format!("{}{}", "★".repeat(stars), "☆".repeat(3 - stars));
                let text = RichText::new(text).font(font(sizes.body * 1.4, Weight::Regular));
                ui.label(text.color(color(palette.weight_grad)));
            }
        });
        let left = match board.left() {
            0 => "all placed".to_owned(),
            left => format!("{left} left to place"),
        };
        let counts = match measure {
            Measure::Makespan => "first pass to last, of all GPUs",
            Measure::StageSpan => "first pass to last of a GPU, the longest",
        };
        ui.label(RichText::new(format!("{counts} · {left}")).small().weak());
        let of = match measure {
            Measure::Makespan => "of total",
            Measure::StageSpan => "of the stage's span",
        };
        if board.placed() > 0 {
            let peaks: Vec<String> = known.figures.peaks.iter().map(usize::to_string).collect();
            let bubble = percent(known.figures.bubble(measure));
            let so_far = if board.is_complete() { "" } else { " so far" };
            ui.label(format!("Bubble{so_far} {bubble} {of}"));
            let cap = board
                .level()
                .cap
                .map_or(String::new(), |cap| format!(" (cap {cap})"));
            ui.label(format!("In flight at most {}{cap}", peaks.join(", ")));
            ui.label(known.likeness.words());
        }
        ui.add_space(sizes.gap());
    }

    /// What was done last, or why it cannot be.
    fn saying(&self, ui: &mut Ui, view: &View) {
        let Some((tone, text)) = &self.said else {
            return;
        };
        let palette = view.palette();
        let (edge, title) = match tone {
            Tone::Plain => (palette.divider, None),
            Tone::Wrong => (palette.error, Some("Not possible")),
            Tone::Good => (palette.success, Some("Done")),
        };
        boxed(ui, view, edge, |ui| {
            if let Some(title) = title {
                let title = RichText::new(title).font(font(view.sizes().body, Weight::SemiBold));
                ui.label(title.color(color(edge)));
            }
            ui.label(text);
        });
    }

    fn hints(&self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        if let Some((step, hint)) = &self.hint {
            let number = match step {
                Step::Concept => 1,
                Step::Principle => 2,
                Step::Move => 3,
            };
            boxed(ui, view, view.palette().accent, |ui| {
                let title = format!("Hint {number} of {}", Step::ALL.len());
                let title = RichText::new(title).font(font(view.sizes().body, Weight::SemiBold));
                ui.label(title.color(color(view.palette().accent)));
                ui.label(&hint.text);
            });
        }
        let text = match &self.hint {
            None => "Hint",
            Some((Step::Concept | Step::Principle, _)) => "More",
            Some((Step::Move, hint)) if hint.next.is_none() => "Hint",
            Some((Step::Move, _)) => "Place it",
        };
        let hint = "What it is about, how it is done, the next move; then it is placed (H)";
        if ui.button(text).on_hover_text(hint).clicked() {
            wishes.push(wish(Build::Hint));
        }
        ui.add_space(view.sizes().gap());
    }

    fn moves(&self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let (undo, redo) = self.board().history();
        let any = self.board().placed() > 0;
        let own = !self.board().rows()[self.rank].is_empty();
        let buttons = [
            (
                "Take back",
                "The chosen GPU's last pass (Backspace)",
                own,
                Build::TakeBack,
            ),
            ("Undo", "The last move (Ctrl Z)", undo, Build::Undo),
            ("Redo", "Do it again (Ctrl Y)", redo, Build::Redo),
            ("Clear", "An empty board (R)", any, Build::Reset),
        ];
        ui.horizontal_wrapped(|ui| {
            for (text, hint, can, build) in buttons {
                let button = ui.add_enabled(can, Button::new(text));
                if button.on_hover_text(hint).clicked() {
                    wishes.push(wish(build));
                }
            }
        });
    }

    fn aids(&self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let aids = [
            (
                Aid::Ready,
                "Ready passes",
                "Which passes can be placed, and why others cannot (A)",
            ),
            (
                Aid::Reference,
                "Best known",
                "The best known schedule beneath, on the same axis (X)",
            ),
            (
                Aid::Path,
                "Critical path",
                "The chain of passes that makes it as long as it is (C)",
            ),
        ];
        ui.horizontal_wrapped(|ui| {
            for (aid, text, hint) in aids {
                let button = Button::selectable(self.shows(aid), text);
                if ui.add(button).on_hover_text(hint).clicked() {
                    wishes.push(wish(Build::Aid(aid)));
                }
            }
        });
    }

    /// To the run, and to a file.
    fn ways_out(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        ui.add_space(view.sizes().gap());
        ui.horizontal_wrapped(|ui| {
            let run = Button::new("Run it").selected(self.board().is_complete());
            let hint = "Train nano by this order on emulated GPUs, the drawn timeline above (G)";
            if ui.add(run).on_hover_text(hint).clicked() {
                wishes.push(wish(Build::Run));
            }
            let form = Button::new("CSV…").selected(self.file.open);
            let hint = "Save it or open one, in PyTorch's format (S)";
            if ui.add(form).on_hover_text(hint).clicked() {
                wishes.push(wish(Build::File(FileWish::Form)));
            }
        });
        if !self.file.open {
            return;
        }
        let label = ui.label("File");
        let field = TextEdit::singleline(&mut self.file.path).desired_width(f32::INFINITY);
        ui.add(field).labelled_by(label.id);
        ui.horizontal(|ui| {
            for (text, file) in [
                ("Save as CSV", FileWish::Save),
                ("Open CSV", FileWish::Open),
            ] {
                if ui.button(text).clicked() {
                    wishes.push(wish(Build::File(file)));
                }
            }
        });
    }
}

fn words(units: u32) -> String {
    let noun = if units == 1 { "unit" } else { "units" };
    format!("{units} {noun}")
}

fn boxed(ui: &mut Ui, view: &View, edge: crate::scene::Colour, contents: impl FnOnce(&mut Ui)) {
    let sizes = view.sizes();
    let frame = Frame::new()
        .fill(color(view.palette().panel))
        .stroke(eframe::egui::Stroke::new(1.5, color(edge)))
        .corner_radius(sizes.radius() * 2.0)
        .inner_margin(Margin::same((sizes.body * 0.5) as i8));
    frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = sizes.gap() * 0.4;
        contents(ui);
    });
    ui.add_space(sizes.gap() * 0.6);
}

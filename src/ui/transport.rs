//! The bar at the top: through the run, how fast, and the window's own switches.

use eframe::egui::{Align, Button, Layout, RichText, Ui};

use crate::scene::fonts::Weight as FontWeight;
use crate::words::{Language, say};

use super::icon::{Icon, Weight, icon_button, keyed_button};
use super::lesson::Teach;
use super::run::Run;
use super::theme::{color, font};
use super::view::{Dialog, Middle, TextSize, View};
use super::wish::{Show, Travel, Wish};

/// A bar so wide, in body-text sizes, has room for the program's name, and one so wide for the speed in words.
const ROOM_FOR_TITLE: f32 = 66.0;
const ROOM_FOR_SPEED: f32 = 58.0;
/// The switch of the inside of a layer gives way first: it has a key.
const ROOM_FOR_PARTS: f32 = 11.5;

/// Shows the bar.
pub(super) fn show(ui: &mut Ui, run: &Run, view: &View, wishes: &mut Vec<Wish>) {
    ui.horizontal_centered(|ui| {
        let named = (say!(ui, "Fold the controls"), "K");
        if keyed_button(ui, Icon::Sidebar, Weight::Plain, named).clicked() {
            wishes.push(Wish::Show(Show::Controls));
        }
        let sizes = view.sizes();
        let spoken = ui.available_width() > sizes.body * ROOM_FOR_SPEED;
        if ui.available_width() > sizes.body * ROOM_FOR_TITLE {
            let title = font(sizes.body * 1.2, FontWeight::SemiBold);
            ui.label(RichText::new("Shardscope").font(title));
        }
        ui.add_space(sizes.space());
        // The inside of a layer has its own way through; the run stands still meanwhile.
        if view.middle != Middle::Split {
            travel(ui, run, wishes);
            ui.add_space(sizes.space());
            speed(ui, run, spoken, wishes);
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            switches(ui, view, wishes);
        });
    });
}

fn travel(ui: &mut Ui, run: &Run, wishes: &mut Vec<Wish>) {
    let (icon, name) = if run.playback().is_playing() {
        (Icon::Pause, say!(ui, "Pause"))
    } else {
        (Icon::Play, say!(ui, "Start"))
    };
    let buttons = [
        (Icon::Reset, say!(ui, "Reset"), "R", Travel::Reset),
        (
            Icon::StepBack,
            say!(ui, "One step back"),
            say!(ui, "Page up"),
            Travel::StepBack,
        ),
        (
            Icon::EventBack,
            say!(ui, "One pass back"),
            "←",
            Travel::EventBack,
        ),
        (icon, name, say!(ui, "Space"), Travel::PlayPause),
        (
            Icon::EventForward,
            say!(ui, "One pass on"),
            "→",
            Travel::EventForward,
        ),
        (
            Icon::StepForward,
            say!(ui, "One step"),
            say!(ui, "Page down"),
            Travel::StepForward,
        ),
    ];
    for (icon, name, key, travel) in buttons {
        let weight = if travel == Travel::PlayPause {
            Weight::Primary
        } else {
            Weight::Plain
        };
        if keyed_button(ui, icon, weight, (name, key)).clicked() {
            wishes.push(Wish::Travel(travel));
        }
    }
}

/// Slower and faster, and how fast it is: in words where they have room, else at the buttons.
fn speed(ui: &mut Ui, run: &Run, spoken: bool, wishes: &mut Vec<Wish>) {
    let text = run.playback().speed().text();
    let slower = icon_button(ui, Icon::Minus, Weight::Plain, say!(ui, "Slower"));
    if slower
        .on_hover_text(say!(ui, "Slower (Shift ↓): {text}", text))
        .clicked()
    {
        wishes.push(Wish::Travel(Travel::Slower));
    }
    if spoken {
        let width = ui.spacing().interact_size.y * 5.6;
        let label = eframe::egui::Label::new(RichText::new(&text));
        ui.add_sized([width, ui.spacing().interact_size.y], label)
            .on_hover_text(say!(
                ui,
                "Virtual time, slowed down or sped up to be watched"
            ));
    }
    let faster = icon_button(ui, Icon::Plus, Weight::Plain, say!(ui, "Faster"));
    if faster
        .on_hover_text(say!(ui, "Faster (Shift ↑): {text}", text))
        .clicked()
    {
        wishes.push(Wish::Travel(Travel::Faster));
    }
}

/// From the right.
fn switches(ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
    window_switches(ui, view, wishes);
    let sweep = ui.add(Button::new(say!(ui, "Layouts…")).selected(view.middle.is_layouts()));
    let hint = say!(
        ui,
        "Every legal layout, ranked: time, memory, cost (Y), or one chosen for you (G)"
    );
    if sweep.on_hover_text(hint).clicked() {
        let middle = if view.middle.is_layouts() {
            view.middle
        } else {
            Middle::Sweep
        };
        wishes.push(Wish::Show(Show::Middle(middle)));
    }
    export_switch(ui, view, wishes);
    let lessons = ui.add(Button::new(say!(ui, "Lessons…")).selected(view.teaching));
    if lessons
        .on_hover_text(say!(ui, "Lessons to read beside the timelines (N)"))
        .clicked()
    {
        wishes.push(Wish::Teach(Teach::Toggle));
    }
    // In a narrow bar these have their keys only.
    let hint = say!(ui, "Build a schedule by hand, as a puzzle, and run it (B)");
    let split = say!(
        ui,
        "The inside of a layer: its matrices cut over GPUs, step by step (I)"
    );
    for (name, middle, hint) in [
        (say!(ui, "Build…"), Middle::Builder, hint),
        (say!(ui, "Matrices…"), Middle::Split, split),
    ] {
        if ui.available_width() > view.sizes().body * ROOM_FOR_PARTS {
            let part = ui.add(Button::new(name).selected(view.middle == middle));
            if part.on_hover_text(hint).clicked() {
                wishes.push(Wish::Show(Show::Middle(middle)));
            }
        }
    }
}

/// Keys, colours and text sizes, from the right.
pub(super) fn window_switches(ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
    let selected = |on: bool, text: &'static str| Button::new(text).selected(on);
    let help = ui
        .add(selected(view.dialog == Some(Dialog::Help), "?"))
        .accessible_name(say!(ui, "Keys"));
    if help.on_hover_text(say!(ui, "Keys (?)")).clicked() {
        wishes.push(Wish::Show(Show::Help));
    }
    let named = (say!(ui, "Light or dark"), "L");
    if keyed_button(ui, Icon::Theme, Weight::Plain, named).clicked() {
        wishes.push(Wish::Show(Show::Theme));
    }
    let presenting = view.text == TextSize::Presenter;
    let presenter = ui.add(selected(presenting, say!(ui, "Presenter")));
    if presenter
        .on_hover_text(say!(ui, "Larger text for a classroom (V)"))
        .clicked()
    {
        wishes.push(Wish::Show(Show::Presenter));
    }
}

/// Where a picture or a trace is saved.
pub(super) fn export_switch(ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
    let on = view.dialog == Some(Dialog::Export);
    let export = ui.add(Button::new(say!(ui, "Export…")).selected(on));
    if export
        .on_hover_text(say!(ui, "Save a picture or a trace (E)"))
        .clicked()
    {
        wishes.push(Wish::Show(Show::Export));
    }
}

/// What is being seen, in a line over the timeline.
pub(super) fn status(ui: &mut Ui, run: &Run, view: &View) {
    let at = run.playback().at();
    let (palette, sizes) = (view.palette(), view.sizes());
    let step = RichText::new(say!(view, "Step {n}", n = at.step + 1))
        .font(font(sizes.body, FontWeight::SemiBold));
    ui.label(step);
    let (time, length) = (at.time, run.length());
    let clock = if run.config().device.is_emulated() {
        say!(
            view,
            "{time} of {length} virtual time, emulated",
            time,
            length
        )
    } else if run.is_measured() {
        say!(
            view,
            "{time} of {length} measured on this machine",
            time,
            length
        )
    } else {
        say!(
            view,
            "{time} of {length} as the cost model has it",
            time,
            length
        )
    };
    ui.label(RichText::new(clock).color(color(palette.text_weak)));
    if let Some((text, fault)) = notice(run, view.language) {
        let tint = if fault { palette.error } else { palette.accent };
        ui.label(RichText::new(text).color(color(tint)));
    }
}

/// From the right: the timeline kept, to compare others with it, and no longer.
pub(super) fn compare(ui: &mut Ui, comparing: bool, wishes: &mut Vec<Wish>) {
    if comparing
        && ui
            .button(say!(ui, "Stop comparing"))
            .on_hover_text(say!(ui, "Show the run's timeline alone (Shift X)"))
            .clicked()
    {
        wishes.push(Wish::ForgetAll);
    }
    let keep = if comparing {
        say!(ui, "Keep this too")
    } else {
        say!(ui, "Keep to compare")
    };
    let hint = say!(
        ui,
        "Keep this timeline, and see what changes do to it on the same time axis (X)"
    );
    if ui.button(keep).on_hover_text(hint).clicked() {
        wishes.push(Wish::Keep);
    }
}

/// What else there is to say, and whether it is a fault.
fn notice(run: &Run, language: Language) -> Option<(String, bool)> {
    use crate::session::Status;
    if run.is_behind() {
        return Some((
            say!(language, "preparing the new layout…").to_owned(),
            false,
        ));
    }
    match &run.snapshot().status {
        Status::Failed(why) => Some((say!(language, "Training failed: {why}", why), true)),
        Status::Preparing => Some((say!(language, "preparing…").to_owned(), false)),
        Status::Ready | Status::Training if run.waits() => {
            Some((say!(language, "training this step…").to_owned(), false))
        }
        Status::Ready | Status::Training => None,
    }
}

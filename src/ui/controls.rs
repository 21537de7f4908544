//! The left panel: layout, batch, model and hardware. Collects wishes and changes nothing itself.

use std::num::NonZeroUsize;

use eframe::egui::{Frame, Margin, RichText, ScrollArea, Stroke, Ui};

use crate::hardware::PROFILES;
use crate::scene::fonts::Weight;
use crate::schedule::{Chunks, ScheduleKind};
use crate::session::Config;
use crate::shape::{PRESETS, Zero};
use crate::units::large;
use crate::words::{mark, say};

use super::dock;
use super::edit::{self, Change, Field, Refusal};
use super::run::Run;
use super::stepper::{self, Number, choice, number};
use super::theme::{color, font};
use super::view::View;
use super::what_if;
use super::wish::{Direction, Wish};

/// The panel's width, in body-text sizes.
pub(super) const WIDTH: f32 = 18.5;

/// Shows the controls.
pub(super) fn show(ui: &mut Ui, run: &Run, view: &View, wishes: &mut Vec<Wish>) {
    ScrollArea::vertical()
        .auto_shrink(false)
        .show(ui, |ui| all(ui, run, view, wishes));
}

fn all(ui: &mut Ui, run: &Run, view: &View, wishes: &mut Vec<Wish>) {
    let config = run.config();
    heading(ui, view, say!(view, "Layout"));
    for field in [Field::Dp, Field::Tp, Field::Pp] {
        number_with_refusal(ui, field, (run, view), wishes);
    }
    gpus(ui, config, view);
    heading(ui, view, say!(view, "Batch"));
    for field in [Field::MicroBatches, Field::MicroBatchSize] {
        number_with_refusal(ui, field, (run, view), wishes);
    }
    global_batch(ui, config);
    heading(ui, view, say!(view, "Schedule"));
    schedule(ui, (run, view), wishes);
    if config.layout.schedule.chunks() != Chunks::One {
        number_with_refusal(ui, Field::Chunks, (run, view), wishes);
    }
    switches(ui, (run, view), wishes);
    heading(ui, view, say!(view, "Model and hardware"));
    model(ui, (run, view), wishes);
    hardware(ui, (run, view), wishes);
    device(ui, (run, view), wishes);
    what_if::show(ui, (run, view), wishes);
    undo(ui, run, wishes);
    heading(ui, view, say!(view, "Panels"));
    dock::switches(ui, view, wishes);
}

fn heading(ui: &mut Ui, view: &View, text: &str) {
    let sizes = view.sizes();
    ui.add_space(sizes.gap() * 0.8);
    let font = font(sizes.small(), Weight::SemiBold);
    ui.label(
        RichText::new(text)
            .font(font)
            .color(color(view.palette().text_weak)),
    );
}

fn number_with_refusal(
    ui: &mut Ui,
    field: Field,
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    let refusal = run
        .refusal()
        .filter(|refusal| refusal.asked.field() == field);
    let asked = refusal.and_then(|refusal| match refusal.asked {
        Change::Number(_, value) => Some(value),
        Change::Schedule(_)
        | Change::Overlap(_)
        | Change::Sequence(_)
        | Change::Zero(_)
        | Change::Sync(_)
        | Change::Model(_)
        | Change::Hardware(_)
        | Change::Device(_)
        | Change::Straggler(..)
        | Change::Slower(..)
        | Change::Jitter(_)
        | Change::Layers(_) => None,
    });
    let value = field.number(&run.config().layout).unwrap_or_default();
    let shown = Number {
        field,
        value: asked.unwrap_or(value),
        refused: asked.is_some(),
    };
    number(ui, shown, wishes);
    if let Some(refusal) = refusal {
        show_refusal(ui, refusal, view, wishes);
    }
}

/// Why a change cannot be, right under its control, and the nearest that can.
fn show_refusal(ui: &mut Ui, refusal: &Refusal, view: &View, wishes: &mut Vec<Wish>) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let error = color(palette.error);
    let frame = Frame::new()
        .fill(color(palette.error.mixed(palette.panel, 0.86)))
        .stroke(Stroke::new(1.0, error))
        .corner_radius(sizes.panel_radius())
        .inner_margin(Margin::same((sizes.gap() * 1.2) as i8));
    frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.label(RichText::new(&refusal.reason).color(color(palette.text)));
        if !refusal.offers.is_empty() {
            ui.label(RichText::new(say!(ui, "Nearest that work")).color(color(palette.text_weak)));
        }
        for (index, offer) in refusal.offers.iter().enumerate() {
            if ui.button(refusal.offer_text(offer)).clicked() {
                wishes.push(Wish::TakeOffer(index));
            }
        }
        if ui.button(say!(ui, "Keep what was")).clicked() {
            wishes.push(Wish::Dismiss);
        }
    });
}

fn gpus(ui: &mut Ui, config: &Config, view: &View) {
    let layout = &config.layout;
    let count = layout.dp * layout.tp * layout.pp;
    let font = font(view.sizes().body, Weight::SemiBold);
    let is_emulated = config.device.is_emulated();
    let text = RichText::new(if !is_emulated {
        say!(view, "= {count} CPU ranks", count)
    } else if count == 1 {
        say!(view, "= 1 GPU, emulated").to_owned()
    } else {
        say!(view, "= {count} GPUs, emulated", count)
    })
    .font(font)
    .color(color(view.palette().accent));
    ui.label(text).on_hover_text(if is_emulated {
        say!(view, "Each GPU's work is really computed, one after the other on this computer's cores, and timed on a virtual clock")
    } else {
        say!(view, "Each rank is a thread of this computer, which waits for the others as GPUs do, timed by the wall clock")
    });
}

fn global_batch(ui: &mut Ui, config: &Config) {
    let layout = &config.layout;
    let text = say!(
        ui,
        "Global batch {all} = {size} × {count} × {dp}",
        all = layout.global_batch(),
        size = layout.micro_batch_size,
        count = layout.micro_batches,
        dp = layout.dp
    );
    ui.label(RichText::new(text).weak().small())
        .on_hover_text(say!(
            ui,
            "Micro-batch size × micro-batches × data-parallel degree, in sequences"
        ));
}

fn schedule(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let choices: Vec<(String, Change)> = ScheduleKind::ALL
        .into_iter()
        .map(|kind| (kind.title().to_owned(), Change::Schedule(kind)))
        .collect();
    choice_with_refusal(
        ui,
        (run, view),
        run.config().schedule_title(),
        &choices,
        wishes,
    );
}

fn model(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let choices: Vec<(String, Change)> = PRESETS
        .iter()
        .map(|&(name, _)| (name.to_owned(), Change::Model(name)))
        .collect();
    let model = &run.config().model;
    choice_with_refusal(ui, (run, view), &model.name, &choices, wishes);
    let text = say!(
        ui,
        "{parameters} parameters, {layers} layers, {heads} heads",
        parameters = count(model.params()),
        layers = model.layers,
        heads = model.heads
    );
    ui.label(RichText::new(text).weak().small());
    if let Some(why) = &run.snapshot().only_simulated {
        let text = RichText::new(say!(view, "Only simulated: {why}", why))
            .small()
            .color(color(view.palette().error));
        ui.label(text);
    }
}

fn hardware(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let choices: Vec<(String, Change)> = PROFILES
        .iter()
        .map(|&(name, _)| (name.to_owned(), Change::Hardware(name)))
        .collect();
    let hardware = &run.config().hardware;
    choice_with_refusal(ui, (run, view), &hardware.name, &choices, wishes);
    let text = say!(
        ui,
        "{memory} a GPU, {gpus} GPUs a node",
        memory = hardware.memory(),
        gpus = hardware.gpus_per_node
    );
    ui.label(RichText::new(text).weak().small());
}

/// Where ranks run; as threads, what that makes of the picture.
fn device(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let name = |device| view.language.say(edit::device_name(device)).to_owned();
    let choices: Vec<(String, Change)> = edit::DEVICES
        .into_iter()
        .map(|device| (name(device), Change::Device(device)))
        .collect();
    let config = run.config();
    choice_with_refusal(ui, (run, view), &name(config.device), &choices, wishes);
    let ranks = config.layout.dp * config.layout.tp * config.layout.pp;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    if !config.device.is_emulated() && ranks > cores {
        let text = say!(
            view,
            "{ranks} ranks share {cores} cores: no picture of parallel hardware, which emulation is",
            ranks,
            cores
        );
        let tint = color(view.palette().error);
        ui.label(RichText::new(text).small().color(tint));
    }
}

/// All choices are of one control.
pub(super) fn choice_with_refusal(
    ui: &mut Ui,
    (run, view): (&Run, &View),
    now: &str,
    choices: &[(String, Change)],
    wishes: &mut Vec<Wish>,
) {
    let Some(field) = choices.first().map(|(_, change)| change.field()) else {
        return;
    };
    let refusal = run
        .refusal()
        .filter(|refusal| refusal.asked.field() == field);
    let asked = refusal.and_then(|refusal| {
        let found = choices.iter().find(|(_, change)| *change == refusal.asked);
        found.map(|(text, _)| text.as_str())
    });
    choice(
        ui,
        field,
        (asked.unwrap_or(now), asked.is_some()),
        choices,
        wishes,
    );
    if let Some(refusal) = refusal {
        show_refusal(ui, refusal, view, wishes);
    }
}

/// What is on or off.
fn switches(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let config = run.config();
    let all = [
        (
            Field::Overlap,
            config.overlap,
            mark!("Whether the data-parallel all-reduce runs during the backward pass"),
        ),
        (
            Field::Sequence,
            config.methods.sequence_parallel,
            mark!(
                "Tensor-parallel GPUs also share what lies between matrices: reduce-scatter and all-gather for all-reduce"
            ),
        ),
        (
            Field::Zero,
            config.methods.zero != Zero::Off,
            mark!(
                "Data-parallel GPUs share the optimizer: each updates its part of the weights, and all gather the rest"
            ),
        ),
        (
            Field::Sync,
            !config.methods.no_sync,
            mark!("Off: each replica keeps its gradients to itself, and their weights drift apart"),
        ),
    ];
    for (field, mut on, hint) in all {
        let name = view.language.say(field.name());
        stepper::row(ui, name, |ui| {
            let text = if on { say!(ui, "on") } else { say!(ui, "off") };
            let response = ui
                .checkbox(&mut on, text)
                .accessible_name(name)
                .on_hover_text(view.language.say(hint));
            if response.clicked() {
                wishes.push(Wish::Next(field, Direction::Up));
            }
        });
        let refusal = run.refusal();
        if let Some(refusal) = refusal.filter(|refusal| refusal.asked.field() == field) {
            show_refusal(ui, refusal, view, wishes);
        }
    }
}

fn undo(ui: &mut Ui, run: &Run, wishes: &mut Vec<Wish>) {
    ui.add_space(ui.spacing().item_spacing.y);
    ui.horizontal(|ui| {
        let buttons = [
            (say!(ui, "Undo"), run.history().can_undo(), Wish::Undo),
            (say!(ui, "Redo"), run.history().can_redo(), Wish::Redo),
        ];
        for (name, can, wish) in buttons {
            if ui
                .add_enabled(can, eframe::egui::Button::new(name))
                .clicked()
            {
                wishes.push(wish);
            }
        }
    });
}

/// A count with its power of ten: `1.60 M`.
fn count(number: u64) -> String {
    if number < 10_000 {
        number.to_string()
    } else {
        large(number as f64)
    }
}

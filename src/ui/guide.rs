//! The choice of a layout in place of the timeline: what is asked, the questions on the way to the answer, which can be walked
//! through one by one, the layout, and those that were rejected.

use eframe::egui::{
    Align, Button, ComboBox, DragValue, Grid, Layout, ProgressBar, RichText, ScrollArea, Ui, vec2,
};

use crate::hardware::{Hardware, PROFILES};
use crate::scene::fonts::Weight as FontWeight;
use crate::session::{Allowed, Command, Config, Guide, GuideSpec, GuideState, Measured, Rejected};
use crate::shape::{ModelShape, PRESETS, Recompute, Zero};
use crate::units::{large, percent};

use super::guide_path::{self, Walk};
use super::icon::{Icon, Weight, icon_button, keyed_button};
use super::run::Run;
use super::theme::{color, font};
use super::view::{Middle, View};
use super::wish::{Show, Travel, Wish};

/// The share of the room that the path takes, and how wide the panel must be for the answer beside it, in body-text sizes.
const PATH: f32 = 0.58;
const ROOM_BESIDE: f32 = 56.0;

/// The panel: what is asked, and how far the answer is walked through.
#[derive(Clone, Debug, Default)]
pub(super) struct GuidePanel {
    /// What somebody asked for in place of what the run has.
    model: Option<&'static str>,
    hardware: Option<&'static str>,
    gpus: Option<usize>,
    batch: Option<usize>,
    allowed: Allowed,
    asked: Option<GuideSpec>,
    walk: Walk,
}

impl GuidePanel {
    /// The question that the controls ask.
    fn wanted(&self, config: &Config) -> GuideSpec {
        let mut base = config.clone();
        // Both catalogues are read whole by tests.
        if let Some(model) = self.model.and_then(|name| ModelShape::preset(name).ok()) {
            base.model = model;
        }
        if let Some(hardware) = self.hardware.and_then(|name| Hardware::profile(name).ok()) {
            base.precision = hardware.precision;
            base.hardware = hardware;
        }
        let around = GuideSpec::around(&base, self.gpus(config));
        GuideSpec {
            global_batch: self.batch.unwrap_or(around.global_batch),
            allowed: self.allowed,
            ..around
        }
    }

    fn gpus(&self, config: &Config) -> usize {
        let own = || config.layout.mesh().map_or(1, |mesh| mesh.ranks());
        self.gpus.unwrap_or_else(own)
    }

    /// Nobody looks any more: what is under way ends, and what was found stays.
    pub(super) fn end(&mut self, run: &Run) {
        if let Some(GuideState::Running { .. }) = run.snapshot().guide {
            run.ask(Command::Guide(None));
        }
        // What another question ended is asked anew.
        let answered = match &run.snapshot().guide {
            Some(GuideState::Found { spec, .. } | GuideState::Refused { spec, .. }) => {
                Some(&**spec)
            }
            None | Some(GuideState::Running { .. }) => None,
        };
        if self.asked.as_ref() != answered {
            self.asked = None;
        }
    }

    /// Takes a way through the run as one through the questions; whether it is one.
    pub(super) fn travel(&mut self, travel: Travel, run: &Run) -> bool {
        let Some(GuideState::Found { found, .. }) = &run.snapshot().guide else {
            return false;
        };
        let count = found.reasons.len();
        match travel {
            Travel::StepForward | Travel::EventForward => self.walk.next(count),
            Travel::StepBack | Travel::EventBack => self.walk.back(count),
            Travel::StepStart => self.walk = Walk::START,
            Travel::StepEnd => self.walk = Walk::ALL,
            Travel::PlayPause | Travel::To(_) | Travel::Faster | Travel::Slower | Travel::Reset => {
                return false;
            }
        }
        true
    }

    /// Shows the panel, and asks for what it shows.
    pub(super) fn show(&mut self, ui: &mut Ui, run: &Run, view: &View, wishes: &mut Vec<Wish>) {
        tabs(ui, view, wishes);
        self.question(ui, run.config(), view);
        let wanted = self.wanted(run.config());
        if self.asked.as_ref() != Some(&wanted) {
            wishes.push(Wish::Guide(Box::new(wanted.clone())));
            self.asked = Some(wanted.clone());
        }
        ui.separator();
        match &run.snapshot().guide {
            Some(GuideState::Running { done, all }) => {
                let share = *done as f32 / (*all).max(1) as f32;
                ui.add(ProgressBar::new(share).text(format!("{done} of {all} layouts")));
            }
            Some(GuideState::Refused { spec, why, fewest }) if **spec == wanted => {
                self.refused(ui, (why, *fewest), view);
            }
            Some(GuideState::Found { spec, found }) if **spec == wanted => {
                self.found(ui, (spec, found), (run, view), wishes);
            }
            // Not yet, or still of what was asked for before.
            None | Some(GuideState::Refused { .. } | GuideState::Found { .. }) => {
                ui.label(RichText::new("Looking at every legal layout …").weak());
            }
        }
    }

    /// Model, hardware, GPUs, batch, and what is allowed.
    fn question(&mut self, ui: &mut Ui, config: &Config, view: &View) {
        ui.horizontal_wrapped(|ui| {
            let now = self.model.unwrap_or(&config.model.name);
            if let Some(name) = pick(ui, ("Model", now), PRESETS) {
                self.model = Some(name);
            }
            let now = self.hardware.unwrap_or(&config.hardware.name);
            if let Some(name) = pick(ui, ("Hardware", now), PROFILES) {
                self.hardware = Some(name);
            }
            let gpus = self.gpus(config);
            if let Some(gpus) = number(ui, "GPUs", gpus) {
                // The batch grows with the GPUs, so that it stays one that goes with them.
                let batch = self.wanted(config).global_batch;
                let scaled = batch.saturating_mul(gpus) / self.gpus(config).max(1);
                self.batch = Some(scaled.max(1));
                self.gpus = Some(gpus);
            }
            let batch = self.batch.unwrap_or(config.layout.global_batch());
            if let Some(batch) = number(ui, "Global batch", batch) {
                self.batch = Some(batch);
            }
        });
        ui.horizontal_wrapped(|ui| {
            let weak = color(view.palette().text_weak);
            ui.label(RichText::new("It may use").color(weak));
            let mut zero = self.allowed.zero != Zero::Off;
            let mut recompute = self.allowed.recompute != Recompute::None;
            ui.checkbox(&mut self.allowed.sequence_parallel, "sequence parallelism");
            ui.checkbox(&mut zero, "a shared optimizer (ZeRO-1)");
            ui.checkbox(&mut recompute, "recomputation")
                .on_hover_text("Simulated only: what is trained here keeps its activations");
            self.allowed.zero = if zero { Zero::Optimizer } else { Zero::Off };
            self.allowed.recompute = if recompute {
                Recompute::Full
            } else {
                Recompute::None
            };
        });
    }

    /// Why there is no answer, and how many GPUs would do.
    fn refused(&mut self, ui: &mut Ui, (why, fewest): (&str, Option<(usize, usize)>), view: &View) {
        let title = font(view.sizes().body * 1.2, FontWeight::SemiBold);
        ui.label(RichText::new("No layout").font(title));
        ui.label(RichText::new(why).color(color(view.palette().error)));
        if let Some((gpus, batch)) = fewest
            && ui.button(format!("Ask for {gpus} GPUs")).clicked()
        {
            self.gpus = Some(gpus);
            self.batch = Some(batch);
        }
    }

    fn found(
        &mut self,
        ui: &mut Ui,
        (spec, found): (&GuideSpec, &Guide),
        (run, view): (&Run, &View),
        wishes: &mut Vec<Wish>,
    ) {
        self.walk_buttons(ui, found, view);
        let em = view.sizes().body;
        let room = ui.available_size() - vec2(0.0, em * 0.3);
        let beside = room.x > em * ROOM_BESIDE;
        let down = Layout::top_down(Align::Min);
        if !beside {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                guide_path::show(ui, found, self.walk, view);
                if self.walk == Walk::ALL {
                    answer(ui, (spec, found), (run, view), wishes);
                }
            });
            return;
        }
        let path = room.x * PATH;
        ui.horizontal_top(|ui| {
            ui.allocate_ui_with_layout(vec2(path, room.y), down, |ui| {
                let area = ScrollArea::vertical().id_salt("path").auto_shrink(false);
                area.show(ui, |ui| guide_path::show(ui, found, self.walk, view));
            });
            ui.add_space(em * 0.6);
            let rest = vec2(ui.available_width(), room.y);
            ui.allocate_ui_with_layout(rest, down, |ui| {
                let area = ScrollArea::vertical().id_salt("answer").auto_shrink(false);
                area.show(ui, |ui| {
                    if self.walk == Walk::ALL {
                        answer(ui, (spec, found), (run, view), wishes);
                    } else {
                        let text = "The layout stays covered until the last question is answered. \
                                    What would you answer?";
                        ui.label(RichText::new(text).weak());
                    }
                });
            });
        });
    }

    /// Back, next, from the start, all.
    fn walk_buttons(&mut self, ui: &mut Ui, found: &Guide, view: &View) {
        let count = found.reasons.len();
        ui.horizontal(|ui| {
            let back = icon_button(ui, Icon::Left, Weight::Plain, "Previous question");
            if back
                .on_hover_text("Cover the last answer (← or Page up)")
                .clicked()
            {
                self.walk.back(count);
            }
            let next = icon_button(ui, Icon::Right, Weight::Plain, "Next question");
            if next
                .on_hover_text("Uncover one more (→ or Page down)")
                .clicked()
            {
                self.walk.next(count);
            }
            let start = ui.add(Button::new("Step by step"));
            if start
                .on_hover_text("Cover all but the first question (Home)")
                .clicked()
            {
                self.walk = Walk::START;
            }
            let all = ui.add(Button::new("Show all").selected(self.walk == Walk::ALL));
            if all.on_hover_text("Uncover everything (End)").clicked() {
                self.walk = Walk::ALL;
            }
            let text = format!(
                "{} · {} layouts looked at, {} fit",
                self.walk.text(count),
                found.layouts,
                found.fitting
            );
            ui.label(RichText::new(text).color(color(view.palette().text_weak)));
        });
    }
}

/// The two ways to find a layout, and the way back.
pub(super) fn tabs(ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
    ui.horizontal(|ui| {
        let all = [
            (Middle::Guide, "Choose for me", "G"),
            (Middle::Sweep, "Every layout", "Y"),
        ];
        for (middle, name, key) in all {
            let on = view.middle == middle;
            let tab = ui.add(Button::new(name).selected(on));
            if tab.on_hover_text(format!("{name} ({key})")).clicked() && !on {
                wishes.push(Wish::Show(Show::Middle(middle)));
            }
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let named = ("Back to the timeline", "Esc");
            if keyed_button(ui, Icon::Close, Weight::Plain, named).clicked() {
                wishes.push(Wish::Show(Show::Middle(view.middle)));
            }
        });
    });
}

/// A choice from a catalogue, with the one before and the next.
fn pick(
    ui: &mut Ui,
    (name, now): (&str, &str),
    catalogue: &'static [(&'static str, &'static str)],
) -> Option<&'static str> {
    let mut picked = None;
    let at = catalogue.iter().position(|(own, _)| *own == now);
    let count = catalogue.len();
    let go = |by: usize| catalogue[at.map_or(0, |at| (at + by) % count)].0;
    let lower = name.to_lowercase();
    ui.label(name);
    let before = format!("Previous {lower} to lay out");
    if icon_button(ui, Icon::Left, Weight::Plain, &before).clicked() {
        picked = Some(go(count - 1));
    }
    let combo = ComboBox::from_id_salt(("guide", name)).selected_text(now);
    let response = combo.show_ui(ui, |ui| {
        for (own, _) in catalogue {
            if ui.add(Button::selectable(*own == now, *own)).clicked() {
                picked = Some(*own);
            }
        }
    });
    response
        .response
        .accessible_name(format!("{name} to lay out"));
    let next = format!("Next {lower} to lay out");
    if icon_button(ui, Icon::Right, Weight::Plain, &next).clicked() {
        picked = Some(go(1));
    }
    picked
}

/// A number that is dragged, typed, halved and doubled.
fn number(ui: &mut Ui, name: &str, now: usize) -> Option<usize> {
    let most = crate::mesh::MAX_RANKS;
    let mut value = now;
    ui.label(name);
    let half = format!("Half the {name} to lay out");
    if icon_button(ui, Icon::Minus, Weight::Plain, &half).clicked() {
        value = (value / 2).max(1);
    }
    let drag = DragValue::new(&mut value)
        .range(1..=most)
        .update_while_editing(false);
    ui.add(drag).accessible_name(format!("{name} to lay out"));
    let twice = format!("Twice the {name} to lay out");
    if icon_button(ui, Icon::Plus, Weight::Plain, &twice).clicked() {
        value = value.saturating_mul(2).min(most);
    }
    (value != now).then_some(value)
}

/// The layout, its figures, and what was rejected.
fn answer(
    ui: &mut Ui,
    (spec, found): (&GuideSpec, &Guide),
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let (chosen, layout) = (&found.chosen, &found.chosen.layout);
    let large_font = font(sizes.body * 1.4, FontWeight::SemiBold);
    let degrees = format!("DP {} × TP {} × PP {}", layout.dp, layout.tp, layout.pp);
    ui.label(
        RichText::new(degrees)
            .font(large_font)
            .color(color(palette.accent)),
    );
    let named = chosen.named();
    let rest = named.split_once(", ").map_or("", |(_, rest)| rest);
    ui.label(rest);
    let weak = color(palette.text_weak);
    figures(ui, found, view);
    if ui
        .button("Use it")
        .on_hover_text("Loads the layout; Ctrl Z brings the one before back")
        .clicked()
    {
        wishes.push(Wish::Load(Box::new(loaded(run.config(), spec, chosen))));
    }
    ui.add_space(sizes.gap());
    let title = font(sizes.body, FontWeight::SemiBold);
    ui.label(RichText::new("Rejected").font(title));
    for one in &found.rejected {
        rejected(ui, (spec, one), (run, view), wishes);
    }
    let note = "Taken is the simplest layout within 2 % of the fastest. ≈: in closed form, all else simulated";
    ui.label(RichText::new(note).small().color(weak));
}

/// What the layout comes to.
fn figures(ui: &mut Ui, found: &Guide, view: &View) {
    let chosen = &found.chosen;
    let memory = format!("{} of {}", chosen.peak_memory_bytes, found.capacity);
    let figures = [
        ("Step", chosen.step_text()),
        ("Tokens/s", large(found.tokens_per_s)),
        ("MFU", percent(found.mfu)),
        ("Bubble of total", percent(chosen.bubble_of_total)),
        ("Fullest GPU", memory),
    ];
    let strong = font(view.sizes().body, FontWeight::SemiBold);
    let grid = Grid::new("guide figures")
        .num_columns(2)
        .min_row_height(view.sizes().body * 1.3)
        .spacing(vec2(view.sizes().space(), view.sizes().gap() * 0.2));
    grid.show(ui, |ui| {
        for (name, value) in figures {
            ui.label(RichText::new(name).color(color(view.palette().text_weak)));
            ui.label(RichText::new(value).font(strong.clone()));
            ui.end_row();
        }
    });
}

/// A layout that was not taken, with why, and a button that loads it.
fn rejected(
    ui: &mut Ui,
    (spec, one): (&GuideSpec, &Rejected),
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    let (palette, sizes) = (view.palette(), view.sizes());
    ui.horizontal_top(|ui| {
        let width = sizes.body * 3.9;
        if let Some(layout) = &one.layout {
            let button = ui.add_sized([width, ui.spacing().interact_size.y], Button::new("Show"));
            let hint = "Loads this layout; the chosen one, if it is shown, is kept to compare";
            let button = button.on_hover_text(hint);
            let button = button.accessible_name(format!("Show {}", one.name));
            if button.clicked() {
                let chosen = loaded(run.config(), spec, layout);
                if compares(run) {
                    wishes.push(Wish::Keep);
                }
                wishes.push(Wish::Load(Box::new(chosen)));
            }
        } else {
            ui.allocate_space(vec2(width, 1.0));
        }
        ui.vertical(|ui| {
            let name = font(sizes.body, FontWeight::SemiBold);
            ui.label(RichText::new(&one.name).font(name));
            let why = RichText::new(&one.why).small();
            ui.label(why.color(color(palette.text_weak)));
        });
    });
}

/// Whether what the run shows is the layout that the guide found, so that another is compared with it.
fn compares(run: &Run) -> bool {
    let Some(GuideState::Found { spec, found }) = &run.snapshot().guide else {
        return false;
    };
    *run.config() == loaded(run.config(), spec, &found.chosen)
}

/// A layout of the guide's as the run's configuration.
fn loaded(now: &Config, spec: &GuideSpec, one: &Measured) -> Config {
    Config {
        clock: now.clock,
        ..spec.config_of(one)
    }
}

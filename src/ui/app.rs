//! The application: takes keys and snapshots, lets time pass, lays out the panels, and grants wishes.

mod school;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eframe::CreationContext;
use eframe::egui::{
    self, Align, CentralPanel, Context, Frame, Label, Layout, Margin, RichText, Ui, ViewportCommand,
};

use crate::lesson::build::{Board, Progress};
use crate::session::{Command, Config, Session, Snapshot};

use super::bubble_plot::BubblePlot;
use super::builder::{BUILDING, Build, Builder};
use super::describe::describe;
use super::dock::Panels;
use super::export_panel::{ExportPanel, Shown, save, scene};
use super::guide::GuidePanel;
use super::kept::Kept;
use super::keys::{Binding, Group};
use super::lesson::{Classroom, Teach};
use super::now::NowPanel;
use super::options::Options;
use super::pane::{LookedAt, Pane, arranged};
use super::run::{Run, Source};
use super::selection::SelectionPanel;
use super::split::SplitPanel;
use super::sweep::SweepPanel;
use super::timeline::Stage;
use super::traffic::TrafficPanel;
use super::view::{Dialog, Middle, View};
use super::wish::{Direction, Look, Panel, Show, Travel, Wish};
use super::{cards, controls, dock, figures, help, keys, theme, timeline, transport};

/// The window's application. Dropping it ends its session and joins its thread.
#[derive(Debug)]
pub struct App {
    run: Run,
    view: View,
    pane: Pane,
    kept: Kept,
    traffic: TrafficPanel,
    selection: SelectionPanel,
    now: NowPanel,
    bubbles: BubblePlot,
    sweep: SweepPanel,
    builder: Builder,
    guide: GuidePanel,
    split: SplitPanel,
    export: ExportPanel,
    classroom: Classroom,
}

impl App {
    /// With a session of its own.
    pub fn new(cc: &CreationContext<'_>, options: &Options) -> std::io::Result<Self> {
        let ctx = cc.egui_ctx.clone();
        let session = Session::start(options.config.clone(), move || ctx.request_repaint())?;
        Ok(Self::from_source(cc, Source::Live(session), options))
    }

    /// On a snapshot that never changes: for tests and pictures.
    pub fn with_snapshot(
        cc: &CreationContext<'_>,
        options: &Options,
        snapshot: Arc<Snapshot>,
    ) -> Self {
        Self::from_source(cc, Source::Still(snapshot), options)
    }

    fn from_source(cc: &CreationContext<'_>, source: Source, options: &Options) -> Self {
        theme::install_fonts(&cc.egui_ctx);
        let classroom = school::classroom(options);
        let mut view = View::new(options.theme, options.text);
        view.controls_folded = options.hide_controls;
        view.language = options.language;
        Self {
            run: Run::new(source, options.motion),
            view,
            pane: Pane::default(),
            kept: Kept::default(),
            traffic: TrafficPanel::default(),
            selection: SelectionPanel::default(),
            now: NowPanel::default(),
            bubbles: BubblePlot::default(),
            sweep: SweepPanel::default(),
            builder: Builder::resumed(classroom.built().clone()),
            guide: GuidePanel::default(),
            split: SplitPanel::default(),
            export: ExportPanel::default(),
            classroom,
        }
    }

    /// Where the playhead is: training step, and virtual time in it in nanoseconds.
    pub fn playhead(&self) -> (u64, u64) {
        let at = self.run.playback().at();
        (at.step, at.time.0)
    }

    /// The configuration that the controls show.
    pub fn config(&self) -> &Config {
        self.run.config()
    }

    /// Another configuration as a whole, as if the controls had been set to it; whether it can be.
    pub fn load(&mut self, config: Config) -> bool {
        self.run.load(config)
    }

    /// What is looked at in the timeline; nothing before there is one.
    pub fn looked_at(&self) -> Option<LookedAt> {
        Some(self.pane.looked_at(&self.run.timeline()?.trace))
    }

    /// The board of the schedule that is built by hand.
    pub fn board(&self) -> &Board {
        self.builder.board()
    }

    /// Which levels of building were solved.
    pub fn progress(&self) -> &Progress {
        self.builder.progress()
    }

    /// What was said last of the board.
    pub fn board_said(&self) -> Option<&str> {
        self.builder.said()
    }

    /// Whether time goes on by itself.
    pub fn is_playing(&self) -> bool {
        self.run.playback().is_playing()
    }

    fn grant(&mut self, wish: Wish, ctx: &Context) {
        match wish {
            Wish::Change(change) => self.run.change(change),
            Wish::Next(field, direction) => self.run.next(field, direction),
            Wish::TakeOffer(index) => self.take_offer(index),
            Wish::Undo => self.run.undo(),
            Wish::Redo => self.run.redo(),
            Wish::Close => ctx.send_viewport_cmd(ViewportCommand::Close),
            Wish::Dismiss => self.dismiss(),
            Wish::Travel(travel) if self.view.middle == Middle::Split => self.split.travel(travel),
            Wish::Look(Look::NextGpu) if self.view.middle == Middle::Split => {
                self.split.entry(Direction::Up);
            }
            Wish::Look(Look::PreviousGpu) if self.view.middle == Middle::Split => {
                self.split.entry(Direction::Down);
            }
            Wish::Travel(travel) => {
                let guiding = self.view.middle == Middle::Guide;
                if !(guiding && self.guide.travel(travel, &self.run)) {
                    self.run.travel(travel);
                }
            }
            Wish::Look(look) => self.look(look),
            Wish::Show(show) => {
                self.view.show(show);
                if let Show::Language(language) = show {
                    self.classroom.speak(language);
                }
                self.end_unseen();
            }
            Wish::Point(rank) => self.pane.attention.pointed = rank,
            Wish::Choose(rank) => self.pane.choose(rank),
            Wish::Select(hit) => self.pane.select(hit),
            Wish::GoTo(hit) => {
                if let Some(step) = self.run.timeline() {
                    self.pane.go_to(&step.trace, hit);
                }
            }
            Wish::Area(area) => self.pane.select_area(area),
            Wish::Sweep(spec) => self.run.ask(Command::Sweep(Some(spec))),
            Wish::Guide(spec) => self.run.ask(Command::Guide(Some(spec))),
            Wish::Load(config) => {
                if self.run.load(*config) {
                    self.view.middle = Middle::Timeline;
                }
            }
            Wish::Keep => self.keep(),
            Wish::Forget(index) => self.kept.forget(index),
            Wish::ForgetAll => {
                self.kept.clear();
            }
            Wish::Turn(direction) => self.turn(direction, ctx),
            Wish::Teach(Teach::Part(part, at)) => self.open_part(part, at.as_deref()),
            Wish::Teach(Teach::Summary(path)) => self.summarise(&path),
            Wish::FullScreen => full_screen(ctx),
            Wish::Teach(teach) => {
                self.with_classroom(|classroom, desk| classroom.grant(teach, desk));
            }
            Wish::Build(build) => self.build(build),
            Wish::CopyKit => self.copy_kit(ctx),
            Wish::LoadKit(line) => self.load_kit(&line),
            Wish::Save => self.save(),
            Wish::Copy => {
                let theme = self.export.theme(self.view.theme);
                let arrows = self.pane.timeline.arrows();
                let picture = self.shown().map(|shown| scene(&shown, theme, arrows));
                self.export.copy(ctx, picture.as_ref());
            }
        }
    }

    /// Does something on the board; what is run then takes the timeline's place, with what was drawn above it.
    fn build(&mut self, build: Build) {
        let Some(built) = self.builder.grant(build, self.run.config()) else {
            return;
        };
        let (config, drawn) = *built;
        if self.run.load(config) {
            self.view.middle = Middle::Timeline;
            self.kept.clear();
            self.kept.keep(&Arc::new(drawn));
            if !self.run.playback().is_playing() {
                self.run.travel(Travel::PlayPause);
            }
        }
    }

    fn take_offer(&mut self, index: usize) {
        let refusal = self.run.refusal();
        let offer = refusal.and_then(|refusal| refusal.offers.get(index).cloned());
        if let Some(offer) = offer {
            self.run.take(&offer);
        }
    }

    fn keep(&mut self) {
        let shown = self.run.timeline().filter(|_| !self.run.is_behind());
        if let Some(step) = shown {
            self.kept.keep(step);
        }
    }

    /// What is shown, unless it is still of another configuration.
    fn shown(&self) -> Option<Shown<'_>> {
        let step = self.run.timeline().filter(|_| !self.run.is_behind());
        step.map(|timeline| Shown {
            timeline,
            steps: self.run.records(),
            kept: self.kept.steps(),
        })
    }

    fn save(&mut self) {
        let how = (
            self.export.theme(self.view.theme),
            self.pane.timeline.arrows(),
        );
        let drawing = self.export.drawing();
        let mut panel = std::mem::take(&mut self.export);
        let shown = self.shown();
        let write = shown
            .as_ref()
            .map(|shown| move |path: &Path| save(shown, path, how, drawing));
        let write = write.as_ref().map(|write| write as _);
        panel.save(write);
        self.export = panel;
    }

    /// The nearest thing that can be closed or forgotten.
    fn dismiss(&mut self) {
        if self.view.dialog.take().is_none() && !self.run.dismiss() {
            match self.view.middle {
                Middle::Timeline => {
                    self.pane.dismiss();
                }
                Middle::Builder if self.builder.dismiss() => {}
                Middle::Sweep | Middle::Guide | Middle::Builder | Middle::Split => {
                    self.view.middle = Middle::Timeline;
                }
            }
            self.end_unseen();
        }
    }

    /// What nobody looks at any more ends.
    fn end_unseen(&mut self) {
        if self.view.middle != Middle::Sweep {
            self.sweep.end(&self.run);
        }
        if self.view.middle != Middle::Guide {
            self.guide.end(&self.run);
        }
    }

    /// What the keys wish for: the board's come first while there is one.
    fn pressed(&self, ctx: &Context) -> Vec<Wish> {
        if self.view.middle != Middle::Builder {
            return keys::pressed(ctx, of_run);
        }
        let mut wishes = Vec::new();
        if self.view.dialog.is_none() {
            wishes = keys::pressed_in(ctx, BUILDING, of_building);
        }
        wishes.extend(keys::pressed(ctx, of_building));
        wishes
    }

    fn look(&mut self, look: Look) {
        let at = self.run.playback().at().time;
        if let Some(step) = self.run.timeline() {
            self.pane.look(look, &step.trace, Some(at));
        }
    }

    /// Everything but what lies over the window.
    fn lay_out(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let palette = self.view.palette();
        let em = self.view.sizes().body;
        let bar = Frame::new()
            .fill(theme::color(palette.panel))
            .inner_margin(Margin::symmetric((em * 0.7) as i8, (em * 0.3) as i8));
        egui::Panel::top("bar")
            .exact_size(em * 2.9)
            .resizable(false)
            .frame(bar)
            .show(ui, |ui| transport::show(ui, &self.run, &self.view, wishes));
        let building = matches!(self.view.middle, Middle::Builder | Middle::Split);
        if !self.view.controls_folded && !building {
            let side = bar.inner_margin(Margin::symmetric((em * 0.8) as i8, (em * 0.3) as i8));
            egui::Panel::left("controls")
                .exact_size(em * controls::WIDTH)
                .resizable(false)
                .frame(side)
                .show(ui, |ui| controls::show(ui, &self.run, &self.view, wishes));
        }
        self.lay_out_lesson(ui, wishes);
        if !building {
            self.lay_out_dock(ui, wishes);
        }
        let ground = Frame::new()
            .fill(theme::color(palette.background))
            .inner_margin(Margin::symmetric((em * 0.9) as i8, (em * 0.4) as i8));
        CentralPanel::default()
            .frame(ground)
            .show(ui, |ui| self.lay_out_timeline(ui, wishes));
    }

    fn lay_out_dock(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let em = self.view.sizes().body;
        self.view
            .make_room(dock::room(&self.view, ui.available_width() - em * 1.8));
        let ground = Frame::new()
            .fill(theme::color(self.view.palette().background))
            .inner_margin(Margin::symmetric((em * 0.9) as i8, (em * 0.5) as i8));
        let window = ui.ctx().content_rect().height();
        // A table of layouts takes the panels' room, and so do timelines one above the other.
        let crowded = self.compared_rows() as f32 * em * 1.6 > window * 0.45;
        let covered = self.classroom.covers();
        let open = !self.view.panels().is_empty()
            && self.view.middle == Middle::Timeline
            && !crowded
            && !covered;
        let panels = if open {
            dock::height(&self.view, window)
        } else {
            0.0
        };
        let stage = Stage {
            run: &self.run,
            view: &self.view,
            attention: &self.pane.attention,
            kept: self.kept.steps(),
        };
        egui::Panel::bottom("dock")
            .exact_size(panels + cards::height(&self.view) + em * 1.4)
            .resizable(false)
            .show_separator_line(false)
            .frame(ground)
            .show(ui, |ui| {
                if let Some(step) = self.run.timeline().filter(|_| !covered) {
                    cards::show(ui, &figures::figures(step, self.view.language), &self.view);
                }
                if open {
                    ui.add_space(self.view.sizes().gap() * 0.5);
                    let mut panels = Panels {
                        bubbles: &self.bubbles,
                        traffic: &mut self.traffic,
                        selection: &mut self.selection,
                        now: &mut self.now,
                        timeline: &self.pane.timeline,
                    };
                    dock::show(ui, stage, &mut panels, wishes);
                }
            });
    }

    /// Rows of all timelines, where there are several.
    fn compared_rows(&self) -> usize {
        let kept = self.kept.steps().iter();
        let rows: usize = kept.map(|step| step.trace.ranks.len()).sum();
        let own = self.run.timeline().filter(|_| rows > 0);
        rows + own.map_or(0, |step| step.trace.ranks.len())
    }

    fn lay_out_timeline(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        match self.view.middle {
            Middle::Timeline => {}
            Middle::Sweep => return self.sweep.show(ui, &self.run, &self.view, wishes),
            Middle::Guide => return self.guide.show(ui, &self.run, &self.view, wishes),
            Middle::Builder => return self.builder.show(ui, &self.view, wishes),
            Middle::Split => return self.split.show(ui, &self.view, wishes),
        }
        if self.classroom.covers() {
            school::cover(ui, &self.view);
            return;
        }
        ui.horizontal(|ui| {
            transport::status(ui, &self.run, &self.view);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                transport::compare(ui, !self.kept.steps().is_empty(), wishes);
                self.pane.search.show(ui, &self.view, wishes);
                if let Some(step) = self.run.timeline() {
                    arranged(ui, (&self.pane, &step.trace), wishes);
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    let selected = self.pane.attention.selected.as_ref();
                    if let Some((hit, step)) = selected.zip(self.run.timeline())
                        && hit.rank_index < step.trace.ranks.len()
                    {
                        let text = RichText::new(describe(&step.trace, hit).line());
                        ui.add(Label::new(text).truncate());
                    }
                });
            });
        });
        let stage = Stage {
            run: &self.run,
            view: &self.view,
            attention: &self.pane.attention,
            kept: self.kept.steps(),
        };
        let shown = (&mut self.pane.timeline, self.pane.search.found());
        self.pane.attention.hovered = timeline::show(ui, stage, shown, wishes);
    }
}

/// Keys that are known while a schedule is built.
fn of_building(binding: &Binding) -> bool {
    let of_run = matches!(
        binding.wish,
        Wish::Show(Show::Panel(_) | Show::Controls | Show::Middle(Middle::Builder))
    );
    match binding.group {
        Group::Building => true,
        Group::Window => !of_run,
        Group::Run | Group::Timeline | Group::Layout => false,
    }
}

/// Keys that are known otherwise.
fn of_run(binding: &Binding) -> bool {
    binding.group != Group::Building
}

/// All of the screen, or a window again.
fn full_screen(ctx: &Context) {
    let full = ctx.input(|input| input.viewport().fullscreen.unwrap_or(false));
    ctx.send_viewport_cmd(ViewportCommand::Fullscreen(!full));
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &Context, _frame: &mut eframe::Frame) {
        self.view.dress(ctx);
        for wish in self.pressed(ctx) {
            self.grant(wish, ctx);
            // What it changes may be seen only in the next frame, and nothing else need ask for one.
            ctx.request_repaint();
        }
        if self.run.poll() {
            self.pane.reset();
        }
        if let Some(step) = self.run.timeline() {
            self.pane.turn_to(&step.trace);
        }
        self.view.teaching = self.classroom.is_open();
        self.view.selecting = self.pane.attention.selects();
        if let Some(first) = self.run.record_of(0) {
            self.bubbles.remember(&first.timeline);
        }
        if self.view.panels().contains(&Panel::Bubble) && !self.run.is_behind() {
            let question = self.bubbles.question(&self.run.snapshot().config);
            if let Some(config) = question {
                self.run.ask(Command::Curve(config));
            }
        }
        self.with_classroom(|classroom, desk| classroom.follow(desk, ctx));
        self.classroom.remember_built(self.builder.progress());
        let passed = ctx.input(|input| input.stable_dt.max(0.0));
        if self.view.middle == Middle::Split {
            if let Some(seconds) = self.split.advance(passed) {
                ctx.request_repaint_after(Duration::from_secs_f32(seconds.max(0.0)));
            }
        } else if self.run.advance(Duration::from_secs_f32(passed)) {
            ctx.request_repaint();
        }
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        let mut wishes = Vec::new();
        self.lay_out(ui, &mut wishes);
        match self.view.dialog {
            Some(Dialog::Help) => {
                let listed = if self.view.middle == Middle::Builder {
                    of_building
                } else {
                    of_run
                };
                help::show(ui, &self.view, listed, &mut wishes);
            }
            Some(Dialog::Export) => self.export.show(ui, &self.view, &mut wishes),
            None => {}
        }
        let pointed = wishes.iter().rev().find_map(Wish::pointed_at);
        let repaint = pointed != self.pane.attention.pointed
            || wishes.iter().any(|wish| !matches!(wish, Wish::Point(_)));
        self.pane.attention.pointed = pointed;
        for wish in wishes {
            if !matches!(wish, Wish::Point(_)) {
                self.grant(wish, ui.ctx());
            }
        }
        if repaint {
            ui.ctx().request_repaint();
        }
    }
}

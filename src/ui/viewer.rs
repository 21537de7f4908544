//! The window on traces in files: the timeline, what is selected in it, the figures of its ranks, its traffic.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eframe::CreationContext;
use eframe::egui::{
    self, Align, CentralPanel, Context, Frame, Grid, Label, Layout, Margin, ProgressBar, RichText,
    ScrollArea, Sense, Ui, UiBuilder, ViewportCommand, vec2,
};

use crate::export::{self, ExportError, Format, Others, Viewed, others_table, write};
use crate::mesh::Mesh;
use crate::scene::fonts::Weight;
use crate::scene::{Arrows, Hit, Legend, Picture, kernel_name};
use crate::session::{Job, Report};
use crate::trace::Memory;
use crate::units::{Bytes, Nanos, percent};

use super::describe::describe;
use super::dock::{self, framed};
use super::export_panel::ExportPanel;
use super::help;
use super::keys::{self, Binding, Group};
use super::options::Options;
use super::pane::{LookedAt, Pane, arranged};
use super::selection::SelectionPanel;
use super::theme::{self, color, font};
use super::timeline::{self, Sight};
use super::traffic::{Traffic, TrafficPanel};
use super::transport;
use super::view::{Dialog, View};
use super::wish::{Show, Wish};

/// What came of opening the files.
enum State {
    /// They are being read.
    Opening(Job<Result<Viewed, ExportError>>),
    /// They are shown.
    Shown(Box<Viewed>),
    /// They could not be opened.
    Failed(String),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Opening(_) => "Opening",
            Self::Shown(_) => "Shown",
            Self::Failed(_) => "Failed",
        })
    }
}

/// The window on files. Dropping it ends its thread.
#[derive(Debug)]
pub struct Viewer {
    files: Vec<PathBuf>,
    state: State,
    view: View,
    pane: Pane,
    traffic: TrafficPanel,
    selection: SelectionPanel,
    export: ExportPanel,
    /// The figures of the ranks, found once.
    table: Vec<Vec<String>>,
}

/// The keys of a run's window that mean something here.
fn listed(binding: &Binding) -> bool {
    match (&binding.wish, binding.group) {
        (Wish::Keep | Wish::ForgetAll, _) => false,
        (_, Group::Timeline) | (Wish::Close | Wish::Dismiss, _) => true,
        (Wish::Show(show), Group::Window) => matches!(
            show,
            Show::Theme | Show::Presenter | Show::Help | Show::Export
        ),
        (_, Group::Run | Group::Layout | Group::Window | Group::Building) => false,
    }
}

impl Viewer {
    /// On files, which are read on a thread of their own.
    pub fn open(
        cc: &CreationContext<'_>,
        options: &Options,
        files: Vec<PathBuf>,
    ) -> std::io::Result<Self> {
        let ctx = cc.egui_ctx.clone();
        let paths = files.clone();
        let read = move |progress: &crate::session::Progress| -> Result<Viewed, ExportError> {
            let mut tell = |done, all| -> ControlFlow<()> { progress.tell(done, all) };
            let opened = export::open(&paths, &mut tell)?;
            Viewed::new(&paths, opened)
        };
        let job = Job::start("reader", read, move || ctx.request_repaint())?;
        Ok(Self::new(cc, options, (files, State::Opening(job))))
    }

    /// On a trace that is there already: for tests and pictures.
    pub fn with_viewed(cc: &CreationContext<'_>, options: &Options, viewed: Viewed) -> Self {
        Self::new(cc, options, (Vec::new(), State::Shown(Box::new(viewed))))
    }

    fn new(
        cc: &CreationContext<'_>,
        options: &Options,
        (files, state): (Vec<PathBuf>, State),
    ) -> Self {
        theme::install_fonts(&cc.egui_ctx);
        let table = match &state {
            State::Shown(viewed) => table(viewed),
            State::Opening(_) | State::Failed(_) => Vec::new(),
        };
        Self {
            table,
            files,
            state,
            view: View::new(options.theme, options.text),
            pane: Pane::default(),
            traffic: TrafficPanel::default(),
            selection: SelectionPanel::default(),
            export: ExportPanel::default(),
        }
    }

    /// What is looked at; nothing before there is a trace.
    pub fn looked_at(&self) -> Option<LookedAt> {
        Some(self.pane.looked_at(&self.viewed()?.trace))
    }

    fn viewed(&self) -> Option<&Viewed> {
        match &self.state {
            State::Shown(viewed) => Some(viewed),
            State::Opening(_) | State::Failed(_) => None,
        }
    }

    /// Takes what was read.
    fn poll(&mut self) {
        let State::Opening(job) = &mut self.state else {
            return;
        };
        // Asked first: what it made is there when its thread has ended.
        let ended = job.has_ended();
        match job.take() {
            Some(Ok(viewed)) => {
                self.table = table(&viewed);
                self.state = State::Shown(Box::new(viewed));
            }
            Some(Err(error)) => self.state = State::Failed(error.to_string()),
            None if ended => {
                let why = "reading stopped before its end; try again, or `shardscope view --text`";
                self.state = State::Failed(why.to_owned());
            }
            None => {}
        }
    }

    fn grant(&mut self, wish: Wish, ctx: &Context) {
        match wish {
            Wish::Close => ctx.send_viewport_cmd(ViewportCommand::Close),
            Wish::Dismiss => {
                if self.view.dialog.take().is_none() {
                    self.pane.dismiss();
                }
            }
            Wish::Look(look) => {
                if let Some(trace) = self.viewed().map(|viewed| Arc::clone(&viewed.trace)) {
                    self.pane.look(look, &trace, None);
                }
            }
            Wish::Show(show) => self.view.show(show),
            Wish::Choose(rank) => self.pane.choose(rank),
            Wish::Select(hit) => self.pane.select(hit),
            Wish::Area(area) => self.pane.select_area(area),
            Wish::GoTo(hit) => {
                if let Some(trace) = self.viewed().map(|viewed| Arc::clone(&viewed.trace)) {
                    self.pane.go_to(&trace, hit);
                }
            }
            Wish::Save => self.save(),
            Wish::Copy => {
                let picture = self.picture().zip(self.viewed());
                let scene = picture.map(|(picture, viewed)| picture.scene(&viewed.trace));
                self.export.copy(ctx, scene.as_ref());
            }
            // Nothing is run here.
            Wish::Build(_)
            | Wish::Change(_)
            | Wish::Next(..)
            | Wish::TakeOffer(_)
            | Wish::Undo
            | Wish::Redo
            | Wish::Travel(_)
            | Wish::Point(_)
            | Wish::Sweep(_)
            | Wish::Guide(_)
            | Wish::Load(_)
            | Wish::Keep
            | Wish::Forget(_)
            | Wish::ForgetAll
            | Wish::FullScreen
            | Wish::CopyKit
            | Wish::LoadKit(_)
            | Wish::Turn(_)
            | Wish::Teach(_) => {}
        }
    }

    /// What is seen, as a picture.
    fn picture(&self) -> Option<Picture> {
        let viewed = self.viewed()?;
        Some(Picture {
            theme: self.export.theme(self.view.theme),
            range: Some(self.pane.timeline.seen(&viewed.trace)),
            arrows: self.pane.timeline.arrows() == Arrows::Shown,
            ..viewed.picture.clone()
        })
    }

    fn save(&mut self) {
        let (picture, drawing) = (self.picture(), self.export.drawing());
        let (State::Shown(viewed), Some(picture)) = (&self.state, picture) else {
            self.export.save(None);
            return;
        };
        let save = |path: &Path| {
            // A trace is written as it is, and not as what is seen of it.
            let drawn = Format::from_path(path)?.is_drawn();
            let export = export::Export {
                picture: if drawn { &picture } else { &viewed.picture },
                drawing,
                ..viewed.export()
            };
            write(path, &export)
        };
        self.export.save(Some(&save));
    }

    fn bar(&self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let sizes = self.view.sizes();
        ui.horizontal_centered(|ui| {
            let (title, stamp) = match self.viewed() {
                Some(viewed) => (viewed.picture.title.clone(), viewed.picture.stamp.line()),
                None => (names(&self.files), String::new()),
            };
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                transport::window_switches(ui, &self.view, wishes);
                transport::export_switch(ui, &self.view, wishes);
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    let title = RichText::new(title).font(font(sizes.body * 1.2, Weight::SemiBold));
                    ui.label(title);
                    let weak = color(self.view.palette().text_weak);
                    ui.add(Label::new(RichText::new(stamp).color(weak)).truncate());
                });
            });
        });
    }

    fn lay_out(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let palette = self.view.palette();
        let em = self.view.sizes().body;
        let bar = Frame::new()
            .fill(color(palette.panel))
            .inner_margin(Margin::symmetric((em * 0.7) as i8, (em * 0.3) as i8));
        egui::Panel::top("bar")
            .exact_size(em * 2.9)
            .resizable(false)
            .frame(bar)
            .show(ui, |ui| self.bar(ui, wishes));
        let ground = Frame::new()
            .fill(color(palette.background))
            .inner_margin(Margin::symmetric((em * 0.9) as i8, (em * 0.4) as i8));
        let State::Shown(viewed) = &self.state else {
            CentralPanel::default()
                .frame(ground)
                .show(ui, |ui| self.waiting(ui));
            return;
        };
        let window = ui.ctx().content_rect().height();
        let height = dock::height(&self.view, window) * 1.15;
        egui::Panel::bottom("dock")
            .exact_size(height + em * 1.4)
            .resizable(false)
            .show_separator_line(false)
            .frame(ground)
            .show(ui, |ui| {
                let state = (&mut self.traffic, &mut self.selection);
                panels(
                    ui,
                    (viewed, &self.table),
                    (&self.view, &self.pane),
                    state,
                    wishes,
                );
            });
        let (pane, view) = (&mut self.pane, &self.view);
        let hovered = CentralPanel::default()
            .frame(ground)
            .show(ui, |ui| shown(ui, viewed, (pane, view), wishes));
        self.pane.attention.hovered = hovered.inner;
    }

    /// Before there is anything to see: how far reading is, or why there is nothing.
    fn waiting(&self, ui: &mut Ui) {
        let em = self.view.sizes().body;
        ui.vertical_centered(|ui| {
            ui.add_space(ui.available_height() * 0.4);
            match &self.state {
                State::Failed(why) => {
                    let title = font(em * 1.3, Weight::SemiBold);
                    ui.label(RichText::new("This cannot be shown").font(title));
                    let text = RichText::new(why).color(color(self.view.palette().error));
                    ui.add(Label::new(text).wrap());
                }
                State::Opening(job) => {
                    let (done, all) = job.progress();
                    let share = done as f32 / all.max(1) as f32;
                    ui.label(format!("Reading {}", names(&self.files)));
                    let bar = ProgressBar::new(share).desired_width(em * 24.0);
                    ui.add(if all > 0 {
                        bar.text(format!("{} of {}", Bytes(done as u64), Bytes(all as u64)))
                    } else {
                        bar.animate(true)
                    });
                    ui.ctx()
                        .request_repaint_after(std::time::Duration::from_millis(50));
                }
                State::Shown(_) => {}
            }
        });
    }
}

/// The files' names, in a line.
fn names(files: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    match files {
        [] => String::new(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}

/// The timeline under a line with what is selected.
fn shown(
    ui: &mut Ui,
    viewed: &Viewed,
    (pane, view): (&mut Pane, &View),
    wishes: &mut Vec<Wish>,
) -> Option<Hit> {
    let trace = &viewed.trace;
    ui.horizontal(|ui| {
        let spans = format!("{} spans, {} long", trace.span_count(), trace.makespan);
        ui.label(RichText::new(spans).color(color(view.palette().text_weak)));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let search = ui.button("Search…");
            if search
                .on_hover_text("Find spans by their names (/)")
                .clicked()
            {
                pane.search.open();
            }
            pane.search.show(ui, view, wishes);
            arranged(ui, (pane, trace), wishes);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                if let Some(hit) = &pane.attention.selected {
                    let text = RichText::new(describe(trace, hit).line());
                    ui.add(Label::new(text).truncate());
                }
            });
        });
    });
    let run = viewed.run.as_deref();
    let mesh: Option<Mesh> = run.and_then(|run| run.config.layout.mesh().ok());
    let overview = pane.timeline.overview(trace);
    let legend = Legend::said(
        view.language,
        overview.holds,
        (view.theme, view.sizes()),
        ui.available_width(),
    );
    let capacity = run.map(|run| run.config.hardware.memory());
    let sight = Sight {
        trace,
        view,
        attention: &pane.attention,
        run: None,
        mesh: mesh
            .as_ref()
            .filter(|mesh| mesh.ranks() as u64 == trace.gpus()),
        capacity: capacity.filter(|capacity| *capacity > Bytes::ZERO),
        found: pane.search.found(),
    };
    timeline::shown(ui, sight, &mut pane.timeline, (legend, None), wishes)
}

/// What lies under the timeline: the ranks' figures, what is selected, the traffic.
fn panels(
    ui: &mut Ui,
    (viewed, table): (&Viewed, &[Vec<String>]),
    (view, pane): (&View, &Pane),
    (traffic_panel, selection): (&mut TrafficPanel, &mut SelectionPanel),
    wishes: &mut Vec<Wish>,
) {
    let gap = view.sizes().gap();
    let (width, height) = (ui.available_width(), ui.available_height());
    // Traces of other programs do not say who sends to whom.
    let known = viewed.others.is_none();
    let parts: &[(Part, f32)] = if known {
        &[
            (Part::Ranks, 0.34),
            (Part::Selection, 0.36),
            (Part::Traffic, 0.3),
        ]
    } else {
        &[(Part::Ranks, 0.52), (Part::Selection, 0.48)]
    };
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = gap;
        for &(panel, share) in parts {
            let size = vec2((width - gap * 2.0) * share, height);
            let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
            let builder = UiBuilder::new()
                .max_rect(rect)
                .layout(Layout::top_down(Align::Min))
                .id_salt(panel.name());
            let mut inner = ui.new_child(builder);
            inner.shrink_clip_rect(rect);
            framed(
                &mut inner,
                rect,
                (view.language.say(panel.name()), view),
                &mut |ui| match panel {
                    Part::Selection => {
                        let of = (&viewed.trace, &pane.attention);
                        selection.show(ui, of, (view, None), wishes);
                    }
                    Part::Traffic => traffic_panel.show(ui, traffic(viewed, pane), view),
                    Part::Ranks => ranks(ui, viewed, table),
                },
            );
        }
    });
}

/// A panel under a file's timeline.
#[derive(Clone, Copy, Debug)]
enum Part {
    Ranks,
    Selection,
    Traffic,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Ranks => "Ranks",
            Self::Selection => "Selection",
            Self::Traffic => "Traffic",
        }
    }
}

fn traffic<'a>(viewed: &'a Viewed, pane: &'a Pane) -> Traffic<'a> {
    let run = viewed.run.as_deref();
    Traffic {
        trace: &viewed.trace,
        seen: pane.timeline.seen(&viewed.trace),
        groups: run.map(|run| run.traffic.as_slice()),
        hardware: run.map(|run| &run.config.hardware),
        gpu: pane.attention.gpu(),
    }
}

/// Of more ranks, the first so many are listed.
const MOST_LISTED: usize = 500;

/// The figures of the ranks, heads first.
fn table(viewed: &Viewed) -> Vec<Vec<String>> {
    let mut table: Vec<Vec<String>> = match (&viewed.others, viewed.run.as_deref()) {
        (Some(others), _) => {
            // The file's name is the longest, and least looked at.
            let rows = others_table(&others.ranks).into_iter().map(|mut row| {
                row[1..].rotate_left(1);
                row.to_vec()
            });
            rows.collect()
        }
        (None, run) => own_table(viewed, run),
    };
    if let Some(more) = table
        .len()
        .checked_sub(MOST_LISTED + 1)
        .filter(|&more| more > 0)
    {
        table.truncate(MOST_LISTED + 1);
        table.push(vec![format!("and {more} more")]);
    }
    table
}

/// The ranks' figures, and what there is to say about the files.
fn ranks(ui: &mut Ui, viewed: &Viewed, table: &[Vec<String>]) {
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        Grid::new("ranks")
            .min_row_height(0.0)
            .striped(true)
            .show(ui, |ui| {
                for (index, row) in table.iter().enumerate() {
                    for cell in row {
                        let text = RichText::new(cell).small();
                        ui.label(if index == 0 { text.weak() } else { text });
                    }
                    ui.end_row();
                }
            });
        if let Some(others) = &viewed.others {
            stragglers(ui, others);
        }
        for note in viewed.others.iter().flat_map(|others| &others.notes) {
            ui.label(RichText::new(format!("Note: {note}")).small());
        }
    });
}

/// Of more collectives, those with the longest waits are listed.
const MOST_WAITS: usize = 40;

/// For whom others waited, and each collective with the wait of each rank.
fn stragglers(ui: &mut Ui, others: &Others) {
    let Some(line) = others.straggler_line() else {
        return;
    };
    ui.label(RichText::new(line).small().strong());
    Grid::new("waits")
        .min_row_height(0.0)
        .striped(true)
        .show(ui, |ui| {
            for name in ["collective", "last", "the others waited, by rank"] {
                ui.label(RichText::new(name).small().weak());
            }
            ui.end_row();
            for one in others.collectives.iter().take(MOST_WAITS) {
                let waits: Vec<String> = one
                    .waits
                    .iter()
                    .filter(|(rank, _)| *rank != one.last)
                    .take(16)
                    .map(|(rank, wait)| format!("{rank}: {wait:.0} µs"))
                    .collect();
                let cells = [
                    kernel_name(&one.name),
                    one.last.to_string(),
                    waits.join("  "),
                ];
                for cell in cells {
                    ui.label(RichText::new(cell).small());
                }
                ui.end_row();
            }
        });
}

/// Where the time of each rank of ours goes.
fn own_table(viewed: &Viewed, run: Option<&Report>) -> Vec<Vec<String>> {
    let trace = &viewed.trace;
    let heads = ["GPU", "compute", "transfer", "waiting", "idle", "peak"];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for (index, info) in trace.ranks.iter().enumerate() {
        let split = trace.split(index);
        let all = split.total().max(Nanos(1)).0 as f64;
        let share = |time: Nanos| percent(time.0 as f64 / all);
        let peak = trace.memory.get(index).map(Memory::peak);
        table.push(vec![
            info.rank.to_string(),
            share(split.compute),
            share(split.transfer),
            share(split.waiting),
            share(split.idle),
            peak.map_or_else(String::new, |peak| peak.to_string()),
        ]);
    }
    if let Some(run) = run {
        let bubble = format!("bubble of total {}", percent(run.bubble_of_total));
        table.push(vec![bubble]);
    }
    table
}

impl eframe::App for Viewer {
    fn logic(&mut self, ctx: &Context, _frame: &mut eframe::Frame) {
        self.view.dress(ctx);
        self.poll();
        for wish in keys::pressed(ctx, listed) {
            self.grant(wish, ctx);
            ctx.request_repaint();
        }
        if let Some(trace) = self.viewed().map(|viewed| Arc::clone(&viewed.trace)) {
            self.pane.turn_to(&trace);
        }
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        let mut wishes = Vec::new();
        self.lay_out(ui, &mut wishes);
        match self.view.dialog {
            Some(Dialog::Help) => help::show(ui, &self.view, listed, &mut wishes),
            Some(Dialog::Export) => self.export.show(ui, &self.view, &mut wishes),
            None => {}
        }
        let repaint = !wishes.is_empty();
        for wish in wishes {
            self.grant(wish, ui.ctx());
        }
        if repaint {
            ui.ctx().request_repaint();
        }
    }
}

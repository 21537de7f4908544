//! Every legal layout in place of the timeline: a table and a plot of time against memory. A click loads one.

use eframe::egui::{
    Align, Align2, Color32, DragValue, FontId, Layout, ProgressBar, Rect, Response, RichText, Role,
    ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2,
};

use crate::scene::fonts::Weight as FontWeight;
use crate::session::{
    Command, Config, Framework, Sweep, SweepRow, SweepSpec, SweepState, settings_of, unsaid,
};
use crate::shape::Recompute;
use crate::units::{Bytes, Nanos, large, percent};

use super::guide::tabs;
use super::icon::{Icon, Weight, icon_button};
use super::plot::{Plot, Ranges, around};
use super::run::Run;
use super::theme::{color, font};
use super::view::View;
use super::wish::Wish;

/// How many of the best are listed.
const TOP: usize = 24;
/// The share of the room that the plot takes, and its least width in body-text sizes.
const PLOT: f32 = 0.36;
const LEAST_PLOT: f32 = 22.0;
/// How near the pointer must come to a dot, in body-text sizes.
const REACH: f32 = 1.2;

/// The panel: which layouts are asked for, and which one is pointed at.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepPanel {
    /// GPUs; as many as the run has, if nobody has said.
    gpus: Option<usize>,
    asked: Option<SweepSpec>,
    /// A layout under the pointer.
    pointed: Option<SweepRow>,
}

impl SweepPanel {
    fn wanted(&self, config: &Config) -> SweepSpec {
        SweepSpec {
            top: TOP,
            ..SweepSpec::around(config, self.gpus(config))
        }
    }

    fn gpus(&self, config: &Config) -> usize {
        let own = || config.layout.mesh().map_or(1, |mesh| mesh.ranks());
        self.gpus.unwrap_or_else(own)
    }

    /// Nobody looks any more: what is under way ends, and what was found stays.
    pub(super) fn end(&mut self, run: &Run) {
        if let Some(SweepState::Running { .. }) = run.snapshot().sweep {
            run.ask(Command::Sweep(None));
        }
        // What another question ended is asked anew.
        let found = match &run.snapshot().sweep {
            Some(SweepState::Found { spec, .. }) => Some(&**spec),
            None | Some(SweepState::Running { .. } | SweepState::Refused(_)) => None,
        };
        if self.asked.as_ref() != found {
            self.asked = None;
        }
    }

    /// Shows the panel, and asks for what it shows.
    pub(super) fn show(&mut self, ui: &mut Ui, run: &Run, view: &View, wishes: &mut Vec<Wish>) {
        tabs(ui, view, wishes);
        self.head(ui, run, view);
        let wanted = self.wanted(run.config());
        if self.asked.as_ref() != Some(&wanted) {
            wishes.push(Wish::Sweep(Box::new(wanted.clone())));
            self.asked = Some(wanted);
        }
        match &run.snapshot().sweep {
            // Not yet, or still of what was asked for before.
            None => asking(ui),
            Some(SweepState::Found { spec, .. }) if self.asked.as_ref() != Some(spec) => asking(ui),
            Some(SweepState::Running { done, all }) => {
                let share = *done as f32 / (*all).max(1) as f32;
                ui.add(ProgressBar::new(share).text(format!("{done} of {all} layouts")));
            }
            Some(SweepState::Refused(why)) => {
                ui.label(RichText::new(why).color(color(view.palette().error)));
            }
            Some(SweepState::Found { spec, found }) => {
                self.found(ui, (spec, found), (run, view), wishes);
            }
        }
    }

    /// How many GPUs, and what for.
    fn head(&mut self, ui: &mut Ui, run: &Run, view: &View) {
        let config = run.config();
        let mut gpus = self.gpus(config);
        ui.horizontal(|ui| {
            let title = font(view.sizes().body * 1.2, FontWeight::SemiBold);
            ui.label(RichText::new("Every layout of").font(title));
            if icon_button(ui, Icon::Minus, Weight::Plain, "Half the GPUs").clicked() {
                gpus = (gpus / 2).max(1);
            }
            let most = crate::mesh::MAX_RANKS;
            let drag = DragValue::new(&mut gpus)
                .range(1..=most)
                .update_while_editing(false);
            ui.add(drag).accessible_name("GPUs to lay out");
            if icon_button(ui, Icon::Plus, Weight::Plain, "Twice the GPUs").clicked() {
                gpus = gpus.saturating_mul(2).min(most);
            }
            let about = format!(
                "GPUs · {} on {} · global batch {}",
                config.model.name,
                config.hardware.title,
                config.layout.global_batch()
            );
            ui.label(RichText::new(about).weak());
        });
        if gpus != self.gpus(config) {
            self.gpus = Some(gpus);
        }
    }

    fn found(
        &mut self,
        ui: &mut Ui,
        (spec, found): (&SweepSpec, &Sweep),
        (run, view): (&Run, &View),
        wishes: &mut Vec<Wish>,
    ) {
        ui.label(RichText::new(summary(spec, found)).weak());
        if found.rows.is_empty() {
            return;
        }
        ui.horizontal(|ui| copy_as(ui, run.config()));
        let em = view.sizes().body;
        let room = ui.available_size() - vec2(0.0, em * 0.5);
        let plot = (room.x * PLOT).max(em * LEAST_PLOT).min(room.x);
        let table = room.x - plot - em;
        let down = Layout::top_down(Align::Min);
        let mut pointed = None;
        ui.horizontal_top(|ui| {
            if table > em * 20.0 {
                ui.allocate_ui_with_layout(vec2(table, room.y), down, |ui| {
                    pointed = self.table(ui, found, (run, view));
                });
                ui.add_space(em * 0.5);
            }
            ui.allocate_ui_with_layout(vec2(plot, room.y), down, |ui| {
                let at = self.plot(ui, found, (run, view));
                pointed = pointed.or(at);
            });
        });
        if let Some((row, true)) = pointed {
            wishes.push(Wish::Load(Box::new(loaded(run.config(), spec, &row))));
        }
        self.pointed = pointed.map(|(row, _)| row);
    }

    /// The layouts, fastest first: the one under the pointer, and whether it was clicked.
    fn table(
        &self,
        ui: &mut Ui,
        found: &Sweep,
        (run, view): (&Run, &View),
    ) -> Option<(SweepRow, bool)> {
        let em = view.sizes().body;
        let columns = columns(found, ui.available_width() - em, em);
        heading(ui, &columns, view);
        let mut pointed = None;
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            for (index, row) in found.rows.iter().enumerate() {
                let response = self.row(ui, (index, row), &columns, (run, view));
                if response.hovered() || response.clicked() {
                    pointed = Some((*row, response.clicked()));
                }
            }
        });
        pointed
    }

    fn row(
        &self,
        ui: &mut Ui,
        (index, row): (usize, &SweepRow),
        columns: &[Column],
        (run, view): (&Run, &View),
    ) -> Response {
        let (palette, sizes) = (view.palette(), view.sizes());
        let size = vec2(ui.available_width(), sizes.body * 1.75);
        let (rect, response) = ui.allocate_exact_size(size, Sense::click());
        let name = format!("Load {}", named(row));
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name.as_str()));
        let now = is_now(run.config(), row);
        let lit = self.pointed == Some(*row);
        if lit || now {
            let fill = if lit { palette.raised } else { palette.panel };
            ui.painter().rect_filled(rect, sizes.radius(), color(fill));
        }
        let weight = if now {
            FontWeight::SemiBold
        } else {
            FontWeight::Regular
        };
        let ink = if now { palette.accent } else { palette.text };
        let style = (font(sizes.body, weight), color(ink));
        write(ui, rect, (columns, sizes.body), style, |column| {
            (column.text)(index, row)
        });
        response.on_hover_text("A click loads the layout; Ctrl Z brings the one before back")
    }

    /// Time against memory.
    fn plot(
        &self,
        ui: &mut Ui,
        found: &Sweep,
        (run, view): (&Run, &View),
    ) -> Option<(SweepRow, bool)> {
        let (palette, em) = (view.palette(), view.sizes().body);
        ui.label(
            RichText::new("Memory of the fullest GPU against time of a step · a click loads")
                .small()
                .weak(),
        );
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::click());
        let name = "Time of a step against memory, a dot for each layout";
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name));
        if rect.height() < em * 4.0 {
            return None;
        }
        let (front, all) = points(found);
        // Times lie far apart; each doubling takes as much room.
        let point = |row: &SweepRow| (row.step_s.ln(), row.peak_memory_bytes.0 as f64);
        let shown = run.timeline().map(|step| &step.report);
        let now = shown.map(|report| (report.makespan_s.ln(), report.peak_memory().0 as f64));
        let known: Vec<(f64, f64)> = all.iter().map(point).chain(now).collect();
        let capacity = run.config().hardware.memory().0 as f64;
        let ranges = ranges(&known, capacity);
        let seconds = |ln: f64| Nanos::from_secs(ln.exp()).to_string();
        let marks = [
            seconds(ranges.x.0),
            seconds(ranges.x.1),
            "0".to_owned(),
            Bytes(ranges.y.1 as u64).to_string(),
        ];
        let plot = Plot::new(ui.painter(), view, rect, ranges, marks);
        if capacity <= ranges.y.1 {
            let ends = [ranges.x.0, ranges.x.1].map(|x| (x, capacity));
            plot.dashes(&ends, palette.error, 1.2);
            plot.word(
                ends[0],
                "a GPU's memory",
                palette.error,
                vec2(em * 0.3, -em * 0.6),
            );
        }
        let line: Vec<(f64, f64)> = front.iter().map(point).collect();
        plot.line(&line, palette.text_weak, 1.2);
        let near = response.hover_pos().and_then(|at| {
            let distance = |row: &SweepRow| plot.place(point(row)).distance(at);
            let nearest = all
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)));
            nearest.copied().filter(|row| distance(row) < em * REACH)
        });
        for row in &all {
            let tint = if row.simulated {
                palette.accent
            } else {
                palette.text_weak
            };
            plot.dot(point(row), tint, em * 0.3);
        }
        if let Some(now) = now {
            plot.dot(now, palette.playhead, em * 0.45);
            plot.word(now, "now", palette.text, vec2(em * 0.8, em * 0.9));
        }
        if let Some(row) = near.or(self.pointed) {
            plot.dot(point(&row), palette.selected, em * 0.45);
            let text = format!("{} · {}", named(&row), Nanos::from_secs(row.step_s));
            plot.word(point(&row), &text, palette.text, vec2(em * 0.8, -em * 0.9));
        }
        near.map(|row| (row, response.clicked()))
    }
}

/// The layouts that none beats in both time and memory, and all that are known; simulated where they are.
fn points(found: &Sweep) -> (Vec<SweepRow>, Vec<SweepRow>) {
    let same = |a: &SweepRow, b: &SweepRow| a.layout == b.layout && a.recompute == b.recompute;
    let simulated = |row: &SweepRow| found.rows.iter().find(|known| same(known, row)).copied();
    let front: Vec<SweepRow> = found
        .pareto
        .iter()
        .map(|row| simulated(row).unwrap_or(*row))
        .collect();
    let others = front.iter().filter(|row| !row.simulated);
    let all = found.rows.iter().chain(others).copied().collect();
    (front, all)
}

/// Around all points, from no memory up to what a GPU has if that is near.
fn ranges(points: &[(f64, f64)], capacity: f64) -> Ranges {
    let (_, most) = around(points.iter().map(|&(_, y)| y));
    let most = if capacity <= most * 1.6 {
        most.max(capacity * 1.04)
    } else {
        most
    };
    let (from, to) = around(points.iter().map(|&(x, _)| x));
    let air = (to - from) * 0.04;
    Ranges {
        x: (from - air, to + air),
        y: (0.0, most),
    }
}

fn asking(ui: &mut Ui) {
    ui.label(RichText::new("Asking for every legal layout …").weak());
}

/// What was looked at, and what the plot's line is.
fn summary(spec: &SweepSpec, found: &Sweep) -> String {
    let memory = spec.base.hardware.memory();
    let fit = match found.fitting {
        0 => format!("none fits into {memory}; the smallest are listed"),
        fitting => format!("{fitting} fit into {memory}; the fastest are listed, simulated"),
    };
    match found.layouts {
        0 => format!(
            "No layout of {} GPUs goes with this model and a global batch of {}: it must be a multiple of the replicas",
            spec.gpus, spec.global_batch
        ),
        layouts => {
            format!("{layouts} layouts, {fit} · line: none that fits is both faster and smaller")
        }
    }
}

/// The run's configuration laid out as a row says.
fn loaded(now: &Config, spec: &SweepSpec, row: &SweepRow) -> Config {
    let config = spec.config_of(row);
    Config {
        clock: now.clock,
        ..config
    }
}

fn is_now(config: &Config, row: &SweepRow) -> bool {
    config.layout == row.layout && config.methods.recompute == row.recompute
}

/// A layout in few words: `DP 2 × TP 4 × PP 8, 16 × 1, 3 chunks`.
fn named(row: &SweepRow) -> String {
    let layout = &row.layout;
    let chunks = match layout.chunks {
        1 => String::new(),
        chunks => format!(", {chunks} chunks"),
    };
    format!(
        "DP {} × TP {} × PP {}, {} × {}{chunks}{}",
        layout.dp,
        layout.tp,
        layout.pp,
        layout.micro_batches,
        layout.micro_batch_size,
        match row.recompute {
            Recompute::None => "",
            Recompute::Selective => ", selective recomputation",
            Recompute::Full => ", full recomputation",
        }
    )
}

/// A column of the table.
struct Column {
    name: &'static str,
    /// In body-text sizes.
    width: f32,
    text: fn(usize, &SweepRow) -> String,
}

const COLUMNS: [Column; 11] = [
    Column {
        name: "",
        width: 2.0,
        text: |index, _| (index + 1).to_string(),
    },
    Column {
        name: "DP × TP × PP",
        width: 7.6,
        text: |_, row| {
            let layout = &row.layout;
            format!("{} × {} × {}", layout.dp, layout.tp, layout.pp)
        },
    },
    Column {
        name: "micro-batches",
        width: 7.2,
        text: |_, row| {
            format!(
                "{} × {}",
                row.layout.micro_batches, row.layout.micro_batch_size
            )
        },
    },
    Column {
        name: "step",
        width: 5.0,
        text: |_, row| Nanos::from_secs(row.step_s).to_string(),
    },
    Column {
        name: "memory",
        width: 5.6,
        text: |_, row| row.peak_memory_bytes.to_string(),
    },
    Column {
        name: "bubble",
        width: 4.6,
        text: |_, row| percent(row.bubble_of_total),
    },
    Column {
        name: "recompute",
        width: 5.8,
        text: |_, row| match row.recompute {
            Recompute::None => "no".to_owned(),
            Recompute::Selective => "selective".to_owned(),
            Recompute::Full => "full".to_owned(),
        },
    },
    Column {
        name: "chunks",
        width: 4.2,
        text: |_, row| row.layout.chunks.to_string(),
    },
    Column {
        name: "MFU",
        width: 4.6,
        text: |_, row| percent(row.mfu),
    },
    Column {
        name: "GPU-hours",
        width: 6.0,
        text: |_, row| large(row.gpu_hours),
    },
    Column {
        name: "USD",
        width: 5.4,
        text: |_, row| row.usd.map_or_else(String::new, large),
    },
];

/// The columns that have room; without a price there is none of it.
fn columns(found: &Sweep, room: f32, em: f32) -> Vec<Column> {
    let priced = found.rows.iter().any(|row| row.usd.is_some());
    let mut left = room;
    COLUMNS
        .into_iter()
        .filter(|column| priced || column.name != "USD")
        .take_while(|column| {
            left -= column.width * em;
            left >= 0.0
        })
        .collect()
}

fn heading(ui: &mut Ui, columns: &[Column], view: &View) {
    let sizes = view.sizes();
    let size = vec2(ui.available_width(), sizes.body * 1.6);
    let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
    let style = (
        font(sizes.small(), FontWeight::SemiBold),
        color(view.palette().text_weak),
    );
    write(ui, rect, (columns, sizes.body), style, |column| {
        column.name.to_owned()
    });
}

/// Cells, each at the right edge of its column.
fn write(
    ui: &Ui,
    rect: Rect,
    (columns, em): (&[Column], f32),
    (font, ink): (FontId, Color32),
    text: impl Fn(&Column) -> String,
) {
    let mut right = rect.left();
    for column in columns {
        right += column.width * em;
        let at = pos2(right, rect.center().y);
        ui.painter()
            .text(at, Align2::RIGHT_CENTER, text(column), font.clone(), ink);
    }
}

/// Buttons that copy the settings of `config` for other programs.
pub(super) fn copy_as(ui: &mut Ui, config: &Config) {
    ui.label("Copy the shown layout for");
    let programs = [
        ("Megatron-LM", Framework::Megatron),
        ("DeepSpeed", Framework::Deepspeed),
        ("torchtitan", Framework::Torchtitan),
    ];
    for (name, framework) in programs {
        let button = ui.button(name);
        let hint = format!("The settings of {name} for this layout, to the clipboard");
        let button = match unsaid(config, framework) {
            Some(unsaid) => button.on_hover_text(format!("{hint}. It cannot say: {unsaid}")),
            None => button.on_hover_text(hint),
        };
        if button.clicked() {
            ui.ctx().copy_text(settings_of(config, framework));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_way_from_the_right() {
        let found = Sweep {
            layouts: 0,
            fitting: 0,
            rows: Vec::new(),
            pareto: Vec::new(),
        };
        let names = |room| -> Vec<&str> {
            columns(&found, room, 10.0)
                .iter()
                .map(|column| column.name)
                .collect()
        };
        assert_eq!(names(225.0), ["", "DP × TP × PP", "micro-batches", "step"]);
        assert_eq!(names(2000.0).len(), COLUMNS.len() - 1, "no price is known");
    }
}

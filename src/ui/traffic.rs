//! What moves between GPUs: by group, as a matrix of who sends to whom, and as what each link out of a GPU carries over time.

use std::sync::Arc;

use eframe::egui::{
    Align2, Button, Grid, Painter, Pos2, Rect, RichText, Role, ScrollArea, Sense, Shape, Stroke,
    Ui, WidgetInfo, pos2, vec2,
};

use crate::hardware::Hardware;
use crate::scene::Colour;
use crate::scene::fonts::Weight;
use crate::session::TrafficReport;
use crate::trace::{Counter, Sent, Trace, counters, sent};
use crate::units::{Axis, Bytes, Nanos, Rank, percent, three_digits};

use super::mesh_view::axis_colour;
use super::theme::{color, font};
use super::view::View;

/// What the panel shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tab {
    /// Groups, of the whole step.
    #[default]
    Groups,
    /// The matrix of who sends how much to whom.
    Bytes,
    /// The same, of how long.
    Time,
    /// Links out of a GPU.
    Links,
}

impl Tab {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Groups, "Groups", "What each group moves in the step"),
        (
            Self::Bytes,
            "Bytes",
            "Who sends how much to whom, in what is seen of the timeline",
        ),
        (
            Self::Time,
            "Busy",
            "How long links are busy, in what is seen of the timeline",
        ),
        (
            Self::Links,
            "Links",
            "What each link out of a GPU carries, in what is seen of the timeline",
        ),
    ];
}

/// More GPUs than this share rows and columns of the matrix.
const MOST_ROWS: usize = 64;
/// Links are drawn in so many parts of what is seen.
const PARTS: usize = 240;

/// What is asked of a part of a timeline: which, from when to when, and of which GPU.
type Asked = (Arc<Trace>, (Nanos, Nanos));

/// The panel, with what was found last.
#[derive(Debug, Default)]
pub(super) struct TrafficPanel {
    tab: Tab,
    sent: Option<(Asked, Vec<Sent>)>,
    links: Option<(Asked, usize, Vec<Counter>)>,
}

/// What the panel is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic<'a> {
    pub(super) trace: &'a Arc<Trace>,
    /// From when to when the timeline is seen.
    pub(super) seen: (Nanos, Nanos),
    /// The run's own sums, where there is a report.
    pub(super) groups: Option<&'a [TrafficReport]>,
    pub(super) hardware: Option<&'a Hardware>,
    /// The GPU whose links are shown, if one is chosen.
    pub(super) gpu: Option<Rank>,
}

impl Traffic<'_> {
    fn node(&self, index: usize) -> usize {
        let each = self
            .hardware
            .map_or(usize::MAX, |hardware| hardware.gpus_per_node.max(1));
        self.trace
            .ranks
            .get(index)
            .map_or(0, |info| info.rank.index() / each)
    }

    /// Whether a link stays within a node, if that is known: not of a file without its hardware, nor between replicas or stages
    /// that one row stands for.
    fn within(&self, (from, to): (usize, usize), axis: Axis) -> Option<bool> {
        let hardware = self.hardware?;
        if from != to {
            return Some(self.node(from) == self.node(to));
        }
        let groups = self.groups?.iter();
        let slices = groups
            .filter(|row| row.group == Axis::Tp.name())
            .map(|row| row.size)
            .max();
        let fits = slices.is_none_or(|slices| slices as usize <= hardware.gpus_per_node);
        (axis == Axis::Tp && fits).then_some(true)
    }
}

impl TrafficPanel {
    /// Shows the panel.
    pub(super) fn show(&mut self, ui: &mut Ui, traffic: Traffic<'_>, view: &View) {
        ui.horizontal(|ui| {
            for (tab, name, hint) in Tab::ALL {
                let text = RichText::new(name).small();
                if ui
                    .add(Button::selectable(self.tab == tab, text))
                    .on_hover_text(hint)
                    .clicked()
                {
                    self.tab = tab;
                }
            }
        });
        match self.tab {
            Tab::Groups => groups(ui, traffic.groups.unwrap_or_default()),
            Tab::Bytes | Tab::Time => self.matrix(ui, traffic, view),
            Tab::Links => self.links(ui, traffic, view),
        }
    }

    fn matrix(&mut self, ui: &mut Ui, traffic: Traffic<'_>, view: &View) {
        let (from, to) = traffic.seen;
        let known = self.sent.as_ref();
        let same = known
            .is_some_and(|((of, seen), _)| Arc::ptr_eq(of, traffic.trace) && *seen == traffic.seen);
        if !same {
            let found = sent(traffic.trace, from, to);
            self.sent = Some(((Arc::clone(traffic.trace), traffic.seen), found));
        }
        let Some((_, sent)) = self.sent.as_ref().filter(|(_, sent)| !sent.is_empty()) else {
            nothing(ui);
            return;
        };
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
        let matrix = Matrix::new(rect, traffic, sent, self.tab == Tab::Time, view);
        matrix.paint(ui.painter(), view);
        let name = format!(
            "Traffic between {} GPUs from {from} to {to}",
            traffic.trace.ranks.len()
        );
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name.as_str()));
        if let Some(said) = response
            .hover_pos()
            .and_then(|at| matrix.said(at, traffic, sent))
        {
            response.on_hover_ui_at_pointer(|ui| {
                for line in said {
                    ui.label(line);
                }
            });
        }
    }

    fn links(&mut self, ui: &mut Ui, traffic: Traffic<'_>, view: &View) {
        let trace = traffic.trace;
        let chosen = traffic
            .gpu
            .and_then(|gpu| trace.ranks.iter().position(|info| info.rank == gpu));
        let index = chosen.unwrap_or(0);
        let known = self.links.as_ref();
        let same = known.is_some_and(|((of, seen), rank, _)| {
            Arc::ptr_eq(of, trace) && *seen == traffic.seen && *rank == index
        });
        if !same && index < trace.ranks.len() {
            let found = counters(trace, index, traffic.seen, PARTS);
            self.links = Some(((Arc::clone(trace), traffic.seen), index, found));
        }
        let Some((.., links)) = self.links.as_ref().filter(|(.., links)| !links.is_empty()) else {
            nothing(ui);
            return;
        };
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            for link in links {
                show_link(ui, traffic, (index, link), view);
            }
            if chosen.is_none() {
                ui.label(
                    RichText::new("Point at another GPU, or press ↓, for its links")
                        .small()
                        .weak(),
                );
            }
        });
    }
}

fn nothing(ui: &mut Ui) {
    ui.label(RichText::new("Nothing moves between GPUs in what is seen").weak());
}

/// Levels of links.
fn level(within: Option<bool>) -> &'static str {
    match within {
        Some(true) => "within a node",
        Some(false) => "from node to node",
        None => "",
    }
}

/// A link's curve against what it can carry.
fn show_link(ui: &mut Ui, traffic: Traffic<'_>, (index, link): (usize, &Counter), view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let ranks = &traffic.trace.ranks;
    let (from, to) = (ranks[index].rank, ranks[link.to].rank);
    let within = traffic.within((index, link.to), link.axis);
    let limit = traffic.hardware.zip(within).map(|(hardware, within)| {
        let link = if within {
            hardware.in_node
        } else {
            hardware.between_nodes
        };
        link.gb_per_s * 1e9
    });
    let most = link.rates.iter().copied().fold(0.0, f64::max);
    let mean = link.rates.iter().sum::<f64>() / link.rates.len().max(1) as f64;
    let rate = |rate: f64| format!("{} GB/s", three_digits(rate / 1e9));
    let of = limit.map_or_else(String::new, |limit| {
        format!(" of {} {}", rate(limit), level(within))
    });
    let text = format!(
        "GPU {from} → {to} · {} · mean {}, most {}{of}",
        link.axis.name().to_uppercase(),
        rate(mean),
        rate(most)
    );
    ui.label(RichText::new(text.clone()).small());
    let size = vec2(ui.available_width(), sizes.body * 2.2);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text.as_str()));
    let top = limit.unwrap_or(most).max(most).max(1.0) * 1.08;
    let y = |rate: f64| rect.bottom() - rect.height() * (rate / top) as f32;
    let painter = ui.painter();
    painter.rect_filled(rect, 2.0, color(palette.track));
    let fill = color(axis_colour(view, link.axis));
    let each = rect.width() / link.rates.len().max(1) as f32;
    for (place, &rate) in link
        .rates
        .iter()
        .enumerate()
        .filter(|(_, rate)| **rate > 0.0)
    {
        let left = rect.left() + each * place as f32;
        let column = Rect::from_min_max(pos2(left, y(rate)), pos2(left + each, rect.bottom()));
        painter.rect_filled(column, 0.0, fill);
    }
    if let Some(limit) = limit {
        let stroke = Stroke::new(1.0, color(palette.memory.capacity));
        let ends = [pos2(rect.left(), y(limit)), pos2(rect.right(), y(limit))];
        painter.extend(Shape::dashed_line(&ends, stroke, 4.0, 4.0));
    }
}

/// Who sends to whom: a row for each sender, a column for each receiver.
struct Matrix {
    origin: Pos2,
    /// The side of a cell.
    side: f32,
    rows: usize,
    /// Ranks that share a row.
    each: usize,
    names: Vec<String>,
    /// For each cell how much it has of the most that any has, its axis, and whether it leaves the node.
    cells: Vec<Option<(f32, Colour, bool)>>,
}

impl Matrix {
    fn new(rect: Rect, traffic: Traffic<'_>, sent: &[Sent], by_time: bool, view: &View) -> Self {
        let ranks = &traffic.trace.ranks;
        let each = ranks.len().div_ceil(MOST_ROWS).max(1);
        let rows = ranks.len().div_ceil(each).max(1);
        let mut sums = vec![(0.0_f64, 0.0_f64, None::<(Axis, bool)>); rows * rows];
        for one in sent {
            let much = if by_time {
                one.busy.0 as f64
            } else {
                one.bytes
            };
            let cell = &mut sums[one.from / each * rows + one.to / each];
            cell.0 += much;
            if much > cell.1 {
                // The colour is that of what there is most of.
                cell.1 = much;
                let within = traffic.within((one.from, one.to), one.axis);
                cell.2 = Some((one.axis, within == Some(false)));
            }
        }
        let most = sums
            .iter()
            .map(|cell| cell.0)
            .fold(f64::MIN_POSITIVE, f64::max);
        let cells = sums.into_iter().map(|(much, _, of)| {
            of.map(|(axis, leaves)| ((much / most) as f32, axis_colour(view, axis), leaves))
        });
        let small = view.sizes().small();
        let margin = vec2(small * 3.4, small * 1.4);
        let room = rect.size() - margin;
        let side = (room.x.min(room.y) / rows as f32).clamp(1.0, view.sizes().body * 3.0);
        Self {
            origin: rect.min + margin,
            side,
            rows,
            each,
            names: (0..rows)
                .map(|row| ranks[row * each].rank.to_string())
                .collect(),
            cells: cells.collect(),
        }
    }

    fn place(&self, row: usize, column: usize) -> Rect {
        let at = self.origin + vec2(column as f32, row as f32) * self.side;
        let gap = if self.side > 5.0 { 1.0 } else { 0.0 };
        Rect::from_min_size(at, vec2(self.side - gap, self.side - gap))
    }

    fn paint(&self, painter: &Painter, view: &View) {
        let (palette, small) = (view.palette(), view.sizes().small());
        let weak = color(palette.text_weak);
        let regular = || font(small, Weight::Regular);
        for row in 0..self.rows {
            for column in 0..self.rows {
                let rect = self.place(row, column);
                painter.rect_filled(rect, 1.0, color(palette.track));
                let Some((share, colour, leaves)) = self.cells[row * self.rows + column] else {
                    continue;
                };
                // The faintest is seen too.
                let fill = palette.track.mixed(colour, 0.25 + 0.75 * share);
                painter.rect_filled(rect, 1.0, color(fill));
                if leaves && self.side > 6.0 {
                    let corner = rect.right_top();
                    let size = (self.side * 0.35).min(7.0);
                    let points = vec![corner, corner - vec2(size, 0.0), corner + vec2(0.0, size)];
                    painter.add(Shape::convex_polygon(
                        points,
                        color(palette.text),
                        Stroke::NONE,
                    ));
                }
            }
        }
        // Every so many numbers as there is room for.
        let every = ((small * 1.2 / self.side).ceil() as usize).max(1);
        for (index, name) in self.names.iter().enumerate().step_by(every) {
            let (left, top) = (self.place(index, 0), self.place(0, index));
            let at = pos2(self.origin.x - 4.0, left.center().y);
            painter.text(at, Align2::RIGHT_CENTER, name, regular(), weak);
            let at = pos2(top.center().x, self.origin.y - 2.0);
            painter.text(at, Align2::CENTER_BOTTOM, name, regular(), weak);
        }
        let corner = self.origin - vec2(small * 1.2, 2.0);
        painter.text(corner, Align2::RIGHT_BOTTOM, "from", regular(), weak);
        let side = self.origin + vec2(self.side * self.rows as f32 + small * 0.6, 0.0);
        let lines = ["← to", "a white corner:", "leaves its node"];
        let lines = if palette.text.luminance() > 0.5 {
            lines
        } else {
            ["← to", "a dark corner:", "leaves its node"]
        };
        for (index, line) in lines.into_iter().enumerate() {
            let down = if index == 0 {
                -small * 1.2
            } else {
                small * 1.25 * (index as f32 - 1.0)
            };
            painter.text(
                side + vec2(0.0, down),
                Align2::LEFT_TOP,
                line,
                regular(),
                weak,
            );
        }
    }

    /// What a cell is of, in words.
    fn said(&self, at: Pos2, traffic: Traffic<'_>, sent: &[Sent]) -> Option<Vec<String>> {
        let place = (at - self.origin) / self.side;
        let inside = |along: f32| (0.0..self.rows as f32).contains(&along);
        if !inside(place.x) || !inside(place.y) {
            return None;
        }
        let (row, column) = (place.y as usize, place.x as usize);
        let ranks = &traffic.trace.ranks;
        let own = |one: &&Sent| one.from / self.each == row && one.to / self.each == column;
        let name = |index: usize| {
            let first = ranks[index * self.each].rank;
            let last = ranks[((index + 1) * self.each).min(ranks.len()) - 1].rank;
            if first == last {
                format!("GPU {first}")
            } else {
                format!("GPUs {first} to {last}")
            }
        };
        let mut said = vec![format!("{} to {}", name(row), name(column))];
        let length = traffic.seen.1.since(traffic.seen.0).0.max(1) as f64;
        said.extend(sent.iter().filter(own).map(|one| {
            let level = level(traffic.within((one.from, one.to), one.axis));
            let text = format!(
                "{}: {}, {} busy ({}) {level}",
                one.axis.name().to_uppercase(),
                Bytes(one.bytes as u64),
                one.busy,
                percent(one.busy.0 as f64 / length),
            );
            text.trim_end().to_owned()
        }));
        if said.len() == 1 {
            said.push("nothing".to_owned());
        }
        Some(said)
    }
}

fn groups(ui: &mut Ui, rows: &[TrafficReport]) {
    if rows.is_empty() {
        ui.label(RichText::new("Nothing moves between GPUs").weak());
        return;
    }
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        Grid::new("traffic").min_row_height(0.0).show(ui, |ui| {
            for name in ["Group", "Each", "Size", "Time", "Bus"] {
                ui.label(RichText::new(name).weak().small());
            }
            ui.end_row();
            for row in rows {
                show_row(ui, row);
            }
        });
    });
}

fn show_row(ui: &mut Ui, row: &TrafficReport) {
    let instances = row.instances;
    let name = group_name(row);
    let small = |text: String| RichText::new(text).small();
    ui.label(small(name)).on_hover_text(format!(
        "{} of {instances} such groups, GPUs {}",
        row.kind,
        listed(&row.ranks)
    ));
    ui.label(small(format!("{} ×", row.count)));
    ui.label(small(Bytes(row.bytes).to_string()));
    ui.label(small(Nanos::from_secs(row.time_s).to_string()));
    ui.label(small(format!("{} GB/s", three_digits(row.busbw / 1e9))));
    ui.end_row();
}

/// A group with what it does: `DP all-reduce`.
fn group_name(row: &TrafficReport) -> String {
    match row.group.as_str() {
        "pp" => "PP sends".to_owned(),
        "embedding" => "Tied embedding".to_owned(),
        "model" | "world" => "Gradient norm".to_owned(),
        group => format!("{} {}", group.to_uppercase(), row.kind.replace('_', "-")),
    }
}

fn listed(ranks: &[u32]) -> String {
    let some: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let more = if ranks.len() > 8 { ", …" } else { "" };
    format!("{}{more}", some.join(", "))
}

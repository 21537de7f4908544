//! What is selected on the timeline: a span with the chain of operations behind it, or an area with its figures.

use std::sync::Arc;

use eframe::egui::{Grid, Label, RichText, ScrollArea, Sense, Ui, vec2};

use crate::scene::fonts::Weight;
use crate::scene::{Colour, Hit, row_name};
use crate::trace::{Area, AreaFigures, Link, Operations, Stream, Trace, by_pass, chain_behind};
use crate::units::{Bytes, Nanos, percent, three_digits};

use super::attention::Attention;
use super::describe::describe;
use super::pane::behind;
use super::ring::Ring;
use super::theme::{color, font};
use super::view::View;
use super::wish::{Look, Wish};

/// Of a longer chain, the first so many operations are listed.
const MOST_LISTED: usize = 60;

/// What is told about what is selected, found once.
#[derive(Debug, Default)]
pub(super) struct SelectionPanel {
    figures: Option<(Arc<Trace>, Area, AreaFigures)>,
    chain: Option<(Arc<Trace>, Hit, Vec<Link>)>,
    ring: Ring,
}

impl SelectionPanel {
    /// Shows the panel.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        (trace, attention): (&Arc<Trace>, &Attention),
        (view, playhead): (&View, Option<Nanos>),
        wishes: &mut Vec<Wish>,
    ) {
        ScrollArea::both().auto_shrink(false).show(ui, |ui| {
            match (&attention.selected, &attention.area) {
                (Some(hit), _) if hit.rank_index < trace.ranks.len() => {
                    self.span(ui, (trace, hit), (view, playhead), attention, wishes);
                }
                (_, Some(area)) => self.area(ui, (trace, area), view),
                _ => {
                    let hint = "Click a block or a gap to see what it waited for; drag over the timeline to measure a part of it";
                    ui.label(RichText::new(hint).weak());
                }
            }
        });
    }

    fn span(
        &mut self,
        ui: &mut Ui,
        (trace, hit): (&Arc<Trace>, &Hit),
        (view, playhead): (&View, Option<Nanos>),
        attention: &Attention,
        wishes: &mut Vec<Wish>,
    ) {
        let label = trace.label(hit.span.label);
        let ring = label.collective().filter(|_| label.members > 1);
        let ring = ring.map(|kind| (kind, label.members as usize));
        // Beside the words, where there is room for both.
        let wide = ui.available_width() > view.sizes().body * 38.0;
        if let Some(of) = ring.filter(|_| wide) {
            ui.horizontal_top(|ui| {
                ui.vertical(|ui| {
                    words(ui, (trace, hit), view);
                    self.chain(ui, (trace, hit), (view, attention), wishes);
                });
                ui.add_space(view.sizes().space());
                ui.vertical(|ui| self.ring.show(ui, of, (hit.span, playhead), view));
            });
            return;
        }
        words(ui, (trace, hit), view);
        if let Some(of) = ring {
            self.ring.show(ui, of, (hit.span, playhead), view);
        }
        self.chain(ui, (trace, hit), (view, attention), wishes);
    }

    /// What came before it, one because of the other.
    fn chain(
        &mut self,
        ui: &mut Ui,
        (trace, hit): (&Arc<Trace>, &Hit),
        (view, attention): (&View, &Attention),
        wishes: &mut Vec<Wish>,
    ) {
        // Who waits for whom is not in traces of other programs.
        if !trace.tracks.is_empty() {
            return;
        }
        let known = self.chain.as_ref();
        let same = known.is_some_and(|(of, one, _)| Arc::ptr_eq(of, trace) && one == hit);
        if !same {
            let (rank, time) = behind(hit);
            let links = by_pass(trace, &chain_behind(trace, rank, time));
            self.chain = Some((Arc::clone(trace), *hit, links));
        }
        let Some((_, _, links)) = self.chain.as_ref().filter(|(.., links)| !links.is_empty())
        else {
            return;
        };
        ui.horizontal(|ui| {
            ui.label(
                RichText::new("What came before it")
                    .font(font(view.sizes().small(), Weight::SemiBold)),
            );
            let lit = !attention.path.is_empty();
            let button = ui.small_button(if lit {
                "Light no longer"
            } else {
                "Light the chain"
            });
            if button
                .on_hover_text("The operations behind it, one because of the other (C)")
                .clicked()
            {
                wishes.push(Wish::Look(Look::Path));
            }
        });
        for link in links.iter().take(MOST_LISTED) {
            let text = RichText::new(told(trace, link)).small();
            let row = ui.add(Label::new(text).selectable(false).sense(Sense::click()));
            if row.on_hover_text("Go there").clicked() {
                wishes.push(Wish::GoTo(at(trace, link)));
            }
        }
        if let Some(more) = links
            .len()
            .checked_sub(MOST_LISTED)
            .filter(|&more| more > 0)
        {
            ui.label(
                RichText::new(format!("and {more} before that"))
                    .small()
                    .weak(),
            );
        }
    }

    fn area(&mut self, ui: &mut Ui, (trace, area): (&Arc<Trace>, &Area), view: &View) {
        let known = self.figures.as_ref();
        let same = known.is_some_and(|(of, one, _)| Arc::ptr_eq(of, trace) && one == area);
        if !same {
            let figures = AreaFigures::new(trace, area);
            self.figures = Some((Arc::clone(trace), area.clone(), figures));
        }
        let Some((.., figures)) = &self.figures else {
            return;
        };
        let rows = area.ranks.len();
        let of = area
            .ranks
            .iter()
            .filter_map(|&index| trace.ranks.get(index));
        let gpus: u64 = of.map(|info| u64::from(info.count)).sum();
        let what = match (rows, trace.tracks.is_empty()) {
            (1, _) => row_name(trace, area.ranks[0]),
            (_, true) => format!("{gpus} GPUs"),
            (_, false) => format!("{rows} rows"),
        };
        let text = format!(
            "{} of {what}, from {} to {}",
            area.length(),
            area.from,
            area.to
        );
        ui.label(RichText::new(text).font(font(view.sizes().body, Weight::SemiBold)));
        split(ui, figures, view);
        if !figures.operations.is_empty() {
            table(ui, &figures.operations);
        }
    }
}

/// What it is, when, and what it waited for.
fn words(ui: &mut Ui, (trace, hit): (&Trace, &Hit), view: &View) {
    let said = describe(trace, hit);
    ui.label(RichText::new(said.name).font(font(view.sizes().body, Weight::SemiBold)));
    for line in said.lines {
        ui.label(RichText::new(line).small());
    }
}

/// A link in words.
fn told(trace: &Trace, link: &Link) -> String {
    let label = trace.label(link.span.label);
    let what = match link.stream {
        Stream::SendNext | Stream::SendPrev => format!("send of {}", label.short()),
        Stream::Passes | Stream::Compute | Stream::Tp | Stream::Dp => label.short(),
    };
    let row = row_name(trace, link.rank_index);
    format!("{what} on {row}, {}", link.span.duration())
}

/// The span that a link goes through, as a whole.
fn at(trace: &Trace, link: &Link) -> Hit {
    let lane = trace.lane(link.rank_index, link.stream);
    Hit {
        rank_index: link.rank_index,
        stream: link.stream,
        span: lane.at(link.span.start).copied().unwrap_or(link.span),
    }
}

/// Where the time goes: a bar, and the shares in words.
fn split(ui: &mut Ui, figures: &AreaFigures, view: &View) {
    let palette = view.palette();
    let split = figures.split;
    let parts: [(&str, Nanos, Colour); 4] = [
        ("busy", split.compute, palette.forward),
        ("transfer", split.transfer, palette.send),
        ("waiting", split.waiting, palette.waiting),
        ("idle", split.idle, palette.bubble),
    ];
    let all = split.total().0.max(1) as f32;
    let width = ui.available_width().min(view.sizes().body * 30.0);
    let (rect, _) = ui.allocate_exact_size(vec2(width, view.sizes().body * 0.8), Sense::hover());
    let mut left = rect.left();
    for (_, time, colour) in parts {
        let right = left + rect.width() * time.0 as f32 / all;
        let part = eframe::egui::Rect::from_x_y_ranges(left..=right, rect.y_range());
        ui.painter().rect_filled(part, 0.0, color(colour));
        left = right;
    }
    ui.horizontal_wrapped(|ui| {
        for (name, time, colour) in parts {
            let (rect, _) =
                ui.allocate_exact_size(vec2(1.0, 1.0) * view.sizes().body * 0.6, Sense::hover());
            ui.painter().rect_filled(rect, 1.0, color(colour));
            let share = percent(f64::from(time.0 as f32 / all));
            ui.label(RichText::new(format!("{name} {share} ({time})")).small());
        }
    });
}

fn table(ui: &mut Ui, operations: &[Operations]) {
    Grid::new("operations")
        .min_row_height(0.0)
        .striped(true)
        .show(ui, |ui| {
            for name in [
                "", "count", "min", "mean", "max", "in all", "waiting", "bytes", "algbw", "busbw",
            ] {
                ui.label(RichText::new(name).weak().small());
            }
            ui.end_row();
            for one in operations {
                row(ui, one);
                ui.end_row();
            }
        });
}

fn row(ui: &mut Ui, one: &Operations) {
    let rate = |rate: Option<f64>| {
        rate.map_or_else(String::new, |rate| {
            format!("{} GB/s", three_digits(rate / 1e9))
        })
    };
    let name = match &one.group {
        Some(group) => format!("{} · {}", one.name, group.to_uppercase()),
        None => one.name.clone(),
    };
    let bytes = match one.bytes {
        0.0 => String::new(),
        bytes => Bytes(bytes as u64).to_string(),
    };
    let waiting = match one.waiting {
        Nanos::ZERO => String::new(),
        waiting => waiting.to_string(),
    };
    let cells = [
        name,
        one.count.to_string(),
        one.least.to_string(),
        one.mean.to_string(),
        one.most.to_string(),
        one.time.to_string(),
        waiting,
        bytes,
        rate(one.algbw),
        rate(one.busbw),
    ];
    for cell in cells {
        ui.label(RichText::new(cell).small());
    }
}

//! The grid: a row a rank, a column a unit, blocks as on the timeline; the best known schedule beneath on the same axis.

use eframe::egui::{Id, Pos2, Rect as Area, Role, ScrollArea, Sense, Ui, Vec2, WidgetInfo, vec2};

use crate::lesson::build::{Board, Level, Measure, Placed, Reference, short};
use crate::scene::fonts::{CAP_HEIGHT, Weight, width};
use crate::scene::tokens::{Palette, Sizes};
use crate::scene::{Anchor, Colour, Hatch, Point, Quad, Rect, Scene, Shape, Size, Stroke, Text};
use crate::schedule::Action;
use crate::ui::paint::Painted;
use crate::ui::view::View;
use crate::ui::wish::Wish;

use super::{Aid, Build, Builder, wish};

/// How wide the rows' names are, how high the axis, and a row at least and at most, in body-text sizes.
const NAMES: f32 = 7.0;
const AXIS: f32 = 1.5;
const LEAST: f32 = 1.7;
const MOST: f32 = 4.6;
/// A row of the reference, and the line over it.
const SMALL: f32 = 1.7;
const HEADING: f32 = 2.0;
/// How much of a row its blocks take.
const BLOCK: f32 = 0.84;

/// Where things lie, from the grid's top left.
#[derive(Clone, Copy)]
struct Places {
    width: f32,
    /// Where time 0 is, and how wide a unit.
    left: f32,
    unit: f32,
    /// The last unit that is seen.
    to: u32,
    top: f32,
    pitch: f32,
    sizes: Sizes,
}

impl Places {
    fn x(&self, time: u32) -> f32 {
        self.left + time as f32 * self.unit
    }

    /// A row's rectangle from `from` to `to`.
    fn rect(&self, row: usize, from: u32, to: u32) -> Rect {
        let high = self.pitch * BLOCK;
        let y = self.top + row as f32 * self.pitch + (self.pitch - high) / 2.0;
        Rect::new(self.x(from), y, (to - from) as f32 * self.unit, high)
    }

    fn row(&self, row: usize) -> Rect {
        Rect::new(
            0.0,
            self.top + row as f32 * self.pitch,
            self.width,
            self.pitch,
        )
    }
}

/// What is drawn, and in which colours.
struct Canvas<'a> {
    shapes: Vec<Shape>,
    palette: &'a Palette,
    level: &'a Level,
}

impl Canvas<'_> {
    fn quad(&mut self, quad: Quad) {
        self.shapes.push(Shape::Quad(quad));
    }

    fn text(
        &mut self,
        at: Point,
        anchor: Anchor,
        (size, weight): (f32, Weight),
        (colour, words): (Colour, &str),
    ) {
        self.shapes.push(Shape::Text(Text {
            at: Point::new(at.x, at.y + size * CAP_HEIGHT / 2.0),
            anchor,
            size,
            weight,
            colour,
            words: words.to_owned(),
        }));
    }

    fn colour(&self, action: Action) -> Colour {
        let rank = self.level.holders[action.stage as usize];
        let mut stages = self.level.stages_of(rank);
        let chunk = stages.position(|stage| stage == action.stage as usize);
        self.palette.pass_of_chunk(action.pass, chunk.unwrap_or(0))
    }

    /// A pass with its letter and micro-batch, and its stage where a rank has several.
    fn block(&mut self, rect: Rect, action: Action, sizes: Sizes) {
        let fill = self.colour(action);
        let inner = Rect::new(
            rect.x + 0.5,
            rect.y,
            (rect.width - 1.0).max(1.0),
            rect.height,
        );
        let radius = sizes.radius().min(rect.width / 4.0);
        self.quad(Quad::new(inner, fill).rounded(radius));
        self.name(inner, action, self.palette.text_on(fill), sizes);
    }

    fn name(&mut self, rect: Rect, action: Action, ink: Colour, sizes: Sizes) {
        let name = short(action);
        let full = (rect.height * 0.62).min(sizes.body * 1.12);
        let fitting = [1.0, 0.86, 0.74, 0.62]
            .map(|share| share * full)
            .into_iter()
            .find(|&size| width(&name, size, Weight::SemiBold) < rect.width - 2.0);
        let Some(size) = fitting.filter(|&size| size >= sizes.body * 0.5) else {
            return;
        };
        let stage = format!("stage {}", action.stage);
        let terse = format!("s{}", action.stage);
        let below = size * 0.72;
        let chunks = self.level.chunks() > 1 && rect.height > size + below * 1.9;
        let lower = [stage, terse]
            .into_iter()
            .filter(|_| chunks)
            .find(|text| width(text, below, Weight::Regular) < rect.width - 2.0);
        let middle = rect.centre();
        let rise = if lower.is_some() { size * 0.5 } else { 0.0 };
        let at = Point::new(middle.x, middle.y - rise);
        self.text(at, Anchor::Middle, (size, Weight::SemiBold), (ink, &name));
        if let Some(text) = lower {
            let at = Point::new(middle.x, middle.y + size * 0.62);
            self.text(at, Anchor::Middle, (below, Weight::Regular), (ink, &text));
        }
    }

    /// Where a pass would come.
    fn ghost(&mut self, rect: Rect, action: Action, sizes: Sizes) {
        let palette = self.palette;
        let colour = self.colour(action);
        let fill = colour.faded(0.28).over(palette.background);
        let stroke = Stroke::solid(2.0, colour);
        let inner = rect.grown(-1.0);
        self.quad(
            Quad::new(inner, fill)
                .outlined(stroke)
                .rounded(sizes.radius()),
        );
        self.name(inner, action, palette.text, sizes);
    }

    /// A row of a board: its bubble and its blocks.
    fn row(&mut self, board: &Board, rank: usize, (row, places): (usize, &Places)) {
        let palette = self.palette;
        let bed = places.rect(row, 0, places.to);
        self.quad(Quad::new(bed, palette.track).rounded(places.sizes.radius()));
        for (from, to) in gaps(board, rank) {
            let hatch = Hatch::Bubble(palette.bubble);
            let quad = Quad::new(places.rect(row, from, to), palette.bubble_bed).hatched(hatch);
            self.quad(quad);
        }
        for &placed in &board.rows()[rank] {
            let rect = places.rect(row, placed.start, board.end(placed));
            self.block(rect, placed.action, places.sizes);
        }
    }
}

/// When a rank does nothing: between its passes, and where the whole counts before and after them.
fn gaps(board: &Board, rank: usize) -> Vec<(u32, u32)> {
    let row = &board.rows()[rank];
    let whole = board.level().measure == Measure::Makespan;
    let mut at = match row.first() {
        Some(first) if !whole => first.start,
        Some(_) | None => 0,
    };
    let mut gaps = Vec::new();
    for &placed in row {
        if placed.start > at {
            gaps.push((at, placed.start));
        }
        at = board.end(placed);
    }
    if whole && board.is_complete() {
        let end = board.figures().makespan;
        gaps.extend((end > at).then_some((at, end)));
    }
    gaps
}

impl Builder {
    /// Shows the grid in room of `size`.
    pub(super) fn grid(&self, ui: &mut Ui, size: Vec2, view: &View, wishes: &mut Vec<Wish>) {
        let sizes = view.sizes();
        let reference = self.sheet().references.first();
        let reference = reference.filter(|_| self.shows(Aid::Reference));
        let places = self.places(size, sizes, reference);
        let own = places.top + places.pitch * self.board().level().ranks as f32;
        let below = reference.map_or(0.0, |reference| {
            sizes.body * (HEADING + SMALL * reference.board.level().ranks as f32)
        });
        ScrollArea::vertical()
            .id_salt("grid")
            .max_height(size.y)
            .auto_shrink([false, false])
            .show(ui, |ui| {
                let room = vec2(places.width, own + below);
                let (area, response) = ui.allocate_exact_size(room, Sense::hover());
                let name = self.described();
                response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name.as_str()));
                let mut canvas = Canvas {
                    shapes: Vec::new(),
                    palette: view.palette(),
                    level: self.board().level(),
                };
                self.draw(&mut canvas, &places);
                if let Some(reference) = reference {
                    draw_reference(&mut canvas, reference, &places, own);
                }
                let scene = Scene {
                    size: Size::new(room.x, room.y),
                    background: view.palette().background,
                    shapes: canvas.shapes,
                };
                Painted::new(ui.ctx(), scene, area.min, ui.pixels_per_point()).paint(ui.painter());
                self.touch(ui, area, &places, wishes);
            });
    }

    fn places(&self, size: Vec2, sizes: Sizes, reference: Option<&Reference>) -> Places {
        let em = sizes.body;
        let board = self.board();
        let ranks = board.level().ranks as f32;
        let below = if reference.is_some() {
            HEADING + SMALL * ranks
        } else {
            0.0
        };
        let best = self.sheet().references.first();
        let best = best.map_or(0, |best| best.board.figures().makespan + 1);
        let ghost = self.ghost().map_or(0, |(action, start)| {
            start + board.level().times.of(action.pass) + 1
        });
        let to = (self.known.figures.makespan + 1)
            .max(best)
            .max(ghost)
            .max(6);
        let width = size.x - em * 0.5;
        let left = em * NAMES;
        Places {
            width,
            left,
            unit: (width - left).max(1.0) / to as f32,
            to,
            top: em * AXIS,
            pitch: ((size.y - em * (AXIS + below + 0.4)) / ranks).clamp(em * LEAST, em * MOST),
            sizes,
        }
    }

    /// Where the chosen pass would come, if it can be placed.
    fn ghost(&self) -> Option<(Action, u32)> {
        let action = self.pick?;
        let ready = self.board().why_not(self.rank, action).ok()?;
        Some((action, ready.start.saturating_add(self.wait)))
    }

    /// The board in a sentence, for those who cannot see it.
    fn described(&self) -> String {
        let board = self.board();
        format!(
            "Grid of {} GPUs: {} passes placed, {} left",
            board.level().ranks,
            board.placed(),
            board.left()
        )
    }

    fn draw(&self, canvas: &mut Canvas<'_>, places: &Places) {
        let board = self.board();
        let palette = canvas.palette;
        let chosen = places.row(self.rank);
        canvas.quad(Quad::new(chosen, palette.raised).rounded(places.sizes.radius()));
        let bar = Rect::new(chosen.x, chosen.y, places.sizes.body * 0.25, chosen.height);
        canvas.quad(Quad::new(bar, palette.accent));
        for rank in 0..board.level().ranks {
            self.row_name(canvas, rank, places);
            canvas.row(board, rank, (rank, places));
        }
        draw_axis(canvas, places, board.level().ranks);
        if let Some((action, start)) = self.ghost() {
            let end = start + board.level().times.of(action.pass);
            canvas.ghost(places.rect(self.rank, start, end), action, places.sizes);
        }
        let hinted = self.hint.as_ref().and_then(|(_, hint)| hint.next);
        if let Some((rank, ready)) = hinted {
            let end = ready.start + board.level().times.of(ready.action.pass);
            let rect = places.rect(rank, ready.start, end);
            canvas.ghost(rect, ready.action, places.sizes);
            let ring = Stroke::solid(3.0, palette.accent);
            canvas.quad(
                Quad::new(rect, palette.accent.faded(0.0))
                    .outlined(ring)
                    .rounded(places.sizes.radius()),
            );
        }
        if self.shows(Aid::Path) {
            self.draw_path(canvas, places);
        }
        if board.level().measure == Measure::Makespan
            && let Some(par) = self.par()
        {
            draw_par(canvas, places, (par, board.level().ranks));
        }
    }

    /// The GPU, its stages, and what it holds.
    fn row_name(&self, canvas: &mut Canvas<'_>, rank: usize, places: &Places) {
        let (board, palette) = (self.board(), canvas.palette);
        let em = places.sizes.body;
        let stages: Vec<String> = board
            .level()
            .stages_of(rank)
            .map(|stage| stage.to_string())
            .collect();
        let noun = if stages.len() > 1 { "stages" } else { "stage" };
        let stages = format!("{noun} {}", stages.join(", "));
        let held = board.held(rank);
        let held = match board.level().cap {
            Some(cap) => format!("holds {held} of {cap}"),
            None => format!("holds {held}"),
        };
        let mut lines = vec![(format!("GPU {rank}"), em, Weight::SemiBold, palette.text)];
        let small = places.sizes.small();
        lines.push((stages, small, Weight::Regular, palette.text_weak));
        lines.push((held, small, Weight::Regular, palette.text_weak));
        if self.shows(Aid::Ready) {
            let ready = format!("{} ready", self.known.ready[rank]);
            lines.push((ready, small, Weight::Regular, palette.accent));
        }
        let row = places.row(rank);
        let room = ((row.height - em * 0.3) / (small * 1.22)) as usize;
        lines.truncate(room.max(1));
        let step = small * 1.22;
        let first = row.centre().y - step * (lines.len() as f32 - 1.0) / 2.0;
        for (index, (words, size, weight, colour)) in lines.iter().enumerate() {
            let at = Point::new(em * 0.55, first + step * index as f32);
            canvas.text(at, Anchor::Start, (*size, *weight), (*colour, words));
        }
    }

    fn draw_path(&self, canvas: &mut Canvas<'_>, places: &Places) {
        let stroke = Stroke::solid(2.4, canvas.palette.critical);
        let rect_of = |&(rank, placed): &(usize, Placed)| {
            places
                .rect(rank, placed.start, self.board().end(placed))
                .grown(-0.5)
        };
        let rects: Vec<(usize, Rect)> = self
            .known
            .path
            .iter()
            .map(|link| (link.0, rect_of(link)))
            .collect();
        for pair in rects.windows(2) {
            if pair[0].0 != pair[1].0 {
                let points = vec![
                    Point::new(pair[0].1.right(), pair[0].1.centre().y),
                    Point::new(pair[1].1.x, pair[1].1.centre().y),
                ];
                canvas.shapes.push(Shape::Line { points, stroke });
            }
        }
        let clear = canvas.palette.critical.faded(0.0);
        for (_, rect) in rects {
            let quad = Quad::new(rect, clear).outlined(stroke);
            canvas.quad(quad.rounded(places.sizes.radius()));
        }
    }

    /// Rows answer to the pointer: another rank is chosen, a block says why it is where it is, and where nothing is the chosen
    /// pass is placed.
    fn touch(&self, ui: &Ui, area: Area, places: &Places, wishes: &mut Vec<Wish>) {
        for rank in 0..self.board().level().ranks {
            let row = places.row(rank);
            let rect =
                Area::from_min_size(area.min + vec2(row.x, row.y), vec2(row.width, row.height));
            let response = ui.interact(rect, Id::unique(("row", rank)), Sense::click());
            let name = self.row_described(rank);
            response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name.as_str()));
            let at = |at: Pos2| (at.x - area.min.x - places.left) / places.unit;
            let block = |at: f32| {
                let all = self.board().rows()[rank].iter();
                let mut all = all.enumerate();
                all.find(|(_, placed)| {
                    let end = self.board().end(**placed) as f32;
                    (placed.start as f32..end).contains(&at)
                })
            };
            if response.clicked() {
                let at = response.interact_pointer_pos().map(at);
                wishes.push(wish(self.clicked(
                    rank,
                    at,
                    at.and_then(block).map(|(index, _)| index),
                )));
            }
            if let Some((_, placed)) = response.hover_pos().map(at).and_then(block) {
                response.on_hover_text_at_pointer(self.why(rank, *placed));
            }
        }
    }

    /// What a click on a row is for.
    fn clicked(&self, rank: usize, at: Option<f32>, block: Option<usize>) -> Build {
        if let Some(index) = block {
            return Build::Explain(rank, index);
        }
        let time = at.filter(|at| *at >= 0.0).map(|at| at as u32);
        match (time, self.pick, self.ghost()) {
            (Some(time), Some(action), ghost) if rank == self.rank => {
                let length = self.board().level().times.of(action.pass);
                let on_it = |(_, start): &(Action, u32)| (*start..start + length).contains(&time);
                // On the ghost is where it is.
                let at = ghost.filter(on_it).map_or(time, |(_, start)| start);
                Build::Put(action, Some(at))
            }
            _ => Build::Rank(rank),
        }
    }

    fn row_described(&self, rank: usize) -> String {
        let row = &self.board().rows()[rank];
        let mut all: Vec<String> = row
            .iter()
            .map(|placed| format!("{} at {}", short(placed.action), placed.start))
            .collect();
        if all.is_empty() {
            all.push("nothing placed".to_owned());
        }
        format!("Row of GPU {rank}: {}", all.join(", "))
    }
}

/// A number at each so many units, so that they have room, and a faint line.
fn draw_axis(canvas: &mut Canvas<'_>, places: &Places, rows: usize) {
    let (palette, sizes) = (canvas.palette, places.sizes);
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000];
    let step = steps
        .into_iter()
        .find(|&step| step as f32 * places.unit > sizes.body * 2.2);
    let bottom = places.top + places.pitch * rows as f32;
    for time in (0..=places.to).step_by(step.unwrap_or(1_000_000)) {
        let x = places.x(time);
        let at = Point::new(x, places.top - sizes.body * 0.7);
        let style = (sizes.small(), Weight::Regular);
        canvas.text(
            at,
            Anchor::Middle,
            style,
            (palette.text_weak, &time.to_string()),
        );
        let points = vec![Point::new(x, places.top - 3.0), Point::new(x, bottom)];
        let stroke = Stroke::solid(1.0, palette.grid.faded(0.8));
        canvas.shapes.push(Shape::Line { points, stroke });
    }
    let at = Point::new(sizes.body * 0.55, places.top - sizes.body * 0.7);
    let style = (sizes.small(), Weight::Regular);
    canvas.text(at, Anchor::Start, style, (palette.text_weak, "units"));
}

/// Where the best known schedule ends.
fn draw_par(canvas: &mut Canvas<'_>, places: &Places, (par, rows): (u32, usize)) {
    let (palette, sizes) = (canvas.palette, places.sizes);
    let x = places.x(par);
    let bottom = places.top + places.pitch * rows as f32;
    let points = vec![Point::new(x, places.top - 4.0), Point::new(x, bottom)];
    let stroke = Stroke {
        width: 1.8,
        colour: palette.accent,
        dash: Some(5.0),
    };
    canvas.shapes.push(Shape::Line { points, stroke });
    let words = format!("par {par}");
    let wide = width(&words, sizes.small(), Weight::SemiBold);
    let middle = places.top - sizes.body * 0.7;
    let right = (x + wide / 2.0).min(places.width);
    let bed = Rect::new(
        right - wide - 4.0,
        middle - sizes.body * 0.6,
        wide + 8.0,
        sizes.body * 1.2,
    );
    canvas.quad(Quad::new(bed, palette.background));
    let style = (sizes.small(), Weight::SemiBold);
    canvas.text(
        Point::new(right - wide / 2.0, middle),
        Anchor::Middle,
        style,
        (palette.accent, &words),
    );
}

fn draw_reference(canvas: &mut Canvas<'_>, reference: &Reference, places: &Places, top: f32) {
    let (palette, sizes) = (canvas.palette, places.sizes);
    let em = sizes.body;
    let words = format!("{}: {} units", reference.kind.title(), reference.score);
    let at = Point::new(em * 0.55, top + em * HEADING * 0.55);
    canvas.text(
        at,
        Anchor::Start,
        (em, Weight::SemiBold),
        (palette.text, &words),
    );
    let below = Places {
        top: top + em * HEADING,
        pitch: em * SMALL,
        ..*places
    };
    for rank in 0..reference.board.level().ranks {
        canvas.row(&reference.board, rank, (rank, &below));
        let at = Point::new(em * 0.55, below.row(rank).centre().y);
        let style = (sizes.small(), Weight::Regular);
        canvas.text(
            at,
            Anchor::Start,
            style,
            (palette.text_weak, &format!("GPU {rank}")),
        );
    }
}

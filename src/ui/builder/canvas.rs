//! What is drawn on the grid: blocks as on the timeline, the bubble between them, the axis over them.

use crate::lesson::build::{Board, Level, Measure, Reference, short};
use crate::scene::fonts::{CAP_HEIGHT, Weight, width};
use crate::scene::tokens::{Palette, Sizes};
use crate::scene::{Anchor, Colour, Hatch, Point, Quad, Rect, Shape, Stroke, Text};
use crate::schedule::Action;

/// How much of a row its blocks take.
const BLOCK: f32 = 0.84;
/// A row of the reference, and the line over it, in body-text sizes.
pub(super) const SMALL: f32 = 1.7;
pub(super) const HEADING: f32 = 2.0;

/// Where things lie, from the grid's top left.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) width: f32,
    /// Where time 0 is, and how wide a unit.
    pub(super) left: f32,
    pub(super) unit: f32,
    /// The last unit that is seen.
    pub(super) to: u32,
    pub(super) top: f32,
    pub(super) pitch: f32,
    pub(super) sizes: Sizes,
}

impl Places {
    pub(super) fn x(&self, time: u32) -> f32 {
        self.left + time as f32 * self.unit
    }

    /// A row's rectangle from `from` to `to`.
    pub(super) fn rect(&self, row: usize, from: u32, to: u32) -> Rect {
        let high = self.pitch * BLOCK;
        let y = self.top + row as f32 * self.pitch + (self.pitch - high) / 2.0;
        Rect::new(self.x(from), y, (to - from) as f32 * self.unit, high)
    }

    pub(super) fn row(&self, row: usize) -> Rect {
        Rect::new(
            0.0,
            self.top + row as f32 * self.pitch,
            self.width,
            self.pitch,
        )
    }
}

/// What is drawn, and in which colours.
pub(super) struct Canvas<'a> {
    pub(super) shapes: Vec<Shape>,
    pub(super) palette: &'a Palette,
    /// Which of its rank's stages each stage is.
    chunk_of: Vec<usize>,
}

impl<'a> Canvas<'a> {
    /// Nothing yet, of a board of `level`.
    pub(super) fn new(palette: &'a Palette, level: &Level) -> Self {
        let mut held = vec![0; level.ranks];
        let chunk_of = level.holders.iter().map(|&rank| {
            held[rank] += 1;
            held[rank] - 1
        });
        Self {
            chunk_of: chunk_of.collect(),
            shapes: Vec::new(),
            palette,
        }
    }

    pub(super) fn quad(&mut self, quad: Quad) {
        self.shapes.push(Shape::Quad(quad));
    }

    pub(super) fn text(
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
        let chunk = self.chunk_of.get(action.stage as usize);
        let chunk = chunk.copied().unwrap_or(0);
        self.palette.pass_of_chunk(action.pass, chunk)
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
        let full = (rect.height * 0.62).min(sizes.body * 1.4);
        let fitting = [1.0, 0.86, 0.74, 0.62, 0.52]
            .map(|share| share * full)
            .into_iter()
            .find(|&size| width(&name, size, Weight::SemiBold) < rect.width - 2.0);
        let Some(size) = fitting.filter(|&size| size >= sizes.body * 0.5) else {
            return;
        };
        let stage = format!("stage {}", action.stage);
        let terse = format!("s{}", action.stage);
        let below = size * 0.72;
        let chunks =
            self.chunk_of.iter().any(|&chunk| chunk > 0) && rect.height > size + below * 1.9;
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
    pub(super) fn ghost(&mut self, rect: Rect, action: Action, sizes: Sizes) {
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

    /// What lies under a row.
    pub(super) fn bed(&mut self, (row, places): (usize, &Places)) {
        let bed = places.rect(row, 0, places.to);
        let quad = Quad::new(bed, self.palette.track);
        self.quad(quad.rounded(places.sizes.radius()));
    }

    /// A row of a board: its bubble and its blocks.
    pub(super) fn row(&mut self, board: &Board, rank: usize, (row, places): (usize, &Places)) {
        let palette = self.palette;
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

/// A number at each so many units, so that they have room, and a faint line.
pub(super) fn draw_axis(
    canvas: &mut Canvas<'_>,
    places: &Places,
    (par, rows): (Option<u32>, usize),
) {
    let (palette, sizes) = (canvas.palette, places.sizes);
    // The par's own mark has its room.
    let taken = |time: u32| {
        par.is_some_and(|par| (places.x(par) - places.x(time)).abs() < sizes.body * 2.9)
    };
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000];
    let step = steps
        .into_iter()
        .find(|&step| step as f32 * places.unit > sizes.body * 2.2);
    let bottom = places.top + places.pitch * rows as f32;
    for time in (0..=places.to).step_by(step.unwrap_or(1_000_000)) {
        let x = places.x(time);
        let at = Point::new(x, places.top - sizes.body * 0.7);
        let style = (sizes.small(), Weight::Regular);
        if !taken(time) {
            let ink = (palette.text_weak, time.to_string());
            canvas.text(at, Anchor::Middle, style, (ink.0, &ink.1));
        }
        let points = vec![Point::new(x, places.top - 3.0), Point::new(x, bottom)];
        let stroke = Stroke::solid(1.0, palette.grid.faded(0.8));
        canvas.shapes.push(Shape::Line { points, stroke });
    }
    let at = Point::new(sizes.body * 0.55, places.top - sizes.body * 0.7);
    let style = (sizes.small(), Weight::Regular);
    canvas.text(at, Anchor::Start, style, (palette.text_weak, "units"));
}

/// Where the best known schedule ends.
pub(super) fn draw_par(canvas: &mut Canvas<'_>, places: &Places, (par, rows): (u32, usize)) {
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
    let style = (sizes.small(), Weight::SemiBold);
    canvas.text(
        Point::new(right - wide / 2.0, middle),
        Anchor::Middle,
        style,
        (palette.accent, &words),
    );
}

pub(super) fn draw_reference(
    canvas: &mut Canvas<'_>,
    reference: &Reference,
    places: &Places,
    top: f32,
) {
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
        canvas.bed((rank, &below));
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

//! Draws a matrix as a grid of numbers: tinted by GPU, with names, and with what is lit.

use super::cluster::{LABEL, LABEL_SIZE, Placed};
use super::draw::Pen;
use super::step::{Share, Tile};
use crate::scene::canvas::Type;
use crate::scene::colour::Colour;
use crate::scene::fonts::Weight;
use crate::scene::shape::{Anchor, Point, Quad, Rect, Stroke};
use crate::scene::tokens::Palette;

/// How much of a GPU's colour is in its cells, and in those that are lit.
const TINT: f32 = 0.3;
const LIT: f32 = 0.62;

/// The colour of a GPU, of Okabe and Ito's.
pub(super) fn colour_of(palette: &Palette, gpu: usize) -> Colour {
    let all = [
        palette.forward,
        palette.weight_grad,
        palette.send,
        palette.backward,
    ];
    all[gpu % all.len()]
}

/// What of a tile is lit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Light {
    None,
    Row(usize),
    Past(usize),
    Column(usize),
    Cell(usize, usize),
}

impl Light {
    fn holds(self, row: usize, column: usize) -> bool {
        match self {
            Self::None => false,
            Self::Row(own) => row == own,
            Self::Past(own) => row == own && column <= own,
            Self::Column(own) => column == own,
            Self::Cell(own, other) => (row, column) == (own, other),
        }
    }
}

impl Pen<'_> {
    /// Where a tile will be.
    pub(super) fn outline(&mut self, placed: &Placed<'_>) {
        self.title(placed);
        let rect = placed.bounds();
        self.frame(
            rect,
            Stroke {
                width: 1.0,
                colour: self.palette.divider,
                dash: Some(self.em * 0.3),
            },
        );
    }

    pub(super) fn tile(&mut self, placed: &Placed<'_>, state: (usize, Light)) {
        self.title(placed);
        self.labels(placed);
        self.owners(placed);
        self.cells(placed, placed.cells, state);
    }

    /// The name, a raised `T` for transposed, and the shape if it has room.
    fn title(&mut self, placed: &Placed<'_>) {
        let (em, palette) = (self.em, self.palette);
        let style = Type::semi_bold(em * 1.05, palette.text);
        let names = if placed.labels[1] && !placed.tile.columns.is_empty() {
            LABEL
        } else {
            0.0
        };
        let y = placed.cells.y - em * (names + 0.45);
        let mut x = placed.cells.x;
        for (index, part) in placed.tile.name.split('ᵀ').enumerate() {
            if index > 0 {
                let raised = Type::semi_bold(em * 0.72, palette.text);
                self.canvas
                    .text(Point::new(x, y - em * 0.38), Anchor::Start, raised, "T");
                x += raised.width("T");
            }
            self.canvas
                .text(Point::new(x, y), Anchor::Start, style, part);
            x += style.width(part);
        }
        let weak = Type::regular(em * LABEL_SIZE, palette.text_weak);
        let shape = placed.tile.shape();
        if x + em * 0.5 + weak.width(&shape) <= placed.bounds().right() {
            let at = Point::new(placed.bounds().right(), y);
            self.canvas.text(at, Anchor::End, weak, shape);
        }
    }

    /// Names of rows and columns.
    fn labels(&mut self, placed: &Placed<'_>) {
        let style = Type::regular(self.em * LABEL_SIZE, self.palette.text_weak);
        let [rows, columns] = placed.labels;
        for (row, name) in placed.tile.rows.iter().enumerate().filter(|_| rows) {
            let cell = placed.cell(row, 0);
            let at = Point::new(cell.x - self.em * 0.4, cell.centre().y);
            self.canvas
                .text_at_middle(at, Anchor::End, style, name.as_str());
        }
        for (column, name) in placed.tile.columns.iter().enumerate().filter(|_| columns) {
            let cell = placed.cell(0, column);
            let at = Point::new(cell.centre().x, cell.y - self.em * 0.62);
            self.canvas
                .text_at_middle(at, Anchor::Middle, style, name.as_str());
        }
    }

    /// Under columns or beside rows of a whole matrix, the GPUs to which they go.
    fn owners(&mut self, placed: &Placed<'_>) {
        let (rows, columns) = placed.tile.matrix.shape();
        let (gpus, across) = match placed.tile.share {
            Share::ByColumns(gpus) => (gpus, true),
            Share::ByRows(gpus) => (gpus, false),
            Share::Whole | Share::Piece(_) | Share::Partial(_) => return,
        };
        let bounds = placed.bounds();
        for gpu in 0..gpus {
            let style = Type::semi_bold(self.em * LABEL_SIZE, self.palette.text);
            let tint = colour_of(self.palette, gpu);
            let thick = self.em * 0.22;
            let (bar, at) = if across {
                let from = placed.cell(0, gpu * columns / gpus).x;
                let to = placed.cell(0, ((gpu + 1) * columns / gpus) - 1).right();
                let bar = Rect::new(from + 1.0, bounds.bottom() + 2.0, to - from - 2.0, thick);
                (
                    bar,
                    Point::new(bar.centre().x, bar.bottom() + self.em * 0.55),
                )
            } else {
                let from = placed.cell(gpu * rows / gpus, 0).y;
                let to = placed.cell(((gpu + 1) * rows / gpus) - 1, 0).bottom();
                let bar = Rect::new(bounds.right() + 2.0, from + 1.0, thick, to - from - 2.0);
                (
                    bar,
                    Point::new(bar.right() + self.em * 0.45, bar.centre().y),
                )
            };
            self.canvas.quad(Quad::new(bar, tint));
            let long = format!("GPU {gpu}");
            let words = if across && style.width(&long) < bar.width {
                long
            } else {
                gpu.to_string()
            };
            self.canvas.text_at_middle(at, Anchor::Middle, style, words);
        }
    }

    /// The numbers with their grounds, with the top left at `at`.
    pub(super) fn cells(&mut self, placed: &Placed<'_>, at: Point, (shown, light): (usize, Light)) {
        let (rows, columns) = placed.tile.matrix.shape();
        let by = Point::new(at.x - placed.cells.x, at.y - placed.cells.y);
        let moved = |rect: Rect| Rect::new(rect.x + by.x, rect.y + by.y, rect.width, rect.height);
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let there = row * columns + column < shown;
            self.cell(
                placed.tile,
                (row, column),
                moved(placed.cell(row, column)),
                there.then_some(light),
            );
        }
        let bounds = moved(placed.bounds());
        let partial = matches!(placed.tile.share, Share::Partial(_));
        let stroke = Stroke {
            width: if partial { 2.0 } else { 1.2 },
            colour: if partial {
                self.palette.all_reduce_tp
            } else {
                self.palette.text_weak
            },
            dash: partial.then_some(self.em * 0.35),
        };
        self.frame(bounds, stroke);
        self.lit_frame(placed.tile, light, |row, column| {
            moved(placed.cell(row, column))
        });
    }

    /// A cell, whose number is there already or not.
    fn cell(
        &mut self,
        tile: &Tile,
        (row, column): (usize, usize),
        rect: Rect,
        light: Option<Light>,
    ) {
        let palette = self.palette;
        let Some(light) = light else {
            self.canvas.quad(Quad::new(rect.grown(-0.5), palette.track));
            return;
        };
        let lit = light.holds(row, column);
        let share = if lit { LIT } else { TINT };
        let ground = palette.background;
        let fill = match tile.owner(row, column) {
            Some(gpu) => ground.mixed(colour_of(palette, gpu), share),
            None if lit => palette.raised.mixed(palette.text_weak, 0.4),
            None => palette.raised,
        };
        self.canvas.quad(Quad::new(rect.grown(-0.5), fill));
        let weight = if lit {
            Weight::SemiBold
        } else {
            Weight::Regular
        };
        let style = Type {
            size: self.em,
            weight,
            colour: palette.text_on(fill),
        };
        let text = tile.matrix.text(row, column);
        self.canvas
            .text_at_middle(rect.centre(), Anchor::Middle, style, text);
    }

    /// A line around what is lit.
    fn lit_frame(&mut self, tile: &Tile, light: Light, cell: impl Fn(usize, usize) -> Rect) {
        let (rows, columns) = tile.matrix.shape();
        let (last_row, last_column) = (rows.saturating_sub(1), columns.saturating_sub(1));
        let (from, to) = match light {
            Light::None => return,
            Light::Row(row) => (cell(row, 0), cell(row, last_column)),
            Light::Past(row) => (cell(row, 0), cell(row, row.min(last_column))),
            Light::Column(column) => (cell(0, column), cell(last_row, column)),
            Light::Cell(row, column) => (cell(row, column), cell(row, column)),
        };
        let rect = Rect::new(from.x, from.y, to.right() - from.x, to.bottom() - from.y);
        let stroke = Stroke::solid((self.em * 0.14).max(2.0), self.palette.selected);
        self.canvas
            .quad(Quad::new(rect, Colour::CLEAR).outlined(stroke));
    }

    fn frame(&mut self, rect: Rect, stroke: Stroke) {
        let corners = [
            Point::new(rect.x, rect.y),
            Point::new(rect.right(), rect.y),
            Point::new(rect.right(), rect.bottom()),
            Point::new(rect.x, rect.bottom()),
        ];
        for (index, corner) in corners.iter().enumerate() {
            self.canvas.line(*corner, corners[(index + 1) % 4], stroke);
        }
    }
}

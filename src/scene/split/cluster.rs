//! Tiles that stand together: measured at any text size, and put side by side.

use super::step::{Form, Group, Share, Tile};
use crate::scene::fonts::{Weight, width};
use crate::scene::shape::{Point, Rect, Size};

/// Heights and distances, in text sizes.
const ROW: f32 = 1.5;
const NAME: f32 = 1.5;
pub(super) const LABEL: f32 = 1.35;
const CELL_AIR: f32 = 0.5;
const LEAST_CELL: f32 = 1.5;
const GAP: f32 = 1.0;
const SIGN: f32 = 1.8;
const BETWEEN_GROUPS: f32 = 2.0;
/// The line under two matrices that says how far they differ.
const VERDICT: f32 = 2.0;
const VERDICT_WIDTH: f32 = 9.5;
/// Names of rows and columns are as large as numbers: they too are read from afar.
pub(super) const LABEL_SIZE: f32 = 1.0;

/// On what a tile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Above,
    Gpu(usize),
    Band,
}

/// A tile in its place.
#[derive(Clone, Debug)]
pub(super) struct Placed<'a> {
    pub(super) place: Place,
    pub(super) group: usize,
    pub(super) slot: usize,
    pub(super) tile: &'a Tile,
    /// The top left of its cells.
    pub(super) cells: Point,
    pub(super) widths: Vec<f32>,
    pub(super) row: f32,
    /// Whether names of rows and of columns are drawn.
    pub(super) labels: [bool; 2],
}

impl Placed<'_> {
    /// Where a cell is.
    pub(super) fn cell(&self, row: usize, column: usize) -> Rect {
        let before: f32 = self.widths.iter().take(column).sum();
        let own = self.widths.get(column).copied().unwrap_or(0.0);
        Rect::new(
            self.cells.x + before,
            self.cells.y + row as f32 * self.row,
            own,
            self.row,
        )
    }

    /// All its cells.
    pub(super) fn bounds(&self) -> Rect {
        let rows = self.tile.matrix.shape().0 as f32;
        Rect::new(
            self.cells.x,
            self.cells.y,
            self.widths.iter().sum(),
            rows * self.row,
        )
    }

    fn moved(&mut self, by: Point) {
        self.cells.x += by.x;
        self.cells.y += by.y;
    }
}

/// A sign between tiles, around a point.
#[derive(Clone, Debug)]
pub(super) struct Between {
    pub(super) at: Point,
    pub(super) words: String,
}

/// Groups side by side, at a text size.
#[derive(Debug, Default)]
pub(super) struct Cluster<'a> {
    pub(super) tiles: Vec<Placed<'a>>,
    pub(super) signs: Vec<Between>,
    pub(super) size: Size,
}

impl<'a> Cluster<'a> {
    pub(super) fn of(place: Place, groups: &'a [Group], em: f32) -> Self {
        let mut all = Self::default();
        for (index, group) in groups.iter().enumerate() {
            let mut own = Self::of_group(group, em);
            for tile in &mut own.tiles {
                (tile.place, tile.group) = (place, index);
            }
            let gap = if index == 0 { 0.0 } else { BETWEEN_GROUPS * em };
            all.add(own, Point::new(all.size.width + gap, 0.0));
        }
        all
    }

    fn add(&mut self, mut other: Self, at: Point) {
        other.moved(at);
        self.size.width = self.size.width.max(at.x + other.size.width);
        self.size.height = self.size.height.max(at.y + other.size.height);
        self.tiles.append(&mut other.tiles);
        self.signs.append(&mut other.signs);
    }

    pub(super) fn moved(&mut self, by: Point) {
        self.tiles.iter_mut().for_each(|tile| tile.moved(by));
        for sign in &mut self.signs {
            sign.at = Point::new(sign.at.x + by.x, sign.at.y + by.y);
        }
    }

    fn of_group(group: &'a Group, em: f32) -> Self {
        match &group.form {
            Form::Product => product(&group.tiles, em),
            Form::Each(how, _) => in_a_row(&group.tiles, em, |_| Some(format!("{how}\n→"))),
            Form::Tiles => in_a_row(&group.tiles, em, |_| None),
            Form::Join(sign) => {
                let last = group.tiles.len().saturating_sub(2);
                in_a_row(&group.tiles, em, |index| {
                    Some(if index == last { "=" } else { sign.text() }.to_owned())
                })
            }
            Form::Pair => stacked(&group.tiles, em),
        }
    }
}

/// What a tile takes besides its cells: left, top, right, bottom.
fn margins(tile: &Tile, [rows, columns]: [bool; 2], em: f32) -> [f32; 4] {
    let label = |text: &String| width(text, em * LABEL_SIZE, Weight::Regular);
    let left = if rows && !tile.rows.is_empty() {
        tile.rows.iter().map(label).fold(0.0, f32::max) + 0.5 * em
    } else {
        0.0
    };
    let names = columns && !tile.columns.is_empty();
    let top = NAME * em + if names { LABEL * em } else { 0.0 };
    let right = if matches!(tile.share, Share::ByRows(_)) {
        1.3 * em
    } else {
        0.0
    };
    let bottom = if matches!(tile.share, Share::ByColumns(_)) {
        LABEL * em
    } else {
        0.0
    };
    [left, top, right, bottom]
}

/// How wide its columns are.
fn widths(tile: &Tile, columns: bool, em: f32) -> Vec<f32> {
    let (rows, count) = tile.matrix.shape();
    let widest = |column: usize| {
        let number = |row: usize| width(&tile.matrix.text(row, column), em, Weight::SemiBold);
        let numbers = (0..rows).map(number).fold(0.0, f32::max) + CELL_AIR * em;
        let name = tile
            .columns
            .get(column)
            .filter(|_| columns)
            .map_or(0.0, |name| {
                width(name, em * LABEL_SIZE, Weight::Regular) + 0.4 * em
            });
        numbers.max(name).max(LEAST_CELL * em)
    };
    (0..count).map(widest).collect()
}

/// A tile with its top left, labels included, at the origin.
pub(super) fn alone(tile: &Tile, slot: usize, em: f32) -> Cluster<'_> {
    let labels = [true, true];
    let [left, top, right, bottom] = margins(tile, labels, em);
    let widths = widths(tile, true, em);
    let cells: f32 = widths.iter().sum();
    let name = left + width(&tile.name, em * 1.05, Weight::SemiBold);
    let size = Size::new(
        (left + cells + right).max(name),
        top + tile.matrix.shape().0 as f32 * ROW * em + bottom,
    );
    let placed = Placed {
        place: Place::Above,
        group: 0,
        slot,
        tile,
        cells: Point::new(left, top),
        widths,
        row: ROW * em,
        labels,
    };
    Cluster {
        tiles: vec![placed],
        signs: Vec::new(),
        size,
    }
}

fn in_a_row(tiles: &[Tile], em: f32, sign: impl Fn(usize) -> Option<String>) -> Cluster<'_> {
    let mut all = Cluster::default();
    for (slot, tile) in tiles.iter().enumerate() {
        let mut at = all.size.width;
        if slot > 0 {
            let words = sign(slot - 1).unwrap_or_default();
            let lines = words
                .lines()
                .map(|line| width(line, em, Weight::SemiBold) + 0.8 * em);
            let room = lines
                .reduce(f32::max)
                .map_or(GAP * em, |room| room.max(SIGN * em));
            for (index, line) in words.lines().enumerate() {
                let y = NAME * em + ROW * em * (0.75 + 0.75 * index as f32);
                all.signs.push(Between {
                    at: Point::new(at + room / 2.0, y),
                    words: line.to_owned(),
                });
            }
            at += room;
        }
        all.add(alone(tile, slot, em), Point::new(at, 0.0));
    }
    all
}

fn stacked(tiles: &[Tile], em: f32) -> Cluster<'_> {
    let mut all = Cluster::default();
    for (slot, tile) in tiles.iter().enumerate() {
        let at = Point::new(0.0, all.size.height);
        all.add(alone(tile, slot, em), at);
    }
    // The verdict.
    all.size.height += VERDICT * em;
    all.size.width = all.size.width.max(VERDICT_WIDTH * em);
    all
}

/// Left, top, and the product in the corner between: a row of the one and a column of the other meet in its entry.
fn product(tiles: &[Tile], em: f32) -> Cluster<'_> {
    let [left, top, result] = tiles else {
        return in_a_row(tiles, em, |_| None);
    };
    let mut columns = widths(top, true, em);
    for (own, other) in columns.iter_mut().zip(widths(result, false, em)) {
        *own = own.max(other);
    }
    let [left_names, left_head, left_right, left_foot] = margins(left, [true, false], em);
    let [top_names, top_head, top_right, top_foot] = margins(top, [true, true], em);
    let [_, _, result_right, result_foot] = margins(result, [false, false], em);
    let left_widths = widths(left, false, em);
    let left_wide: f32 = left_names + left_widths.iter().sum::<f32>() + left_right;
    let x = (left_wide + GAP * em).max(top_names);
    let top_high = top_head + top.matrix.shape().0 as f32 * ROW * em + top_foot;
    let y = top_high + left_head;
    let wide: f32 = columns.iter().sum();
    let placed = |slot: usize, cells: Point, widths: Vec<f32>, labels: [bool; 2]| Placed {
        place: Place::Above,
        group: 0,
        slot,
        tile: &tiles[slot],
        cells,
        widths,
        row: ROW * em,
        labels,
    };
    let rows = result.matrix.shape().0 as f32 * ROW * em;
    let name = width(&result.name, em * 1.05, Weight::SemiBold);
    let right = top_right.max(result_right);
    Cluster {
        tiles: vec![
            placed(0, Point::new(left_names, y), left_widths, [true, false]),
            placed(1, Point::new(x, top_head), columns.clone(), [true, true]),
            placed(2, Point::new(x, y), columns, [false, false]),
        ],
        signs: Vec::new(),
        size: Size::new(
            x + (wide + right).max(name),
            y + rows + left_foot.max(result_foot),
        ),
    }
}

//! The timeline: every rank's passes, communication and memory over time, as shapes.

use std::cell::RefCell;
use std::rc::Rc;

use crate::trace::{LabelId, Lane, Span, Stream, Trace};
use crate::units::Nanos;

use super::canvas::{Canvas, Type};
use super::colour::Colour;
use super::density::{self, Cell, Colours};
use super::look::{Arrows, Hit, Look, Viewport};
use super::overview::Overview;
use super::rows::{Band, Rows, Track};
use super::scale::Scale;
use super::shape::{Anchor, Point, Quad, Rect, Scene, Stroke};
use super::tokens::Palette;
use super::{arrows, axis, blocks, folded, fonts, memory, names, traffic};

/// How far beside a thin span the pointer still finds it, in points.
const REACH: f32 = 3.0;

/// So many cells there are in all, as long as none is wider than two points.
const MOST_CELLS: usize = 72_000;

/// So many blocks are drawn one by one in all, as far as they are not so narrow, in points on average, that they merge in
/// any case, nor so wide that they never do.
const MOST_QUADS: usize = 6_400;
const NARROWEST: (usize, usize) = (3, 17);
/// In rows too low for names, blocks merge when they are narrower than this on average, in points.
const NAMELESS: usize = 20;

/// A trace laid out in a viewport. Cheap to make: drawing reads only what is visible.
#[derive(Debug)]
pub struct Timeline<'a> {
    pub(super) trace: &'a Trace,
    pub(super) overview: &'a Overview,
    pub(super) look: &'a Look,
    pub(super) rows: Rows,
    pub(super) scale: Scale,
    view: Viewport,
    plot: Rect,
    /// What blocks may be called, and how wide that is in ems: many blocks share a label.
    block_names: RefCell<Vec<Option<BlockNames>>>,
    cell_colours: RefCell<Vec<CellColours>>,
    /// The colour of each label's blocks where they are lit, and of what is written on them.
    block_colours: RefCell<Vec<Option<(Colour, Colour)>>>,
}

/// The colours of cells, for the colour of what moves, lit or not.
type CellColours = ((Colour, bool), Rc<Colours>);

/// Names, the longest first, with their widths in ems.
pub(super) type BlockNames = Rc<[(String, f32)]>;

/// A row being drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) rank_index: usize,
    /// Which of the rows it is.
    pub(super) index: usize,
    /// Where its top is in the scene.
    pub(super) top: f32,
}

impl<'a> Timeline<'a> {
    /// Lays out `trace`, of which `overview` is the overview.
    pub fn new(trace: &'a Trace, overview: &'a Overview, view: Viewport, look: &'a Look) -> Self {
        let top = axis::height(look.sizes);
        let rows = Rows::new(overview, look.sizes, (view.size.height - top).max(0.0));
        let names = names::column(trace, overview, (&rows, look.sizes)).max(look.common.names);
        let right = look.sizes.gap();
        let plot = Rect::new(
            names,
            top,
            (view.size.width - names - right).max(1.0),
            (view.size.height - top).max(0.0),
        );
        Self {
            trace,
            overview,
            look,
            scale: Scale::new(view.from, view.to, plot.x, plot.width),
            view: Viewport {
                scroll: view
                    .scroll
                    .clamp(0.0, (rows.height() - plot.height).max(0.0)),
                ..view
            },
            rows,
            plot,
            block_names: RefCell::default(),
            cell_colours: RefCell::default(),
            block_colours: RefCell::default(),
        }
    }

    /// What the blocks of a label may be called.
    pub(super) fn block_names(&self, id: LabelId) -> BlockNames {
        let mut known = self.block_names.borrow_mut();
        let place = id.0 as usize;
        if known.len() <= place {
            known.resize(self.trace.labels.len().max(place + 1), None);
        }
        let names = known[place].get_or_insert_with(|| {
            let names = blocks::names(self.trace.label(id)).into_iter();
            let wide = |name: &String| fonts::width(name, 1.0, fonts::Weight::SemiBold);
            names
                .map(|name| {
                    let width = wide(&name);
                    (name, width)
                })
                .collect()
        });
        Rc::clone(names)
    }

    /// Where the times on the axis stand.
    pub fn axis_labels(&self) -> impl Iterator<Item = Rect> {
        axis::labels(self)
    }

    /// The part in which spans are drawn: right of the names, under the axis.
    pub fn plot(&self) -> Rect {
        self.plot
    }

    /// The rows' layout.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Times and places.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// How high axis and rows are, whether they fit or scroll.
    pub fn content_height(&self) -> f32 {
        self.plot.y + self.rows.height()
    }

    /// How far the rows can be scrolled.
    pub fn max_scroll(&self) -> f32 {
        (self.rows.height() - self.plot.height).max(0.0)
    }

    /// The viewport, its scroll held to what there is.
    pub fn viewport(&self) -> Viewport {
        self.view
    }

    /// The viewport zoomed in by `factor` around `x`; never closer than a few nanoseconds.
    pub fn zoomed(&self, x: f32, factor: f64) -> Viewport {
        self.view.zoomed(self.scale.time(x), factor)
    }

    /// The viewport moved by `points` to the right; never before time zero.
    pub fn panned(&self, points: f32) -> Viewport {
        let shift = self.scale.duration_of(points.abs());
        let (from, to) = (self.scale.from, self.scale.to);
        let (from, to) = if points < 0.0 {
            let shift = shift.min(from);
            (from.since(shift), to.since(shift))
        } else {
            let later = |time: Nanos| Nanos(time.0.saturating_add(shift.0));
            (later(from), later(to))
        };
        Viewport {
            from,
            to,
            ..self.view
        }
    }

    /// The rank whose row is at `y`, by its place in [`Trace::ranks`].
    pub fn rank_at(&self, y: f32) -> Option<usize> {
        self.overview.lineup.first(self.row_at(y)?)
    }

    /// The row at `y`.
    pub fn row_at(&self, y: f32) -> Option<usize> {
        if y < self.plot.y || y >= self.plot.bottom() {
            return None;
        }
        let in_view = y - self.plot.y;
        let scroll = if in_view < self.pinned_height() {
            0.0
        } else {
            self.view.scroll
        };
        self.rows.at(in_view + scroll)
    }

    /// The rows of which some part lies between two heights, pinned ones among them.
    pub fn rows_between(&self, top: f32, bottom: f32) -> Vec<usize> {
        let within = |row: &usize| {
            let from = self.row_top(*row);
            // What scrolls is hidden under the pinned rows.
            let top = top.max(self.hidden_to(*row));
            from < bottom && from + self.rows.pitch > top
        };
        self.rows_in_view().filter(within).collect()
    }

    /// Down to where a row is hidden: under the pinned rows, if it is none of them.
    pub fn hidden_to(&self, row: usize) -> f32 {
        if row < self.overview.lineup.pinned {
            self.plot.y
        } else {
            self.plot.y + self.pinned_height()
        }
    }

    /// How high the rows are that do not scroll.
    fn pinned_height(&self) -> f32 {
        match self.overview.lineup.pinned {
            0 => 0.0,
            pinned if pinned < self.overview.lineup.len() => self.rows.top(pinned),
            _ => self.rows.height(),
        }
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.overview.lineup.len()
    }

    /// The ranks of a row, by place.
    pub fn members(&self, row: usize) -> &[usize] {
        self.overview.lineup.members(row)
    }

    /// Where the top of a rank's row is in the scene.
    pub fn row_top_of(&self, rank_index: usize) -> Option<f32> {
        let rank = self.trace.ranks.get(rank_index)?.rank;
        let row = self.overview.lineup.row(rank)?;
        let top = self.row_top(row);
        let hidden = self.hidden_to(row);
        (top + self.rows.pitch > hidden && top < self.plot.bottom()).then_some(top)
    }

    /// Where a row's top is in the scene.
    pub fn row_top(&self, row: usize) -> f32 {
        let scroll = if row < self.overview.lineup.pinned {
            0.0
        } else {
            self.view.scroll
        };
        self.plot.y + self.rows.top(row) - scroll
    }

    /// What is at a point of the scene.
    pub fn hit(&self, x: f32, y: f32) -> Option<Hit> {
        if !self.plot.contains(Point::new(x, y)) || self.scale.time(x) > self.until() {
            return None;
        }
        let row = self.row_at(y)?;
        // A folded row is the mean of several, and no one's spans are in it.
        let &[rank_index] = self.overview.lineup.members(row) else {
            return None;
        };
        let within = y - self.row_top(row);
        let found = |stream: Stream| {
            let span = *self.near(self.trace.lane(rank_index, stream), x)?;
            Some(Hit {
                rank_index,
                stream,
                span,
            })
        };
        if self.rows.block.contains(within) {
            return found(Stream::Passes).or_else(|| found(Stream::Compute));
        }
        let (track, band) = self
            .rows
            .tracks
            .iter()
            .find(|(_, band)| band.contains(within))?;
        let lower = within > band.top + band.height / 2.0;
        if lower && *track == Track::Sends && self.rows.sends_apart {
            return found(Stream::SendPrev);
        }
        // What is drawn last is on top.
        track
            .streams()
            .iter()
            .rev()
            .find_map(|&stream| found(stream))
    }

    /// The span of `lane` at `x`, or the nearest within reach.
    fn near<'b>(&self, lane: &'b Lane, x: f32) -> Option<&'b Span> {
        let time = self.scale.time(x);
        let seen = |span: &&Span| span.start < self.until();
        if let Some(span) = lane.at(time).filter(seen) {
            return Some(span);
        }
        let reach = self.scale.duration_of(REACH);
        let distance = |span: &&Span| span.start.since(time).max(time.since(span.end));
        lane.overlapping(time.since(reach), Nanos(time.0.saturating_add(reach.0)))
            .take(64)
            .filter(seen)
            .min_by_key(distance)
            .filter(|span| self.scale.width_of(span.duration()) < REACH)
    }

    /// The shapes.
    pub fn scene(&self) -> Scene {
        let size = self.view.size;
        let palette = self.palette();
        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, size.width, size.height));
        axis::draw(self, &mut canvas);
        let pinned = self.pinned_height();
        let whole = Rect::new(0.0, self.plot.y, size.width, self.plot.height);
        let below = Rect::new(
            0.0,
            whole.y + pinned,
            size.width,
            (whole.height - pinned).max(0.0),
        );
        for row in self.visible_rows() {
            let scrolls = row.index >= self.overview.lineup.pinned;
            canvas.clip_to(if scrolls { below } else { whole });
            self.draw_row(row, &mut canvas);
        }
        canvas.clip_to(whole);
        self.draw_dividers(&mut canvas);
        if self.look.arrows == Arrows::Shown {
            canvas.clip_to(if pinned > 0.0 { below } else { whole });
            arrows::draw(self, &mut canvas);
            canvas.clip_to(whole);
        }
        for (hit, width) in [(self.look.hovered, 1.5), (self.look.selected, 2.5)] {
            if let Some(rect) = hit.and_then(|hit| self.rect_of(&hit)) {
                let stroke = Stroke::solid(width, palette.selected);
                canvas.quad(
                    Quad::new(rect, Colour::CLEAR)
                        .rounded(self.look.sizes.radius())
                        .outlined(stroke),
                );
            }
        }
        canvas.clip_to(Rect::new(0.0, 0.0, size.width, size.height));
        axis::draw_playhead(self, &mut canvas);
        Scene {
            size,
            background: palette.background,
            shapes: canvas.into_shapes(),
        }
    }

    /// Says so if there is not room for all ranks; its right end is `at`.
    pub(super) fn draw_note(&self, at: Point, canvas: &mut Canvas) {
        if self.max_scroll() <= 0.0 {
            return;
        }
        let shown = self.rows.between(0.0, self.plot.height).len();
        let all = self.overview.lineup.len();
        let style = Type::regular(self.look.sizes.small(), self.palette().text_weak);
        let what = if self.trace.tracks.is_empty() {
            "GPUs"
        } else {
            "rows"
        };
        let note = format!("the first {shown} of {all} {what}");
        canvas.text(at, Anchor::End, style, note);
    }

    fn draw_row(&self, row: Row, canvas: &mut Canvas) {
        names::draw(self, row, canvas);
        if self.overview.lineup.members(row.index).len() > 1 {
            folded::draw(self, row, canvas);
            return;
        }
        blocks::draw(self, row, canvas);
        traffic::draw(self, row, canvas);
        memory::draw(self, row, canvas);
    }

    /// A lane's cells where it has too many spans to draw them one by one: when they are narrow, or there are many rows.
    pub(super) fn cells(&self, rank_index: usize, stream: Stream) -> Option<Vec<Cell>> {
        let columns = (self.scale.right() - self.scale.left()) as usize;
        let rows = (self.plot.height / self.rows.pitch.max(1.0)) as usize;
        let of_a_row = MOST_QUADS / rows.max(1);
        let most = of_a_row.clamp(columns / NARROWEST.1, columns / NARROWEST.0);
        // Where blocks are too low for a name, there is nothing to be read on them.
        let most = if self.has_names() {
            most
        } else {
            most.min(columns / NAMELESS)
        };
        self.cells_beyond(rank_index, stream, most)
    }

    /// Whether blocks are high enough for their names.
    pub(super) fn has_names(&self) -> bool {
        self.rows.block.height * blocks::NAME >= self.look.sizes.body * blocks::SMALLEST_NAME
    }

    /// How many cells a row has: one a point, or one for two where rows are many and low.
    fn columns(&self) -> usize {
        let points = (self.scale.right() - self.scale.left()).round() as usize;
        let rows = (self.plot.height / self.rows.pitch.max(1.0)).ceil() as usize;
        let wide = if points * rows > MOST_CELLS { 2 } else { 1 };
        points.div_ceil(wide)
    }

    /// A lane's cells, however many spans it has.
    pub(super) fn every_cell(&self, rank_index: usize, stream: Stream) -> Vec<Cell> {
        self.cells_beyond(rank_index, stream, 0).unwrap_or_default()
    }

    fn cells_beyond(&self, rank_index: usize, stream: Stream, most: usize) -> Option<Vec<Cell>> {
        let place = rank_index * Stream::ALL.len() + stream as usize;
        let density = self.overview.index.densities.get(place);
        let lane = self.trace.lane(rank_index, stream);
        density::cells(
            lane,
            density,
            (&self.scale, self.until(), (most, self.columns())),
            &self.overview.index.classes,
        )
    }

    /// The colour of a label's blocks where they are lit, and of what is written on them, found once for all blocks.
    pub(super) fn block_colour(
        &self,
        id: LabelId,
        find: impl FnOnce() -> Colour,
    ) -> (Colour, Colour) {
        let mut known = self.block_colours.borrow_mut();
        let place = id.0 as usize;
        if known.len() <= place {
            known.resize(self.trace.labels.len().max(place + 1), None);
        }
        *known[place].get_or_insert_with(|| {
            let colour = find();
            (colour, self.palette().text_on(colour))
        })
    }

    /// The colours of cells, made once for all rows.
    fn colours(&self, moving: Colour, lit: bool) -> Rc<Colours> {
        let mut known = self.cell_colours.borrow_mut();
        let found = known.iter().find(|(of, ..)| *of == (moving, lit));
        if let Some((_, colours)) = found {
            return Rc::clone(colours);
        }
        let colours = Rc::new(Colours::new(self.palette(), moving, lit));
        known.push(((moving, lit), Rc::clone(&colours)));
        colours
    }

    /// Cells over the plot, what moves in the colour `moving`.
    pub(super) fn draw_cells(
        &self,
        rank_index: usize,
        (band, moving): (Band, Colour),
        cells: &[Cell],
        canvas: &mut Canvas,
    ) {
        let lit = self.look.lit.gap(self.trace.ranks[rank_index].rank);
        let colours = self.colours(moving, lit);
        let mut known = (Cell::default(), colours.of(Cell::default()));
        let colour = |cell: &Cell| {
            if *cell != known.0 {
                known = (*cell, colours.of(*cell));
            }
            known.1
        };
        let width = self.scale.right() - self.scale.left();
        let rect = Rect::new(self.scale.left(), band.top, width, band.height);
        canvas.cells(rect, cells.iter().map(colour).collect());
    }

    fn draw_dividers(&self, canvas: &mut Canvas) {
        if !self.rows.grouped() {
            return;
        }
        let rows = self.rows_in_view();
        let groups = &self.overview.lineup.groups;
        for row in rows.filter(|&row| row > 0 && groups[row] != groups[row - 1]) {
            let first = row == self.overview.lineup.pinned;
            // Under the pinned rows it stays where it is.
            let top = if first {
                self.plot.y + self.rows.top(row)
            } else {
                self.row_top(row)
            };
            let y = top - self.rows.group_gap / 2.0;
            if !first && y < self.hidden_to(row) {
                continue;
            }
            let from = Point::new(0.0, y);
            let to = Point::new(self.plot.right(), y);
            canvas.line(from, to, Stroke::solid(1.0, self.palette().divider));
        }
    }

    fn rows_in_view(&self) -> impl Iterator<Item = usize> {
        let (pinned, top) = (self.overview.lineup.pinned, self.view.scroll);
        let scrolled = self
            .rows
            .between(top + self.pinned_height(), top + self.plot.height);
        (0..pinned).chain(scrolled.filter(move |&row| row >= pinned))
    }

    fn visible_rows(&self) -> impl Iterator<Item = Row> {
        self.rows_in_view().filter_map(|row| {
            Some(Row {
                rank_index: self.overview.lineup.first(row)?,
                index: row,
                top: self.row_top(row),
            })
        })
    }

    /// Where a height within the rows is in the scene.
    pub(super) fn y(&self, in_rows: f32) -> f32 {
        self.plot.y + in_rows - self.view.scroll
    }

    pub(super) fn palette(&self) -> &'static Palette {
        self.look.theme.palette()
    }

    pub(super) fn until(&self) -> Nanos {
        self.look.until.unwrap_or(Nanos(u64::MAX))
    }

    /// The place of a band between two times.
    pub(super) fn rect(&self, band: Band, from: Nanos, to: Nanos) -> Rect {
        let left = self.scale.x(from);
        let right = self.scale.x(to.min(self.until()));
        Rect::new(left, band.top, right - left, band.height)
    }

    /// Where something that was hit is drawn now.
    pub fn rect_of(&self, hit: &Hit) -> Option<Rect> {
        let rank = self.trace.ranks.get(hit.rank_index)?.rank;
        let row = self.overview.lineup.row(rank)?;
        let single = self.overview.lineup.members(row).len() == 1;
        let top = self.row_top(row);
        let visible = hit.span.end > self.scale.from && hit.span.start < self.scale.to;
        let band = match hit.stream {
            Stream::Passes | Stream::Compute => self.rows.block,
            Stream::Tp | Stream::Dp | Stream::SendNext | Stream::SendPrev => {
                traffic::band_of(&self.rows, hit.stream)?
            }
        };
        (visible && single)
            .then(|| {
                let rect = self.rect(band.moved(top), hit.span.start, hit.span.end);
                let cut = (self.hidden_to(row) - rect.y).clamp(0.0, rect.height);
                Rect {
                    y: rect.y + cut,
                    width: rect.width.max(traffic::LEAST_WIDTH),
                    height: rect.height - cut,
                    ..rect
                }
            })
            .filter(|rect| rect.height > 0.0)
    }
}

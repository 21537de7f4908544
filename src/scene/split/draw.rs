//! Draws a step: boxes of GPUs, matrices as grids of numbers, what is lit, and what is on its way.

use super::Story;
use super::cluster::{Place, Placed};
use super::grid::{Light, colour_of};
use super::layout::{LINE, Layout, PAD, broken};
use super::matrix::small;
use super::step::{Action, Form, Group, Reach, Share, Step};
use crate::scene::canvas::{Canvas, Type};
use crate::scene::colour::Colour;
use crate::scene::look::Look;
use crate::scene::shape::{Anchor, Point, Quad, Rect, Scene, Size, Stroke};
use crate::scene::tokens::Palette;

/// Until then a collective's parts are on their way, and until then they are joined; then the result goes back.
const MET: f32 = 0.3;
const JOINED: f32 = 0.75;

/// A moment of a story.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Which step, from 0.
    pub step: usize,
    /// How far it has gone, from 0 to 1.
    pub progress: f32,
}

impl Moment {
    /// The moment at which an entry of the step's results is computed.
    pub fn of_entry(step: (usize, &Step), entry: usize) -> Self {
        let (index, step) = step;
        let share = (entry as f32 + 0.5) / step.entries().max(1) as f32;
        let progress = match step.picture.action {
            Action::Collect => MET + (JOINED - MET) * share,
            Action::Still | Action::HandOut | Action::Work => share,
        };
        Self {
            step: index,
            progress,
        }
    }

    /// The entry that is being computed in it, of as many as the longest result has; the last one at the end.
    pub fn entry(&self, step: &Step) -> Option<usize> {
        let entries = step.entries();
        let last = entries.checked_sub(1)?;
        let share = joined(step, self.progress)?;
        Some(((share * entries as f32) as usize).min(last))
    }
}

/// How much of the step's computing is done; nothing while its parts are still on their way.
fn joined(step: &Step, progress: f32) -> Option<f32> {
    match step.picture.action {
        Action::Still | Action::HandOut => None,
        Action::Work => Some(progress),
        Action::Collect if progress < MET => None,
        Action::Collect => Some(((progress - MET) / (JOINED - MET)).min(1.0)),
    }
}

/// The picture of a moment.
pub fn scene(story: &Story, moment: Moment, size: Size, look: &Look) -> Scene {
    let palette = look.theme.palette();
    let room = Rect::new(0.0, 0.0, size.width, size.height);
    let mut canvas = Canvas::new(room);
    let step = story.steps().get(moment.step).or(story.steps().last());
    if let Some(step) = step {
        let layout = Layout::new(step, size, look.sizes);
        let mut pen = Pen {
            em: layout.em,
            palette,
            step,
            layout: &layout,
            progress: moment.progress.clamp(0.0, 1.0),
            canvas: &mut canvas,
        };
        pen.draw();
    }
    Scene {
        size,
        background: palette.background,
        shapes: canvas.into_shapes(),
    }
}

pub(super) struct Pen<'a> {
    pub(super) em: f32,
    pub(super) palette: &'a Palette,
    step: &'a Step,
    layout: &'a Layout<'a>,
    progress: f32,
    pub(super) canvas: &'a mut Canvas,
}

impl Pen<'_> {
    fn draw(&mut self) {
        let layout = self.layout;
        for (gpu, frame) in layout.boxes.iter().enumerate() {
            self.gpu(gpu, *frame);
        }
        if let Some(frame) = layout.band {
            self.band(frame);
        }
        for sign in &layout.signs {
            let style = Type::semi_bold(self.em, self.palette.text_weak);
            self.canvas
                .text_at_middle(sign.at, Anchor::Middle, style, sign.words.as_str());
        }
        let is_over = |tile: &&Placed<'_>| self.on_its_way(tile);
        let (over, under): (Vec<_>, Vec<_>) = layout.tiles.iter().partition(is_over);
        for placed in under.into_iter().chain(over) {
            self.in_place(placed);
        }
        self.workings();
    }

    fn group_of(&self, placed: &Placed<'_>) -> Option<&Group> {
        let picture = &self.step.picture;
        match placed.place {
            Place::Above => picture.above.get(placed.group),
            Place::Gpu(gpu) => picture.gpus.get(gpu)?.get(placed.group),
            Place::Band => picture.band.as_ref().map(|band| &band.group),
        }
    }

    fn gpu(&mut self, gpu: usize, frame: Rect) {
        let (em, palette) = (self.em, self.palette);
        let tint = colour_of(palette, gpu);
        let quad = Quad::new(frame.grown(-1.0), palette.panel)
            .rounded(em * 0.4)
            .outlined(Stroke::solid(2.0, tint));
        self.canvas.quad(quad);
        let name = format!("GPU {gpu}");
        self.chip(
            &name,
            Point::new(frame.x + PAD * em, frame.y + em * 0.95),
            tint,
        );
    }

    /// A name on a ground of `tint`, its left edge and its middle at `at`.
    fn chip(&mut self, name: &str, at: Point, tint: Colour) {
        let em = self.em;
        let style = Type::semi_bold(em, self.palette.text_on(tint));
        let wide = style.width(name) + em * 0.8;
        let rect = Rect::new(at.x, at.y - em * 0.68, wide, em * 1.36);
        self.canvas.quad(Quad::new(rect, tint).rounded(em * 0.3));
        self.canvas
            .text_at_middle(rect.centre(), Anchor::Middle, style, name);
    }

    fn band(&mut self, frame: Rect) {
        let (em, palette) = (self.em, self.palette);
        let tint = palette.all_reduce;
        let quad = Quad::new(frame.grown(-1.0), palette.panel)
            .rounded(em * 0.4)
            .outlined(Stroke::solid(2.0, tint));
        self.canvas.quad(quad);
        let words = self
            .step
            .traffic()
            .map_or_else(String::new, |traffic| traffic.words());
        self.chip(
            &words,
            Point::new(frame.x + PAD * em, frame.y + em * 0.95),
            tint,
        );
        // Which way things go: to the band until all have met, back from it at last.
        let boxes = self.layout.boxes.clone();
        for place in boxes {
            let x = place.right() - em * 2.0;
            let (top, bottom) = (Point::new(x, place.bottom()), Point::new(x, frame.y));
            self.canvas
                .line(top, bottom, Stroke::solid(em * 0.16, tint));
            if self.progress < JOINED || self.progress >= 1.0 {
                self.head(bottom, 1.0, tint);
            }
            if self.progress >= JOINED {
                self.head(top, -1.0, tint);
            }
        }
    }

    /// An arrow's head, down or up.
    fn head(&mut self, tip: Point, down: f32, tint: Colour) {
        let (wide, long) = (self.em * 0.4, self.em * 0.65 * down);
        let points = vec![
            tip,
            Point::new(tip.x - wide, tip.y - long),
            Point::new(tip.x + wide, tip.y - long),
        ];
        self.canvas.polygon(points, tint);
    }

    /// Whether a tile moves, and so lies over all others.
    fn on_its_way(&self, placed: &Placed<'_>) -> bool {
        match (self.step.picture.action, placed.place) {
            (Action::HandOut, Place::Gpu(_)) => self.progress < 1.0,
            (Action::Collect, Place::Gpu(_)) => placed.group == 1 && self.progress < 1.0,
            (Action::Collect, Place::Band) => self.progress < MET,
            _ => false,
        }
    }

    /// A tile where it is in this moment.
    fn in_place(&mut self, placed: &Placed<'_>) {
        match self.step.picture.action {
            Action::Still => self.tile(placed, (usize::MAX, Light::None)),
            Action::Work => self.working_tile(placed),
            Action::HandOut => self.handed_out(placed),
            Action::Collect => self.collected(placed),
        }
    }

    /// A tile of a computation: what is computed already, and what is lit.
    fn working_tile(&mut self, placed: &Placed<'_>) {
        let state = self
            .group_of(placed)
            .map(|group| self.state(group, placed.slot));
        self.tile(placed, state.unwrap_or((usize::MAX, Light::None)));
    }

    /// How many entries of a tile are there, and what of it is lit.
    fn state(&self, group: &Group, slot: usize) -> (usize, Light) {
        let all = usize::MAX;
        let Some((row, column)) = self.entry_of(group) else {
            let done = joined(self.step, self.progress).is_some() || group.result() != Some(slot);
            return (if done { all } else { 0 }, Light::None);
        };
        let columns = group.tiles.last().map_or(1, |tile| tile.matrix.shape().1);
        if group.result() == Some(slot) {
            let shown = if self.progress >= 1.0 {
                all
            } else {
                row * columns + column + 1
            };
            return (shown, Light::Cell(row, column));
        }
        let light = match (&group.form, slot) {
            (Form::Product, 0) | (Form::Each(_, Reach::Row), _) => Light::Row(row),
            (Form::Product, _) => Light::Column(column),
            (Form::Each(_, Reach::Past), _) => Light::Past(row),
            (Form::Each(_, Reach::Entry) | Form::Join(_), _) => Light::Cell(row, column),
            (Form::Tiles | Form::Pair, _) => Light::None,
        };
        (all, light)
    }

    /// The entry of a group's result that is being computed.
    fn entry_of(&self, group: &Group) -> Option<(usize, usize)> {
        let result = group.tiles.get(group.result()?)?;
        let share = joined(self.step, self.progress)?;
        let count = result.matrix.len();
        let columns = result.matrix.shape().1.max(1);
        let entry = ((share * count as f32) as usize).min(count.checked_sub(1)?);
        Some((entry / columns, entry % columns))
    }

    /// A piece on its way from the whole to its GPU.
    fn handed_out(&mut self, placed: &Placed<'_>) {
        let Place::Gpu(gpu) = placed.place else {
            return self.tile(placed, (usize::MAX, Light::None));
        };
        let from = self
            .layout
            .find(Place::Above, placed.group, placed.slot)
            .map(|whole| corner_of(whole, gpu));
        self.flown(placed, from, self.progress);
    }

    fn collected(&mut self, placed: &Placed<'_>) {
        let (gathers, progress) = (self.gathers(), self.progress);
        let back = (progress - JOINED) / (1.0 - JOINED);
        match (placed.place, placed.group) {
            (Place::Gpu(_), 1) => {
                let band = self.step.picture.band.as_ref();
                let last = band.map_or(0, |band| band.group.tiles.len().saturating_sub(1));
                let from = self
                    .layout
                    .find(Place::Band, 0, last)
                    .map(|tile| tile.cells);
                if progress >= JOINED {
                    self.flown(placed, from, back);
                }
            }
            (Place::Gpu(gpu), _) => {
                if progress < 1.0 {
                    self.tile(placed, (usize::MAX, Light::None));
                }
                let to = if gathers {
                    self.layout
                        .find(Place::Band, 0, 0)
                        .map(|whole| corner_of(whole, gpu))
                } else {
                    self.layout.find(Place::Band, 0, gpu).map(|tile| tile.cells)
                };
                if let Some(to) = to.filter(|_| progress < MET && progress > 0.0) {
                    let at = between(placed.cells, to, progress / MET);
                    self.cells(placed, at, (usize::MAX, Light::None));
                }
            }
            (Place::Band | Place::Above, _) if progress < MET => self.outline(placed),
            (Place::Band | Place::Above, _) if gathers => {
                self.tile(placed, (usize::MAX, Light::None));
            }
            (Place::Band | Place::Above, _) => self.working_tile(placed),
        }
    }

    fn gathers(&self) -> bool {
        let band = self.step.picture.band.as_ref();
        band.is_some_and(|band| band.group.form == Form::Tiles)
    }

    /// A tile that comes from elsewhere; its place is kept free for it.
    fn flown(&mut self, placed: &Placed<'_>, from: Option<Point>, share: f32) {
        match from.filter(|_| share < 1.0) {
            None => self.tile(placed, (usize::MAX, Light::None)),
            Some(from) => {
                if self.step.picture.action == Action::HandOut {
                    self.outline(placed);
                }
                let at = between(from, placed.cells, share);
                self.cells(placed, at, (usize::MAX, Light::None));
            }
        }
    }

    /// How the entry that is lit comes about, and how far apart what is compared lies.
    fn workings(&mut self) {
        let picture = &self.step.picture;
        let layout = self.layout;
        for (groups, frame) in picture.gpus.iter().zip(&layout.boxes) {
            self.working(groups.first(), *frame);
        }
        if let Some((band, frame)) = picture.band.as_ref().zip(layout.band) {
            self.working(Some(&band.group), frame);
        }
        if let Some(room) = layout.above {
            self.working(picture.above.first(), room);
        }
        for (index, group) in picture.above.iter().enumerate() {
            if group.form == Form::Pair {
                self.verdict(index, group);
            }
        }
    }

    /// The working of a group's entry, at the foot of a frame.
    fn working(&mut self, group: Option<&Group>, frame: Rect) {
        let Some((group, (row, column))) =
            group.and_then(|group| Some((group, self.entry_of(group)?)))
        else {
            return;
        };
        let Some(working) = group.working(row, column) else {
            return;
        };
        let style = Type::semi_bold(self.em, self.palette.text);
        let room = frame.width - 2.0 * PAD * self.em;
        let fits = |lines: &usize| broken(&working, *lines).1 * self.em <= room;
        let lines = (1..=self.layout.lines)
            .find(fits)
            .unwrap_or(self.layout.lines);
        let (lines, _) = broken(&working, lines);
        let middle = frame.centre().x;
        let last = frame.bottom() - self.em;
        for (up, line) in lines.iter().rev().enumerate() {
            let at = Point::new(middle, last - up as f32 * LINE * self.em);
            self.canvas
                .text_at_middle(at, Anchor::Middle, style, line.as_str());
        }
    }

    /// Under two matrices that are compared, by how much they differ.
    fn verdict(&mut self, index: usize, group: &Group) {
        let pair = self.layout.find(Place::Above, index, 1);
        let (Some(placed), [ours, uncut]) = (pair, group.tiles.as_slice()) else {
            return;
        };
        let difference = ours.matrix.difference(&uncut.matrix);
        let words = format!("difference {}", small(difference));
        let style = Type::semi_bold(self.em, self.palette.success);
        let at = Point::new(placed.bounds().x, placed.bounds().bottom() + self.em * 1.1);
        self.canvas.text_at_middle(at, Anchor::Start, style, words);
    }
}

/// Where a GPU's piece of a whole matrix begins.
fn corner_of(whole: &Placed<'_>, gpu: usize) -> Point {
    let (rows, columns) = whole.tile.matrix.shape();
    let cell = match whole.tile.share {
        Share::ByColumns(gpus) => whole.cell(0, gpu * columns / gpus.max(1)),
        Share::ByRows(gpus) => whole.cell(gpu * rows / gpus.max(1), 0),
        Share::Whole | Share::Piece(_) | Share::Partial(_) => whole.cell(0, 0),
    };
    Point::new(cell.x, cell.y)
}

/// On the way from one place to another, slow at both ends.
fn between(from: Point, to: Point, share: f32) -> Point {
    let share = share.clamp(0.0, 1.0);
    let eased = share * share * (3.0 - 2.0 * share);
    Point::new(
        from.x + (to.x - from.x) * eased,
        from.y + (to.y - from.y) * eased,
    )
}

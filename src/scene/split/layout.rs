//! Where everything of a step lies: measured at a text size of 1 in some arrangements, of which the most readable is
//! taken, then scaled to what has room.

use super::cluster::{Between, Cluster, Place, Placed, alone};
use super::step::{Action, Group, Picture, Step, Working};
use crate::scene::fonts::{Weight, width};
use crate::scene::shape::{Point, Rect, Size};
use crate::scene::tokens::Sizes;

/// Heights and distances, in text sizes.
pub(super) const HEADER: f32 = 1.7;
pub(super) const PAD: f32 = 0.6;
/// A line of the working of an entry.
pub(super) const LINE: f32 = 1.35;
const EDGE: f32 = 0.4;
/// Below so many body-text sizes other arrangements are tried.
const COMFORTABLE: f32 = 1.2;
/// The name of a GPU in its corner.
const CHIP: f32 = 4.8;
const BETWEEN_BOXES: f32 = 0.8;
const BETWEEN_ROWS: f32 = 1.2;
/// Texts are at most so many body-text sizes large.
const LARGEST: f32 = 1.6;

/// Where a GPU's name is in its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chip {
    Above,
    /// Beside what is in the box, which is then lower.
    Beside,
}

/// How boxes stand, and on how many lines the working of an entry is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrangement {
    /// Boxes side by side.
    across: usize,
    chip: Chip,
    lines: usize,
}

impl Arrangement {
    /// On one GPU; on more, their boxes stand side by side.
    const USUAL: Self = Self {
        across: 1,
        chip: Chip::Above,
        lines: 2,
    };

    /// All there are.
    fn all(gpus: usize) -> Vec<Self> {
        let all = gpus.max(1);
        let half = gpus.div_ceil(2).max(1);
        let chips = [
            (all, Chip::Above),
            (half, Chip::Beside),
            (half, Chip::Above),
            (1, Chip::Beside),
        ];
        let with = |(across, chip)| {
            [2, 3, 4, 1].map(|lines| Self {
                across,
                chip,
                lines,
            })
        };
        chips.into_iter().flat_map(with).collect()
    }

    /// How high a box' name is over what is in the box, and how wide beside it.
    fn header(self) -> (f32, f32) {
        match self.chip {
            Chip::Above => (HEADER, 0.0),
            Chip::Beside => (0.3, CHIP),
        }
    }
}

/// A step laid out.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    /// The text size of numbers.
    pub(super) em: f32,
    pub(super) size: Size,
    /// On how many lines the working of an entry is told.
    pub(super) lines: usize,
    pub(super) above: Option<Rect>,
    pub(super) boxes: Vec<Rect>,
    pub(super) band: Option<Rect>,
    pub(super) tiles: Vec<Placed<'a>>,
    pub(super) signs: Vec<Between>,
}

/// How large numbers are in a picture of `size`.
pub fn text_size(step: &Step, size: Size, sizes: Sizes) -> f32 {
    Layout::new(step, size, sizes).em
}

impl<'a> Layout<'a> {
    pub(super) fn new(step: &'a Step, size: Size, sizes: Sizes) -> Self {
        let picture = &step.picture;
        let fitted = |arrangement: Arrangement| {
            let natural = Natural::of(picture, arrangement);
            let (wide, high) = (natural.width().max(1.0), natural.height().max(1.0));
            let fit = (size.width / wide).min(size.height / high);
            (natural, fit.min(sizes.body * LARGEST).max(1.0))
        };
        let usual = Arrangement {
            across: picture.gpus.len().max(1),
            ..Arrangement::USUAL
        };
        let mut best = fitted(usual);
        // Steps keep their places while they can be read.
        if best.1 < sizes.body * COMFORTABLE {
            let others = Arrangement::all(picture.gpus.len()).into_iter().map(fitted);
            best = others.fold(
                best,
                |best, other| if other.1 > best.1 { other } else { best },
            );
        }
        let (natural, em) = best;
        natural.placed(picture, size, em)
    }

    /// The tile at that place.
    pub(super) fn find(&self, place: Place, group: usize, slot: usize) -> Option<&Placed<'a>> {
        let is =
            |tile: &&Placed<'a>| tile.place == place && tile.group == group && tile.slot == slot;
        self.tiles.iter().find(is)
    }
}

/// The room that each part of a picture takes at a text size of 1.
struct Natural {
    arrangement: Arrangement,
    above: Size,
    /// Of a GPU's box, its frame included.
    gpu: Size,
    gpus: usize,
    band: Size,
}

impl Natural {
    fn of(picture: &Picture, arrangement: Arrangement) -> Self {
        let foot = foot(picture, arrangement.lines);
        let above = Cluster::of(Place::Above, &picture.above, 1.0).size;
        let above_foot = if picture.gpus.is_empty() { foot } else { 0.0 };
        let inner = |groups: &Vec<Group>| {
            let size = Cluster::of(Place::Above, groups, 1.0).size;
            Size::new(
                size.width
                    .max(working_width(groups, picture, arrangement.lines)),
                size.height,
            )
        };
        let boxes = picture.gpus.iter().map(inner);
        let most =
            |all: Size, one: Size| Size::new(all.width.max(one.width), all.height.max(one.height));
        let after = picture
            .band
            .as_ref()
            .and_then(|band| band.group.tiles.last())
            .map(|tile| alone(tile, 0, 1.0).size);
        let inner = boxes.chain(after).fold(Size::default(), most);
        let band = picture.band.as_ref().map_or(Size::default(), |band| {
            let groups = std::slice::from_ref(&band.group);
            let size = Cluster::of(Place::Band, groups, 1.0).size;
            let words = width(&band.traffic.words(), 1.0, Weight::SemiBold) + 3.0;
            Size::new(
                (size.width).max(words) + 2.0 * PAD,
                size.height + HEADER + LINE + PAD,
            )
        });
        let (header, beside) = arrangement.header();
        let frame = |inner: Size| {
            Size::new(
                inner.width + 2.0 * PAD + beside,
                inner.height + header + foot + PAD,
            )
        };
        Self {
            arrangement,
            above: Size::new(
                above.width,
                above.height + if above.height > 0.0 { above_foot } else { 0.0 },
            ),
            gpu: if picture.gpus.is_empty() {
                Size::default()
            } else {
                frame(inner)
            },
            gpus: picture.gpus.len(),
            band,
        }
    }

    /// All boxes together.
    fn boxes(&self) -> Size {
        if self.gpus == 0 {
            return Size::default();
        }
        let (across, down) = self.counts();
        let gaps = |count: usize| count.saturating_sub(1) as f32 * BETWEEN_BOXES;
        Size::new(
            across as f32 * self.gpu.width + gaps(across),
            down as f32 * self.gpu.height + gaps(down),
        )
    }

    fn counts(&self) -> (usize, usize) {
        let across = self.arrangement.across.max(1);
        (across, self.gpus.div_ceil(across))
    }

    fn width(&self) -> f32 {
        EDGE + self
            .above
            .width
            .max(self.boxes().width)
            .max(self.band.width)
    }

    fn height(&self) -> f32 {
        let parts = [self.above.height, self.boxes().height, self.band.height];
        let shown = parts.iter().filter(|height| **height > 0.0).count();
        parts.iter().sum::<f32>() + shown.saturating_sub(1) as f32 * BETWEEN_ROWS
    }

    fn placed<'a>(&self, picture: &'a Picture, size: Size, em: f32) -> Layout<'a> {
        let mut layout = Layout {
            em,
            size,
            lines: self.arrangement.lines,
            above: None,
            boxes: Vec::new(),
            band: None,
            tiles: Vec::new(),
            signs: Vec::new(),
        };
        let mut y = ((size.height - self.height() * em) / 2.0).max(0.0);
        if self.above.height > 0.0 {
            let room = Rect::new(0.0, y, size.width, self.above.height * em);
            layout.put(Cluster::of(Place::Above, &picture.above, em), room);
            layout.above = Some(room);
            y = room.bottom() + BETWEEN_ROWS * em;
        }
        if self.gpus > 0 {
            self.put_boxes(picture, y, &mut layout);
            y += (self.boxes().height + BETWEEN_ROWS) * em;
        }
        if let Some(band) = &picture.band {
            let frame = Rect::new(0.0, y, size.width, self.band.height * em);
            layout.band = Some(frame);
            let groups = std::slice::from_ref(&band.group);
            let inner = Rect::new(0.0, y + HEADER * em, size.width, frame.height);
            layout.put(Cluster::of(Place::Band, groups, em), inner);
        }
        layout
    }

    fn put_boxes<'a>(&self, picture: &'a Picture, top: f32, layout: &mut Layout<'a>) {
        let em = layout.em;
        let gap = BETWEEN_BOXES * em;
        let (across, _) = self.counts();
        let each = (layout.size.width - gap * (across - 1) as f32) / across as f32;
        let high = self.gpu.height * em;
        let (header, beside) = self.arrangement.header();
        for (gpu, groups) in picture.gpus.iter().enumerate() {
            let (column, row) = (gpu % across, gpu / across);
            let left = column as f32 * (each + gap);
            let frame = Rect::new(left, top + row as f32 * (high + gap), each, high);
            layout.boxes.push(frame);
            let beside = beside * em;
            let inner = Rect::new(left + beside, frame.y + header * em, each - beside, high);
            layout.put(Cluster::of(Place::Gpu(gpu), groups, em), inner);
            let after = picture
                .band
                .as_ref()
                .and_then(|band| band.group.tiles.last());
            if let Some(tile) = after {
                let mut own = alone(tile, 0, em);
                for tile in &mut own.tiles {
                    (tile.place, tile.group) = (Place::Gpu(gpu), 1);
                }
                layout.put(own, inner);
            }
        }
    }
}

impl<'a> Layout<'a> {
    /// Puts a cluster at the top of a room, in its middle.
    fn put(&mut self, mut cluster: Cluster<'a>, room: Rect) {
        let left = room.x + ((room.width - cluster.size.width) / 2.0).max(0.0);
        cluster.moved(Point::new(left, room.y));
        self.tiles.append(&mut cluster.tiles);
        self.signs.append(&mut cluster.signs);
    }
}

/// The room for the working of an entry under what it is in.
fn foot(picture: &Picture, lines: usize) -> f32 {
    match picture.action {
        Action::Work => lines as f32 * LINE,
        Action::Still | Action::HandOut | Action::Collect => 0.0,
    }
}

/// How wide the widest working of an entry is, on so many lines.
fn working_width(groups: &[Group], picture: &Picture, lines: usize) -> f32 {
    let Some(group) = groups.first().filter(|_| picture.action == Action::Work) else {
        return 0.0;
    };
    let Some(result) = group.result().and_then(|slot| group.tiles.get(slot)) else {
        return 0.0;
    };
    let (rows, columns) = result.matrix.shape();
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let workings = places.filter_map(|(row, column)| group.working(row, column));
    let widths = workings.map(|working| broken(&working, lines).1);
    widths.fold(0.0, f32::max)
}

/// A working on so many lines of lengths as even as may be, and how wide they are at a text size of 1.
pub(super) fn broken((terms, made): &Working, lines: usize) -> (Vec<String>, f32) {
    let words: Vec<&str> = terms.iter().chain([made]).map(String::as_str).collect();
    even(&words, lines)
}

fn even(words: &[&str], lines: usize) -> (Vec<String>, f32) {
    let whole = words.join(" ");
    let wide = width(&whole, 1.0, Weight::SemiBold);
    if lines <= 1 || words.len() <= 1 {
        return (vec![whole], wide);
    }
    let first = |at: usize| {
        let line = words[..at].join(" ");
        let (mut rest, widest) = even(&words[at..], lines - 1);
        let widest = widest.max(width(&line, 1.0, Weight::SemiBold));
        rest.insert(0, line);
        (rest, widest)
    };
    let all = (1..words.len()).map(first);
    all.min_by(|one, other| one.1.total_cmp(&other.1))
        .unwrap_or((vec![whole], wide))
}

//! Lanes with more spans than points: what share of each point's time is of which class, from a pyramid of buckets of
//! power-of-two widths, at the cost of the points; span by span where buckets are wider than points, as they are when few
//! spans are seen, or where many crowd in a small part of a long lane. Nothing vanishes: any share is at least the smallest
//! there is.

use crate::trace::{Kind, Label, Lane, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Pass};

use super::colour::Colour;
use super::overview::is_communication;
use super::scale::Scale;
use super::tokens::Palette;

/// Classes of spans that are told apart when they are too many to be told one by one.
pub(super) const CLASSES: usize = 8;
const OTHER: usize = 4;
const MOVING: usize = 5;
const WAITING: usize = 6;
const IDLE: usize = 7;
/// Of no class: computing, where passes are drawn over it.
const NONE: u8 = u8::MAX;

/// Shares of a stretch of time by class, each of 255 and in a byte of its own: eight are added or halved at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell(u64);

impl Cell {
    pub(super) fn new(shares: [u8; CLASSES]) -> Self {
        Self(u64::from_le_bytes(shares))
    }

    /// By class.
    pub(super) fn shares(self) -> [u8; CLASSES] {
        self.0.to_le_bytes()
    }

    /// The mean of two, rounded up.
    fn mean(self, other: Self) -> Self {
        let differ = ((self.0 ^ other.0) >> 1) & 0x7f7f_7f7f_7f7f_7f7f;
        Self((self.0 | other.0) - differ)
    }

    /// Shares of the same stretch together.
    pub(super) fn with(self, more: Self) -> Self {
        let (own, more) = (self.shares(), more.shares());
        Self::new(std::array::from_fn(|class| {
            own[class].saturating_add(more[class])
        }))
    }
}

/// Lanes of fewer spans need no pyramid.
const LEAST: usize = 4096;
/// So many buckets of the finest level for each span when they are laid out, and at most: with all levels over them, the index takes
/// less than eight bytes a span.
const BUCKETS: f64 = 0.4;
const MOST_BUCKETS: f64 = 0.49;

/// Of so many spans in a row, it is known which classes are among them; and so many of them stand for their time.
const BLOCK: usize = 32;
const SAMPLES: usize = 4;

/// Spans that overlap fill each bucket so many times at most.
const MOST_FILLED: usize = 16;

/// A lane's pyramid: each level's buckets are twice as wide as those of the level before.
#[derive(Clone, Debug, Default)]
pub(super) struct Density {
    /// How wide the finest buckets are, in nanoseconds.
    width: u64,
    levels: Vec<Vec<Cell>>,
    /// How many spans are in it, and when the last of them starts.
    read: usize,
    last: Nanos,
    /// How many were in it when its buckets were laid out.
    laid_out: usize,
    /// The classes of each block of spans, a bit each.
    masks: Vec<u8>,
    /// The bucket that is being filled: which, with what, and what reached into it from before.
    open: (u64, Sum, Cell),
}

/// The class of each label's spans.
pub(super) fn classes(trace: &Trace) -> Vec<u8> {
    trace.labels.iter().map(class_of).collect()
}

fn class_of(label: &Label) -> u8 {
    let class = match (label.kind, label.pass) {
        (_, Some(Pass::Forward)) | (Kind::Kernel, None) => 0,
        (_, Some(Pass::Backward)) => 1,
        (_, Some(Pass::InputGrad)) => 2,
        (_, Some(Pass::WeightGrad)) => 3,
        (kind, None) if is_communication(kind) => MOVING,
        (_, None) => OTHER,
    };
    class as u8
}

fn class(span: &Span, stream: Stream, classes: &[u8]) -> u8 {
    match span.phase {
        Phase::Waiting => WAITING as u8,
        Phase::Idle => IDLE as u8,
        Phase::Transfer => MOVING as u8,
        Phase::Busy if stream == Stream::Compute => NONE,
        Phase::Busy => classes
            .get(span.label.0 as usize)
            .copied()
            .unwrap_or(OTHER as u8),
    }
}

/// Time of one stretch, by class, being summed.
#[derive(Clone, Copy, Debug, Default)]
struct Sum([u64; CLASSES]);

impl Sum {
    fn add(&mut self, class: u8, time: u64) {
        if let Some(sum) = self.0.get_mut(class as usize) {
            *sum += time;
        }
    }

    /// As shares of `whole`, rounded up.
    fn cell(&self, whole: u64) -> Cell {
        Cell::new(self.0.map(|time| {
            let share = (u128::from(time) * 255).div_ceil(u128::from(whole.max(1)));
            share.min(255) as u8
        }))
    }
}

impl Density {
    /// The pyramid of `lane`; empty if it has few spans.
    pub(super) fn new(lane: &Lane, classes: &[u8]) -> Self {
        let mut density = Self::default();
        density.extend(lane, classes);
        density
    }

    /// Takes in the spans that were appended to `lane` since it was made or extended, at their cost.
    pub(super) fn extend(&mut self, lane: &Lane, classes: &[u8]) {
        let spans = lane.spans();
        if spans.len() < LEAST {
            return;
        }
        let appended = self
            .read
            .checked_sub(1)
            .is_some_and(|last| spans.get(last).is_some_and(|span| span.start == self.last));
        let end = spans[if appended { self.read } else { 0 }..]
            .iter()
            .map(|span| span.end.0)
            .max()
            .unwrap_or_default();
        // Buckets far too many or far too full for the spans are laid out anew, which happens each time they double.
        let buckets = (end / self.width.max(1)) as usize + 1;
        let most = (spans.len() as f64 * MOST_BUCKETS) as usize;
        let fits = buckets <= most && spans.len() <= 4 * self.laid_out;
        if !appended || !fits {
            let end = spans
                .iter()
                .map(|span| span.end.0)
                .max()
                .unwrap_or_default();
            let wanted = (spans.len() as f64 * BUCKETS) as u64;
            *self = Self {
                width: end.div_ceil(wanted).max(1),
                levels: vec![Vec::new()],
                laid_out: spans.len(),
                ..Self::default()
            };
        }
        self.read_on(lane, classes);
    }

    /// Fills buckets with the spans that are not in it yet, and the coarser ones over them.
    fn read_on(&mut self, lane: &Lane, classes: &[u8]) {
        let spans = &lane.spans()[self.read..];
        let (Some(last), Some(finest)) = (spans.last(), self.levels.first_mut()) else {
            return;
        };
        let end = spans
            .iter()
            .map(|span| span.end.0)
            .max()
            .unwrap_or_default();
        let width = self.width;
        finest.resize(
            finest.len().max((end / width) as usize + 1),
            Cell::default(),
        );
        // Spans come by start, so that one bucket after the other is complete; what reaches beyond is added there.
        let (mut at, mut sum, mut before) = self.open;
        let dirty = at as usize;
        // Spans follow one another on a lane, but those of a broken file need not.
        let mut left = MOST_FILLED * finest.len();
        for (place, span) in (self.read..).zip(spans) {
            let class = class(span, lane.id.stream, classes);
            self.masks.resize(place / BLOCK + 1, 0);
            self.masks[place / BLOCK] |= 1_u8.checked_shl(u32::from(class)).unwrap_or(0);
            let (first, last) = (span.start.0 / width, (span.end.0 - 1) / width);
            if first != at {
                finest[at as usize] = before.with(sum.cell(width));
                (at, sum, before) = (first, Sum::default(), finest[first as usize]);
            }
            sum.add(class, span.end.0.min((first + 1) * width) - span.start.0);
            for bucket in first + 1..=last {
                if left == 0 {
                    break;
                }
                left -= 1;
                let mut part = Sum::default();
                part.add(class, span.end.0.min((bucket + 1) * width) - bucket * width);
                finest[bucket as usize] = finest[bucket as usize].with(part.cell(width));
            }
        }
        finest[at as usize] = before.with(sum.cell(width));
        self.open = (at, sum, before);
        self.read = lane.spans().len();
        self.last = last.start;
        self.raise(dirty);
    }

    /// Makes the coarser levels over the finest buckets from `dirty` on.
    fn raise(&mut self, mut dirty: usize) {
        let mut level = 0;
        while self.levels[level].len() > 1 {
            dirty /= 2;
            if self.levels.len() == level + 1 {
                self.levels.push(Vec::new());
                dirty = 0;
            }
            let (below, above) = self.levels.split_at_mut(level + 1);
            let (below, above) = (&below[level], &mut above[0]);
            above.truncate(dirty);
            above.extend(below[2 * dirty..].chunks(2).map(|pair| {
                let second = pair.get(1).copied().unwrap_or_default();
                pair[0].mean(second)
            }));
            level += 1;
        }
    }

    /// A cell for each of `columns` of `scale`, if its buckets are fine enough for that.
    pub(super) fn cells(&self, scale: &Scale, columns: usize) -> Option<Vec<Cell>> {
        let (from, length) = (scale.from.0 as f64, scale.to.since(scale.from).0 as f64);
        let column = length / columns.max(1) as f64;
        // Buckets of the finest level may be two columns wide: to look at spans one by one costs more than it shows.
        if self.levels.is_empty() || 2.0 * column < self.width as f64 {
            return None;
        }
        // The coarsest level whose buckets are no wider than a column: a column is two or three of them.
        let level = ((column / self.width as f64) as u64)
            .max(1)
            .ilog2()
            .min(self.levels.len() as u32 - 1);
        let buckets = &self.levels[level as usize];
        let wide = self.width as f64 * (1_u64 << level) as f64;
        let (start, step) = (from / wide, column / wide);
        let edge = |index: usize| ((start + index as f64 * step) as usize).min(buckets.len());
        let mut first = edge(0);
        let cell = |index: usize| {
            let next = edge(index + 1);
            // The last column takes the bucket that its end lies in too.
            let over = usize::from(index + 1 == columns);
            let last = (next + over).max(first + 1).min(buckets.len());
            let cell = mean(buckets.get(first..last).unwrap_or_default());
            first = next;
            cell
        };
        Some((0..columns).map(cell).collect())
    }
}

/// The mean of the few buckets of a column.
fn mean(cells: &[Cell]) -> Cell {
    match cells {
        [] => Cell::default(),
        [one, rest @ ..] => rest.iter().fold(*one, |mean, cell| mean.mean(*cell)),
    }
}

/// Cells of `spans`, looked at one by one; of crowds for which there are no buckets, block by block, with the classes that are in
/// each.
fn looked_at(
    (spans, masks): (&[Span], &[u8]),
    (scale, columns): (&Scale, usize),
    class: impl Fn(&Span) -> u8,
) -> Vec<Cell> {
    let (from, to) = (scale.from.0, scale.to.0);
    if columns == 0 {
        return Vec::new();
    }
    let mut sums = vec![[0_u32; CLASSES]; columns];
    // In parts of a column, of which it has 256.
    let parts = columns as f64 * 256.0 / (to - from).max(1) as f64;
    // A signed number becomes a floating-point one at once.
    let place = |time: Nanos| ((time.0.clamp(from, to) - from).cast_signed() as f64 * parts) as u32;
    let most = columns as u32 - 1;
    let mut take = |span: &Span, class: usize, times: u32| {
        if class >= CLASSES {
            return;
        }
        let (start, end) = (place(span.start), place(span.end).max(1));
        let (first, last) = ((start >> 8).min(most), ((end - 1) >> 8).min(most));
        let mut add =
            |column: u32, part: u32| sums[column as usize][class] += (part * times).max(1);
        if first >= last {
            add(first, end.saturating_sub(start).max(1));
            return;
        }
        add(first, ((first + 1) << 8) - start);
        for column in first + 1..last {
            add(column, 256);
        }
        add(last, end - (last << 8));
    };
    // With blocks of spans far narrower than a column, a few of each stand for its time, and what else is in it is there.
    if spans.len() > columns * 2 * BLOCK && masks.len() * BLOCK >= spans.len() {
        for (block, mask) in spans.chunks(BLOCK).zip(masks) {
            // One that is spread over columns has few spans in each.
            let last = block.last().map_or(0, |span| place(span.start));
            if last - place(block[0].start) > 256 {
                for span in block {
                    take(span, class(span) as usize, 1);
                }
                continue;
            }
            let samples = block.iter().step_by(BLOCK / SAMPLES);
            let times = block.len().div_ceil(samples.len()) as u32;
            samples.for_each(|span| take(span, class(span) as usize, times));
            let there = (0..CLASSES).filter(|class| mask >> class & 1 == 1);
            there.for_each(|class| take(&block[0], class, 0));
        }
    } else {
        for span in spans {
            take(span, class(span) as usize, 1);
        }
    }
    let cell = |sums: [u32; CLASSES]| Cell::new(sums.map(|sum| sum.min(255) as u8));
    sums.into_iter().map(cell).collect()
}

/// A lane's cells, if it has more spans in what is seen than `most`; else it is drawn span by span.
pub(super) fn cells(
    lane: &Lane,
    density: Option<&Density>,
    (scale, until, (most, columns)): (&Scale, Nanos, (usize, usize)),
    classes: &[u8],
) -> Option<Vec<Cell>> {
    let seen = seen(lane, scale);
    if seen.len() <= most {
        return None;
    }
    let of = |span: &Span| class(span, lane.id.stream, classes);
    let mut cells = density
        .and_then(|density| density.cells(scale, columns))
        .unwrap_or_else(|| {
            let first = lane
                .spans()
                .partition_point(|span| span.start < seen[0].start);
            let first = first / BLOCK * BLOCK;
            let seen = &lane.spans()[first..][..];
            let seen = &seen[..seen.partition_point(|span| span.start < scale.to)];
            let masks = density.and_then(|density| density.masks.get(first / BLOCK..));
            looked_at((seen, masks.unwrap_or_default()), (scale, columns), of)
        });
    if until < scale.to {
        let share = (scale.x(until) - scale.left()) / (scale.right() - scale.left());
        let shown = (share * columns as f32).ceil() as usize;
        for cell in cells.iter_mut().skip(shown) {
            *cell = Cell::default();
        }
    }
    Some(cells)
}

/// The spans of a lane that may be seen.
pub(super) fn seen<'a>(lane: &'a Lane, scale: &Scale) -> &'a [Span] {
    let spans = lane.spans();
    let Some(first) = lane.overlapping(scale.from, scale.to).next() else {
        return &[];
    };
    let from = spans.partition_point(|span| span.start < first.start);
    let to = spans.partition_point(|span| span.start < scale.to);
    &spans[from..to.max(from)]
}

/// The colours of cells: each class's, and the ground where nothing is.
#[derive(Debug)]
pub(super) struct Colours {
    /// For each class and share: the share of the colour's parts, and the share itself, in sixteen bits each.
    parts: Box<[[u64; 256]; CLASSES]>,
    /// For each sum of shares, what it covers over what it is, in 2^16ths: shares that were rounded up are more than the whole.
    covers: Vec<u64>,
    ground: [u64; 3],
}

/// The least that something covers of a cell, so that it is seen.
const SEEN: u64 = 77;

impl Colours {
    /// In `palette`, what moves in the colour `moving`; put back where `lit` is false.
    pub(super) fn new(palette: &Palette, moving: Colour, lit: bool) -> Self {
        let classes = [
            palette.forward,
            palette.backward,
            palette.input_grad,
            palette.weight_grad,
            palette.optimizer,
            moving,
            palette.waiting_bed.mixed(palette.waiting, 0.5),
            palette.bubble_bed.mixed(palette.bubble, 0.25),
        ];
        let shade = |colour: Colour| if lit { colour } else { palette.dimmed(colour) };
        // A quarter of each, so that shares that were rounded up to more than the whole have room.
        let packed = |colour: Colour, share: u64| {
            let part = |part: u8| u64::from(part) * share / 4;
            part(colour.r) | part(colour.g) << 16 | part(colour.b) << 32 | share << 48
        };
        let parts = classes
            .map(shade)
            .map(|colour| std::array::from_fn(|share| packed(colour, share as u64)));
        let Colour { r, g, b, .. } = palette.track;
        Self {
            parts: Box::new(parts),
            covers: (0..=CLASSES as u64 * 255)
                .map(|all| (cover(all) << 16) / all.max(1))
                .collect(),
            ground: [r, g, b].map(u64::from),
        }
    }

    /// The mean of what is in a cell, on the ground as far as it leaves it free; what is there at all is seen.
    pub(super) fn of(&self, cell: Cell) -> Colour {
        // All classes, though most cells have one or two: what is not branched on is not mispredicted.
        let shares = cell.shares();
        let of = |(parts, share): (&[u64; 256], u8)| parts[usize::from(share)];
        let sum: u64 = self.parts.iter().zip(shares).map(of).sum();
        let all = sum >> 48;
        let (cover, scale) = (cover(all), self.covers[all as usize]);
        let mixed = |shift: u32, ground: u64| {
            let own = ((sum >> shift & 0xffff) * 4 * scale) >> 16;
            by_255(own + ground * (255 - cover))
        };
        Colour {
            r: mixed(0, self.ground[0]),
            g: mixed(16, self.ground[1]),
            b: mixed(32, self.ground[2]),
            a: 255,
        }
    }
}

/// What is covered where shares sum up to `all`.
fn cover(all: u64) -> u64 {
    if all == 0 { 0 } else { all.clamp(SEEN, 255) }
}

/// A 255th, for up to 2^16.
fn by_255(number: u64) -> u8 {
    ((number + 1 + (number >> 8)) >> 8).min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{LabelId, LaneId};
    use crate::units::Rank;
    use proptest::prelude::*;

    fn lane(spans: impl IntoIterator<Item = (u64, u64, u32)>) -> Lane {
        let mut lane = Lane::new(LaneId {
            rank: Rank(0),
            stream: Stream::Passes,
        });
        for (start, end, label) in spans {
            lane.push(Span {
                start: Nanos(start),
                end: Nanos(end),
                label: LabelId(label),
                phase: Phase::Busy,
            });
        }
        lane
    }

    #[test]
    fn colours_are_mixed_by_share_and_the_faintest_is_seen() {
        let palette = crate::scene::tokens::Theme::Light.palette();
        let colours = Colours::new(palette, palette.send, true);
        let near = |a: Colour, b: Colour| {
            let apart = [(a.r, b.r), (a.g, b.g), (a.b, b.b)].map(|(a, b)| a.abs_diff(b));
            apart.iter().all(|&apart| apart <= 4)
        };
        let of = |shares| colours.of(Cell::new(shares));
        assert_eq!(of([0; CLASSES]), palette.track);
        assert!(near(of([255, 0, 0, 0, 0, 0, 0, 0]), palette.forward));
        let half = of([128, 128, 0, 0, 0, 0, 0, 0]);
        assert!(
            near(half, palette.forward.mixed(palette.backward, 0.5)),
            "{half:?}"
        );
        let faint = of([0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(
            near(faint, palette.track.mixed(palette.backward, 0.3)),
            "{faint:?}"
        );
    }

    proptest! {
        #[test]
        fn what_is_appended_to_is_what_is_read_at_once(lengths in prop::collection::vec((1..40_u64, 0..9_u64, 0..3_u32), 4_200..9_000), cuts in prop::collection::vec(0..9_000_usize, 1..6)) {
            let mut time = 0;
            let all: Vec<(u64, u64, u32)> = lengths.iter().map(|&(length, gap, label)| {
                let start = time + gap;
                time = start + length;
                (start, time, label)
            }).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
            cuts.sort_unstable();
            let mut density = Density::default();
            for cut in cuts.into_iter().chain([all.len()]) {
                density.extend(&lane(all[..cut].to_vec()), &[0, 1, 2]);
            }
            let mut whole = Density {
                width: density.width,
                levels: vec![Vec::new()],
                ..Density::default()
            };
            whole.read_on(&lane(all.clone()), &[0, 1, 2]);
            prop_assert_eq!(density.levels, whole.levels);
            prop_assert_eq!(density.masks, whole.masks);
        }
    }

    #[test]
    fn appending_little_by_little_costs_what_is_appended() {
        // A million spans, a thousand at a time: were all buckets made anew each time, this would take minutes.
        let mut grown = lane([]);
        let mut density = Density::default();
        for index in 0..1_000_000_u64 {
            grown.push(Span {
                start: Nanos(index * 7),
                end: Nanos(index * 7 + 5),
                label: LabelId(0),
                phase: Phase::Busy,
            });
            if index % 1000 == 999 {
                density.extend(&grown, &[0]);
            }
        }
        let bytes: usize = density
            .levels
            .iter()
            .map(|level| level.len() * size_of::<Cell>())
            .sum();
        let bytes = bytes + density.masks.len();
        assert!(bytes <= 8 * 1_000_000, "{bytes} bytes of index");
        let scale = Scale::new(Nanos(0), Nanos(7_000_000), 0.0, 1000.0);
        for cell in &density.cells(&scale, 1000).unwrap()[..999] {
            let share = cell.shares()[0];
            assert!((i32::from(share) - 255 * 5 / 7).abs() <= 12, "{share}");
        }
    }

    #[test]
    fn shares_are_those_of_the_time_at_every_zoom() {
        // Of each ten nanoseconds four are of one class, two of another.
        let spans = (0..100_000).flat_map(|index| {
            let at = index * 10;
            [(at, at + 4, 0), (at + 4, at + 6, 1)]
        });
        let lane = lane(spans);
        let density = Density::new(&lane, &[0, 1]);
        for zoom in [1, 3, 10] {
            let scale = Scale::new(Nanos(0), Nanos(1_000_000 / zoom), 0.0, 1000.0);
            let cells = density.cells(&scale, 1000).unwrap();
            for cell in &cells[..999] {
                let shares = cell.shares();
                assert!(
                    (i32::from(shares[0]) - 102).abs() < 12,
                    "{zoom}: {shares:?}"
                );
                assert!((i32::from(shares[1]) - 51).abs() < 12, "{zoom}: {shares:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_vanishes(at in prop::collection::vec((0_u64..1 << 40, 1_u64..1 << 20), 1..50), columns in 1_usize..2000) {
            // A crowd, so that there is a pyramid, and some spans wherever.
            let crowd = (0..LEAST as u64).map(|index| (index << 27, (index << 27) + 1, 0));
            let lane = lane(crowd.chain(at.iter().map(|&(start, length)| (start, start + length, 1))));
            let density = Density::new(&lane, &[0, 1]);
            let end = lane.spans().iter().map(|span| span.end.0).max().unwrap();
            let scale = Scale::new(Nanos(0), Nanos(end), 0.0, columns as f32);
            let looked_at = looked_at((lane.spans(), &density.masks), (&scale, columns), |span| span.label.0 as u8);
            // There are no buckets for columns that are narrower than they are.
            let of_buckets = density.cells(&scale, columns).unwrap_or_else(|| looked_at.clone());
            for cells in [of_buckets, looked_at] {
                for &(start, _) in &at {
                    let column = (u128::from(start) * columns as u128 / u128::from(end)) as usize;
                    let near = column.saturating_sub(1)..(column + 2).min(columns);
                    prop_assert!(cells[near].iter().any(|cell| cell.shares()[1] > 0));
                }
            }
        }
    }
}

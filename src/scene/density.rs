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
    fn new(shares: [u8; CLASSES]) -> Self {
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
/// Spans of a bucket of the finest level, on average.
const OF_A_BUCKET: u64 = 2;

/// Spans that overlap fill each bucket so many times at most.
const MOST_FILLED: usize = 16;

/// A lane's pyramid: each level's buckets are twice as wide as those of the level before.
#[derive(Clone, Debug, Default)]
pub(super) struct Density {
    /// The finest buckets are `1 << shift` nanoseconds wide.
    shift: u32,
    levels: Vec<Vec<Cell>>,
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
        let spans = lane.spans();
        let end = spans
            .iter()
            .map(|span| span.end.0)
            .max()
            .unwrap_or_default();
        if spans.len() < LEAST {
            return Self::default();
        }
        let buckets = spans.len() as u64 / OF_A_BUCKET;
        let shift = (end / buckets).max(1).next_power_of_two().trailing_zeros();
        let mut finest = vec![Cell::default(); (end >> shift) as usize + 1];
        // Spans come by start, so that one bucket after the other is complete; what reaches beyond is added there.
        let (mut at, mut sum) = (0_u64, Sum::default());
        let width = 1_u64 << shift;
        // Spans follow one another on a lane, but those of a broken file need not.
        let mut left = MOST_FILLED * finest.len();
        for span in spans {
            let class = class(span, lane.id.stream, classes);
            let (first, last) = (span.start.0 >> shift, (span.end.0 - 1) >> shift);
            if first != at {
                finest[at as usize] = finest[at as usize].with(sum.cell(width));
                (at, sum) = (first, Sum::default());
            }
            sum.add(class, span.end.0.min((first + 1) << shift) - span.start.0);
            for bucket in first + 1..=last {
                if left == 0 {
                    break;
                }
                left -= 1;
                let mut part = Sum::default();
                part.add(
                    class,
                    span.end.0.min((bucket + 1) << shift) - (bucket << shift),
                );
                finest[bucket as usize] = finest[bucket as usize].with(part.cell(width));
            }
        }
        finest[at as usize] = finest[at as usize].with(sum.cell(width));
        let mut levels = vec![finest];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let halved = level.chunks(2).map(|pair| {
                let second = pair.get(1).copied().unwrap_or_default();
                pair[0].mean(second)
            });
            let halved = halved.collect();
            levels.push(halved);
        }
        Self { shift, levels }
    }

    /// A cell for each of `columns` of `scale`, if its buckets are fine enough for that.
    pub(super) fn cells(&self, scale: &Scale, columns: usize) -> Option<Vec<Cell>> {
        let length = scale.to.since(scale.from).0;
        let column = length / columns.max(1) as u64;
        if self.levels.is_empty() || column >> self.shift == 0 {
            return None;
        }
        // The coarsest level whose buckets are no wider than a column: a column is two or three of them.
        let level = (column >> self.shift)
            .ilog2()
            .min(self.levels.len() as u32 - 1);
        let (shift, buckets) = (self.shift + level, &self.levels[level as usize]);
        let step = length as f64 / columns.max(1) as f64;
        let edge = |index: usize| {
            let bucket = (scale.from.0 + (index as f64 * step) as u64) >> shift;
            (bucket as usize).min(buckets.len())
        };
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

/// Cells of `spans`, looked at one by one.
fn looked_at(
    spans: &[Span],
    (scale, columns): (&Scale, usize),
    class: impl Fn(&Span) -> u8,
) -> Vec<Cell> {
    let (from, to) = (scale.from.0, scale.to.0);
    if columns == 0 {
        return Vec::new();
    }
    let mut sums = vec![[0_u16; CLASSES]; columns];
    // In parts of a column, of which it has 256.
    let parts = columns as f64 * 256.0 / (to - from).max(1) as f64;
    let place = |time: Nanos| ((time.0.clamp(from, to) - from) as f64 * parts) as usize;
    for span in spans {
        let class = class(span) as usize;
        if class >= CLASSES {
            continue;
        }
        let (start, end) = (place(span.start), place(span.end).max(1));
        let (first, last) = (
            (start >> 8).min(columns - 1),
            ((end - 1) >> 8).min(columns - 1),
        );
        let mut add = |column: usize, part: usize| {
            let sum = &mut sums[column][class];
            *sum = sum.saturating_add(part.max(1) as u16);
        };
        if first >= last {
            add(first, end.saturating_sub(start));
            continue;
        }
        add(first, ((first + 1) << 8) - start);
        for column in first + 1..last {
            add(column, 256);
        }
        add(last, end - (last << 8));
    }
    let cell = |sums: [u16; CLASSES]| Cell::new(sums.map(|sum| sum.min(255) as u8));
    sums.into_iter().map(cell).collect()
}

/// A lane's cells, if it has more spans in what is seen than a third of the points; else it is drawn span by span.
pub(super) fn cells(
    lane: &Lane,
    density: Option<&Density>,
    (scale, until): (&Scale, Nanos),
    classes: &[u8],
) -> Option<Vec<Cell>> {
    let columns = (scale.right() - scale.left()).round() as usize;
    let seen = seen(lane, scale);
    if seen.len() * 3 <= columns {
        return None;
    }
    let of = |span: &Span| class(span, lane.id.stream, classes);
    let mut cells = density
        .and_then(|density| density.cells(scale, columns))
        .unwrap_or_else(|| looked_at(seen, (scale, columns), of));
    if until < scale.to {
        let shown = (scale.x(until) - scale.left()).ceil() as usize;
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
pub(super) struct Colours {
    /// For each class and share: the share of the colour's parts, and the share itself, in sixteen bits each.
    parts: Vec<[u64; 256]>,
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
            parts: parts.to_vec(),
            ground: [r, g, b].map(u64::from),
        }
    }

    /// The mean of what is in a cell, on the ground as far as it leaves it free; what is there at all is seen.
    pub(super) fn of(&self, cell: Cell) -> Colour {
        let shares = cell.shares().into_iter();
        let sum: u64 = self
            .parts
            .iter()
            .zip(shares)
            .map(|(parts, share)| parts[share as usize])
            .sum();
        let all = sum >> 48;
        let cover = if all == 0 { 0 } else { all.clamp(SEEN, 255) };
        let mixed = |shift: u32, ground: u64| {
            let own = (sum >> shift & 0xffff) * 4;
            // Where it covers as much as it is, that is its share already.
            let own = if cover == all {
                own
            } else {
                own * cover / all.max(1)
            };
            ((own + ground * (255 - cover)) / 255) as u8
        };
        Colour {
            r: mixed(0, self.ground[0]),
            g: mixed(16, self.ground[1]),
            b: mixed(32, self.ground[2]),
            a: 255,
        }
    }
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
            let looked_at = looked_at(lane.spans(), (&scale, columns), |span| span.label.0 as u8);
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

//! Where rows are, and the bands within a row: blocks, communication, memory. Arithmetic only.

use crate::trace::Stream;

use super::overview::{Holds, Overview};
use super::tokens::Sizes;

/// A row's parts in body-text sizes, when there is room.
const BLOCK: f32 = 2.6;
const TRACK: f32 = 0.7;
const MEMORY: f32 = 1.2;
const AIR: f32 = 0.95;
const SEAM: f32 = 0.12;
/// Rows are at most so much larger than that,
const STRETCH: f32 = 1.5;
/// and never lower than this, in body-text sizes; then they scroll.
const LOWEST: f32 = 0.45;
/// Below these heights a row has no memory, no communication.
const MEMORY_FROM: f32 = 2.3;
const TRACKS_FROM: f32 = 1.3;
/// Below this height all communication is on one track.
const APART_FROM: f32 = 4.2;
/// Rows this high have a second line under the name.
const TWO_LINES: f32 = 2.2;
/// The distance between replicas, as a share of a row.
const GROUP_GAP: f32 = 0.16;

/// A track of communication within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// Sends to both neighbours.
    Sends,
    /// Tensor-parallel collectives.
    Tp,
    /// Data-parallel collectives.
    Dp,
    /// All of them, where rows are low: sends over collectives.
    All,
}

impl Track {
    /// The lanes drawn in it.
    pub fn streams(self) -> &'static [Stream] {
        match self {
            Self::Sends => &[Stream::SendPrev, Stream::SendNext],
            Self::Tp => &[Stream::Tp],
            Self::Dp => &[Stream::Dp],
            Self::All => &[Stream::Dp, Stream::Tp, Stream::SendPrev, Stream::SendNext],
        }
    }
}

/// A horizontal stretch within a row, from the row's top.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Band {
    /// Its upper edge.
    pub top: f32,
    /// Its height.
    pub height: f32,
}

impl Band {
    /// Its lower edge.
    pub fn bottom(self) -> f32 {
        self.top + self.height
    }

    /// Whether `y` is in it.
    pub fn contains(self, y: f32) -> bool {
        (self.top..self.bottom()).contains(&y)
    }

    /// The same band, `y` further down.
    pub fn moved(self, y: f32) -> Self {
        Self {
            top: self.top + y,
            ..self
        }
    }
}

/// The rows of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// From one row's top to the next one's.
    pub pitch: f32,
    /// Additional distance between replicas.
    pub group_gap: f32,
    /// Passes and gaps.
    pub block: Band,
    /// Communication.
    pub tracks: Vec<(Track, Band)>,
    /// Memory, if there is room.
    pub memory: Option<Band>,
    /// Whether the two sends have halves of their track, as they overlap.
    pub sends_apart: bool,
    groups: Vec<u32>,
}

impl Rows {
    /// Rows for `overview` that fill `height` as well as is sensible.
    pub fn new(overview: &Overview, sizes: Sizes, height: f32) -> Self {
        let gap_share = gap_share(overview);
        let em = sizes.body;
        let ideal = height / Self::pitches(overview);
        let whole = em * whole(held(overview));
        let pitch = ideal.clamp(em * LOWEST, whole * STRETCH);
        let mut rows = Self {
            pitch,
            group_gap: pitch * gap_share,
            block: Band::default(),
            tracks: Vec::new(),
            memory: None,
            sends_apart: overview.holds.sends_overlap,
            groups: overview.lineup.groups.clone(),
        };
        rows.divide(held(overview), em);
        rows
    }

    /// How many times the height of a row all rows take, with what lies between replicas.
    pub(super) fn pitches(overview: &Overview) -> f32 {
        let groups = overview.lineup.groups.last().map_or(0, |last| *last);
        overview.lineup.len().max(1) as f32 + groups as f32 * gap_share(overview)
    }

    /// Whether names have a second line, or rows are too low for that.
    pub fn two_lines(&self, sizes: Sizes) -> bool {
        self.pitch >= TWO_LINES * sizes.body
    }

    /// Whether lines are drawn between replicas.
    pub fn grouped(&self) -> bool {
        self.group_gap > 0.0
    }

    /// How high all rows are.
    pub fn height(&self) -> f32 {
        match self.groups.len() {
            0 => 0.0,
            count => self.top(count - 1) + self.pitch,
        }
    }

    /// The top of a row, from the first one's.
    pub fn top(&self, row: usize) -> f32 {
        let groups = self.groups.get(row).map_or(0, |group| *group);
        row as f32 * self.pitch + groups as f32 * self.group_gap
    }

    /// The row at `y`, from the first one's top.
    pub fn at(&self, y: f32) -> Option<usize> {
        let row = self.first_below(y).checked_sub(1)?;
        (y < self.top(row) + self.pitch).then_some(row)
    }

    /// The rows of which some part lies between two heights.
    pub fn between(&self, top: f32, bottom: f32) -> std::ops::Range<usize> {
        let first = self.first_below(top).saturating_sub(1);
        first..self.first_below(bottom)
    }

    fn first_below(&self, y: f32) -> usize {
        let (mut low, mut high) = (0, self.groups.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.top(middle) <= y {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Divides a row's height among its bands.
    fn divide(&mut self, holds: Holds, em: f32) {
        let height = self.pitch / em;
        let tracks = if height >= TRACKS_FROM {
            tracks(holds, height)
        } else {
            Vec::new()
        };
        let memory = holds.memory && height >= MEMORY_FROM;
        let track_share = TRACK * tracks.len() as f32 + SEAM * f32::from(!tracks.is_empty());
        let memory_share = if memory { MEMORY + SEAM } else { 0.0 };
        let unit = self.pitch / (BLOCK + track_share + memory_share + AIR);
        // Air below, so that what belongs to a row stays under its block.
        let mut y = AIR * 0.15 * unit;
        let mut take = |share: f32| {
            let band = Band {
                top: y,
                height: share * unit,
            };
            y += share * unit;
            band
        };
        self.block = take(BLOCK);
        if !tracks.is_empty() {
            take(SEAM);
        }
        self.tracks = tracks.iter().map(|&track| (track, take(TRACK))).collect();
        if memory {
            take(SEAM);
            self.memory = Some(take(MEMORY));
        }
    }
}

/// The distance between replicas of `overview`, as a share of a row.
fn gap_share(overview: &Overview) -> f32 {
    let lineup = &overview.lineup;
    let groups = lineup.groups.last().map_or(0, |last| *last);
    // A replica of a single row needs no line around it; pinned rows are set apart all the same.
    let grouped = groups > 0 && (lineup.groups.len() > groups as usize + 1 || lineup.pinned > 0);
    if grouped { GROUP_GAP } else { 0.0 }
}

/// What rows have bands for.
fn held(overview: &Overview) -> Holds {
    if !overview.lineup.bare {
        return overview.holds;
    }
    Holds {
        sends: false,
        tp: false,
        dp: false,
        memory: false,
        ..overview.holds
    }
}

fn tracks(holds: Holds, height: f32) -> Vec<Track> {
    let all = [
        (holds.sends, Track::Sends),
        (holds.tp, Track::Tp),
        (holds.dp, Track::Dp),
    ];
    let held = all.iter().filter(|(held, _)| *held);
    let held: Vec<Track> = held.map(|&(_, track)| track).collect();
    if held.len() > 1 && height < APART_FROM {
        vec![Track::All]
    } else {
        held
    }
}

/// The height of a row with everything, in body-text sizes.
fn whole(holds: Holds) -> f32 {
    let memory = if holds.memory { MEMORY + SEAM } else { 0.0 };
    BLOCK + TRACK * tracks(holds, f32::MAX).len() as f32 + SEAM + memory + AIR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{RankInfo, Trace};
    use crate::units::{Nanos, Rank};

    fn overview(replicas: u32, stages: u32) -> Overview {
        let places = (0..replicas).flat_map(|dp| (0..stages).map(move |pp| (dp, pp)));
        let infos = (0..).zip(places).map(|(rank, (dp, pp))| RankInfo {
            rank: Rank(rank),
            dp,
            tp: 0,
            pp,
            count: 1,
            pipeline_end: Nanos::ZERO,
            peak_in_flight: 0,
        });
        Overview::new(&Trace::new(infos.collect(), Vec::new()))
    }

    #[test]
    fn every_row_is_found_where_it_is() {
        let rows = Rows::new(&overview(3, 4), Sizes::DESK, 500.0);
        for row in 0..12 {
            assert_eq!(rows.at(rows.top(row) + 0.5), Some(row));
            assert_eq!(rows.at(rows.top(row) + rows.pitch - 0.5), Some(row));
        }
        assert_eq!(rows.at(rows.height() + 1.0), None);
        assert_eq!(rows.at(rows.top(4) - 0.1), None, "between replicas");
    }

    #[test]
    fn few_rows_stay_sensible_and_many_scroll() {
        assert!(Rows::new(&overview(1, 1), Sizes::DESK, 2000.0).pitch < 100.0);
        let many = Rows::new(&overview(1, 10_000), Sizes::DESK, 500.0);
        assert!(many.height() > 500.0);
        assert_eq!(many.between(0.0, 63.0), 0..11);
    }
}

//! A row of several ranks: for each point of time, the mean of what they do.

use crate::trace::Stream;

use super::canvas::Canvas;
use super::density::{CLASSES, Cell};
use super::rows::Band;
use super::timeline::{Row, Timeline};
use super::traffic::{band_of, colour_of};

/// Of more ranks, some stand for all.
const MOST: usize = 64;

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let members = timeline.overview.lineup.members(row.index);
    let step = members.len().div_ceil(MOST).max(1);
    let some: Vec<usize> = members.iter().copied().step_by(step).collect();
    let mut bands: Vec<(Band, &[Stream])> =
        vec![(timeline.rows.block, &[Stream::Passes, Stream::Compute])];
    // The two sends may have halves of their track.
    for stream in timeline
        .rows
        .tracks
        .iter()
        .flat_map(|(track, _)| track.streams())
    {
        let band = band_of(&timeline.rows, *stream);
        bands.extend(band.map(|band| (band, std::slice::from_ref(stream))));
    }
    for (band, streams) in bands {
        let mut mean = Mean::default();
        for &rank in &some {
            for &stream in streams {
                let count = timeline.trace.ranks[rank].count;
                mean.add(&timeline.every_cell(rank, stream), count);
            }
        }
        let counts = some
            .iter()
            .map(|&rank| u64::from(timeline.trace.ranks[rank].count));
        let Some(cells) = mean.cells(counts.sum()) else {
            continue;
        };
        // A track in which nothing moves stays empty.
        let empty = cells.iter().all(|cell| *cell == Cell::default());
        if empty && streams != [Stream::Passes, Stream::Compute] {
            continue;
        }
        let moving = colour_of(timeline, streams[0]);
        timeline.draw_cells(
            row.rank_index,
            (band.moved(row.top), moving),
            &cells,
            canvas,
        );
    }
}

/// The mean of cells of several lanes.
#[derive(Debug, Default)]
struct Mean(Vec<[u64; CLASSES]>);

impl Mean {
    /// Counts a rank's cells for as many as it stands for.
    fn add(&mut self, cells: &[Cell], count: u32) {
        self.0.resize(cells.len().max(self.0.len()), [0; CLASSES]);
        for (sum, cell) in self.0.iter_mut().zip(cells) {
            for (sum, share) in sum.iter_mut().zip(cell.shares()) {
                *sum += u64::from(share) * u64::from(count);
            }
        }
    }

    fn cells(self, count: u64) -> Option<Vec<Cell>> {
        let count = Some(count).filter(|&count| count > 0)?;
        let cell =
            |sums: [u64; CLASSES]| Cell::new(sums.map(|sum| sum.div_ceil(count).min(255) as u8));
        Some(self.0.into_iter().map(cell).collect())
    }
}

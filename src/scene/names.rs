//! The names left of the rows: the GPU, and where it stands in the mesh.

use crate::trace::Trace;

use super::canvas::{Canvas, Type};
use super::fonts::{Weight, shortened, width};
use super::overview::Overview;
use super::shape::{Anchor, Point};
use super::timeline::{Row, Timeline};
use super::tokens::Sizes;

/// Rows this high, in body-text sizes, have a second line under the name.
const TWO_LINES: f32 = 2.3;
/// Names are never smaller than this, in body-text sizes; then only some rows have one.
const SMALLEST: f32 = 0.7;

/// How wide the column of names is.
pub(super) fn column(trace: &Trace, overview: &Overview, sizes: Sizes) -> f32 {
    // The first and the last few ranks have the longest names.
    let count = trace.ranks.len();
    let sample = (0..count.min(64)).chain(count.saturating_sub(64)..count);
    let widest = sample.map(|index| {
        let name = width(&name(trace, index), sizes.body, Weight::SemiBold);
        let place = width(
            &place(overview, trace, index),
            sizes.small(),
            Weight::Regular,
        );
        name.max(place)
    });
    let widest = widest.fold(sizes.body * 4.0, f32::max);
    widest.min(sizes.body * 15.0) + sizes.space()
}

/// What a rank is called.
pub(super) fn name(trace: &Trace, rank_index: usize) -> String {
    format!("GPU {}", trace.ranks[rank_index].rank)
}

/// Where a rank stands, along the axes that are more than one long.
pub(super) fn place(overview: &Overview, trace: &Trace, rank_index: usize) -> String {
    let info = &trace.ranks[rank_index];
    let (replicas, positions, slices) = overview.degrees;
    let mut parts = Vec::new();
    if replicas > 1 {
        parts.push(format!("replica {}", info.dp));
    }
    if positions > 1 {
        parts.push(match overview.stages[rank_index].as_slice() {
            [] => format!("stage {}", info.pp),
            [stage] => format!("stage {stage}"),
            stages => {
                let list: Vec<String> = stages.iter().map(u32::to_string).collect();
                format!("stages {}", list.join(", "))
            }
        });
    }
    if slices > 1 {
        parts.push(format!("slice {}", info.tp));
    }
    parts.join(" · ")
}

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let sizes = timeline.look.sizes;
    let palette = timeline.palette();
    let (trace, rank_index) = (timeline.trace, row.rank_index);
    let lit = timeline.look.lit.rank(trace.ranks[rank_index].rank);
    let shade = |colour| if lit { colour } else { palette.dimmed(colour) };
    let rows = &timeline.rows;
    let em = sizes.body;
    let room = timeline.plot().x - sizes.gap();
    let middle = row.top + rows.block.top + rows.block.height / 2.0;
    let place = place(timeline.overview, trace, rank_index);
    if rows.pitch < TWO_LINES * em {
        let size = (rows.pitch * 0.82).clamp(SMALLEST * em, em);
        if skipped(timeline, row, size) {
            return;
        }
        let style = Type::semi_bold(size, shade(palette.text));
        let name = name(trace, rank_index);
        let after = style.width(&name) + size * 0.7;
        canvas.text_at_middle(Point::new(0.0, middle), Anchor::Start, style, name);
        let weak = Type::regular(size * 0.86, shade(palette.text_weak));
        if after + weak.width(&place) <= room {
            canvas.text_at_middle(Point::new(after, middle), Anchor::Start, weak, place);
        }
        return;
    }
    let strong = Type::semi_bold(em, shade(palette.text));
    let weak = Type::regular(sizes.small(), shade(palette.text_weak));
    let lift = if place.is_empty() { 0.0 } else { em * 0.62 };
    let name_at = Point::new(0.0, middle - lift);
    canvas.text_at_middle(name_at, Anchor::Start, strong, name(trace, rank_index));
    let place = shortened(&place, weak.size, weak.weight, room);
    canvas.text_at_middle(
        Point::new(0.0, middle + em * 0.62),
        Anchor::Start,
        weak,
        place,
    );
    draw_memory_peak(timeline, row, weak, canvas);
}

/// Whether a low row goes without a name, as those around it have taken the room.
fn skipped(timeline: &Timeline<'_>, row: Row, size: f32) -> bool {
    let every = (size * 1.15 / timeline.rows.pitch).ceil().max(1.0) as usize;
    let rank = timeline.trace.ranks[row.rank_index].rank;
    timeline
        .overview
        .row(rank)
        .is_none_or(|row| row % every != 0)
}

/// The peak, left of the memory curve.
fn draw_memory_peak(timeline: &Timeline<'_>, row: Row, style: Type, canvas: &mut Canvas) {
    let (Some(band), Some(memory)) = (
        timeline.rows.memory,
        timeline.trace.memory.get(row.rank_index),
    ) else {
        return;
    };
    let rows = &timeline.rows;
    let free = row.top + band.bottom()
        - (row.top + rows.block.top + rows.block.height / 2.0 + style.size * 1.3);
    if free < style.size {
        return;
    }
    let text = format!("peak {}", memory.peak());
    let at = Point::new(0.0, row.top + band.bottom());
    canvas.text(at, Anchor::Start, style, text);
}

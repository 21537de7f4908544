//! The names left of the rows: the GPU, and where it stands in the mesh.

use crate::trace::Trace;

use super::canvas::{Canvas, Type};
use super::fonts::{Weight, shortened, width};
use super::overview::Overview;
use super::rows::Rows;
use super::shape::{Anchor, Point};
use super::timeline::{Row, Timeline};
use super::tokens::Sizes;

/// Names are never smaller than this, in body-text sizes; then only some rows have one.
const SMALLEST: f32 = 0.7;

/// How wide the column of names is.
pub(super) fn column(trace: &Trace, overview: &Overview, (rows, sizes): (&Rows, Sizes)) -> f32 {
    // The first and the last few ranks have the longest names.
    let count = trace.ranks.len();
    let sample = (0..count.min(64)).chain(count.saturating_sub(64)..count);
    let strong = |text: &str| width(text, sizes.body, Weight::SemiBold);
    let weak = |text: &str| width(text, sizes.small(), Weight::Regular);
    let widest = sample.map(|index| {
        let name = strong(&name(trace, index));
        if rows.two_lines(sizes) {
            let peak = weak(&peak(trace, index));
            name.max(weak(&place(overview, trace, index))).max(peak)
        } else {
            name + sizes.gap() + weak(&stage(overview, trace, index))
        }
    });
    let widest = widest.fold(sizes.body * 4.0, f32::max);
    widest.min(sizes.body * 15.0) + sizes.space()
}

/// What a rank is called.
pub fn name(trace: &Trace, rank_index: usize) -> String {
    if let Some(track) = trace.tracks.get(rank_index) {
        return track.clone();
    }
    let info = &trace.ranks[rank_index];
    match info.count {
        1 => format!("GPU {}", info.rank),
        count => format!("GPU {} ×{count}", info.rank),
    }
}

/// Where a rank stands, along the axes that are more than one long.
pub(super) fn place(overview: &Overview, trace: &Trace, rank_index: usize) -> String {
    // Streams and threads of other programs stand nowhere.
    if !trace.tracks.is_empty() {
        return String::new();
    }
    let info = &trace.ranks[rank_index];
    let (replicas, positions, slices) = overview.degrees;
    let mut parts = Vec::new();
    if replicas > 1 {
        parts.push(format!("replica {}", info.dp));
    }
    if positions > 1 {
        parts.push(stage(overview, trace, rank_index));
    }
    if slices > 1 {
        parts.push(format!("slice {}", info.tp));
    }
    parts.join(" · ")
}

/// The stages that a rank holds; nothing if there is but one in all.
fn stage(overview: &Overview, trace: &Trace, rank_index: usize) -> String {
    if overview.degrees.1 <= 1 {
        return String::new();
    }
    match overview.index.stages[rank_index].as_slice() {
        [] => format!("stage {}", trace.ranks[rank_index].pp),
        [stage] => format!("stage {stage}"),
        stages => {
            let list: Vec<String> = stages.iter().map(u32::to_string).collect();
            format!("stages {}", list.join(", "))
        }
    }
}

/// The most memory a rank takes.
fn peak(trace: &Trace, rank_index: usize) -> String {
    match trace.memory.get(rank_index) {
        Some(memory) => format!("peak {}", memory.peak()),
        None => String::new(),
    }
}

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let sizes = timeline.look.sizes;
    let palette = timeline.palette();
    let (trace, rank_index) = (timeline.trace, row.rank_index);
    let lit = timeline.look.lit.rank(trace.ranks[rank_index].rank);
    let ink = palette.text_if_lit(lit);
    let rows = &timeline.rows;
    let em = sizes.body;
    let folded = timeline.overview.lineup.folded_name(trace, row.index);
    let room = timeline.plot().x - sizes.gap();
    let block = rows.block.moved(row.top);
    let middle = block.top + block.height / 2.0;
    if !rows.two_lines(sizes) {
        let size = (rows.pitch * 0.82).clamp(SMALLEST * em, em);
        if skipped(timeline, row, size) {
            return;
        }
        let style = Type::semi_bold(size, ink);
        let several = folded.is_some();
        let name = folded.unwrap_or_else(|| name(trace, rank_index));
        let after = style.width(&name) + size * 0.5;
        canvas.text_at_middle(Point::new(0.0, middle), Anchor::Start, style, name);
        let weak = Type::regular(
            Sizes {
                body: size,
                ..sizes
            }
            .small()
            .min(size),
            palette.text_weak,
        );
        let stage = if several {
            gpus(timeline, row)
        } else {
            stage(timeline.overview, trace, rank_index)
        };
        if after + weak.width(&stage) <= room {
            canvas.text_at_middle(Point::new(after, middle), Anchor::Start, weak, stage);
        }
        return;
    }
    let strong = Type::semi_bold(em, ink);
    let weak = Type::regular(sizes.small(), palette.text_weak);
    let place = match folded {
        Some(_) => gpus(timeline, row),
        None => place(timeline.overview, trace, rank_index),
    };
    // A low block lies beside both lines, a high one beside the middle of them.
    let lift = if place.is_empty() { 0.0 } else { em * 0.62 };
    // The name never rises over its row: in the first one, it would be cut.
    let middle = middle.max(block.top + em * 0.9).max(row.top + em);
    let name_at = Point::new(0.0, middle - lift);
    let several = folded.is_some();
    let name = folded.unwrap_or_else(|| name(trace, rank_index));
    canvas.text_at_middle(name_at, Anchor::Start, strong, name);
    let place = shortened(&place, weak.size, weak.weight, room);
    let place_at = Point::new(0.0, middle + em * 0.62);
    canvas.text_at_middle(place_at, Anchor::Start, weak, place);
    if !several {
        draw_peak(timeline, row, (weak, place_at.y + em * 0.7), canvas);
    }
}

/// Of how many a folded row is.
fn gpus(timeline: &Timeline<'_>, row: Row) -> String {
    let members = timeline.overview.lineup.members(row.index);
    let count: u64 = members
        .iter()
        .map(|&index| u64::from(timeline.trace.ranks[index].count))
        .sum();
    if timeline.trace.tracks.is_empty() {
        format!("{count} GPUs")
    } else {
        format!("{count} streams")
    }
}

/// Whether a low row goes without a name, as those around it have taken the room.
fn skipped(timeline: &Timeline<'_>, row: Row, size: f32) -> bool {
    let every = (size * 1.15 / timeline.rows.pitch).ceil().max(1.0) as usize;
    !row.index.is_multiple_of(every)
}

/// The peak, left of the memory curve, if there is room under what ends at `taken`.
fn draw_peak(timeline: &Timeline<'_>, row: Row, (style, taken): (Type, f32), canvas: &mut Canvas) {
    let Some(band) = timeline.rows.memory else {
        return;
    };
    let bottom = row.top + band.bottom();
    if bottom - taken >= style.size * 0.8 {
        // Close to the other lines, so that it is not taken for the next row's.
        let at = Point::new(0.0, bottom.min(taken + style.size));
        canvas.text(
            at,
            Anchor::Start,
            style,
            peak(timeline.trace, row.rank_index),
        );
    }
}

//! The memory of a row: what stays, and activations on it as a step curve; one scale for all ranks.

use crate::trace::Memory;
use crate::units::{Bytes, Nanos};

use super::canvas::Canvas;
use super::colour::Colour;
use super::rows::Band;
use super::shape::{Point, Quad, Rect, Stroke};
use super::timeline::{Row, Timeline};

/// The device's capacity is shown if it is at most this many times the peak.
const NEAR: f64 = 2.5;

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let (Some(band), Some(memory)) = (
        timeline.rows.memory,
        timeline.trace.memory.get(row.rank_index),
    ) else {
        return;
    };
    let band = band.moved(row.top);
    let top_value = top_value(timeline);
    let height_of = |bytes: Bytes| (bytes.0 as f64 / top_value) as f32 * band.height;
    let end = timeline
        .scale
        .x(timeline.trace.makespan.min(timeline.until()));
    let left = timeline.scale.x(Nanos::ZERO);
    let palette = timeline.palette();
    let lit = timeline
        .look
        .lit
        .rank(timeline.trace.ranks[row.rank_index].rank);
    let shade = |colour: Colour| if lit { colour } else { palette.dimmed(colour) };
    let mut base = band.bottom();
    let fixed = [
        (memory.fixed.parameters, palette.memory.parameters),
        (memory.fixed.gradients, palette.memory.gradients),
        (memory.fixed.optimizer, palette.memory.optimizer),
    ];
    for (bytes, colour) in fixed {
        let height = height_of(bytes);
        base -= height;
        canvas.quad(Quad::new(
            Rect::new(left, base, end - left, height),
            shade(colour),
        ));
    }
    let points = curve(timeline, memory, |bytes| base - height_of(bytes));
    canvas.steps(points, end, base, shade(palette.memory.activations));
    let floor = Rect::new(left, band.bottom() - 0.5, end - left, 1.0);
    canvas.quad(Quad::new(floor, shade(palette.memory.parameters)));
    draw_capacity(timeline, band, top_value, canvas);
    draw_lit(timeline, row, band, canvas);
}

/// From when to when the micro-batches that are lit are in flight.
fn draw_lit(timeline: &Timeline<'_>, row: Row, band: Band, canvas: &mut Canvas) {
    let accent = timeline.palette().accent;
    for &micro_batch in &timeline.look.lit.micro_batches {
        for (from, to) in timeline.trace.in_flight(row.rank_index, micro_batch) {
            let left = timeline.scale.x(from);
            let right = timeline.scale.x(to.min(timeline.until()));
            let rect = Rect::new(left, band.top, right - left, band.height);
            canvas.quad(Quad::new(rect, accent.faded(0.28)));
            let line = Rect::new(left, band.bottom() - 2.0, right - left, 2.0);
            canvas.quad(Quad::new(line, timeline.palette().playhead));
        }
    }
}

/// The bytes at the top of a band.
fn top_value(timeline: &Timeline<'_>) -> f64 {
    let peak = peak(timeline).0.max(1) as f64;
    capacity_shown(timeline).map_or(peak, |capacity| peak.max(capacity.0 as f64))
}

/// The most that any rank of any timeline on the axis takes.
fn peak(timeline: &Timeline<'_>) -> Bytes {
    timeline
        .overview
        .peak_memory
        .max(timeline.look.common.memory)
}

fn capacity_shown(timeline: &Timeline<'_>) -> Option<Bytes> {
    let peak = peak(timeline).0 as f64;
    timeline
        .look
        .capacity
        .filter(|capacity| capacity.0 as f64 <= peak * NEAR)
}

fn draw_capacity(timeline: &Timeline<'_>, band: Band, top_value: f64, canvas: &mut Canvas) {
    let Some(capacity) = capacity_shown(timeline) else {
        return;
    };
    let y = band.bottom() - (capacity.0 as f64 / top_value) as f32 * band.height;
    let stroke = Stroke {
        width: 1.0,
        colour: timeline.palette().memory.capacity,
        dash: Some(4.0),
    };
    let (left, right) = (timeline.scale.left(), timeline.scale.right());
    canvas.line(Point::new(left, y), Point::new(right, y), stroke);
}

/// The visible steps of activations: where several fall on a point, the highest.
fn curve(timeline: &Timeline<'_>, memory: &Memory, y_of: impl Fn(Bytes) -> f32) -> Vec<Point> {
    let scale = &timeline.scale;
    let (from, to) = (scale.from, scale.to.min(timeline.until()));
    let steps = &memory.activations;
    let mut points = Vec::new();
    let start = memory.activations_at(from);
    if steps.is_empty() {
        return points;
    }
    points.push(Point::new(scale.x(from), y_of(start)));
    let mut at = steps.partition_point(|&(time, _)| time <= from);
    while let Some(&(time, _)) = steps.get(at).filter(|&&(time, _)| time < to) {
        let point_end = Nanos(time.0.saturating_add(scale.duration_of(1.0).0));
        let next = at + steps[at..].partition_point(|&(time, _)| time < point_end);
        let next = next.max(at + 1);
        // The highest of what falls together is kept, so that a peak never vanishes, and then the last.
        let together = &steps[at..next.min(at + 4096)];
        let highest = together
            .iter()
            .map(|&(_, bytes)| bytes)
            .max()
            .unwrap_or_default();
        points.push(Point::new(scale.x(time), y_of(highest)));
        if let Some(&(last_time, last)) = steps[at..next].last()
            && last != highest
        {
            points.push(Point::new(scale.x(last_time) + 0.5, y_of(last)));
        }
        at = next;
    }
    points
}

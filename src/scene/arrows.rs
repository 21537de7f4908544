//! Arrows from sends to where they are received.

use crate::trace::Arrow;

use super::canvas::Canvas;
use super::shape::{Point, Stroke};
use super::timeline::Timeline;

/// More arrows than this cannot be told apart, and none is drawn.
const MOST: usize = 1500;

pub(super) fn draw(timeline: &Timeline<'_>, canvas: &mut Canvas) {
    let trace = timeline.trace;
    let (from, to) = (timeline.scale.from, timeline.scale.to.min(timeline.until()));
    let visible = timeline.overview.arrows_between(trace, from, to);
    let visible: Vec<usize> = visible.take(MOST + 1).collect();
    if visible.len() > MOST {
        return;
    }
    for index in visible {
        draw_arrow(timeline, trace.arrows[index], canvas);
    }
}

fn draw_arrow(timeline: &Timeline<'_>, arrow: Arrow, canvas: &mut Canvas) {
    let rows = (
        timeline.overview.lineup.row(arrow.from),
        timeline.overview.lineup.row(arrow.to),
    );
    let (Some(from_row), Some(to_row)) = rows else {
        return;
    };
    if arrow.arrived > timeline.until() || arrow.arrived > timeline.scale.to {
        return;
    }
    let palette = timeline.palette();
    let label = timeline.trace.label(arrow.label);
    let lit =
        timeline.look.lit.holds(arrow.from, label) || timeline.look.lit.holds(arrow.to, label);
    let colour = if lit {
        palette.send
    } else {
        palette.dimmed(palette.send)
    };
    let block = timeline.rows.block;
    if to_row == from_row {
        return;
    }
    let down = to_row > from_row;
    let (leaves, arrives) = if down {
        (block.bottom(), block.top)
    } else {
        (block.top, block.bottom())
    };
    let start = Point::new(
        timeline.scale.x(arrow.left),
        timeline.row_top(from_row) + leaves,
    );
    let end = Point::new(
        timeline.scale.x(arrow.arrived),
        timeline.row_top(to_row) + arrives,
    );
    canvas.line(start, end, Stroke::solid(1.2, colour));
    canvas.polygon(head(start, end, timeline.look.sizes.body * 0.38), colour);
}

/// The head of an arrow, a triangle of length `size`.
fn head(start: Point, end: Point, size: f32) -> Vec<Point> {
    let (dx, dy) = (end.x - start.x, end.y - start.y);
    let length = dx.hypot(dy).max(0.01);
    let (ux, uy) = (dx / length, dy / length);
    let foot = Point::new(end.x - ux * size, end.y - uy * size);
    let half = size * 0.42;
    vec![
        end,
        Point::new(foot.x - uy * half, foot.y + ux * half),
        Point::new(foot.x + uy * half, foot.y - ux * half),
    ]
}

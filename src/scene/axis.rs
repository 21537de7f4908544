//! The time axis over the rows, its grid, and the playhead.

use crate::units::Nanos;

use super::canvas::{Canvas, Type};
use super::shape::{Anchor, Point, Quad, Rect, Stroke};
use super::timeline::Timeline;
use super::tokens::Sizes;

/// How high the axis is.
pub(super) fn height(sizes: Sizes) -> f32 {
    sizes.body * 2.0
}

pub(super) fn draw(timeline: &Timeline<'_>, canvas: &mut Canvas) {
    let sizes = timeline.look.sizes;
    let palette = timeline.palette();
    let plot = timeline.plot();
    let style = style(timeline);
    let middle = plot.y - sizes.body;
    let bottom = (timeline.y(timeline.rows.height())).min(plot.bottom());
    for (x, text) in ticks(timeline) {
        let from = Point::new(x, plot.y - sizes.gap() * 0.6);
        canvas.line(
            from,
            Point::new(x, bottom),
            Stroke::solid(1.0, palette.grid),
        );
        canvas.text_at_middle(Point::new(x, middle), Anchor::Middle, style, text);
    }
}

fn style(timeline: &Timeline<'_>) -> Type {
    let sizes = timeline.look.sizes;
    Type::regular(sizes.small(), timeline.palette().text_weak)
}

/// Where the axis is marked, and with what.
fn ticks(timeline: &Timeline<'_>) -> impl Iterator<Item = (f32, String)> {
    let scale = &timeline.scale;
    let step = round_step(scale.duration_of(timeline.look.sizes.body * 6.0));
    let unit = Unit::of(scale.to);
    let first = scale.from.0.div_ceil(step.0);
    (first..)
        .map(move |index| Nanos(index.saturating_mul(step.0)))
        .take_while(|&time| time <= scale.to)
        .map(move |time| (scale.x(time), unit.label(time, step)))
}

/// Where the times on the axis stand, for whoever draws over one to take all of it away.
pub(super) fn labels(timeline: &Timeline<'_>) -> impl Iterator<Item = Rect> {
    let (style, body) = (style(timeline), timeline.look.sizes.body);
    let middle = timeline.plot().y - body;
    ticks(timeline).map(move |(x, text)| {
        let (width, height) = (style.width(&text) + 2.0, body * 1.2);
        Rect::new(x - width / 2.0, middle - height / 2.0, width, height)
    })
}

/// The playhead, with its time on the axis.
pub(super) fn draw_playhead(timeline: &Timeline<'_>, canvas: &mut Canvas) {
    let Some(time) = timeline.look.playhead else {
        return;
    };
    if time < timeline.scale.from || time > timeline.scale.to {
        return;
    }
    let sizes = timeline.look.sizes;
    let palette = timeline.palette();
    let plot = timeline.plot();
    let x = timeline.scale.x(time);
    let style = Type::semi_bold(sizes.small(), palette.background);
    let text = Unit::of(timeline.scale.to).label(time, timeline.scale.duration_of(1.0));
    let (width, height) = (style.width(&text) + sizes.body * 0.8, sizes.body * 1.35);
    let left = (x - width / 2.0).clamp(plot.x, (plot.right() - width).max(plot.x));
    let middle = plot.y - sizes.body;
    let pill = Rect::new(left, middle - height / 2.0, width, height);
    let bottom = timeline.y(timeline.rows.height()).min(plot.bottom());
    for label in labels(timeline).filter(|label| label.x < pill.right() && label.right() > pill.x) {
        canvas.quad(Quad::new(label, palette.background));
    }
    let line = Stroke::solid(1.6, palette.playhead);
    canvas.line(Point::new(x, pill.bottom()), Point::new(x, bottom), line);
    canvas.quad(Quad::new(pill, palette.playhead).rounded(height / 2.0));
    canvas.text_at_middle(pill.centre(), Anchor::Middle, style, text);
}

/// The least of 1, 2, 5, 10, ... nanoseconds that is at least `least`.
fn round_step(least: Nanos) -> Nanos {
    let mut power: u64 = 1;
    loop {
        for digit in [1, 2, 5] {
            let step = power.saturating_mul(digit);
            if step >= least.0 || step == u64::MAX {
                return Nanos(step);
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The unit of an axis, by the latest time on it.
#[derive(Clone, Copy, Debug)]
struct Unit {
    nanos: f64,
    name: &'static str,
}

impl Unit {
    fn of(latest: Nanos) -> Self {
        let (nanos, name) = match latest.0 {
            0..2_000 => (1.0, "ns"),
            2_000..2_000_000 => (1e3, "µs"),
            2_000_000..2_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        Self { nanos, name }
    }

    /// `time` with as many decimals as tell steps of `step` apart.
    fn label(self, time: Nanos, step: Nanos) -> String {
        let ratio = self.nanos / step.0.max(1) as f64;
        let decimals = ratio.log10().ceil().clamp(0.0, 9.0) as usize;
        let value = time.0 as f64 / self.nanos;
        format!("{value:.decimals$} {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_labels_tell_them_apart() {
        assert_eq!(round_step(Nanos(1)), Nanos(1));
        assert_eq!(round_step(Nanos(1_200_000)), Nanos(2_000_000));
        assert_eq!(round_step(Nanos(u64::MAX)), Nanos(u64::MAX));
        let unit = Unit::of(Nanos(18_000_000));
        assert_eq!(unit.label(Nanos(2_000_000), Nanos(2_000_000)), "2 ms");
        assert_eq!(unit.label(Nanos(2_500_000), Nanos(500_000)), "2.5 ms");
    }
}

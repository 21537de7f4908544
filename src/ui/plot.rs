//! A small plot: a frame with few marks, and curves in it.

use eframe::egui::{Align2, Painter, Pos2, Rect, Shape, Stroke, Vec2, pos2, vec2};

use crate::scene::Colour;
use crate::scene::fonts::Weight;
use crate::units::three_digits;

use super::theme::{color, font};
use super::view::View;

/// Ranges of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranges {
    /// Along.
    pub(super) x: (f64, f64),
    /// Up.
    pub(super) y: (f64, f64),
}

/// A plot being drawn.
pub(super) struct Plot<'a> {
    painter: &'a Painter,
    view: &'a View,
    area: Rect,
    ranges: Ranges,
}

impl<'a> Plot<'a> {
    /// A plot in `rect`, with the ends of its axes marked.
    pub(super) fn new(
        painter: &'a Painter,
        view: &'a View,
        rect: Rect,
        ranges: Ranges,
        marks: [String; 4],
    ) -> Self {
        let sizes = view.sizes();
        let palette = view.palette();
        let small = font(sizes.small(), Weight::Regular);
        let weak = color(palette.text_weak);
        let [left, right, bottom, top] = marks;
        let width =
            |text: &String| crate::scene::fonts::width(text, sizes.small(), Weight::Regular);
        let margin = vec2(
            width(&bottom).max(width(&top)) + sizes.gap(),
            sizes.body * 1.25,
        );
        let area = Rect::from_min_max(
            rect.min + vec2(margin.x, sizes.small() * 0.6),
            rect.max - vec2(sizes.gap(), margin.y),
        );
        let axis = Stroke::new(1.0, color(palette.divider));
        painter.hline(area.x_range(), area.bottom(), axis);
        painter.vline(area.left(), area.y_range(), axis);
        let texts = [
            (
                area.left_bottom() + vec2(0.0, sizes.gap() * 0.5),
                Align2::LEFT_TOP,
                left,
            ),
            (
                area.right_bottom() + vec2(0.0, sizes.gap() * 0.5),
                Align2::RIGHT_TOP,
                right,
            ),
            (
                area.left_bottom() - vec2(sizes.gap() * 0.7, 0.0),
                Align2::RIGHT_CENTER,
                bottom,
            ),
            (
                area.left_top() - vec2(sizes.gap() * 0.7, 0.0),
                Align2::RIGHT_CENTER,
                top,
            ),
        ];
        for (at, anchor, text) in texts {
            painter.text(at, anchor, text, small.clone(), weak);
        }
        Self {
            painter,
            view,
            area,
            ranges,
        }
    }

    fn at(&self, x: f64, y: f64) -> Pos2 {
        let share = |value: f64, (low, high): (f64, f64)| {
            ((value - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) as f32
        };
        let (right, up) = (share(x, self.ranges.x), share(y, self.ranges.y));
        pos2(
            self.area.left() + right * self.area.width(),
            self.area.bottom() - up * self.area.height(),
        )
    }

    /// Where a point is.
    pub(super) fn place(&self, (x, y): (f64, f64)) -> Pos2 {
        self.at(x, y)
    }

    /// A line through points.
    pub(super) fn line(&self, points: &[(f64, f64)], colour: Colour, width: f32) {
        let points = points.iter().map(|&(x, y)| self.at(x, y)).collect();
        self.painter
            .add(Shape::line(points, Stroke::new(width, color(colour))));
    }

    /// A broken line through points.
    pub(super) fn dashes(&self, points: &[(f64, f64)], colour: Colour, width: f32) {
        let points: Vec<Pos2> = points.iter().map(|&(x, y)| self.at(x, y)).collect();
        let stroke = Stroke::new(width, color(colour));
        self.painter
            .extend(Shape::dashed_line(&points, stroke, 3.0, 5.0));
    }

    /// A dot.
    pub(super) fn dot(&self, (x, y): (f64, f64), colour: Colour, radius: f32) {
        self.painter
            .circle_filled(self.at(x, y), radius, color(colour));
    }

    /// Words beside a point, kept within the plot.
    pub(super) fn word(&self, (x, y): (f64, f64), text: &str, colour: Colour, away: Vec2) {
        let sizes = self.view.sizes();
        let galley = self.painter.layout_no_wrap(
            text.to_owned(),
            font(sizes.small(), Weight::SemiBold),
            color(colour),
        );
        let at = self.at(x, y) + away;
        let rect = Align2::LEFT_CENTER.anchor_size(at, galley.size());
        let most = self.area.right() - rect.width();
        let left = rect
            .left()
            .clamp(self.area.left(), most.max(self.area.left()));
        let top = rect.top().clamp(
            self.area.top() - rect.height() * 0.5,
            (self.area.bottom() - rect.height()).max(self.area.top()),
        );
        self.painter.galley(pos2(left, top), galley, color(colour));
    }
}

/// A range around values, with a little air.
pub(super) fn around(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low > high {
        return (0.0, 1.0);
    }
    let air = ((high - low) * 0.08).max(high.abs() * 0.01).max(1e-9);
    (low - air, high + air)
}

/// A mark on an axis.
pub(super) fn mark(value: f64) -> String {
    three_digits(value)
}

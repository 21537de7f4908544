//! Between times and places along the time axis.

use crate::units::Nanos;

/// Which times lie where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The time at the left edge.
    pub from: Nanos,
    /// The time at the right edge.
    pub to: Nanos,
    left: f32,
    width: f32,
    per_point: f64,
    /// Points a nanosecond.
    points: f64,
}

impl Scale {
    /// `from` at `left`, `to` at `left + width`.
    pub fn new(from: Nanos, to: Nanos, left: f32, width: f32) -> Self {
        let to = to.max(Nanos(from.0.saturating_add(1)));
        let (length, width) = (to.since(from).0 as f64, width.max(1.0));
        Self {
            from,
            to,
            left,
            width,
            per_point: length / f64::from(width),
            points: f64::from(width) / length,
        }
    }

    /// Where `time` is; what lies outside is put on the edge.
    pub fn x(&self, time: Nanos) -> f32 {
        let time = time.clamp(self.from, self.to);
        self.left + (time.since(self.from).0 as f64 * self.points) as f32
    }

    /// The time at `x`, held to what is shown.
    pub fn time(&self, x: f32) -> Nanos {
        let along = f64::from((x - self.left).clamp(0.0, self.width));
        let time = self.from.0.saturating_add((along * self.per_point) as u64);
        Nanos(time).min(self.to)
    }

    /// How long a point is.
    pub fn duration_of(&self, points: f32) -> Nanos {
        Nanos((f64::from(points) * self.per_point).ceil() as u64)
    }

    /// How wide a duration is.
    pub fn width_of(&self, duration: Nanos) -> f32 {
        (duration.0 as f64 * self.points) as f32
    }

    /// Left edge.
    pub fn left(&self) -> f32 {
        self.left
    }

    /// Right edge.
    pub fn right(&self) -> f32 {
        self.left + self.width
    }
}

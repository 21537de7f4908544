//! Puts one scene into another.

use super::shape::{Point, Scene, Shape};

impl Scene {
    /// Adds `other`'s shapes, moved so that its top left is at `at`.
    pub fn place(&mut self, other: Self, at: Point) {
        let moved = |point: Point| Point::new(point.x + at.x, point.y + at.y);
        self.shapes
            .extend(other.shapes.into_iter().map(|shape| match shape {
                Shape::Quad(mut quad) => {
                    quad.rect.x += at.x;
                    quad.rect.y += at.y;
                    Shape::Quad(quad)
                }
                Shape::Text(mut text) => {
                    text.at = moved(text.at);
                    Shape::Text(text)
                }
                Shape::Line { points, stroke } => Shape::Line {
                    points: points.into_iter().map(moved).collect(),
                    stroke,
                },
                Shape::Polygon { points, fill } => Shape::Polygon {
                    points: points.into_iter().map(moved).collect(),
                    fill,
                },
                Shape::Cells { mut rect, colours } => {
                    rect.x += at.x;
                    rect.y += at.y;
                    Shape::Cells { rect, colours }
                }
                Shape::Steps {
                    points,
                    end,
                    base,
                    fill,
                } => Shape::Steps {
                    points: points.into_iter().map(moved).collect(),
                    end: end + at.x,
                    base: base + at.y,
                    fill,
                },
            }));
    }
}

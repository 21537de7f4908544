//! Collects shapes, cut to the part of the scene that they may cover.

use super::colour::Colour;
use super::fonts::{CAP_HEIGHT, Weight};
use super::shape::{Anchor, Point, Quad, Rect, Shape, Stroke, Text};

/// A text's look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f32,
    pub(super) weight: Weight,
    pub(super) colour: Colour,
}

impl Type {
    pub(super) fn regular(size: f32, colour: Colour) -> Self {
        Self {
            size,
            weight: Weight::Regular,
            colour,
        }
    }

    pub(super) fn semi_bold(size: f32, colour: Colour) -> Self {
        Self {
            size,
            weight: Weight::SemiBold,
            colour,
        }
    }

    /// How wide `text` is.
    pub(super) fn width(&self, text: &str) -> f32 {
        super::fonts::width(text, self.size, self.weight)
    }

    /// How far below the middle of a line the baseline is, so that capitals are centred on it.
    pub(super) fn drop(&self) -> f32 {
        CAP_HEIGHT * self.size / 2.0
    }
}

/// Shapes in the making.
#[derive(Debug)]
pub(super) struct Canvas {
    shapes: Vec<Shape>,
    clip: Rect,
}

impl Canvas {
    pub(super) fn new(clip: Rect) -> Self {
        Self {
            shapes: Vec::new(),
            clip,
        }
    }

    /// What may be covered from now on.
    pub(super) fn clip_to(&mut self, clip: Rect) {
        self.clip = clip;
    }

    pub(super) fn into_shapes(self) -> Vec<Shape> {
        self.shapes
    }

    /// The part of a quad that lies in the clip.
    pub(super) fn quad(&mut self, quad: Quad) {
        if let Some(rect) = quad.rect.intersection(&self.clip) {
            self.shapes.push(Shape::Quad(Quad { rect, ..quad }));
        }
    }

    /// A text on the baseline at `at`, if it lies in the clip as a whole.
    pub(super) fn text(&mut self, at: Point, anchor: Anchor, style: Type, text: impl Into<String>) {
        let text = Text {
            at,
            anchor,
            size: style.size,
            weight: style.weight,
            colour: style.colour,
            words: text.into(),
        };
        if !text.words.is_empty() && self.clip.encloses(&text.bounds()) {
            self.shapes.push(Shape::Text(text));
        }
    }

    /// A text around `at`, its capitals centred on it, of which the width is known: asked for each block that has a name.
    pub(super) fn text_within(&mut self, at: Point, style: Type, (words, width): (&str, f32)) {
        let baseline = at.y + style.drop();
        let (rise, fall) = (CAP_HEIGHT * style.size, 0.22 * style.size);
        let bounds = Rect::new(at.x - width / 2.0, baseline - rise, width, rise + fall);
        if self.clip.encloses(&bounds) {
            self.shapes.push(Shape::Text(Text {
                at: Point::new(at.x, baseline),
                anchor: Anchor::Middle,
                size: style.size,
                weight: style.weight,
                colour: style.colour,
                words: words.to_owned(),
            }));
        }
    }

    /// A text whose capitals are centred on `y`.
    pub(super) fn text_at_middle(
        &mut self,
        at: Point,
        anchor: Anchor,
        style: Type,
        text: impl Into<String>,
    ) {
        let baseline = Point::new(at.x, at.y + style.drop());
        self.text(baseline, anchor, style, text);
    }

    /// A straight line, cut at the clip if it runs along an axis and left out if it starts or ends outside.
    pub(super) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let held = |at: Point| {
            Point::new(
                at.x.clamp(self.clip.x, self.clip.right()),
                at.y.clamp(self.clip.y, self.clip.bottom()),
            )
        };
        let (start, end) = (held(from), held(to));
        let along_axis = from.x == to.x && start.x == from.x || from.y == to.y && start.y == from.y;
        let inside = start == from && end == to;
        if inside || along_axis && start != end {
            self.shapes.push(Shape::Line {
                points: vec![start, end],
                stroke,
            });
        }
    }

    /// A convex polygon, if it lies in the clip as a whole.
    pub(super) fn polygon(&mut self, points: Vec<Point>, fill: Colour) {
        let bounds = self.clip.grown(0.5);
        if points.iter().all(|&at| bounds.contains(at)) {
            self.shapes.push(Shape::Polygon { points, fill });
        }
    }

    /// Cells side by side, their heights held to the clip.
    pub(super) fn cells(&mut self, rect: Rect, colours: Vec<Colour>) {
        let height = Rect::new(rect.x, self.clip.y, rect.width, self.clip.height);
        if let Some(rect) = rect.intersection(&height).filter(|_| !colours.is_empty()) {
            self.shapes.push(Shape::Cells { rect, colours });
        }
    }

    /// A filled step curve, its heights held to the clip.
    pub(super) fn steps(&mut self, mut points: Vec<Point>, end: f32, base: f32, fill: Colour) {
        let (top, bottom) = (self.clip.y, self.clip.bottom());
        if base <= top || points.is_empty() {
            return;
        }
        for point in &mut points {
            point.y = point.y.clamp(top, bottom);
        }
        self.shapes.push(Shape::Steps {
            points,
            end,
            base: base.min(bottom),
            fill,
        });
    }
}

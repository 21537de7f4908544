//! Paints a scene with egui: all its quads, stripes and lines as one mesh, texts over them.
//!
//! A painted scene is kept while nothing changes; each frame then costs no more than handing it over.

use std::sync::Arc;

use eframe::egui::epaint::{
    CornerRadiusF32, Mesh, PathShape, PathStroke, RectShape, StrokeKind, TessellationOptions,
    Tessellator,
};
use eframe::egui::{self, Color32, Painter, Pos2, Stroke, pos2, vec2};

use crate::scene::{Anchor, Hatch, Quad, Rect, Scene, Shape, Text};

use super::theme::{color, font};

/// A scene made ready for painting.
#[derive(Clone, Debug)]
pub(super) struct Painted {
    mesh: Arc<Mesh>,
    texts: Vec<Text>,
    origin: Pos2,
}

impl Painted {
    /// `scene` with its top left at `origin`.
    pub(super) fn new(scene: Scene, origin: Pos2, pixels_per_point: f32) -> Self {
        let options = TessellationOptions {
            coarse_tessellation_culling: false,
            ..TessellationOptions::default()
        };
        let mut builder = Builder {
            mesh: Mesh::default(),
            tessellator: Tessellator::new(pixels_per_point, options, [1, 1], Vec::new()),
            pixel: 1.0 / pixels_per_point,
            origin,
        };
        let mut texts = Vec::new();
        for shape in scene.shapes {
            match shape {
                Shape::Text(text) => texts.push(text),
                Shape::Quad(quad) => builder.quad(&quad),
                Shape::Line { points, stroke } => builder.line(&points, stroke),
                Shape::Polygon { points, fill } => builder.polygon(&points, color(fill)),
                Shape::Cells { rect, colours } => builder.cells(rect, &colours),
                Shape::Steps {
                    points,
                    end,
                    base,
                    fill,
                } => builder.steps(&points, (end, base), color(fill)),
            }
        }
        Self {
            mesh: Arc::new(builder.mesh),
            texts,
            origin,
        }
    }

    /// Paints it.
    pub(super) fn paint(&self, painter: &Painter) {
        if !self.mesh.is_empty() {
            painter.add(egui::Shape::Mesh(Arc::clone(&self.mesh)));
        }
        for text in &self.texts {
            paint_text(painter, text, self.origin);
        }
    }
}

/// A line of text on its baseline. Laid out anew each frame, which egui remembers: a galley kept for longer would
/// point into a font atlas that may have been cleared.
fn paint_text(painter: &Painter, text: &Text, origin: Pos2) {
    let at = pos2(origin.x + text.at.x, origin.y + text.at.y);
    let clip = painter.clip_rect();
    if at.y < clip.top() - text.size || at.y > clip.bottom() + text.size {
        return;
    }
    let tint = color(text.colour);
    let galley = painter.layout_no_wrap(text.words.clone(), font(text.size, text.weight), tint);
    let baseline = galley
        .rows
        .first()
        .and_then(|row| Some(row.pos.y + row.row.glyphs.first()?.pos.y));
    let left = match text.anchor {
        Anchor::Start => at.x,
        Anchor::Middle => at.x - galley.size().x / 2.0,
        Anchor::End => at.x - galley.size().x,
    };
    painter.galley(
        pos2(left, at.y - baseline.unwrap_or(text.size)),
        galley,
        tint,
    );
}

struct Builder {
    mesh: Mesh,
    tessellator: Tessellator,
    /// The width of a pixel, over which edges are smoothed.
    pixel: f32,
    origin: Pos2,
}

impl Builder {
    fn rect(&self, rect: Rect) -> egui::Rect {
        egui::Rect::from_min_size(
            self.origin + vec2(rect.x, rect.y),
            vec2(rect.width, rect.height),
        )
    }

    fn point(&self, at: crate::scene::Point) -> Pos2 {
        self.origin + vec2(at.x, at.y)
    }

    fn quad(&mut self, quad: &Quad) {
        let rect = self.rect(quad.rect);
        let fill = color(quad.fill);
        if quad.radius >= 0.5 || quad.stroke.is_some() {
            let stroke = quad.stroke.map_or(Stroke::NONE, |stroke| {
                Stroke::new(stroke.width, color(stroke.colour))
            });
            let radius = CornerRadiusF32::same(quad.radius);
            let shape = RectShape::new(rect, radius, fill, stroke, StrokeKind::Middle);
            self.tessellator.tessellate_rect(&shape, &mut self.mesh);
        } else if fill.a() > 0 {
            self.mesh.add_colored_rect(rect, fill);
        }
        if let Some(hatch) = quad.hatch {
            self.hatch(rect, hatch);
        }
    }

    /// Cells of one colour side by side as one rectangle.
    fn cells(&mut self, rect: Rect, colours: &[crate::scene::Colour]) {
        let each = rect.width / colours.len().max(1) as f32;
        let mut left = rect.x;
        for run in colours.chunk_by(|one, next| one == next) {
            let width = each * run.len() as f32;
            let piece = self.rect(Rect::new(left, rect.y, width, rect.height));
            self.mesh.add_colored_rect(piece, color(run[0]));
            left += width;
        }
    }

    /// Stripes at 45 degrees, cut to `rect`, each with soft edges; their places do not depend on the rectangle, so
    /// that they run on from one to the next.
    fn hatch(&mut self, rect: egui::Rect, hatch: Hatch) {
        let turn = if hatch.rises() { 1.0 } else { -1.0 };
        // Along a stripe, x + turn * y is the same everywhere.
        let along = |at: Pos2| (at.x - self.origin.x) + turn * (at.y - self.origin.y);
        let corners = [
            rect.left_top(),
            rect.right_top(),
            rect.right_bottom(),
            rect.left_bottom(),
        ];
        let low = corners.map(along).into_iter().fold(f32::MAX, f32::min);
        let high = corners.map(along).into_iter().fold(f32::MIN, f32::max);
        // Thickness is measured across the stripe, `along` along x.
        let half = hatch.thickness() * std::f32::consts::FRAC_1_SQRT_2;
        let soft = self.pixel * std::f32::consts::FRAC_1_SQRT_2;
        let tint = color(hatch.colour());
        let spacing = hatch.spacing();
        let first = ((low - half) / spacing).floor() as i64;
        let last = ((high + half) / spacing).ceil() as i64;
        let origin = self.origin;
        let along = move |at: Pos2| (at.x - origin.x) + turn * (at.y - origin.y);
        for index in first..=last {
            let middle = index as f32 * spacing;
            let bands = [
                (middle - half - soft, middle - half + soft, 0.0, 1.0),
                (middle - half + soft, middle + half - soft, 1.0, 1.0),
                (middle + half - soft, middle + half + soft, 1.0, 0.0),
            ];
            for (from, to, start, end) in bands {
                let polygon = cut(&cut(&corners, |at| along(at) - from), |at| to - along(at));
                let shade = |at: Pos2| {
                    let share = ((along(at) - from) / (to - from)).clamp(0.0, 1.0);
                    tint.gamma_multiply(start + (end - start) * share)
                };
                self.fan(&polygon, shade);
            }
        }
    }

    fn fan(&mut self, polygon: &[Pos2], shade: impl Fn(Pos2) -> Color32) {
        if polygon.len() < 3 {
            return;
        }
        let base = self.mesh.vertices.len() as u32;
        for &at in polygon {
            self.mesh.colored_vertex(at, shade(at));
        }
        for index in 2..polygon.len() as u32 {
            self.mesh.add_triangle(base, base + index - 1, base + index);
        }
    }

    fn line(&mut self, points: &[crate::scene::Point], stroke: crate::scene::Stroke) {
        let points: Vec<Pos2> = points.iter().map(|&at| self.point(at)).collect();
        let look = Stroke::new(stroke.width, color(stroke.colour));
        match (stroke.dash, points.as_slice()) {
            (Some(dash), _) => {
                for piece in egui::Shape::dashed_line(&points, look, dash, dash) {
                    self.tessellator.tessellate_shape(piece, &mut self.mesh);
                }
            }
            // A whole line along an axis is a crisp rectangle on the pixel grid.
            (None, &[from, to]) if from.x == to.x || from.y == to.y => {
                let rect = egui::Rect::from_two_pos(from, to).expand(stroke.width / 2.0);
                let rect = if from.x == to.x {
                    egui::Rect::from_x_y_ranges(rect.x_range(), from.y.min(to.y)..=from.y.max(to.y))
                } else {
                    egui::Rect::from_x_y_ranges(from.x.min(to.x)..=from.x.max(to.x), rect.y_range())
                };
                self.mesh.add_colored_rect(rect, look.color);
            }
            (None, _) => {
                let path = PathShape::line(points, PathStroke::from(look));
                self.tessellator.tessellate_path(&path, &mut self.mesh);
            }
        }
    }

    fn polygon(&mut self, points: &[crate::scene::Point], fill: Color32) {
        let points = points.iter().map(|&at| self.point(at)).collect();
        let path = PathShape::convex_polygon(points, fill, PathStroke::NONE);
        self.tessellator.tessellate_path(&path, &mut self.mesh);
    }

    fn steps(&mut self, points: &[crate::scene::Point], (end, base): (f32, f32), fill: Color32) {
        for (index, at) in points.iter().enumerate() {
            let right = points.get(index + 1).map_or(end, |next| next.x).min(end);
            let rect = Rect::new(at.x, at.y, right - at.x, base - at.y);
            if rect.width > 0.0 && rect.height > 0.0 {
                let rect = self.rect(rect);
                self.mesh.add_colored_rect(rect, fill);
            }
        }
    }
}

/// The part of a convex polygon on which `side` is not negative.
fn cut(polygon: &[Pos2], side: impl Fn(Pos2) -> f32) -> Vec<Pos2> {
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (index, &at) in polygon.iter().enumerate() {
        let next = polygon[(index + 1) % polygon.len()];
        let (here, there) = (side(at), side(next));
        if here >= 0.0 {
            kept.push(at);
        }
        if (here < 0.0) != (there < 0.0) {
            kept.push(at + (next - at) * (here / (here - there)));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Size;
    use crate::scene::tokens::Theme;

    #[test]
    fn stripes_stay_within_their_quad() {
        let palette = Theme::Dark.palette();
        let rect = Rect::new(13.0, 7.0, 40.0, 21.0);
        for hatch in [
            Hatch::Bubble(palette.bubble),
            Hatch::Waiting(palette.waiting),
        ] {
            let scene = Scene {
                size: Size::new(100.0, 100.0),
                background: palette.background,
                shapes: vec![Shape::Quad(
                    Quad::new(rect, palette.bubble_bed).hatched(hatch),
                )],
            };
            let painted = Painted::new(scene, pos2(100.0, 50.0), 1.0);
            let bounds = painted.mesh.calc_bounds();
            assert!(painted.mesh.vertices.len() > 20);
            assert!((bounds.left() - 113.0).abs() < 0.01 && (bounds.right() - 153.0).abs() < 0.01);
            assert!((bounds.top() - 57.0).abs() < 0.01 && (bounds.bottom() - 78.0).abs() < 0.01);
        }
    }
}

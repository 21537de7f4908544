//! Paints a scene with egui: all its quads, stripes and lines as one mesh, texts over them.
//!
//! A painted scene is kept while nothing changes; each frame then costs no more than handing it over.

use std::sync::Arc;

use eframe::egui::epaint::{
    CornerRadiusF32, Mesh, PathShape, PathStroke, RectShape, StrokeKind, TessellationOptions,
    Tessellator,
};
use eframe::egui::{
    self, Color32, ColorImage, Context, Painter, Pos2, Stroke, TextureHandle, TextureOptions, pos2,
    vec2,
};

use crate::scene::{Anchor, Hatch, Quad, Rect, Scene, Shape, Text};

use super::theme::{color, font};

/// A scene made ready for painting.
#[derive(Clone)]
pub(super) struct Painted {
    /// What lies under cells, and what lies over them.
    meshes: [Arc<Mesh>; 2],
    /// All cells as one texture, and their places.
    cells: Option<(TextureHandle, Arc<Mesh>)>,
    texts: Vec<Text>,
    origin: Pos2,
}

impl std::fmt::Debug for Painted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Painted")
            .field("texts", &self.texts.len())
            .finish_non_exhaustive()
    }
}

impl Painted {
    /// `scene` with its top left at `origin`.
    pub(super) fn new(ctx: &Context, scene: Scene, origin: Pos2, pixels_per_point: f32) -> Self {
        let mut texts = Vec::new();
        let mut cells: Vec<(Rect, Vec<crate::scene::Colour>)> = Vec::new();
        let mut builder = Builder::new(origin, pixels_per_point);
        let mut below = None;
        for shape in scene.shapes {
            match shape {
                Shape::Text(text) => texts.push(text),
                Shape::Quad(quad) => builder.quad(&quad),
                Shape::Line { points, stroke } => builder.line(&points, stroke),
                Shape::Polygon { points, fill } => builder.polygon(&points, color(fill)),
                Shape::Cells { rect, colours } => {
                    // Rows do not overlap: cells of all of them are painted at once, over what comes before the first.
                    below.get_or_insert_with(|| std::mem::take(&mut builder.mesh));
                    cells.push((rect, colours));
                }
                Shape::Steps {
                    points,
                    end,
                    base,
                    fill,
                } => builder.steps(&points, (end, base), color(fill)),
            }
        }
        let most = ctx.input(|input| input.max_texture_side);
        let textured = textured(ctx, &cells, origin, most);
        if textured.is_none() {
            for (rect, colours) in &cells {
                builder.cells(*rect, colours);
            }
        }
        Self {
            meshes: [Arc::new(below.unwrap_or_default()), Arc::new(builder.mesh)],
            cells: textured,
            texts,
            origin,
        }
    }

    /// Paints it.
    pub(super) fn paint(&self, painter: &Painter) {
        let [below, above] = &self.meshes;
        let cells = self.cells.as_ref().map(|(_, mesh)| mesh);
        for mesh in [Some(below), cells, Some(above)].into_iter().flatten() {
            if !mesh.is_empty() {
                painter.add(egui::Shape::Mesh(Arc::clone(mesh)));
            }
        }
        for text in &self.texts {
            paint_text(painter, text, self.origin);
        }
    }
}

/// Rows of cells as one texture, a row of it each; nothing if there are none, or more than a texture holds.
fn textured(
    ctx: &Context,
    cells: &[(Rect, Vec<crate::scene::Colour>)],
    origin: Pos2,
    most: usize,
) -> Option<(TextureHandle, Arc<Mesh>)> {
    let width = cells.iter().map(|(_, colours)| colours.len()).max()?;
    if width == 0 || width > most || cells.len() > most {
        return None;
    }
    let mut pixels = Vec::with_capacity(width * cells.len());
    for (_, colours) in cells {
        pixels.extend(colours.iter().copied().map(color));
        pixels.resize(pixels.len().next_multiple_of(width), Color32::TRANSPARENT);
    }
    let image = ColorImage::new([width, cells.len()], pixels);
    let texture = ctx.load_texture("cells", image, TextureOptions::NEAREST);
    let mut mesh = Mesh::with_texture(texture.id());
    for (row, (rect, colours)) in cells.iter().enumerate() {
        let place =
            egui::Rect::from_min_size(origin + vec2(rect.x, rect.y), vec2(rect.width, rect.height));
        // The middle of the row of pixels.
        let y = (row as f32 + 0.5) / cells.len() as f32;
        let uv =
            egui::Rect::from_min_max(pos2(0.0, y), pos2(colours.len() as f32 / width as f32, y));
        mesh.add_rect_with_uv(place, uv, Color32::WHITE);
    }
    Some((texture, Arc::new(mesh)))
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
    fn new(origin: Pos2, pixels_per_point: f32) -> Self {
        let options = TessellationOptions {
            coarse_tessellation_culling: false,
            ..TessellationOptions::default()
        };
        Self {
            mesh: Mesh::default(),
            tessellator: Tessellator::new(pixels_per_point, options, [1, 1], Vec::new()),
            pixel: 1.0 / pixels_per_point,
            origin,
        }
    }

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
            let painted = Painted::new(&Context::default(), scene, pos2(100.0, 50.0), 1.0);
            let mesh = &painted.meshes[1];
            let bounds = mesh.calc_bounds();
            assert!(mesh.vertices.len() > 20);
            assert!((bounds.left() - 113.0).abs() < 0.01 && (bounds.right() - 153.0).abs() < 0.01);
            assert!((bounds.top() - 57.0).abs() < 0.01 && (bounds.bottom() - 78.0).abs() < 0.01);
        }
    }
}

//! What lies over the painted timeline: the selected area, marks and the time between them, the lit chain, what was found.

use eframe::egui::{Align2, Color32, Pos2, Rect, Shape, Stroke, StrokeKind, Ui, pos2, vec2};

use crate::scene::fonts::Weight;
use crate::scene::{Colour, Hit};
use crate::trace::{Link, Stream};
use crate::units::Nanos;

use super::theme::{color, font};
use super::timeline::Canvas;

/// Of more links and more found spans than this, only so many are outlined.
const MOST_OUTLINED: usize = 4000;

impl Canvas<'_> {
    /// A word on a small ground of its own around a place.
    fn tag(&self, ui: &Ui, at: Pos2, text: String, ground: Colour) {
        let view = self.sight.view;
        let font = font(view.sizes().small(), Weight::SemiBold);
        let ink = color(view.palette().text_on(ground));
        let galley = ui.painter().layout_no_wrap(text, font, ink);
        let half = galley.size() / 2.0 + vec2(view.sizes().body * 0.4, 1.0);
        let plot = self.scene.plot();
        let (left, right) = (
            self.rect.left() + plot.x + half.x,
            self.rect.right() - half.x,
        );
        let centre = pos2(at.x.clamp(left.min(right), right.max(left)), at.y);
        let pill = Rect::from_center_size(centre, half * 2.0);
        self.cover_labels(ui.painter(), pill);
        ui.painter().rect_filled(pill, half.y, color(ground));
        let place = Align2::CENTER_CENTER.anchor_size(centre, galley.size());
        ui.painter().galley(place.min, galley, Color32::PLACEHOLDER);
    }

    fn times(&self, from: Nanos, to: Nanos) -> Option<(f32, f32)> {
        let scale = self.scene.scale();
        let seen = from < scale.to && to > scale.from;
        let x = |time| self.rect.left() + scale.x(time);
        seen.then(|| (x(from), x(to)))
    }

    /// The selected stretch of time over its rows, with its length.
    pub(super) fn paint_area(&self, ui: &Ui) {
        let Some(area) = &self.sight.attention.area else {
            return;
        };
        let Some((left, right)) = self.times(area.from, area.to) else {
            return;
        };
        let palette = self.sight.view.palette();
        let painter = ui.painter().with_clip_rect(self.plot_clip());
        let (fill, edge) = (color(palette.accent.faded(0.16)), color(palette.accent));
        let rows = self.rows_of(&area.ranks);
        for (top, bottom) in &rows {
            let rect = Rect::from_x_y_ranges(left..=right, *top..=*bottom);
            painter.rect_filled(rect, 0.0, fill);
        }
        let (Some((top, _)), Some((_, bottom))) = (rows.first(), rows.last()) else {
            return;
        };
        for x in [left, right] {
            let x = painter.round_to_pixel_center(x);
            painter.vline(x, *top..=*bottom, Stroke::new(1.5, edge));
        }
        let middle = self.rect.top() + self.scene.plot().y - self.sight.view.sizes().body;
        let at = pos2(f32::midpoint(left, right), middle);
        self.tag(ui, at, area.length().to_string(), palette.accent);
    }

    /// The visible rows of ranks, those side by side as one, from the top.
    fn rows_of(&self, ranks: &[usize]) -> Vec<(f32, f32)> {
        let pitch = self.scene.rows().pitch;
        let mut tops: Vec<f32> = ranks
            .iter()
            .filter_map(|&index| self.scene.row_top_of(index))
            .map(|top| self.rect.top() + top)
            .collect();
        tops.sort_by(f32::total_cmp);
        tops.dedup();
        let mut rows: Vec<(f32, f32)> = Vec::new();
        for top in tops {
            match rows.last_mut() {
                Some((_, bottom)) if top <= *bottom + pitch * 0.5 => *bottom = top + pitch,
                _ => rows.push((top, top + pitch)),
            }
        }
        rows
    }

    /// A line at each mark with its letter, and between two the time.
    pub(super) fn paint_marks(&self, ui: &Ui, marks: &[Nanos]) {
        let (palette, sizes) = (self.sight.view.palette(), self.sight.view.sizes());
        let scale = self.scene.scale();
        let seen = |time: &Nanos| (scale.from..=scale.to).contains(time);
        let middle = self.rect.top() + self.scene.plot().y - sizes.body;
        let painter = ui.painter().with_clip_rect(self.plot_clip());
        let ink = color(palette.weight_grad);
        for (letter, time) in ('A'..='Z').zip(marks) {
            if !seen(time) {
                continue;
            }
            let x = painter.round_to_pixel_center(self.rect.left() + scale.x(*time));
            painter.vline(x, self.plot_clip().y_range(), Stroke::new(1.6, ink));
            self.tag(ui, pos2(x, middle), letter.to_string(), palette.weight_grad);
        }
        for pair in marks.windows(2) {
            let &[from, to] = pair else { continue };
            let Some((left, right)) = self.times(from, to) else {
                continue;
            };
            let text = to.since(from).to_string();
            let wide = crate::scene::fonts::width(&text, sizes.small(), Weight::SemiBold);
            if right - left > wide + sizes.body * 3.6 {
                let y = middle + sizes.body * 0.1;
                let stroke = Stroke::new(1.2, ink);
                ui.painter()
                    .hline(left + sizes.body..=right - sizes.body, y, stroke);
                self.tag(
                    ui,
                    pos2(f32::midpoint(left, right), y),
                    text,
                    palette.weight_grad,
                );
            }
        }
    }

    /// The lit chain: its operations outlined, and a line from one to the next.
    pub(super) fn paint_path(&self, ui: &Ui) {
        let palette = self.sight.view.palette();
        let painter = ui.painter().with_clip_rect(self.plot_clip());
        let stroke = Stroke::new(2.2, color(palette.critical));
        let scale = self.scene.scale();
        let seen = |link: &&Link| link.span.end > scale.from && link.span.start < scale.to;
        let links = self.sight.attention.path.iter().filter(seen);
        let places: Vec<Option<(Rect, &Link)>> = links
            .take(MOST_OUTLINED)
            .map(|link| Some((self.link(link)?, link)))
            .collect();
        let mut shapes = Vec::new();
        for pair in places.windows(2) {
            // From the latest back: who comes second was first.
            let (Some((later, _)), Some((earlier, _))) = (&pair[0], &pair[1]) else {
                continue;
            };
            if (later.center().y - earlier.center().y).abs() > 1.0 {
                let from = pos2(earlier.right(), earlier.center().y);
                let to = pos2(later.left(), later.center().y);
                shapes.push(Shape::line_segment([from, to], stroke));
            }
        }
        for (rect, link) in places.iter().flatten() {
            let inside = match link.stream {
                Stream::Passes | Stream::Compute => rect.shrink(1.0),
                Stream::Tp | Stream::Dp | Stream::SendNext | Stream::SendPrev => *rect,
            };
            shapes.push(Shape::rect_stroke(inside, 2.0, stroke, StrokeKind::Inside));
        }
        painter.extend(shapes);
    }

    fn link(&self, link: &Link) -> Option<Rect> {
        self.place(&Hit {
            rank_index: link.rank_index,
            stream: link.stream,
            span: link.span,
        })
    }

    /// An outline around each span that was found.
    pub(super) fn paint_found(&self, ui: &Ui) {
        let stroke = Stroke::new(1.5, color(self.sight.view.palette().accent));
        let painter = ui.painter().with_clip_rect(self.plot_clip());
        let scale = self.scene.scale();
        let seen = |hit: &&Hit| hit.span.end > scale.from && hit.span.start < scale.to;
        let found = self.sight.found.iter().filter(seen);
        let places = found.filter_map(|hit| self.place(hit));
        let outlines = places
            .take(MOST_OUTLINED)
            .map(|rect| Shape::rect_stroke(rect, 2.0, stroke, StrokeKind::Inside));
        painter.extend(outlines);
    }
}

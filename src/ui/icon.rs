//! Buttons with a drawn sign, so that no font is needed for it.

use eframe::egui::{
    self, Color32, Painter, Pos2, Rect, Response, Role, Sense, Shape, Stroke, StrokeKind, Ui,
    WidgetInfo, pos2, vec2,
};

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Icon {
    /// Start.
    Play,
    /// Stop for now.
    Pause,
    /// Back to the very start.
    Reset,
    /// A training step back.
    StepBack,
    /// A training step on.
    StepForward,
    /// A pass back.
    EventBack,
    /// A pass on.
    EventForward,
    /// Less, slower.
    Minus,
    /// More, faster.
    Plus,
    /// The one before.
    Left,
    /// The next.
    Right,
    /// Light or dark.
    Theme,
    /// Fold the controls.
    Sidebar,
    /// Away with it.
    Close,
}

/// How a button with a sign looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// As others.
    Plain,
    /// The one to press first.
    Primary,
}

/// A square button with a sign, called `name` for those who cannot see it.
pub(super) fn icon_button(ui: &mut Ui, icon: Icon, weight: Weight, name: &str) -> Response {
    let side = ui.spacing().interact_size.y;
    let width = if weight == Weight::Primary {
        side * 1.7
    } else {
        side
    };
    let (rect, response) = ui.allocate_exact_size(vec2(width, side), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, ui.is_enabled(), name));
    let visuals = ui.style().interact(&response);
    let accent = ui.visuals().hyperlink_color;
    let primary = weight == Weight::Primary;
    let fill = if primary {
        accent
    } else {
        visuals.weak_bg_fill
    };
    let stroke = if response.has_focus() {
        Stroke::new(
            2.0,
            if primary {
                visuals.fg_stroke.color
            } else {
                accent
            },
        )
    } else if response.hovered() {
        visuals.bg_stroke
    } else {
        Stroke::NONE
    };
    ui.painter().rect(
        rect,
        visuals.corner_radius,
        fill,
        stroke,
        StrokeKind::Inside,
    );
    let ink = if primary {
        ui.visuals().extreme_bg_color
    } else {
        visuals.fg_stroke.color
    };
    let ink = if ui.is_enabled() {
        ink
    } else {
        ink.gamma_multiply(0.4)
    };
    let room = Rect::from_center_size(rect.center(), egui::Vec2::splat(side * 0.46));
    draw(ui.painter(), icon, room, ink);
    response
}

/// The same for what has a key, which is told to whoever points at it.
pub(super) fn keyed_button(
    ui: &mut Ui,
    icon: Icon,
    weight: Weight,
    (name, key): (&str, &str),
) -> Response {
    icon_button(ui, icon, weight, name).on_hover_text(format!("{name} ({key})"))
}

fn draw(painter: &Painter, icon: Icon, room: Rect, ink: Color32) {
    let at = |x: f32, y: f32| room.min + vec2(x, y) * room.size();
    let bar = |x: f32, width: f32| {
        let rect = Rect::from_min_max(at(x, 0.0), at(x + width, 1.0));
        painter.rect_filled(rect, 0.0, ink);
    };
    let triangle = |points: [Pos2; 3]| {
        painter.add(Shape::convex_polygon(points.to_vec(), ink, Stroke::NONE));
    };
    let stroke = Stroke::new((room.width() * 0.16).max(1.5), ink);
    let right = |from: f32, to: f32| triangle([at(from, 0.0), at(to, 0.5), at(from, 1.0)]);
    let left = |from: f32, to: f32| triangle([at(from, 0.0), at(from, 1.0), at(to, 0.5)]);
    match icon {
        Icon::Play => right(0.12, 1.0),
        Icon::Pause => {
            bar(0.12, 0.28);
            bar(0.6, 0.28);
        }
        Icon::StepBack => {
            bar(0.0, 0.16);
            left(0.58, 0.16);
            left(1.0, 0.58);
        }
        Icon::StepForward => {
            bar(0.84, 0.16);
            right(0.0, 0.42);
            right(0.42, 0.84);
        }
        Icon::EventBack => left(0.82, 0.1),
        Icon::EventForward => right(0.18, 0.9),
        Icon::Minus => horizontal(painter, room, stroke),
        Icon::Plus => {
            horizontal(painter, room, stroke);
            painter.line_segment([at(0.5, 0.0), at(0.5, 1.0)], stroke);
        }
        Icon::Left => chevron(
            painter,
            [at(0.68, 0.05), at(0.28, 0.5), at(0.68, 0.95)],
            stroke,
        ),
        Icon::Right => chevron(
            painter,
            [at(0.32, 0.05), at(0.72, 0.5), at(0.32, 0.95)],
            stroke,
        ),
        Icon::Reset => circle_arrow(painter, room, stroke),
        Icon::Theme => {
            let radius = room.width() * 0.5;
            painter.circle_stroke(room.center(), radius, Stroke::new(1.5, ink));
            let half = (0..=12).map(|index| {
                let angle = std::f32::consts::PI * (index as f32 / 12.0 - 0.5);
                room.center() + vec2(angle.cos(), angle.sin()) * radius
            });
            painter.add(Shape::convex_polygon(half.collect(), ink, Stroke::NONE));
        }
        Icon::Close => {
            painter.line_segment([at(0.12, 0.12), at(0.88, 0.88)], stroke);
            painter.line_segment([at(0.12, 0.88), at(0.88, 0.12)], stroke);
        }
        Icon::Sidebar => {
            let frame = room.expand2(vec2(room.width() * 0.1, -room.height() * 0.05));
            painter.rect_stroke(frame, 2.0, Stroke::new(1.5, ink), StrokeKind::Inside);
            let split = Rect::from_min_max(frame.min, pos2(at(0.38, 0.0).x, frame.max.y));
            painter.rect_filled(split, 1.0, ink);
        }
    }
}

fn horizontal(painter: &Painter, room: Rect, stroke: Stroke) {
    painter.line_segment([room.left_center(), room.right_center()], stroke);
}

fn chevron(painter: &Painter, points: [Pos2; 3], stroke: Stroke) {
    painter.add(Shape::line(points.to_vec(), stroke));
}

/// Most of a circle, with a head at its open end.
fn circle_arrow(painter: &Painter, room: Rect, stroke: Stroke) {
    let radius = room.width() * 0.46;
    let on_circle = |turn: f32| {
        let angle = std::f32::consts::TAU * turn;
        room.center() + vec2(angle.cos(), angle.sin()) * radius
    };
    let arc = (0..=20).map(|index| on_circle(-0.18 + 0.8 * index as f32 / 20.0));
    painter.add(Shape::line(arc.collect(), stroke));
    let tip = on_circle(-0.18);
    let size = room.width() * 0.3;
    let head = vec![
        tip + vec2(size * 0.75, -size * 0.75),
        tip + vec2(size * 0.55, size * 0.6),
        tip + vec2(-size * 0.7, size * 0.1),
    ];
    painter.add(Shape::convex_polygon(head, stroke.color, Stroke::NONE));
}

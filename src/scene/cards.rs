//! Figures on cards, side by side.

use serde::{Deserialize, Serialize};

use super::canvas::{Canvas, Type};
use super::fonts::shortened;
use super::shape::{Anchor, Point, Quad, Rect};
use super::tokens::{Palette, Sizes};

/// A figure with its name and what it says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// What it is: `Bubble`.
    pub label: String,
    /// The figure with its unit: `27.3 %`.
    pub value: String,
    /// Its definition or origin: `of total time · formula 27.3 %`.
    #[serde(default)]
    pub note: String,
}

/// How high a row of cards is.
pub(super) fn height(sizes: Sizes) -> f32 {
    sizes.body * 5.3
}

/// Cards of equal width over all of `width`.
pub(super) fn draw(
    cards: &[Card],
    (at, width): (Point, f32),
    (palette, sizes): (&Palette, Sizes),
    canvas: &mut Canvas,
) {
    let count = cards.len().max(1) as f32;
    let gap = sizes.body;
    let each = (width - gap * (count - 1.0)) / count;
    for (index, card) in cards.iter().enumerate() {
        let left = at.x + index as f32 * (each + gap);
        let rect = Rect::new(left, at.y, each, height(sizes));
        canvas.quad(Quad::new(rect, palette.panel).rounded(sizes.panel_radius()));
        draw_card(card, rect, (palette, sizes), canvas);
    }
}

fn draw_card(card: &Card, rect: Rect, (palette, sizes): (&Palette, Sizes), canvas: &mut Canvas) {
    let em = sizes.body;
    let room = rect.width - 2.0 * em;
    let lines = [
        (1.05, Type::regular(em, palette.text_weak), &card.label),
        (
            2.7,
            Type::semi_bold(sizes.figure(), palette.text),
            &card.value,
        ),
        (
            4.3,
            Type::regular(sizes.small(), palette.text_weak),
            &card.note,
        ),
    ];
    for (down, mut style, text) in lines {
        // A long one is set smaller before it is cut.
        let width = style.width(text).max(1.0);
        if width > room {
            // A hair less than fits exactly, or rounding would cut it all the same.
            style.size *= (0.995 * room / width).max(0.74);
        }
        let text = shortened(text, style.size, style.weight, room);
        let middle = Point::new(rect.x + em, rect.y + down * em);
        canvas.text_at_middle(middle, Anchor::Start, style, text);
    }
}

//! What colours and hatching mean: only those that a trace has.

use crate::units::Pass;

use super::blocks::TINT;
use super::canvas::{Canvas, Type};
use super::colour::Colour;
use super::overview::Holds;
use super::shape::{Anchor, Hatch, Point, Quad, Rect, Scene, Size, Stroke};
use super::tokens::{Palette, Sizes, Theme};

/// A legend, laid out in lines of a given width.
#[derive(Debug)]
pub struct Legend {
    scene: Scene,
}

impl Legend {
    /// The legend of what a trace holds.
    pub fn new(holds: Holds, theme: Theme, sizes: Sizes, width: f32) -> Self {
        let palette = theme.palette();
        let style = Type::regular(sizes.small(), palette.text_weak);
        let line = sizes.body * 1.6;
        let swatch = Size::new(sizes.body * 1.2, sizes.body * 0.85);
        let mut at = Point::default();
        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, width, f32::MAX));
        let entries = entries(holds, palette);
        let lengths = entries
            .iter()
            .map(|(_, text)| swatch.width + sizes.gap() + style.width(text));
        let spare = (width - lengths.sum::<f32>()) / (entries.len() as f32 - 1.0).max(1.0);
        let gap = spare.clamp(sizes.body * 0.7, sizes.body * 1.6);
        for (quad, text) in entries {
            let length = swatch.width + sizes.gap() + style.width(text);
            if at.x > 0.0 && at.x + length > width + 0.5 {
                at = Point::new(0.0, at.y + line);
            }
            let middle = at.y + line / 2.0;
            let rect = Rect::new(
                at.x,
                middle - swatch.height / 2.0,
                swatch.width,
                swatch.height,
            );
            canvas.quad(Quad { rect, ..quad }.rounded(sizes.radius()));
            let text_at = Point::new(rect.right() + sizes.gap(), middle);
            canvas.text_at_middle(text_at, Anchor::Start, style, text);
            at.x += length + gap;
        }
        Self {
            scene: Scene {
                size: Size::new(width, at.y + line),
                background: palette.background,
                shapes: canvas.into_shapes(),
            },
        }
    }

    /// How high it is.
    pub fn height(&self) -> f32 {
        self.scene.size.height
    }

    /// The shapes.
    pub fn into_scene(self) -> Scene {
        self.scene
    }
}

fn entries(holds: Holds, palette: &Palette) -> Vec<(Quad, &'static str)> {
    let plain = |colour: Colour| Quad::new(Rect::default(), colour);
    let exposed = plain(palette.send.faded(TINT).over(palette.background))
        .outlined(Stroke::solid(1.0, palette.send));
    let waiting = plain(palette.waiting_bed).hatched(Hatch::Waiting(palette.waiting));
    let bubble = plain(palette.bubble_bed).hatched(Hatch::Bubble(palette.bubble));
    let all = [
        (
            holds.pass(Pass::Forward),
            plain(palette.forward),
            "F forward",
        ),
        (
            holds.pass(Pass::Backward),
            plain(palette.backward),
            "B backward",
        ),
        (
            holds.pass(Pass::InputGrad),
            plain(palette.input_grad),
            "I input-gradient",
        ),
        (
            holds.pass(Pass::WeightGrad),
            plain(palette.weight_grad),
            "W weight-gradient",
        ),
        (holds.optimizer, plain(palette.optimizer), "optimizer"),
        (holds.kernels, plain(palette.forward), "compute kernel"),
        (
            holds.communication,
            plain(palette.all_reduce),
            "communication",
        ),
        (holds.others, plain(palette.optimizer), "copies and others"),
        (holds.sends, plain(palette.send), "send"),
        (
            holds.tp,
            plain(palette.all_reduce_tp),
            if holds.tp_shares {
                "TP collectives"
            } else {
                "TP all-reduce"
            },
        ),
        (
            holds.dp,
            plain(palette.all_reduce),
            if holds.dp_shares {
                "DP collectives"
            } else {
                "DP all-reduce"
            },
        ),
        (holds.exposed, exposed, "exposed transfer"),
        (holds.waiting, waiting, "waiting"),
        (holds.idle, bubble, "bubble"),
        (
            holds.memory,
            plain(palette.memory.parameters),
            "fixed memory",
        ),
        (
            holds.memory,
            plain(palette.memory.activations),
            "activations",
        ),
    ];
    let held = all.into_iter().filter(|(held, ..)| *held);
    held.map(|(_, quad, text)| (quad, text)).collect()
}

//! What colours and hatching mean: only those that a trace has.

use crate::units::Pass;
use crate::words::{Language, mark};

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
    /// The legend of what a trace holds, in English.
    pub fn new(holds: Holds, theme: Theme, sizes: Sizes, width: f32) -> Self {
        Self::said(Language::English, holds, (theme, sizes), width)
    }

    /// The same in a language.
    pub fn said(
        language: Language,
        holds: Holds,
        (theme, sizes): (Theme, Sizes),
        width: f32,
    ) -> Self {
        let palette = theme.palette();
        let style = Type::regular(sizes.small(), palette.text_weak);
        let line = sizes.body * 1.6;
        let swatch = Size::new(sizes.body * 1.2, sizes.body * 0.85);
        let mut at = Point::default();
        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, width, f32::MAX));
        let entries: Vec<(Quad, &str)> = entries(holds, palette)
            .into_iter()
            .map(|(quad, text)| (quad, language.say(text)))
            .collect();
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
            holds.optimizer,
            plain(palette.optimizer),
            mark!("optimizer"),
        ),
        (
            holds.kernels,
            plain(palette.forward),
            mark!("compute kernel"),
        ),
        (
            holds.communication,
            plain(palette.all_reduce),
            mark!("communication"),
        ),
        (
            holds.others,
            plain(palette.optimizer),
            mark!("copies and others"),
        ),
        (holds.sends, plain(palette.send), mark!("send")),
        (
            holds.tp,
            plain(palette.all_reduce_tp),
            if holds.tp_shares {
                mark!("TP collectives")
            } else {
                mark!("TP all-reduce")
            },
        ),
        (
            holds.dp,
            plain(palette.all_reduce),
            if holds.dp_shares {
                mark!("DP collectives")
            } else {
                mark!("DP all-reduce")
            },
        ),
        (holds.exposed, exposed, mark!("exposed transfer")),
        (holds.waiting, waiting, mark!("waiting")),
        (holds.idle, bubble, mark!("bubble")),
        (
            holds.memory,
            plain(palette.memory.parameters),
            mark!("fixed memory"),
        ),
        (
            holds.memory,
            plain(palette.memory.activations),
            mark!("activations"),
        ),
    ];
    let all = passes(holds, palette).into_iter().chain(all);
    let held = all.filter(|(held, ..)| *held);
    held.map(|(_, quad, text)| (quad, text)).collect()
}

fn passes(holds: Holds, palette: &Palette) -> [(bool, Quad, &'static str); 4] {
    let plain = |colour: Colour| Quad::new(Rect::default(), colour);
    [
        (
            holds.pass(Pass::Forward),
            plain(palette.forward),
            mark!("F forward"),
        ),
        (
            holds.pass(Pass::Backward),
            plain(palette.backward),
            mark!("B backward"),
        ),
        (
            holds.pass(Pass::InputGrad),
            plain(palette.input_grad),
            mark!("I input-gradient"),
        ),
        (
            holds.pass(Pass::WeightGrad),
            plain(palette.weight_grad),
            mark!("W weight-gradient"),
        ),
    ]
}

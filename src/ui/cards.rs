//! The figures on cards in a row under the timeline.

use eframe::egui::{Align2, Rect, Role, Sense, Ui, WidgetInfo, vec2};

use crate::scene::fonts::{Weight, shortened, width};

use super::figures::Figure;
use super::theme::{color, font};
use super::view::View;

/// A card's least width, in body-text sizes.
const LEAST_WIDTH: f32 = 8.6;

/// How high a row of cards is.
pub(super) fn height(view: &View) -> f32 {
    view.sizes().body * 4.7
}

/// Shows the cards side by side, as many as have room.
pub(super) fn show(ui: &mut Ui, figures: &[Figure], view: &View) {
    let gap = view.sizes().gap();
    let room = ui.available_width() + gap;
    let most = (room / (view.sizes().body * LEAST_WIDTH + gap)) as usize;
    let figures = &figures[..figures.len().min(most.max(1))];
    let count = figures.len().max(1) as f32;
    let each = room / count - gap;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = gap;
        for figure in figures {
            let size = vec2(each, height(view));
            let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
            let card = &figure.card;
            let label = view.language.say(&card.label);
            let text = format!("{label} {}, {}", card.value, card.note);
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.as_str()));
            paint(ui, rect, figure, view);
            response.on_hover_text(explanation(&card.label));
        }
    });
}

fn paint(ui: &Ui, rect: Rect, figure: &Figure, view: &View) {
    let (palette, sizes) = (view.palette(), view.sizes());
    let em = sizes.body;
    let painter = ui.painter();
    painter.rect_filled(rect, sizes.panel_radius(), color(palette.panel));
    let tint = |normal| color(if figure.fault { palette.error } else { normal });
    let room = rect.width() - 1.4 * em;
    let lines = [
        (
            0.95,
            sizes.small(),
            Weight::Regular,
            color(palette.text_weak),
            view.language.say(&figure.card.label),
        ),
        (
            2.35,
            sizes.figure(),
            Weight::SemiBold,
            tint(palette.text),
            figure.card.value.as_str(),
        ),
        (
            3.8,
            sizes.small(),
            Weight::Regular,
            tint(palette.text_weak),
            figure.card.note.as_str(),
        ),
    ];
    for (down, size, weight, ink, text) in lines {
        let text = fitted(text, size, weight, room);
        let at = rect.left_top() + vec2(0.7 * em, down * em);
        painter.text(at, Align2::LEFT_CENTER, text, font(size, weight), ink);
    }
}

/// As many of a text's parts as have room, the first of them cut if need be.
fn fitted(text: &str, size: f32, weight: Weight, room: f32) -> String {
    let mut kept = text;
    while width(kept, size, weight) > room {
        match kept.rsplit_once(" · ") {
            Some((before, _)) => kept = before,
            None => return shortened(kept, size, weight, room),
        }
    }
    kept.to_owned()
}

/// What a figure means.
fn explanation(label: &str) -> &'static str {
    match label {
        "Step" => "One training step of all GPUs, gradient synchronisation and optimizer included",
        "Bubble" => {
            "Of total: idle time over the pipelines' time, all GPUs. Of ideal: idle time over the time of all passes"
        }
        "Exposed transfer" => {
            "Time in which a GPU has nothing to compute because something it needs is in flight. \
             Waiting: in a collective whose members are not all there yet"
        }
        "Peak memory" => {
            "Of the GPU that takes most: parameters, gradients, optimizer state, activations"
        }
        "Speed-up" => {
            "Times faster than the same batch on one such GPU. Efficiency: speed-up over the number of GPUs"
        }
        _ => {
            "Tokens trained on in a second of virtual time. MFU: the model's FLOPs over what the GPUs could do"
        }
    }
}

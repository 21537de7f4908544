//! The figures on cards in a row under the timeline.

use eframe::egui::{Align2, Rect, Role, Sense, Ui, WidgetInfo, vec2};

use crate::scene::fonts::{Weight, shortened};

use super::figures::Figure;
use super::theme::{color, font};
use super::view::View;

/// How high a row of cards is.
pub(super) fn height(view: &View) -> f32 {
    view.sizes().body * 4.7
}

/// Shows the cards side by side.
pub(super) fn show(ui: &mut Ui, figures: &[Figure], view: &View) {
    let count = figures.len().max(1) as f32;
    let gap = view.sizes().gap();
    let width = (ui.available_width() - gap * (count - 1.0)) / count;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = gap;
        for figure in figures {
            let size = vec2(width, height(view));
            let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
            let card = &figure.card;
            let text = format!("{} {}, {}", card.label, card.value, card.note);
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
            &figure.card.label,
        ),
        (
            2.35,
            sizes.figure(),
            Weight::SemiBold,
            tint(palette.text),
            &figure.card.value,
        ),
        (
            3.8,
            sizes.small(),
            Weight::Regular,
            tint(palette.text_weak),
            &figure.card.note,
        ),
    ];
    for (down, size, weight, ink, text) in lines {
        let text = shortened(text, size, weight, room);
        let at = rect.left_top() + vec2(0.7 * em, down * em);
        painter.text(at, Align2::LEFT_CENTER, text, font(size, weight), ink);
    }
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
        "Speed-up on one GPU" => {
            "Times faster than the same batch on one such GPU. Efficiency: speed-up over the number of GPUs"
        }
        _ => {
            "Tokens trained on in a second of virtual time. MFU: the model's FLOPs over what the GPUs could do"
        }
    }
}

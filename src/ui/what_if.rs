//! What if a GPU or a link were slow, times were not all alike, or layers lay unevenly: each a change like any other.

use eframe::egui::{CollapsingHeader, RichText, Ui};

use crate::engine::{Disturbance, Slow};
use crate::mesh::split_layers;
use crate::scene::fonts::Weight as FontWeight;
use crate::session::{Config, listed};

use super::controls::choice_with_refusal;
use super::edit::{Change, Field};
use super::icon::{Icon, Weight, icon_button};
use super::run::Run;
use super::theme::{color, font};
use super::view::View;
use super::wish::Wish;

/// By how many per cent of its time a straggler's work takes.
pub(super) const SLOWER: [u32; 6] = [120, 150, 200, 300, 500, 1000];
/// Jitters, in per cent.
pub(super) const JITTERS: [u32; 6] = [0, 5, 10, 20, 50, 100];
/// How slow a GPU is that is made slow, and a link.
const SLOW_GPU: u32 = 200;
const SLOW_LINK: u32 = 1000;
/// A choice has at most so many GPUs; by key or file any can be meant.
const MOST_GPUS: usize = 64;
/// Layers of more stages than this are not moved by hand here.
const MOST_STAGES: usize = 16;

/// A straggler that the controls show: the first of the list.
pub(super) fn first(list: &[Slow]) -> Option<(u32, u32)> {
    list.first()
        .map(|slow| (slow.rank, (slow.factor * 100.0).round() as u32))
}

/// The list with that GPU alone, as slow as the one before or as is usual.
pub(super) fn with_rank(list: &[Slow], rank: Option<u32>, usual: u32) -> Vec<Slow> {
    let percent = first(list).map_or(usual, |(_, percent)| percent);
    rank.map(|rank| slow(rank, percent)).into_iter().collect()
}

/// The list's first GPU, so slow.
pub(super) fn with_factor(list: &[Slow], percent: u32) -> Vec<Slow> {
    first(list)
        .map(|(rank, _)| slow(rank, percent))
        .into_iter()
        .collect()
}

fn slow(rank: u32, percent: u32) -> Slow {
    Slow {
        rank,
        factor: f64::from(percent) / 100.0,
    }
}

/// What is slowed, and by how much if nothing else is said.
pub(super) fn list_of(disturbance: &mut Disturbance, field: Field) -> (&mut Vec<Slow>, u32) {
    if matches!(field, Field::SlowLink | Field::SlowLinkBy) {
        (&mut disturbance.slow_links, SLOW_LINK)
    } else {
        (&mut disturbance.slow, SLOW_GPU)
    }
}

/// In words: `2 × as long`.
pub(super) fn slower_text(percent: u32) -> String {
    format!("{} × as long", f64::from(percent) / 100.0)
}

/// Layers of each stage, by hand or as they lie.
pub(super) fn layers(config: &Config) -> Vec<usize> {
    let by_hand = config.layers_per_stage.clone();
    by_hand.unwrap_or_else(|| even(config))
}

/// Layers of each stage as they usually lie.
pub(super) fn even(config: &Config) -> Vec<usize> {
    let split = split_layers(config.model.layers, config.stages());
    split.iter().map(ExactSizeIterator::len).collect()
}

/// A layer moved over the boundary after `stage`, to the left or to the right; nothing if there is none to move.
pub(super) fn moved(layers: &[usize], stage: usize, left: bool) -> Option<Vec<usize>> {
    let mut layers = layers.to_vec();
    let (from, to) = if left {
        (stage + 1, stage)
    } else {
        (stage, stage + 1)
    };
    let less = layers.get(from)?.checked_sub(1)?;
    *layers.get_mut(to)? += 1;
    layers[from] = less;
    Some(layers)
}

/// Shows the section.
pub(super) fn show(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let sizes = view.sizes();
    ui.add_space(sizes.gap() * 0.8);
    let config = run.config();
    let mut changed: Vec<String> = Vec::new();
    if !config.disturbance.is_none() {
        changed.push(config.disturbance.describe());
    }
    if let Some(layers) = &config.layers_per_stage {
        changed.push(format!("layers {}", listed(layers)));
    }
    // What is changed is told even while the section is folded.
    let (text, ink) = if changed.is_empty() {
        ("What if …".to_owned(), view.palette().text_weak)
    } else {
        (
            format!("What if … {}", changed.join(", ")),
            view.palette().accent,
        )
    };
    let text = RichText::new(text)
        .font(font(sizes.small(), FontWeight::SemiBold))
        .color(color(ink));
    CollapsingHeader::new(text)
        .id_salt("what if")
        .show_unindented(ui, |ui| {
            let both = [
                [Field::SlowGpu, Field::SlowGpuBy],
                [Field::SlowLink, Field::SlowLinkBy],
            ];
            for fields in both {
                straggler(ui, fields, (run, view), wishes);
            }
            jitter(ui, (run, view), wishes);
            stages(ui, (run, view), wishes);
        });
}

fn straggler(
    ui: &mut Ui,
    [field, by]: [Field; 2],
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    let config = run.config();
    let of = |rank: Option<u32>| match rank {
        None => "none".to_owned(),
        Some(rank) if field == Field::SlowLink => format!("of GPU {rank}"),
        Some(rank) => format!("GPU {rank}"),
    };
    let gpus = config.layout.mesh().map_or(1, |mesh| mesh.ranks());
    let ranks = (0..gpus.min(MOST_GPUS) as u32).map(Some);
    let choices: Vec<(String, Change)> = std::iter::once(None)
        .chain(ranks)
        .map(|rank| (of(rank), Change::Straggler(field, rank)))
        .collect();
    let mut disturbance = config.disturbance.clone();
    let known = first(list_of(&mut disturbance, field).0);
    let now = of(known.map(|(rank, _)| rank));
    choice_with_refusal(ui, (run, view), &now, &choices, wishes);
    if let Some((_, percent)) = known {
        let choices: Vec<(String, Change)> = SLOWER
            .into_iter()
            .map(|percent| (slower_text(percent), Change::Slower(by, percent)))
            .collect();
        choice_with_refusal(ui, (run, view), &slower_text(percent), &choices, wishes);
    }
}

fn jitter(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let text = |percent: u32| match percent {
        0 => "none".to_owned(),
        percent => format!("up to {percent} %"),
    };
    let choices: Vec<(String, Change)> = JITTERS
        .into_iter()
        .map(|percent| (text(percent), Change::Jitter(percent)))
        .collect();
    let now = (run.config().disturbance.jitter * 100.0).round() as u32;
    choice_with_refusal(ui, (run, view), &text(now), &choices, wishes);
}

/// Layers of each stage, with arrows between them that move one.
fn stages(ui: &mut Ui, (run, view): (&Run, &View), wishes: &mut Vec<Wish>) {
    let layers = layers(run.config());
    if layers.len() < 2 || layers.len() > MOST_STAGES {
        return;
    }
    ui.label("Layers of each stage")
        .on_hover_text("The arrows between two stages move a layer from one to the other");
    let by_hand = run.config().layers_per_stage.is_some();
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x *= 0.35;
        for (stage, &count) in layers.iter().enumerate() {
            let font = font(view.sizes().body, FontWeight::SemiBold);
            ui.label(RichText::new(count.to_string()).font(font));
            if stage + 1 == layers.len() {
                break;
            }
            for (icon, left, word) in [(Icon::Left, true, "left"), (Icon::Right, false, "right")] {
                let name = format!(
                    "Move a layer {word} between stages {stage} and {}",
                    stage + 1
                );
                let to = moved(&layers, stage, left);
                ui.add_enabled_ui(to.is_some(), |ui| {
                    let pressed = icon_button(ui, icon, Weight::Plain, &name).clicked();
                    if let Some(to) = to.filter(|_| pressed) {
                        wishes.push(Wish::Change(Change::Layers(Some(to))));
                    }
                });
            }
        }
    });
    if by_hand && ui.button("Even stages").clicked() {
        wishes.push(Wish::Change(Change::Layers(None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_moves_between_neighbours_and_none_is_lost() {
        assert_eq!(moved(&[2, 2, 2], 0, true), Some(vec![3, 1, 2]));
        assert_eq!(moved(&[2, 2, 2], 1, false), Some(vec![2, 1, 3]));
        assert_eq!(moved(&[0, 2], 0, false), None);
        assert_eq!(moved(&[0, 2], 1, false), None, "no stage after the last");
    }

    #[test]
    fn stragglers_keep_how_slow_they_are() {
        let list = with_rank(&[], Some(3), 200);
        assert_eq!(first(&list), Some((3, 200)));
        let slower = with_factor(&list, 500);
        assert_eq!(first(&with_rank(&slower, Some(1), 200)), Some((1, 500)));
        assert!(with_rank(&slower, None, 200).is_empty());
    }
}

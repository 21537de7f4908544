//! Who holds what: layers, heads and micro-batches of each GPU, in words. Pure logic.

use std::ops::Range;

use crate::mesh::Coord;
use crate::session::Timeline;

/// The layers of a pipeline position: `layers 0–1, embedding`.
pub(super) fn layers(step: &Timeline, pp: usize) -> String {
    let stages = step.stages.iter().zip(&step.holders);
    let held: Vec<String> = stages
        .filter(|(_, holder)| **holder == pp)
        .map(|(stage, _)| {
            let mut parts = Vec::new();
            if stage.first {
                parts.push("embedding".to_owned());
            }
            if !stage.layers.is_empty() {
                parts.push(named("layer", &stage.layers));
            }
            if stage.last {
                parts.push("head".to_owned());
            }
            if parts.is_empty() {
                parts.push("no layer".to_owned());
            }
            parts.join(", ")
        })
        .collect();
    held.join("; ")
}

/// The layers alone, as short as can be: `0–1`.
pub(super) fn layers_short(step: &Timeline, pp: usize) -> String {
    let stages = step.stages.iter().zip(&step.holders);
    let held: Vec<String> = stages
        .filter(|(_, holder)| **holder == pp)
        .map(|(stage, _)| range(&stage.layers))
        .collect();
    held.join(", ")
}

/// The heads of a tensor-parallel slice: `heads 0–3`.
pub(super) fn heads(step: &Timeline, tp: usize) -> String {
    let config = &step.report.config;
    let each = config.model.heads / config.layout.tp.max(1);
    named("head", &(tp * each..(tp + 1) * each))
}

/// The micro-batches of a replica.
fn micro_batches(step: &Timeline) -> String {
    named("micro-batch", &(0..step.report.config.layout.micro_batches))
}

/// Which sequences of the global batch a replica takes.
pub(super) fn sequences(step: &Timeline, dp: usize) -> String {
    let layout = &step.report.config.layout;
    let each = layout.micro_batches * layout.micro_batch_size;
    named("sequence", &(dp * each..(dp + 1) * each))
}

/// All that a GPU holds.
pub(super) fn all(step: &Timeline, at: Coord) -> String {
    format!(
        "{} · {} · {}",
        layers(step, at.pp),
        heads(step, at.tp),
        micro_batches(step)
    )
}

/// `layers 0–1`, `layer 3`.
fn named(noun: &str, of: &Range<usize>) -> String {
    let plural = match (of.len(), noun) {
        (1, _) => "",
        (_, "micro-batch") => "es",
        _ => "s",
    };
    format!("{noun}{plural} {}", range(of))
}

fn range(of: &Range<usize>) -> String {
    match of.len() {
        0 => "none".to_owned(),
        1 => of.start.to_string(),
        _ => format!("{}–{}", of.start, of.end - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_named_by_how_many_they_are() {
        assert_eq!(named("layer", &(3..4)), "layer 3");
        assert_eq!(named("head", &(0..4)), "heads 0–3");
        assert_eq!(named("micro-batch", &(0..8)), "micro-batches 0–7");
    }
}

//! What would fit where a layout does not.

use super::config::{Config, Costs};
use crate::engine::estimate;
use crate::plan::Layout;
use crate::shape::{Methods, Recompute, Zero};
use crate::units::Bytes;

/// The most changes that are offered.
const MOST: usize = 3;

/// Changes with each of which a layout that does not fit would, the smallest first, with what the fullest rank
/// then takes (in closed form).
pub fn what_would_fit(config: &Config) -> Vec<(String, Bytes)> {
    if config.costs != Costs::Model || config.custom.is_some() {
        return Vec::new();
    }
    let capacity = config.hardware.memory();
    let fitting = changes(config).into_iter().filter_map(|(what, changed)| {
        changed.check().ok()?;
        let load = changed.model_load();
        let one = estimate(&changed.layout, &load, changed.pricing().as_ref()).ok()?;
        (one.memory <= capacity).then_some((what, one.memory))
    });
    fitting.take(MOST).collect()
}

fn changes(config: &Config) -> Vec<(String, Config)> {
    let (layout, methods) = (config.layout, config.methods);
    let with_methods = |what: &str, methods: Methods| {
        let changed = Config {
            methods,
            ..config.clone()
        };
        (what.to_owned(), changed)
    };
    let with_layout = |what: String, layout: Layout| {
        let changed = Config {
            layout,
            ..config.clone()
        };
        (what, changed)
    };
    let recompute = |recompute| Methods {
        recompute,
        ..methods
    };
    let mut all = Vec::new();
    if layout.tp > 1 && !methods.sequence_parallel {
        let shared = Methods {
            sequence_parallel: true,
            ..methods
        };
        all.push(with_methods("--sequence-parallel", shared));
    }
    if methods.recompute == Recompute::None {
        let selective = recompute(Recompute::Selective);
        all.push(with_methods("--recompute selective", selective));
    }
    let full = recompute(Recompute::Full);
    if methods.recompute != Recompute::Full {
        all.push(with_methods("--recompute full", full));
    }
    if layout.dp > 1 && methods.zero == Zero::Off {
        let zero = Zero::Optimizer;
        all.push(with_methods("--zero 1", Methods { zero, ..methods }));
        all.push(with_methods(
            "--zero 1 --recompute full",
            Methods { zero, ..full },
        ));
    }
    let size = layout.micro_batch_size;
    if size > 1 && size.is_multiple_of(2) {
        let (half, twice) = (size / 2, layout.micro_batches * 2);
        let smaller = Layout {
            micro_batch_size: half,
            micro_batches: twice,
            ..layout
        };
        let what = format!("--micro-batch-size {half} --micro-batches {twice}");
        all.push(with_layout(what, smaller));
    }
    // More GPUs, or other ones, for a replica.
    for factor in [2, 4, 8, 16, 32, 64] {
        let more = Layout {
            pp: layout.pp * factor,
            ..layout
        };
        all.push(with_layout(format!("--pp {}", more.pp), more));
        let both = Config {
            layout: more,
            methods: full,
            ..config.clone()
        };
        all.push((format!("--pp {} --recompute full", more.pp), both));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::shape::ModelShape;

    #[test]
    fn what_does_not_fit_is_told_what_would() {
        let hardware = Hardware::profile("a100-80gb").unwrap();
        let config = Config {
            layout: Layout {
                tp: 8,
                pp: 8,
                micro_batches: 8,
                ..Layout::default()
            },
            model: ModelShape::preset("gpt3-175b").unwrap(),
            precision: hardware.precision,
            hardware,
            ..Config::default()
        };
        let offers = what_would_fit(&config);
        assert_eq!(offers.len(), 3);
        assert_eq!(offers[1].0, "--recompute selective");
        assert!(
            offers
                .iter()
                .all(|(_, memory)| *memory <= config.hardware.memory())
        );
    }
}

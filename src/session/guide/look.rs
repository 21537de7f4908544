//! All layouts, and the one that is taken.

use std::ops::ControlFlow;

use super::measure::{Seen, estimated, operations, simulated};
use super::{GuideSpec, Measured, TOLERANCE};
use crate::session::config::ConfigError;
use crate::session::sweep::{Fixed, SweepSpec};
use crate::shape::{Recompute, Zero};

/// So many layouts are simulated at most, to find one that is simulated and still the one to take.
const MOST_SIMULATED: usize = 12;
/// No more are simulated than have so many operations together, beside the one that is taken: a second's work.
pub(super) const MOST_OPERATIONS: u64 = 600_000;

const RECOMPUTES: [Recompute; 3] = [Recompute::None, Recompute::Selective, Recompute::Full];
const ZEROS: [Zero; 4] = [
    Zero::Off,
    Zero::Optimizer,
    Zero::Gradients,
    Zero::Parameters,
];

/// What is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) chosen: Measured,
    /// What its simulation says.
    pub(super) seen: Seen,
    /// The fastest of all.
    pub(super) fastest: Measured,
    /// Operations that may still be simulated.
    pub(super) budget: u64,
}

/// The ways to recompute up to what is allowed.
pub(super) fn recomputes(spec: &GuideSpec) -> &'static [Recompute] {
    let most = RECOMPUTES
        .iter()
        .position(|&one| one == spec.allowed.recompute);
    &RECOMPUTES[..=most.unwrap_or_default()]
}

/// The stages of `ZeRO` up to what is allowed; one GPU has none to share with.
pub(super) fn zeros(spec: &GuideSpec, dp: usize) -> &'static [Zero] {
    let most = if dp > 1 {
        usize::from(u8::from(spec.allowed.zero))
    } else {
        0
    };
    &ZEROS[..=most.min(ZEROS.len() - 1)]
}

/// Whether sequences may be shared, and are.
pub(super) fn sequences(spec: &GuideSpec, tp: usize) -> &'static [bool] {
    let may = spec.allowed.sequence_parallel && tp > 1;
    if may && spec.base.model.seq.is_multiple_of(tp) {
        &[false, true]
    } else {
        &[false]
    }
}

/// A stage's name.
pub(super) fn zero_name(zero: Zero) -> String {
    format!("ZeRO-{}", u8::from(zero))
}

/// What a sweep of `gpus` GPUs looks at, without recomputation.
pub(super) fn swept(spec: &GuideSpec, fixed: Fixed) -> SweepSpec {
    SweepSpec {
        global_batch: spec.global_batch,
        fixed: Fixed {
            recompute: Some(Recompute::None),
            ..fixed
        },
        ..SweepSpec::around(&spec.base, spec.gpus)
    }
}

/// All layouts that a sweep looks at, with all methods that are allowed, in closed form.
pub(super) fn candidates(
    spec: &GuideSpec,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<(), Vec<Measured>>, ConfigError> {
    let layouts = swept(spec, Fixed::default()).candidates();
    let pricing = spec.base.pricing();
    let (mut all, count) = (Vec::new(), layouts.len());
    for (done, mut config) in layouts.into_iter().enumerate() {
        if progress(done, count).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let layout = config.layout;
        for &sequence in sequences(spec, layout.tp) {
            for &zero in zeros(spec, layout.dp) {
                for &recompute in recomputes(spec) {
                    config.methods.sequence_parallel = sequence;
                    config.methods.zero = zero;
                    config.methods.recompute = recompute;
                    all.push(estimated(&config, pricing.as_ref())?);
                }
            }
        }
    }
    Ok(ControlFlow::Continue(all))
}

/// What is simpler, in the order of the questions: fewer slices, fewer stages, smaller micro-batches, fewer chunks, and none
/// of the methods.
pub(super) fn simplicity(one: &Measured) -> [usize; 7] {
    let layout = &one.layout;
    let recompute = RECOMPUTES.iter().position(|&other| other == one.recompute);
    [
        layout.tp,
        layout.pp,
        layout.micro_batch_size,
        layout.chunks,
        usize::from(one.sequence_parallel),
        usize::from(u8::from(one.zero)),
        recompute.unwrap_or_default(),
    ]
}

/// The fastest that fits, as an index.
fn fastest(all: &[Measured]) -> Option<usize> {
    let fitting = (0..all.len()).filter(|&index| all[index].fits);
    fitting.min_by(|&a, &b| all[a].step_s.total_cmp(&all[b].step_s))
}

/// The simplest that is within the tolerance of the fastest, which is `best`.
fn simplest(all: &[Measured], best: usize) -> usize {
    let limit = all[best].step_s * (1.0 + TOLERANCE);
    let near = (0..all.len()).filter(|&index| all[index].fits && all[index].step_s <= limit);
    let found = near.min_by_key(|&index| simplicity(&all[index]));
    found.unwrap_or(best)
}

/// Takes one of `all`: closed forms say which, and simulations whether that stands. Those that were simulated have the
/// simulation's figures from then on.
pub(super) fn choose(
    spec: &GuideSpec,
    all: &mut [Measured],
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<(), Choice>, ConfigError> {
    let (mut seen, mut budget) = (Vec::new(), MOST_OPERATIONS);
    // There is one that fits, until simulations have shown that none of them does.
    while let Some(best) = fastest(all) {
        let open = [best, simplest(all, best)]
            .into_iter()
            .find(|&index| !all[index].simulated);
        let found = seen
            .iter()
            .any(|&(index, _): &(usize, Seen)| all[index].fits);
        let goes_on = seen.len() < MOST_SIMULATED && (budget > 0 || !found);
        let Some(next) = open.filter(|_| goes_on) else {
            break;
        };
        if progress(all.len(), all.len() + MOST_SIMULATED).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        budget = budget.saturating_sub(operations(spec, &all[next]));
        let (measured, shares) = simulated(spec, &all[next])?;
        all[next] = measured;
        seen.push((next, shares));
    }
    settle(spec, all, seen, budget).map(ControlFlow::Continue)
}

/// The one to take of those that were simulated.
fn settle(
    spec: &GuideSpec,
    all: &mut [Measured],
    mut seen: Vec<(usize, Seen)>,
    budget: u64,
) -> Result<Choice, ConfigError> {
    let known: Vec<Measured> = seen.iter().map(|&(index, _)| all[index]).collect();
    let taken = fastest(&known).map(|best| simplest(&known, best));
    let taken = if let Some(taken) = taken {
        taken
    } else {
        // What closed forms said fits, by a hair, did not: the smallest then, which may not either.
        let smallest = (0..all.len()).min_by_key(|&index| all[index].peak_memory_bytes);
        let smallest = smallest.unwrap_or_default();
        let (measured, shares) = simulated(spec, &all[smallest])?;
        all[smallest] = measured;
        seen.push((smallest, shares));
        seen.len() - 1
    };
    let (index, shares) = seen[taken];
    let best = fastest(&known).map_or(all[index], |best| known[best]);
    Ok(Choice {
        chosen: all[index],
        seen: shares,
        fastest: best,
        budget,
    })
}

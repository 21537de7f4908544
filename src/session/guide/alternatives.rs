//! Layouts that somebody might have taken instead, and why not.

use std::ops::ControlFlow;

use super::look::{Choice, zero_name};
use super::measure::{Seen, operations, other, simulated};
use super::reasons::best_of;
use super::{Fault, GuideSpec, Measured, Rejected, TOLERANCE, slower};
use crate::plan::Layout;
use crate::session::config::ConfigError;
use crate::shape::{Methods, Recompute, Zero};
use crate::units::percent;

/// No more are told.
const MOST: usize = 8;

/// What is to be looked at: a name, and a layout if it can be.
type Idea = (String, Result<Measured, String>);

/// Those that differ from what is taken.
pub(super) fn all(
    spec: &GuideSpec,
    all: &[Measured],
    choice: &Choice,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<(), Vec<Rejected>>, ConfigError> {
    let chosen = &choice.chosen;
    let mut ideas = alone(spec, all, chosen);
    ideas.extend(degrees(spec, all, chosen));
    ideas.extend(without(spec, chosen));
    let mut budget = choice.budget.max(1);
    let mut rejected: Vec<Rejected> = Vec::new();
    for (name, idea) in ideas {
        if rejected.len() == MOST {
            break;
        }
        if progress(all.len(), all.len() + MOST).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let one = match idea {
            Ok(one) => one,
            Err(why) => {
                rejected.push(Rejected {
                    name,
                    layout: None,
                    fault: Fault::Illegal,
                    why,
                });
                continue;
            }
        };
        let known = rejected.iter().filter_map(|other| other.layout);
        if alike(&one, chosen) || known.into_iter().any(|other| alike(&one, &other)) {
            continue;
        }
        // What does not fit is none the wiser for its time, and many operations take theirs.
        let cost = operations(spec, &one);
        let (one, seen) = if one.fits && cost <= budget {
            budget -= cost;
            let (one, seen) = simulated(spec, &one)?;
            (one, Some(seen))
        } else {
            (one, None)
        };
        rejected.push(judged(spec, name, (one, seen), choice));
    }
    Ok(ControlFlow::Continue(rejected))
}

fn alike(one: &Measured, other: &Measured) -> bool {
    let same = one.layout == other.layout && one.sequence_parallel == other.sequence_parallel;
    same && one.zero == other.zero && one.recompute == other.recompute
}

/// One kind of parallelism for all GPUs.
fn alone(spec: &GuideSpec, all: &[Measured], chosen: &Measured) -> Vec<Idea> {
    let gpus = spec.gpus;
    let (layers, own) = (spec.base.model.layers, chosen.layout);
    let mut ideas = Vec::new();
    if own.tp * own.pp > 1 {
        let found = best_of(all.iter().filter(|one| one.layout.dp == gpus));
        let refusal = || Layout::micro_batches_of(spec.global_batch, gpus, 1).err();
        let idea = found.ok_or_else(|| refusal().map_or_else(String::new, |no| no.to_string()));
        ideas.push(("Data parallel alone".to_owned(), idea));
    }
    let tensor = Layout {
        tp: gpus,
        micro_batches: spec.global_batch,
        ..Layout::default()
    };
    ideas.push((
        "Tensor parallel alone".to_owned(),
        named(spec, chosen, tensor),
    ));
    let idea = if gpus == 1 {
        Err("there is one GPU only".to_owned())
    } else if gpus > layers {
        Err(format!(
            "{layers} layers make at most {layers} stages; {} of {gpus} GPUs would hold none",
            gpus - layers
        ))
    } else {
        let found = best_of(all.iter().filter(|one| one.layout.pp == gpus));
        found.ok_or_else(|| "the batch does not go with it".to_owned())
    };
    ideas.push(("Pipeline parallel alone".to_owned(), idea));
    ideas
}

/// A layout that may be one that no sweep looks at, with the methods of what is taken where they go with it.
fn named(spec: &GuideSpec, chosen: &Measured, layout: Layout) -> Result<Measured, String> {
    let methods = Methods {
        sequence_parallel: spec.allowed.sequence_parallel && layout.tp > 1,
        zero: if layout.dp > 1 {
            chosen.zero
        } else {
            Zero::Off
        },
        recompute: chosen.recompute,
        ..spec.base.methods
    };
    if layout.tp * layout.pp * layout.dp == 1 && spec.gpus == 1 {
        return Err("there is one GPU only".to_owned());
    }
    other(spec, layout, methods).map_err(|error| error.to_string())
}

/// Other degrees: more slices and fewer, over two nodes, more stages and fewer, larger micro-batches.
fn degrees(spec: &GuideSpec, all: &[Measured], chosen: &Measured) -> Vec<Idea> {
    let own = chosen.layout;
    let node = spec.base.hardware.gpus_per_node;
    let found = |name: String, wanted: &dyn Fn(&Layout) -> bool| {
        let best = best_of(all.iter().filter(|one| wanted(&one.layout)));
        best.map(|best| (name, Ok(best)))
    };
    let mut ideas = Vec::new();
    let across = (2 * node, spec.gpus / (2 * node).max(1));
    if across.1 > 0 && spec.gpus.is_multiple_of(across.0) && across.0 < spec.gpus {
        let name = format!("Tensor parallel over two nodes, TP {}", across.0);
        ideas.push((name, two_nodes(spec, chosen, across)));
    }
    ideas.extend(found(format!("Fewer slices, TP {}", own.tp / 2), &|one| {
        2 * one.tp == own.tp
    }));
    ideas.extend(found(format!("More slices, TP {}", own.tp * 2), &|one| {
        one.tp == 2 * own.tp
    }));
    ideas.extend(found(format!("Fewer stages, PP {}", own.pp / 2), &|one| {
        one.tp == own.tp && 2 * one.pp == own.pp
    }));
    ideas.extend(found(format!("More stages, PP {}", own.pp * 2), &|one| {
        one.tp == own.tp && one.pp == 2 * own.pp
    }));
    let (half, twice) = (own.micro_batches / 2, own.micro_batch_size * 2);
    let name = format!("Fewer micro-batches, {half} of {twice}");
    let same = move |one: &Layout| [one.tp, one.pp] == [own.tp, own.pp];
    ideas.extend(found(name, &move |one| {
        same(one) && one.micro_batch_size == twice
    }));
    ideas
}

/// Slices over two nodes, the rest in stages as of what is taken, or in replicas.
fn two_nodes(
    spec: &GuideSpec,
    chosen: &Measured,
    (tp, rest): (usize, usize),
) -> Result<Measured, String> {
    let stages = (1..=chosen.layout.pp.min(rest))
        .rev()
        .find(|pp| rest.is_multiple_of(*pp));
    let pp = stages.unwrap_or(1);
    let dp = rest / pp;
    let layout = Layout {
        dp,
        tp,
        pp,
        micro_batches: Layout::micro_batches_of(spec.global_batch, dp, 1)
            .map_err(|error| error.to_string())?,
        ..Layout::default()
    };
    named(spec, chosen, layout)
}

/// What is taken, without one of its methods, or with recomputation that it does not need.
fn without(spec: &GuideSpec, chosen: &Measured) -> Vec<Idea> {
    let own = chosen.methods(spec.base.methods);
    let with = |name: String, layout: Layout, methods: Methods| {
        let idea = other(spec, layout, methods).map_err(|error| error.to_string());
        (name, idea)
    };
    let mut ideas = Vec::new();
    if chosen.zero != Zero::Off {
        let zero = Zero::Off;
        let name = format!("Without {}", zero_name(chosen.zero));
        ideas.push(with(name, chosen.layout, Methods { zero, ..own }));
    }
    if chosen.recompute != Recompute::None {
        let recompute = Recompute::None;
        let name = "Without recomputation".to_owned();
        ideas.push(with(name, chosen.layout, Methods { recompute, ..own }));
    }
    if chosen.layout.chunks > 1 {
        let layout = Layout {
            chunks: 1,
            schedule: crate::schedule::ScheduleKind::one_f_one_b(1),
            ..chosen.layout
        };
        ideas.push(with("Without interleaving".to_owned(), layout, own));
    }
    if chosen.recompute != Recompute::Full {
        let recompute = Recompute::Full;
        let name = "Full recomputation all the same".to_owned();
        ideas.push(with(name, chosen.layout, Methods { recompute, ..own }));
    }
    ideas
}

/// What is wrong with it.
fn judged(
    spec: &GuideSpec,
    name: String,
    (one, seen): (Measured, Option<Seen>),
    choice: &Choice,
) -> Rejected {
    let (fault, why) = if !one.fits {
        let why = format!(
            "does not fit: needs {} of {}",
            one.peak_memory_bytes,
            spec.base.hardware.memory()
        );
        (Fault::DoesNotFit, why)
    } else if one.step_s > choice.chosen.step_s * (1.0 + TOLERANCE) {
        let about = if one.simulated { "" } else { "≈ " };
        let by = slower(one.step_s, choice.chosen.step_s);
        let because = because(spec, (&one, seen.as_ref()), choice);
        (Fault::Slower, format!("{about}{by}{because}"))
    } else {
        let apart = one.step_s / choice.chosen.step_s.max(f64::MIN_POSITIVE) - 1.0;
        let why = if apart >= 0.0 {
            format!("as fast within {}, but no simpler", percent(apart))
        } else {
            format!("only {} faster, and no simpler", percent(-apart))
        };
        (Fault::NoSimpler, why)
    };
    Rejected {
        name,
        layout: Some(one),
        fault,
        why,
    }
}

/// What takes the time: of bubble, transfers and computing, that which grows most.
fn because(spec: &GuideSpec, (one, seen): (&Measured, Option<&Seen>), choice: &Choice) -> String {
    let bubble = format!(": its bubble is {}", percent(one.bubble_of_total));
    let Some(seen) = seen else {
        let more = one.bubble_of_total > choice.chosen.bubble_of_total + TOLERANCE;
        return if more { bubble } else { String::new() };
    };
    let own = &choice.seen;
    let growth = [
        seen.idle_s - own.idle_s,
        seen.transfer_s - own.transfer_s,
        seen.compute_s - own.compute_s,
    ];
    let most = growth.iter().copied().fold(f64::MIN, f64::max);
    let share = percent(seen.transfer_s / one.step_s.max(f64::MIN_POSITIVE));
    let of_chosen = choice.chosen.layout;
    if most <= growth[0] {
        bubble
    } else if most <= growth[1] {
        let what = if one.layout.tp > spec.base.hardware.gpus_per_node {
            "all-reduces that cross nodes in each layer"
        } else if one.layout.tp > of_chosen.tp {
            "all-reduces in each layer"
        } else if one.layout.dp > of_chosen.dp {
            "the all-reduce of gradients"
        } else {
            "transfers"
        };
        format!(": {share} of the time is {what}")
    } else if one.recompute != choice.chosen.recompute && one.recompute != Recompute::None {
        ": it computes again what it could keep".to_owned()
    } else if one.zero < choice.chosen.zero {
        ": each replica does all of the optimizer's work".to_owned()
    } else {
        ": its GPUs compute for longer".to_owned()
    }
}

//! Questions of memory, which come first: what one GPU holds, what a layer takes, what a node holds. And where nothing fits,
//! how many GPUs would do.

use std::ops::ControlFlow;

use super::look::{recomputes, sequences, swept, zeros};
use super::measure::{estimated, other, simulated};
use super::{Fact, Fewest, GuideError, GuideSpec, Measured, Reason, Topic, Value, Verdict, Way};
use crate::plan::Layout;
use crate::session::config::ConfigError;
use crate::session::sweep::Fixed;
use crate::shape::{Methods, Recompute, StageShape, Zero};
use crate::units::{Bytes, Pass};

/// GPUs are doubled up to so many.
pub(super) const MOST_GPUS: usize = 1 << 16;

/// A figure and its name.
pub(super) fn fact(name: impl Into<String>, value: Value) -> Fact {
    Fact {
        name: name.into(),
        value,
    }
}

/// Nothing of `all` fits: the smallest of them, and how many GPUs would do.
pub(super) fn nothing_fits(
    spec: &GuideSpec,
    all: &[Measured],
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<(), GuideError>, ConfigError> {
    let mut more = spec.clone();
    let mut fewest = None;
    while fewest.is_none() && more.gpus <= MOST_GPUS / 2 {
        if progress(all.len(), all.len()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        more.gpus *= 2;
        more.global_batch = more.global_batch.saturating_mul(2);
        fewest = smallest(&more)?.filter(|one| one.fits).map(|layout| {
            Box::new(Fewest {
                gpus: more.gpus,
                global_batch: more.global_batch,
                layout,
            })
        });
    }
    let smallest = all.iter().min_by_key(|one| one.peak_memory_bytes);
    let Some(smallest) = smallest.copied() else {
        return Ok(ControlFlow::Break(()));
    };
    Ok(ControlFlow::Continue(GuideError::NothingFits {
        model: spec.base.model.name.clone(),
        gpus: spec.gpus,
        hardware: spec.base.hardware.title.clone(),
        capacity: spec.base.hardware.memory(),
        smallest: Box::new(smallest),
        fewest,
    }))
}

/// The layout that needs least, with everything that saves memory.
fn smallest(spec: &GuideSpec) -> Result<Option<Measured>, ConfigError> {
    let fixed = Fixed {
        micro_batch_size: Some(1),
        chunks: Some(1),
        ..Fixed::default()
    };
    let pricing = spec.base.pricing();
    let mut least: Option<Measured> = None;
    for mut config in swept(spec, fixed).candidates() {
        config.methods = saving(spec, &config.layout);
        let one = estimated(&config, pricing.as_ref())?;
        if least.is_none_or(|least| one.peak_memory_bytes < least.peak_memory_bytes) {
            least = Some(one);
        }
    }
    Ok(least)
}

/// All methods that are allowed.
fn saving(spec: &GuideSpec, layout: &Layout) -> Methods {
    let last = |all: &[bool]| all.last().copied().unwrap_or_default();
    Methods {
        sequence_parallel: last(sequences(spec, layout.tp)),
        zero: zeros(spec, layout.dp).last().copied().unwrap_or_default(),
        recompute: recomputes(spec).last().copied().unwrap_or_default(),
        ..spec.base.methods
    }
}

/// The questions, each only if the one before it is answered with no.
pub(super) fn questions(spec: &GuideSpec) -> Result<Vec<Reason>, ConfigError> {
    let mut all = vec![one_gpu(spec)?];
    let open = |all: &[Reason]| all.iter().all(|reason| reason.verdict == Verdict::No);
    if open(&all) && spec.gpus > 1 {
        all.push(helped(spec)?);
    }
    if open(&all) && spec.gpus > 1 {
        all.push(layer(spec));
        // Of one layer it is no matter whether the next question is asked.
        all.extend(node(spec)?);
    }
    Ok(all)
}

fn yes(is: bool) -> (Verdict, String) {
    if is {
        (Verdict::Yes, "yes".to_owned())
    } else {
        (Verdict::No, "no".to_owned())
    }
}

/// The training as it is, on one GPU with a micro-batch of one sequence.
fn one_gpu(spec: &GuideSpec) -> Result<Reason, ConfigError> {
    let plain = other(spec, Layout::default(), spec.base.methods)?;
    let (plain, seen) = simulated(spec, &plain)?;
    let capacity = spec.base.hardware.memory();
    let (verdict, answer) = yes(plain.fits);
    let memory = seen.memory;
    let consequence = if plain.fits {
        "Every GPU can hold all of the model: data parallel alone is enough, and anything more must pay for itself in time"
    } else if memory.parameters + memory.gradients + memory.optimizer > capacity {
        "Weights, gradients and optimizer alone are too much: something must be shared out, or the model be cut"
    } else {
        "It is the activations that are too much: they must be made again, or the model be cut"
    };
    Ok(Reason {
        topic: Topic::OneGpu,
        question: "Does the whole training fit one GPU?".to_owned(),
        verdict,
        answer,
        facts: vec![
            fact("parameters", Value::Count(spec.base.model.params())),
            fact("weights", Value::Bytes(memory.parameters)),
            fact("gradients", Value::Bytes(memory.gradients)),
            fact("optimizer", Value::Bytes(memory.optimizer)),
            fact(
                "activations of a sequence",
                Value::Bytes(memory.activations),
            ),
            fact("together", Value::Bytes(plain.peak_memory_bytes)),
            fact("a GPU has", Value::Bytes(capacity)),
        ],
        ways: Vec::new(),
        consequence: consequence.to_owned(),
    })
}

/// Data parallel alone, with what saves memory and cuts nothing.
fn helped(spec: &GuideSpec) -> Result<Reason, ConfigError> {
    let question = "Does it with a shared optimizer or recomputation, still data parallel alone?";
    let reason = |is: bool, ways: Vec<Way>, consequence: String| {
        let (verdict, answer) = yes(is);
        Reason {
            topic: Topic::Helped,
            question: question.to_owned(),
            verdict,
            answer,
            facts: vec![fact("a GPU has", Value::Bytes(spec.base.hardware.memory()))],
            ways,
            consequence,
        }
    };
    let dp = spec.gpus;
    let micro_batches = match Layout::micro_batches_of(spec.global_batch, dp, 1) {
        Ok(micro_batches) => micro_batches,
        Err(error) => {
            return Ok(reason(
                false,
                Vec::new(),
                format!("It cannot be tried: {error}"),
            ));
        }
    };
    let layout = Layout {
        dp,
        micro_batches,
        ..Layout::default()
    };
    let mut ways = Vec::new();
    for &recompute in recomputes(spec) {
        for &zero in zeros(spec, dp) {
            if (zero, recompute) == (Zero::Off, Recompute::None) {
                continue;
            }
            let methods = Methods {
                recompute,
                zero,
                ..spec.base.methods
            };
            let best = other(spec, layout, methods)?;
            ways.push(Way {
                name: best.methods_named().join(", "),
                best,
                taken: false,
            });
        }
    }
    let fitting = ways.iter_mut().filter(|way| way.best.fits);
    if let Some(way) = fitting.min_by(|a, b| a.best.step_s.total_cmp(&b.best.step_s)) {
        way.taken = true;
    }
    let consequence = match ways.iter().find(|way| way.taken) {
        Some(way) => format!(
            "Data parallel alone does it with {}; whether cutting the model is faster is a question of time",
            way.name
        ),
        None => "No GPU can hold a whole replica: the model must be cut".to_owned(),
    };
    Ok(reason(ways.iter().any(|way| way.taken), ways, consequence))
}

/// What one layer takes of one GPU.
fn layer(spec: &GuideSpec) -> Reason {
    let config = &spec.base;
    let load = config.model_load();
    let stage = StageShape {
        layers: 0..1,
        first: false,
        last: false,
    };
    let params = config.model.layer_params(1);
    let fixed = load
        .fixed_memory((params, load.whole(&stage, 1)), 1)
        .total();
    let steps = stage.steps(Pass::Forward, load.slices(1), Recompute::None);
    let kept = steps
        .into_iter()
        .map(|step| load.memory(step, Pass::Forward, 1));
    let kept = Bytes(kept.sum::<i64>().max(0) as u64);
    let capacity = config.hardware.memory();
    let fits = fixed + kept <= capacity;
    let (verdict, answer) = yes(fits);
    let consequence = if fits {
        "The model can be cut between layers, into stages of a pipeline; slicing layers is a choice, not a must"
    } else {
        "Stages of whole layers are too large for a GPU: layers must be sliced, by tensor parallelism"
    };
    Reason {
        topic: Topic::Layer,
        question: "Does a single layer fit a GPU?".to_owned(),
        verdict,
        answer,
        facts: vec![
            fact("layers", Value::Count(config.model.layers as u64)),
            fact(
                "a layer's weights, gradients, optimizer",
                Value::Bytes(fixed),
            ),
            fact("its activations of a sequence", Value::Bytes(kept)),
            fact("a GPU has", Value::Bytes(capacity)),
        ],
        ways: Vec::new(),
        consequence: consequence.to_owned(),
    }
}

/// What a node holds, with its layers sliced as far as heads and the node allow; nothing if no slicing is legal.
fn node(spec: &GuideSpec) -> Result<Option<Reason>, ConfigError> {
    let node = spec.base.hardware.gpus_per_node;
    let legal = |tp: &usize| spec.gpus.is_multiple_of(*tp) && node.is_multiple_of(*tp);
    let mut found: Option<(usize, Measured, Measured)> = None;
    for tp in (1..=node.min(spec.gpus)).filter(legal) {
        let dp = spec.gpus / tp;
        let Ok(micro_batches) = Layout::micro_batches_of(spec.global_batch, dp, 1) else {
            continue;
        };
        let layout = Layout {
            dp,
            tp,
            micro_batches,
            ..Layout::default()
        };
        if let Ok(plain) = other(spec, layout, spec.base.methods) {
            let least = other(spec, layout, saving(spec, &layout))?;
            found = Some((tp, plain, least));
        }
    }
    let Some((tp, plain, least)) = found else {
        return Ok(None);
    };
    let (verdict, answer) = yes(least.fits);
    let consequence = if least.fits {
        "Tensor parallelism inside a node is enough; pipelines must pay for themselves in time"
    } else {
        "A node is not enough: the layers must be spread over several, as stages of a pipeline"
    };
    let way = |name: String, best: Measured| Way {
        name,
        best,
        taken: false,
    };
    let mut ways = vec![way(format!("TP {tp}"), plain)];
    if !least.methods_named().is_empty() {
        let name = format!("TP {tp}, {}", least.methods_named().join(", "));
        ways.push(way(name, least));
    }
    if let Some(last) = ways.last_mut() {
        last.taken = least.fits;
    }
    Ok(Some(Reason {
        topic: Topic::Node,
        question: "Do the GPUs of one node hold the model together?".to_owned(),
        verdict,
        answer,
        facts: vec![
            fact("GPUs of a node", Value::Count(node as u64)),
            fact("largest legal TP in it", Value::Count(tp as u64)),
            fact("a GPU has", Value::Bytes(spec.base.hardware.memory())),
        ],
        ways,
        consequence: consequence.to_owned(),
    }))
}

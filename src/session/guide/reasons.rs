//! Questions of time: of the ways that there are, the simplest that is about as fast as the fastest.

use super::look::{Choice, simplicity, zero_name};
use super::memory::{fact, questions};
use super::{Fact, GuideSpec, Measured, Reason, Topic, Value, Verdict, Way, slower};
use crate::hardware::Task;
use crate::mesh::Coord;
use crate::session::config::ConfigError;
use crate::shape::{Recompute, Zero};
use crate::units::{Axis, Collective, percent};

/// A question with several ways: which way a layout goes is the entry of its simplicity.
struct Fork {
    topic: Topic,
    entry: usize,
    name: fn(&Measured) -> String,
    question: &'static str,
}

const FORKS: [Fork; 7] = [
    Fork {
        topic: Topic::Tensor,
        entry: 0,
        name: |one| format!("TP {}", one.layout.tp),
        question: "Over how many GPUs of a node is each layer sliced (tensor parallel)?",
    },
    Fork {
        topic: Topic::Pipeline,
        entry: 1,
        name: |one| format!("PP {}", one.layout.pp),
        question: "Into how many stages are the layers cut (pipeline parallel)?",
    },
    Fork {
        topic: Topic::MicroBatches,
        entry: 2,
        name: |one| {
            format!(
                "{} × {}",
                one.layout.micro_batches, one.layout.micro_batch_size
            )
        },
        question: "How many micro-batches, of how many sequences each?",
    },
    Fork {
        topic: Topic::Chunks,
        entry: 3,
        name: |one| match one.layout.chunks {
            1 => "1 chunk".to_owned(),
            chunks => format!("{chunks} chunks"),
        },
        question: "Does interleaving pay: several chunks of the model a GPU?",
    },
    Fork {
        topic: Topic::Sequence,
        entry: 4,
        name: |one| {
            if one.sequence_parallel {
                "shared"
            } else {
                "unshared"
            }
            .to_owned()
        },
        question: "Is what lies between the slices shared too (sequence parallel)?",
    },
    Fork {
        topic: Topic::Zero,
        entry: 5,
        name: |one| match one.zero {
            Zero::Off => "no ZeRO".to_owned(),
            Zero::Optimizer | Zero::Gradients | Zero::Parameters => zero_name(one.zero),
        },
        question: "Do replicas share the optimizer's state (ZeRO)?",
    },
    Fork {
        topic: Topic::Recompute,
        entry: 6,
        name: |one| match one.recompute {
            Recompute::None => "no recomputation".to_owned(),
            Recompute::Selective | Recompute::Full => {
                format!("{} recomputation", one.recompute.name())
            }
        },
        question: "Last resort: are activations computed again?",
    },
];

/// All questions, in order.
pub(super) fn all(
    spec: &GuideSpec,
    all: &[Measured],
    choice: &Choice,
) -> Result<Vec<Reason>, ConfigError> {
    let mut reasons = questions(spec)?;
    let mut left: Vec<Measured> = all.to_vec();
    for fork in &FORKS {
        let ways = ways(fork, &left, &choice.chosen);
        let own = simplicity(&choice.chosen)[fork.entry];
        left.retain(|one| simplicity(one)[fork.entry] == own);
        // What has one way only is no question, but how the batch is cut is always told.
        if ways.len() > 1 || fork.topic == Topic::MicroBatches {
            reasons.push(fork.reason(spec, ways, choice));
        }
        if fork.topic == Topic::Pipeline {
            reasons.extend(data(spec, choice)?);
        }
    }
    Ok(reasons)
}

/// Each way with its best layout, the simplest first.
fn ways(fork: &Fork, left: &[Measured], chosen: &Measured) -> Vec<Way> {
    let mut entries: Vec<usize> = left.iter().map(|one| simplicity(one)[fork.entry]).collect();
    entries.sort_unstable();
    entries.dedup();
    let own = simplicity(chosen)[fork.entry];
    let way = |entry: usize| {
        let here = left
            .iter()
            .filter(|one| simplicity(one)[fork.entry] == entry);
        let best = best_of(here)?;
        Some(Way {
            name: (fork.name)(&best),
            best,
            taken: entry == own,
        })
    };
    entries.into_iter().filter_map(way).collect()
}

/// The fastest that fits, or the smallest if none does.
pub(super) fn best_of<'a>(some: impl Iterator<Item = &'a Measured> + Clone) -> Option<Measured> {
    let fitting = some.clone().filter(|one| one.fits);
    let fastest = fitting.min_by(|a, b| a.step_s.total_cmp(&b.step_s));
    fastest
        .or_else(|| some.min_by_key(|one| one.peak_memory_bytes))
        .copied()
}

impl Fork {
    fn reason(&self, spec: &GuideSpec, ways: Vec<Way>, choice: &Choice) -> Reason {
        let answer = (self.name)(&choice.chosen);
        let consequence = self.consequence(&ways, choice);
        Reason {
            topic: self.topic,
            question: self.question.to_owned(),
            verdict: Verdict::Choice,
            answer,
            facts: self.facts(spec, &choice.chosen),
            ways,
            consequence,
        }
    }

    /// What the question depends on, beside the ways.
    fn facts(&self, spec: &GuideSpec, chosen: &Measured) -> Vec<Fact> {
        let hardware = &spec.base.hardware;
        let count = |name: &str, count: usize| fact(name, Value::Count(count as u64));
        match self.topic {
            Topic::Tensor => {
                let model = &spec.base.model;
                let mut facts = vec![
                    fact(
                        "inside a node",
                        Value::GbPerS(hardware.in_node.rate() / 1e9),
                    ),
                    fact(
                        "between nodes",
                        Value::GbPerS(hardware.between_nodes.rate() / 1e9),
                    ),
                    count("GPUs of a node", hardware.gpus_per_node),
                    count("heads", model.heads),
                ];
                if model.kv_heads() != model.heads {
                    facts.push(count("key and value heads", model.kv_heads()));
                }
                facts
            }
            Topic::Pipeline => vec![count("layers", spec.base.model.layers)],
            Topic::MicroBatches => vec![
                count("global batch", spec.global_batch),
                count("replicas", chosen.layout.dp),
            ],
            Topic::OneGpu
            | Topic::Helped
            | Topic::Layer
            | Topic::Node
            | Topic::Data
            | Topic::Chunks
            | Topic::Sequence
            | Topic::Zero
            | Topic::Recompute => Vec::new(),
        }
    }

    /// Why this way: what is simpler does not fit or is slower, and what is more is no faster.
    fn consequence(&self, ways: &[Way], choice: &Choice) -> String {
        let answer = (self.name)(&choice.chosen);
        let Some(at) = ways.iter().position(|way| way.taken) else {
            return answer;
        };
        let own = &ways[at];
        let mut parts = Vec::new();
        if let Some(before) = at.checked_sub(1).map(|index| &ways[index]) {
            let why = if !before.best.fits {
                format!(
                    "{} does not fit ({})",
                    before.name, before.best.peak_memory_bytes
                )
            } else if before.best.step_s > own.best.step_s {
                format!(
                    "{} is {}",
                    before.name,
                    slower(before.best.step_s, own.best.step_s)
                )
            } else {
                format!("{} is as fast, but in closed form only", before.name)
            };
            parts.push(why);
        }
        let more = ways[at + 1..].iter().filter(|way| way.best.fits);
        let more = more.min_by(|a, b| a.best.step_s.total_cmp(&b.best.step_s));
        if let Some(way) = more {
            let (step, own) = (way.best.step_s, own.best.step_s);
            parts.push(if step >= own {
                format!("{} is {}", way.name, slower(step, own))
            } else {
                format!("{} would gain only {}", way.name, percent(1.0 - step / own))
            });
        }
        if parts.is_empty() {
            let rest = if ways.len() > 1 {
                "nothing else fits"
            } else {
                "there is no other way"
            };
            parts.push(rest.to_owned());
        }
        let what = self.what_it_means(&choice.chosen);
        capital(&format!("{}{what}", parts.join("; ")))
    }

    /// What the answer is in the cluster.
    fn what_it_means(&self, chosen: &Measured) -> String {
        let layout = &chosen.layout;
        match self.topic {
            Topic::Tensor if layout.tp > 1 => {
                ". What slices exchange twice a layer and pass stays on the node's fast links"
                    .to_owned()
            }
            Topic::Pipeline if layout.pp > 1 => {
                ". Only activations at the cuts go between stages, once a micro-batch".to_owned()
            }
            Topic::MicroBatches if layout.pp > 1 => {
                format!(". The bubble is {}", percent(chosen.bubble_of_total))
            }
            Topic::Recompute if chosen.recompute == Recompute::Full => {
                ". Each backward pass runs its forward again".to_owned()
            }
            Topic::OneGpu
            | Topic::Helped
            | Topic::Layer
            | Topic::Node
            | Topic::Tensor
            | Topic::Pipeline
            | Topic::Data
            | Topic::MicroBatches
            | Topic::Chunks
            | Topic::Sequence
            | Topic::Zero
            | Topic::Recompute => String::new(),
        }
    }
}

/// What is left goes to data parallelism, which talks least; of one replica it is said too.
fn data(spec: &GuideSpec, choice: &Choice) -> Result<Option<Reason>, ConfigError> {
    let layout = choice.chosen.layout;
    if spec.gpus == 1 {
        return Ok(None);
    }
    let shard = layout.tp * layout.pp;
    let mut facts = vec![
        fact("GPUs", Value::Count(spec.gpus as u64)),
        fact("GPUs of a replica", Value::Count(shard as u64)),
    ];
    let consequence = if layout.dp == 1 {
        "One replica takes all GPUs: there are no gradients to reduce".to_owned()
    } else {
        let gradients = choice.seen.memory.gradients;
        let mesh = layout.mesh()?;
        let at = Coord {
            dp: 0,
            tp: 0,
            pp: 0,
        };
        let group = mesh.group(Axis::Dp, at);
        let node = spec.base.hardware.gpus_per_node.max(1);
        let together = group.iter().filter(|rank| rank.index() / node == 0);
        let price = spec.base.pricing().price(&Task::Collective {
            kind: Collective::AllReduce,
            bytes: gradients,
            ranks: group.len(),
            per_node: together.count(),
        });
        let time = (price.occupies + price.delay).secs();
        facts.push(fact("gradients of a GPU", Value::Bytes(gradients)));
        facts.push(fact("their all-reduce, once a step", Value::Seconds(time)));
        format!(
            "What is left makes {} replicas. They talk least, once a step: {} of it if nothing hid it",
            layout.dp,
            percent(time / choice.chosen.step_s.max(f64::MIN_POSITIVE))
        )
    };
    Ok(Some(Reason {
        topic: Topic::Data,
        question: "How many replicas are there of that (data parallel)?".to_owned(),
        verdict: Verdict::Choice,
        answer: format!("DP {}", layout.dp),
        facts,
        ways: Vec::new(),
        consequence,
    }))
}

/// With the first letter large.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

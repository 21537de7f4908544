//! Names of several things at once: `GPUs 0 to 3, 8`.

use crate::scene::names::name;
use crate::trace::{Label, Trace};
use crate::units::Pass;
use crate::words::{Language, mark, say};

/// Of more runs of numbers, the rest is counted.
const MOST_RUNS: usize = 6;

/// What is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noun {
    Gpu,
    Stage,
    MicroBatch,
}

impl Noun {
    fn one(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Stage => mark!("stage"),
            Self::MicroBatch => mark!("micro-batch"),
        }
    }

    fn several(self) -> &'static str {
        match self {
            Self::Gpu => "GPUs",
            Self::Stage => mark!("stages"),
            Self::MicroBatch => mark!("micro-batches"),
        }
    }
}

/// The ranks at these places.
pub(super) fn who(trace: &Trace, ranks: &[usize], language: Language) -> String {
    match ranks {
        [one] => return name(trace, *one),
        several if !trace.tracks.is_empty() => {
            return say!(language, "{count} rows", count = several.len());
        }
        _ => {}
    }
    let numbers = ranks.iter().map(|&index| trace.ranks[index].rank.0);
    let text = numbered(Noun::Gpu, numbers.collect(), language);
    let count: u64 = ranks
        .iter()
        .map(|&index| u64::from(trace.ranks[index].count))
        .sum();
    if count > ranks.len() as u64 {
        return say!(language, "{text} ({count} in all)", text, count);
    }
    text
}

/// Numbered things, in order: `GPU 3`, `GPUs 0, 1`, `GPUs 0 to 3, 8`.
pub(super) fn numbered(noun: Noun, mut numbers: Vec<u32>, language: Language) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    if let [one] = numbers.as_slice() {
        return format!("{} {one}", language.say(noun.one()));
    }
    let runs: Vec<&[u32]> = numbers
        .chunk_by(|one, next| one.checked_add(1) == Some(*next))
        .collect();
    let told = runs.iter().take(MOST_RUNS).map(|run| match run {
        [one] => one.to_string(),
        [one, two] => format!("{one}, {two}"),
        [first, .., last] => say!(language, "{first} to {last}", first, last),
        [] => String::new(),
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let text = format!("{} {told}", language.say(noun.several()));
    let rest: usize = runs.iter().skip(MOST_RUNS).map(|run| run.len()).sum();
    if rest > 0 {
        return say!(language, "{text} and {rest} more", text, rest);
    }
    text
}

/// A collective by what it is of: `an all-reduce of gradients`.
pub(super) fn collective(label: &Label, language: Language) -> String {
    let (kind, what) = label.name.split_once(' ').unwrap_or((&label.name, ""));
    if let Some(whole) = known(&label.name) {
        return language.say(whole).to_owned();
    }
    let article = if kind.starts_with(['a', 'e', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    match what {
        "" => format!("{article} {kind}"),
        _ => format!("{article} {kind} of {what}"),
    }
}

/// The collectives that a plan has.
fn known(name: &str) -> Option<&'static str> {
    Some(match name {
        "all-reduce partial sums" => mark!("an all-reduce of partial sums"),
        "reduce-scatter partial sums" => mark!("a reduce-scatter of partial sums"),
        "all-gather the sequence" => mark!("an all-gather of the sequence"),
        "all-reduce largest logit" => mark!("an all-reduce of the largest logit"),
        "all-reduce target logit" => mark!("an all-reduce of the target logit"),
        "all-reduce sum of exponentials" => mark!("an all-reduce of the sum of exponentials"),
        "all-reduce gradients" => mark!("an all-reduce of gradients"),
        "reduce-scatter gradients" => mark!("a reduce-scatter of gradients"),
        "all-gather weights" => mark!("an all-gather of weights"),
        "all-reduce norms' gradients" => mark!("an all-reduce of norms' gradients"),
        "all-reduce tied embedding" => mark!("an all-reduce of the tied embedding"),
        "all-reduce gradient norm" => mark!("an all-reduce of the gradient norm"),
        _ => return None,
    })
}

/// A kind of pass.
pub(super) fn kind_of(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => mark!("forward"),
        Pass::Backward => mark!("backward"),
        Pass::InputGrad => mark!("input gradient"),
        Pass::WeightGrad => mark!("weight gradient"),
    }
}

/// A pass in words: `forward of micro-batch 3`.
pub(super) fn pass(label: &Label, language: Language) -> String {
    match (label.pass, label.micro_batch) {
        (Some(pass), Some(micro_batch)) => {
            let pass = language.say(kind_of(pass));
            say!(
                language,
                "{pass} of micro-batch {micro_batch}",
                pass,
                micro_batch
            )
        }
        _ => label.name.clone().into_owned(),
    }
}

//! Names of several things at once: `GPUs 0 to 3, 8`.

use crate::scene::names::name;
use crate::trace::{Label, Trace};

/// Of more runs of numbers, the rest is counted.
const MOST_RUNS: usize = 6;

/// The ranks at these places.
pub(super) fn who(trace: &Trace, ranks: &[usize]) -> String {
    match ranks {
        [one] => return name(trace, *one),
        several if !trace.tracks.is_empty() => return format!("{} rows", several.len()),
        _ => {}
    }
    let numbers = ranks.iter().map(|&index| trace.ranks[index].rank.0);
    let text = numbered("GPU", numbers.collect());
    let count: u64 = ranks
        .iter()
        .map(|&index| u64::from(trace.ranks[index].count))
        .sum();
    if count > ranks.len() as u64 {
        return format!("{text} ({count} in all)");
    }
    text
}

/// Numbered things, in order: `GPU 3`, `GPUs 0, 1`, `GPUs 0 to 3, 8`.
pub(super) fn numbered(name: &str, mut numbers: Vec<u32>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    if let [one] = numbers.as_slice() {
        return format!("{name} {one}");
    }
    let runs: Vec<&[u32]> = numbers
        .chunk_by(|one, next| one.checked_add(1) == Some(*next))
        .collect();
    let told = runs.iter().take(MOST_RUNS).map(|run| match run {
        [one] => one.to_string(),
        [one, two] => format!("{one}, {two}"),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    let es = if name.ends_with("ch") { "es" } else { "s" };
    let text = format!("{name}{es} {}", told.collect::<Vec<_>>().join(", "));
    let rest: usize = runs.iter().skip(MOST_RUNS).map(|run| run.len()).sum();
    if rest > 0 {
        return format!("{text} and {rest} more");
    }
    text
}

/// A collective by what it is of: `an all-reduce of gradients`.
pub(super) fn collective(label: &Label) -> String {
    let (kind, what) = label.name.split_once(' ').unwrap_or((&label.name, ""));
    let article = if kind.starts_with(['a', 'e', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    let the = match what {
        "" => return format!("{article} {kind}"),
        "largest logit"
        | "target logit"
        | "sum of exponentials"
        | "tied embedding"
        | "gradient norm" => "the ",
        _ => "",
    };
    format!("{article} {kind} of {the}{what}")
}

/// A pass in words: `forward of micro-batch 3`.
pub(super) fn pass(label: &Label) -> String {
    match (label.pass, label.micro_batch) {
        (Some(pass), Some(micro_batch)) => format!("{} of micro-batch {micro_batch}", pass.name()),
        _ => label.name.clone().into_owned(),
    }
}

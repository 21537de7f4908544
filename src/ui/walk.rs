//! From one span to another: along its lane, along arrows, and by name.

use crate::scene::Hit;
use crate::trace::{Arrow, Groups, Kind, Label, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Rank};

/// More spans than this are not listed when they are searched for.
pub(super) const MOST_FOUND: usize = 100_000;

/// The span after `hit` on its lane, or before it.
pub(super) fn beside(trace: &Trace, hit: &Hit, after: bool) -> Option<Hit> {
    let spans = trace.lane(hit.rank_index, hit.stream).spans();
    let own = spans.partition_point(|span| span.start < hit.span.start);
    let index = if after {
        own.checked_add(1)?
    } else {
        own.checked_sub(1)?
    };
    let span = *spans.get(index)?;
    Some(Hit { span, ..*hit })
}

/// The same span in another step's timeline: of its label on its lane, the one that starts nearest.
pub(super) fn again(trace: &Trace, hit: &Hit) -> Option<Hit> {
    trace.ranks.get(hit.rank_index)?;
    trace.labels.get(hit.span.label.0 as usize)?;
    let spans = trace.lane(hit.rank_index, hit.stream).spans().iter();
    let alike = spans.filter(|span| span.label == hit.span.label && span.phase == hit.span.phase);
    let apart = |span: &&Span| span.start.0.abs_diff(hit.span.start.0);
    let span = *alike.min_by_key(apart)?;
    Some(Hit { span, ..*hit })
}

/// What a rank does at a time, or next.
pub(super) fn from_there(trace: &Trace, rank_index: usize, time: Nanos) -> Option<Hit> {
    trace.ranks.get(rank_index)?;
    let lane = trace.lane(rank_index, Stream::Passes);
    let spans = lane.spans();
    let next = spans.partition_point(|span| span.end <= time);
    let span = *spans.get(next).or(spans.last())?;
    Some(Hit {
        rank_index,
        stream: Stream::Passes,
        span,
    })
}

/// Where the arrow that leaves `hit` goes, or the one that led to it comes from; of a collective, its next member.
pub(super) fn along(trace: &Trace, hit: &Hit, forward: bool) -> Option<Hit> {
    let label = trace.label(hit.span.label);
    if label.collective().is_some() && matches!(hit.stream, Stream::Tp | Stream::Dp) {
        return member(trace, hit, label, forward);
    }
    let own = trace.ranks.get(hit.rank_index)?.rank;
    let foreign = !trace.tracks.is_empty();
    let same = |arrow: &&Arrow| foreign || is_of(label, trace.label(arrow.label));
    let sends = matches!(hit.stream, Stream::SendNext | Stream::SendPrev);
    if forward {
        let leaves = |arrow: &&Arrow| {
            arrow.from == own
                && same(arrow)
                && if foreign {
                    (hit.span.start..=hit.span.end).contains(&arrow.left)
                } else if sends {
                    arrow.left == hit.span.start
                } else {
                    arrow.left >= hit.span.end
                }
        };
        let arrow = trace
            .arrows
            .iter()
            .filter(leaves)
            .min_by_key(|arrow| arrow.left)?;
        return end_of(trace, arrow);
    }
    let arrives = |arrow: &&Arrow| {
        if sends {
            return false;
        }
        let there = if foreign {
            hit.span.end
        } else {
            hit.span.start
        };
        arrow.to == own && same(arrow) && arrow.arrived <= there
    };
    match trace
        .arrows
        .iter()
        .filter(arrives)
        .max_by_key(|arrow| arrow.arrived)
    {
        Some(arrow) => start_of(trace, arrow),
        // What is sent was made by the pass before it.
        None if sends => made_before(trace, hit.rank_index, hit.span.start, label),
        None => None,
    }
}

/// Whether what an arrow carries is made by, or goes into, a pass.
fn is_of(pass: &Label, carried: &Label) -> bool {
    pass.pass == carried.pass && pass.micro_batch == carried.micro_batch
}

fn place_of(trace: &Trace, rank: Rank) -> Option<usize> {
    trace.ranks.iter().position(|info| info.rank == rank)
}

/// The pass that takes what an arrow carries.
fn end_of(trace: &Trace, arrow: &Arrow) -> Option<Hit> {
    let rank_index = place_of(trace, arrow.to)?;
    let spans = trace.lane(rank_index, Stream::Passes).spans();
    let first = spans.partition_point(|span| span.end <= arrow.arrived);
    let carried = trace.label(arrow.label);
    let takes = |span: &&Span| is_of(trace.label(span.label), carried);
    let taker = spans[first..].iter().find(takes);
    let span = *taker.or(spans.get(first))?;
    Some(Hit {
        rank_index,
        stream: Stream::Passes,
        span,
    })
}

/// The pass that made what an arrow carries.
fn start_of(trace: &Trace, arrow: &Arrow) -> Option<Hit> {
    let rank_index = place_of(trace, arrow.from)?;
    made_before(trace, rank_index, arrow.left, trace.label(arrow.label))
}

fn made_before(trace: &Trace, rank_index: usize, time: Nanos, carried: &Label) -> Option<Hit> {
    let spans = trace.lane(rank_index, Stream::Passes).spans();
    let until = spans.partition_point(|span| span.start <= time);
    let made = |span: &&Span| is_of(trace.label(span.label), carried);
    let maker = spans[..until].iter().rev().find(made);
    let span = *maker.or(spans[..until].last())?;
    Some(Hit {
        rank_index,
        stream: Stream::Passes,
        span,
    })
}

/// The same collective on the next member of its group, or on the one before.
fn member(trace: &Trace, hit: &Hit, label: &Label, forward: bool) -> Option<Hit> {
    let mut groups = Groups::new(trace);
    let mut members = groups.members(hit.rank_index, label.axis()?).to_vec();
    if !forward {
        members.reverse();
    }
    let own = members.iter().position(|&index| index == hit.rank_index)?;
    members.rotate_left(own + 1);
    members.pop();
    members.into_iter().find_map(|rank_index| {
        let span = *trace
            .lane(rank_index, hit.stream)
            .at(Nanos(hit.span.end.0.checked_sub(1)?))?;
        (span.label == hit.span.label).then_some(Hit {
            rank_index,
            span,
            ..*hit
        })
    })
}

/// The spans that `words` name, in order of time; all words must be found in what a span and its row are called.
pub(super) fn search(trace: &Trace, words: &str) -> Vec<Hit> {
    let words = words.to_lowercase();
    // `gpu 2` is one word.
    let words = words.replace("gpu ", "gpu");
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() {
        return Vec::new();
    }
    // Which of the words each name has, found once for all lanes, a bit for each.
    let has = |text: &str, also: &dyn Fn(&str) -> bool| -> u64 {
        let words = words.iter().enumerate().take(64);
        let matching = words.filter(|(_, word)| text.contains(**word) || also(word));
        matching.map(|(bit, _)| 1 << bit).sum()
    };
    let all = words
        .iter()
        .enumerate()
        .take(64)
        .map(|(bit, _)| 1_u64 << bit)
        .sum::<u64>();
    let labels: Vec<u64> = trace
        .labels
        .iter()
        .map(|label| has(&called(label), &|_| false))
        .collect();
    let gaps = ["idle bubble", "exposed transfer", "waiting"].map(|name| has(name, &|_| false));
    let mut found = Vec::new();
    for (index, lane) in trace.lanes.iter().enumerate() {
        let (rank_index, stream) = (index / Stream::ALL.len(), lane.id.stream);
        if lane.spans().is_empty() {
            continue;
        }
        let row = match trace.tracks.get(rank_index) {
            Some(track) => track.to_lowercase(),
            None => format!("gpu {}", lane.id.rank),
        };
        let of_row = has("", &|word| is_row(word, &row));
        for span in lane.spans() {
            let own = match (stream, span.phase) {
                (Stream::Compute, Phase::Busy) => continue,
                (_, Phase::Waiting) => gaps[2],
                (Stream::Compute, Phase::Idle) => gaps[0],
                (Stream::Compute, Phase::Transfer) => gaps[1],
                (_, Phase::Busy | Phase::Transfer | Phase::Idle) => {
                    labels.get(span.label.0 as usize).copied().unwrap_or(0)
                }
            };
            if own | of_row == all {
                found.push(Hit {
                    rank_index,
                    stream,
                    span: *span,
                });
            }
        }
        if found.len() >= MOST_FOUND {
            break;
        }
    }
    found.sort_by_key(|hit| (hit.span.start, hit.rank_index, hit.stream));
    found.truncate(MOST_FOUND);
    found
}

/// Whether a word is of the row's name: `gpu2`, `gpu`, `gpu:2`.
fn is_row(word: &str, row: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|letter| letter.is_alphanumeric())
            .collect()
    };
    let (word, row) = (plain(word), plain(row));
    // What follows is no further digit: `gpu1` is not of GPU 10.
    let rest = row.strip_prefix(&word);
    !word.is_empty()
        && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// All that a label is called, in small letters.
fn called(label: &Label) -> String {
    let mut parts = vec![label.short(), label.name.to_string()];
    let numbers = [
        ("mb", label.micro_batch),
        ("stage", label.stage),
        ("layer", label.layer),
    ];
    parts.extend(
        numbers
            .iter()
            .filter_map(|(name, number)| number.map(|number| format!("{name}{number}"))),
    );
    parts.extend(label.group.as_deref().map(str::to_owned));
    if label.kind == Kind::Send {
        parts.push("send".to_owned());
    }
    parts.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Config, Timeline};

    fn trace() -> std::sync::Arc<Trace> {
        Timeline::simulated(&Config::default(), "simulated")
            .unwrap()
            .trace
    }

    fn short(trace: &Trace, hit: &Hit) -> (String, u32) {
        let rank = trace.ranks[hit.rank_index].rank.0;
        (trace.label(hit.span.label).short(), rank)
    }

    #[test]
    fn arrows_are_followed_there_and_back() {
        let trace = trace();
        let hits = search(&trace, "f3 gpu0");
        let pass = hits
            .iter()
            .find(|hit| hit.stream == Stream::Passes)
            .unwrap();
        let next = along(&trace, pass, true).unwrap();
        let (name, rank) = short(&trace, &next);
        assert_eq!(name, "F3");
        assert_ne!(rank, 0);
        assert_eq!(along(&trace, &next, false).as_ref(), Some(pass));
        // The first stage's forward comes from nowhere.
        assert_eq!(along(&trace, pass, false), None);
        let send = hits
            .iter()
            .find(|hit| hit.stream == Stream::SendNext)
            .unwrap();
        assert_eq!(along(&trace, send, true), Some(next));
        assert_eq!(along(&trace, send, false).as_ref(), Some(pass));
    }

    #[test]
    fn a_lane_is_gone_through_in_order() {
        let trace = trace();
        let first = from_there(&trace, 0, Nanos::ZERO).unwrap();
        let second = beside(&trace, &first, true).unwrap();
        assert!(second.span.start >= first.span.end);
        assert_eq!(beside(&trace, &second, false), Some(first));
        assert_eq!(beside(&trace, &first, false), None);
    }

    #[test]
    fn a_collective_goes_on_to_its_next_member() {
        let trace = trace();
        let all = search(&trace, "all-reduce dp");
        let one = all.iter().find(|hit| hit.stream == Stream::Dp).unwrap();
        let other = along(&trace, one, true).unwrap();
        assert_ne!(one.rank_index, other.rank_index);
        assert_eq!(one.span.label, other.span.label);
    }

    #[test]
    fn every_word_must_be_found() {
        let trace = trace();
        assert!(search(&trace, "  ").is_empty());
        assert!(search(&trace, "f3 nothing").is_empty());
        let idle = search(&trace, "BUBBLE gpu 1");
        assert!(!idle.is_empty() && idle.iter().all(|hit| hit.rank_index == 1));
    }
}

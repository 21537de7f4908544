//! Clocks of several ranks made one: collectives end for all their members at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::events::File;
use super::kernels::Class;

/// Ends of matched collectives may be so far apart on aligned clocks, in nanoseconds, or by this share of how long they
/// take, and still be trusted.
const TRUSTED: i64 = 50_000;
const TRUSTED_SHARE: f64 = 0.1;

/// A collective of several files: for each file its place among that file's events.
#[derive(Clone, Debug)]
pub(super) struct Matched {
    /// File, and place among its events.
    pub(super) members: Vec<(usize, u32)>,
}

/// What aligning came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    /// Added to each file's times; nothing where a file's clock could not be aligned with the first one's.
    pub(super) offsets: Vec<Option<i64>>,
    /// Collectives that were matched, in order.
    pub(super) matched: Vec<Matched>,
    /// Why a file's clock could not be aligned, by its place.
    pub(super) notes: Vec<(usize, String)>,
}

/// Why two clocks cannot be aligned with each other.
#[derive(Clone, Debug)]
enum Apart {
    /// Their files share no collective.
    Nothing,
    /// In words.
    Why(String),
}

/// A collective: its group's name and ranks, and its own name.
type Called<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Calls of one collective, in order, as places among a file's events.
type Calls<'a> = BTreeMap<Called<'a>, Vec<u32>>;

fn calls<'a>(file: &File<'a>) -> Calls<'a> {
    let mut calls: Calls<'a> = BTreeMap::new();
    let all = (0_u32..).zip(&file.events);
    let mut kernels: Vec<(i64, u32)> = all
        .filter(|(_, event)| {
            event.of == super::events::Of::Gpu && file.class(event) == Class::Communication
        })
        .map(|(index, event)| (event.start, index))
        .collect();
    kernels.sort_unstable();
    for (_, index) in kernels {
        let event = &file.events[index as usize];
        let said = file.comms.get(&index).copied().unwrap_or_default();
        let name = said.name.unwrap_or(file.names.list[event.name as usize]);
        let group = said.group.unwrap_or_default();
        let ranks = said.ranks.unwrap_or_default();
        calls.entry((group, ranks, name)).or_default().push(index);
    }
    calls
}

/// Matches the collectives of files that may be ranks of one run, and aligns their clocks with the first one's.
pub(super) fn align(files: &[File<'_>]) -> Alignment {
    if files.is_empty() {
        return Alignment::default();
    }
    let all: Vec<Calls<'_>> = files.iter().map(calls).collect();
    let mut result = Alignment {
        offsets: vec![Some(0); 1],
        ..Alignment::default()
    };
    result.offsets.resize(files.len(), None);
    let mut whys: Vec<Option<String>> = vec![None; files.len()];
    let mut callers: HashMap<&Called<'_>, Vec<usize>> = HashMap::new();
    for (index, calls) in all.iter().enumerate() {
        for key in calls.keys() {
            callers.entry(key).or_default().push(index);
        }
    }
    // Ranks that share no group with the first are reached over one that does.
    let mut aligned = vec![0];
    let mut next = 0;
    while let Some(&by) = aligned.get(next) {
        next += 1;
        let Some(known) = result.offsets[by] else {
            continue;
        };
        let shares = all[by].keys().filter_map(|key| callers.get(key)).flatten();
        let shares: BTreeSet<usize> = shares.copied().collect();
        for index in shares {
            if result.offsets[index].is_some() {
                continue;
            }
            match offset((&files[by], &all[by]), (&files[index], &all[index])) {
                Ok(offset) => {
                    result.offsets[index] = Some(known.saturating_add(offset));
                    aligned.push(index);
                }
                Err(Apart::Nothing) => {}
                Err(Apart::Why(why)) => {
                    whys[index].get_or_insert(why);
                }
            }
        }
    }
    for (index, why) in whys.into_iter().enumerate().skip(1) {
        if result.offsets[index].is_none() {
            let nothing = || "they share no collective".to_owned();
            result.notes.push((index, why.unwrap_or_else(nothing)));
        }
    }
    result.matched = matched(&all, &result.offsets);
    result
}

/// What brings `other`'s clock to `first`'s: the median distance of the ends of what both took part in.
fn offset(
    (first, own): (&File<'_>, &Calls<'_>),
    (other, others): (&File<'_>, &Calls<'_>),
) -> Result<i64, Apart> {
    let mut apart: Vec<i64> = Vec::new();
    let mut lengths: Vec<i64> = Vec::new();
    let mut uneven = 0;
    for (key, calls) in own {
        let Some(same) = others.get(key) else {
            continue;
        };
        if same.len() != calls.len() {
            uneven += 1;
            continue;
        }
        for (&here, &there) in calls.iter().zip(same) {
            let (here, there) = (&first.events[here as usize], &other.events[there as usize]);
            let end = |file: &File<'_>, at: i64| i128::from(at) + i128::from(file.base);
            let distance = end(first, here.end()) - end(other, there.end());
            apart.push(
                i64::try_from(distance).map_err(|error| {
                    Apart::Why(format!("their times are too far apart ({error})"))
                })?,
            );
            lengths.push(here.length.min(there.length));
        }
    }
    if apart.is_empty() {
        return Err(match uneven {
            0 => Apart::Nothing,
            _ => Apart::Why("they do not call any collective equally often".to_owned()),
        });
    }
    let offset = median(&mut apart);
    let mut left: Vec<i64> = apart
        .iter()
        .map(|apart| apart.saturating_sub(offset).saturating_abs())
        .collect();
    let spread = median(&mut left);
    let trusted = TRUSTED.max((median(&mut lengths) as f64 * TRUSTED_SHARE) as i64);
    if spread > trusted {
        return Err(Apart::Why(format!(
            "the ends of {} matched collectives differ by {} µs and more even so, so they are not the same ones",
            apart.len(),
            spread / 1000
        )));
    }
    Ok(offset)
}

fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The collectives that two or more aligned files call equally often, call by call.
fn matched(all: &[Calls<'_>], offsets: &[Option<i64>]) -> Vec<Matched> {
    let mut keys: Vec<_> = all.iter().flat_map(BTreeMap::keys).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut found = Vec::new();
    for key in keys {
        let aligned = all.iter().zip(offsets).enumerate();
        let of = aligned.filter_map(|(file, (calls, offset))| {
            offset
                .and_then(|_| calls.get(key))
                .map(|calls| (file, calls))
        });
        let mut members: Vec<(usize, &Vec<u32>)> = of.collect();
        // As often as most of them; a file that calls it more or less often takes no part.
        let mut counts: Vec<usize> = members.iter().map(|(_, calls)| calls.len()).collect();
        counts.sort_unstable();
        let count = counts.get(counts.len() / 2).copied().unwrap_or_default();
        members.retain(|(_, calls)| calls.len() == count);
        if members.len() < 2 {
            continue;
        }
        found.extend((0..count).map(|call| {
            Matched {
                members: members
                    .iter()
                    .map(|(file, calls)| (*file, calls[call]))
                    .collect(),
            }
        }));
    }
    found
}

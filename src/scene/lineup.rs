//! Which rows a timeline has, and in what order: a rank each, or those of a stage, a replica or a GPU folded into one;
//! some pinned to the top.

use std::collections::{BTreeSet, HashMap};

use crate::trace::{Phase, Stream, Trace};
use crate::units::{Nanos, Rank};

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By replica, then stage, then slice.
    #[default]
    Replica,
    /// By stage, then replica, then slice.
    Stage,
    /// By number.
    Rank,
    /// The one that computes least first.
    Idle,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Replica, Self::Stage, Self::Rank, Self::Idle];

    /// The name in the window.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replica => "by replica",
            Self::Stage => "by stage",
            Self::Rank => "by number",
            Self::Idle => "least busy first",
        }
    }
}

/// What is folded into one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Nothing: a row for each rank, with its communication and memory under it.
    #[default]
    Nothing,
    /// What a GPU has besides its passes; of a trace of another program, all its streams.
    Gpu,
    /// The GPUs of a pipeline stage.
    Stage,
    /// The GPUs of a replica.
    Replica,
}

impl Fold {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Gpu, Self::Stage, Self::Replica];

    /// The name in the window.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing folded",
            Self::Gpu => "folded per GPU",
            Self::Stage => "folded per stage",
            Self::Replica => "folded per replica",
        }
    }
}

/// How rows are arranged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// By what they are sorted.
    pub order: Order,
    /// What is folded.
    pub fold: Fold,
    /// Ranks whose rows come first and do not scroll.
    pub pinned: BTreeSet<Rank>,
}

/// The rows of a timeline, from the top.
#[derive(Clone, Debug, Default)]
pub struct Lineup {
    /// Ranks by their place in [`Trace::ranks`], those of a row together.
    ranks: Vec<usize>,
    /// Where each row's ranks start among them, and where the last one's end.
    starts: Vec<usize>,
    /// For each row, how many groups have ended above it; there is a little room between groups.
    pub(super) groups: Vec<u32>,
    /// How many rows do not scroll.
    pub(super) pinned: usize,
    /// Whether rows are of passes alone.
    pub(super) bare: bool,
    fold: Fold,
    rows: HashMap<Rank, usize>,
}

impl Lineup {
    /// The rows of `trace`.
    pub fn new(trace: &Trace, how: &Arrangement) -> Self {
        let busy = match how.order {
            Order::Idle => (0..trace.ranks.len())
                .map(|index| busy(trace, index))
                .collect(),
            Order::Replica | Order::Stage | Order::Rank => Vec::new(),
        };
        let pinned = |index: usize| how.pinned.contains(&trace.ranks[index].rank);
        let key = |index: usize| {
            let info = &trace.ranks[index];
            let (dp, pp, tp) = (u64::from(info.dp), u64::from(info.pp), u64::from(info.tp));
            let own = match how.order {
                Order::Replica => [dp, pp, tp],
                Order::Stage => [pp, dp, tp],
                Order::Rank => [0; 3],
                Order::Idle => [busy.get(index).map_or(0, |busy: &Nanos| busy.0), 0, 0],
            };
            (!pinned(index), own, info.rank)
        };
        let mut order: Vec<usize> = (0..trace.ranks.len()).collect();
        order.sort_by_key(|&index| key(index));
        let mut lineup = Self {
            bare: how.fold == Fold::Gpu && trace.tracks.is_empty(),
            fold: how.fold,
            ..Self::default()
        };
        lineup.fill(trace, &order, &pinned, how.order);
        lineup
    }

    /// What makes ranks one row: nothing, or what they have in common.
    fn joined(&self, trace: &Trace, index: usize) -> Option<u32> {
        let info = &trace.ranks[index];
        match self.fold {
            Fold::Nothing => None,
            // A row of another program is a stream of the GPU that its replica's number is.
            Fold::Gpu => (!trace.tracks.is_empty()).then_some(info.dp),
            Fold::Stage => trace.tracks.is_empty().then_some(info.pp),
            Fold::Replica => Some(info.dp),
        }
    }

    fn fill(
        &mut self,
        trace: &Trace,
        order: &[usize],
        pinned: &dyn Fn(usize) -> bool,
        sorted: Order,
    ) {
        // A row stands where the first of its ranks does.
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut row_of: HashMap<(bool, u32), usize> = HashMap::new();
        for &index in order {
            let joined = self.joined(trace, index).map(|of| (pinned(index), of));
            let row = match joined {
                Some(of) => *row_of.entry(of).or_insert(members.len()),
                None => members.len(),
            };
            if row == members.len() {
                members.push(Vec::new());
            }
            members[row].push(index);
        }
        let mut last: Option<(bool, u32)> = None;
        let mut group = 0;
        for (row, ranks) in members.into_iter().enumerate() {
            let first = &trace.ranks[ranks[0]];
            let within = match sorted {
                Order::Replica => first.dp,
                Order::Stage => first.pp,
                Order::Rank | Order::Idle => 0,
            };
            let own = (pinned(ranks[0]), within);
            if last.is_some_and(|last| last != own) {
                group += 1;
            }
            last = Some(own);
            self.groups.push(group);
            self.pinned += usize::from(own.0);
            self.starts.push(self.ranks.len());
            for &index in &ranks {
                self.rows.insert(trace.ranks[index].rank, row);
            }
            self.ranks.extend(ranks);
        }
        self.starts.push(self.ranks.len());
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// How many rows do not scroll.
    pub fn pinned(&self) -> usize {
        self.pinned
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranks of a row, by their places in [`Trace::ranks`]; of a row that is folded there are several.
    pub fn members(&self, row: usize) -> &[usize] {
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(&from), Some(&to)) => &self.ranks[from..to],
            _ => &[],
        }
    }

    /// The first of a row's ranks.
    pub fn first(&self, row: usize) -> Option<usize> {
        self.members(row).first().copied()
    }

    /// The row of a rank.
    pub fn row(&self, rank: Rank) -> Option<usize> {
        self.rows.get(&rank).copied()
    }

    /// What a row of several ranks is called.
    pub(super) fn folded_name(&self, trace: &Trace, row: usize) -> Option<String> {
        let members = self.members(row);
        let first = &trace.ranks[*members.first().filter(|_| members.len() > 1)?];
        Some(match self.fold {
            Fold::Stage => format!("stage {}", first.pp),
            Fold::Gpu => {
                let name = trace.tracks.get(members[0]).map_or("", String::as_str);
                name.split(" · ").next().unwrap_or(name).to_owned()
            }
            Fold::Replica | Fold::Nothing if trace.tracks.is_empty() => {
                format!("replica {}", first.dp)
            }
            Fold::Replica | Fold::Nothing => format!("process {}", first.dp),
        })
    }
}

/// How long a rank works.
fn busy(trace: &Trace, index: usize) -> Nanos {
    let working = |stream: Stream| -> Nanos {
        let spans = trace.lane(index, stream).spans().iter();
        spans
            .filter(|span| span.phase == Phase::Busy)
            .map(crate::trace::Span::duration)
            .sum()
    };
    working(Stream::Compute).max(working(Stream::Passes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::sample::Sample;

    fn rows(how: &Arrangement) -> Vec<Vec<u32>> {
        let trace = Sample {
            dp: 2,
            tp: 1,
            pp: 2,
            micro_batches: 4,
        }
        .trace();
        let lineup = Lineup::new(&trace, how);
        let of = |row| {
            let members = lineup.members(row).iter();
            members.map(|&index| trace.ranks[index].rank.0).collect()
        };
        (0..lineup.len()).map(of).collect()
    }

    #[test]
    fn rows_are_sorted_folded_and_pinned() {
        let plain = Arrangement::default();
        // Ranks count data-parallel first: rank 1 is the second replica's first stage.
        assert_eq!(rows(&plain), [[0], [2], [1], [3]]);
        let by_stage = Arrangement {
            order: Order::Stage,
            ..plain.clone()
        };
        assert_eq!(rows(&by_stage), [[0], [1], [2], [3]]);
        let stages = Arrangement {
            fold: Fold::Stage,
            ..plain.clone()
        };
        assert_eq!(rows(&stages), [[0, 1], [2, 3]]);
        let replicas = Arrangement {
            fold: Fold::Replica,
            pinned: [Rank(3)].into(),
            ..plain
        };
        assert_eq!(rows(&replicas), [vec![3], vec![0, 2], vec![1]]);
    }
}

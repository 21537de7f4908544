//! The schedules known by name, and what each can take.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::row::Row;
use super::textbook::Textbook;
use super::{
    MAX_ACTIONS, MAX_COUNT, Schedule, ScheduleError, dualpipe_v, gpipe, interleaved_1f1b,
    interleaved_zb, looped_bfs, one_f_one_b, zb_h1, zb_h2, zb_v,
};

/// The schedules known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScheduleKind {
    /// All forwards, then all backwards.
    #[serde(rename = "gpipe")]
    GPipe,
    /// One forward, one backward, after a warm-up.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// 1F1B over several chunks a rank.
    #[serde(rename = "interleaved-1f1b")]
    Interleaved,
    /// GPipe over several chunks a rank.
    #[serde(rename = "looped-bfs")]
    LoopedBfs,
    /// 1F1B with the backward in two.
    #[serde(rename = "zb-h1")]
    ZbH1,
    /// The same with more micro-batches in flight.
    #[serde(rename = "zb-h2")]
    ZbH2,
    /// Interleaved 1F1B with the backward in two.
    #[serde(rename = "interleaved-zb")]
    InterleavedZb,
    /// Zero bubble on two chunks a rank, down and back up.
    #[serde(rename = "zb-v")]
    ZbV,
    /// The same with forwards and backwards that overlap.
    #[serde(rename = "dualpipe-v")]
    DualPipeV,
}

/// Degrees that a schedule is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Pipeline ranks.
    pub(super) p: usize,
    /// Micro-batches.
    pub(super) m: usize,
    /// Chunks of a rank.
    pub(super) v: usize,
}

/// How many stages a rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// One.
    One,
    /// Two, down and back up: stage `s` on rank `s`, then `2p-1-s`.
    Vee,
    /// Any number: stage `s` on rank `s mod p`.
    Loop,
}

impl Chunks {
    /// How many there must be, or usually are.
    pub fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Vee | Self::Loop => 2,
        }
    }

    fn allows(self, chunks: usize) -> bool {
        self == Self::Loop || chunks == self.count()
    }
}

impl fmt::Display for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one chunk",
            Self::Vee => "two chunks",
            Self::Loop => "any number of chunks",
        })
    }
}

impl ScheduleKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::GPipe,
        Self::OneFOneB,
        Self::Interleaved,
        Self::LoopedBfs,
        Self::ZbH1,
        Self::ZbH2,
        Self::InterleavedZb,
        Self::ZbV,
        Self::DualPipeV,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::GPipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::Interleaved => "interleaved-1f1b",
            Self::LoopedBfs => "looped-bfs",
            Self::ZbH1 => "zb-h1",
            Self::ZbH2 => "zb-h2",
            Self::InterleavedZb => "interleaved-zb",
            Self::ZbV => "zb-v",
            Self::DualPipeV => "dualpipe-v",
        }
    }

    /// The name in texts.
    pub fn title(self) -> &'static str {
        match self {
            Self::GPipe => "GPipe",
            Self::OneFOneB => "1F1B",
            Self::Interleaved => "Interleaved 1F1B",
            Self::LoopedBfs => "Looped BFS",
            Self::ZbH1 => "ZB-H1",
            Self::ZbH2 => "ZB-H2",
            Self::InterleavedZb => "Interleaved ZB",
            Self::ZbV => "ZB-V",
            Self::DualPipeV => "DualPipeV",
        }
    }

    /// By its name on the command line.
    pub fn from_name(name: &str) -> Result<Self, ScheduleError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| ScheduleError::Unknown {
            name: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }

    /// 1F1B, interleaved where ranks hold several chunks.
    pub fn one_f_one_b(chunks: usize) -> Self {
        if chunks > 1 {
            Self::Interleaved
        } else {
            Self::OneFOneB
        }
    }

    /// How many stages a rank holds, and where they lie.
    pub fn chunks(self) -> Chunks {
        match self {
            Self::GPipe | Self::OneFOneB | Self::ZbH1 | Self::ZbH2 => Chunks::One,
            Self::Interleaved | Self::LoopedBfs | Self::InterleavedZb => Chunks::Loop,
            Self::ZbV | Self::DualPipeV => Chunks::Vee,
        }
    }

    /// The order of work for `pp` ranks, `micro_batches` and `chunks` a rank.
    pub fn build(
        self,
        pp: usize,
        micro_batches: usize,
        chunks: usize,
    ) -> Result<Schedule, ScheduleError> {
        let cut = self.check(pp, micro_batches, chunks)?;
        let row = match self {
            Self::GPipe => gpipe::row,
            Self::OneFOneB => one_f_one_b::row,
            Self::Interleaved => interleaved_1f1b::row,
            Self::LoopedBfs => looped_bfs::row,
            Self::ZbH1 => zb_h1::row,
            Self::ZbH2 => zb_h2::row,
            Self::InterleavedZb => interleaved_zb::row,
            Self::ZbV => zb_v::row,
            Self::DualPipeV => dualpipe_v::row,
        };
        Schedule::from_rows(
            (0..pp)
                .map(|rank| row(cut, rank))
                .map(Row::into_turns)
                .collect(),
        )
    }

    /// Whether there is such a schedule; what is wrong, and the nearest that there is, if not.
    fn check(self, p: usize, m: usize, v: usize) -> Result<Cut, ScheduleError> {
        for (what, value) in [("pp", p), ("micro-batches", m), ("chunks", v)] {
            if !(1..=MAX_COUNT).contains(&value) {
                return Err(ScheduleError::Count { what, value });
            }
        }
        if !self.chunks().allows(v) {
            return Err(ScheduleError::Chunks {
                name: self.title(),
                chunks: v,
                legal: self.chunks(),
            });
        }
        let stages = p.saturating_mul(v);
        if stages > MAX_COUNT {
            let what = "stages";
            return Err(ScheduleError::Count {
                what,
                value: stages,
            });
        }
        if stages.saturating_mul(m) > MAX_ACTIONS {
            return Err(ScheduleError::TooLarge {
                stages,
                micro_batches: m,
            });
        }
        if let Some(why) = self.refuses(p, m) {
            let takes = |m: &usize| self.refuses(p, *m).is_none();
            let below = (1..m).rev().find(takes);
            let above = (m + 1..=MAX_COUNT).find(takes);
            return Err(ScheduleError::MicroBatches {
                name: self.title(),
                micro_batches: m,
                pp: p,
                why,
                legal: below.into_iter().chain(above).collect(),
            });
        }
        Ok(Cut { p, m, v })
    }

    /// What speaks against so many micro-batches, if anything.
    fn refuses(self, p: usize, m: usize) -> Option<&'static str> {
        match self {
            Self::Interleaved | Self::InterleavedZb => {
                let even = m.is_multiple_of(interleaved_1f1b::rounds(p, m));
                (!even).then_some(
                    "they go round in m / p groups, which must be alike (a multiple of p always is)",
                )
            }
            Self::DualPipeV => (m < 2 * p).then_some("it needs at least two for each rank"),
            Self::GPipe
            | Self::OneFOneB
            | Self::LoopedBfs
            | Self::ZbH1
            | Self::ZbH2
            | Self::ZbV => None,
        }
    }

    /// What the textbook says of it, for even stages.
    pub fn textbook(self, pp: usize, micro_batches: usize, chunks: usize) -> Textbook {
        Textbook {
            kind: self,
            p: pp as u64,
            m: micro_batches as u64,
            v: chunks as u64,
        }
    }
}

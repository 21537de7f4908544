//! What a board comes to: how long it takes, its bubble, its memory, and the chain that makes it so long.

use super::board::{Board, Placed, counted};
use super::level::Measure;

/// The figures of a board, of what is placed so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// From the grid's start to the end of the last pass, in units.
    pub makespan: u32,
    /// The longest time from a rank's own first pass to its own last.
    pub stage_span: u32,
    /// Time in which a rank does nothing until the last pass of all, over all their time.
    pub bubble_of_total: f64,
    /// The same within the longest of the ranks' own times: the zero-bubble paper's.
    pub bubble_stage_span: f64,
    /// The most (micro-batch, chunk) pairs that each rank has in flight, from F's start to the end of its I or B.
    pub peaks: Vec<usize>,
}

impl Figures {
    /// What a level counts, of them.
    pub fn score(&self, measure: Measure) -> u32 {
        match measure {
            Measure::Makespan => self.makespan,
            Measure::StageSpan => self.stage_span,
        }
    }

    /// The share of idle time that goes with it.
    pub fn bubble(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Makespan => self.bubble_of_total,
            Measure::StageSpan => self.bubble_stage_span,
        }
    }
}

impl Board {
    /// Its figures, of what is placed so far.
    pub fn figures(&self) -> Figures {
        let ranks = 0..self.rows().len();
        let makespan = ranks
            .clone()
            .map(|rank| self.free_at(rank))
            .max()
            .unwrap_or(0);
        let works: Vec<u32> = ranks.clone().map(|rank| self.work(rank)).collect();
        let total = f64::from(makespan) * works.len() as f64;
        let busy: u32 = works.iter().sum();
        let spans = ranks
            .clone()
            .map(|rank| (self.span(rank), works[rank]))
            .max();
        let (stage_span, work) = spans.unwrap_or_default();
        Figures {
            makespan,
            stage_span,
            bubble_of_total: share(total - f64::from(busy), total),
            bubble_stage_span: share(f64::from(stage_span - work), f64::from(stage_span)),
            peaks: ranks.map(|rank| self.peak(rank)).collect(),
        }
    }

    /// What the level counts, once everything is placed.
    pub fn score(&self) -> Option<u32> {
        let score = || self.figures().score(self.level().measure);
        self.is_complete().then(score)
    }

    /// One to three, once everything is placed: three for the references' best or better, two for up to a tenth more.
    pub fn stars(&self) -> Option<u8> {
        let score = self.score()?;
        Some(match self.level().par() {
            Some(par) if score <= par => 3,
            Some(par) if score.saturating_mul(10) <= par.saturating_mul(11) => 2,
            Some(_) | None => 1,
        })
    }

    fn work(&self, rank: usize) -> u32 {
        let row = self.rows()[rank].iter();
        row.map(|&placed| self.end(placed) - placed.start).sum()
    }

    fn span(&self, rank: usize) -> u32 {
        let first = self.rows()[rank].first();
        first.map_or(0, |first| self.free_at(rank) - first.start)
    }

    /// What a rank has in flight after all that is on its row: F's whose I or B is not placed.
    pub fn held(&self, rank: usize) -> usize {
        let row = self.rows()[rank].iter();
        row.fold(0, |held, &placed| counted(held, placed))
    }

    fn peak(&self, rank: usize) -> usize {
        let mut held = 0;
        let all = self.rows()[rank].iter().map(|&placed| {
            held = counted(held, placed);
            held
        });
        all.max().unwrap_or(0)
    }

    /// Why a placed pass starts when it does: the pass that ended last of those that it needs and the one before it on its rank.
    pub fn cause(&self, rank: usize, placed: Placed) -> Option<(usize, Placed)> {
        let row = &self.rows()[rank];
        let before = row.iter().rev().find(|other| other.start < placed.start);
        let needs = self.needs(placed.action).into_iter().flatten();
        let holder = |other: Placed| (self.level().holders[other.action.stage as usize], other);
        let all = needs
            .map(holder)
            .chain(before.map(|&before| (rank, before)));
        // Of several, another rank's tells more.
        all.max_by_key(|&(of, other)| (self.end(other), of != rank))
    }

    /// The chain of passes that makes it as long as it is, the first one first.
    pub fn critical_path(&self) -> Vec<(usize, Placed)> {
        let lasts = self.rows().iter().enumerate();
        let lasts = lasts.filter_map(|(rank, row)| row.last().map(|&last| (rank, last)));
        let latest = lasts.min_by_key(|&(rank, last)| (std::cmp::Reverse(self.end(last)), rank));
        let mut path: Vec<(usize, Placed)> = latest.into_iter().collect();
        while let Some((rank, placed)) = path.last().copied() {
            match self.cause(rank, placed) {
                Some(cause) => path.push(cause),
                None => break,
            }
        }
        path.reverse();
        path
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

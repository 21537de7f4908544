//! Writes a story down, step by step; what needs several GPUs is left out where there is one.

use std::ops::Range;

use crate::units::Collective;

use super::matrix::{Matrix, small};
use super::step::{Action, Band, Group, Picture, Share, Sign, Step, Tile, Traffic};

/// Rows of `X`: one a token.
pub(super) const TOKENS: usize = 4;
/// Numbers that a token has between layers.
pub(super) const HIDDEN: usize = 4;
/// Numbers that a token has within a layer.
pub(super) const WIDE: usize = 8;

/// Results that differ by less differ by rounding.
const ROUNDING: f32 = 1e-4;

/// A title, and what is told under it.
pub(super) type Words<'a> = (&'a str, String);

/// Steps in the making.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) tp: usize,
    steps: Vec<Step>,
}

impl Script {
    pub(super) fn new(tp: usize) -> Self {
        Self {
            tp,
            steps: Vec::new(),
        }
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// A GPU's share of `all`.
    pub(super) fn range(&self, gpu: usize, all: usize) -> Range<usize> {
        gpu * all / self.tp..(gpu + 1) * all / self.tp
    }

    /// Each GPU's share of the columns.
    pub(super) fn columns(&self, matrix: &Matrix) -> Vec<Matrix> {
        let columns = matrix.shape().1;
        let piece = |gpu| matrix.of_columns(self.range(gpu, columns));
        (0..self.tp).map(piece).collect()
    }

    /// Each GPU's share of the rows.
    pub(super) fn rows(&self, matrix: &Matrix) -> Vec<Matrix> {
        let rows = matrix.shape().0;
        let piece = |gpu| matrix.of_rows(self.range(gpu, rows));
        (0..self.tp).map(piece).collect()
    }

    /// Something for each GPU.
    pub(super) fn each<T>(&self, of: impl FnMut(usize) -> T) -> Vec<T> {
        (0..self.tp).map(of).collect()
    }

    /// How the columns of a whole matrix are told apart; not, on one GPU.
    pub(super) fn by_columns(&self) -> Share {
        match self.tp {
            1 => Share::Whole,
            gpus => Share::ByColumns(gpus),
        }
    }

    /// The same of its rows.
    pub(super) fn by_rows(&self) -> Share {
        match self.tp {
            1 => Share::Whole,
            gpus => Share::ByRows(gpus),
        }
    }

    /// What a GPU has of a sum: all of it, if it is alone.
    pub(super) fn partial(&self, gpu: usize) -> Share {
        match self.tp {
            1 => Share::Piece(gpu),
            _ => Share::Partial(gpu),
        }
    }

    fn push(&mut self, (title, narration): Words<'_>, picture: Picture) {
        self.steps.push(Step {
            title: title.to_owned(),
            narration,
            picture,
        });
    }

    /// Matrices to look at.
    pub(super) fn still(&mut self, words: Words<'_>, above: Vec<Group>) {
        self.whole(words, Action::Still, above);
    }

    /// Computed as on one GPU.
    pub(super) fn uncut(&mut self, words: Words<'_>, above: Vec<Group>) {
        self.whole(words, Action::Work, above);
    }

    fn whole(&mut self, words: Words<'_>, action: Action, above: Vec<Group>) {
        let picture = Picture {
            action,
            above,
            gpus: Vec::new(),
            band: None,
        };
        self.push(words, picture);
    }

    /// Whole matrices, and what each GPU gets of each of them, in the same order.
    pub(super) fn hand_out(
        &mut self,
        words: Words<'_>,
        wholes: Vec<Tile>,
        pieces: impl Fn(usize) -> Vec<Tile>,
    ) {
        if self.tp == 1 {
            return;
        }
        let picture = Picture {
            action: Action::HandOut,
            above: vec![Group::tiles(wholes)],
            gpus: self.each(|gpu| vec![Group::tiles(pieces(gpu))]),
            band: None,
        };
        self.push(words, picture);
    }

    /// Each GPU by itself.
    pub(super) fn work(&mut self, words: Words<'_>, groups: impl Fn(usize) -> Vec<Group>) {
        let gpus = self.each(groups);
        let alone = alone(&gpus).filter(|_| self.tp == 1);
        let words = alone
            .as_ref()
            .map_or(words, |(title, narration)| (title, narration.clone()));
        let picture = Picture {
            action: Action::Work,
            above: Vec::new(),
            gpus,
            band: None,
        };
        self.push(words, picture);
    }

    /// `times` all-reduces of the GPUs' tiles.
    pub(super) fn all_reduce(
        &mut self,
        words: Words<'_>,
        (parts, result): (&[Tile], Tile),
        (sign, times): (Sign, u64),
    ) {
        let traffic = Traffic {
            collective: Collective::AllReduce,
            operation: if sign == Sign::Max { "max" } else { "sum" },
            times,
            numbers: result.matrix.len() as u64 / times.max(1),
            gpus: self.tp,
        };
        let group = Group::join(parts.to_vec(), sign, result);
        self.collect(words, parts, Band { traffic, group });
    }

    /// The GPUs' tiles put side by side.
    pub(super) fn all_gather(&mut self, words: Words<'_>, parts: &[Tile], result: Tile) {
        let traffic = Traffic {
            collective: Collective::AllGather,
            operation: "",
            times: 1,
            numbers: result.matrix.len() as u64,
            gpus: self.tp,
        };
        let group = Group::tiles(vec![result]);
        self.collect(words, parts, Band { traffic, group });
    }

    fn collect(&mut self, words: Words<'_>, parts: &[Tile], band: Band) {
        if self.tp == 1 {
            return;
        }
        let own = |gpu: usize| vec![Group::tiles(parts.get(gpu).cloned().into_iter().collect())];
        let picture = Picture {
            action: Action::Collect,
            above: Vec::new(),
            gpus: self.each(own),
            band: Some(band),
        };
        self.push(words, picture);
    }

    /// What was put together beside what was computed uncut, and how far they differ.
    pub(super) fn compare(&mut self, more: &str, pairs: &[(&str, Share, Matrix, Matrix)]) {
        let differences = pairs
            .iter()
            .map(|(_, _, ours, uncut)| ours.difference(uncut));
        let largest = differences.fold(0.0, f32::max);
        let verdict = if largest == 0.0 {
            "Every number is the same".to_owned()
        } else {
            format!(
                "The largest difference is {}: float32 rounds a sum a little differently in another order",
                small(largest)
            )
        };
        let names: Vec<&str> = pairs.iter().map(|(name, ..)| *name).collect();
        let from = match self.tp {
            1 => "from one GPU".to_owned(),
            gpus => format!("put together from {gpus} GPUs"),
        };
        let narration = format!(
            "{} {from}, and computed uncut. {verdict}.{more}",
            names.join(", ")
        );
        let together = if self.tp == 1 { "here" } else { "together" };
        let above = pairs.iter().map(|(name, share, ours, uncut)| {
            Group::pair(
                Tile::new(&format!("{name} {together}"), *share, ours),
                Tile::whole(&format!("{name} uncut"), uncut),
            )
        });
        let title = if largest < ROUNDING {
            "The same result"
        } else {
            "Not the same result"
        };
        self.still((title, narration), above.collect());
    }
}

/// What is told where there is but one GPU.
fn alone(gpus: &[Vec<Group>]) -> Option<(String, String)> {
    let groups = gpus.first()?.iter();
    let results = groups.filter_map(|group| group.tiles.get(group.result()?));
    let names: Vec<&str> = results.map(|tile| tile.name.as_str()).collect();
    let narration = "The one GPU holds all it needs: what it computes is whole, and nothing is sent. \
                     Choose 2 or 4 GPUs to see it cut.";
    Some((
        format!("{} on GPU 0", names.join(", ")),
        narration.to_owned(),
    ))
}

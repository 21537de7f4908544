//! Who is where: rank and coordinates, process groups, stages and the layers they hold. Pure arithmetic.
//!
//! Ranks count as Megatron-LM's do by default: tensor fastest, then data, then pipeline
//! (`rank = tp + TP * dp + TP * DP * pp`).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::units::Rank;

pub use crate::units::Axis;

/// The largest number of ranks a mesh may have.
pub const MAX_RANKS: usize = 1 << 20;

/// The three degrees of parallelism, each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mesh {
    dp: usize,
    tp: usize,
    pp: usize,
}

/// A rank's place along each axis, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Coord {
    /// Data-parallel replica.
    pub dp: usize,
    /// Tensor-parallel slice.
    pub tp: usize,
    /// Pipeline position.
    pub pp: usize,
}

/// A degree that is not a degree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// A degree of zero.
    #[error("{0} is 0, but every degree counts GPUs and is at least 1; use 1 to leave {0} out")]
    Zero(&'static str),
    /// More ranks than anyone has.
    #[error("dp x tp x pp is over {MAX_RANKS} GPUs; lower one of them")]
    TooMany,
}

impl Mesh {
    /// A mesh of `dp` x `tp` x `pp` ranks.
    pub fn new(dp: usize, tp: usize, pp: usize) -> Result<Self, MeshError> {
        for (name, degree) in [("dp", dp), ("tp", tp), ("pp", pp)] {
            if degree == 0 {
                return Err(MeshError::Zero(name));
            }
        }
        dp.checked_mul(tp)
            .and_then(|n| n.checked_mul(pp))
            .filter(|&n| n <= MAX_RANKS)
            .ok_or(MeshError::TooMany)?;
        Ok(Self { dp, tp, pp })
    }

    /// Data-parallel degree.
    pub fn dp(&self) -> usize {
        self.dp
    }

    /// Tensor-parallel degree.
    pub fn tp(&self) -> usize {
        self.tp
    }

    /// Pipeline-parallel degree.
    pub fn pp(&self) -> usize {
        self.pp
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.dp * self.tp * self.pp
    }

    /// The rank at a place.
    pub fn rank(&self, at: Coord) -> Rank {
        Rank((at.tp + self.tp * (at.dp + self.dp * at.pp)) as u32)
    }

    /// The place of a rank.
    pub fn coord(&self, rank: Rank) -> Coord {
        let rank = rank.index();
        Coord {
            tp: rank % self.tp,
            dp: rank / self.tp % self.dp,
            pp: rank / (self.tp * self.dp),
        }
    }

    /// All ranks' places, rank 0 first.
    pub fn coords(&self) -> impl Iterator<Item = Coord> + '_ {
        (0..self.ranks()).map(|rank| self.coord(Rank(rank as u32)))
    }

    /// The members of the group along `axis` that the rank at `at` belongs to, ascending.
    ///
    /// The embedding group of a middle stage has that rank alone.
    pub fn group(&self, axis: Axis, at: Coord) -> Vec<Rank> {
        match axis {
            Axis::Dp => (0..self.dp)
                .map(|dp| self.rank(Coord { dp, ..at }))
                .collect(),
            Axis::Tp => (0..self.tp)
                .map(|tp| self.rank(Coord { tp, ..at }))
                .collect(),
            Axis::Pp => (0..self.pp)
                .map(|pp| self.rank(Coord { pp, ..at }))
                .collect(),
            Axis::Model => (0..self.pp)
                .flat_map(|pp| (0..self.tp).map(move |tp| Coord { tp, pp, ..at }))
                .map(|at| self.rank(at))
                .collect(),
            Axis::World => (0..self.ranks() as u32).map(Rank).collect(),
            Axis::Embedding => {
                let last = self.pp - 1;
                if at.pp == 0 || at.pp == last {
                    let mut ends = vec![self.rank(Coord { pp: 0, ..at })];
                    if last > 0 {
                        ends.push(self.rank(Coord { pp: last, ..at }));
                    }
                    ends
                } else {
                    vec![self.rank(at)]
                }
            }
        }
    }

    /// Every group along `axis`, by its first member.
    pub fn groups(&self, axis: Axis) -> Vec<Vec<Rank>> {
        self.coords()
            .map(|at| (self.rank(at), self.group(axis, at)))
            .filter(|(rank, group)| group.first() == Some(rank))
            .map(|(_, group)| group)
            .collect()
    }
}

/// Ranks that do the same at the same time, each told by one of them: cost then grows with what differs, not
/// with the number of GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// All ranks.
    pub mesh: Mesh,
    /// Data-parallel replicas that differ.
    dp: Vec<Share>,
    /// Tensor-parallel slices that differ.
    tp: Vec<Share>,
}

/// One of several that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    /// Which.
    index: usize,
    /// How many there are.
    count: usize,
}

impl Fold {
    /// Every rank for itself.
    pub fn none(mesh: Mesh) -> Self {
        let each = |degree| (0..degree).map(|index| Share { index, count: 1 }).collect();
        Self {
            dp: each(mesh.dp),
            tp: each(mesh.tp),
            mesh,
        }
    }

    /// One slice for all, if nodes of so many GPUs hold whole tensor-parallel groups; and one replica for all
    /// that lie alike on nodes. Ranks `apart` have a slice and a replica of their own.
    pub fn around(mesh: Mesh, gpus_per_node: usize, apart: &[Rank]) -> Option<Self> {
        let fits = |n: usize| n.is_multiple_of(gpus_per_node) || gpus_per_node.is_multiple_of(n);
        if !fits(mesh.tp) {
            return None;
        }
        let apart: Vec<Coord> = apart.iter().map(|&rank| mesh.coord(rank)).collect();
        let mut dp: Vec<(usize, Share)> = Vec::new();
        for index in 0..mesh.dp {
            if apart.iter().any(|at| at.dp == index) {
                dp.push((usize::MAX, Share { index, count: 1 }));
                continue;
            }
            // Where stages are whole nodes apart, all replicas cross from one to the next alike.
            let place = if fits(mesh.tp * mesh.dp) {
                0
            } else {
                mesh.tp * index % gpus_per_node
            };
            match dp.iter_mut().find(|(known, _)| *known == place) {
                Some((_, share)) => share.count += 1,
                None => dp.push((place, Share { index, count: 1 })),
            }
        }
        let mut tp: Vec<Share> = Vec::new();
        let mut others: Option<Share> = None;
        for index in 0..mesh.tp {
            if apart.iter().any(|at| at.tp == index) {
                tp.push(Share { index, count: 1 });
            } else {
                others.get_or_insert(Share { index, count: 0 }).count += 1;
            }
        }
        tp.extend(others);
        let mut dp: Vec<Share> = dp.into_iter().map(|(_, share)| share).collect();
        dp.sort_unstable_by_key(|share| share.index);
        tp.sort_unstable_by_key(|share| share.index);
        Some(Self { mesh, dp, tp })
    }

    /// The same with no rank apart.
    pub fn whole(mesh: Mesh, gpus_per_node: usize) -> Option<Self> {
        Self::around(mesh, gpus_per_node, &[])
    }

    /// The ranks that stand for all.
    pub fn cells(&self) -> Mesh {
        Mesh {
            dp: self.dp.len(),
            tp: self.tp.len(),
            pp: self.mesh.pp,
        }
    }

    /// Where one that stands for others is among all.
    pub fn coord(&self, cell: Coord) -> Coord {
        Coord {
            dp: self.dp[cell.dp].index,
            tp: self.tp[cell.tp].index,
            pp: cell.pp,
        }
    }

    /// For how many it stands along an axis that is data- or tensor-parallel.
    pub fn count(&self, axis: Axis, cell: Coord) -> usize {
        match axis {
            Axis::Dp => self.dp[cell.dp].count,
            Axis::Tp => self.tp[cell.tp].count,
            Axis::Pp | Axis::Model | Axis::Embedding | Axis::World => 1,
        }
    }

    /// For how many ranks it stands.
    pub fn ranks(&self, cell: Coord) -> usize {
        self.count(Axis::Dp, cell) * self.count(Axis::Tp, cell)
    }

    /// For how many groups along `axis` the one of `cell` stands.
    pub fn groups(&self, axis: Axis, cell: Coord) -> usize {
        let (dp, tp) = (self.count(Axis::Dp, cell), self.count(Axis::Tp, cell));
        match axis {
            Axis::Dp => tp,
            Axis::Tp | Axis::Model => dp,
            Axis::Pp | Axis::Embedding => dp * tp,
            Axis::World => 1,
        }
    }
}

/// How stages lie on pipeline ranks when each rank holds several (chunks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// Stage `s` on rank `s mod p`.
    Loop,
    /// Down and back up: stage `s` on rank `s`, then `2p-1-s`.
    Vee,
}

impl Placement {
    /// The pipeline rank that holds `stage`, of `pp`.
    pub fn holder(self, stage: usize, pp: usize) -> usize {
        match self {
            Self::Loop => stage % pp,
            Self::Vee => {
                let at = stage % (2 * pp);
                if at < pp { at } else { 2 * pp - 1 - at }
            }
        }
    }
}

/// Splits `layers` over `stages` in order; none is ever lost, and a stage may hold none.
///
/// The remainder goes to the earliest stages. If `layers = k * stages - 2` (and there are at least four
/// stages, so that the middle is not a single stage), first and last hold one fewer, as they also hold
/// the embedding and the head (Llama 3; the zero-bubble paper).
pub fn split_layers(layers: usize, stages: usize) -> Vec<Range<usize>> {
    let lean_ends = stages >= 4 && (layers + 2).is_multiple_of(stages);
    let mut start = 0;
    (0..stages)
        .map(|stage| {
            let count = if lean_ends {
                let full = (layers + 2) / stages;
                full - usize::from(stage == 0 || stage + 1 == stages)
            } else {
                layers / stages + usize::from(stage < layers % stages)
            };
            start += count;
            start - count..start
        })
        .collect()
}

/// Layers on stages as `counts` says, in order.
pub fn layers_as(counts: &[usize]) -> Vec<Range<usize>> {
    let ends = counts.iter().scan(0_usize, |end, count| {
        *end = end.saturating_add(*count);
        Some(*end)
    });
    ends.zip(counts)
        .map(|(end, count)| end.saturating_sub(*count)..end)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(groups: &[Vec<Rank>]) -> Vec<Vec<u32>> {
        groups
            .iter()
            .map(|g| g.iter().map(|r| r.0).collect())
            .collect()
    }

    #[test]
    fn groups_of_two_by_two_by_two_are_megatrons() {
        let mesh = Mesh::new(2, 2, 2).unwrap();
        assert_eq!(
            ids(&mesh.groups(Axis::Tp)),
            [[0, 1], [2, 3], [4, 5], [6, 7]]
        );
        assert_eq!(
            ids(&mesh.groups(Axis::Dp)),
            [[0, 2], [1, 3], [4, 6], [5, 7]]
        );
        assert_eq!(
            ids(&mesh.groups(Axis::Pp)),
            [[0, 4], [1, 5], [2, 6], [3, 7]]
        );
        assert_eq!(ids(&mesh.groups(Axis::Model)), [[0, 1, 4, 5], [2, 3, 6, 7]]);
    }

    #[test]
    fn layers_split_as_in_the_field() {
        let counts = |layers, stages| -> Vec<usize> {
            split_layers(layers, stages)
                .iter()
                .map(ExactSizeIterator::len)
                .collect()
        };
        assert_eq!(counts(30, 4), [7, 8, 8, 7]);
        assert_eq!(counts(29, 4), [8, 7, 7, 7]);
        assert_eq!(counts(10, 3), [4, 3, 3]);
        assert_eq!(counts(5, 2), [3, 2]);
        assert_eq!(counts(2, 4), [0, 1, 1, 0]);
        assert_eq!(counts(1, 3), [1, 0, 0]);
    }

    #[test]
    fn a_degree_of_zero_is_refused() {
        assert_eq!(Mesh::new(1, 0, 1), Err(MeshError::Zero("tp")));
        assert_eq!(Mesh::new(usize::MAX, 2, 1), Err(MeshError::TooMany));
    }

    proptest! {
        #[test]
        fn coordinates_and_ranks_are_inverse(dp in 1usize..9, tp in 1usize..9, pp in 1usize..9) {
            let mesh = Mesh::new(dp, tp, pp).unwrap();
            for (index, at) in mesh.coords().enumerate() {
                prop_assert_eq!(mesh.rank(at).index(), index);
            }
            for axis in [Axis::Dp, Axis::Tp, Axis::Pp, Axis::Model] {
                let members: usize = mesh.groups(axis).iter().map(Vec::len).sum();
                prop_assert_eq!(members, mesh.ranks());
            }
        }

        #[test]
        fn no_layer_is_lost(layers in 0usize..200, stages in 1usize..40) {
            let split = split_layers(layers, stages);
            prop_assert_eq!(split.len(), stages);
            let flat: Vec<usize> = split.into_iter().flatten().collect();
            prop_assert_eq!(flat, (0..layers).collect::<Vec<_>>());
        }
    }
}

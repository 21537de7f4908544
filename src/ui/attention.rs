//! What is pointed at, and what is lit for it: the same GPUs and micro-batches in every panel.

use std::collections::BTreeSet;

use crate::mesh::{Axis, Coord, Mesh};
use crate::scene::{Hit, Lit};
use crate::trace::{Area, Link, Trace};
use crate::units::Rank;

/// What is pointed at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attention {
    /// A GPU under the pointer in a panel.
    pub(super) pointed: Option<Rank>,
    /// A GPU chosen by key or click.
    pub(super) chosen: Option<Rank>,
    /// A span that was clicked.
    pub(super) selected: Option<Hit>,
    /// The span under the pointer.
    pub(super) hovered: Option<Hit>,
    /// A part of the timeline that was dragged over.
    pub(super) area: Option<Area>,
    /// The chain of operations that is lit, the latest first.
    pub(super) path: Vec<Link>,
}

/// The axes whose groups are lit, innermost first.
pub(super) const AXES: [Axis; 3] = [Axis::Tp, Axis::Dp, Axis::Pp];

/// A GPU and the members of its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// The GPU.
    pub(super) rank: Rank,
    /// Its place.
    pub(super) at: Coord,
    /// For each of [`AXES`], the members, itself among them.
    pub(super) members: [Vec<Rank>; 3],
}

impl Groups {
    /// The groups of `rank`, if the mesh has it.
    pub(super) fn of(mesh: &Mesh, rank: Rank) -> Option<Self> {
        (rank.index() < mesh.ranks()).then(|| {
            let at = mesh.coord(rank);
            Self {
                rank,
                at,
                members: AXES.map(|axis| mesh.group(axis, at)),
            }
        })
    }

    /// The first axis along which `other` is in a group with the GPU.
    pub(super) fn axis_of(&self, other: Rank) -> Option<Axis> {
        let shared = AXES.iter().zip(&self.members);
        let of_others = |(axis, members): (&Axis, &Vec<Rank>)| {
            (other != self.rank && members.contains(&other)).then_some(*axis)
        };
        shared.into_iter().find_map(of_others)
    }
}

impl Attention {
    /// The GPU whose groups are to be seen.
    pub(super) fn gpu(&self) -> Option<Rank> {
        self.pointed.or(self.chosen)
    }

    /// The micro-batch that is lit.
    pub(super) fn micro_batch(&self, trace: &Trace) -> Option<u32> {
        let label = trace.labels.get(self.selected?.span.label.0 as usize)?;
        label.micro_batch
    }

    /// What the timeline lights.
    pub(super) fn lit(&self, mesh: Option<&Mesh>, trace: &Trace) -> Lit {
        let groups = mesh
            .zip(self.gpu())
            .and_then(|(mesh, rank)| Groups::of(mesh, rank));
        let ranks: BTreeSet<Rank> = groups
            .map(|groups| groups.members.into_iter().flatten().collect())
            .unwrap_or_default();
        Lit {
            ranks,
            micro_batches: self.micro_batch(trace).into_iter().collect(),
        }
    }

    /// Whether a span or an area is selected.
    pub(super) fn selects(&self) -> bool {
        self.selected.is_some() || self.area.is_some()
    }

    /// Forgets what was chosen; whether there was anything.
    pub(super) fn clear(&mut self) -> bool {
        let had = self.chosen.is_some() || self.selects() || !self.path.is_empty();
        self.chosen = None;
        self.selected = None;
        self.area = None;
        self.path.clear();
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_lights_its_groups_and_no_other() {
        let mesh = Mesh::new(2, 2, 2).unwrap();
        let attention = Attention {
            pointed: Some(Rank(0)),
            ..Attention::default()
        };
        let lit = attention.lit(Some(&mesh), &Trace::default());
        let ranks: Vec<u32> = lit.ranks.iter().map(|rank| rank.0).collect();
        assert_eq!(ranks, [0, 1, 2, 4]);
        let groups = Groups::of(&mesh, Rank(0)).unwrap();
        assert_eq!(groups.axis_of(Rank(1)), Some(Axis::Tp));
        assert_eq!(groups.axis_of(Rank(7)), None);
        assert_eq!(Groups::of(&mesh, Rank(8)), None);
    }
}

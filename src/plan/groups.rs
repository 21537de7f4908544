//! Who talks to whom while a plan is lowered: process groups, the nodes that they lie on, and what talking
//! asks of the links.

use super::lower::{Load, Lowering};
use super::{Group, TaskId};
use crate::hardware::Task;
use crate::mesh::{Axis, Coord};
use crate::units::{Bytes, Collective, Rank};

impl Lowering<'_> {
    /// The group along `axis` of the rank at `at`; its members are listed once for all of them.
    pub(super) fn group_of(&mut self, axis: Axis, at: Coord) -> u32 {
        let mesh = self.program.mesh;
        let first = match axis {
            Axis::Dp => Coord { dp: 0, ..at },
            Axis::Tp => Coord { tp: 0, ..at },
            Axis::Pp => Coord { pp: 0, ..at },
            Axis::Model => Coord { tp: 0, pp: 0, ..at },
            Axis::World => Coord {
                dp: 0,
                tp: 0,
                pp: 0,
            },
            Axis::Embedding => at,
        };
        self.group(axis, mesh.rank(first), || mesh.group(axis, at))
    }

    /// The group along `axis` whose first member is `first`.
    pub(super) fn group(
        &mut self,
        axis: Axis,
        first: Rank,
        members: impl FnOnce() -> Vec<Rank>,
    ) -> u32 {
        if let Some(&known) = self.groups.get(&(axis, first)) {
            return known;
        }
        let ranks = members();
        let id = self.program.groups.len() as u32;
        let (size, per_node) = self.size(axis, &ranks);
        self.per_node.push(per_node);
        self.program.groups.push(Group { axis, ranks, size });
        self.groups.insert((axis, first), id);
        id
    }

    /// The node of one of all ranks.
    fn node(&self, rank: Rank) -> usize {
        match self.job.load {
            Load::Model(load) => rank.index() / load.gpus_per_node.max(1),
            Load::Passes => 0,
        }
    }

    /// How many ranks the group along `axis` with these cells really has, and how many of them are in the
    /// first one's node.
    fn size(&self, axis: Axis, cells: &[Rank]) -> (usize, usize) {
        let mesh = self.program.fold.mesh;
        let first = self.program.real(cells[0]);
        let members = match axis {
            Axis::Embedding => cells.iter().map(|&cell| self.program.real(cell)).collect(),
            // Too many to be listed, and one after the other.
            Axis::World => {
                let per_node = match self.job.load {
                    Load::Model(load) => load.gpus_per_node,
                    Load::Passes => mesh.ranks(),
                };
                return (mesh.ranks(), per_node.min(mesh.ranks()));
            }
            Axis::Dp | Axis::Tp | Axis::Pp | Axis::Model => mesh.group(axis, mesh.coord(first)),
        };
        let together = |rank: &&Rank| self.node(**rank) == self.node(first);
        (members.len(), members.iter().filter(together).count())
    }

    pub(super) fn collective_task(&mut self, kind: Collective, group: u32, bytes: Bytes) -> TaskId {
        let group = group as usize;
        let task = Task::Collective {
            kind,
            bytes,
            ranks: self.program.groups[group].size,
            per_node: self.per_node[group],
        };
        self.program.task(task)
    }

    /// Whether what one rank sends to another goes from node to node.
    pub(super) fn leaves_node(&self, from: Rank, to: Rank) -> bool {
        self.node(self.program.real(from)) != self.node(self.program.real(to))
    }

    pub(super) fn send_task(&mut self, leaves_node: bool) -> TaskId {
        let task = match self.job.load {
            Load::Model(load) => load.send(self.job.mesh.tp(), leaves_node),
            Load::Passes => Task::Send {
                bytes: Bytes::ZERO,
                leaves_node,
                alike: 1,
            },
        };
        self.program.task(task)
    }
}

//! A schedule, a mesh and a model's shape, lowered to what each rank does, and checked.
//!
//! A [`Program`] is what ranks say they will do: operations on streams, in issue order, with waits. A
//! [`Plan`] is a program that has been checked: every send has its receive, every collective all its
//! members in the same order, and nothing waits in a circle. Only a plan can be run, and a plan cannot
//! hang. No I/O and no clock here.

mod check;
mod groups;
mod layout;
mod lower;
mod shard;
mod stage;
mod sync;

pub use check::PlanError;
pub use layout::{Layout, LayoutError, check_layers};
pub use lower::{Job, Load, ModelLoad, lower};
pub(crate) use sync::Whole;

use crate::hardware::Task;
use crate::mesh::{Axis, Fold, Mesh};
use crate::shape::{Bucket, Methods, Reduce, Segment, StageShape};
use crate::trace::{FixedMemory, Label, LabelId, Stream};
use crate::units::{Collective, Pass, Rank};

/// An index into [`Program::ops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

impl OpId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An index into [`Program::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(pub u32);

/// What a collective is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Something of a micro-batch, over the tensor-parallel ranks.
    Tensor(Reduce),
    /// A bucket of a stage's gradients, over the data-parallel ranks.
    Gradients(Bucket),
    /// The tied embedding's gradient, over first and last stage.
    TiedEmbedding,
    /// The squares of the gradients' norms, over a replica.
    Norm,
    /// With sequence parallelism: the norms' gradients, over the tensor-parallel ranks.
    SequenceNorms,
    /// With `ZeRO`: a stage's weights, over the data-parallel ranks.
    Weights(u32),
    /// With `ZeRO` 3: a bucket's weights, over the data-parallel ranks, for a pass.
    Gathered(Bucket),
}

/// What identifies a message between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// `Forward`: an activation; `InputGrad`: a gradient.
    pub pass: Pass,
    /// The stage that it is for.
    pub stage: u32,
    /// Of which micro-batch.
    pub micro_batch: u32,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A segment of a pass; `None` where no model is consulted and the pass is one operation.
    Compute {
        /// Which piece.
        segment: Option<Segment>,
        /// Where in its pass, or passes if it is an overlapped pair.
        place: Place,
    },
    /// The optimizer's step.
    Optimizer,
    /// Sends what the pass before it on this rank made.
    Send {
        /// To whom.
        to: Rank,
        /// As what.
        tag: Tag,
    },
    /// The arrival of what another rank sent: an event that occupies no stream.
    Receive {
        /// From whom.
        from: Rank,
        /// As what.
        tag: Tag,
    },
    /// This rank's part in a collective.
    Collective {
        /// Which.
        kind: Collective,
        /// Of which group, as an index into [`Program::groups`].
        group: u32,
        /// Of what.
        what: Reduction,
        /// Elements of the whole: what each rank contributes to a sum, or has after a gathering.
        elements: u64,
    },
}

/// Where a computation stands in its pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which pass; of an overlapped pair, the forward.
    pub pass: Pass,
    /// Whether it begins the pass.
    pub first: bool,
    /// Whether it ends it.
    pub last: bool,
    /// What the whole pass is called.
    pub label: LabelId,
}

/// An operation of one rank.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What it does.
    pub what: What,
    /// On which stream it is issued; a receive is an event and occupies none.
    pub stream: Stream,
    /// What it costs.
    pub task: TaskId,
    /// What it is called.
    pub label: LabelId,
    /// Of which micro-batch, where it has one.
    pub micro_batch: u32,
    /// On which stage, where it has one.
    pub stage: u32,
    /// Its waits, in [`Program::waits`].
    waits: (u32, u32),
    /// Bytes of activations taken at its start (if positive) or given back at its end.
    pub memory: i64,
}

/// A process group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Along which axis.
    pub axis: Axis,
    /// Its members, ascending.
    pub ranks: Vec<Rank>,
    /// How many ranks they stand for.
    pub size: usize,
}

/// What ranks say they will do; not yet checked.
#[derive(Clone, Debug)]
pub struct Program {
    /// Who is where.
    pub mesh: Mesh,
    /// For whom each stands.
    pub fold: Fold,
    /// The stages.
    pub stages: Vec<StageShape>,
    /// The pipeline rank that holds each stage.
    pub holders: Vec<usize>,
    /// Process groups.
    pub groups: Vec<Group>,
    /// What there is to be priced.
    pub tasks: Vec<Task>,
    /// How memory and communication are saved.
    pub methods: Methods,
    /// What operations are called.
    pub labels: Vec<Label>,
    /// Operations, rank by rank.
    ops: Vec<Op>,
    /// Where each rank's operations start; one more than ranks.
    starts: Vec<u32>,
    /// Waits of all operations.
    waits: Vec<OpId>,
    /// Memory that stays, of each rank.
    pub memory: Vec<FixedMemory>,
    /// Most (micro-batch, chunk) pairs in flight, of each rank.
    pub peak_in_flight: Vec<u32>,
}

impl Program {
    /// A program without operations.
    pub fn new(mesh: Mesh) -> Self {
        Self {
            mesh,
            fold: Fold::none(mesh),
            stages: Vec::new(),
            holders: Vec::new(),
            groups: Vec::new(),
            tasks: Vec::new(),
            methods: Methods::default(),
            labels: Vec::new(),
            ops: Vec::new(),
            starts: vec![0],
            waits: Vec::new(),
            memory: vec![FixedMemory::default(); mesh.ranks()],
            peak_in_flight: vec![0; mesh.ranks()],
        }
    }

    /// Issues an operation on the rank being written; waits are on earlier operations of the same rank.
    pub fn issue(&mut self, op: NewOp, waits: &[OpId]) -> OpId {
        let start = self.waits.len() as u32;
        self.waits.extend_from_slice(waits);
        let id = OpId(self.ops.len() as u32);
        self.ops.push(Op {
            what: op.what,
            stream: op.stream,
            task: op.task,
            label: op.label,
            micro_batch: op.micro_batch,
            stage: op.stage,
            waits: (start, self.waits.len() as u32),
            memory: op.memory,
        });
        id
    }

    /// Ends the rank being written; the next operation is the next rank's.
    pub fn end_rank(&mut self) {
        self.starts.push(self.ops.len() as u32);
    }

    /// A task's id.
    pub fn task(&mut self, task: Task) -> TaskId {
        let recent = self.tasks.iter().rposition(|known| *known == task);
        TaskId(recent.unwrap_or_else(|| {
            self.tasks.push(task);
            self.tasks.len() - 1
        }) as u32)
    }

    /// A label's id.
    pub fn label(&mut self, label: Label) -> LabelId {
        self.labels.push(label);
        LabelId(self.labels.len() as u32 - 1)
    }

    /// All operations.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// One of them.
    pub fn op(&self, id: OpId) -> &Op {
        &self.ops[id.index()]
    }

    /// What an operation waits for besides the one before it on its stream.
    pub fn waits(&self, op: &Op) -> &[OpId] {
        &self.waits[op.waits.0 as usize..op.waits.1 as usize]
    }

    /// The operations of a rank, in issue order.
    pub fn ops_of(&self, rank: Rank) -> impl DoubleEndedIterator<Item = OpId> + use<> {
        (self.starts[rank.index()]..self.starts[rank.index() + 1]).map(OpId)
    }

    /// Whose each operation is, as indices of ranks.
    pub fn owners(&self) -> Vec<u32> {
        let mut owners = vec![0; self.ops.len()];
        for rank in 0..self.mesh.ranks() as u32 {
            for id in self.ops_of(Rank(rank)) {
                owners[id.index()] = rank;
            }
        }
        owners
    }

    /// Which of all ranks one of this program's is.
    pub fn real(&self, cell: Rank) -> Rank {
        self.fold.mesh.rank(self.fold.coord(self.mesh.coord(cell)))
    }

    /// Whose operation it is.
    pub fn rank_of(&self, id: OpId) -> Rank {
        Rank(self.starts.partition_point(|&start| start <= id.0) as u32 - 1)
    }
}

/// An operation to be issued.
#[derive(Clone, Copy, Debug)]
pub struct NewOp {
    /// What it does.
    pub what: What,
    /// On which stream.
    pub stream: Stream,
    /// What it costs.
    pub task: TaskId,
    /// What it is called.
    pub label: LabelId,
    /// Of which micro-batch.
    pub micro_batch: u32,
    /// On which stage.
    pub stage: u32,
    /// Bytes of activations taken (positive) or given back.
    pub memory: i64,
}

/// A step of execution: one operation, or a collective with all its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// An operation of one rank.
    Op(OpId),
    /// All members of a collective, in the order of the group.
    Collective(&'a [OpId]),
}

/// A program that has been checked and cannot hang.
#[derive(Clone, Debug)]
pub struct Plan {
    program: Program,
    /// The send of each receive and the receive of each send; of others, themselves.
    partners: Vec<OpId>,
    /// The first member of the collective that each operation is in; of others, themselves.
    heads: Vec<OpId>,
    /// Operations in an order in which each comes after all that it waits for; members together.
    order: Vec<OpId>,
    /// The nodes of `order`: how many operations each is.
    sizes: Vec<u32>,
}

impl Plan {
    /// What was checked.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// All steps, each after everything that it waits for.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let mut at = 0;
        self.sizes.iter().map(move |&size| {
            let members = &self.order[at..at + size as usize];
            at += size as usize;
            if size == 1
                && self.heads[members[0].index()] == members[0]
                && !self.is_collective(members[0])
            {
                Node::Op(members[0])
            } else {
                Node::Collective(members)
            }
        })
    }

    fn is_collective(&self, id: OpId) -> bool {
        matches!(self.program.op(id).what, What::Collective { .. })
    }

    /// The send of a receive, or the receive of a send.
    pub fn partner(&self, id: OpId) -> OpId {
        self.partners[id.index()]
    }

    /// The first member of the collective that an operation is in; of others, itself.
    pub fn head(&self, id: OpId) -> OpId {
        self.heads[id.index()]
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests;

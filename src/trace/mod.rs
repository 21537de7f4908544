//! What happened when: lanes of spans, memory counters, arrows. The same type whichever engine, or file,
//! it comes from.
//!
//! A trace holds one training step, from its own time zero. Within a lane, spans are in order of their
//! start. The [`Stream::Compute`] lane of a rank tiles the step: what is not computing is a gap, and says
//! whether it is transfer, waiting or idleness.

mod area;
mod arrivals;
mod chain;
mod figures;
mod group;
pub mod import;
mod lane;
mod links;

pub use area::{Area, AreaFigures, Operations};
pub use arrivals::Arrivals;
pub use chain::{Link, by_pass, chain_behind, critical_path};
pub use figures::{Bubbles, TimeSplit};
pub use group::Groups;
pub use lane::{Lane, LaneId, Phase, Span, Stream};
pub use links::{Counter, Sent, counters, sent};

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Collective, Nanos, Pass, Rank};

/// An index into [`Trace::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelId(pub u32);

/// What kind of operation a label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A whole pass of a micro-batch through a stage.
    Pass,
    /// A piece of a pass.
    Segment,
    /// The optimizer's step.
    Optimizer,
    /// An all-reduce.
    AllReduce,
    /// A reduce-scatter.
    ReduceScatter,
    /// An all-gather.
    AllGather,
    /// A send to another rank.
    Send,
    /// Another collective, of other programs.
    Collective,
    /// A kernel of a GPU, of other programs.
    Kernel,
    /// A copy to, from or on a GPU.
    Copy,
    /// Nothing more to do in this step.
    End,
    /// Anything else, from files of others.
    Other,
}

impl From<Collective> for Kind {
    fn from(collective: Collective) -> Self {
        match collective {
            Collective::AllReduce => Self::AllReduce,
            Collective::ReduceScatter => Self::ReduceScatter,
            Collective::AllGather => Self::AllGather,
        }
    }
}

/// What a span is of; spans that are alike share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Label {
    /// What kind of operation.
    pub kind: Kind,
    /// Its name, such as `attention`, `all-reduce gradients`.
    pub name: Cow<'static, str>,
    /// The pass it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// Micro-batch, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<u32>,
    /// Stage, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Layer, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// The process group's axis: `dp`, `tp`, `pp`, `model`, `embedding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'static, str>>,
    /// Bytes moved, as nccl-tests would print the size.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// How many ranks the process group has; 0 where it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members: u32,
}

fn is_zero<N: PartialEq + Default>(number: &N) -> bool {
    *number == N::default()
}

impl Label {
    /// A label of `kind` called `name`, with nothing else known.
    pub fn new(kind: Kind, name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            name: name.into(),
            pass: None,
            micro_batch: None,
            stage: None,
            layer: None,
            group: None,
            bytes: 0,
            members: 0,
        }
    }

    /// The letter and micro-batch, as on blocks: `F3`.
    pub fn short(&self) -> String {
        match (self.pass, self.micro_batch) {
            (Some(pass), Some(micro_batch)) => format!("{}{micro_batch}", pass.letter()),
            _ => self.name.clone().into_owned(),
        }
    }
}

/// A transfer from one rank's lane to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrow {
    /// Who sends.
    pub from: Rank,
    /// When it leaves.
    pub left: Nanos,
    /// Who receives.
    pub to: Rank,
    /// When it is there.
    pub arrived: Nanos,
    /// The send.
    pub label: LabelId,
}

/// What memory holds besides activations; it stays the same over a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedMemory {
    /// Parameters.
    pub parameters: Bytes,
    /// Their gradients.
    pub gradients: Bytes,
    /// The optimizer's state.
    pub optimizer: Bytes,
}

impl FixedMemory {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.parameters + self.gradients + self.optimizer
    }
}

/// A rank's memory over a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What stays.
    pub fixed: FixedMemory,
    /// Activations from each time on, in order of time.
    pub activations: Vec<(Nanos, Bytes)>,
}

impl Memory {
    /// The most that activations take at once.
    pub fn peak_activations(&self) -> Bytes {
        self.activations
            .iter()
            .map(|&(_, bytes)| bytes)
            .max()
            .unwrap_or_default()
    }

    /// The most that everything takes at once.
    pub fn peak(&self) -> Bytes {
        self.fixed.total() + self.peak_activations()
    }

    /// Activations at `time`.
    pub fn activations_at(&self, time: Nanos) -> Bytes {
        let after = self.activations.partition_point(|&(at, _)| at <= time);
        after
            .checked_sub(1)
            .map_or(Bytes::ZERO, |index| self.activations[index].1)
    }
}

/// A rank: where it stands, and what it is called on its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankInfo {
    /// Its number.
    pub rank: Rank,
    /// Data-parallel replica.
    pub dp: u32,
    /// Tensor-parallel slice.
    pub tp: u32,
    /// Pipeline position.
    pub pp: u32,
    /// How many ranks it stands for, itself among them: those of other replicas and slices that do the same at
    /// the same time.
    #[serde(default = "itself", skip_serializing_if = "is_itself")]
    pub count: u32,
    /// End of its replica's last pass.
    pub pipeline_end: Nanos,
    /// Most (micro-batch, chunk) pairs in flight at once.
    pub peak_in_flight: u32,
}

fn itself() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
fn is_itself(count: &u32) -> bool {
    *count == 1
}

/// One step of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Ranks, in order.
    pub ranks: Vec<RankInfo>,
    /// What spans are of.
    pub labels: Vec<Label>,
    /// Lanes: those of rank 0 first, each rank's in the order of [`Stream::ALL`].
    pub lanes: Vec<Lane>,
    /// Memory of each rank, in their order; empty where it is not known.
    pub memory: Vec<Memory>,
    /// What each row is called, where rows are not ranks of a run but streams and threads of another program; in the
    /// order of `ranks`, or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<String>,
    /// Sends with their receivers.
    pub arrows: Vec<Arrow>,
    /// The end of the step.
    pub makespan: Nanos,
}

impl Trace {
    /// A trace with all lanes of `ranks`, empty.
    pub fn new(ranks: Vec<RankInfo>, labels: Vec<Label>) -> Self {
        let lanes = ranks
            .iter()
            .flat_map(|info| {
                Stream::ALL.map(|stream| {
                    Lane::new(LaneId {
                        rank: info.rank,
                        stream,
                    })
                })
            })
            .collect();
        Self {
            ranks,
            labels,
            lanes,
            ..Self::default()
        }
    }

    /// A rank's lane; ranks count by their place in [`Trace::ranks`].
    pub fn lane(&self, rank_index: usize, stream: Stream) -> &Lane {
        &self.lanes[rank_index * Stream::ALL.len() + stream as usize]
    }

    /// As [`Trace::lane`], to append to.
    pub fn lane_mut(&mut self, rank_index: usize, stream: Stream) -> &mut Lane {
        &mut self.lanes[rank_index * Stream::ALL.len() + stream as usize]
    }

    /// What a span is of.
    pub fn label(&self, id: LabelId) -> &Label {
        &self.labels[id.0 as usize]
    }

    /// How many GPUs there are, those that others stand for included.
    pub fn gpus(&self) -> u64 {
        self.ranks.iter().map(|info| u64::from(info.count)).sum()
    }

    /// How many spans there are.
    pub fn span_count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.spans().len()).sum()
    }
}

/// Gives equal labels one id, in order of first use.
#[derive(Debug, Default)]
pub struct Labels {
    list: Vec<Label>,
    ids: HashMap<Label, LabelId>,
}

impl Labels {
    /// The id of `label`.
    pub fn id(&mut self, label: Label) -> LabelId {
        let next = LabelId(self.list.len() as u32);
        *self.ids.entry(label).or_insert_with_key(|label| {
            self.list.push(label.clone());
            next
        })
    }

    /// All of them, by id.
    pub fn into_vec(self) -> Vec<Label> {
        self.list
    }
}

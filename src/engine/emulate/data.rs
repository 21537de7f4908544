//! What an operation needs before its maths can be done: data, not streams.
//!
//! A rank's clock runs one computation after another; its maths need not. Micro-batches of one rank can be
//! computed side by side, as long as what they add to the same gradient is added in the plan's order. All
//! edges here point the way of the plan's own order, so there is no circle.

use std::collections::HashMap;

use super::super::step::StepError;
use crate::plan::{Node, Op, OpId, Plan, Program, Reduction, What};
use crate::shape::Segment;
use crate::trace::Stream;
use crate::units::{Pass, Rank};

/// For each node, what follows it and how many it follows. A collective is one node, its first member.
#[derive(Debug)]
pub(super) struct DataGraph {
    /// Nodes, in the plan's order: the earlier, the more urgent.
    nodes: Vec<OpId>,
    /// Those that wait for each node, as indices into `nodes`.
    successors: Vec<Vec<u32>>,
    /// How many each waits for.
    waiting: Vec<u32>,
}

impl DataGraph {
    /// Of all operations but the optimizer's and what gathers its results, which come after.
    pub(super) fn new(plan: &Plan) -> Result<Self, StepError> {
        let program = plan.program();
        let mut nodes = Vec::new();
        let mut index_of = vec![u32::MAX; program.ops().len()];
        for node in plan.nodes() {
            let members: &[OpId] = match node {
                Node::Op(id) => &[id],
                Node::Collective(members) => members,
            };
            match program.op(members[0]).what {
                What::Optimizer
                | What::Collective {
                    what: Reduction::Weights(_) | Reduction::Gathered(_),
                    ..
                } => continue,
                What::Compute { segment: None, .. } => return Err(StepError::NoModel),
                What::Compute { .. }
                | What::Send { .. }
                | What::Receive { .. }
                | What::Collective { .. } => {}
            }
            for member in members {
                index_of[member.index()] = nodes.len() as u32;
            }
            nodes.push(members[0]);
        }
        let mut graph = Self {
            successors: vec![Vec::new(); nodes.len()],
            waiting: vec![0; nodes.len()],
            nodes,
        };
        for rank in 0..program.mesh.ranks() as u32 {
            let mut needs = Needs::default();
            for id in program.ops_of(Rank(rank)) {
                for before in needs.of(plan, id) {
                    graph.edge(index_of[before.index()], index_of[id.index()]);
                }
            }
        }
        Ok(graph)
    }

    fn edge(&mut self, before: u32, after: u32) {
        // What gathers weights is not in the graph.
        if before != u32::MAX && after != u32::MAX {
            self.successors[before as usize].push(after);
            self.waiting[after as usize] += 1;
        }
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A node's operation.
    pub(super) fn node(&self, index: u32) -> OpId {
        self.nodes[index as usize]
    }

    /// Those that wait for a node.
    pub(super) fn successors(&self, index: u32) -> &[u32] {
        &self.successors[index as usize]
    }

    /// How many each node waits for.
    pub(super) fn waiting(&self) -> Vec<u32> {
        self.waiting.clone()
    }
}

/// What has been issued on a rank so far, as later operations need it.
#[derive(Default)]
struct Needs {
    /// The last computation on each micro-batch of each stage.
    flights: HashMap<(u32, u32), OpId>,
    /// The last tensor-parallel reduction on each micro-batch of each stage.
    reduces: HashMap<(u32, u32), OpId>,
    /// The last to add to the gradients of each segment of each stage.
    gradients: HashMap<(u32, Segment), OpId>,
    /// The ends of passes that compute gradients, by stage.
    ends: HashMap<u32, Vec<OpId>>,
}

impl Needs {
    /// All that `id`, the next operation of its rank, comes after.
    fn of(&mut self, plan: &Plan, id: OpId) -> Vec<OpId> {
        let program = plan.program();
        let op = program.op(id);
        let mut before = program.waits(op).to_vec();
        match op.what {
            What::Receive { .. } => before.push(plan.partner(id)),
            What::Compute {
                segment: Some(segment),
                place,
            } => {
                let flight = self.flights.insert((op.stage, op.micro_batch), id);
                before.extend(flight);
                if place.pass != Pass::Forward {
                    before.extend(self.gradients.insert((op.stage, segment), id));
                }
                if place.last && place.pass != Pass::Forward {
                    self.ends.entry(op.stage).or_default().push(id);
                }
            }
            What::Collective { what, .. } => {
                if let Reduction::Tensor(_) = what {
                    // Several after one segment: each takes the next of its partial results.
                    before.extend(self.reduces.insert((op.stage, op.micro_batch), id));
                }
                before.extend(self.of_reduction(program, op, what));
            }
            What::Compute { .. } | What::Send { .. } | What::Optimizer => {}
        }
        before.sort_unstable();
        before.dedup();
        before
    }

    /// Gradients are complete only once every pass that adds to them is through: also those whose last
    /// addition is the norm's, in the next segment of an input-gradient pass.
    fn of_reduction<'a>(
        &'a self,
        program: &Program,
        op: &Op,
        what: Reduction,
    ) -> impl Iterator<Item = OpId> + use<'a> {
        let (all, of_stage) = match what {
            Reduction::Tensor(_) | Reduction::Weights(_) | Reduction::Gathered(_) => (false, None),
            Reduction::Gradients(_) => (false, Some(op.stage)),
            Reduction::TiedEmbedding | Reduction::Norm | Reduction::SequenceNorms => (true, None),
        };
        debug_assert!(
            op.stream != Stream::Compute && !program.stages.is_empty(),
            "collectives only"
        );
        let wanted = self
            .ends
            .iter()
            .filter(move |(stage, _)| all || of_stage == Some(**stage));
        wanted.flat_map(|(_, ends)| ends.iter().copied())
    }
}

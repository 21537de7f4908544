//! Lowers a schedule over a mesh to each rank's operations.

use std::collections::HashMap;
use std::ops::Range;

use super::layout::{LayoutError, check_layers, check_tensor};
use super::shard::LastTwo;
use super::stage::{PassTemplate, ReduceTemplate, Templates};
use super::{NewOp, OpId, Place, Plan, PlanError, Program, Reduction, Tag, What};
use crate::hardware::Precision;
use crate::mesh::{Axis, Coord, Fold, Mesh, layers_as, split_layers};
use crate::schedule::{Action, Schedule, Turn};
use crate::shape::{Bucket, Methods, ModelShape, Segment, Slices, StageShape, Zero};
use crate::trace::{Kind, Label, LabelId, Stream};
use crate::units::{Pass, Rank};

/// The most operations of a plan.
const MAX_OPS: u64 = 1 << 25;

/// What is to be lowered.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Who is where.
    pub mesh: Mesh,
    /// Which ranks stand for others; none do if absent.
    pub fold: Option<&'a Fold>,
    /// The order of work.
    pub schedule: &'a Schedule,
    /// What a pass is made of.
    pub load: Load<'a>,
}

/// What a pass is made of.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    /// A model's layers.
    Model(ModelLoad<'a>),
    /// One operation, whatever it computes; no tensor or data parallelism and no optimizer.
    Passes,
}

/// A model, and how it is trained.
#[derive(Clone, Copy, Debug)]
pub struct ModelLoad<'a> {
    /// Its dimensions.
    pub shape: &'a ModelShape,
    /// Sequences of a micro-batch.
    pub micro_batch_size: usize,
    /// The format of weights and activations.
    pub precision: Precision,
    /// Whether gradients are reduced while the backward pass goes on.
    pub overlap: bool,
    /// How memory and communication are saved.
    pub methods: Methods,
    /// GPUs that share the fast links.
    pub gpus_per_node: usize,
    /// Layers of each stage, put there by hand.
    pub layers_per_stage: Option<&'a [usize]>,
}

impl ModelLoad<'_> {
    /// What each of `count` stages holds.
    pub(crate) fn stages(&self, count: usize) -> Result<Vec<StageShape>, LayoutError> {
        check_layers(self.layers_per_stage, self.shape.layers, count)?;
        Ok(stages_of(match self.layers_per_stage {
            Some(counts) => layers_as(counts),
            None => split_layers(self.shape.layers, count),
        }))
    }

    /// How `tp` ranks share a layer.
    pub(crate) fn slices(&self, tp: usize) -> Slices {
        Slices {
            tp,
            sequence: self.methods.sequence_parallel,
        }
    }
}

/// Lowers and checks.
pub fn lower(job: &Job<'_>) -> Result<Plan, PlanError> {
    let fold = job.fold.cloned().unwrap_or_else(|| Fold::none(job.mesh));
    let cells = fold.cells();
    let mut program = Program::new(cells);
    program.fold = fold;
    if job.schedule.pp() != job.mesh.pp() {
        let (rows, pp) = (job.schedule.pp(), job.mesh.pp());
        return Err(PlanError::Layout(format!(
            "the schedule is for {rows} pipeline ranks, but pp is {pp}"
        )));
    }
    if let Load::Model(load) = job.load {
        program.methods = load.methods;
    }
    program.stages = stages(job)?;
    program.holders = (0..program.stages.len())
        .map(|stage| job.schedule.holder(stage))
        .collect();
    check_size(job, &program)?;
    let templates = Templates::new(job, &mut program);
    let mut lowering = Lowering {
        job,
        program,
        templates,
        pass_labels: HashMap::new(),
        groups: HashMap::new(),
        per_node: Vec::new(),
    };
    for rank in 0..cells.ranks() as u32 {
        lowering.rank(Rank(rank))?;
    }
    lowering.program.check()
}

fn stages(job: &Job<'_>) -> Result<Vec<StageShape>, PlanError> {
    let count = job.schedule.stages();
    match job.load {
        Load::Model(load) => check_tensor(load.shape, job.mesh.tp(), load.methods)
            .and_then(|()| load.stages(count))
            .map_err(|error| PlanError::Layout(error.to_string())),
        Load::Passes => Ok(stages_of(split_layers(count, count))),
    }
}

fn stages_of(split: Vec<Range<usize>>) -> Vec<StageShape> {
    let count = split.len();
    let split = split.into_iter().enumerate();
    split
        .map(|(stage, layers)| StageShape {
            layers,
            first: stage == 0,
            last: stage + 1 == count,
        })
        .collect()
}

fn check_size(job: &Job<'_>, program: &Program) -> Result<(), PlanError> {
    let per_pass: u64 = program
        .stages
        .iter()
        .map(|stage| 4 * (2 * stage.layers.len() as u64 + 6))
        .sum();
    let replicas = (program.mesh.dp() * program.mesh.tp()) as u64;
    let about = per_pass
        .saturating_mul(2 * job.schedule.micro_batches() as u64)
        .saturating_mul(replicas);
    if about > 2 * MAX_OPS {
        Err(PlanError::TooLarge(MAX_OPS))
    } else {
        Ok(())
    }
}

/// The work in progress.
pub(super) struct Lowering<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) program: Program,
    pub(super) templates: Templates,
    /// The first of the labels of each pass; they follow one another as its template says.
    pass_labels: HashMap<Action, LabelId>,
    /// By their axis and first member.
    pub(super) groups: HashMap<(Axis, Rank), u32>,
    /// How many members of each group a node holds.
    pub(super) per_node: Vec<usize>,
}

/// What a rank has issued so far.
pub(super) struct Issued {
    rank: Rank,
    pub(super) at: Coord,
    /// The last operation of each pass.
    ends: HashMap<(Pass, u32, u32), OpId>,
    /// Buckets of gradients that are complete and not yet reduced.
    pub(super) buckets: Vec<(u32, Bucket)>,
    /// The last computation.
    pub(super) last: Option<OpId>,
    /// Collectives that the optimizer waits for.
    pub(super) syncs: Vec<OpId>,
    /// Gatherings of a stage's weights that its passes wait for (`ZeRO` 1 and 2).
    pub(super) gathered: HashMap<u32, OpId>,
    /// The last computations with the weights that were gathered last (`ZeRO` 3).
    pub(super) uses: LastTwo,
    /// The last reductions of what only shares are kept of (`ZeRO` 2 and 3): two buckets' gradients have room.
    reductions: LastTwo,
    /// Reductions that are not overlapped: the next pass waits for them (`ZeRO` 2 and 3).
    blocking: Vec<OpId>,
    /// How often each stage's weights are still to be given gradients.
    grads_left: HashMap<u32, usize>,
}

impl Lowering<'_> {
    fn rank(&mut self, rank: Rank) -> Result<(), PlanError> {
        let at = self.program.mesh.coord(rank);
        let turns = &self.job.schedule.rows()[at.pp];
        let mut grads_left = HashMap::new();
        for action in turns
            .iter()
            .flat_map(Turn::actions)
            .filter(|action| action.pass.makes_weight_grad())
        {
            *grads_left.entry(action.stage).or_insert(0) += 1;
        }
        let mut issued = Issued {
            rank,
            at,
            ends: HashMap::new(),
            buckets: Vec::new(),
            last: None,
            syncs: Vec::new(),
            gathered: HashMap::new(),
            uses: LastTwo::default(),
            reductions: LastTwo::default(),
            blocking: Vec::new(),
            grads_left,
        };
        for turn in turns {
            self.turn(&mut issued, turn)?;
        }
        if let Load::Model(load) = self.job.load {
            self.synchronise(&mut issued, &load);
            self.program.memory[rank.index()] = self.fixed_memory(at, &load);
        }
        self.program.peak_in_flight[rank.index()] = self.job.schedule.peak_in_flight(at.pp) as u32;
        self.program.end_rank();
        Ok(())
    }

    /// Receives what the turn needs, computes, sends what it made.
    fn turn(&mut self, issued: &mut Issued, turn: &Turn) -> Result<(), PlanError> {
        let mut inputs = Vec::new();
        for action in turn.actions() {
            inputs.push(self.input(issued, action)?);
        }
        for (index, action) in turn.actions().enumerate() {
            // The first of a pair starts with the inputs of both.
            let mut waits: Vec<OpId> = inputs[index..].iter().copied().flatten().collect();
            waits.extend(self.gather_weights(issued, action));
            self.pass(issued, action, &waits);
        }
        for action in turn.actions() {
            self.output(issued, action);
        }
        Ok(())
    }

    /// The operation after which the input of `action` is here, if it has one from another stage.
    fn input(&mut self, issued: &Issued, action: Action) -> Result<Option<OpId>, PlanError> {
        let last = self.program.stages.len() as u32 - 1;
        let (source, pass) = match action.pass {
            Pass::Forward if action.stage > 0 => (action.stage - 1, Pass::Forward),
            Pass::Backward | Pass::InputGrad if action.stage < last => {
                (action.stage + 1, Pass::InputGrad)
            }
            Pass::Forward | Pass::Backward | Pass::InputGrad | Pass::WeightGrad => return Ok(None),
        };
        let holder = self.program.holders[source as usize];
        if holder == issued.at.pp {
            let made = issued
                .ends
                .get(&(pass, source, action.micro_batch))
                .copied();
            let early = || {
                let needs = Action {
                    stage: source,
                    pass,
                    ..action
                };
                PlanError::Layout(format!(
                    "rank {} runs {action} before {needs}, which it needs",
                    issued.rank
                ))
            };
            return made.ok_or_else(early).map(Some);
        }
        let from = self.program.mesh.rank(Coord {
            pp: holder,
            ..issued.at
        });
        let tag = Tag {
            pass,
            stage: action.stage,
            micro_batch: action.micro_batch,
        };
        let label = self.labels(action);
        let op = self.message(What::Receive { from, tag }, Stream::Compute, label, action);
        Ok(Some(self.program.issue(op, &[])))
    }

    /// Sends what `action` made to the stage that needs it, unless it is on this rank.
    fn output(&mut self, issued: &Issued, action: Action) {
        let last = self.program.stages.len() as u32 - 1;
        let (target, pass, stream) = match action.pass {
            Pass::Forward if action.stage < last => {
                (action.stage + 1, Pass::Forward, Stream::SendNext)
            }
            Pass::Backward | Pass::InputGrad if action.stage > 0 => {
                (action.stage - 1, Pass::InputGrad, Stream::SendPrev)
            }
            Pass::Forward | Pass::Backward | Pass::InputGrad | Pass::WeightGrad => return,
        };
        let holder = self.program.holders[target as usize];
        let made = issued.ends.get(&(pass, action.stage, action.micro_batch));
        let (Some(end), Some(made), false) = (issued.last, made, holder == issued.at.pp) else {
            return;
        };
        let to = self.program.mesh.rank(Coord {
            pp: holder,
            ..issued.at
        });
        let tag = Tag {
            pass,
            stage: target,
            micro_batch: action.micro_batch,
        };
        let leaves_node = self.leaves_node(issued.rank, to);
        let label = LabelId(self.labels(action).0 + 1 + u32::from(leaves_node));
        let op = self.message(What::Send { to, tag }, stream, label, action);
        let task = self.send_task(leaves_node);
        // Both of a pair end together, so the first's output leaves with the second's.
        self.program.issue(NewOp { task, ..op }, &[*made, end]);
    }

    fn message(&self, what: What, stream: Stream, label: LabelId, action: Action) -> NewOp {
        let Action {
            stage, micro_batch, ..
        } = action;
        NewOp {
            what,
            stream,
            task: self.templates.nothing,
            label,
            micro_batch,
            stage,
            memory: 0,
        }
    }

    /// The segments of a pass and the tensor-parallel reductions between them, in a row.
    fn pass(&mut self, issued: &mut Issued, action: Action, waits: &[OpId]) {
        let pass_label = self.labels(action);
        let template = self.templates.get(action.stage, action.pass).clone();
        let completes = self.last_gradient(issued, action);
        let Action {
            stage, micro_batch, ..
        } = action;
        let mut gathering = self.gathering(&template, action);
        let mut waits = waits.to_vec();
        waits.append(&mut issued.blocking);
        // The labels of the pass and of its two sends come first.
        let mut label = LabelId(pass_label.0 + 3);
        let mut reduces = template.reduces.iter();
        let count = template.segments.len();
        for (index, segment) in template.segments.iter().enumerate() {
            let place = Place {
                pass: action.pass,
                first: index == 0,
                last: index + 1 == count,
                label: pass_label,
            };
            let what = What::Compute {
                segment: segment.segment,
                place,
            };
            let gathered = segment
                .uses
                .and_then(|bucket| self.gather_for(issued, &mut gathering, (stage, bucket)));
            waits.extend(gathered);
            if index == 0 || segment.uses != template.segments[index - 1].uses {
                waits.extend(self.room_for_gradients(issued, action));
            }
            let (stream, task, memory) = (Stream::Compute, segment.task, segment.memory);
            let op = NewOp {
                what,
                stream,
                task,
                label,
                micro_batch,
                stage,
                memory,
            };
            let id = self.program.issue(op, &waits);
            label.0 += 1;
            waits.clear();
            for reduce in reduces.by_ref().take(segment.reduces) {
                // The first waits for the segment; the others follow it on their stream. What comes next
                // waits for all: so it is known what it waits for at each instant.
                waits.push(self.reduce_tensor(issued.at, reduce, NewOp { label, ..op }, id));
                label.0 += 1;
            }
            issued.last = Some(id);
            self.complete(issued, (&template, action, completes), index, id);
        }
        if !gathering.is_empty() {
            issued.uses.push(issued.last);
        }
        self.reduce_shared(issued, completes);
        if let Some(end) = issued.last {
            let made = if action.pass == Pass::Backward {
                Pass::InputGrad
            } else {
                action.pass
            };
            issued.ends.insert((made, stage, micro_batch), end);
        }
    }

    /// A tensor-parallel reduction of what the segment `after` made; `op` has its label and place.
    fn reduce_tensor(
        &mut self,
        at: Coord,
        reduce: &ReduceTemplate,
        op: NewOp,
        after: OpId,
    ) -> OpId {
        let group = self.group_of(Axis::Tp, at);
        let kind = reduce.what.collective();
        let task = self.collective_task(kind, group, reduce.bytes);
        let what = What::Collective {
            kind,
            group,
            what: Reduction::Tensor(reduce.what),
            elements: reduce.elements,
        };
        let op = NewOp {
            what,
            stream: Stream::Tp,
            task,
            memory: 0,
            ..op
        };
        self.program.issue(op, &[after])
    }

    /// Whether `action` is the last to add to its stage's gradients; counts it.
    fn last_gradient(&self, issued: &mut Issued, action: Action) -> bool {
        let is_model = matches!(self.job.load, Load::Model(_));
        let left = issued
            .grads_left
            .get_mut(&action.stage)
            .filter(|_| action.pass.makes_weight_grad());
        left.is_some_and(|left| {
            *left -= 1;
            *left == 0 && is_model
        })
    }

    /// Reduces the buckets that the segment at `index` completes or, without overlap, notes them. Where ranks keep a
    /// share of the gradients alone (`ZeRO` 2 and 3), each micro-batch's are reduced.
    fn complete(
        &mut self,
        issued: &mut Issued,
        (template, action, last): (&PassTemplate, Action, bool),
        index: usize,
        id: OpId,
    ) {
        let Load::Model(load) = self.job.load else {
            return;
        };
        let shared = load.methods.zero >= Zero::Gradients && action.pass.makes_weight_grad();
        if !last && !shared {
            return;
        }
        let stage = action.stage;
        let buckets = template.segments[index].completes.iter();
        if !load.overlap {
            issued
                .buckets
                .extend(buckets.map(|&bucket| (stage, bucket)));
            return;
        }
        for &bucket in buckets {
            let reduced = self.reduce_bucket(issued, &load, (stage, bucket, id));
            issued.syncs.extend(reduced.filter(|_| last));
            issued.reductions.push(reduced);
        }
    }

    /// What must be reduced before another bucket's gradients are made, where only shares of them are kept.
    fn room_for_gradients(&self, issued: &Issued, action: Action) -> Option<OpId> {
        let Load::Model(load) = self.job.load else {
            return None;
        };
        let shared = load.methods.zero >= Zero::Gradients && load.overlap;
        issued
            .reductions
            .older
            .filter(|_| shared && action.pass.makes_weight_grad())
    }

    /// After a pass: reduces what it completed, where that is shared and not overlapped; the next pass waits.
    fn reduce_shared(&mut self, issued: &mut Issued, last: bool) {
        let (Load::Model(load), Some(after)) = (self.job.load, issued.last) else {
            return;
        };
        if load.methods.zero < Zero::Gradients {
            return;
        }
        for (stage, bucket) in std::mem::take(&mut issued.buckets) {
            let reduced = self.reduce_bucket(issued, &load, (stage, bucket, after));
            issued.blocking.extend(reduced);
            issued.syncs.extend(reduced.filter(|_| last));
        }
    }

    /// The first label of a pass: the pass itself, then its send, then its segments and reductions.
    fn labels(&mut self, action: Action) -> LabelId {
        if let Some(&first) = self.pass_labels.get(&action) {
            return first;
        }
        let first = self.templates.write_labels(&mut self.program, action);
        self.pass_labels.insert(action, first);
        first
    }
}

/// The label of the optimizer's step.
pub(super) fn optimizer_label() -> Label {
    Label::new(Kind::Optimizer, "optimizer")
}

/// Whether a segment's bucket is complete only after the next segment, which passes the reduced gradient
/// through the norm that the bucket also holds.
pub(super) fn completes_late(segment: Segment, pass: Pass, tp: usize) -> bool {
    tp > 1 && pass == Pass::Backward && segment != Segment::Embed
}

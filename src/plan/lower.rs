//! Lowers a schedule over a mesh to each rank's operations.

use std::collections::HashMap;

use super::layout::check_tensor;
use super::stage::{PassTemplate, ReduceTemplate, Templates};
use super::{Group, NewOp, OpId, Place, Plan, PlanError, Program, Reduction, Tag, TaskId, What};
use crate::hardware::{Level, Precision, Task};
use crate::mesh::{Axis, Coord, Mesh, split_layers};
use crate::schedule::{Action, Schedule, Turn};
use crate::shape::{Bucket, ModelShape, Segment, StageShape};
use crate::trace::{FixedMemory, Kind, Label, LabelId, Stream};
use crate::units::{Bytes, Collective, Pass, Rank};

/// The most operations of a plan.
const MAX_OPS: u64 = 1 << 25;

/// What is to be lowered.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Who is where.
    pub mesh: Mesh,
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
    /// GPUs that share the fast links.
    pub gpus_per_node: usize,
}

/// Lowers and checks.
pub fn lower(job: &Job<'_>) -> Result<Plan, PlanError> {
    let mut program = Program::new(job.mesh);
    if job.schedule.pp() != job.mesh.pp() {
        let (rows, pp) = (job.schedule.pp(), job.mesh.pp());
        return Err(PlanError::Layout(format!(
            "the schedule is for {rows} pipeline ranks, but pp is {pp}"
        )));
    }
    program.stages = stages(job)?;
    program.holders = (0..program.stages.len())
        .map(|stage| job.schedule.holder(stage))
        .collect();
    check_size(job, &program.stages)?;
    let templates = Templates::new(job, &mut program);
    let mut lowering = Lowering {
        job,
        program,
        templates,
        pass_labels: HashMap::new(),
        groups: HashMap::new(),
        levels: Vec::new(),
    };
    for rank in 0..job.mesh.ranks() as u32 {
        lowering.rank(Rank(rank))?;
    }
    lowering.program.check()
}

fn stages(job: &Job<'_>) -> Result<Vec<StageShape>, PlanError> {
    let count = job.schedule.stages();
    let layers = match job.load {
        Load::Model(load) => {
            check_tensor(load.shape, job.mesh.tp())
                .map_err(|error| PlanError::Layout(error.to_string()))?;
            load.shape.layers
        }
        Load::Passes => count,
    };
    let split = split_layers(layers, count).into_iter().enumerate();
    Ok(split
        .map(|(stage, layers)| StageShape {
            layers,
            first: stage == 0,
            last: stage + 1 == count,
        })
        .collect())
}

fn check_size(job: &Job<'_>, stages: &[StageShape]) -> Result<(), PlanError> {
    let per_pass: u64 = stages
        .iter()
        .map(|stage| 4 * (2 * stage.layers.len() as u64 + 6))
        .sum();
    let replicas = (job.mesh.dp() * job.mesh.tp()) as u64;
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
struct Lowering<'a> {
    job: &'a Job<'a>,
    program: Program,
    templates: Templates,
    /// The first of the labels of each pass; they follow one another as its template says.
    pass_labels: HashMap<Action, LabelId>,
    /// By their axis and first member.
    groups: HashMap<(Axis, Rank), u32>,
    /// How far each group reaches.
    levels: Vec<Level>,
}

/// What a rank has issued so far.
struct Issued {
    rank: Rank,
    at: Coord,
    /// The last operation of each pass.
    ends: HashMap<(Pass, u32, u32), OpId>,
    /// The operation that completes each bucket of gradients.
    buckets: Vec<(u32, Bucket, OpId)>,
    /// The last computation.
    last: Option<OpId>,
    /// Collectives that the optimizer waits for.
    syncs: Vec<OpId>,
    /// How often each stage's weights are still to be given gradients.
    grads_left: HashMap<u32, usize>,
}

impl Lowering<'_> {
    fn rank(&mut self, rank: Rank) -> Result<(), PlanError> {
        let at = self.job.mesh.coord(rank);
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
            let waits: Vec<OpId> = inputs[index..].iter().copied().flatten().collect();
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
        let from = self.job.mesh.rank(Coord {
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
        let to = self.job.mesh.rank(Coord {
            pp: holder,
            ..issued.at
        });
        let tag = Tag {
            pass,
            stage: target,
            micro_batch: action.micro_batch,
        };
        let label = LabelId(self.labels(action).0 + 1);
        let op = self.message(What::Send { to, tag }, stream, label, action);
        let task = self.send_task(issued.rank, to);
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
        let mut waits = waits.to_vec();
        // The labels of the pass and of its send come first.
        let mut label = LabelId(pass_label.0 + 2);
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
            if completes {
                self.complete(issued, &template, stage, index, id);
            }
        }
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
        let task = self.collective_task(Collective::AllReduce, group, reduce.bytes);
        let what = What::Collective {
            kind: Collective::AllReduce,
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

    /// Notes the buckets that the segment at `index` completes and, with overlap, reduces them at once.
    fn complete(
        &mut self,
        issued: &mut Issued,
        template: &PassTemplate,
        stage: u32,
        index: usize,
        id: OpId,
    ) {
        for &bucket in &template.segments[index].completes {
            issued.buckets.push((stage, bucket, id));
            if let Load::Model(load) = self.job.load
                && load.overlap
            {
                self.reduce_bucket(issued, &load, (stage, bucket, id));
            }
        }
    }

    /// All-reduces a bucket of gradients over the data ranks.
    fn reduce_bucket(
        &mut self,
        issued: &mut Issued,
        load: &ModelLoad<'_>,
        bucket: (u32, Bucket, OpId),
    ) {
        if self.job.mesh.dp() == 1 {
            return;
        }
        let (stage, bucket, after) = bucket;
        let elements = self.bucket_params(load.shape, stage, bucket);
        let group = self.group_of(Axis::Dp, issued.at);
        let name = "all-reduce gradients";
        let call = Call {
            group,
            what: Reduction::Gradients(bucket),
            elements,
            name,
            stage,
        };
        self.synchronising(issued, &call, &[after]);
    }

    /// After the passes: gradients over data ranks, the tied embedding's, the global norm; then the
    /// optimizer.
    fn synchronise(&mut self, issued: &mut Issued, load: &ModelLoad<'_>) {
        let Some(last) = issued.last else {
            return;
        };
        if !load.overlap {
            for (stage, bucket, _) in std::mem::take(&mut issued.buckets) {
                self.reduce_bucket(issued, load, (stage, bucket, last));
            }
        }
        self.reduce_tied(issued, load, last);
        self.reduce_norm(issued, last);
        let params = self.rank_params(issued.at.pp, load.shape);
        let task = self.program.task(Task::Optimizer { params });
        let label = self.templates.optimizer;
        let (what, stream) = (What::Optimizer, Stream::Compute);
        let op = NewOp {
            what,
            stream,
            task,
            label,
            micro_batch: 0,
            stage: 0,
            memory: 0,
        };
        self.program.issue(op, &issued.syncs);
    }

    /// First and last stage sum the gradient of the embedding that both hold.
    fn reduce_tied(&mut self, issued: &mut Issued, load: &ModelLoad<'_>, last: OpId) {
        let (Some(&first_holder), Some(&last_holder)) =
            (self.program.holders.first(), self.program.holders.last())
        else {
            return;
        };
        let holds = issued.at.pp == first_holder || issued.at.pp == last_holder;
        if !load.shape.tied || self.program.stages.len() == 1 || !holds {
            return;
        }
        let ends = [first_holder, last_holder].into_iter();
        let mut ranks: Vec<Rank> = ends
            .map(|pp| self.job.mesh.rank(Coord { pp, ..issued.at }))
            .collect();
        ranks.sort_unstable();
        // A rank that holds both (a V placement) sums its own two: a group of one, which costs nothing.
        ranks.dedup();
        let elements = load.shape.embedding_params(self.job.mesh.tp());
        let name = "all-reduce tied embedding";
        let what = Reduction::TiedEmbedding;
        let group = self.group(Axis::Embedding, ranks[0], || ranks);
        let call = Call {
            group,
            what,
            elements,
            name,
            stage: 0,
        };
        let mut waits = issued.syncs.clone();
        waits.push(last);
        self.synchronising(issued, &call, &waits);
    }

    /// A replica's ranks sum the squares of their gradients.
    fn reduce_norm(&mut self, issued: &mut Issued, last: OpId) {
        if self.job.mesh.tp() * self.job.mesh.pp() > 1 {
            let call = Call {
                group: self.group_of(Axis::Model, issued.at),
                what: Reduction::Norm,
                elements: 1,
                name: "all-reduce gradient norm",
                stage: 0,
            };
            let mut waits = issued.syncs.clone();
            waits.push(last);
            self.synchronising(issued, &call, &waits);
        }
    }

    fn synchronising(&mut self, issued: &mut Issued, call: &Call, waits: &[OpId]) {
        let bytes = Bytes(call.elements * 4);
        let task = self.collective_task(Collective::AllReduce, call.group, bytes);
        let group = call.group;
        let axis = self.program.groups[group as usize].axis;
        let label = self
            .templates
            .sync_label(&mut self.program, call.name, axis, call.what, bytes);
        let what = What::Collective {
            kind: Collective::AllReduce,
            group,
            what: call.what,
            elements: call.elements,
        };
        let (stream, stage) = (Stream::Dp, call.stage);
        let op = NewOp {
            what,
            stream,
            task,
            label,
            micro_batch: 0,
            stage,
            memory: 0,
        };
        issued.syncs.push(self.program.issue(op, waits));
    }

    /// The group along `axis` of the rank at `at`; its members are listed once for all of them.
    fn group_of(&mut self, axis: Axis, at: Coord) -> u32 {
        let mesh = self.job.mesh;
        let first = match axis {
            Axis::Dp => Coord { dp: 0, ..at },
            Axis::Tp => Coord { tp: 0, ..at },
            Axis::Pp => Coord { pp: 0, ..at },
            Axis::Model => Coord { tp: 0, pp: 0, ..at },
            Axis::Embedding => at,
        };
        self.group(axis, mesh.rank(first), || mesh.group(axis, at))
    }

    /// The group along `axis` whose first member is `first`.
    fn group(&mut self, axis: Axis, first: Rank, members: impl FnOnce() -> Vec<Rank>) -> u32 {
        if let Some(&known) = self.groups.get(&(axis, first)) {
            return known;
        }
        let ranks = members();
        let id = self.program.groups.len() as u32;
        self.levels.push(self.level(&ranks));
        self.program.groups.push(Group { axis, ranks });
        self.groups.insert((axis, first), id);
        id
    }

    fn level(&self, ranks: &[Rank]) -> Level {
        let Load::Model(load) = self.job.load else {
            return Level::InNode;
        };
        let node = |rank: &Rank| rank.index() / load.gpus_per_node.max(1);
        if ranks.iter().all(|rank| node(rank) == node(&ranks[0])) {
            Level::InNode
        } else {
            Level::BetweenNodes
        }
    }

    fn collective_task(&mut self, kind: Collective, group: u32, bytes: Bytes) -> TaskId {
        let ranks = self.program.groups[group as usize].ranks.len();
        let level = self.levels[group as usize];
        let task = Task::Collective {
            kind,
            bytes,
            ranks,
            level,
        };
        self.program.task(task)
    }

    fn send_task(&mut self, from: Rank, to: Rank) -> TaskId {
        let level = self.level(&[from, to]);
        let bytes = self.templates.message;
        self.program.task(Task::Send { bytes, level })
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

    fn bucket_params(&self, shape: &ModelShape, stage: u32, bucket: Bucket) -> u64 {
        let StageShape { first, last, .. } = self.program.stages[stage as usize];
        let head_has_matrix = last && (!first || !shape.tied);
        shape.bucket_params(bucket, self.job.mesh.tp(), head_has_matrix)
    }

    fn rank_params(&self, pp: usize, shape: &ModelShape) -> u64 {
        let stages = self.job.schedule.stages_of(pp);
        let of_stage = |stage: usize| -> u64 {
            let buckets = self.program.stages[stage].buckets().into_iter();
            buckets
                .map(|bucket| self.bucket_params(shape, stage as u32, bucket))
                .sum()
        };
        stages.map(of_stage).sum()
    }

    fn fixed_memory(&self, at: Coord, load: &ModelLoad<'_>) -> FixedMemory {
        let params = Bytes(self.rank_params(at.pp, load.shape));
        FixedMemory {
            parameters: params * load.precision.bytes(),
            gradients: params * load.precision.grad_bytes(),
            optimizer: params * load.precision.optimizer_bytes(),
        }
    }
}

/// A collective after the passes.
struct Call {
    group: u32,
    what: Reduction,
    elements: u64,
    name: &'static str,
    stage: u32,
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

//! What a pass on a stage is made of: the same for every micro-batch and every rank that holds the stage.

use super::lower::{completes_late, optimizer_label};
use super::{Job, Load, ModelLoad, Program, Reduction, TaskId};
use crate::hardware::{Precision, Task};
use crate::mesh::Axis;
use crate::schedule::Action;
use crate::shape::{Bucket, Methods, PassStep, Recompute, Reduce, Segment, StageShape, Work};
use crate::trace::{Kind, Label, LabelId};
use crate::units::{Bytes, Pass};

/// A segment of a pass.
#[derive(Clone, Debug)]
pub(super) struct SegmentTemplate {
    /// Which; `None` for a whole pass.
    pub(super) segment: Option<Segment>,
    /// Whether it is a forward pass's, computed again.
    pub(super) again: bool,
    /// What it costs.
    pub(super) task: TaskId,
    /// Bytes of activations that it takes or gives back.
    pub(super) memory: i64,
    /// How many reductions follow it.
    pub(super) reduces: usize,
    /// The bucket whose weights it uses.
    pub(super) uses: Option<Bucket>,
    /// The buckets whose gradients are complete after it, if the pass is the last to add to them.
    pub(super) completes: Vec<Bucket>,
}

/// A tensor-parallel reduction of a pass.
#[derive(Clone, Debug)]
pub(super) struct ReduceTemplate {
    /// Of what.
    pub(super) what: Reduce,
    /// Elements that each rank contributes.
    pub(super) elements: u64,
    /// Their size.
    pub(super) bytes: Bytes,
}

/// A pass on a stage.
#[derive(Clone, Debug, Default)]
pub(super) struct PassTemplate {
    /// Its segments, in order.
    pub(super) segments: Vec<SegmentTemplate>,
    /// Its reductions, in order.
    pub(super) reduces: Vec<ReduceTemplate>,
}

/// All passes on all stages.
#[derive(Debug)]
pub(super) struct Templates {
    passes: Vec<[PassTemplate; 4]>,
    /// The size of an activation or a gradient between stages, within a node and from one to another.
    messages: [Bytes; 2],
    /// A task that costs nothing.
    pub(super) nothing: TaskId,
    /// What the optimizer is called.
    pub(super) optimizer: LabelId,
    syncs: Vec<((Reduction, Bytes), LabelId)>,
}

const PASSES: [Pass; 4] = [
    Pass::Forward,
    Pass::Backward,
    Pass::InputGrad,
    Pass::WeightGrad,
];

impl Templates {
    /// The templates of a job, their tasks added to the program.
    pub(super) fn new(job: &Job<'_>, program: &mut Program) -> Self {
        let stages = program.stages.clone();
        let passes = stages
            .iter()
            .map(|stage| PASSES.map(|pass| template(job, program, stage, pass)))
            .collect();
        let messages = match job.load {
            Load::Model(load) => [false, true].map(|leaves| load.leaving(job.mesh.tp(), leaves)),
            Load::Passes => [Bytes::ZERO; 2],
        };
        let nothing = program.task(Task::Compute(Work::default()));
        let optimizer = program.label(optimizer_label());
        Self {
            passes,
            messages,
            nothing,
            optimizer,
            syncs: Vec::new(),
        }
    }

    /// A pass on a stage.
    pub(super) fn get(&self, stage: u32, pass: Pass) -> &PassTemplate {
        let index = PASSES
            .iter()
            .position(|&one| one == pass)
            .unwrap_or_default();
        &self.passes[stage as usize][index]
    }

    /// Writes the labels of `action`: the pass, its send, then each segment with its reductions.
    pub(super) fn write_labels(&self, program: &mut Program, action: Action) -> LabelId {
        let of = |kind, name: &'static str| Label {
            pass: Some(action.pass),
            micro_batch: Some(action.micro_batch),
            stage: Some(action.stage),
            ..Label::new(kind, name)
        };
        let first = program.label(of(Kind::Pass, pass_name(action.pass)));
        let sends = if action.pass == Pass::Forward {
            "send activation"
        } else {
            "send gradient"
        };
        for message in self.messages {
            program.label(Label {
                group: Some(Axis::Pp.name().into()),
                bytes: message.0,
                members: 2,
                ..of(Kind::Send, sends)
            });
        }
        let members = program.fold.mesh.tp() as u32;
        let template = self.get(action.stage, action.pass);
        let mut reduces = template.reduces.iter();
        for segment in &template.segments {
            let (kind, name) = match segment.segment {
                Some(segment) => (Kind::Segment, segment.name()),
                None => (Kind::Pass, pass_name(action.pass)),
            };
            let layer = segment.segment.and_then(Segment::layer).map(u32::from);
            let mut label = Label {
                layer,
                ..of(kind, name)
            };
            if segment.again {
                label.name = format!("{name} again").into();
            }
            program.label(label);
            for reduce in reduces.by_ref().take(segment.reduces) {
                let group = Some(Axis::Tp.name().into());
                let bytes = reduce.bytes.0;
                program.label(Label {
                    layer,
                    group,
                    bytes,
                    members,
                    ..of(
                        Kind::from(reduce.what.collective()),
                        reduce_name(reduce.what),
                    )
                });
            }
        }
        first
    }

    /// The label of a collective beside the passes.
    pub(super) fn sync_label(
        &mut self,
        program: &mut Program,
        label: Label,
        what: Reduction,
    ) -> LabelId {
        let key = (what, Bytes(label.bytes));
        let known = self.syncs.iter().find(|(known, _)| *known == key);
        if let Some(&(_, label)) = known {
            return label;
        }
        let layer = match what {
            Reduction::Gradients(Bucket::Layer(layer))
            | Reduction::Gathered(Bucket::Layer(layer)) => Some(u32::from(layer)),
            Reduction::Gradients(Bucket::Embedding | Bucket::Head)
            | Reduction::Gathered(Bucket::Embedding | Bucket::Head)
            | Reduction::Tensor(_)
            | Reduction::TiedEmbedding
            | Reduction::Norm
            | Reduction::SequenceNorms
            | Reduction::Weights(_) => None,
        };
        let id = program.label(Label { layer, ..label });
        self.syncs.push((key, id));
        id
    }
}

fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::Backward => "backward",
        Pass::InputGrad => "input gradient",
        Pass::WeightGrad => "weight gradient",
    }
}

fn reduce_name(reduce: Reduce) -> &'static str {
    match reduce {
        Reduce::Hidden => "all-reduce partial sums",
        Reduce::ScatterHidden => "reduce-scatter partial sums",
        Reduce::GatherHidden => "all-gather the sequence",
        Reduce::LogitMax => "all-reduce largest logit",
        Reduce::TargetLogit => "all-reduce target logit",
        Reduce::ExpSum => "all-reduce sum of exponentials",
    }
}

fn template(job: &Job<'_>, program: &mut Program, stage: &StageShape, pass: Pass) -> PassTemplate {
    let Load::Model(load) = job.load else {
        let task = program.task(Task::Pass(pass));
        let whole = SegmentTemplate {
            segment: None,
            again: false,
            task,
            memory: 0,
            reduces: 0,
            uses: None,
            completes: Vec::new(),
        };
        return PassTemplate {
            segments: vec![whole],
            reduces: Vec::new(),
        };
    };
    let tp = job.mesh.tp();
    let mut template = PassTemplate::default();
    let mut late = None;
    for step in stage.steps(pass, load.slices(tp), load.methods.recompute) {
        let mut work = load.work(step, pass, tp);
        // A weight-gradient has nothing to fetch and no one to meet.
        if template.segments.is_empty() && pass != Pass::WeightGrad {
            work.passes = 1.0;
        }
        let bucket = bucket(step.segment).filter(|_| !step.again);
        let waits = completes_late(step.segment, pass, tp);
        let on_time = bucket.filter(|_| !waits);
        let completes = late.take().into_iter().chain(on_time).collect();
        late = bucket.filter(|_| waits);
        template
            .reduces
            .extend(step.reduces.iter().map(|&what| load.reduce(what)));
        template.segments.push(SegmentTemplate {
            segment: Some(step.segment),
            again: step.again,
            task: program.task(Task::Compute(work)),
            memory: load.memory(step, pass, tp),
            reduces: step.reduces.len(),
            uses: weights(step.segment),
            completes,
        });
    }
    template
}

impl ModelLoad<'_> {
    /// Tokens of a micro-batch.
    fn tokens(&self) -> usize {
        self.micro_batch_size * self.shape.seq
    }

    /// What a step of a pass costs one of `tp` ranks.
    pub(crate) fn work(&self, step: PassStep, pass: Pass, tp: usize) -> Work {
        let pass = if step.again { Pass::Forward } else { pass };
        let how = (self.slices(tp), self.methods.attention);
        self.shape.work(step.segment, pass, self.tokens(), how)
    }

    /// Bytes of activations that a step takes or gives back.
    pub(crate) fn memory(&self, step: PassStep, pass: Pass, tp: usize) -> i64 {
        let methods = self.methods;
        let kept = self.kept(step.segment, tp, methods).cast_signed();
        let again = self.kept_again(step.segment, tp).cast_signed();
        match pass {
            // Computed again, and held until the weights' gradients are there.
            _ if step.again => again,
            Pass::InputGrad | Pass::Backward if matches!(step.segment, Segment::Core(_)) => {
                self.kept_again(step.segment.normed(), tp).cast_signed()
            }
            Pass::Forward => kept,
            Pass::Backward | Pass::WeightGrad => -kept - again,
            Pass::InputGrad => 0,
        }
    }

    fn kept(&self, segment: Segment, tp: usize, methods: Methods) -> u64 {
        let (tokens, slices) = (self.tokens(), self.slices(tp));
        match self.precision {
            Precision::F32 => 4 * self.shape.kept_elements(segment, tokens, slices, methods),
            Precision::Bf16 => self
                .shape
                .megatron_stash_bytes(segment, tokens, slices, methods),
        }
    }

    /// What a segment's backward has computed again beside what was kept.
    fn kept_again(&self, segment: Segment, tp: usize) -> u64 {
        let nothing = Methods {
            recompute: Recompute::None,
            ..self.methods
        };
        let all = self.kept(segment, tp, nothing);
        all.saturating_sub(self.kept(segment, tp, self.methods))
    }

    /// The most that is held of what is computed again: a layer's.
    pub(crate) fn again(&self, tp: usize) -> Bytes {
        let of_layer = [Segment::Attention(0), Segment::Mlp(0)];
        Bytes(
            of_layer
                .map(|segment| self.kept_again(segment, tp))
                .iter()
                .sum(),
        )
    }

    /// Elements and size of what tensor-parallel ranks do together.
    pub(crate) fn reduced(&self, what: Reduce) -> (u64, Bytes) {
        let elements = what.elements(self.tokens(), self.shape.hidden);
        let each = if what.is_hidden() {
            self.precision.bytes()
        } else {
            4
        };
        (elements, Bytes(elements * each))
    }

    fn reduce(&self, what: Reduce) -> ReduceTemplate {
        let (elements, bytes) = self.reduced(what);
        ReduceTemplate {
            what,
            elements,
            bytes,
        }
    }

    /// The size of an activation or a gradient between stages, of one of `tp` ranks.
    fn message(&self, tp: usize) -> Bytes {
        let whole = self.tokens() as u64 * self.shape.hidden as u64;
        let elements = whole / self.slices(tp).between() as u64;
        Bytes(elements * self.precision.bytes())
    }

    /// What one of `tp` ranks sends of it: from one node to another, its share of what ranks of a node have alike.
    fn leaving(&self, tp: usize, leaves_node: bool) -> Bytes {
        let shares = if leaves_node { self.alike(tp) } else { 1 };
        Bytes(self.message(tp).0 / shares.max(1) as u64)
    }

    /// How many ranks of a node have the same to send. With sequence parallelism each has a share of its own already.
    fn alike(&self, tp: usize) -> usize {
        if self.methods.sequence_parallel {
            1
        } else {
            tp.min(self.gpus_per_node)
        }
    }

    /// A send of it.
    pub(crate) fn send(&self, tp: usize, leaves_node: bool) -> Task {
        Task::Send {
            bytes: self.message(tp),
            leaves_node,
            alike: self.alike(tp),
        }
    }
}

/// The bucket that holds a segment's weights.
fn weights(segment: Segment) -> Option<Bucket> {
    match segment {
        Segment::Embed => Some(Bucket::Embedding),
        Segment::Attention(layer)
        | Segment::AttentionNorm(layer)
        | Segment::Core(layer)
        | Segment::Mlp(layer)
        | Segment::MlpNorm(layer) => Some(Bucket::Layer(layer)),
        Segment::Head | Segment::HeadNorm => Some(Bucket::Head),
        Segment::HeadSum | Segment::HeadLoss | Segment::Finish | Segment::Share => None,
    }
}

/// The bucket that a segment is the last of a backward pass to add to.
fn bucket(segment: Segment) -> Option<Bucket> {
    match segment {
        Segment::Embed => Some(Bucket::Embedding),
        Segment::Attention(layer) => Some(Bucket::Layer(layer)),
        Segment::Head => Some(Bucket::Head),
        Segment::Mlp(_)
        | Segment::HeadSum
        | Segment::HeadLoss
        | Segment::Finish
        | Segment::AttentionNorm(_)
        | Segment::MlpNorm(_)
        | Segment::HeadNorm
        | Segment::Share
        | Segment::Core(_) => None,
    }
}

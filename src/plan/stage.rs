//! What a pass on a stage is made of: the same for every micro-batch and every rank that holds the stage.

use super::lower::{completes_late, optimizer_label};
use super::{Job, Load, Program, Reduction, TaskId};
use crate::hardware::{Precision, Task};
use crate::mesh::Axis;
use crate::schedule::Action;
use crate::shape::{Bucket, Reduce, Segment, StageShape, Work};
use crate::trace::{Kind, Label, LabelId};
use crate::units::{Bytes, Pass};

/// A segment of a pass.
#[derive(Clone, Debug)]
pub(super) struct SegmentTemplate {
    /// Which; `None` for a whole pass.
    pub(super) segment: Option<Segment>,
    /// What it costs.
    pub(super) task: TaskId,
    /// Bytes of activations that it takes or gives back.
    pub(super) memory: i64,
    /// How many reductions follow it.
    pub(super) reduces: usize,
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
    /// The size of an activation or a gradient between stages.
    pub(super) message: Bytes,
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
        let message = match job.load {
            Load::Model(load) => {
                let tokens = (load.micro_batch_size * load.shape.seq * load.shape.hidden) as u64;
                Bytes(tokens * load.precision.bytes())
            }
            Load::Passes => Bytes::ZERO,
        };
        let nothing = program.task(Task::Compute(Work::default()));
        let optimizer = program.label(optimizer_label());
        Self {
            passes,
            message,
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
        let group = Some(Axis::Pp.name().into());
        program.label(Label {
            group,
            bytes: self.message.0,
            ..of(Kind::Send, sends)
        });
        let template = self.get(action.stage, action.pass);
        let mut reduces = template.reduces.iter();
        for segment in &template.segments {
            let (kind, name) = match segment.segment {
                Some(segment) => (Kind::Segment, segment.name()),
                None => (Kind::Pass, pass_name(action.pass)),
            };
            let layer = segment.segment.and_then(Segment::layer).map(u32::from);
            program.label(Label {
                layer,
                ..of(kind, name)
            });
            for reduce in reduces.by_ref().take(segment.reduces) {
                let group = Some(Axis::Tp.name().into());
                let bytes = reduce.bytes.0;
                program.label(Label {
                    layer,
                    group,
                    bytes,
                    ..of(Kind::AllReduce, reduce_name(reduce.what))
                });
            }
        }
        first
    }

    /// The label of a collective after the passes.
    pub(super) fn sync_label(
        &mut self,
        program: &mut Program,
        name: &'static str,
        axis: Axis,
        what: Reduction,
        bytes: Bytes,
    ) -> LabelId {
        let known = self.syncs.iter().find(|(key, _)| *key == (what, bytes));
        if let Some(&(_, label)) = known {
            return label;
        }
        let layer = match what {
            Reduction::Gradients(Bucket::Layer(layer)) => Some(u32::from(layer)),
            Reduction::Gradients(Bucket::Embedding | Bucket::Head)
            | Reduction::Tensor(_)
            | Reduction::TiedEmbedding
            | Reduction::Norm => None,
        };
        let group = Some(axis.name().into());
        let label = program.label(Label {
            layer,
            group,
            bytes: bytes.0,
            ..Label::new(Kind::AllReduce, name)
        });
        self.syncs.push(((what, bytes), label));
        label
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
            task,
            memory: 0,
            reduces: 0,
            completes: Vec::new(),
        };
        return PassTemplate {
            segments: vec![whole],
            reduces: Vec::new(),
        };
    };
    let (tokens, tp) = (load.micro_batch_size * load.shape.seq, job.mesh.tp());
    let mut template = PassTemplate::default();
    let mut late = None;
    for step in stage.steps(pass, tp) {
        let task = program.task(Task::Compute(load.shape.work(
            step.segment,
            pass,
            tokens,
            tp,
        )));
        let kept = match load.precision {
            Precision::F32 => 4 * load.shape.stash_elements(step.segment, tokens, tp),
            Precision::Bf16 => load.shape.megatron_stash_bytes(step.segment, tokens, tp),
        }
        .cast_signed();
        let memory = match pass {
            Pass::Forward => kept,
            Pass::Backward | Pass::WeightGrad => -kept,
            Pass::InputGrad => 0,
        };
        let bucket = bucket(step.segment);
        let waits = completes_late(step.segment, pass, tp);
        let completes = late
            .take()
            .into_iter()
            .chain(bucket.filter(|_| !waits))
            .collect();
        late = bucket.filter(|_| waits);
        template.reduces.extend(step.reduces.iter().map(|&what| {
            let elements = what.elements(tokens, load.shape.hidden);
            let each = if what == Reduce::Hidden {
                load.precision.bytes()
            } else {
                4
            };
            ReduceTemplate {
                what,
                elements,
                bytes: Bytes(elements * each),
            }
        }));
        let (segment, reduces) = (Some(step.segment), step.reduces.len());
        template.segments.push(SegmentTemplate {
            segment,
            task,
            memory,
            reduces,
            completes,
        });
    }
    template
}

/// The bucket that a segment is the last of a backward pass to add to.
fn bucket(segment: Segment) -> Option<Bucket> {
    match segment {
        Segment::Embed => Some(Bucket::Embedding),
        Segment::Attention(layer) => Some(Bucket::Layer(layer)),
        Segment::Head => Some(Bucket::Head),
        Segment::Mlp(_) | Segment::HeadSum | Segment::HeadLoss | Segment::Finish => None,
    }
}

//! What follows the passes: gradients summed over ranks, the global norm, the optimizer, weights gathered.

use super::lower::{Issued, Lowering, ModelLoad};
use super::{NewOp, OpId, Reduction, What};
use crate::hardware::Task;
use crate::mesh::{Axis, Coord};
use crate::schedule::Action;
use crate::shape::{Bucket, ModelShape, StageShape, Zero};
use crate::trace::{FixedMemory, Kind, Label, Stream};
use crate::units::{Bytes, Collective, Pass, Rank};

/// Parameters of which a rank holds more than its share for a while (`ZeRO` 2 and 3): of weights, the bucket that is
/// computed with and, with overlap, the next; of gradients, the bucket being made and the one being reduced, or without
/// overlap all of a stage's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    weights: u64,
    gradients: u64,
}

impl Whole {
    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            weights: self.weights.max(other.weights),
            gradients: self.gradients.max(other.gradients),
        }
    }
}

/// A collective beside the passes.
pub(super) struct Call {
    pub(super) kind: Collective,
    pub(super) group: u32,
    pub(super) what: Reduction,
    pub(super) elements: u64,
    /// Bytes of an element.
    pub(super) each: u64,
    pub(super) name: &'static str,
    pub(super) stage: u32,
}

impl Lowering<'_> {
    /// Sums a bucket of gradients over the data ranks; with `ZeRO`, each gets its share of the sum.
    pub(super) fn reduce_bucket(
        &mut self,
        issued: &Issued,
        load: &ModelLoad<'_>,
        (stage, bucket, after): (u32, Bucket, OpId),
    ) -> Option<OpId> {
        if self.job.mesh.dp() == 1 || load.methods.no_sync {
            return None;
        }
        let (kind, name) = if load.methods.zero == Zero::Off {
            (Collective::AllReduce, "all-reduce gradients")
        } else {
            (Collective::ReduceScatter, "reduce-scatter gradients")
        };
        let call = Call {
            kind,
            group: self.group_of(Axis::Dp, issued.at),
            what: Reduction::Gradients(bucket),
            elements: self.bucket_params(load.shape, stage, bucket),
            each: load.precision.grad_bytes(load.methods.grad_dtype),
            name,
            stage,
        };
        Some(self.collective(&call, &[after]))
    }

    /// Before its first forward of a step a stage gathers the weights that each replica updated its share of at the
    /// end of the step before (`ZeRO` 1 and 2, overlapped).
    pub(super) fn gather_weights(&mut self, issued: &mut Issued, action: Action) -> Option<OpId> {
        let super::lower::Load::Model(load) = self.job.load else {
            return None;
        };
        let shares = matches!(load.methods.zero, Zero::Optimizer | Zero::Gradients);
        let gathers = shares && load.overlap && action.pass == Pass::Forward;
        if !gathers || self.job.mesh.dp() == 1 {
            return None;
        }
        if let Some(&known) = issued.gathered.get(&action.stage) {
            return Some(known);
        }
        let call = Call {
            kind: Collective::AllGather,
            group: self.group_of(Axis::Dp, issued.at),
            what: Reduction::Weights(action.stage),
            elements: self.stage_params(load.shape, action.stage as usize),
            each: load.precision.bytes(),
            name: "all-gather weights",
            stage: action.stage,
        };
        let id = self.collective(&call, &[]);
        issued.gathered.insert(action.stage, id);
        Some(id)
    }

    /// After the passes.
    pub(super) fn synchronise(&mut self, issued: &mut Issued, load: &ModelLoad<'_>) {
        let Some(last) = issued.last else {
            return;
        };
        if !load.overlap {
            for (stage, bucket) in std::mem::take(&mut issued.buckets) {
                let reduced = self.reduce_bucket(issued, load, (stage, bucket, last));
                issued.syncs.extend(reduced);
            }
        }
        self.reduce_sequence(issued, load, last);
        self.reduce_tied(issued, load, last);
        self.reduce_norm(issued, load, last);
        let params = self.rank_params(issued.at.pp, load.shape);
        let task = self.program.task(Task::Optimizer {
            params: load.share(params, self.job.mesh.dp(), Zero::Optimizer),
        });
        let op = NewOp {
            what: What::Optimizer,
            stream: Stream::Compute,
            task,
            label: self.templates.optimizer,
            micro_batch: 0,
            stage: 0,
            memory: 0,
        };
        let optimizer = self.program.issue(op, &issued.syncs);
        if matches!(load.methods.zero, Zero::Optimizer | Zero::Gradients) && !load.overlap {
            self.gather_updated(issued, load, optimizer);
        }
    }

    /// With `ZeRO` 1 and 2: each rank has updated its share of the weights, and all get all.
    fn gather_updated(&mut self, issued: &mut Issued, load: &ModelLoad<'_>, optimizer: OpId) {
        if self.job.mesh.dp() == 1 {
            return;
        }
        let stages: Vec<usize> = self.job.schedule.stages_of(issued.at.pp).collect();
        for stage in stages {
            let call = Call {
                kind: Collective::AllGather,
                group: self.group_of(Axis::Dp, issued.at),
                what: Reduction::Weights(stage as u32),
                elements: self.stage_params(load.shape, stage),
                each: load.precision.bytes(),
                name: "all-gather weights",
                stage: stage as u32,
            };
            self.collective(&call, &[optimizer]);
        }
    }

    /// With sequence parallelism each rank's gradients of norms are of its share of the tokens.
    fn reduce_sequence(&mut self, issued: &mut Issued, load: &ModelLoad<'_>, last: OpId) {
        if !load.slices(self.job.mesh.tp()).cuts_sequence() {
            return;
        }
        let stages = self.job.schedule.stages_of(issued.at.pp);
        let norms: usize = stages.map(|stage| self.program.stages[stage].norms()).sum();
        let call = Call {
            kind: Collective::AllReduce,
            group: self.group_of(Axis::Tp, issued.at),
            what: Reduction::SequenceNorms,
            elements: 2 * (norms * load.shape.hidden) as u64,
            each: load.precision.grad_bytes(load.methods.grad_dtype),
            name: "all-reduce norms' gradients",
            stage: 0,
        };
        self.after_all(issued, &call, last);
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
            .map(|pp| self.program.mesh.rank(Coord { pp, ..issued.at }))
            .collect();
        ranks.sort_unstable();
        // A rank that holds both (a V placement) sums its own two: a group of one, which costs nothing.
        ranks.dedup();
        let call = Call {
            kind: Collective::AllReduce,
            group: self.group(Axis::Embedding, ranks[0], || ranks),
            what: Reduction::TiedEmbedding,
            elements: load.shape.embedding_params(self.job.mesh.tp()),
            each: load.precision.grad_bytes(load.methods.grad_dtype),
            name: "all-reduce tied embedding",
            stage: 0,
        };
        self.after_all(issued, &call, last);
    }

    /// A replica's ranks sum the squares of their gradients; with `ZeRO`, all ranks do, as each has squared
    /// its share alone.
    fn reduce_norm(&mut self, issued: &mut Issued, load: &ModelLoad<'_>, last: OpId) {
        let mesh = self.job.mesh;
        let shared = load.methods.zero != Zero::Off && mesh.dp() > 1;
        if mesh.tp() * mesh.pp() == 1 && !shared {
            return;
        }
        let axis = if shared { Axis::World } else { Axis::Model };
        let call = Call {
            kind: Collective::AllReduce,
            group: self.group_of(axis, issued.at),
            what: Reduction::Norm,
            elements: 1,
            each: 4,
            name: "all-reduce gradient norm",
            stage: 0,
        };
        self.after_all(issued, &call, last);
    }

    fn after_all(&mut self, issued: &mut Issued, call: &Call, last: OpId) {
        let mut waits = issued.syncs.clone();
        waits.push(last);
        self.synchronising(issued, call, &waits);
    }

    fn synchronising(&mut self, issued: &mut Issued, call: &Call, waits: &[OpId]) {
        let id = self.collective(call, waits);
        issued.syncs.push(id);
    }

    pub(super) fn collective(&mut self, call: &Call, waits: &[OpId]) -> OpId {
        let bytes = Bytes(call.elements * call.each);
        let task = self.collective_task(call.kind, call.group, bytes);
        let group = &self.program.groups[call.group as usize];
        let label = Label {
            group: Some(group.axis.name().into()),
            bytes: bytes.0,
            members: group.size as u32,
            ..Label::new(Kind::from(call.kind), call.name)
        };
        let label = self
            .templates
            .sync_label(&mut self.program, label, call.what);
        let op = NewOp {
            what: What::Collective {
                kind: call.kind,
                group: call.group,
                what: call.what,
                elements: call.elements,
            },
            stream: Stream::Dp,
            task,
            label,
            micro_batch: 0,
            stage: call.stage,
            memory: 0,
        };
        self.program.issue(op, waits)
    }

    pub(super) fn bucket_params(&self, shape: &ModelShape, stage: u32, bucket: Bucket) -> u64 {
        let stage = &self.program.stages[stage as usize];
        shape.stage_bucket(stage, bucket, self.job.mesh.tp())
    }

    fn stage_params(&self, shape: &ModelShape, stage: usize) -> u64 {
        shape.stage_params(&self.program.stages[stage], self.job.mesh.tp())
    }

    fn rank_params(&self, pp: usize, shape: &ModelShape) -> u64 {
        let stages = self.job.schedule.stages_of(pp);
        stages.map(|stage| self.stage_params(shape, stage)).sum()
    }

    /// What a rank holds from step to step.
    pub(super) fn fixed_memory(&self, at: Coord, load: &ModelLoad<'_>) -> FixedMemory {
        let stages = self.job.schedule.stages_of(at.pp);
        let stages = stages.map(|stage| &self.program.stages[stage]);
        let (tp, dp) = (self.job.mesh.tp(), self.job.mesh.dp());
        let whole = stages.map(|stage| load.whole(stage, tp));
        let whole = whole.fold(Whole::default(), Whole::max);
        let params = self.rank_params(at.pp, load.shape);
        load.fixed_memory((params, whole), dp)
    }
}

impl ModelLoad<'_> {
    /// Parameters that a pass over `stage` needs for a bucket: where the head multiplies by the embedding's matrix on
    /// the embedding's own stage, that too.
    pub(crate) fn gathered(&self, stage: &StageShape, bucket: Bucket, tp: usize) -> u64 {
        let own = self.shape.stage_bucket(stage, bucket, tp);
        let tied = self.shape.tied && stage.first && stage.last && bucket == Bucket::Head;
        own + if tied {
            self.shape.embedding_params(tp)
        } else {
            0
        }
    }

    /// What of a stage is whole at once, where data ranks share it.
    pub(crate) fn whole(&self, stage: &StageShape, tp: usize) -> Whole {
        let buckets = stage.buckets().into_iter();
        let sizes = buckets.map(|bucket| self.gathered(stage, bucket, tp));
        let all = self.shape.stage_params(stage, tp);
        let largest = sizes.max().unwrap_or_default();
        Whole {
            weights: largest * if self.overlap { 2 } else { 1 },
            gradients: if self.overlap {
                all.min(largest * 2)
            } else {
                all
            },
        }
    }

    /// What a rank of so many parameters holds from step to step, beside `dp - 1` others with the same, with room for
    /// what is whole for a while.
    pub(crate) fn fixed_memory(&self, (params, whole): (u64, Whole), dp: usize) -> FixedMemory {
        let share = |from| Bytes(self.share(params, dp, from));
        // Of what is whole, the rank's own share is counted already.
        let rest = |whole: u64, from| Bytes(whole - self.share(whole, dp, from));
        let (precision, grads) = (self.precision, self.methods.grad_dtype);
        let parameters = share(Zero::Parameters) + rest(whole.weights, Zero::Parameters);
        let gradients = share(Zero::Gradients) + rest(whole.gradients, Zero::Gradients);
        FixedMemory {
            parameters: parameters * precision.bytes(),
            gradients: gradients * precision.grad_bytes(grads),
            optimizer: share(Zero::Optimizer) * precision.optimizer_bytes(),
        }
    }

    /// A rank's share of what data ranks share from a stage of `ZeRO` on.
    fn share(&self, whole: u64, dp: usize, from: Zero) -> u64 {
        if self.methods.zero >= from {
            whole.div_ceil(dp as u64)
        } else {
            whole
        }
    }
}

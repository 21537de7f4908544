//! What data ranks share and must have whole for a while (`ZeRO` 3): a bucket's weights, gathered before each pass that
//! needs them, a bucket ahead, and let go after it.

use super::lower::{Issued, Load, Lowering};
use super::stage::PassTemplate;
use super::sync::Call;
use super::{OpId, Reduction};
use crate::mesh::Axis;
use crate::schedule::Action;
use crate::shape::{Bucket, Zero};
use crate::units::{Collective, Pass};

/// The buckets of a pass whose weights are gathered, in order, and how many of them are.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    buckets: Vec<Bucket>,
    gathers: Vec<OpId>,
    /// The one whose segments are being issued, counted from 1.
    at: usize,
}

/// The last two of operations that follow one another, of which a third must wait for the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastTwo {
    pub(super) older: Option<OpId>,
    newer: Option<OpId>,
}

impl LastTwo {
    pub(super) fn push(&mut self, id: Option<OpId>) {
        *self = Self {
            older: self.newer,
            newer: id,
        };
    }
}

impl Gathering {
    /// Whether nothing is gathered.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// What `action` needs gathered.
    fn new(template: &PassTemplate, pass: Pass) -> Self {
        let mut buckets: Vec<Bucket> = Vec::new();
        // A weight's gradient needs the weight of no layer, and a token's vector none either.
        let needs = |bucket: &Bucket| match pass {
            Pass::Forward => true,
            Pass::Backward | Pass::InputGrad => *bucket != Bucket::Embedding,
            Pass::WeightGrad => false,
        };
        let used = template.segments.iter().filter_map(|segment| segment.uses);
        for bucket in used.filter(needs) {
            if buckets.last() != Some(&bucket) {
                buckets.push(bucket);
            }
        }
        Self {
            buckets,
            ..Self::default()
        }
    }
}

impl Lowering<'_> {
    /// What `action` needs gathered from the data ranks; nothing but with `ZeRO` 3.
    pub(super) fn gathering(&self, template: &PassTemplate, action: Action) -> Gathering {
        match self.job.load {
            Load::Model(load)
                if load.methods.zero == Zero::Parameters && self.job.mesh.dp() > 1 =>
            {
                Gathering::new(template, action.pass)
            }
            Load::Model(_) | Load::Passes => Gathering::default(),
        }
    }

    /// Before a segment that uses the weights of `bucket`: gathers them if they are not there yet, and with overlap the
    /// next ones while these are computed with; what the segment waits for.
    pub(super) fn gather_for(
        &mut self,
        issued: &mut Issued,
        gathering: &mut Gathering,
        (stage, bucket): (u32, Bucket),
    ) -> Option<OpId> {
        let now = gathering.at;
        let same = now > 0 && gathering.buckets.get(now - 1) == Some(&bucket);
        if same || gathering.buckets.get(now) != Some(&bucket) {
            return None;
        }
        // The bucket before has been computed with.
        if now > 0 {
            issued.uses.push(issued.last);
        }
        let Load::Model(load) = self.job.load else {
            return None;
        };
        let ahead = now + 1 + usize::from(load.overlap);
        while gathering.gathers.len() < ahead.min(gathering.buckets.len()) {
            let next = gathering.buckets[gathering.gathers.len()];
            // Two buckets have room: one that is computed with, and the next.
            let room = match (load.overlap, gathering.gathers.len() > now) {
                (false, _) => issued.last,
                (true, true) => issued.uses.newer,
                (true, false) => issued.uses.older,
            };
            let call = Call {
                kind: Collective::AllGather,
                group: self.group_of(Axis::Dp, issued.at),
                what: Reduction::Gathered(next),
                elements: load.gathered(
                    &self.program.stages[stage as usize],
                    next,
                    self.job.mesh.tp(),
                ),
                each: load.precision.bytes(),
                name: "all-gather weights",
                stage,
            };
            let waits: Vec<OpId> = room.into_iter().collect();
            let id = self.collective(&call, &waits);
            gathering.gathers.push(id);
        }
        gathering.at += 1;
        gathering.gathers.get(now).copied()
    }
}

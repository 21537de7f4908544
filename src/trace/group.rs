//! Process groups as a trace knows them: which of its ranks are in one, and what a ring of them moves.

use std::collections::HashMap;

use super::{Kind, Label, RankInfo, Span, Stream, Trace};
use crate::units::{Axis, Collective, Nanos, Pass};

impl Label {
    /// The axis of its process group; none for a group of another program.
    pub fn axis(&self) -> Option<Axis> {
        Axis::from_name(self.group.as_deref()?)
    }

    /// What collective it is of, if it is one whose traffic is known.
    pub fn collective(&self) -> Option<Collective> {
        match self.kind {
            Kind::AllReduce => Some(Collective::AllReduce),
            Kind::ReduceScatter => Some(Collective::ReduceScatter),
            Kind::AllGather => Some(Collective::AllGather),
            Kind::Pass
            | Kind::Segment
            | Kind::Optimizer
            | Kind::Send
            | Kind::Collective
            | Kind::Kernel
            | Kind::Copy
            | Kind::End
            | Kind::Other => None,
        }
    }

    /// What each link carries of it, as a multiple of its bytes: bus bandwidth over algorithm bandwidth.
    ///
    /// 2(n-1)/n for an all-reduce of n, (n-1)/n for a reduce-scatter or an all-gather, 1 for a send; none where that is
    /// not known.
    pub fn bus_share(&self) -> Option<f64> {
        match (self.collective(), self.members) {
            (Some(kind), 1..) => Some(kind.bus_share(self.members as usize)),
            (None, _) if self.kind == Kind::Send => Some(1.0),
            _ => None,
        }
    }
}

impl Trace {
    /// From when to when a micro-batch is in flight on a rank: from its forward's start to the end of its backward or
    /// input-gradient on the same stage.
    pub fn in_flight(&self, rank_index: usize, micro_batch: u32) -> Vec<(Nanos, Nanos)> {
        let spans = self.lane(rank_index, Stream::Passes).spans().iter();
        let own = spans.map(|span| (span, self.label(span.label)));
        let own: Vec<_> = own
            .filter(|(_, label)| label.micro_batch == Some(micro_batch))
            .collect();
        let forwards = own
            .iter()
            .filter(|(_, label)| label.pass == Some(Pass::Forward));
        let flights = forwards.map(|(forward, label)| {
            let frees = |(_, other): &&(&Span, &Label)| {
                other.stage == label.stage && other.pass.is_some_and(Pass::makes_input_grad)
            };
            let freed = own.iter().find(frees);
            (
                forward.start,
                freed.map_or(self.makespan, |(span, _)| span.end),
            )
        });
        flights.collect()
    }
}

/// The process groups of a trace's ranks, each found once.
#[derive(Debug)]
pub struct Groups<'a> {
    trace: &'a Trace,
    last: u32,
    /// By axis, the coordinates that members have in common, and the members by place.
    known: HashMap<Axis, HashMap<[u32; 2], Vec<usize>>>,
}

impl<'a> Groups<'a> {
    /// Those of `trace`.
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            last: trace.ranks.iter().map(|info| info.pp).max().unwrap_or(0),
            known: HashMap::new(),
        }
    }

    /// The ranks that are in one group along `axis` with the one at `rank_index`, itself among them, by place.
    pub fn members(&mut self, rank_index: usize, axis: Axis) -> &[usize] {
        let Some(own) = self.trace.ranks.get(rank_index) else {
            return &[];
        };
        let common = |info: &RankInfo| match axis {
            Axis::Tp => [info.dp, info.pp],
            Axis::Dp => [info.tp, info.pp],
            Axis::Pp | Axis::Embedding => [info.dp, info.tp],
            Axis::Model => [info.dp, 0],
            Axis::World => [0, 0],
        };
        let (ranks, last) = (&self.trace.ranks, self.last);
        let groups = self.known.entry(axis).or_insert_with(|| {
            let mut groups: HashMap<[u32; 2], Vec<usize>> = HashMap::new();
            for (index, info) in ranks.iter().enumerate() {
                let ends = info.pp == 0 || info.pp == last;
                if axis != Axis::Embedding || ends {
                    groups.entry(common(info)).or_default().push(index);
                }
            }
            groups
        });
        groups.get(&common(own)).map_or(&[], Vec::as_slice)
    }
}

//! Process groups as a trace knows them: which of its ranks are in one, and what a ring of them moves.

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
    /// From when to when a rank keeps what a micro-batch's forward leaves: until the end of its backward or input-gradient on
    /// the same stage.
    pub fn kept(&self, rank_index: usize, micro_batch: u32) -> Vec<(Nanos, Nanos)> {
        let spans = self.lane(rank_index, Stream::Passes).spans().iter();
        let own = spans.map(|span| (span, self.label(span.label)));
        let own: Vec<_> = own
            .filter(|(_, label)| label.micro_batch == Some(micro_batch))
            .collect();
        let forwards = own
            .iter()
            .filter(|(_, label)| label.pass == Some(Pass::Forward));
        let kept = forwards.map(|(forward, label)| {
            let frees = |(_, other): &&(&Span, &Label)| {
                other.stage == label.stage && other.pass.is_some_and(Pass::makes_input_grad)
            };
            let freed = own.iter().find(frees);
            (
                forward.start,
                freed.map_or(self.makespan, |(span, _)| span.end),
            )
        });
        kept.collect()
    }

    /// The ranks that are in one group along `axis` with the one at `rank_index`, itself among them, by place.
    pub fn members(&self, rank_index: usize, axis: Axis) -> Vec<usize> {
        let Some(own) = self.ranks.get(rank_index) else {
            return Vec::new();
        };
        let last = self.ranks.iter().map(|info| info.pp).max().unwrap_or(0);
        let joins = |other: &RankInfo| {
            let (dp, tp, pp) = (own.dp == other.dp, own.tp == other.tp, own.pp == other.pp);
            match axis {
                Axis::Tp => dp && pp,
                Axis::Dp => tp && pp,
                Axis::Pp => dp && tp,
                Axis::Embedding => dp && tp && (other.pp == 0 || other.pp == last),
                Axis::Model => dp,
                Axis::World => true,
            }
        };
        let all = self.ranks.iter().enumerate();
        all.filter(|(_, info)| joins(info))
            .map(|(index, _)| index)
            .collect()
    }
}

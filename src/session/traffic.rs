//! What moved between ranks, group by group.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mesh::Axis;
use crate::plan::{Op, Plan, What};
use crate::trace::{Kind, Phase, Span, Stream, Trace};
use crate::units::{Collective, Nanos, Rank};

/// What moved in a group, per instance of it and step; instances that are alike share a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// The group's axis.
    pub group: String,
    /// `all_reduce`, `reduce_scatter`, `all_gather` or `send_recv`.
    pub kind: String,
    /// How many ranks each has.
    pub size: u32,
    /// The ranks of the first such instance; of a large one the first of them.
    pub ranks: Vec<u32>,
    /// How many instances are like it.
    pub instances: u32,
    /// Operations.
    pub count: u64,
    /// Their size, as nccl-tests would print it, times the count.
    pub bytes: u64,
    /// What the ranks really moved.
    pub wire_bytes: u64,
    /// Time in transfer, without waiting.
    pub time_s: f64,
    /// Bytes over time, in bytes a second.
    pub algbw: f64,
    /// What that asks of each link: algbw x 2(n-1)/n for an all-reduce of n, x (n-1)/n for a reduce-scatter or
    /// an all-gather, x 1 for a send.
    pub busbw: f64,
}

/// The most ranks of a group that are listed.
const MOST_LISTED: usize = 64;

/// Sums over the operations of one kind in an instance of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sums {
    count: u64,
    bytes: u64,
    time: Nanos,
}

impl Sums {
    /// Counts an operation; its time comes from its span, which one that takes none has not.
    fn count(&mut self, plan: &Plan, op: &Op) {
        let label = &plan.program().labels[op.label.0 as usize];
        self.count += 1;
        self.bytes = self.bytes.saturating_add(label.bytes);
    }
}

/// What instances that are alike share; no collective: a send.
type Alike = (Axis, Option<Collective>, usize, Sums);

impl TrafficReport {
    /// Of a step of `plan`.
    pub fn all(plan: &Plan, trace: &Trace) -> Vec<Self> {
        let mut rows: BTreeMap<Alike, (Vec<Rank>, u32)> = BTreeMap::new();
        let program = plan.program();
        let (mesh, fold) = (program.mesh, &program.fold);
        let mut add = |axis, kind, (ranks, size): (&[Rank], usize), sums| {
            let real = |cell: &Rank| program.real(*cell);
            let members = if ranks.len() == size || axis == Axis::Embedding {
                ranks.iter().map(real).collect()
            } else {
                fold.mesh.group(axis, fold.mesh.coord(real(&ranks[0])))
            };
            let entry = rows.entry((axis, kind, size, sums));
            entry.or_insert_with(|| (members, 0)).1 +=
                fold.groups(axis, mesh.coord(ranks[0])) as u32;
        };
        let (collectives, sends) = counted(plan);
        let groups = &program.groups;
        for ((group, kind), mut sums) in collectives {
            let group = &groups[group as usize];
            // A rank alone has no one to talk to.
            if group.size == 1 {
                continue;
            }
            // A collective takes the same time on every member: the first one's lane tells.
            let streams = [Stream::Tp, Stream::Dp];
            let ranks = &group.ranks;
            sums.time = transfer(trace, &ranks[..1], streams, group.axis, kind.into());
            add(group.axis, Some(kind), (ranks, group.size), sums);
        }
        let pipelines = mesh.groups(Axis::Pp);
        for (ranks, mut sums) in pipelines.iter().zip(sends) {
            let streams = [Stream::SendNext, Stream::SendPrev];
            sums.time = transfer(trace, ranks, streams, Axis::Pp, Kind::Send);
            if sums.count > 0 {
                add(Axis::Pp, None, (ranks, ranks.len()), sums);
            }
        }
        rows.into_iter()
            .map(|((axis, kind, size, sums), (ranks, instances))| {
                let kind_row = row(axis, kind, size, sums);
                Self {
                    size: size as u32,
                    ranks: ranks.iter().take(MOST_LISTED).map(|rank| rank.0).collect(),
                    instances,
                    ..kind_row
                }
            })
            .collect()
    }
}

/// How many collectives of each kind each group has, and how many sends each pipeline, with their sizes.
fn counted(plan: &Plan) -> (BTreeMap<(u32, Collective), Sums>, Vec<Sums>) {
    let program = plan.program();
    // A pipeline is known by its first rank, which is below all others.
    let pipelines = program.mesh.dp() * program.mesh.tp();
    let mut sends = vec![Sums::default(); pipelines];
    let mut collectives: BTreeMap<(u32, Collective), Sums> = BTreeMap::new();
    for rank in (0..program.mesh.ranks() as u32).map(Rank) {
        for id in program.ops_of(rank) {
            let op = program.op(id);
            match op.what {
                What::Send { .. } => sends[rank.index() % pipelines].count(plan, op),
                // Every member counts the same: the first one tells.
                What::Collective { kind, group, .. }
                    if program.groups[group as usize].ranks[0] == rank =>
                {
                    let sums = collectives.entry((group, kind)).or_default();
                    sums.count(plan, op);
                }
                What::Collective { .. }
                | What::Compute { .. }
                | What::Optimizer
                | What::Receive { .. } => {}
            }
        }
    }
    (collectives, sends)
}

/// Time in transfer on streams of ranks, for operations of a kind in groups along `axis`.
fn transfer(trace: &Trace, ranks: &[Rank], streams: [Stream; 2], axis: Axis, kind: Kind) -> Nanos {
    let is_it = |span: &&Span| {
        let label = trace.label(span.label);
        span.phase == Phase::Transfer
            && label.kind == kind
            && label.group.as_deref() == Some(axis.name())
    };
    let lanes = ranks
        .iter()
        .flat_map(|rank| streams.map(|stream| trace.lane(rank.index(), stream)));
    lanes
        .flat_map(|lane| lane.spans().iter())
        .filter(is_it)
        .map(Span::duration)
        .sum()
}

fn row(axis: Axis, kind: Option<Collective>, n: usize, sums: Sums) -> TrafficReport {
    let (name, share, wire) = match kind {
        Some(kind) => (kind.id(), kind.bus_share(n), kind.rounds() * (n as u64 - 1)),
        None => ("send_recv", 1.0, 1),
    };
    let algbw = if sums.time == Nanos::ZERO {
        0.0
    } else {
        sums.bytes as f64 / sums.time.secs()
    };
    TrafficReport {
        group: axis.name().to_owned(),
        kind: name.to_owned(),
        size: n as u32,
        ranks: Vec::new(),
        instances: 0,
        count: sums.count,
        bytes: sums.bytes,
        wire_bytes: wire.saturating_mul(sums.bytes),
        time_s: sums.time.secs(),
        algbw,
        busbw: algbw * share,
    }
}

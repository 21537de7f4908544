//! Small traces for tests: 1F1B with even stages, its sends, collectives and memory.

use crate::trace::{
    Arrow, FixedMemory, Kind, Label, Labels, Memory, Phase, RankInfo, Span, Stream, Trace,
};
use crate::units::{Bytes, Nanos, Pass, Rank};

/// What to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) dp: u32,
    pub(crate) tp: u32,
    pub(crate) pp: u32,
    pub(crate) micro_batches: u32,
}

const FORWARD: u64 = 1_000_000;
const FLIGHT: u64 = 90_000;
const SYNC: u64 = 900_000;
const OPTIMIZER: u64 = 450_000;

/// The passes of a pipeline rank, with their times.
type Passes = Vec<(Pass, u32, u64, u64)>;

impl Sample {
    pub(crate) fn trace(self) -> Trace {
        let passes = self.schedule();
        let ends: Vec<u64> = passes.iter().map(|rank| rank.last().unwrap().3).collect();
        let pipeline_end = *ends.iter().max().unwrap();
        let makespan = pipeline_end + SYNC + OPTIMIZER;
        let mut labels = Labels::default();
        let mut ranks = Vec::new();
        for pp in 0..self.pp {
            for dp in 0..self.dp {
                for tp in 0..self.tp {
                    ranks.push(RankInfo {
                        rank: Rank(ranks.len() as u32),
                        dp,
                        tp,
                        pp,
                        count: 1,
                        pipeline_end: Nanos(pipeline_end),
                        peak_in_flight: self.micro_batches.min(self.pp - pp),
                    });
                }
            }
        }
        let mut trace = Trace::new(ranks, Vec::new());
        for index in 0..trace.ranks.len() {
            let pp = trace.ranks[index].pp as usize;
            self.fill_passes(&mut trace, &mut labels, index, &passes[pp]);
            fill_gaps(&mut trace, &mut labels, index, (pipeline_end, makespan));
            fill_memory(&mut trace, &passes[pp]);
        }
        trace.labels = labels.into_vec();
        trace.makespan = Nanos(makespan);
        trace
    }

    /// 1F1B, each pass as early as it can be; B takes twice as long as F.
    fn schedule(self) -> Vec<Passes> {
        let (p, m) = (self.pp as usize, self.micro_batches as usize);
        let orders: Vec<Vec<(Pass, usize)>> = (0..p)
            .map(|rank| {
                let warm_up = (p - 1 - rank).min(m);
                let mut order: Vec<_> = (0..warm_up).map(|i| (Pass::Forward, i)).collect();
                for i in 0..m - warm_up {
                    order.push((Pass::Forward, warm_up + i));
                    order.push((Pass::Backward, i));
                }
                order.extend((m - warm_up..m).map(|i| (Pass::Backward, i)));
                order
            })
            .collect();
        let mut ends = std::collections::HashMap::new();
        let mut done: Vec<Passes> = vec![Vec::new(); p];
        while done
            .iter()
            .zip(&orders)
            .any(|(done, order)| done.len() < order.len())
        {
            for rank in 0..p {
                let Some(&(pass, batch)) = orders[rank].get(done[rank].len()) else {
                    continue;
                };
                let needs = match pass {
                    Pass::Forward if rank > 0 => Some((pass, rank - 1, batch)),
                    Pass::Backward if rank + 1 < p => Some((pass, rank + 1, batch)),
                    Pass::Forward | Pass::Backward | Pass::InputGrad | Pass::WeightGrad => None,
                };
                let ready = match needs.map(|key| ends.get(&key)) {
                    None => 0,
                    Some(None) => continue,
                    Some(Some(end)) => end + FLIGHT,
                };
                let free = done[rank].last().map_or(0, |last| last.3);
                let start = ready.max(free);
                let end = start
                    + if pass == Pass::Forward {
                        FORWARD
                    } else {
                        2 * FORWARD
                    };
                ends.insert((pass, rank, batch), end);
                done[rank].push((pass, batch as u32, start, end));
            }
        }
        done
    }

    fn fill_passes(self, trace: &mut Trace, labels: &mut Labels, index: usize, passes: &Passes) {
        let info = trace.ranks[index];
        for &(pass, batch, start, end) in passes {
            let label = Label {
                pass: Some(pass),
                micro_batch: Some(batch),
                stage: Some(info.pp),
                ..Label::new(Kind::Pass, format!("{}{batch}", pass.letter()))
            };
            push(
                trace,
                (index, Stream::Passes),
                labels,
                label.clone(),
                (start, end, Phase::Busy),
            );
            let mut segment = label.clone();
            segment.kind = Kind::Segment;
            segment.name = "attention".into();
            if self.tp > 1 {
                let (one, two) = (u64::midpoint(start, end), start + (end - start) * 5 / 8);
                let reduce = Label {
                    group: Some("tp".into()),
                    bytes: 1 << 20,
                    ..Label::new(Kind::AllReduce, "all-reduce activations")
                };
                let compute = (index, Stream::Compute);
                push(
                    trace,
                    compute,
                    labels,
                    segment.clone(),
                    (start, one, Phase::Busy),
                );
                push(
                    trace,
                    compute,
                    labels,
                    segment.clone(),
                    (one, two, Phase::Transfer),
                );
                push(trace, compute, labels, segment, (two, end, Phase::Busy));
                push(
                    trace,
                    (index, Stream::Tp),
                    labels,
                    reduce,
                    (one, two, Phase::Transfer),
                );
            } else {
                push(
                    trace,
                    (index, Stream::Compute),
                    labels,
                    segment,
                    (start, end, Phase::Busy),
                );
            }
            self.send(trace, labels, index, &label, end);
        }
    }

    fn send(self, trace: &mut Trace, labels: &mut Labels, index: usize, of: &Label, end: u64) {
        let info = trace.ranks[index];
        let forward = of.pass == Some(Pass::Forward);
        let next = self.dp * self.tp;
        let (stream, to) = match (forward, info.pp) {
            (true, pp) if pp + 1 < self.pp => (Stream::SendNext, info.rank.0 + next),
            (false, pp) if pp > 0 => (Stream::SendPrev, info.rank.0 - next),
            _ => return,
        };
        let label = Label {
            kind: Kind::Send,
            name: "send".into(),
            group: Some("pp".into()),
            bytes: 131_072,
            ..of.clone()
        };
        let times = (end, end + FLIGHT, Phase::Transfer);
        let id = push(trace, (index, stream), labels, label, times);
        trace.arrows.push(Arrow {
            from: info.rank,
            left: Nanos(end),
            to: Rank(to),
            arrived: Nanos(end + FLIGHT),
            label: id,
        });
    }
}

fn fill_memory(trace: &mut Trace, passes: &Passes) {
    let mut activations = Vec::new();
    let mut held: u64 = 0;
    for &(pass, _, start, end) in passes {
        let time = if pass == Pass::Forward {
            held += 1;
            start
        } else {
            held -= 1;
            end
        };
        activations.push((Nanos(time), Bytes(held * 3_000_000)));
    }
    trace.memory.push(Memory {
        fixed: FixedMemory {
            parameters: Bytes(1_600_000),
            gradients: Bytes(1_600_000),
            optimizer: Bytes(3_200_000),
        },
        activations,
    });
}

/// Fills what is between passes, and the end: waiting for the others, the all-reduce, the optimizer.
fn fill_gaps(
    trace: &mut Trace,
    labels: &mut Labels,
    index: usize,
    (pipeline_end, makespan): (u64, u64),
) {
    let busy: Vec<Span> = trace.lane(index, Stream::Compute).spans().to_vec();
    let compute = (index, Stream::Compute);
    let mut last = 0;
    for span in &busy {
        let from = span.start.0.saturating_sub(FLIGHT).max(last);
        let end = Label::new(Kind::End, "next pass");
        push(
            trace,
            compute,
            labels,
            end.clone(),
            (last, from, Phase::Idle),
        );
        push(
            trace,
            compute,
            labels,
            end,
            (from, span.start.0, Phase::Transfer),
        );
        last = span.end.0;
    }
    let end = Label::new(Kind::End, "all-reduce");
    push(
        trace,
        compute,
        labels,
        end,
        (last, pipeline_end, Phase::Idle),
    );
    fill_end(trace, labels, index, (pipeline_end, makespan));
}

/// The all-reduce, which the first third waits for, and the optimizer.
fn fill_end(trace: &mut Trace, labels: &mut Labels, index: usize, (start, end): (u64, u64)) {
    let reduce = Label {
        group: Some("dp".into()),
        bytes: 6_400_000,
        ..Label::new(Kind::AllReduce, "all-reduce gradients")
    };
    let then = Label::new(Kind::End, "all-reduce");
    let optimizer = Label::new(Kind::Optimizer, "optimizer");
    let (waited, synced) = (start + SYNC / 3, start + SYNC);
    let [dp, compute, passes] =
        [Stream::Dp, Stream::Compute, Stream::Passes].map(|stream| (index, stream));
    for (place, label, span) in [
        (dp, &reduce, (start, waited, Phase::Waiting)),
        (dp, &reduce, (waited, synced, Phase::Transfer)),
        (compute, &then, (start, waited, Phase::Waiting)),
        (compute, &then, (waited, synced, Phase::Transfer)),
        (compute, &optimizer, (synced, end, Phase::Busy)),
        (passes, &optimizer, (synced, end, Phase::Busy)),
    ] {
        push(trace, place, labels, label.clone(), span);
    }
}

fn push(
    trace: &mut Trace,
    (index, stream): (usize, Stream),
    labels: &mut Labels,
    label: Label,
    (start, end, phase): (u64, u64, Phase),
) -> crate::trace::LabelId {
    let label = labels.id(label);
    trace.lane_mut(index, stream).push(Span {
        start: Nanos(start),
        end: Nanos(end),
        label,
        phase,
    });
    label
}

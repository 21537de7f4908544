//! A step in closed form: no plan and no clock, for thousands of layouts a second.
//!
//! What is summed is what a plan would hold, at the same prices. How it adds up to a step is what 1F1B,
//! GPipe and their interleaved forms come to with asynchronous sends: a micro-batch's way through all
//! stages, then the slowest rank's work for each of the others. A test holds it to the simulation.

use crate::hardware::{Pricing, Task};
use crate::mesh::{Axis, Coord, Mesh, Placement};
use crate::plan::{Layout, LayoutError, ModelLoad, Whole};
use crate::schedule::{Chunks, ScheduleKind};
use crate::shape::{Bucket, Recompute, StageShape, Zero};
use crate::units::{Bytes, Collective, Nanos, Pass};

/// A step, in closed form.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// All ranks, synchronisation and optimizer included.
    pub step: Nanos,
    /// To the end of the last pass.
    pub pipeline: Nanos,
    /// The share of idle time, and of sends waited for, in the pipeline's.
    pub bubble: f64,
    /// The fullest rank's memory at its peak.
    pub memory: Bytes,
}

/// A stage's passes, and what it keeps of a micro-batch between them.
#[derive(Clone, Copy, Debug, Default)]
struct StageCost {
    forward: f64,
    backward: f64,
    kept: f64,
}

/// What a rank holds and does.
#[derive(Clone, Copy, Debug, Default)]
struct RankCost {
    forward: f64,
    backward: f64,
    kept: f64,
    params: u64,
    /// What is whole at once of what data ranks share.
    whole: Whole,
    /// Gathering its weights for a micro-batch's forward passes, and for its backward ones.
    gather_forward: f64,
    gather_backward: f64,
    /// Reducing all its gradients, and the last of them alone.
    reduce: f64,
    last_reduce: f64,
}

/// A layout to be estimated.
struct Estimator<'a> {
    layout: &'a Layout,
    load: &'a ModelLoad<'a>,
    pricing: &'a dyn Pricing,
    mesh: Mesh,
    stages: Vec<StageShape>,
}

/// What `layout` comes to.
pub fn estimate(
    layout: &Layout,
    load: &ModelLoad<'_>,
    pricing: &dyn Pricing,
) -> Result<Estimate, LayoutError> {
    let mesh = layout.mesh()?;
    let stages = load.stages(layout.pp * layout.chunks)?;
    let estimator = Estimator {
        layout,
        load,
        pricing,
        mesh,
        stages,
    };
    Ok(estimator.run())
}

impl Estimator<'_> {
    fn run(&self) -> Estimate {
        let Layout {
            pp: p,
            micro_batches: m,
            chunks: v,
            schedule,
            ..
        } = *self.layout;
        let ranks = self.ranks();
        let passes = |rank: &RankCost| rank.forward + rank.backward;
        let way: f64 = ranks.iter().map(passes).sum();
        let send = self.send();
        // 1F1B goes round in circles of neighbours, and each waits for the sends of its circle. GPipe does not,
        // and interleaved each chunk's send is under another's pass.
        let waits = if v == 1 && schedule != ScheduleKind::GPipe {
            2.0 * send * (p - 1) as f64 / p as f64
        } else {
            0.0
        };
        let slowest = ranks.iter().enumerate().map(|(index, rank)| {
            let last = index + 1 == p;
            passes(rank) + if last { 0.0 } else { waits }
        });
        let slowest = slowest.fold(0.0, f64::max);
        let first = passes(&ranks[0]);
        let hand_overs = 2.0 * (p * v - 1).min(if v == 1 { p - 1 } else { usize::MAX }) as f64;
        let ramp = first + (way - first) / v as f64 + hand_overs * send;
        let pipeline = if p == 1 {
            m as f64 * first
        } else {
            ramp + (m - 1) as f64 * slowest
        };
        let sync = ranks.iter().map(|rank| self.synchronise(rank));
        let sync = sync.fold(0.0, f64::max) + self.tied() + self.norms() + self.norm();
        let busy = m as f64 * way;
        Estimate {
            step: Nanos::from_secs(pipeline + self.gather(&ranks[0]) + sync),
            pipeline: Nanos::from_secs(pipeline),
            bubble: 1.0 - busy / (p as f64 * pipeline).max(f64::MIN_POSITIVE),
            memory: self.memory(&ranks),
        }
    }

    fn price(&self, task: &Task) -> f64 {
        let price = self.pricing.price(task);
        (price.occupies + price.delay).secs()
    }

    /// A collective of the group along `axis` of the first rank.
    fn collective(&self, kind: Collective, axis: Axis, bytes: Bytes) -> f64 {
        let node = self.load.gpus_per_node.max(1);
        let (ranks, per_node) = if axis == Axis::World {
            (self.mesh.ranks(), node.min(self.mesh.ranks()))
        } else {
            let at = self.mesh.coord(crate::units::Rank(0));
            let group = self.mesh.group(axis, at);
            let first = group[0].index() / node;
            let together = group.iter().filter(|rank| rank.index() / node == first);
            (group.len(), together.count())
        };
        self.price(&Task::Collective {
            kind,
            bytes,
            ranks,
            per_node,
        })
    }

    fn stage(&self, stage: &StageShape) -> StageCost {
        let tp = self.layout.tp;
        let time = |pass| {
            let steps = stage.steps(pass, self.load.slices(tp), self.load.methods.recompute);
            let mut time = 0.0;
            for (index, step) in steps.into_iter().enumerate() {
                let mut work = self.load.work(step, pass, tp);
                if index == 0 {
                    work.passes = 1.0;
                }
                time += self.price(&Task::Compute(work));
                for &what in step.reduces {
                    let (_, bytes) = self.load.reduced(what);
                    time += self.collective(what.collective(), Axis::Tp, bytes);
                }
            }
            time
        };
        let steps = stage.steps(Pass::Forward, self.load.slices(tp), Recompute::None);
        let kept = steps
            .into_iter()
            .map(|step| self.load.memory(step, Pass::Forward, tp));
        StageCost {
            forward: time(Pass::Forward),
            backward: time(Pass::Backward),
            kept: kept.sum::<i64>() as f64,
        }
    }

    /// All stages: those of a kind differ by their layers alone.
    fn stage_costs(&self) -> Vec<StageCost> {
        let of = |layers: usize, first, last| {
            self.stage(&StageShape {
                layers: 0..layers,
                first,
                last,
            })
        };
        let (one, two) = (of(1, false, false), of(2, false, false));
        let layer = StageCost {
            forward: two.forward - one.forward,
            backward: two.backward - one.backward,
            kept: two.kept - one.kept,
        };
        let (first, last, only) = (of(1, true, false), of(1, false, true), of(1, true, true));
        let cost = |stage: &StageShape| {
            let base = match (stage.first, stage.last) {
                (true, true) => only,
                (true, false) => first,
                (false, true) => last,
                (false, false) => one,
            };
            let more = stage.layers.len() as f64 - 1.0;
            StageCost {
                forward: (base.forward + more * layer.forward).max(0.0),
                backward: (base.backward + more * layer.backward).max(0.0),
                kept: (base.kept + more * layer.kept).max(0.0),
            }
        };
        self.stages.iter().map(cost).collect()
    }

    fn ranks(&self) -> Vec<RankCost> {
        let placement = match self.layout.schedule.chunks() {
            Chunks::Vee => Placement::Vee,
            Chunks::One | Chunks::Loop => Placement::Loop,
        };
        let mut ranks = vec![RankCost::default(); self.layout.pp];
        let layer = self.bucket(&self.stages[0], Bucket::Layer(0));
        for (index, (stage, cost)) in self.stages.iter().zip(self.stage_costs()).enumerate() {
            let rank = &mut ranks[placement.holder(index, self.layout.pp)];
            rank.forward += cost.forward;
            rank.backward += cost.backward;
            rank.kept += cost.kept;
            rank.params += self.load.shape.stage_params(stage, self.layout.tp);
            rank.whole = rank.whole.max(self.load.whole(stage, self.layout.tp));
            rank.reduce += layer * stage.layers.len() as f64;
            rank.last_reduce = rank.last_reduce.max(layer);
            if stage.first {
                rank.last_reduce = self.bucket(stage, Bucket::Embedding);
                rank.reduce += rank.last_reduce;
            }
            if stage.last {
                rank.reduce += self.bucket(stage, Bucket::Head);
            }
            let [forward, backward] = self.gathers(stage);
            rank.gather_forward += forward;
            rank.gather_backward += backward;
        }
        for rank in &mut ranks {
            self.share(rank);
        }
        ranks
    }

    /// Gathering the weights that a pass needs of a bucket (`ZeRO` 3).
    fn gathered(&self, stage: &StageShape, bucket: Bucket) -> f64 {
        self.weights(self.load.gathered(stage, bucket, self.layout.tp))
    }

    /// Gathering a stage's weights for a forward pass and for a backward one (`ZeRO` 3).
    fn gathers(&self, stage: &StageShape) -> [f64; 2] {
        if self.load.methods.zero != Zero::Parameters {
            return [0.0; 2];
        }
        let time = |bucket: &Bucket| self.gathered(stage, *bucket);
        let all = stage.buckets();
        let forward: f64 = all.iter().map(time).sum();
        let embedding = all.iter().filter(|bucket| **bucket == Bucket::Embedding);
        [forward, forward - embedding.map(time).sum::<f64>()]
    }

    /// What data ranks do together for each micro-batch, where they share gradients and weights (`ZeRO` 2 and 3): under
    /// the passes, which take as long as that if they are shorter, or between them.
    fn share(&self, rank: &mut RankCost) {
        if self.load.methods.zero < Zero::Gradients {
            return;
        }
        let together = [rank.gather_forward, rank.gather_backward + rank.reduce];
        for (pass, together) in [&mut rank.forward, &mut rank.backward]
            .into_iter()
            .zip(together)
        {
            *pass = if self.load.overlap {
                pass.max(together)
            } else {
                *pass + together
            };
        }
    }

    /// Reducing a bucket's gradients.
    fn bucket(&self, stage: &StageShape, bucket: Bucket) -> f64 {
        if self.layout.dp == 1 || self.load.methods.no_sync {
            return 0.0;
        }
        let params = self.load.shape.stage_bucket(stage, bucket, self.layout.tp);
        let kind = if self.load.methods.zero == Zero::Off {
            Collective::AllReduce
        } else {
            Collective::ReduceScatter
        };
        self.collective(kind, Axis::Dp, self.grad_bytes(params))
    }

    fn grad_bytes(&self, params: u64) -> Bytes {
        let each = self.load.precision.grad_bytes(self.load.methods.grad_dtype);
        Bytes(params * each)
    }

    /// After a rank's last pass: what is left of its gradients' reductions, and its optimizer.
    fn synchronise(&self, rank: &RankCost) -> f64 {
        let left = if self.load.methods.zero >= Zero::Gradients {
            // Each micro-batch's are reduced with its pass.
            if self.load.overlap {
                rank.last_reduce
            } else {
                0.0
            }
        } else if self.load.overlap {
            rank.last_reduce.max(rank.reduce - self.hiding(rank))
        } else {
            rank.reduce
        };
        let shares = if self.load.methods.zero == Zero::Off {
            1
        } else {
            self.layout.dp as u64
        };
        let params = rank.params.div_ceil(shares);
        let gathered = if self.load.overlap || self.load.methods.zero == Zero::Parameters {
            0.0
        } else {
            self.weights(rank.params)
        };
        left + self.price(&Task::Optimizer { params }) + gathered
    }

    /// The time in which reductions are hidden: from the last backward of a rank's last chunk to that of its first,
    /// between which each chunk has a group of micro-batches, and that last pass itself.
    fn hiding(&self, rank: &RankCost) -> f64 {
        let Layout {
            pp,
            micro_batches,
            chunks,
            ..
        } = *self.layout;
        let group = pp.min(micro_batches);
        let passes = (chunks - 1) * group + 1;
        rank.backward / chunks as f64 * passes as f64
    }

    /// Gathering so many weights that data ranks share (`ZeRO`).
    fn weights(&self, params: u64) -> f64 {
        if self.load.methods.zero == Zero::Off || self.layout.dp == 1 {
            return 0.0;
        }
        let bytes = Bytes(params * self.load.precision.bytes());
        self.collective(Collective::AllGather, Axis::Dp, bytes)
    }

    /// What a step waits for before its first pass.
    fn gather(&self, first: &RankCost) -> f64 {
        if self.load.methods.zero == Zero::Parameters {
            let bucket = self.stages[0].buckets().into_iter().next();
            bucket.map_or(0.0, |bucket| self.gathered(&self.stages[0], bucket))
        } else if self.load.overlap {
            self.weights(first.params / self.layout.chunks as u64)
        } else {
            0.0
        }
    }

    fn tied(&self) -> f64 {
        if !self.load.shape.tied || self.stages.len() == 1 || self.layout.pp == 1 {
            return 0.0;
        }
        let bytes = self.grad_bytes(self.load.shape.embedding_params(self.layout.tp));
        self.collective(Collective::AllReduce, Axis::Embedding, bytes)
    }

    fn norm(&self) -> f64 {
        let Layout { dp, tp, pp, .. } = *self.layout;
        let shared = self.load.methods.zero != Zero::Off && dp > 1;
        let axis = if shared { Axis::World } else { Axis::Model };
        if tp * pp == 1 && !shared {
            0.0
        } else {
            self.collective(Collective::AllReduce, axis, Bytes(4))
        }
    }

    /// With sequence parallelism, the norms' gradients.
    fn norms(&self) -> f64 {
        if !self.load.slices(self.layout.tp).cuts_sequence() {
            return 0.0;
        }
        let norms: usize = self.stages.iter().map(StageShape::norms).sum();
        let each = norms.div_ceil(self.layout.pp) * 2 * self.load.shape.hidden;
        let bytes = self.grad_bytes(each as u64);
        self.collective(Collective::AllReduce, Axis::Tp, bytes)
    }

    fn send(&self) -> f64 {
        if self.layout.pp == 1 {
            return 0.0;
        }
        let rank = |pp| self.mesh.rank(Coord { dp: 0, tp: 0, pp });
        let node = |pp| rank(pp).index() / self.load.gpus_per_node.max(1);
        let leaves = (1..self.layout.pp).any(|pp| node(pp) != node(pp - 1));
        self.price(&self.load.send(self.layout.tp, leaves))
    }

    fn memory(&self, ranks: &[RankCost]) -> Bytes {
        let page = self.layout.textbook();
        let m = self.layout.micro_batches as u64;
        let of = |(index, rank): (usize, &RankCost)| {
            let chunks = self.layout.chunks as f64;
            let in_flight = page.in_flight(index).unwrap_or(m * chunks as u64) as f64;
            let params = (rank.params, rank.whole);
            let fixed = self.load.fixed_memory(params, self.layout.dp).total();
            fixed + Bytes((rank.kept / chunks * in_flight) as u64) + self.load.again(self.layout.tp)
        };
        ranks.iter().enumerate().map(of).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::simulate;
    use crate::hardware::{CostModel, Hardware};
    use crate::mesh::Fold;
    use crate::plan::{Job, Load, lower};
    use crate::shape::{Methods, ModelShape};

    /// Of a layout on A100s: the estimate, and the step as simulated.
    fn both(
        model: &str,
        layout: Layout,
        methods: Methods,
        overlap: bool,
    ) -> (Estimate, Nanos, Bytes) {
        let hardware = Hardware::profile("a100-80gb").unwrap();
        let shape = ModelShape::preset(model).unwrap();
        let load = ModelLoad {
            shape: &shape,
            micro_batch_size: layout.micro_batch_size,
            precision: hardware.precision,
            overlap,
            methods,
            gpus_per_node: hardware.gpus_per_node,
            layers_per_stage: None,
        };
        let costs = CostModel {
            precision: hardware.precision,
            gradients: methods.grad_dtype,
            hardware,
        };
        let estimate = estimate(&layout, &load, &costs).unwrap();
        let mesh = layout.mesh().unwrap();
        let fold = Fold::whole(mesh, 8);
        let plan = lower(&Job {
            mesh,
            fold: fold.as_ref(),
            schedule: &layout.build_schedule().unwrap(),
            load: Load::Model(load),
        });
        let trace = simulate(&plan.unwrap(), &costs);
        let peak = trace.memory.iter().map(crate::trace::Memory::peak).max();
        (estimate, trace.makespan, peak.unwrap_or_default())
    }

    /// By what shares the estimate's step and memory differ from the simulation's.
    fn apart(model: &str, layout: Layout, methods: Methods, overlap: bool) -> (f64, f64) {
        let (estimate, step, peak) = both(model, layout, methods, overlap);
        let error = estimate.step.secs() / step.secs() - 1.0;
        let memory = estimate.memory.mib() / peak.mib() - 1.0;
        println!("{model} {layout:?} {methods:?} {overlap}: {error:+.3} {memory:+.3}");
        (error.abs(), memory.abs())
    }

    #[test]
    fn it_is_the_simulations_step_within_a_few_per_cent() {
        let full = Methods {
            recompute: Recompute::Full,
            ..Methods::default()
        };
        let shared = Methods {
            recompute: Recompute::Selective,
            sequence_parallel: true,
            zero: Zero::Optimizer,
            ..Methods::default()
        };
        let mut errors = Vec::new();
        for (model, [dp, tp, pp, m, b, v]) in [
            ("megatron-1.7b", [8, 1, 1, 4, 4, 1]),
            ("megatron-3.6b", [4, 2, 2, 8, 2, 1]),
            ("megatron-7.5b", [4, 4, 4, 16, 1, 1]),
            ("megatron-18.4b", [2, 8, 4, 8, 2, 1]),
            ("megatron-39.1b", [2, 8, 8, 32, 1, 2]),
            ("megatron-76.1b", [4, 8, 4, 32, 2, 3]),
            ("megatron-145.6b", [2, 8, 8, 64, 1, 5]),
            ("gpt3-175b", [1, 8, 8, 64, 1, 3]),
            ("gpt3-175b", [1, 8, 16, 32, 1, 1]),
            ("llama2-70b", [2, 8, 8, 16, 1, 1]),
        ] {
            let layout = Layout {
                dp,
                tp,
                pp,
                micro_batches: m,
                micro_batch_size: b,
                schedule: ScheduleKind::one_f_one_b(v),
                chunks: v,
            };
            for (methods, overlap) in [(full, false), (shared, true), (Methods::default(), true)] {
                errors.push(apart(model, layout, methods, overlap));
            }
        }
        let mean = errors.iter().map(|(step, _)| step).sum::<f64>() / errors.len() as f64;
        let worst = errors
            .iter()
            .fold(0.0, |worst: f64, (step, _)| worst.max(*step));
        let memory = errors
            .iter()
            .fold(0.0, |worst: f64, (_, peak)| worst.max(*peak));
        assert!(mean < 0.01 && worst < 0.04, "mean {mean}, worst {worst}");
        assert!(memory < 0.1, "{memory}");
    }

    #[test]
    fn what_is_shared_for_each_micro_batch_is_estimated_within_a_twentieth() {
        for (model, [dp, tp, pp, m, b]) in [
            ("megatron-1.7b", [8, 1, 1, 4, 4]),
            ("megatron-7.5b", [16, 1, 1, 2, 1]),
            ("megatron-18.4b", [16, 8, 1, 4, 2]),
            ("megatron-7.5b", [8, 1, 4, 16, 1]),
        ] {
            for (zero, overlap) in [
                (Zero::Gradients, true),
                (Zero::Gradients, false),
                (Zero::Parameters, true),
                (Zero::Parameters, false),
            ] {
                let layout = Layout {
                    dp,
                    tp,
                    pp,
                    micro_batches: m,
                    micro_batch_size: b,
                    ..Layout::default()
                };
                let methods = Methods {
                    zero,
                    ..Methods::default()
                };
                let (error, memory) = apart(model, layout, methods, overlap);
                assert!(error < 0.05, "{layout:?} {zero:?} {overlap}: {error}");
                assert!(memory < 0.05, "{layout:?} {zero:?} {overlap}: {memory}");
            }
        }
    }
}

//! `emulate`: the real maths of every rank, on this machine's cores.
//!
//! The plan's operations are run in an order that their data allows, by as many threads as there are; the
//! virtual clock is told separately, from what they cost. Sums are added in an order that the plan fixes,
//! so losses and weights have the same bits on any number of threads, one and none of its own included.

mod data;
mod execute;
mod worklist;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Tensor;

use self::data::DataGraph;
use self::execute::Step;
use crate::mesh::{Axis, Coord};
use crate::model::{
    ModelError, Shard, ShardPlace, Weights, clip_scale, gather, gather_gradient_shares,
    gather_gradients, gather_shares,
};
use crate::plan::{OpId, Plan, What};
use crate::shape::{ModelShape, Zero};
use crate::units::{Nanos, Rank};
use crate::wall::Stopwatch;

/// Why a step came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The maths failed.
    #[error("rank {rank}, {what}: {source}")]
    Maths {
        /// On which rank.
        rank: Rank,
        /// In which operation.
        what: String,
        /// How.
        source: ModelError,
    },
    /// Shards could not be made or put together.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The loss or the gradients are not numbers any more.
    #[error(
        "step {step}: the {what} is not a finite number ({value}); a lower learning rate or clipping keeps training stable"
    )]
    NotFinite {
        /// Which step, from 0.
        step: u64,
        /// Of what.
        what: &'static str,
        /// What it is.
        value: f64,
    },
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// A thread could not be started, or failed.
    #[error("a worker thread failed: {0}")]
    Thread(String),
    /// The plan has no model.
    #[error("a plan of bare passes has no maths to emulate")]
    NoModel,
}

/// What a step came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Mean cross-entropy over the batch's tokens, before the update.
    pub loss: f64,
    /// The gradients' global norm, before clipping.
    pub grad_norm: f64,
    /// How long each operation took on this machine; what moves data between ranks takes nothing.
    pub took: Vec<Nanos>,
    /// The whole gradients, before clipping, if they were asked for.
    pub gradients: Option<Weights>,
}

/// All ranks of a plan, with their shards.
#[derive(Debug)]
pub struct Emulator {
    plan: Arc<Plan>,
    graph: DataGraph,
    shape: ModelShape,
    /// The shard of each stage on each rank that holds it.
    shards: HashMap<(Rank, u32), Shard>,
    /// Sequences of a micro-batch.
    micro_batch_size: usize,
    threads: usize,
    steps: u64,
}

impl Emulator {
    /// All ranks of `plan`, with their pieces of `weights`, to be run on so many threads.
    pub fn new(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
        threads: usize,
    ) -> Result<Self, EmulateError> {
        let program = plan.program();
        let mut shards = HashMap::new();
        for (index, at) in program.mesh.coords().enumerate() {
            for stage in (0..program.stages.len()).filter(|&stage| program.holders[stage] == at.pp)
            {
                let place = ShardPlace {
                    stage: program.stages[stage].clone(),
                    tp_index: at.tp,
                    tp: program.mesh.tp(),
                    sequence: program.methods.sequence_parallel,
                };
                let mut shard = Shard::new(shape, place, weights)?;
                if program.methods.zero != Zero::Off {
                    shard.own_share(at.dp, program.mesh.dp())?;
                }
                shards.insert((Rank(index as u32), stage as u32), shard);
            }
        }
        let graph = DataGraph::new(&plan)?;
        let shape = shape.clone();
        Ok(Self {
            plan,
            graph,
            shape,
            shards,
            micro_batch_size,
            threads: threads.max(1),
            steps: 0,
        })
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step of training on `tokens` `[global batch, seq + 1]`. Ends early, with
    /// [`EmulateError::Stopped`], soon after `stop` is set; the weights are then to be thrown away.
    pub fn step(
        &mut self,
        tokens: &Tensor,
        keep_gradients: bool,
        stop: &AtomicBool,
    ) -> Result<Outcome, EmulateError> {
        let count = self.plan.program().ops().len();
        let took: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let step = Step::new(self, tokens)?;
        let run = |node: OpId| {
            let watch = Stopwatch::start();
            let done = step.run(node).map_err(|source| self.failed(node, source));
            took[node.index()].store(watch.elapsed().0, Ordering::Relaxed);
            done
        };
        worklist::run(&self.graph, self.threads, stop, &run)?;
        let (loss, grad_norm) = self.check(&step, tokens)?;
        let gradients = keep_gradients.then(|| self.gradients()).transpose()?;
        let replicas = 0..self.plan.program().mesh.dp();
        let scales = replicas.map(|replica| {
            let norm = step.square_norm(replica)?.sqrt();
            Ok(clip_scale(&self.shape.optimizer, norm))
        });
        let scales = scales.collect::<Result<Vec<f64>, ModelError>>()?;
        self.optimize(&scales, &took, stop)?;
        if self.plan.program().methods.zero != Zero::Off {
            self.places()
                .iter()
                .try_for_each(|peers| gather_shares(peers))?;
        }
        self.steps += 1;
        let took = took
            .iter()
            .map(|nanos| Nanos(nanos.load(Ordering::Relaxed)))
            .collect();
        Ok(Outcome {
            loss,
            grad_norm,
            took,
            gradients,
        })
    }

    /// The whole gradients, of the first replica.
    fn gradients(&self) -> Result<Weights, EmulateError> {
        if self.plan.program().methods.zero != Zero::Off {
            self.places()
                .iter()
                .try_for_each(|peers| gather_gradient_shares(peers))?;
        }
        Ok(gather_gradients(&self.shape, &self.replica(0))?)
    }

    /// All replicas' shards of each place, the first replica's first.
    fn places(&self) -> Vec<Vec<&Shard>> {
        let dp = self.plan.program().mesh.dp();
        let replicas: Vec<Vec<&Shard>> = (0..dp).map(|dp| self.replica(dp)).collect();
        let places = 0..replicas[0].len();
        places
            .map(|place| replicas.iter().map(|replica| replica[place]).collect())
            .collect()
    }

    /// The loss and the norm, if they are numbers.
    fn check(&self, step: &Step<'_>, tokens: &Tensor) -> Result<(f64, f64), EmulateError> {
        let (batch, length) = tokens.dims2().map_err(ModelError::from)?;
        let loss = step.loss() / (batch * (length - 1)) as f64;
        let grad_norm = step.square_norm(0)?.sqrt();
        for (what, value) in [("loss", loss), ("gradients' norm", grad_norm)] {
            if !value.is_finite() {
                return Err(EmulateError::NotFinite {
                    step: self.steps,
                    what,
                    value,
                });
            }
        }
        Ok((loss, grad_norm))
    }

    /// Every rank's optimizer, side by side; gradients are scaled as their replica's norm asks.
    fn optimize(
        &self,
        scales: &[f64],
        took: &[AtomicU64],
        stop: &AtomicBool,
    ) -> Result<(), EmulateError> {
        let ops = self.plan.program().ops();
        let is_optimizer = |index: &usize| ops[*index].what == What::Optimizer;
        let nodes: Vec<OpId> = (0..ops.len())
            .filter(is_optimizer)
            .map(|index| OpId(index as u32))
            .collect();
        worklist::run_all(&nodes, self.threads, stop, &|node| {
            let watch = Stopwatch::start();
            let rank = self.plan.program().rank_of(node);
            let scale = scales[self.plan.program().mesh.coord(rank).dp];
            for shard in self.shards_of(rank) {
                let update = shard.optimize(&self.shape.optimizer, scale, self.steps + 1);
                update.map_err(|source| self.failed(node, source))?;
            }
            took[node.index()].store(watch.elapsed().0, Ordering::Relaxed);
            Ok(())
        })
    }

    fn failed(&self, node: OpId, source: ModelError) -> EmulateError {
        let program = self.plan.program();
        let what = program.labels[program.op(node).label.0 as usize].short();
        EmulateError::Maths {
            rank: program.rank_of(node),
            what,
            source,
        }
    }

    /// A rank's shards, by stage.
    fn shards_of(&self, rank: Rank) -> impl Iterator<Item = &Shard> {
        let stages = 0..self.plan.program().stages.len() as u32;
        stages.filter_map(move |stage| self.shards.get(&(rank, stage)))
    }

    /// All shards of a data-parallel replica, in the order of ranks.
    fn replica(&self, dp: usize) -> Vec<&Shard> {
        let mesh = self.plan.program().mesh;
        let ranks = mesh.group(Axis::Model, Coord { dp, tp: 0, pp: 0 });
        ranks
            .into_iter()
            .flat_map(|rank| self.shards_of(rank))
            .collect()
    }

    /// The whole weights, of the first replica.
    pub fn weights(&self) -> Result<Weights, EmulateError> {
        Ok(gather(&self.shape, &self.replica(0))?)
    }

    /// A hash of each replica's weights, equal where all bits are.
    pub fn hashes(&self) -> Result<Vec<u64>, EmulateError> {
        (0..self.plan.program().mesh.dp())
            .map(|dp| {
                self.replica(dp).iter().try_fold(0_u64, |hash, shard| {
                    Ok(hash.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ shard.hash()?)
                })
            })
            .collect()
    }

    /// Parameters that each rank really holds, in the order of ranks.
    pub fn params(&self) -> Vec<u64> {
        let ranks = 0..self.plan.program().mesh.ranks() as u32;
        ranks
            .map(|rank| self.shards_of(Rank(rank)).map(Shard::params).sum())
            .collect()
    }
}

/// Locks what cannot be left broken: whoever panics ends the step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! `emulate`: the real maths of every rank, on this machine's cores.
//!
//! The plan's operations are run in an order that their data allows, by as many threads as there are; the
//! virtual clock is told separately, from what they cost. Sums are added in an order that the plan fixes,
//! so losses and weights have the same bits on any number of threads, one and none of its own included.

mod data;
mod execute;
mod worklist;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Tensor;

use self::data::DataGraph;
use self::execute::Step;
use super::ranks::Ranks;
use super::step::{Measured, Outcome, StepError};
use crate::model::{ModelError, Weights, clip_scale};
use crate::plan::{OpId, Plan, What};
use crate::shape::ModelShape;
use crate::units::Nanos;
use crate::wall::Stopwatch;

/// All ranks of a plan, emulated.
#[derive(Debug)]
pub struct Emulator {
    ranks: Ranks,
    graph: DataGraph,
    threads: usize,
}

impl Emulator {
    /// All ranks of `plan`, with their pieces of `weights`, to be run on so many threads.
    pub fn new(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
        threads: usize,
    ) -> Result<Self, StepError> {
        Ok(Self {
            graph: DataGraph::new(&plan)?,
            ranks: Ranks::new(plan, shape, weights, micro_batch_size)?,
            threads: threads.max(1),
        })
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.ranks.steps
    }

    /// One step of training on `tokens` `[global batch, seq + 1]`. Ends early, with
    /// [`StepError::Stopped`], soon after `stop` is set; the weights are then to be thrown away.
    pub fn step(
        &mut self,
        tokens: &Tensor,
        keep_gradients: bool,
        stop: &AtomicBool,
    ) -> Result<Outcome, StepError> {
        let ranks = &self.ranks;
        let count = ranks.program().ops().len();
        let took: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let step = Step::new(ranks, tokens)?;
        let run = |node: OpId| {
            let watch = Stopwatch::start();
            let done = step.run(node).map_err(|source| ranks.failed(node, source));
            took[node.index()].store(watch.elapsed().0, Ordering::Relaxed);
            done
        };
        worklist::run(&self.graph, self.threads, stop, &run)?;
        let (loss, grad_norm) = step.check()?;
        let gradients = keep_gradients.then(|| ranks.gradients()).transpose()?;
        let replicas = 0..ranks.program().mesh.dp();
        let scales = replicas.map(|replica| {
            let norm = step.square_norm(replica)?.sqrt();
            Ok(clip_scale(&ranks.shape.optimizer, norm))
        });
        let scales = scales.collect::<Result<Vec<f64>, ModelError>>()?;
        self.optimize(&scales, &took, stop)?;
        ranks.gather_updated()?;
        self.ranks.steps += 1;
        let took = took
            .iter()
            .map(|nanos| Nanos(nanos.load(Ordering::Relaxed)))
            .collect();
        Ok(Outcome {
            loss,
            grad_norm,
            took: Measured::Durations(took),
            gradients,
        })
    }

    /// Every rank's optimizer, side by side; gradients are scaled as their replica's norm asks.
    fn optimize(
        &self,
        scales: &[f64],
        took: &[AtomicU64],
        stop: &AtomicBool,
    ) -> Result<(), StepError> {
        let (ranks, program) = (&self.ranks, self.ranks.program());
        let ops = program.ops();
        let is_optimizer = |index: &usize| ops[*index].what == What::Optimizer;
        let nodes: Vec<OpId> = (0..ops.len())
            .filter(is_optimizer)
            .map(|index| OpId(index as u32))
            .collect();
        worklist::run_all(&nodes, self.threads, stop, &|node| {
            let watch = Stopwatch::start();
            let rank = program.rank_of(node);
            let scale = scales[program.mesh.coord(rank).dp];
            for shard in ranks.shards_of(rank) {
                let update = shard.optimize(&ranks.shape.optimizer, scale, ranks.steps + 1);
                update.map_err(|source| ranks.failed(node, source))?;
            }
            took[node.index()].store(watch.elapsed().0, Ordering::Relaxed);
            Ok(())
        })
    }

    /// The whole weights, of the first replica.
    pub fn weights(&self) -> Result<Weights, StepError> {
        self.ranks.weights()
    }

    /// A hash of each replica's weights, equal where all bits are.
    pub fn hashes(&self) -> Result<Vec<u64>, StepError> {
        self.ranks.hashes()
    }

    /// Parameters that each rank really holds, in the order of ranks.
    pub fn params(&self) -> Vec<u64> {
        self.ranks.params()
    }
}

/// Locks what cannot be left broken: whoever panics ends the step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

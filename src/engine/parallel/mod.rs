//! `parallel`: one thread a rank on the wall clock, over a communicator.
//!
//! Each rank walks its operations in the plan's order: it computes, hands over what it made, joins collectives and goes
//! on, and waits only where the plan says so. Sums are added in the order of a group's members, as the emulated ranks'
//! are: the same losses, gradients and weights, to the last bit. When each operation was ready, began and ended is
//! noted, and the trace is made of that.

mod collective;
mod lend;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use candle_core::Tensor;

use self::worker::{Setting, Through, Worker};
use super::clock::Times;
use super::ranks::{Batch, Ranks, name};
use super::step::{Measured, Outcome, StepError};
use crate::comm::{Algorithm, Doing, Fault, SharedComm, World, WorldSpec};
use crate::model::{Shard, Weights};
use crate::plan::{OpId, Plan, Program, What};
use crate::shape::ModelShape;
use crate::units::{Nanos, Rank};

/// How long a rank may be silent while another waits for it, before the run is stopped.
pub const TIMEOUT: Nanos = Nanos(60_000_000_000);

/// All ranks of a plan, each a thread of its own.
#[derive(Debug)]
pub struct Parallel {
    ranks: Ranks,
    timeout: Nanos,
    /// The cores that ranks are bound to, where each has one.
    cores: Vec<core_affinity::CoreId>,
    #[cfg(test)]
    trouble: Option<tests::Trouble>,
}

/// Which operations of a rank are run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All of a step.
    All,
    /// What comes before the optimizer.
    Passes,
    /// The optimizer and what follows it.
    Update,
}

impl Part {
    /// The operations of a rank that belong to it.
    fn of(self, program: &Program, rank: Rank) -> Vec<OpId> {
        let ops: Vec<OpId> = program.ops_of(rank).collect();
        let is_optimizer = |id: &OpId| program.op(*id).what == What::Optimizer;
        let at = ops.iter().position(is_optimizer).unwrap_or(ops.len());
        match self {
            Self::All => ops,
            Self::Passes => ops[..at].to_vec(),
            Self::Update => ops[at..].to_vec(),
        }
    }
}

/// What the ranks came to, in their order.
struct Run {
    ranks: Vec<Through>,
}

impl Parallel {
    /// All ranks of `plan`, with their pieces of `weights`.
    pub fn new(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
    ) -> Result<Self, StepError> {
        let program = plan.program();
        let is_bare = |op: &crate::plan::Op| matches!(op.what, What::Compute { segment: None, .. });
        if program.ops().iter().any(is_bare) {
            return Err(StepError::NoModel);
        }
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        Ok(Self {
            cores: if program.mesh.ranks() <= cores.len() {
                cores
            } else {
                Vec::new()
            },
            ranks: Ranks::new(plan, shape, weights, micro_batch_size)?,
            timeout: TIMEOUT,
            #[cfg(test)]
            trouble: None,
        })
    }

    /// The same, with another time for which a rank may be silent.
    pub fn with_timeout(self, timeout: Nanos) -> Self {
        Self { timeout, ..self }
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.ranks.steps
    }

    /// One step of training on `tokens` `[global batch, seq + 1]`. Ends early, with [`StepError::Stopped`], soon after
    /// `stop` is set; the weights are then to be thrown away, as after any error.
    pub fn step(
        &mut self,
        tokens: &Tensor,
        keep_gradients: bool,
        stop: &AtomicBool,
    ) -> Result<Outcome, StepError> {
        let batch = self.ranks.batch(tokens)?;
        let mut times = vec![Times::default(); self.ranks.program().ops().len()];
        let (figures, gradients) = if keep_gradients {
            let passes = self.run((Part::Passes, &[], Nanos::ZERO), &batch, stop, &mut times)?;
            let squares = self.squares(&passes)?;
            let figures = self.check(&batch, &passes, squares[0])?;
            let gradients = self.ranks.gradients()?;
            let ends = times.iter().map(|times| times.end).max();
            let update = (Part::Update, squares.as_slice(), ends.unwrap_or_default());
            self.run(update, &batch, stop, &mut times)?;
            (figures, Some(gradients))
        } else {
            let all = (Part::All, &[] as &[f64], Nanos::ZERO);
            let run = self.run(all, &batch, stop, &mut times)?;
            let squares = self.squares(&run)?;
            (self.check(&batch, &run, squares[0])?, None)
        };
        let (loss, grad_norm) = figures;
        self.ranks.steps += 1;
        Ok(Outcome {
            loss,
            grad_norm,
            took: Measured::Times(times),
            gradients,
        })
    }

    /// Runs a part of the step on all ranks, from `begins` on; `squares` of the replicas' norms, where they are known.
    fn run(
        &self,
        (part, squares, begins): (Part, &[f64], Nanos),
        batch: &Batch,
        stop: &AtomicBool,
        times: &mut [Times],
    ) -> Result<Run, StepError> {
        let comms = World::create::<Tensor>(self.world());
        let setting = |comm: SharedComm<Tensor>, rank: Rank| Setting {
            ranks: &self.ranks,
            rank,
            comm,
            batch,
            stop,
            squares: squares
                .get(self.ranks.program().mesh.coord(rank).dp)
                .copied(),
            ops: part.of(self.ranks.program(), rank),
            core: self.cores.get(rank.index()).copied(),
            #[cfg(test)]
            trouble: self.trouble.as_ref().filter(|trouble| trouble.rank == rank),
        };
        let results = thread::scope(|scope| {
            let start = |(index, comm)| {
                let setting = setting(comm, Rank(index as u32));
                thread::Builder::new()
                    .name(format!("rank {index}"))
                    .spawn_scoped(scope, || Worker::new(setting).run().map_err(Ended::With))
                    .map_err(|error| StepError::Thread(error.to_string()))
            };
            // All are started before any is waited for.
            let threads: Vec<_> = comms.into_iter().enumerate().map(start).collect();
            let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, StepError>| match thread {
                Ok(thread) => thread.join().unwrap_or(Err(Ended::Panicked)),
                Err(error) => Err(Ended::With(error)),
            };
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        let ranks = first_cause(results)?;
        for (index, through) in ranks.iter().enumerate() {
            let ops = part.of(self.ranks.program(), Rank(index as u32));
            for (id, noted) in ops.into_iter().zip(&through.times) {
                times[id.index()] = later(*noted, begins);
            }
        }
        Ok(Run { ranks })
    }

    fn world(&self) -> WorldSpec {
        let program = self.ranks.program();
        let mut groups: Vec<Vec<u32>> = program
            .groups
            .iter()
            .map(|group| group.ranks.iter().map(|rank| rank.0).collect())
            .collect();
        let ranks = program.mesh.ranks();
        groups.push((0..ranks as u32).collect());
        let plan = Arc::clone(&self.ranks.plan);
        WorldSpec {
            ranks,
            groups,
            timeout: self.timeout,
            algorithm: Algorithm::Direct,
            own_cores: !self.cores.is_empty(),
            names: Box::new(move |id| match plan.program().ops().get(id as usize) {
                Some(_) => name(plan.program(), OpId(id)),
                None => "the start of the step".to_owned(),
            }),
        }
    }

    /// The squares of the replicas' norms: what its ranks summed, or before an optimizer used them up, a single rank's.
    fn squares(&self, run: &Run) -> Result<Vec<f64>, StepError> {
        let program = self.ranks.program();
        let mut squares = vec![None; program.mesh.dp()];
        for (at, through) in program.mesh.coords().zip(&run.ranks) {
            squares[at.dp] = squares[at.dp].or(through.squares);
        }
        let of_replica = |(dp, known): (usize, Option<f64>)| {
            if let Some(known) = known {
                return Ok(known);
            }
            let shards = self.ranks.replica(dp).into_iter();
            Ok(shards.map(Shard::square_norm).sum::<Result<f64, _>>()?)
        };
        squares.into_iter().enumerate().map(of_replica).collect()
    }

    fn check(&self, batch: &Batch, run: &Run, squares: f64) -> Result<(f64, f64), StepError> {
        let program = self.ranks.program();
        let shape = batch.tokens.iter().map(|parts| vec![0.0; parts.len()]);
        let mut losses: Vec<Vec<f64>> = shape.collect();
        for (at, through) in program.mesh.coords().zip(&run.ranks) {
            for &(micro_batch, loss) in &through.losses {
                losses[at.dp][micro_batch as usize] = loss;
            }
        }
        // In a fixed order, as the emulated ranks' are.
        let losses = losses.iter().flatten().sum();
        self.ranks.check(batch, losses, squares)
    }

    /// The whole weights, of the first replica.
    pub fn weights(&self) -> Result<Weights, StepError> {
        self.ranks.gather_updated()?;
        self.ranks.weights()
    }

    /// A hash of each replica's weights, equal where all bits are.
    pub fn hashes(&self) -> Result<Vec<u64>, StepError> {
        self.ranks.gather_updated()?;
        self.ranks.hashes()
    }

    /// Parameters that each rank really holds, in the order of ranks.
    pub fn params(&self) -> Vec<u64> {
        self.ranks.params()
    }
}

/// How a rank ended before its end.
enum Ended {
    With(StepError),
    /// The others, which it stopped, know where it was.
    Panicked,
}

/// All results, or what went wrong first: a rank's own error before what it stopped the others with.
fn first_cause(results: Vec<Result<Through, Ended>>) -> Result<Vec<Through>, StepError> {
    let (mut through, mut fault) = (Vec::new(), None);
    let mut panicked = None;
    for (rank, result) in results.into_iter().enumerate() {
        match result {
            Ok(rank) => through.push(rank),
            Err(Ended::With(StepError::Ranks(of_others))) => {
                fault.get_or_insert(of_others);
            }
            Err(Ended::With(own)) => return Err(own),
            Err(Ended::Panicked) => {
                panicked.get_or_insert(rank);
            }
        }
    }
    let alone = |rank: usize| {
        Fault::Panicked(Doing {
            rank: rank as u32,
            what: "in its own thread".to_owned(),
        })
    };
    match fault.or_else(|| panicked.map(alone)) {
        None => Ok(through),
        Some(Fault::Stopped) => Err(StepError::Stopped),
        Some(fault) => Err(StepError::Ranks(fault)),
    }
}

fn later(times: Times, by: Nanos) -> Times {
    Times {
        ready: times.ready + by,
        start: times.start + by,
        end: times.end + by,
    }
}

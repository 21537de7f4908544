//! All ranks of a plan with their shards of a model, whoever runs them.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::Tensor;

use super::step::StepError;
use crate::mesh::{Axis, Coord};
use crate::model::{
    ModelError, Shard, ShardPlace, Weights, gather, gather_gradient_shares, gather_gradients,
    gather_shares,
};
use crate::plan::{OpId, Plan, Program, Tag};
use crate::shape::{ModelShape, Zero};
use crate::units::{Pass, Rank};

/// All ranks of a plan, with their shards.
#[derive(Debug)]
pub(super) struct Ranks {
    pub(super) plan: Arc<Plan>,
    pub(super) shape: ModelShape,
    /// The shard of each stage on each rank that holds it.
    shards: HashMap<(Rank, u32), Shard>,
    /// Sequences of a micro-batch.
    micro_batch_size: usize,
    /// Steps done.
    pub(super) steps: u64,
}

/// The tokens of a step.
#[derive(Debug)]
pub(super) struct Batch {
    /// Of each micro-batch of each replica.
    pub(super) tokens: Vec<Vec<Tensor>>,
    /// One over the tokens of the global batch: gradients are scaled once, and then only added.
    pub(super) loss_scale: f32,
    /// How many tokens have a loss.
    count: usize,
}

/// What becomes of what a pass made, at its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Output {
    /// The last stage's forward pass has the loss.
    Loss,
    /// It is what another stage begins with: one of the same rank, or of another.
    Input {
        /// As what.
        tag: Tag,
        /// Whether this rank holds that stage too.
        is_here: bool,
    },
    /// Nobody needs it.
    Nothing,
}

impl Ranks {
    /// All ranks of `plan`, with their pieces of `weights`.
    pub(super) fn new(
        plan: Arc<Plan>,
        shape: &ModelShape,
        weights: &Weights,
        micro_batch_size: usize,
    ) -> Result<Self, StepError> {
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
        Ok(Self {
            plan,
            shape: shape.clone(),
            shards,
            micro_batch_size,
            steps: 0,
        })
    }

    /// What ranks say they do.
    pub(super) fn program(&self) -> &Program {
        self.plan.program()
    }

    /// Tokens `[global batch, seq + 1]`, shared out.
    pub(super) fn batch(&self, tokens: &Tensor) -> Result<Batch, ModelError> {
        let program = self.program();
        let (batch, length) = tokens.dims2()?;
        let (size, dp) = (self.micro_batch_size, program.mesh.dp());
        let parts = batch / size / dp;
        let part = |index: usize| Ok(tokens.narrow(0, index * size, size)?);
        let of_replica = |dp: usize| (0..parts).map(|index| part(dp * parts + index)).collect();
        let count = batch * (length - 1);
        // Replicas that keep their gradients to themselves each average over their own share of the batch.
        let whole = if program.methods.no_sync { dp } else { 1 };
        Ok(Batch {
            tokens: (0..dp).map(of_replica).collect::<Result<_, ModelError>>()?,
            loss_scale: (whole as f64 / count as f64) as f32,
            count,
        })
    }

    /// A rank's shard of a stage.
    pub(super) fn shard(&self, rank: Rank, stage: u32) -> Result<&Shard, ModelError> {
        let shard = self.shards.get(&(rank, stage));
        shard.ok_or(ModelError::Nothing("shard"))
    }

    /// A rank's shards, by stage.
    pub(super) fn shards_of(&self, rank: Rank) -> impl Iterator<Item = &Shard> {
        let stages = 0..self.program().stages.len() as u32;
        stages.filter_map(move |stage| self.shards.get(&(rank, stage)))
    }

    /// All shards of a data-parallel replica, in the order of ranks.
    pub(super) fn replica(&self, dp: usize) -> Vec<&Shard> {
        let mesh = self.program().mesh;
        let ranks = mesh.group(Axis::Model, Coord { dp, tp: 0, pp: 0 });
        ranks
            .into_iter()
            .flat_map(|rank| self.shards_of(rank))
            .collect()
    }

    /// All replicas' shards of each place, the first replica's first.
    fn places(&self) -> Vec<Vec<&Shard>> {
        let dp = self.program().mesh.dp();
        let replicas: Vec<Vec<&Shard>> = (0..dp).map(|dp| self.replica(dp)).collect();
        let places = 0..replicas[0].len();
        places
            .map(|place| replicas.iter().map(|replica| replica[place]).collect())
            .collect()
    }

    /// Where replicas update a share of the weights each (`ZeRO`): all get all.
    pub(super) fn gather_updated(&self) -> Result<(), ModelError> {
        if self.program().methods.zero == Zero::Off {
            return Ok(());
        }
        self.places()
            .iter()
            .try_for_each(|peers| gather_shares(peers))
    }

    /// The whole gradients, of the first replica.
    pub(super) fn gradients(&self) -> Result<Weights, StepError> {
        if self.program().methods.zero != Zero::Off {
            self.places()
                .iter()
                .try_for_each(|peers| gather_gradient_shares(peers))?;
        }
        Ok(gather_gradients(&self.shape, &self.replica(0))?)
    }

    /// The whole weights, of the first replica.
    pub(super) fn weights(&self) -> Result<Weights, StepError> {
        Ok(gather(&self.shape, &self.replica(0))?)
    }

    /// A hash of each replica's weights, equal where all bits are.
    pub(super) fn hashes(&self) -> Result<Vec<u64>, StepError> {
        (0..self.program().mesh.dp())
            .map(|dp| {
                self.replica(dp).iter().try_fold(0_u64, |hash, shard| {
                    Ok(hash.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ shard.hash()?)
                })
            })
            .collect()
    }

    /// Parameters that each rank really holds, in the order of ranks.
    pub(super) fn params(&self) -> Vec<u64> {
        let ranks = 0..self.program().mesh.ranks() as u32;
        ranks
            .map(|rank| self.shards_of(Rank(rank)).map(Shard::params).sum())
            .collect()
    }

    /// The mean loss and the norm, from the sum of all tokens' losses and the squares, if they are numbers.
    pub(super) fn check(
        &self,
        batch: &Batch,
        losses: f64,
        squares: f64,
    ) -> Result<(f64, f64), StepError> {
        let (loss, grad_norm) = (losses / batch.count as f64, squares.sqrt());
        for (what, value) in [("loss", loss), ("gradients' norm", grad_norm)] {
            if !value.is_finite() {
                return Err(StepError::NotFinite {
                    step: self.steps,
                    what,
                    value,
                });
            }
        }
        Ok((loss, grad_norm))
    }

    /// That an operation failed.
    pub(super) fn failed(&self, node: OpId, source: ModelError) -> StepError {
        let program = self.program();
        StepError::Maths {
            rank: program.rank_of(node),
            what: name(program, node),
            source,
        }
    }
}

/// An operation's short name.
pub(super) fn name(program: &Program, id: OpId) -> String {
    program.labels[program.op(id).label.0 as usize].short()
}

/// As what a pass's input comes from another stage, if it does.
pub(super) fn input_of(program: &Program, stage: u32, pass: Pass) -> Option<Pass> {
    let last = program.stages.len() as u32 - 1;
    match pass {
        Pass::Forward => (stage > 0).then_some(Pass::Forward),
        Pass::Backward | Pass::InputGrad => (stage < last).then_some(Pass::InputGrad),
        Pass::WeightGrad => None,
    }
}

/// What becomes of what a pass of a micro-batch on a stage of a rank made.
pub(super) fn output_of(
    program: &Program,
    (rank, stage, micro_batch): (Rank, u32, u32),
    pass: Pass,
) -> Output {
    let last = program.stages.len() as u32 - 1;
    let (target, made) = match pass {
        Pass::Forward if stage == last => return Output::Loss,
        Pass::Forward => (stage + 1, Pass::Forward),
        Pass::Backward | Pass::InputGrad if stage > 0 => (stage - 1, Pass::InputGrad),
        Pass::Backward | Pass::InputGrad | Pass::WeightGrad => return Output::Nothing,
    };
    Output::Input {
        tag: Tag {
            pass: made,
            stage: target,
            micro_batch,
        },
        is_here: program.holders[target as usize] == program.mesh.coord(rank).pp,
    }
}

//! What each collective of a plan works on, and what becomes of it.

use candle_core::{DType, Tensor};

use super::lend::lend;
use super::worker::{Failed, Worker};
use crate::comm::{Buffer, Call, Communicator as _, Fold, Kind, Ticket};
use crate::model::{ModelError, Shard, sum_gradients};
use crate::plan::{OpId, Program, Reduction, What};
use crate::shape::{Reduce, Zero};
use crate::units::Rank;

/// What is done with a collective's result.
pub(super) enum After {
    /// It lies where it is needed.
    Nothing,
    /// The micro-batch goes on with the tensor.
    Reduced(Tensor),
    /// The squares of all members' shards are added up.
    Squares,
}

/// A collective that was joined.
pub(super) struct Joined {
    ticket: Ticket,
    after: After,
}

impl Joined {
    /// What to wait for, and what to do then.
    pub(super) fn split(self) -> (Ticket, After) {
        (self.ticket, self.after)
    }
}

impl Worker<'_> {
    /// Joins the collective; nothing if this rank is alone in it, and has done it.
    pub(super) fn start(&mut self, id: OpId) -> Result<Option<Joined>, Failed> {
        let program = self.program();
        let op = program.op(id);
        let What::Collective { group, what, .. } = op.what else {
            return Ok(None);
        };
        if program.groups[group as usize].ranks.len() == 1 {
            self.alone(what)?;
            return Ok(None);
        }
        let Some((kind, buffer, after)) = self.lent(id, what)? else {
            return Ok(None);
        };
        #[cfg(test)]
        let buffer = super::tests::spoil(&self.setting, id, buffer);
        let call = Call {
            group,
            kind,
            what: self.setting.ranks.plan.head(id).0,
        };
        let ticket = self.setting.comm.start(call, buffer)?;
        Ok(Some(Joined { ticket, after }))
    }

    /// What the collective is, the memory that it works on, and what follows.
    fn lent(
        &mut self,
        id: OpId,
        what: Reduction,
    ) -> Result<Option<(Kind, Buffer, After)>, ModelError> {
        let sum = Kind::AllReduce(Fold::Sum);
        let op = self.program().op(id);
        let ranks = self.setting.ranks;
        let (kind, tensors) = match what {
            Reduction::Tensor(kind) => return self.tensor(id, kind).map(Some),
            Reduction::Norm => {
                let squares = self.own_squares(id)?;
                return Ok(Some((
                    Kind::AllGather,
                    Buffer::from(squares),
                    After::Squares,
                )));
            }
            Reduction::Gradients(bucket) => {
                let shard = ranks.shard(self.setting.rank, op.stage)?;
                let kind = if self.program().methods.zero == Zero::Off {
                    sum
                } else {
                    Kind::ReduceScatter
                };
                (kind, shard.gradient_in_place(bucket)?)
            }
            Reduction::SequenceNorms => (sum, self.of_shards(Shard::norm_gradients_in_place)?),
            Reduction::TiedEmbedding => (sum, self.of_shards(Shard::tied_gradient_in_place)?),
            Reduction::Weights(stage) => {
                let shard = ranks.shard(self.setting.rank, stage)?;
                (Kind::AllGather, shard.weights_in_place())
            }
            // Costs alone: weights are whole on every replica.
            Reduction::Gathered(_) => return Ok(None),
        };
        Ok(Some((kind, own(tensors)?, After::Nothing)))
    }

    /// What all shards of this rank have.
    fn of_shards(
        &self,
        what: impl Fn(&Shard) -> Result<Vec<Tensor>, ModelError>,
    ) -> Result<Vec<Tensor>, ModelError> {
        let shards = self.setting.ranks.shards_of(self.setting.rank);
        let all = shards.map(what).collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// A partial result of a micro-batch.
    fn tensor(&mut self, id: OpId, kind: Reduce) -> Result<(Kind, Buffer, After), ModelError> {
        let key = self.flight_key(id);
        let flight = self.flights.get_mut(&key);
        let partial = flight
            .ok_or(ModelError::Nothing("flight"))?
            .take_partial()?;
        let (index, members) = self.seat(id);
        let (how, memory, result) = match kind {
            Reduce::LogitMax => (Kind::AllReduce(Fold::Max), partial.clone(), partial),
            Reduce::Hidden | Reduce::TargetLogit | Reduce::ExpSum => {
                (Kind::AllReduce(Fold::Sum), partial.clone(), partial)
            }
            Reduce::GatherHidden => {
                let (rows, width) = partial.dims2()?;
                let whole = Tensor::zeros((rows * members, width), DType::F32, partial.device())?;
                whole.slice_set(&partial, 0, index * rows)?;
                (Kind::AllGather, whole.clone(), whole)
            }
            Reduce::ScatterHidden => {
                let share = partial.dim(0)? / members;
                let result = partial.narrow(0, index * share, share)?;
                (Kind::ReduceScatter, partial, result)
            }
        };
        Ok((how, own(vec![memory])?, After::Reduced(result)))
    }

    fn flight_key(&self, id: OpId) -> (u32, u32) {
        let op = self.program().op(id);
        (op.stage, op.micro_batch)
    }

    /// This rank's place in the group of a collective, and how many there are.
    fn seat(&self, id: OpId) -> (usize, usize) {
        let ranks = members(self.program(), id);
        let index = ranks.iter().position(|&rank| rank == self.setting.rank);
        (index.unwrap_or_default(), ranks.len())
    }

    /// The squares of each of this rank's shards in its place among all members', as halves of 64 bits.
    fn own_squares(&self, id: OpId) -> Result<Vec<f32>, ModelError> {
        let (index, members) = self.seat(id);
        let most = self.most_shards();
        let mut all = vec![0.0; members * most * 2];
        let shards = self.setting.ranks.shards_of(self.setting.rank);
        for (place, shard) in shards.enumerate() {
            let bits = shard.square_norm()?.to_bits();
            let at = (index * most + place) * 2;
            all[at] = f32::from_bits(bits as u32);
            all[at + 1] = f32::from_bits((bits >> 32) as u32);
        }
        Ok(all)
    }

    /// The most stages that a rank holds.
    fn most_shards(&self) -> usize {
        let holders = &self.program().holders;
        let count = |pp: usize| holders.iter().filter(|&&holder| holder == pp).count();
        (0..self.program().mesh.pp()).map(count).max().unwrap_or(0)
    }

    /// What a collective of one comes to.
    fn alone(&mut self, what: Reduction) -> Result<(), ModelError> {
        match what {
            // First and last stage are on this rank: it sums its own two.
            Reduction::TiedEmbedding => self.tie(),
            Reduction::Tensor(_)
            | Reduction::Gradients(_)
            | Reduction::Norm
            | Reduction::SequenceNorms
            | Reduction::Weights(_)
            | Reduction::Gathered(_) => Ok(()),
        }
    }

    fn tie(&self) -> Result<(), ModelError> {
        let shards = self.setting.ranks.shards_of(self.setting.rank);
        let mut held = Vec::new();
        for shard in shards {
            if let Some(gradient) = shard.tied_gradient()? {
                held.push((shard, vec![gradient]));
            }
        }
        let parts: Vec<Vec<Tensor>> = held.iter().map(|(_, part)| part.clone()).collect();
        for sum in sum_gradients(&parts)? {
            held.iter()
                .try_for_each(|(shard, _)| shard.set_tied_gradient(sum.clone()))?;
        }
        Ok(())
    }

    /// Takes a collective's result.
    pub(super) fn finish(
        &mut self,
        id: OpId,
        after: After,
        buffer: Buffer,
    ) -> Result<(), ModelError> {
        match after {
            After::Nothing => drop(buffer),
            After::Reduced(result) => {
                // Nobody reads the result while it is lent.
                drop(buffer);
                let key = self.flight_key(id);
                let flight = self.flights.get_mut(&key);
                flight
                    .ok_or(ModelError::Nothing("flight"))?
                    .put_reduced(result);
            }
            After::Squares => self.squares = Some(sum_of(buffer.read(0))),
        }
        Ok(())
    }
}

fn members(program: &Program, id: OpId) -> &[Rank] {
    match program.op(id).what {
        What::Collective { group, .. } => &program.groups[group as usize].ranks,
        What::Compute { .. } | What::Optimizer | What::Send { .. } | What::Receive { .. } => &[],
    }
}

/// The sum of numbers of 64 bits in halves, in their order.
fn sum_of(halves: &[f32]) -> f64 {
    let number = |pair: &[f32]| {
        let (low, high) = (pair[0].to_bits(), pair[1].to_bits());
        f64::from_bits(u64::from(low) | u64::from(high) << 32)
    };
    halves.chunks_exact(2).map(number).sum()
}

/// Lends what a rank alone has.
#[expect(unsafe_code, reason = "see `lend`")]
fn own(tensors: Vec<Tensor>) -> Result<Buffer, ModelError> {
    // SAFETY: they are parameters and gradients of this rank's own shards, or results that its passes have just handed
    // out. Nobody but this thread reads them, and it does not before the collective is through: what needs them waits
    // for it, as the plan was checked to say. After a fault they are thrown away unread.
    unsafe { lend(tensors) }
}

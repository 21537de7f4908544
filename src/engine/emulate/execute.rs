//! What each operation of the plan does with the ranks' data.

use std::collections::HashMap;
use std::sync::Mutex;

use candle_core::Tensor;

use super::super::ranks::{Batch, Output, Ranks, input_of, output_of};
use super::super::step::StepError;
use super::lock;
use crate::model::{Flight, ModelError, Shard, reduce, sum_gradients};
use crate::plan::{Node, OpId, Place, Program, Reduction, Tag, What};
use crate::shape::{Bucket, Reduce, Segment, Zero};
use crate::units::{Pass, Rank};

type Result<T> = std::result::Result<T, ModelError>;

/// A micro-batch on a stage of a rank.
type FlightKey = (Rank, u32, u32);

/// A step in the making.
pub(super) struct Step<'a> {
    ranks: &'a Ranks,
    batch: Batch,
    flights: Mutex<HashMap<FlightKey, Flight>>,
    /// What a pass made and its rank has not sent yet.
    outbox: Mutex<HashMap<(Rank, Tag), Tensor>>,
    /// What has arrived, or was made by another stage of the same rank.
    inbox: Mutex<HashMap<(Rank, Tag), Tensor>>,
    /// Loss of each micro-batch of each replica, summed over its tokens.
    losses: Mutex<Vec<Vec<f64>>>,
    /// The squares of each replica's norm, once its ranks have summed them.
    squares: Mutex<HashMap<usize, f64>>,
    /// All members of the collective that an operation heads.
    members: HashMap<OpId, Vec<OpId>>,
}

impl<'a> Step<'a> {
    pub(super) fn new(ranks: &'a Ranks, tokens: &Tensor) -> Result<Self> {
        let batch = ranks.batch(tokens)?;
        let is_collective = |node| match node {
            Node::Collective(members) => Some((members[0], members.to_vec())),
            Node::Op(_) => None,
        };
        let losses = batch.tokens.iter().map(|parts| vec![0.0; parts.len()]);
        Ok(Self {
            ranks,
            flights: Mutex::default(),
            outbox: Mutex::default(),
            inbox: Mutex::default(),
            losses: Mutex::new(losses.collect()),
            squares: Mutex::default(),
            members: ranks.plan.nodes().filter_map(is_collective).collect(),
            batch,
        })
    }

    fn program(&self) -> &Program {
        self.ranks.program()
    }

    /// The loss and the gradients' norm, if they are numbers.
    pub(super) fn check(&self) -> std::result::Result<(f64, f64), StepError> {
        // The sum of all tokens' losses, in a fixed order.
        let losses = lock(&self.losses).iter().flatten().sum();
        let squares = self.square_norm(0)?;
        self.ranks.check(&self.batch, losses, squares)
    }

    /// The square of the gradients' global norm, of a replica: all have the same, unless they keep their
    /// gradients to themselves.
    pub(super) fn square_norm(&self, replica: usize) -> Result<f64> {
        let replica = if self.program().methods.no_sync {
            replica
        } else {
            0
        };
        let known = lock(&self.squares).get(&replica).copied();
        match known {
            Some(squares) => Ok(squares),
            // A single rank has no one to sum with.
            None => self
                .ranks
                .replica(replica)
                .into_iter()
                .map(Shard::square_norm)
                .sum(),
        }
    }

    /// Does what the operation, or the collective that it heads, does.
    pub(super) fn run(&self, id: OpId) -> Result<()> {
        let program = self.program();
        let op = program.op(id);
        let rank = program.rank_of(id);
        match op.what {
            What::Compute {
                segment: Some(segment),
                place,
            } => self.compute((rank, op.stage, op.micro_batch), segment, place),
            What::Send { to, tag } => self.send(rank, to, tag),
            What::Collective { what, .. } => {
                let members = self
                    .members
                    .get(&id)
                    .map_or(std::slice::from_ref(&id), Vec::as_slice);
                self.all_reduce(members, what)
            }
            // A receive is only an event: what was sent is in the inbox by now.
            What::Receive { .. } | What::Optimizer | What::Compute { segment: None, .. } => Ok(()),
        }
    }

    fn compute(&self, key: FlightKey, segment: Segment, place: Place) -> Result<()> {
        let (rank, stage, _) = key;
        let shard = self.ranks.shard(rank, stage)?;
        let mut flight = self.take_flight(key, place)?;
        shard.compute(&mut flight, place.pass, segment)?;
        if place.last {
            self.hand_over(key, &mut flight, place.pass)?;
            if place.pass.makes_weight_grad() {
                return Ok(());
            }
        }
        lock(&self.flights).insert(key, flight);
        Ok(())
    }

    /// The micro-batch in flight, new at its first forward, with the input of a pass that begins.
    fn take_flight(&self, key: FlightKey, place: Place) -> Result<Flight> {
        let (rank, stage, micro_batch) = key;
        let known = lock(&self.flights).remove(&key);
        let mut flight = if let Some(flight) = known {
            flight
        } else {
            let dp = self.program().mesh.coord(rank).dp;
            Flight::new(
                &self.batch.tokens[dp][micro_batch as usize],
                self.batch.loss_scale,
            )?
        };
        if place.first
            && let Some(pass) = input_of(self.program(), stage, place.pass)
        {
            let tag = Tag {
                pass,
                stage,
                micro_batch,
            };
            let input = lock(&self.inbox).remove(&(rank, tag));
            flight.put_input(&input.ok_or(ModelError::Nothing("input from another stage"))?)?;
        }
        Ok(flight)
    }

    /// At the end of a pass: the loss is noted, and what was made goes to the stage that needs it.
    fn hand_over(&self, key: FlightKey, flight: &mut Flight, pass: Pass) -> Result<()> {
        let (rank, _, micro_batch) = key;
        match output_of(self.program(), key, pass) {
            Output::Loss => {
                let at = self.program().mesh.coord(rank);
                if let (0, Some(loss)) = (at.tp, flight.loss()) {
                    lock(&self.losses)[at.dp][micro_batch as usize] = loss;
                }
            }
            Output::Input { tag, is_here } => {
                let output = flight.take_output()?;
                let place = if is_here { &self.inbox } else { &self.outbox };
                lock(place).insert((rank, tag), output);
            }
            Output::Nothing => {}
        }
        Ok(())
    }

    fn send(&self, from: Rank, to: Rank, tag: Tag) -> Result<()> {
        let sent = lock(&self.outbox).remove(&(from, tag));
        lock(&self.inbox).insert(
            (to, tag),
            sent.ok_or(ModelError::Nothing("output to send"))?,
        );
        Ok(())
    }

    fn all_reduce(&self, members: &[OpId], what: Reduction) -> Result<()> {
        match what {
            Reduction::Tensor(kind) => self.reduce_tensor(members, kind),
            Reduction::Gradients(bucket) => self.reduce_gradients(members, bucket),
            Reduction::TiedEmbedding => self.reduce_tied(members),
            Reduction::Norm => self.reduce_norm(members),
            Reduction::SequenceNorms => self.reduce_sequence_norms(members),
            // Around the optimizer, which the step does not hold, or costs alone.
            Reduction::Weights(_) | Reduction::Gathered(_) => Ok(()),
        }
    }

    /// The flights of a tensor-parallel group give their parts and share the result.
    fn reduce_tensor(&self, members: &[OpId], kind: Reduce) -> Result<()> {
        let keys: Vec<FlightKey> = members.iter().map(|&id| self.flight_key(id)).collect();
        let parts = {
            let mut flights = lock(&self.flights);
            let mut part = |key| {
                flights
                    .get_mut(key)
                    .ok_or(ModelError::Nothing("flight"))?
                    .take_partial()
            };
            keys.iter().map(&mut part).collect::<Result<Vec<_>>>()?
        };
        let results = reduce(kind, &parts)?;
        let mut flights = lock(&self.flights);
        for (key, result) in keys.iter().zip(results) {
            flights
                .get_mut(key)
                .ok_or(ModelError::Nothing("flight"))?
                .put_reduced(result);
        }
        Ok(())
    }

    fn flight_key(&self, id: OpId) -> FlightKey {
        let op = self.program().op(id);
        (self.program().rank_of(id), op.stage, op.micro_batch)
    }

    fn reduce_gradients(&self, members: &[OpId], bucket: Bucket) -> Result<()> {
        let shards = members.iter().map(|&id| {
            let (rank, stage, _) = self.flight_key(id);
            self.ranks.shard(rank, stage)
        });
        let shards = shards.collect::<Result<Vec<_>>>()?;
        let parts = shards
            .iter()
            .map(|shard| shard.gradient(bucket))
            .collect::<Result<Vec<_>>>()?;
        let sum = sum_gradients(&parts)?;
        if self.program().methods.zero == Zero::Off {
            return shards
                .iter()
                .try_for_each(|shard| shard.set_gradient(bucket, sum.clone()));
        }
        shards
            .iter()
            .try_for_each(|shard| shard.set_gradient_share(bucket, &sum))
    }

    /// Each rank of a tensor-parallel group has the norms' gradients of its share of the tokens.
    fn reduce_sequence_norms(&self, members: &[OpId]) -> Result<()> {
        let ranks: Vec<Rank> = members
            .iter()
            .map(|&id| self.program().rank_of(id))
            .collect();
        let by_rank: Vec<Vec<&Shard>> = ranks
            .iter()
            .map(|&rank| self.ranks.shards_of(rank).collect())
            .collect();
        for index in 0..by_rank[0].len() {
            let shards: Vec<&Shard> = by_rank.iter().map(|shards| shards[index]).collect();
            let parts = shards.iter().map(|shard| shard.norm_gradients());
            let sums = sum_gradients(&parts.collect::<Result<Vec<_>>>()?)?;
            for shard in shards {
                shard.set_norm_gradients(&sums)?;
            }
        }
        Ok(())
    }

    fn reduce_tied(&self, members: &[OpId]) -> Result<()> {
        let mut held = Vec::new();
        for &id in members {
            for shard in self.ranks.shards_of(self.program().rank_of(id)) {
                if let Some(gradient) = shard.tied_gradient()? {
                    held.push((shard, gradient));
                }
            }
        }
        let parts: Vec<Vec<Tensor>> = held
            .iter()
            .map(|(_, gradient)| vec![gradient.clone()])
            .collect();
        let sum = sum_gradients(&parts)?;
        held.iter().try_for_each(|(shard, _)| {
            sum.iter()
                .try_for_each(|sum| shard.set_tied_gradient(sum.clone()))
        })
    }

    /// Each member adds up its own squares; the sum is the replica's.
    fn reduce_norm(&self, members: &[OpId]) -> Result<()> {
        let program = self.program();
        let ranks: Vec<Rank> = members.iter().map(|&id| program.rank_of(id)).collect();
        let replica = program.mesh.coord(ranks[0]).dp;
        if replica > 0 && !program.methods.no_sync {
            // Replicas are equal by now: one tells for all.
            return Ok(());
        }
        let shards = ranks
            .into_iter()
            .flat_map(|rank| self.ranks.shards_of(rank));
        let squares: f64 = shards.map(Shard::square_norm).sum::<Result<f64>>()?;
        lock(&self.squares).insert(replica, squares);
        Ok(())
    }
}

//! One rank: its operations in order, on its own thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Tensor;

use super::super::clock::Times;
use super::super::ranks::{Batch, Output, Ranks, input_of, output_of};
use super::super::step::StepError;
use super::collective::Joined;
use crate::comm::{Buffer, Call, Communicator as _, Doing, Fault, Kind, SharedComm};
use crate::model::{Flight, ModelError, clip_scale};
use crate::plan::{OpId, Place, Program, Tag, What};
use crate::shape::Segment;
use crate::units::{Nanos, Pass, Rank};

/// What a rank is given.
pub(super) struct Setting<'a> {
    pub(super) ranks: &'a Ranks,
    pub(super) rank: Rank,
    pub(super) comm: SharedComm<Tensor>,
    pub(super) batch: &'a Batch,
    pub(super) stop: &'a AtomicBool,
    /// The squares of its replica's norm, if they are known before it starts.
    pub(super) squares: Option<f64>,
    /// Its operations, in order.
    pub(super) ops: Vec<OpId>,
    /// The core that is its own.
    pub(super) core: Option<core_affinity::CoreId>,
    #[cfg(test)]
    pub(super) trouble: Option<&'a super::tests::Trouble>,
}

/// What a rank came to.
#[derive(Debug)]
pub(super) struct Through {
    /// When each of its operations ran, in their order.
    pub(super) times: Vec<Times>,
    /// Micro-batches and their losses, summed over tokens, if it has the last stage.
    pub(super) losses: Vec<(u32, f64)>,
    /// The squares of its replica's norm, if its ranks summed them.
    pub(super) squares: Option<f64>,
}

/// What was begun and is not waited for yet.
pub(super) enum Pending {
    /// A message that another rank sends.
    Message { from: Rank, tag: Tag, what: u32 },
    /// A collective, joined at some time.
    Collective(Nanos, Joined),
}

/// A rank at work.
pub(super) struct Worker<'a> {
    pub(super) setting: Setting<'a>,
    /// Micro-batches in flight, by stage.
    pub(super) flights: HashMap<(u32, u32), Flight>,
    /// What has arrived, or was made by another stage of this rank.
    inbox: HashMap<Tag, Tensor>,
    /// What a pass made and was not sent yet.
    outbox: HashMap<Tag, Tensor>,
    pending: BTreeMap<OpId, Pending>,
    /// When each of its operations ran, in their order; room for all is there before the first.
    times: Vec<Times>,
    /// The first of its operations; the others follow one by one.
    first: OpId,
    losses: Vec<(u32, f64)>,
    pub(super) squares: Option<f64>,
    /// Until when the time of this rank is accounted for.
    mark: Nanos,
    /// When the step began.
    origin: Nanos,
}

impl<'a> Worker<'a> {
    pub(super) fn new(setting: Setting<'a>) -> Self {
        Self {
            squares: setting.squares,
            times: vec![Times::default(); setting.ops.len()],
            first: setting.ops.first().copied().unwrap_or(OpId(0)),
            setting,
            flights: HashMap::new(),
            inbox: HashMap::new(),
            outbox: HashMap::new(),
            pending: BTreeMap::new(),
            losses: Vec::new(),
            mark: Nanos::ZERO,
            origin: Nanos::ZERO,
        }
    }

    pub(super) fn program(&self) -> &'a Program {
        self.setting.ranks.program()
    }

    /// All operations; what goes wrong stops the other ranks too.
    pub(super) fn run(mut self) -> Result<Through, StepError> {
        if let Some(core) = self.setting.core {
            // Where the system does not allow it, the system's own choice is as good a picture.
            core_affinity::set_for_current(core);
        }
        self.begin()?;
        let ops = std::mem::take(&mut self.setting.ops);
        for &id in &ops {
            self.op(id)?;
            if self.is_hopeless(id) {
                break;
            }
        }
        for id in self.pending.keys().copied().collect::<Vec<_>>() {
            self.settle(id)?;
        }
        let origin = self.origin;
        let since = |at: Nanos| at.since(origin);
        let times = self.times.iter().map(|times| Times {
            ready: since(times.ready),
            start: since(times.start),
            end: since(times.end),
        });
        Ok(Through {
            times: times.collect(),
            losses: self.losses,
            squares: self.squares,
        })
    }

    /// All begin at once.
    fn begin(&mut self) -> Result<(), StepError> {
        let call = Call {
            group: self.program().groups.len() as u32,
            kind: Kind::Barrier,
            what: u32::MAX - 1,
        };
        let ticket = self.setting.comm.start(call, Buffer::empty())?;
        self.origin = self.setting.comm.wait(ticket)?.began;
        self.mark = self.origin;
        Ok(())
    }

    fn op(&mut self, id: OpId) -> Result<(), StepError> {
        if self.setting.stop.load(Ordering::Relaxed) {
            self.setting.comm.fail(Fault::Stopped);
        }
        self.setting.comm.doing(id.0)?;
        #[cfg(test)]
        super::tests::meet(&mut self.setting, id)?;
        let program = self.program();
        for &wait in program.waits(program.op(id)) {
            self.settle(wait)?;
        }
        let done = self.perform(id);
        done.map_err(|error| match error {
            Failed::Fault(fault) => StepError::Ranks(fault),
            Failed::Model(source) => self.failed(id, source),
        })
    }

    /// This rank's own error: the others are told.
    fn failed(&mut self, id: OpId, source: ModelError) -> StepError {
        let error = self.setting.ranks.failed(id, source);
        let rank = Doing {
            rank: self.setting.rank.0,
            what: super::name(self.program(), id),
        };
        let why = error.to_string();
        self.setting.comm.fail(Fault::Failed { rank, why });
        error
    }

    /// Whether the gradients' norm, known after `id`, is not a number: all ranks of the replica see that alike and
    /// leave the weights as they are.
    fn is_hopeless(&self, id: OpId) -> bool {
        let is_norm = matches!(self.program().op(id).what, What::Optimizer);
        is_norm && self.squares.is_some_and(|squares| !squares.is_finite())
    }

    fn perform(&mut self, id: OpId) -> Result<(), Failed> {
        let op = self.program().op(id);
        let began = self.mark;
        match op.what {
            What::Compute {
                segment: Some(segment),
                place,
            } => self.compute((op.stage, op.micro_batch), segment, place)?,
            What::Optimizer => self.optimize()?,
            What::Send { to, tag } => return self.send(id, to, tag),
            What::Receive { from, tag } => {
                let what = self.setting.ranks.plan.partner(id).0;
                self.pending
                    .insert(id, Pending::Message { from, tag, what });
                return Ok(());
            }
            What::Collective { .. } => return self.join(id),
            What::Compute { segment: None, .. } => {}
        }
        self.mark = self.setting.comm.now();
        self.note(id, (began, began), self.mark);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn clock(&self) -> Nanos {
        self.setting.comm.now()
    }

    pub(super) fn note(&mut self, id: OpId, (ready, start): (Nanos, Nanos), end: Nanos) {
        let index = id.index() - self.first.index();
        if let Some(times) = self.times.get_mut(index) {
            *times = Times { ready, start, end };
        }
    }

    fn join(&mut self, id: OpId) -> Result<(), Failed> {
        let ready = self.mark;
        match self.start(id)? {
            Some(joined) => {
                self.pending.insert(id, Pending::Collective(ready, joined));
            }
            None => self.note(id, (ready, ready), ready),
        }
        Ok(())
    }

    /// Waits for what was begun, if it still has to be waited for.
    fn settle(&mut self, id: OpId) -> Result<(), StepError> {
        let Some(pending) = self.pending.remove(&id) else {
            return Ok(());
        };
        let asked = self.setting.comm.now();
        match pending {
            Pending::Message { from, tag, what } => {
                let arrival = self.setting.comm.receive(from.0, what)?;
                self.inbox.insert(tag, arrival.message);
                let end = self.waited(asked, arrival.sent);
                self.note(id, (arrival.sent, arrival.sent), end);
            }
            Pending::Collective(ready, joined) => {
                let (ticket, after) = joined.split();
                let done = self.setting.comm.wait(ticket)?;
                let end = self.waited(asked, done.ended);
                self.note(id, (ready, done.began.max(ready)), end);
                let finished = self.finish(id, after, done.buffer);
                finished.map_err(|source| self.failed(id, source))?;
            }
        }
        Ok(())
    }

    /// When this rank had what was there at `there`, having asked for it at `asked`: if it had to wait, its time until
    /// now is that wait's.
    fn waited(&mut self, asked: Nanos, there: Nanos) -> Nanos {
        if there < asked {
            return there;
        }
        self.mark = self.setting.comm.now();
        self.mark
    }

    fn compute(
        &mut self,
        key: (u32, u32),
        segment: Segment,
        place: Place,
    ) -> Result<(), ModelError> {
        let (stage, micro_batch) = key;
        let (ranks, rank) = (self.setting.ranks, self.setting.rank);
        let shard = ranks.shard(rank, stage)?;
        let mut flight = if let Some(flight) = self.flights.remove(&key) {
            flight
        } else {
            let dp = self.program().mesh.coord(rank).dp;
            let batch = self.setting.batch;
            Flight::new(&batch.tokens[dp][micro_batch as usize], batch.loss_scale)?
        };
        if place.first
            && let Some(pass) = input_of(self.program(), stage, place.pass)
        {
            let tag = Tag {
                pass,
                stage,
                micro_batch,
            };
            let input = self.inbox.remove(&tag);
            flight.put_input(&input.ok_or(ModelError::Nothing("input from another stage"))?)?;
        }
        shard.compute(&mut flight, place.pass, segment)?;
        if place.last {
            self.hand_over(key, &mut flight, place.pass)?;
            if place.pass.makes_weight_grad() {
                return Ok(());
            }
        }
        self.flights.insert(key, flight);
        Ok(())
    }

    /// At the end of a pass: the loss is noted, and what was made goes to the stage that needs it.
    fn hand_over(
        &mut self,
        (stage, micro_batch): (u32, u32),
        flight: &mut Flight,
        pass: Pass,
    ) -> Result<(), ModelError> {
        let rank = self.setting.rank;
        match output_of(self.program(), (rank, stage, micro_batch), pass) {
            Output::Loss => {
                if let (0, Some(loss)) = (self.program().mesh.coord(rank).tp, flight.loss()) {
                    self.losses.push((micro_batch, loss));
                }
            }
            Output::Input { tag, is_here } => {
                let output = flight.take_output()?;
                let place = if is_here {
                    &mut self.inbox
                } else {
                    &mut self.outbox
                };
                place.insert(tag, output);
            }
            Output::Nothing => {}
        }
        Ok(())
    }

    /// What is handed over is not copied: the tensor itself goes to the other thread.
    fn send(&mut self, id: OpId, to: Rank, tag: Tag) -> Result<(), Failed> {
        let sent = self.outbox.remove(&tag);
        let sent = sent.ok_or(ModelError::Nothing("output to send"))?;
        let start = self.setting.comm.now();
        self.setting.comm.send(to.0, id.0, sent)?;
        let end = self.setting.comm.now();
        self.note(id, (start, start), end);
        Ok(())
    }

    fn optimize(&mut self) -> Result<(), ModelError> {
        let (ranks, rank) = (self.setting.ranks, self.setting.rank);
        let squares = match self.squares {
            Some(squares) => squares,
            // A single rank has no one to sum with.
            None => ranks
                .shards_of(rank)
                .map(crate::model::Shard::square_norm)
                .sum::<Result<f64, _>>()?,
        };
        self.squares = Some(squares);
        if !squares.is_finite() {
            return Ok(());
        }
        let scale = clip_scale(&ranks.shape.optimizer, squares.sqrt());
        let mut shards = ranks.shards_of(rank);
        shards.try_for_each(|shard| shard.optimize(&ranks.shape.optimizer, scale, ranks.steps + 1))
    }
}

/// Why an operation came to nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// Ranks stopped one another.
    Fault(Fault),
    /// This rank's maths.
    Model(ModelError),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<candle_core::Error> for Failed {
    fn from(error: candle_core::Error) -> Self {
        Self::Model(error.into())
    }
}

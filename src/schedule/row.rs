//! A rank's row in the making.

use std::collections::{BTreeMap, VecDeque};

use super::{Action, Turn};
use crate::units::Pass;

/// The turns of a rank so far. Each stage takes its micro-batches in order; those past the last are left
/// out, as of a schedule that is made for more than there are.
#[derive(Debug)]
pub(super) struct Row {
    micro_batches: usize,
    turns: Vec<Turn>,
    forwards: BTreeMap<usize, usize>,
    backwards: BTreeMap<usize, usize>,
    /// Input-gradients whose weight-gradient is still to come, oldest first.
    owed: VecDeque<Action>,
}

impl Row {
    /// Nothing yet, of so many micro-batches.
    pub(super) fn new(micro_batches: usize) -> Self {
        Self {
            micro_batches,
            turns: Vec::new(),
            forwards: BTreeMap::new(),
            backwards: BTreeMap::new(),
            owed: VecDeque::new(),
        }
    }

    /// The forward pass of the stage's next micro-batch.
    pub(super) fn forward(&mut self, stage: usize) {
        if let Some(action) = self.next(Pass::Forward, stage) {
            self.turns.push(Turn::One(action));
        }
    }

    /// The full backward pass of the stage's next micro-batch.
    pub(super) fn backward(&mut self, stage: usize) {
        if let Some(action) = self.next(Pass::Backward, stage) {
            self.turns.push(Turn::One(action));
        }
    }

    /// The input-gradient of the stage's next micro-batch; its weight-gradient is owed.
    pub(super) fn input_grad(&mut self, stage: usize) {
        if let Some(action) = self.next(Pass::InputGrad, stage) {
            self.turns.push(Turn::One(action));
            self.owed.push_back(action);
        }
    }

    /// The weight-gradient that has been owed longest, if any is.
    pub(super) fn weight_grad(&mut self) {
        if let Some(action) = self.owed.pop_front() {
            self.pay(action);
        }
    }

    /// The weight-gradient that has been owed longest on a stage, if any is.
    pub(super) fn weight_grad_of(&mut self, stage: usize) {
        let oldest = self
            .owed
            .iter()
            .position(|action| action.stage as usize == stage);
        if let Some(action) = oldest.and_then(|at| self.owed.remove(at)) {
            self.pay(action);
        }
    }

    /// All weight-gradients still owed, oldest first.
    pub(super) fn all_weight_grads(&mut self) {
        while !self.owed.is_empty() {
            self.weight_grad();
        }
    }

    /// How many weight-gradients are owed.
    pub(super) fn owed(&self) -> usize {
        self.owed.len()
    }

    /// A forward and a full backward pass at once, each of its stage's next micro-batch.
    pub(super) fn pair(&mut self, forward_stage: usize, backward_stage: usize) {
        let forward = self.next(Pass::Forward, forward_stage);
        let backward = self.next(Pass::Backward, backward_stage);
        match (forward, backward) {
            (Some(forward), Some(backward)) => self.turns.push(Turn::Pair(forward, backward)),
            (one, other) => self
                .turns
                .extend(one.into_iter().chain(other).map(Turn::One)),
        }
    }

    /// An action on a micro-batch out of order.
    pub(super) fn push(&mut self, pass: Pass, stage: usize, micro_batch: usize) {
        self.turns.push(Turn::One(action(pass, stage, micro_batch)));
    }

    /// The finished row.
    pub(super) fn into_turns(self) -> Vec<Turn> {
        self.turns
    }

    fn next(&mut self, pass: Pass, stage: usize) -> Option<Action> {
        let done = match pass {
            Pass::Forward => &mut self.forwards,
            Pass::Backward | Pass::InputGrad | Pass::WeightGrad => &mut self.backwards,
        };
        let count = done.entry(stage).or_insert(0);
        *count += 1;
        (*count <= self.micro_batches).then(|| action(pass, stage, *count - 1))
    }

    fn pay(&mut self, owed: Action) {
        self.turns.push(Turn::One(Action {
            pass: Pass::WeightGrad,
            ..owed
        }));
    }
}

fn action(pass: Pass, stage: usize, micro_batch: usize) -> Action {
    Action {
        stage: stage as u32,
        pass,
        micro_batch: micro_batch as u32,
    }
}

//! A little sequential engine: all shards of one replica, stage by stage, rank by rank.

use candle_core::Tensor;

use crate::model::{Flight, Shard, ShardPlace, Weights, gather_gradients, reduce};
use crate::shape::{ModelShape, Recompute, Reduce, Slices, StageShape};
use crate::units::Pass;

/// How the backward pass is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backward {
    /// As one pass.
    Whole,
    /// Input-gradients of all stages, then weight-gradients.
    Split,
}

/// One replica: shards by stage, then by tensor-parallel rank.
pub(super) struct Replica {
    pub(super) shape: ModelShape,
    pub(super) stages: Vec<Vec<Shard>>,
}

impl Replica {
    /// Cuts the layers into consecutive stages of the given sizes, each over `tp` ranks.
    pub(super) fn new(
        shape: &ModelShape,
        full: &Weights,
        sizes: &[usize],
        slices: impl Into<Slices>,
    ) -> Self {
        let Slices { tp, sequence } = slices.into();
        let mut start = 0;
        let stage = |(index, size): (usize, &usize)| {
            let layers = start..start + size;
            start = layers.end;
            let stage = StageShape {
                layers,
                first: index == 0,
                last: index + 1 == sizes.len(),
            };
            let place = |tp_index| ShardPlace {
                stage: stage.clone(),
                tp_index,
                tp,
                sequence,
            };
            (0..tp)
                .map(|rank| Shard::new(shape, place(rank), full).unwrap())
                .collect()
        };
        let stages = sizes.iter().enumerate().map(stage).collect();
        Self {
            shape: shape.clone(),
            stages,
        }
    }

    pub(super) fn shards(&self) -> Vec<&Shard> {
        self.stages.iter().flatten().collect()
    }

    /// A micro-batch's flights.
    pub(super) fn flights(&self, tokens: &Tensor, scale: f32) -> Vec<Vec<Flight>> {
        let flights = |stage: &Vec<Shard>| {
            let flight = |_| Flight::new(tokens, scale).unwrap();
            stage.iter().map(flight).collect()
        };
        self.stages.iter().map(flights).collect()
    }

    pub(super) fn forward(&self, flights: &mut [Vec<Flight>]) -> f64 {
        for stage in 0..flights.len() {
            self.pass(flights, stage, Pass::Forward);
            if stage + 1 < flights.len() {
                hand_on(flights, stage, stage + 1);
            }
        }
        let last = &flights[flights.len() - 1];
        let loss = last[0].loss().unwrap();
        assert!(last.iter().all(|flight| flight.loss() == Some(loss)));
        loss
    }

    pub(super) fn backward(&self, flights: &mut [Vec<Flight>], how: Backward) {
        let pass = match how {
            Backward::Whole => Pass::Backward,
            Backward::Split => Pass::InputGrad,
        };
        for stage in (0..flights.len()).rev() {
            self.pass(flights, stage, pass);
            if stage > 0 {
                hand_on(flights, stage, stage - 1);
            }
        }
        if how == Backward::Split {
            for stage in 0..flights.len() {
                self.pass(flights, stage, Pass::WeightGrad);
            }
        }
        let clean = |flight: &Flight| flight.stash_elements() == 0 && flight.held_elements() == 0;
        assert!(
            flights.iter().flatten().all(clean),
            "something is still kept"
        );
    }

    fn pass(&self, flights: &mut [Vec<Flight>], stage: usize, pass: Pass) {
        let (shards, flights) = (&self.stages[stage], &mut flights[stage]);
        let place = shards[0].place();
        for step in place.stage.steps(pass, place.slices(), Recompute::None) {
            for (shard, flight) in shards.iter().zip(&mut *flights) {
                shard.compute(flight, pass, step.segment).unwrap();
            }
            let take = |flight: &mut Flight| flight.take_partial().unwrap();
            let partials: Vec<Vec<Tensor>> = step
                .reduces
                .iter()
                .map(|_| flights.iter_mut().map(take).collect())
                .collect();
            for (kind, parts) in step.reduces.iter().zip(&partials) {
                let reduced = reduce(*kind, parts).unwrap();
                let share = if *kind == Reduce::ScatterHidden {
                    shards.len()
                } else {
                    1
                };
                for (flight, reduced) in flights.iter_mut().zip(reduced) {
                    let whole = kind.elements(flight.tokens(), self.shape.hidden);
                    assert_eq!((reduced.elem_count() * share) as u64, whole);
                    flight.put_reduced(reduced);
                }
            }
        }
    }

    /// With sequence parallelism: sums the norms' gradients over the ranks of each stage.
    pub(super) fn sum_norms(&self) {
        for stage in &self.stages {
            if stage[0].place().slices().cuts_sequence() {
                let parts: Vec<Vec<Tensor>> = stage
                    .iter()
                    .map(|shard| shard.norm_gradients().unwrap())
                    .collect();
                let sums = crate::model::sum_gradients(&parts).unwrap();
                for shard in stage {
                    shard.set_norm_gradients(&sums).unwrap();
                }
            }
        }
    }

    /// Sums the tied embedding's gradient over first and last stage.
    pub(super) fn sum_tied(&self) {
        let last = self.stages.len() - 1;
        for (first, last) in self.stages[0].iter().zip(&self.stages[last]) {
            let (a, b) = (
                first.tied_gradient().unwrap(),
                last.tied_gradient().unwrap(),
            );
            if let (Some(a), Some(b)) = (a, b) {
                let sum = (a + b).unwrap();
                first.set_tied_gradient(sum.clone()).unwrap();
                last.set_tied_gradient(sum).unwrap();
            }
        }
    }

    /// Forward and backward of a batch in micro-batches; the mean loss. Gradients are ready after.
    pub(super) fn accumulate(&self, tokens: &Tensor, micro_batches: usize, how: Backward) -> f64 {
        let (batch, length) = tokens.dims2().unwrap();
        let count = (batch * (length - 1)) as f64;
        let mut loss = 0.0;
        for part in tokens.chunk(micro_batches, 0).unwrap() {
            let mut flights = self.flights(&part, (1.0 / count) as f32);
            loss += self.forward(&mut flights);
            self.backward(&mut flights, how);
        }
        self.sum_norms();
        self.sum_tied();
        loss / count
    }

    pub(super) fn grad_norm(&self) -> f64 {
        let shards = self.shards();
        let squares = shards.iter().map(|shard| shard.square_norm().unwrap());
        squares.sum::<f64>().sqrt()
    }

    pub(super) fn gradients(&self) -> Weights {
        gather_gradients(&self.shape, &self.shards()).unwrap()
    }
}

/// Hands each rank's output of one stage to the same rank of another.
fn hand_on(flights: &mut [Vec<Flight>], from: usize, to: usize) {
    for rank in 0..flights[from].len() {
        let output = flights[from][rank].take_output().unwrap();
        flights[to][rank].put_input(&output).unwrap();
    }
}

/// All elements of a tensor.
pub(super) fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// How far apart two tensors may be: relative and absolute.
#[derive(Clone, Copy)]
pub(super) struct Tolerance(pub(super) f32, pub(super) f32);

/// Fails, with the name, at the first element too far from what is expected.
pub(super) fn assert_close(name: &str, found: &Tensor, expected: &Tensor, within: Tolerance) {
    assert_eq!(found.dims(), expected.dims(), "{name}");
    for (at, (found, expected)) in values(found).iter().zip(values(expected)).enumerate() {
        let allowed = within.1 + within.0 * expected.abs();
        assert!(
            (found - expected).abs() <= allowed,
            "{name}[{at}] is {found}, expected {expected}"
        );
    }
}

/// As [`assert_close`], for every tensor.
pub(super) fn assert_all_close(found: &Weights, expected: &Weights, within: Tolerance) {
    for (name, tensor) in expected.iter() {
        assert_close(name, found.get(name).unwrap(), tensor, within);
    }
}

/// Random tokens `[batch, seq + 1]`.
pub(super) fn tokens(shape: &ModelShape, batch: usize, seed: u64) -> Tensor {
    let mut rng = crate::model::rng::Rng::new(seed, 99);
    let count = batch * (shape.seq + 1);
    let data: Vec<u32> = (0..count)
        .map(|_| rng.below(shape.vocab as u64) as u32)
        .collect();
    Tensor::from_vec(data, (batch, shape.seq + 1), &candle_core::Device::Cpu).unwrap()
}

/// A model by its dimensions `[layers, hidden, heads, vocab, seq]`.
pub(super) fn shape([layers, hidden, heads, vocab, seq]: [usize; 5]) -> ModelShape {
    let text = format!(
        "name='test'\nlayers={layers}\nhidden={hidden}\nheads={heads}\nvocab={vocab}\nseq={seq}"
    );
    ModelShape::from_toml(&text).unwrap()
}

/// Weights far enough from their beginning that no gradient is trivial.
pub(super) fn rough_weights(shape: &ModelShape, seed: u64) -> Weights {
    let mut rng = crate::model::rng::Rng::new(seed, 7);
    let full = Weights::init(shape, seed).unwrap();
    let rough = full.iter().map(|(name, tensor)| {
        let noise: Vec<f32> = values(tensor)
            .iter()
            .map(|x| x + 0.1 * rng.normal() as f32)
            .collect();
        let tensor = Tensor::from_vec(noise, tensor.dims(), tensor.device()).unwrap();
        (name.to_owned(), tensor)
    });
    Weights::from_tensors(rough)
}

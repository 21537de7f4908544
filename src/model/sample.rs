//! Text from a model: one token after the other.

use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::{Device, Tensor};

use super::error::Result;
use super::flight::Flight;
use super::ops;
use super::rng::Rng;
use super::shard::{Shard, ShardPlace};
use super::weights::Weights;
use crate::shape::{ModelShape, Recompute, Segment};
use crate::units::Pass;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// How many tokens.
    pub tokens: usize,
    /// Zero takes the likeliest token each time; one draws from the model's own distribution.
    pub temperature: f64,
    /// The same seed gives the same text.
    pub seed: u64,
}

/// Tokens that continue a prompt, which they do not include; fewer than asked for once `stop` is set.
pub fn sample(
    shape: &ModelShape,
    weights: &Weights,
    prompt: &[u32],
    how: Sampling,
    stop: &AtomicBool,
) -> Result<Vec<u32>> {
    let shard = Shard::new(shape, ShardPlace::whole(shape), weights)?;
    let mut rng = Rng::new(how.seed, 0);
    let mut tokens = if prompt.is_empty() {
        vec![0]
    } else {
        prompt.to_vec()
    };
    let start = tokens.len();
    for _ in 0..how.tokens {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let seen = &tokens[tokens.len().saturating_sub(shape.seq)..];
        let logits = last_logits(&shard, seen)?;
        tokens.push(draw(&logits, how.temperature, &mut rng));
    }
    Ok(tokens.split_off(start))
}

fn last_logits(shard: &Shard, seen: &[u32]) -> Result<Vec<f32>> {
    // A flight has a target for every token; the last one's is not looked at.
    let padded: Vec<u32> = seen.iter().copied().chain([0]).collect();
    let tokens = Tensor::from_vec(padded, (1, seen.len() + 1), &Device::Cpu)?;
    let logits = shard.logits(Flight::new(&tokens, 1.0)?)?;
    let values = ops::floats(&logits)?;
    Ok(values[values.len() - shard.shape().vocab..].to_vec())
}

fn draw(logits: &[f32], temperature: f64, rng: &mut Rng) -> u32 {
    let best = |best: usize, at: usize| if logits[at] > logits[best] { at } else { best };
    let likeliest = (0..logits.len()).fold(0, best);
    if temperature <= 0.0 {
        return likeliest as u32;
    }
    let weight = |x: f32| (f64::from(x - logits[likeliest]) / temperature).exp();
    let total: f64 = logits.iter().map(|&x| weight(x)).sum();
    let mut left = rng.unit() * total;
    let chosen = logits.iter().position(|&x| {
        left -= weight(x);
        left <= 0.0
    });
    chosen.unwrap_or(likeliest) as u32
}

impl Shard {
    /// Logits `[batch, seq, vocab]` of a micro-batch; of a shard that is the whole model.
    pub fn logits(&self, mut flight: Flight) -> Result<Tensor> {
        for step in self.place().stage.steps(Pass::Forward, 1, Recompute::None) {
            if step.segment != Segment::Head {
                self.compute(&mut flight, Pass::Forward, step.segment)?;
            }
        }
        let (batch, seq) = (flight.batch, flight.seq);
        let hidden = flight.take_output()?;
        let hidden = hidden.reshape((batch * seq, self.shape().hidden))?;
        let (logits, _) = self.head_logits(&hidden)?;
        Ok(logits.reshape((batch, seq, self.shape().vocab))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_temperature() {
        let logits = [0.0, 3.0, 1.0];
        let mut rng = Rng::new(1, 0);
        assert_eq!(draw(&logits, 0.0, &mut rng), 1);
        let mut counts = [0_usize; 3];
        for _ in 0..3000 {
            counts[draw(&logits, 1.0, &mut rng) as usize] += 1;
        }
        let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        for (count, logit) in counts.iter().zip(logits) {
            let share = *count as f64 / 3000.0;
            assert!((share - f64::from(logit).exp() / total).abs() < 0.03);
        }
    }

    #[test]
    fn a_seed_repeats_and_a_long_prompt_fits() {
        let text = "name='x'\nlayers=1\nhidden=8\nheads=2\nvocab=11\nseq=4";
        let shape = ModelShape::from_toml(text).unwrap();
        let weights = Weights::init(&shape, 1).unwrap();
        let how = Sampling {
            tokens: 6,
            temperature: 1.0,
            seed: 5,
        };
        let go = AtomicBool::new(false);
        let run = |prompt: &[u32]| sample(&shape, &weights, prompt, how, &go).unwrap();
        assert_eq!(run(&[1, 2]), run(&[1, 2]));
        assert_eq!(run(&[1, 2, 3, 4, 5, 6]).len(), 6);
        assert!(run(&[]).iter().all(|token| *token < 11));
        go.store(true, Ordering::Relaxed);
        assert!(run(&[1]).is_empty());
    }
}

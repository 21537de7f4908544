//! What is trained on: bytes of a text, or tokens of a file; batches that depend on no layout.

use candle_core::{DType, Device, Tensor};

use super::error::{ModelError, Result};
use super::rng::Rng;

/// The text that comes with the program.
pub const PRIMER: &str = include_str!("../../assets/text/primer.txt");

/// A text's bytes as tokens, taken modulo a vocabulary smaller than 256.
pub fn byte_tokens(text: &str, vocab: usize) -> Vec<u32> {
    let wrap = |byte: u8| (usize::from(byte) % vocab.max(1)) as u32;
    text.bytes().map(wrap).collect()
}

/// Tokens as text, where they are bytes.
pub fn text_of(tokens: &[u32]) -> String {
    let bytes: Vec<u8> = tokens.iter().map(|&token| token as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where batches come from.
#[derive(Clone, Debug)]
enum Source {
    /// Windows at random places of one stream of tokens.
    Stream { tokens: Vec<u32>, seed: u64 },
    /// `[steps, batch, seq + 1]`, as they are.
    Fixed(Tensor),
}

/// Batches of token sequences, the same for a step whatever the layout.
#[derive(Clone, Debug)]
pub struct Batches {
    source: Source,
    seq: usize,
}

impl Batches {
    /// From a stream of tokens: sequences of `seq + 1` at places drawn by the seed.
    pub fn new(tokens: Vec<u32>, seq: usize, seed: u64) -> Result<Self> {
        if tokens.len() <= seq {
            let what = format!("{} of them, but a sequence takes {}", tokens.len(), seq + 1);
            return Err(ModelError::Tokens(what));
        }
        let source = Source::Stream { tokens, seed };
        Ok(Self { source, seq })
    }

    /// From the bytes of a safetensors file with `tokens` `[steps, batch, seq + 1]`, each below `vocab`.
    pub fn from_safetensors(bytes: &[u8], seq: usize, vocab: usize) -> Result<Self> {
        let mut tensors = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?;
        let missing = || ModelError::Missing("tokens".to_owned());
        let tokens = tensors.remove("tokens").ok_or_else(missing)?;
        let (_, _, length) = tokens.dims3()?;
        if length != seq + 1 {
            let what = format!("sequences of {length}, but the model takes {}", seq + 1);
            return Err(ModelError::Tokens(what));
        }
        let tokens = tokens.to_dtype(DType::U32)?;
        let values = tokens.flatten_all()?.to_vec1::<u32>()?;
        if let Some(token) = values.iter().find(|&&token| token as usize >= vocab) {
            let what = format!(
                "one is {token}, but the model's vocabulary ends at {}",
                vocab - 1
            );
            return Err(ModelError::Tokens(what));
        }
        let source = Source::Fixed(tokens);
        Ok(Self { source, seq })
    }

    /// How many steps there are, if they end.
    pub fn steps(&self) -> Option<usize> {
        match &self.source {
            Source::Stream { .. } => None,
            Source::Fixed(tokens) => tokens.dim(0).ok(),
        }
    }

    /// The only global batch size there is, if it is fixed.
    pub fn global_batch(&self) -> Option<usize> {
        match &self.source {
            Source::Stream { .. } => None,
            Source::Fixed(tokens) => tokens.dim(1).ok(),
        }
    }

    /// The tokens `[global_batch, seq + 1]` of a step, which counts from 0.
    pub fn batch(&self, step: usize, global_batch: usize) -> Result<Tensor> {
        match &self.source {
            Source::Stream { tokens, seed } => {
                let length = self.seq + 1;
                let mut batch = Vec::with_capacity(global_batch * length);
                let mut rng = Rng::new(*seed, step as u64);
                for _ in 0..global_batch {
                    let start = rng.below((tokens.len() - self.seq) as u64) as usize;
                    batch.extend_from_slice(&tokens[start..start + length]);
                }
                Ok(Tensor::from_vec(
                    batch,
                    (global_batch, length),
                    &Device::Cpu,
                )?)
            }
            Source::Fixed(tokens) => {
                let (steps, batch, _) = tokens.dims3()?;
                if step >= steps || global_batch != batch {
                    let what = format!(
                        "the file has {steps} steps of {batch} sequences; step {step} of {global_batch} was asked for"
                    );
                    return Err(ModelError::Tokens(what));
                }
                Ok(tokens.get(step)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_batch_whatever_asked_before() {
        let batches = Batches::new(byte_tokens(PRIMER, 256), 64, 3).unwrap();
        let rows = |step| -> Vec<Vec<u32>> { batches.batch(step, 8).unwrap().to_vec2().unwrap() };
        assert_eq!(rows(5), rows(5));
        assert_ne!(rows(5), rows(6));
        assert!(PRIMER.contains(&text_of(&rows(5)[0])));
    }

    #[test]
    fn too_short_a_text_is_refused() {
        let error = Batches::new(vec![1, 2, 3], 3, 0).unwrap_err().to_string();
        assert_eq!(error, "unusable tokens: 3 of them, but a sequence takes 4");
    }

    #[test]
    fn the_primer_is_plain_ascii_and_small_vocabularies_wrap() {
        assert!(PRIMER.is_ascii());
        assert!((30_000..45_000).contains(&PRIMER.len()), "{}", PRIMER.len());
        assert!(byte_tokens(PRIMER, 97).iter().all(|&token| token < 97));
    }
}

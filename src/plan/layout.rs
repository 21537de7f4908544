//! The degrees that a user picks, and whether they go with a model: what is wrong, why, and the nearest
//! legal values.

use serde::{Deserialize, Serialize};

use crate::mesh::{Mesh, MeshError, split_layers};
use crate::schedule::{MAX_COUNT, Schedule, ScheduleError, ScheduleKind, Textbook};
use crate::shape::{Methods, ModelShape};

/// How a model and its batch are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Data-parallel degree.
    pub dp: usize,
    /// Tensor-parallel degree.
    pub tp: usize,
    /// Pipeline-parallel degree.
    pub pp: usize,
    /// Micro-batches of each replica.
    pub micro_batches: usize,
    /// Sequences of a micro-batch.
    pub micro_batch_size: usize,
    /// The order of work.
    pub schedule: ScheduleKind,
    /// Stages of a pipeline rank.
    pub chunks: usize,
}

/// Why a layout cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A degree that is not one.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The schedule cannot be.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Something that tensor-parallel ranks must share equally and cannot.
    #[error("tp {tp} does not divide the model's {count} {what}: {why}; legal tp: {}", listed(.legal))]
    Tensor {
        /// The degree.
        tp: usize,
        /// Heads, for example.
        what: &'static str,
        /// How many.
        count: usize,
        /// Why it must.
        why: &'static str,
        /// The degrees that do, ascending.
        legal: Vec<usize>,
    },
    /// A micro-batch of nothing.
    #[error("micro-batch size is {0}, but must be from 1 to {MAX_COUNT}")]
    MicroBatch(usize),
    /// More activations than can be counted.
    #[error(
        "a micro-batch of {size} sequences of {seq} tokens keeps more than an exbibyte; lower one of them"
    )]
    MicroBatchTooLarge {
        /// Sequences of a micro-batch.
        size: usize,
        /// Tokens of a sequence.
        seq: usize,
    },
    /// Layers put on stages by hand that are not the model's layers or not the layout's stages.
    #[error(
        "layers per stage {} are {sum} layers on {} stages, but the model has {layers} and the layout {stages}; evenly \
         it is {}", listed(.counts), .counts.len(), listed(.even)
    )]
    LayersPerStage {
        /// What was asked for.
        counts: Vec<usize>,
        /// Their sum.
        sum: usize,
        /// The model's layers.
        layers: usize,
        /// The layout's stages.
        stages: usize,
        /// The usual split.
        even: Vec<usize>,
    },
    /// A batch that does not come out even.
    #[error(
        "global batch {batch} is not a multiple of dp x micro-batch size = {dp} x {size} = {}: each of the {dp} \
         replicas takes whole micro-batches; nearest legal: {}", .dp * .size, listed(.legal)
    )]
    GlobalBatch {
        /// What was asked for.
        batch: usize,
        /// Data-parallel degree.
        dp: usize,
        /// Sequences of a micro-batch.
        size: usize,
        /// The next batches that come out even.
        legal: Vec<usize>,
    },
}

/// The most bytes that a layer may keep of a micro-batch.
const MOST_KEPT: f64 = (1_u64 << 60) as f64;

/// Whether layers put on stages by hand are as many stages, and as many layers, as there are.
pub fn check_layers(
    counts: Option<&[usize]>,
    layers: usize,
    stages: usize,
) -> Result<(), LayoutError> {
    let Some(counts) = counts else {
        return Ok(());
    };
    let sum = counts
        .iter()
        .fold(0_usize, |sum, &count| sum.saturating_add(count));
    if counts.len() == stages && sum == layers {
        return Ok(());
    }
    let even = split_layers(layers, stages);
    Err(LayoutError::LayersPerStage {
        counts: counts.to_vec(),
        sum,
        layers,
        stages,
        even: even.iter().map(ExactSizeIterator::len).collect(),
    })
}

fn listed(values: &[usize]) -> String {
    values
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            dp: 1,
            tp: 1,
            pp: 1,
            micro_batches: 1,
            micro_batch_size: 1,
            schedule: ScheduleKind::OneFOneB,
            chunks: 1,
        }
    }
}

impl Layout {
    /// GPUs, if they can be counted.
    pub fn mesh(&self) -> Result<Mesh, MeshError> {
        Mesh::new(self.dp, self.tp, self.pp)
    }

    /// The order of work.
    pub fn build_schedule(&self) -> Result<Schedule, ScheduleError> {
        self.schedule
            .build(self.pp, self.micro_batches, self.chunks)
    }

    /// What the textbook says of the order of work.
    pub fn textbook(&self) -> Textbook {
        self.schedule
            .textbook(self.pp, self.micro_batches, self.chunks)
    }

    /// Sequences of a step.
    pub fn global_batch(&self) -> usize {
        self.dp
            .saturating_mul(self.micro_batches)
            .saturating_mul(self.micro_batch_size)
    }

    /// The same batch on one GPU, in micro-batches of the same size.
    pub fn on_one_gpu(&self) -> Self {
        Self {
            dp: 1,
            tp: 1,
            pp: 1,
            schedule: ScheduleKind::OneFOneB,
            chunks: 1,
            micro_batches: self.dp * self.micro_batches,
            ..*self
        }
    }

    /// The micro-batches of each replica that make up `batch` sequences.
    pub fn micro_batches_of(batch: usize, dp: usize, size: usize) -> Result<usize, LayoutError> {
        let unit = dp.saturating_mul(size);
        if unit == 0 || batch == 0 || !batch.is_multiple_of(unit) {
            let unit = unit.max(1);
            let below = batch / unit * unit;
            let legal = [below, below.saturating_add(unit)]
                .into_iter()
                .filter(|&batch| batch > 0)
                .collect();
            return Err(LayoutError::GlobalBatch {
                batch,
                dp,
                size,
                legal,
            });
        }
        Ok(batch / unit)
    }

    /// Whether it goes with `shape`. Layers need not divide by stages, nor the vocabulary by `tp`.
    pub fn check(&self, shape: &ModelShape, methods: Methods) -> Result<(), LayoutError> {
        self.mesh()?;
        check_tensor(shape, self.tp, methods)?;
        if !(1..=MAX_COUNT).contains(&self.micro_batch_size) {
            return Err(LayoutError::MicroBatch(self.micro_batch_size));
        }
        // What a layer keeps of a micro-batch is counted in 64 bits.
        let tokens = (self.micro_batch_size * shape.seq) as f64;
        let widest = 64 * shape.hidden + 4 * shape.ffn() + 5 * shape.heads * shape.seq;
        if tokens * (widest + 4 * shape.vocab) as f64 > MOST_KEPT {
            return Err(LayoutError::MicroBatchTooLarge {
                size: self.micro_batch_size,
                seq: shape.seq,
            });
        }
        // Cheap next to what is built from it, and it names every fault of a schedule.
        self.build_schedule()?;
        Ok(())
    }
}

/// Whether each of `tp` ranks gets whole heads and an equal slice of the feed-forward network.
pub(super) fn check_tensor(
    shape: &ModelShape,
    tp: usize,
    methods: Methods,
) -> Result<(), LayoutError> {
    let tokens = if methods.sequence_parallel {
        shape.seq
    } else {
        0
    };
    let shared = [
        ("heads", shape.heads, "each rank holds whole heads"),
        (
            "key and value heads",
            shape.kv_heads(),
            "each rank holds whole heads",
        ),
        (
            "feed-forward columns",
            shape.ffn(),
            "each rank holds as many",
        ),
        (
            "tokens of a sequence",
            tokens,
            "with sequence parallelism each rank has as many",
        ),
    ];
    let legal = || {
        let most = shape.kv_heads();
        (1..=most)
            .filter(|t| shared.iter().all(|(_, count, _)| count.is_multiple_of(*t)))
            .collect()
    };
    match shared
        .iter()
        .find(|(_, count, _)| !count.is_multiple_of(tp))
    {
        Some(&(what, count, why)) => Err(LayoutError::Tensor {
            tp,
            what,
            count,
            why,
            legal: legal(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_8_heads_that_tp_does_not_divide_are_refused_with_what_is_legal() {
        // 52 heads on 8 (DeepSpeed#3634) and on 3 (vllm#414).
        let shape = ModelShape {
            heads: 52,
            hidden: 52 * 64,
            ..ModelShape::preset("nano").unwrap()
        };
        let said = [8, 3].map(|tp| {
            Layout {
                tp,
                ..Layout::default()
            }
            .check(&shape, Methods::default())
            .unwrap_err()
            .to_string()
        });
        insta::assert_snapshot!(said.join("\n"), @"
        tp 8 does not divide the model's 52 heads: each rank holds whole heads; legal tp: 1, 2, 4, 13, 26, 52
        tp 3 does not divide the model's 52 heads: each rank holds whole heads; legal tp: 1, 2, 4, 13, 26, 52
        ");
    }

    #[test]
    fn case_14_a_batch_that_does_not_come_out_even_is_refused_with_the_nearest() {
        // 256 on 18 replicas with micro-batches of 7 x 2 (OpenRLHF#346).
        let said = Layout::micro_batches_of(256, 18, 14)
            .unwrap_err()
            .to_string();
        insta::assert_snapshot!(said, @"global batch 256 is not a multiple of dp x micro-batch size = 18 x 14 = 252: each of the 18 replicas takes whole micro-batches; nearest legal: 252, 504");
        assert_eq!(Layout::micro_batches_of(256, 4, 8), Ok(8));
        assert!(Layout::micro_batches_of(0, 1, 1).is_err());
        assert!(Layout::micro_batches_of(8, 0, 1).is_err());
    }

    #[test]
    fn any_degrees_are_checked_without_a_panic() {
        let shape = ModelShape::preset("nano").unwrap();
        let most = usize::MAX;
        for layout in [
            Layout {
                tp: 0,
                ..Layout::default()
            },
            Layout {
                dp: most,
                pp: most,
                ..Layout::default()
            },
            Layout {
                micro_batches: most,
                ..Layout::default()
            },
            Layout {
                micro_batch_size: most,
                ..Layout::default()
            },
            Layout {
                chunks: 2,
                ..Layout::default()
            },
        ] {
            assert!(
                layout.check(&shape, Methods::default()).is_err(),
                "{layout:?}"
            );
        }
    }
}

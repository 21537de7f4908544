//! One stage's piece on one tensor-parallel rank: its parameters, gradients and moments.

use candle_core::Tensor;

use super::build::Builder;
use super::cut::{self, Slice};
use super::error::{ModelError, Result};
use super::hash;
use super::kernels::adamw::Coefficients;
use super::kernels::loss::Columns;
use super::param::{Gradient, Linear, Norm, Param};
use super::weights::Weights;
use crate::shape::{Bucket, ModelShape, Optimizer, Segment, Slices, StageShape};

/// Where a shard is: which stage, and which of its tensor-parallel ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPlace {
    /// The stage.
    pub stage: StageShape,
    /// The tensor-parallel rank.
    pub tp_index: usize,
    /// The tensor-parallel degree.
    pub tp: usize,
    /// Whether tensor-parallel ranks also share what lies between matrices, along the sequence.
    pub sequence: bool,
}

impl ShardPlace {
    /// How its ranks share a layer.
    pub fn slices(&self) -> Slices {
        Slices {
            tp: self.tp,
            sequence: self.sequence,
        }
    }
}

/// Half a layer: a norm, a column-parallel matrix up, something in between, a row-parallel one down.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) norm: Norm,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

/// One layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention: Half,
    pub(crate) mlp: Half,
}

/// Token and position embedding, on the first stage.
#[derive(Debug)]
pub(crate) struct Embedding {
    pub(crate) tokens: Param,
    pub(crate) positions: Param,
}

/// The final norm and the head's matrix, on the last stage.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) norm: Norm,
    /// Its own matrix: of an untied model, or the last stage's copy of the embedding.
    pub(crate) own: Option<Param>,
    /// The head's part of the embedding's gradient, where they share the matrix itself. Kept apart, so
    /// that micro-batches at the head and at the embedding do not wait for each other.
    pub(crate) shared: Gradient,
}

/// Bytes of what a shard holds from step to step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateBytes {
    /// Of parameters.
    pub parameters: u64,
    /// Of gradients, once there.
    pub gradients: u64,
    /// Of the optimizer's moments.
    pub optimizer: u64,
}

/// A stage's piece on one rank.
#[derive(Debug)]
pub struct Shard {
    shape: ModelShape,
    place: ShardPlace,
    embedding: Option<Embedding>,
    layers: Vec<Layer>,
    head: Option<Head>,
}

impl Shard {
    /// Cuts a rank's piece out of the full weights.
    pub fn new(shape: &ModelShape, place: ShardPlace, full: &Weights) -> Result<Self> {
        cut::check(shape, place.tp)?;
        full.check(shape)?;
        let build = Builder {
            full,
            slice: Slice {
                index: place.tp_index,
                tp: place.tp,
            },
        };
        let stage = &place.stage;
        let embedding = stage.first.then(|| build.embedding()).transpose()?;
        let layers = stage.layers.clone().map(|layer| build.layer(layer));
        let layers = layers.collect::<Result<_>>()?;
        let head = stage.last.then(|| build.head(shape, stage)).transpose()?;
        Ok(Self {
            shape: shape.clone(),
            embedding,
            layers,
            head,
            place,
        })
    }

    /// The model.
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// Where it is.
    pub fn place(&self) -> &ShardPlace {
        &self.place
    }

    /// The accumulated gradients of a bucket, in a fixed order, sharing their memory. To be read until
    /// the next [`Shard::set_gradient`] or [`Shard::optimize`].
    pub fn gradient(&self, bucket: Bucket) -> Result<Vec<Tensor>> {
        self.complete(bucket)?;
        let params = self.bucket(bucket)?;
        params.iter().map(|param| param.known_gradient()).collect()
    }

    /// Replaces a bucket's gradients, in the order of [`Shard::gradient`]; they may be shared with other shards.
    pub fn set_gradient(&self, bucket: Bucket, gradients: Vec<Tensor>) -> Result<()> {
        let params = self.bucket(bucket)?;
        if params.len() != gradients.len() {
            let (need, found) = (params.len(), gradients.len());
            let what = format!("{bucket:?} has {need} gradients, but {found} were given");
            return Err(ModelError::Parts(what));
        }
        let pairs = params.iter().zip(gradients);
        pairs
            .into_iter()
            .try_for_each(|(param, gradient)| param.set_gradient(gradient))
    }

    /// The gradients of a bucket, complete, in the order of [`Shard::gradient`], to be changed in place: whoever asks
    /// for them is alone with them until they are as all shall see them.
    pub fn gradient_in_place(&self, bucket: Bucket) -> Result<Vec<Tensor>> {
        self.complete(bucket)?;
        in_place(self.bucket(bucket)?)
    }

    /// As [`Shard::gradient_in_place`], of its norms.
    pub fn norm_gradients_in_place(&self) -> Result<Vec<Tensor>> {
        in_place(self.norms())
    }

    /// As [`Shard::gradient_in_place`], of the embedding where [`Shard::tied_gradient`] has one; else nothing.
    pub fn tied_gradient_in_place(&self) -> Result<Vec<Tensor>> {
        in_place(self.tied())
    }

    /// All parameters' elements, to be changed in place, as [`Shard::gradient_in_place`].
    pub fn weights_in_place(&self) -> Vec<Tensor> {
        let all = self.all().into_iter();
        all.map(|param| param.value().clone()).collect()
    }

    /// The embedding's gradient, where first and last stage hold a copy each of a tied one; else none.
    pub fn tied_gradient(&self) -> Result<Option<Tensor>> {
        self.tied().map(Param::known_gradient).transpose()
    }

    /// Replaces the embedding's gradient on a stage where [`Shard::tied_gradient`] has one.
    pub fn set_tied_gradient(&self, gradient: Tensor) -> Result<()> {
        match self.tied() {
            Some(param) => param.set_gradient(gradient),
            None => Err(ModelError::Nothing("tied embedding")),
        }
    }

    fn tied(&self) -> Option<&Param> {
        let stage = &self.place.stage;
        if !self.shape.tied || stage.first == stage.last {
            return None;
        }
        let first = self.embedding.as_ref().map(|embedding| &embedding.tokens);
        first.or_else(|| self.head.as_ref()?.own.as_ref())
    }

    /// The gradients of its norms, in a fixed order: with sequence parallelism each rank has its share's.
    pub fn norm_gradients(&self) -> Result<Vec<Tensor>> {
        self.norms().map(Param::known_gradient).collect()
    }

    /// Replaces the gradients of its norms, in the order of [`Shard::norm_gradients`].
    pub fn set_norm_gradients(&self, gradients: &[Tensor]) -> Result<()> {
        let pairs = self.norms().zip(gradients);
        pairs
            .into_iter()
            .try_for_each(|(param, gradient)| param.set_gradient(gradient.clone()))
    }

    fn norms(&self) -> impl Iterator<Item = &Param> {
        let halves = self
            .layers
            .iter()
            .flat_map(|layer| [&layer.attention.norm, &layer.mlp.norm]);
        let all = halves.chain(self.head.as_ref().map(|head| &head.norm));
        all.flat_map(|norm| [&norm.weight, &norm.bias])
    }

    /// Leaves all but the `index`-th of `of` shares of each parameter to other replicas to update (`ZeRO`).
    pub fn own_share(&mut self, index: usize, of: usize) -> Result<()> {
        let embedding = self.embedding.iter_mut().flat_map(Embedding::params_mut);
        let layers = self.layers.iter_mut().flat_map(Layer::params_mut);
        let head = self.head.iter_mut().flat_map(Head::params_mut);
        let mut all = embedding.chain(layers).chain(head);
        all.try_for_each(|param| param.own_share(index, of))
    }

    /// Replaces this shard's share of a bucket's gradients by that of their sums, in the order of
    /// [`Shard::gradient`]; the rest stays what this replica alone has.
    pub fn set_gradient_share(&self, bucket: Bucket, sums: &[Tensor]) -> Result<()> {
        let params = self.bucket(bucket)?;
        let pairs = params.iter().zip(sums);
        pairs
            .into_iter()
            .try_for_each(|(param, sum)| param.set_gradient_share(sum))
    }

    /// Sum of squares of this shard's gradients, such that the sum over all shards of a replica has each
    /// parameter of the model once.
    pub fn square_norm(&self) -> Result<f64> {
        self.merge_shared()?;
        self.all().into_iter().map(Param::square_norm).sum()
    }

    /// One step of `AdamW` (`step` counts from 1) with gradients times `clip_scale`; uses the gradients up.
    pub fn optimize(&self, settings: &Optimizer, clip_scale: f64, step: u64) -> Result<()> {
        self.merge_shared()?;
        let with = coefficients(settings, clip_scale, step);
        self.all()
            .into_iter()
            .try_for_each(|param| param.optimize(&with))
    }

    /// Parameters it holds, padding and copies included.
    pub fn params(&self) -> u64 {
        let counts = self
            .all()
            .into_iter()
            .map(|param| param.value().elem_count());
        counts.sum::<usize>() as u64
    }

    /// Bytes it holds in float32, gradients included.
    pub fn state_bytes(&self) -> StateBytes {
        let parameters = 4 * self.params();
        StateBytes {
            parameters,
            gradients: parameters,
            optimizer: 8 * self.all().into_iter().map(Param::owned).sum::<usize>() as u64,
        }
    }

    /// A hash of all parameters' bits: equal on replicas that agree to the last one.
    pub fn hash(&self) -> Result<u64> {
        hash::tensors(self.all().into_iter().map(Param::value))
    }

    /// The head's part of a shared matrix' gradient goes to the embedding's bucket, which is complete last: when the
    /// head's is reduced, micro-batches may still be adding to the embedding's, and the sum's order would be theirs.
    fn complete(&self, bucket: Bucket) -> Result<()> {
        if bucket == Bucket::Embedding {
            self.merge_shared()
        } else {
            Ok(())
        }
    }

    /// Adds the head's part of a shared embedding's gradient to the embedding's.
    pub(crate) fn merge_shared(&self) -> Result<()> {
        let (Some(embedding), Some(head)) = (&self.embedding, &self.head) else {
            return Ok(());
        };
        match head.shared.take() {
            Some(gradient) => embedding.tokens.gradient().add(gradient),
            None => Ok(()),
        }
    }

    fn bucket(&self, bucket: Bucket) -> Result<Vec<&Param>> {
        let found = match bucket {
            Bucket::Embedding => self.embedding.as_ref().map(Embedding::params),
            Bucket::Layer(layer) => self.layer(layer).map(Layer::params),
            Bucket::Head => self.head.as_ref().map(Head::params),
        };
        found.ok_or(ModelError::NoBucket(bucket))
    }

    fn layer(&self, layer: u16) -> Option<&Layer> {
        let index = usize::from(layer).checked_sub(self.place.stage.layers.start)?;
        self.layers.get(index)
    }

    /// All parameters, embedding first.
    pub(crate) fn all(&self) -> Vec<&Param> {
        let embedding = self.embedding.iter().flat_map(Embedding::params);
        let layers = self.layers.iter().flat_map(Layer::params);
        let head = self.head.iter().flat_map(Head::params);
        embedding.chain(layers).chain(head).collect()
    }

    /// The parameters of half a layer.
    pub(crate) fn half(&self, segment: Segment) -> Result<&Half> {
        let layer = segment.layer().and_then(|layer| self.layer(layer));
        let layer = layer.ok_or(ModelError::NotHere(segment))?;
        Ok(if matches!(segment.normed(), Segment::Attention(_)) {
            &layer.attention
        } else {
            &layer.mlp
        })
    }

    /// The first stage's embedding.
    pub(crate) fn embedding(&self) -> Result<&Embedding> {
        let embedding = self.embedding.as_ref();
        embedding.ok_or(ModelError::NotHere(Segment::Embed))
    }

    /// The last stage's head.
    pub(crate) fn head(&self) -> Result<&Head> {
        self.head.as_ref().ok_or(ModelError::NotHere(Segment::Head))
    }

    /// The head's matrix `[rows, hidden]`, and where its gradient goes.
    pub(crate) fn head_matrix(&self) -> Result<(&Tensor, &Gradient)> {
        let head = self.head()?;
        match &head.own {
            Some(own) => Ok((own.value(), own.gradient())),
            None => Ok((self.embedding()?.tokens.value(), &head.shared)),
        }
    }

    /// The tokens of this rank's rows of the vocabulary.
    pub(crate) fn columns(&self) -> Columns {
        let stride = self.shape.vocab_rows(self.place.tp);
        let start = (self.place.tp_index * stride).min(self.shape.vocab);
        Columns {
            stride,
            tokens: start..(start + stride).min(self.shape.vocab),
        }
    }
}

fn in_place<'a>(params: impl IntoIterator<Item = &'a Param>) -> Result<Vec<Tensor>> {
    let params = params.into_iter();
    params.map(Param::gradient_in_place).collect()
}

fn coefficients(settings: &Optimizer, clip_scale: f64, step: u64) -> Coefficients {
    let corrected = |beta: f64| 1.0 - beta.powf(step as f64);
    Coefficients {
        scale: clip_scale as f32,
        beta1: settings.beta1 as f32,
        beta2: settings.beta2 as f32,
        rate: (settings.lr / corrected(settings.beta1)) as f32,
        square_correction: (1.0 / corrected(settings.beta2)) as f32,
        eps: settings.eps as f32,
        decay: (1.0 - settings.lr * settings.weight_decay) as f32,
    }
}

impl Half {
    fn params_mut(&mut self) -> [&mut Param; 6] {
        let Self { norm, up, down } = self;
        [
            &mut norm.weight,
            &mut norm.bias,
            &mut up.weight,
            &mut up.bias,
            &mut down.weight,
            &mut down.bias,
        ]
    }

    fn params(&self) -> [&Param; 6] {
        let Self { norm, up, down } = self;
        [
            &norm.weight,
            &norm.bias,
            &up.weight,
            &up.bias,
            &down.weight,
            &down.bias,
        ]
    }
}

impl Layer {
    fn params_mut(&mut self) -> Vec<&mut Param> {
        let halves = [self.attention.params_mut(), self.mlp.params_mut()];
        halves.into_iter().flatten().collect()
    }

    fn params(&self) -> Vec<&Param> {
        let halves = [self.attention.params(), self.mlp.params()];
        halves.into_iter().flatten().collect()
    }
}

impl Embedding {
    fn params_mut(&mut self) -> Vec<&mut Param> {
        vec![&mut self.tokens, &mut self.positions]
    }

    fn params(&self) -> Vec<&Param> {
        vec![&self.tokens, &self.positions]
    }
}

impl Head {
    fn params_mut(&mut self) -> Vec<&mut Param> {
        let norm = [&mut self.norm.weight, &mut self.norm.bias];
        norm.into_iter().chain(&mut self.own).collect()
    }

    fn params(&self) -> Vec<&Param> {
        let norm = [&self.norm.weight, &self.norm.bias];
        norm.into_iter().chain(&self.own).collect()
    }
}

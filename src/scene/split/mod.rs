//! Tensor parallelism seen from inside: the matrices of one layer with small real numbers, cut, sent to their GPUs,
//! multiplied, and put together again, step by step.
//!
//! Every number is computed here in float32 from a seed, as the GPUs would compute it and once more uncut; the last
//! step of each story compares the two. [`Story`] is the model, [`scene`] its picture.

mod cluster;
mod columns;
mod draw;
mod grid;
mod head;
mod heads;
mod layout;
mod matrix;
mod mlp;
mod rows;
mod script;
mod step;
#[cfg(test)]
mod tests;
mod vocabulary;

use thiserror::Error;

use crate::model::rng::Rng;

pub use draw::{Moment, scene};
pub use layout::text_size;
pub use matrix::{Matrix, small};
pub use step::{Share, Step, Tile, Traffic};

/// What is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topic {
    /// `Y = XA`, `A` by columns.
    Columns,
    /// `Y = XA`, `A` by rows.
    Rows,
    /// Columns, then rows: an MLP.
    #[default]
    Mlp,
    /// Attention by whole heads.
    Heads,
    /// Embedding and loss by words.
    Vocabulary,
}

impl Topic {
    /// All of them, the simplest first.
    pub const ALL: [Self; 5] = [
        Self::Columns,
        Self::Rows,
        Self::Mlp,
        Self::Heads,
        Self::Vocabulary,
    ];

    /// The name on its button.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "Columns",
            Self::Rows => "Rows",
            Self::Mlp => "MLP",
            Self::Heads => "Heads",
            Self::Vocabulary => "Vocabulary",
        }
    }

    /// From its name, in lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|topic| topic.name().to_lowercase() == name)
    }

    /// What it shows, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Columns => "A product with its weights cut by columns",
            Self::Rows => "A product with its weights cut by rows",
            Self::Mlp => "The MLP of a layer: columns, then rows",
            Self::Heads => "Attention, cut by whole heads",
            Self::Vocabulary => "Embedding and loss, cut by words",
        }
    }
}

/// Which pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// From inputs to outputs.
    #[default]
    Forward,
    /// From gradients of outputs to those of inputs and weights.
    Backward,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];

    /// The name on its button.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "Forward",
            Self::Backward => "Backward",
        }
    }
}

/// Which story is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is cut.
    pub topic: Topic,
    /// Which pass.
    pub way: Way,
    /// On how many GPUs: one of [`Choice::GPUS`].
    pub tp: usize,
    /// Attention heads: one of [`Choice::HEADS`].
    pub heads: usize,
    /// Which numbers.
    pub seed: u64,
}

impl Choice {
    /// How many GPUs there may be: what divides every matrix here.
    pub const GPUS: [usize; 3] = [1, 2, 4];
    /// How many heads there may be.
    pub const HEADS: [usize; 2] = [2, 4];
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            topic: Topic::Columns,
            way: Way::Forward,
            tp: 2,
            heads: 4,
            seed: 0,
        }
    }
}

/// Why a story cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Heads do not divide evenly.
    #[error(
        "{heads} heads on {tp} GPUs: a GPU would hold a part of a head. A score is a sum over all of a head's \
         columns, and softmax needs whole rows of whole scores, so every score would have to be all-reduced. \
         TP must divide the heads: take {} GPUs, or {tp} heads.",
        whole(*.heads)
    )]
    PartOfAHead {
        /// Heads.
        heads: usize,
        /// GPUs.
        tp: usize,
    },
    /// The small matrices do not divide.
    #[error("{tp} GPUs: the matrices here are cut for 1, 2 or 4")]
    Gpus {
        /// GPUs.
        tp: usize,
    },
    /// Heads that the small matrices cannot have.
    #[error("{heads} heads: there are 2 or 4 here")]
    Heads {
        /// Heads.
        heads: usize,
    },
}

/// Numbers of GPUs that divide `heads`, in words.
fn whole(heads: usize) -> String {
    let dividing = Choice::GPUS.iter().filter(|&&tp| heads.is_multiple_of(tp));
    let list: Vec<String> = dividing.map(usize::to_string).collect();
    list.join(" or ")
}

/// A story, all its numbers computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    choice: Choice,
    steps: Vec<Step>,
}

impl Story {
    /// The story of that choice, or why there is none.
    pub fn new(choice: Choice) -> Result<Self, Refusal> {
        let Choice {
            topic,
            way,
            tp,
            heads,
            seed,
        } = choice;
        if !Choice::GPUS.contains(&tp) {
            return Err(Refusal::Gpus { tp });
        }
        if topic == Topic::Heads && !Choice::HEADS.contains(&heads) {
            return Err(Refusal::Heads { heads });
        }
        if topic == Topic::Heads && !heads.is_multiple_of(tp) {
            return Err(Refusal::PartOfAHead { heads, tp });
        }
        // Both passes of a story have the same inputs and weights.
        let mut rng = Rng::new(seed, topic as u64);
        let rng = &mut rng;
        let steps = match topic {
            Topic::Columns => columns::steps(way, tp, rng),
            Topic::Rows => rows::steps(way, tp, rng),
            Topic::Mlp => mlp::steps(way, tp, rng),
            Topic::Heads => heads::steps(way, (tp, heads), rng),
            Topic::Vocabulary => vocabulary::steps(way, tp, rng),
        };
        Ok(Self { choice, steps })
    }

    /// What was chosen.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Its steps, never none.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

//! Lessons: Markdown files with blocks that set up a run, ask for a prediction, run, light up, quiz and set tasks.
//!
//! A lesson is data: [`Lesson::parse`] reads it and says what is wrong and where, [`check`](check::check) holds every answer
//! that it states to the engine, [`Play`] is one reader's way through it. Figures in its texts are formulas over the run that
//! was just made. `lessons/README.md` is the format's reference.

pub mod build;
pub mod check;
pub mod course;
pub mod expr;
pub mod figures;
mod parse;
mod play;
mod settings;
pub mod summary;

pub use course::{Course, Files};
pub use parse::Mistake;
pub use play::{Answered, Play, Progress, Verdict};

use crate::session::Config;

use self::expr::Formula;
use self::figures::Style;

/// A lesson.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// Its name on the command line and in a class kit: the file's, without number and ending.
    pub id: String,
    /// The file that it was read from.
    pub file: String,
    /// Its title.
    pub title: String,
    /// What it is about, in a sentence.
    pub summary: String,
    /// How long it takes, in minutes.
    pub minutes: u32,
    /// Its pages, in order.
    pub pages: Vec<Page>,
}

/// A page of a lesson: what is seen at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// What is on it, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The line of the file in which it starts, from 1.
    pub line: usize,
    /// What it is.
    pub content: Content,
}

/// What a part of a page is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Prose.
    Text(Text),
    /// What is run on this page.
    Setup(Box<Setup>),
    /// A prediction, which covers the run until it is made.
    Predict(Predict),
    /// The run.
    Run(Run),
    /// What is lit.
    Light(Light),
    /// A question with answers.
    Quiz(Quiz),
    /// A goal that is to be reached.
    Task(Task),
    /// Another part of the window.
    Open(Open),
}

/// Markdown with figures in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(pub Vec<Piece>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Markdown as it is.
    Words(String),
    /// A figure of a run.
    Figure(Formula, Style),
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Its name, by which formulas ask for its figures.
    pub name: String,
    /// The run.
    pub config: Config,
    /// Panels to be opened, by their names; those that are open stay if there are none.
    pub panels: Vec<String>,
    /// Whether the controls are folded away.
    pub hide_controls: bool,
}

/// Something that the reader is to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct Predict {
    /// The question.
    pub ask: Text,
    /// How it is answered.
    pub answer: Answer,
    /// Help, a step at a time.
    pub hints: Vec<Text>,
    /// Why it is so; shown with the outcome.
    pub why: Text,
}

/// How a prediction is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One of several, the right one found from the run.
    Choice(Vec<Choice>),
    /// A number.
    Number(Number),
}

/// Something to be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What it says.
    pub text: Text,
    /// When it is right.
    pub when: Formula,
    /// What is to be said to whoever chose it: why it is wrong, or right.
    pub because: Text,
}

/// A number to be predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The figure of the run that it is held to.
    pub figure: Formula,
    /// What a formula says, shown beside both.
    pub formula: Option<Formula>,
    /// By how much the two may differ, as a share of the larger.
    pub agrees: f64,
    /// By how much a prediction may be off and still be good, as a share of the figure.
    pub tolerance: f64,
    /// What it is measured in.
    pub style: Style,
    /// Drawn as a bar up to this, in place of being typed.
    pub bar: Option<f64>,
}

/// A run of a set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The set-up's name.
    pub of: String,
    /// What its button says, in place of the usual.
    pub button: Option<String>,
    /// Whether the timeline before it stays, to be compared.
    pub keep: bool,
}

/// What is lit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Light {
    /// A GPU.
    pub rank: Option<u32>,
    /// A micro-batch.
    pub micro_batch: Option<u32>,
    /// The longest bubble: of that GPU, or of all.
    pub bubble: bool,
    /// A part of the step.
    pub phase: Option<Phase>,
}

/// A part of a pipeline's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the last stage has its first micro-batch.
    WarmUp,
    /// While all stages have work.
    Steady,
    /// From when the first stage has nothing left to begin.
    CoolDown,
}

/// A question with answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Quiz {
    /// The question.
    pub ask: Text,
    /// The answers.
    pub choices: Vec<QuizChoice>,
    /// Help, a step at a time.
    pub hints: Vec<Text>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct QuizChoice {
    /// What it says.
    pub text: Text,
    /// Whether it is right.
    pub right: bool,
    /// Why it is wrong, or right.
    pub because: Text,
}

/// A goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// What is to be reached, in words.
    pub ask: Text,
    /// The same as a formula over the run at hand.
    pub goal: Formula,
    /// The set-up from which it starts.
    pub start: String,
    /// A run that reaches it.
    pub solution: Box<Config>,
    /// Help, a step at a time.
    pub hints: Vec<Text>,
    /// What there is to see once it is reached.
    pub why: Text,
}

/// Another part of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Which.
    pub what: Part,
    /// Where in it: a level of the schedule builder, a story of the matrices.
    pub at: Option<String>,
    /// What its button says.
    pub button: String,
}

/// A part of the window that a lesson can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Building a schedule by hand.
    Builder,
    /// A layer's matrices, cut.
    Matrices,
    /// Every layout, ranked.
    Layouts,
    /// The guide to a layout.
    Guide,
}

impl Lesson {
    /// The set-up of that name.
    pub fn setup(&self, name: &str) -> Option<&Setup> {
        self.setups().find(|setup| setup.name == name)
    }

    /// All set-ups, in order.
    pub fn setups(&self) -> impl Iterator<Item = &Setup> {
        let blocks = self.pages.iter().flat_map(|page| &page.blocks);
        blocks.filter_map(Block::setup)
    }

    /// All blocks of the pages before `page`, the last first.
    pub fn blocks_before(&self, page: usize) -> impl Iterator<Item = &Block> {
        let pages = self.pages[..page].iter().rev();
        pages.flat_map(|page| page.blocks.iter().rev())
    }
}

impl Block {
    /// The set-up that it is, if it is one.
    pub fn setup(&self) -> Option<&Setup> {
        if let Content::Setup(setup) = &self.content {
            Some(setup)
        } else {
            None
        }
    }

    /// The name of the set-up that it runs, if it runs one.
    pub fn runs(&self) -> Option<&str> {
        if let Content::Run(run) = &self.content {
            Some(&run.of)
        } else {
            None
        }
    }
}

impl Text {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// With its figures filled in; one that is not known yet is an ellipsis.
    pub fn filled(&self, figure: &dyn Fn(&expr::Asked) -> Option<f64>) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Words(words) => words.clone(),
            Piece::Figure(formula, style) => formula
                .value(figure)
                .map_or_else(|_unknown| "…".to_owned(), |value| style.write(value)),
        };
        self.0.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests;

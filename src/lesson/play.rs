//! A reader's way through a lesson: what is seen of a page, what was predicted, answered and reached. Pure logic; what is kept
//! between starts is [`Progress`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check::Made;
use super::expr::{Asked, Formula};
use super::figures::Source;
use super::{Answer, Block, Content, Lesson, Page, Predict, Quiz, Setup, Task, Text};

/// A block's place in its lesson: `3.1` is the second block of the fourth page.
type Place = (usize, usize);

/// What was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// The option of that number.
    Choice(usize),
    /// A number.
    Number(f64),
}

/// How far a reader is in a lesson; blocks are named by their page and place, as `3.1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The page that is read, from 0.
    pub page: usize,
    /// Predictions, committed.
    pub predicted: BTreeMap<String, Answered>,
    /// Runs that were made.
    pub made: BTreeSet<String>,
    /// Options of quizzes that were chosen, in order.
    pub chosen: BTreeMap<String, Vec<usize>>,
    /// Tasks whose goals were reached.
    pub reached: BTreeSet<String>,
    /// How many hints were asked for.
    pub hints: BTreeMap<String, usize>,
    /// Whether all of it was done.
    pub done: bool,
}

/// How a prediction came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether it was right, or near enough.
    pub right: bool,
    /// What was predicted, the formula's value, and the run's, each as a text where there is one.
    pub predicted: String,
    /// What a formula gives.
    pub formula: Option<String>,
    /// What the run gives.
    pub measured: String,
    /// What is to be said to whoever predicted that.
    pub because: Option<Text>,
}

/// A reader's way through a lesson.
#[derive(Debug)]
pub struct Play {
    lesson: Arc<Lesson>,
    progress: Progress,
    /// Runs by their set-ups' names, as they were made, or simulated anew after a restart: the figures are the same.
    runs: BTreeMap<String, Arc<Made>>,
}

fn key((page, block): Place) -> String {
    format!("{page}.{block}")
}

impl Lesson {
    /// The set-up that a formula of a block means where it names none: a prediction means the run that it is of, all else
    /// the run before.
    pub fn run_for(&self, page: usize, block: usize) -> Option<&str> {
        let blocks = &self.pages.get(page)?.blocks;
        if matches!(blocks.get(block)?.content, Content::Predict(_)) {
            let next = blocks[block..].iter().find_map(Block::runs);
            if next.is_some() {
                return next;
            }
        }
        // The last run before; what was only set up since has not been seen.
        let before = blocks[..block].iter().rev();
        let all: Vec<&Block> = before.chain(self.blocks_before(page)).collect();
        let run = all.iter().find_map(|block| block.runs());
        run.or_else(|| {
            let setup = all.iter().find_map(|block| block.setup());
            setup.map(|setup| setup.name.as_str())
        })
    }
}

impl Play {
    /// At the start, or where the reader was.
    pub fn new(lesson: Arc<Lesson>, progress: Progress) -> Self {
        let page = progress.page.min(lesson.pages.len().saturating_sub(1));
        Self {
            progress: Progress { page, ..progress },
            lesson,
            runs: BTreeMap::new(),
        }
    }

    /// The lesson.
    pub fn lesson(&self) -> &Arc<Lesson> {
        &self.lesson
    }

    /// What is to be kept.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The page that is read.
    pub fn page(&self) -> &Page {
        &self.lesson.pages[self.progress.page]
    }

    /// Another text of the same lesson, such as one that was just saved or is in another language.
    pub fn reload(&mut self, lesson: Arc<Lesson>) {
        let progress = std::mem::take(&mut self.progress);
        *self = Self::new(lesson, progress);
    }

    /// To the next page; whether there is one.
    pub fn forward(&mut self) -> bool {
        self.go_to(self.progress.page + 1)
    }

    /// To the page before; whether there is one.
    pub fn back(&mut self) -> bool {
        self.progress
            .page
            .checked_sub(1)
            .is_some_and(|page| self.go_to(page))
    }

    /// To a page; whether there is one.
    pub fn go_to(&mut self, page: usize) -> bool {
        let there = page < self.lesson.pages.len();
        if there {
            self.progress.page = page;
        }
        there
    }

    /// All answers forgotten.
    pub fn restart(&mut self) {
        self.progress = Progress::default();
        self.runs.clear();
    }

    /// What is seen of the page: nothing after a prediction that is still to be made, or a run.
    pub fn seen(&self) -> Vec<(usize, &Block)> {
        let mut seen = Vec::new();
        for (index, block) in self.page().blocks.iter().enumerate() {
            seen.push((index, block));
            if self.stops_at(index) {
                break;
            }
        }
        seen
    }

    /// Whether the page goes on only after this block.
    fn stops_at(&self, block: usize) -> bool {
        let key = key((self.progress.page, block));
        match &self.page().blocks[block].content {
            Content::Predict(_) => self.predicted(block).is_none(),
            Content::Run(_) => !self.progress.made.contains(&key),
            Content::Setup(_)
            | Content::Text(_)
            | Content::Light(_)
            | Content::Quiz(_)
            | Content::Task(_)
            | Content::Open(_) => false,
        }
    }

    /// Whether the run is covered: it is still to be predicted, or was not run since. What was run on the same page before
    /// stays to be seen, as the next set-up is loaded only when it is run.
    pub fn covers(&self) -> bool {
        let page = self.page();
        let ran = (0..page.blocks.len()).any(|block| self.is_made(block));
        let first = page.blocks.iter().position(|block| block.runs().is_some());
        let predicts = |block: &Block| matches!(block.content, Content::Predict(_));
        let before = first.is_some_and(|first| page.blocks[..first].iter().any(predicts));
        before && !ran
    }

    /// What is set up where the reader is: the last run of this page that was made, else what it sets up first, else what
    /// pages before it did.
    pub fn setup(&self) -> Option<&Setup> {
        let mut name = None;
        let mut ran = false;
        for (index, block) in self.seen() {
            match &block.content {
                Content::Run(run) if self.is_made(index) => {
                    (name, ran) = (Some(run.of.as_str()), true);
                }
                Content::Run(run) if !ran => name = Some(run.of.as_str()),
                Content::Setup(setup) if !ran => name = Some(setup.name.as_str()),
                Content::Task(task) if !ran => name = Some(task.start.as_str()),
                Content::Run(_)
                | Content::Setup(_)
                | Content::Task(_)
                | Content::Text(_)
                | Content::Predict(_)
                | Content::Light(_)
                | Content::Quiz(_)
                | Content::Open(_) => {}
            }
        }
        let before = || {
            let mut earlier = self.lesson.blocks_before(self.progress.page);
            earlier.find_map(|block| {
                let own = || block.setup().map(|setup| setup.name.as_str());
                block.runs().or_else(own)
            })
        };
        self.lesson.setup(name.or_else(before)?)
    }

    /// The prediction of a block; one that was made of another version of the lesson, and does not fit, is none.
    pub fn predicted(&self, block: usize) -> Option<Answered> {
        let answered = *self
            .progress
            .predicted
            .get(&key((self.progress.page, block)))?;
        let Content::Predict(predict) = &self.page().blocks.get(block)?.content else {
            return None;
        };
        let fits = match (&predict.answer, answered) {
            (Answer::Choice(choices), Answered::Choice(index)) => index < choices.len(),
            (Answer::Number(_), Answered::Number(guess)) => guess.is_finite(),
            (Answer::Choice(_), Answered::Number(_)) | (Answer::Number(_), Answered::Choice(_)) => {
                false
            }
        };
        fits.then_some(answered)
    }

    /// Commits a prediction; one that was made stays.
    pub fn predict(&mut self, block: usize, answer: Answered) {
        if self.predicted(block).is_none() {
            self.progress
                .predicted
                .insert(key((self.progress.page, block)), answer);
        }
        self.look_at_end();
    }

    /// Whether the run of a block was made.
    pub fn is_made(&self, block: usize) -> bool {
        self.progress
            .made
            .contains(&key((self.progress.page, block)))
    }

    /// The run of a block was made, with these figures.
    pub fn made(&mut self, block: usize, made: Arc<Made>) {
        if let Some(Content::Run(run)) = self.page().blocks.get(block).map(|block| &block.content) {
            let name = run.of.clone();
            self.runs.insert(name, made);
            self.progress.made.insert(key((self.progress.page, block)));
            self.look_at_end();
        }
    }

    /// Chooses an option of a quiz; whether it is right.
    pub fn choose(&mut self, block: usize, option: usize) -> bool {
        let right = self
            .quiz(block)
            .and_then(|quiz| quiz.choices.get(option))
            .is_some_and(|choice| choice.right);
        let chosen = self
            .progress
            .chosen
            .entry(key((self.progress.page, block)))
            .or_default();
        if !chosen.contains(&option) {
            chosen.push(option);
        }
        self.look_at_end();
        right
    }

    fn quiz(&self, block: usize) -> Option<&Quiz> {
        match &self.page().blocks.get(block)?.content {
            Content::Quiz(quiz) => Some(quiz),
            Content::Setup(_)
            | Content::Run(_)
            | Content::Text(_)
            | Content::Predict(_)
            | Content::Light(_)
            | Content::Task(_)
            | Content::Open(_) => None,
        }
    }

    /// The options of a quiz that were chosen.
    pub fn chosen(&self, block: usize) -> &[usize] {
        let chosen = self.progress.chosen.get(&key((self.progress.page, block)));
        chosen.map_or(&[], Vec::as_slice)
    }

    /// How many hints of a block were asked for.
    pub fn hints(&self, block: usize) -> usize {
        self.progress
            .hints
            .get(&key((self.progress.page, block)))
            .copied()
            .unwrap_or(0)
    }

    /// One more hint.
    pub fn hint(&mut self, block: usize) {
        *self
            .progress
            .hints
            .entry(key((self.progress.page, block)))
            .or_insert(0) += 1;
    }

    /// Whether a task's goal was reached.
    pub fn is_reached(&self, block: usize) -> bool {
        self.progress
            .reached
            .contains(&key((self.progress.page, block)))
    }

    /// Looks whether what is run now reaches a task's goal; whether it is reached for the first time.
    pub fn look(&mut self, block: usize, now: Source<'_>) -> bool {
        let Some(Content::Task(task)) = self.page().blocks.get(block).map(|block| &block.content)
        else {
            return false;
        };
        let reached = self.truth(&task.goal, now);
        let first = reached
            && self
                .progress
                .reached
                .insert(key((self.progress.page, block)));
        self.look_at_end();
        first
    }

    /// The parts of a task's goal, and whether what is run now reaches each.
    pub fn parts(&self, task: &Task, now: Source<'_>) -> Vec<(String, bool)> {
        let parts = task.goal.parts();
        parts
            .iter()
            .map(|part| (part.text().to_owned(), self.truth(part, now)))
            .collect()
    }

    fn truth(&self, formula: &Formula, now: Source<'_>) -> bool {
        let figure = |asked: &Asked| match &asked.run {
            Some(run) => self.runs.get(run)?.source().figure(asked),
            None => now.figure(asked),
        };
        formula.value(&figure).is_ok_and(|value| value != 0.0)
    }

    /// A text of a block with its figures, as far as their runs were made.
    pub fn filled(&self, block: usize, text: &Text) -> String {
        text.filled(&|asked| self.figure(block, asked))
    }

    /// The value of a formula of a block, as far as its runs were made.
    pub fn value(&self, block: usize, formula: &Formula) -> Option<f64> {
        formula.value(&|asked| self.figure(block, asked)).ok()
    }

    fn figure(&self, block: usize, asked: &Asked) -> Option<f64> {
        let at_hand = self.lesson.run_for(self.progress.page, block);
        let name = asked.run.as_deref().or(at_hand)?;
        match self.runs.get(name) {
            Some(made) => made.source().figure(asked),
            // A layout is known before it runs.
            None => Source {
                config: &self.lesson.setup(name)?.config,
                report: None,
                loss_apart: None,
            }
            .figure(asked),
        }
    }

    /// How a prediction came out; nothing before it was made and run.
    pub fn verdict(&self, block: usize, predict: &Predict) -> Option<Verdict> {
        let predicted = self.predicted(block)?;
        // Figures may be known from elsewhere; but it is the run that follows which is predicted.
        let blocks = self.page().blocks.iter().enumerate().skip(block);
        let mut runs = blocks.filter(|(_, block)| matches!(block.content, Content::Run(_)));
        if runs.next().is_some_and(|(run, _)| !self.is_made(run)) {
            return None;
        }
        let value = |formula: &Formula| self.value(block, formula);
        match (&predict.answer, predicted) {
            (Answer::Number(number), Answered::Number(guess)) => {
                let figure = value(&number.figure)?;
                let right = (guess - figure).abs() <= number.tolerance * figure.abs() + 1e-12;
                let write = |value: f64| number.style.write(value);
                Some(Verdict {
                    right,
                    predicted: write(guess),
                    formula: number.formula.as_ref().and_then(value).map(write),
                    measured: write(figure),
                    because: None,
                })
            }
            (Answer::Choice(choices), Answered::Choice(index)) => {
                let chosen = choices.get(index)?;
                let truths: Option<Vec<f64>> =
                    choices.iter().map(|choice| value(&choice.when)).collect();
                let right = truths?.iter().position(|truth| *truth != 0.0)?;
                Some(Verdict {
                    right: right == index,
                    predicted: self.filled(block, &chosen.text),
                    formula: None,
                    measured: self.filled(block, &choices[right].text),
                    because: Some(chosen.because.clone()),
                })
            }
            (Answer::Number(_), Answered::Choice(_)) | (Answer::Choice(_), Answered::Number(_)) => {
                None
            }
        }
    }

    /// Set-ups whose runs were made before a restart, and have to be simulated anew for their figures.
    pub fn missing(&self) -> Vec<&Setup> {
        let pages = self.lesson.pages.iter().enumerate();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (page, content) in pages {
            for (index, block) in content.blocks.iter().enumerate() {
                if let Content::Run(run) = &block.content
                    && self.progress.made.contains(&key((page, index)))
                    && !self.runs.contains_key(&run.of)
                {
                    names.insert(&run.of);
                }
            }
        }
        names
            .into_iter()
            .filter_map(|name| self.lesson.setup(name))
            .collect()
    }

    /// The figures of a run that was made before a restart.
    pub fn restore(&mut self, name: &str, made: Arc<Made>) {
        self.runs.insert(name.to_owned(), made);
    }

    /// How far the loss of a run is from the one-GPU run's, once a step was trained.
    pub fn learn_loss(&mut self, name: &str, loss_apart: f64) {
        if let Some(made) = self
            .runs
            .get_mut(name)
            .filter(|made| made.loss_apart.is_none())
        {
            Arc::make_mut(made).loss_apart = Some(loss_apart);
        }
    }

    /// Whether everything on a page was done.
    pub fn is_page_done(&self, page: usize) -> bool {
        let Some(content) = self.lesson.pages.get(page) else {
            return false;
        };
        content.blocks.iter().enumerate().all(|(index, block)| {
            let key = key((page, index));
            match &block.content {
                Content::Predict(_) => self.progress.predicted.contains_key(&key),
                Content::Run(_) => self.progress.made.contains(&key),
                Content::Task(_) => self.progress.reached.contains(&key),
                Content::Quiz(quiz) => {
                    let chosen = self.progress.chosen.get(&key);
                    let right = |option: &usize| {
                        quiz.choices.get(*option).is_some_and(|choice| choice.right)
                    };
                    chosen.is_some_and(|chosen| chosen.iter().any(right))
                }
                Content::Setup(_) | Content::Text(_) | Content::Light(_) | Content::Open(_) => true,
            }
        })
    }

    fn look_at_end(&mut self) {
        self.progress.done |= (0..self.lesson.pages.len()).all(|page| self.is_page_done(page));
    }
}

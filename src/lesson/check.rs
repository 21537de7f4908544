//! Holding a lesson to the engine: every set-up is run, and every answer that the lesson states is looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::expr::{Asked, Formula};
use super::figures::Source;
use super::{Answer, Content, Lesson, Light, Mistake, Number, Piece, Predict, Task, Text};
use crate::session::{Config, Inputs, Timeline, train};

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Set-ups run.
    pub setups: usize,
    /// Predictions, quizzes and tasks.
    pub answers: usize,
    /// Figures in texts.
    pub figures: usize,
}

/// A run of a set-up.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its timeline and figures.
    pub timeline: Arc<Timeline>,
    /// How far its loss is from the one-GPU run's.
    pub loss_apart: Option<f64>,
}

impl Made {
    /// `config` simulated; or why it cannot be.
    pub fn simulated(config: &Config) -> Result<Self, String> {
        let timeline =
            Timeline::simulated(config, "simulated").map_err(|error| error.to_string())?;
        Ok(Self {
            timeline: Arc::new(timeline),
            loss_apart: None,
        })
    }

    /// Its figures.
    pub fn source(&self) -> Source<'_> {
        Source {
            loss_apart: self.loss_apart,
            ..Source::of_run(&self.timeline.report)
        }
    }
}

/// Runs a lesson's set-ups and looks at its answers: how many, or all that is wrong.
pub fn check(lesson: &Lesson) -> Result<Checked, Vec<Mistake>> {
    let mut checker = Checker {
        lesson,
        made: BTreeMap::new(),
        mistakes: Vec::new(),
        checked: Checked::default(),
    };
    checker.run();
    if checker.mistakes.is_empty() {
        Ok(checker.checked)
    } else {
        Err(checker.mistakes)
    }
}

struct Checker<'a> {
    lesson: &'a Lesson,
    made: BTreeMap<&'a str, Made>,
    mistakes: Vec<Mistake>,
    checked: Checked,
}

impl<'a> Checker<'a> {
    fn wrong(&mut self, line: usize, what: String) {
        self.mistakes.push(Mistake {
            file: self.lesson.file.clone(),
            line,
            what,
        });
    }

    fn run(&mut self) {
        for (page, content) in self.lesson.pages.iter().enumerate() {
            for (index, block) in content.blocks.iter().enumerate() {
                let at_hand = self.lesson.run_for(page, index);
                self.block((block.line, at_hand), &block.content);
            }
        }
    }

    fn block(&mut self, (line, at_hand): (usize, Option<&'a str>), content: &'a Content) {
        let at = (line, at_hand);
        match content {
            Content::Setup(setup) => {
                self.checked.setups += 1;
                match Made::simulated(&setup.config) {
                    Ok(made) => {
                        self.made.insert(&setup.name, made);
                    }
                    Err(why) => self.wrong(
                        line,
                        format!("the set-up {:?} cannot be run: {why}", setup.name),
                    ),
                }
            }
            Content::Text(text) => self.text(at, text),
            Content::Predict(predict) => self.predict(at, predict),
            Content::Light(light) => self.light(at, *light),
            Content::Quiz(quiz) => {
                self.checked.answers += 1;
                self.text(at, &quiz.ask);
                for choice in &quiz.choices {
                    self.text(at, &choice.text);
                    self.text(at, &choice.because);
                }
                quiz.hints.iter().for_each(|hint| self.text(at, hint));
            }
            Content::Task(task) => self.task(at, task),
            Content::Run(_) | Content::Open(_) => {}
        }
    }

    /// The value of a formula; told where it is not known.
    fn value(&mut self, (line, at_hand): (usize, Option<&str>), formula: &Formula) -> Option<f64> {
        if formula
            .asked()
            .iter()
            .any(|asked| asked.figure == "loss_apart")
        {
            self.train(line, at_hand, formula);
        }
        let figure = |asked: &Asked| {
            let name = asked.run.as_deref().or(at_hand)?;
            self.made.get(name)?.source().figure(asked)
        };
        match formula.value(&figure) {
            Ok(value) if value.is_finite() => Some(value),
            Ok(value) => {
                self.wrong(
                    line,
                    format!("{} is {value}, which is no figure", formula.text()),
                );
                None
            }
            Err(asked) => {
                let of = at_hand.map_or_else(
                    || "no set-up before it".to_owned(),
                    |run| format!("the set-up {run:?}"),
                );
                self.wrong(
                    line,
                    format!("{}: {asked} is not known here, with {of}", formula.text()),
                );
                None
            }
        }
    }

    /// Trains a step of the runs whose losses are asked for.
    fn train(&mut self, line: usize, at_hand: Option<&str>, formula: &Formula) {
        let asked = formula.asked().into_iter();
        let names = asked.filter(|asked| asked.figure == "loss_apart");
        let names: Vec<String> = names
            .filter_map(|asked| asked.run.clone().or_else(|| at_hand.map(str::to_owned)))
            .collect();
        for name in names {
            let Some(made) = self.made.get_mut(name.as_str()) else {
                continue;
            };
            let config = &made.timeline.report.config;
            let loss = |config: &Config| {
                let trained = train(config, &Inputs::default(), 1, &mut |_, _| ());
                let steps = trained.map(|trained| trained.report.steps);
                steps.map(|steps| steps.last().map_or(f64::NAN, |step| step.loss))
            };
            match loss(config).and_then(|own| Ok((own, loss(&config.on_one_gpu())?))) {
                Ok((own, alone)) => made.loss_apart = Some((own - alone).abs()),
                Err(why) => self.wrong(
                    line,
                    format!("the set-up {name:?} cannot be trained: {why}"),
                ),
            }
        }
    }

    fn text(&mut self, at: (usize, Option<&str>), text: &Text) {
        for piece in &text.0 {
            if let Piece::Figure(formula, _) = piece {
                self.checked.figures += 1;
                self.value(at, formula);
            }
        }
    }

    fn predict(&mut self, at: (usize, Option<&str>), predict: &Predict) {
        self.checked.answers += 1;
        self.text(at, &predict.ask);
        self.text(at, &predict.why);
        predict.hints.iter().for_each(|hint| self.text(at, hint));
        match &predict.answer {
            Answer::Number(number) => self.number(at, number),
            Answer::Choice(choices) => {
                let values: Vec<Option<f64>> = choices
                    .iter()
                    .map(|choice| {
                        self.text(at, &choice.text);
                        self.text(at, &choice.because);
                        self.value(at, &choice.when)
                    })
                    .collect();
                let right = values
                    .iter()
                    .flatten()
                    .filter(|value| **value != 0.0)
                    .count();
                if values.iter().all(Option::is_some) && right != 1 {
                    let told: Vec<String> = choices
                        .iter()
                        .map(|choice| {
                            format!("{} ({})", choice.when.text(), self.told(at.1, &choice.when))
                        })
                        .collect();
                    self.wrong(
                        at.0,
                        format!(
                            "one option must be right, but {right} are: {}",
                            told.join("; ")
                        ),
                    );
                }
            }
        }
    }

    fn number(&mut self, at: (usize, Option<&str>), number: &Number) {
        let figure = self.value(at, &number.figure);
        let Some(formula) = &number.formula else {
            return;
        };
        let said = self.value(at, formula);
        if let Some((figure, said)) = figure.zip(said)
            && (figure - said).abs() > number.agrees * figure.abs().max(said.abs())
        {
            self.wrong(
                at.0,
                format!(
                    "the formula {} gives {}, but the run {}; say how far they may be apart with agrees, as a share",
                    formula.text(),
                    number.style.write(said),
                    number.style.write(figure),
                ),
            );
        }
    }

    /// The figures of a formula with their values.
    fn told(&self, at_hand: Option<&str>, formula: &Formula) -> String {
        let told = formula.asked().into_iter().map(|asked| {
            let made = asked
                .run
                .as_deref()
                .or(at_hand)
                .and_then(|name| self.made.get(name));
            let value = made.and_then(|made| made.source().figure(asked));
            format!(
                "{asked} = {}",
                value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
            )
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn task(&mut self, at: (usize, Option<&str>), task: &Task) {
        self.checked.answers += 1;
        self.text(at, &task.ask);
        self.text(at, &task.why);
        task.hints.iter().for_each(|hint| self.text(at, hint));
        let solved = match Made::simulated(&task.solution) {
            Ok(made) => made,
            Err(why) => {
                self.wrong(at.0, format!("the task's solution cannot be run: {why}"));
                return;
            }
        };
        let reached = |made: &Made| {
            let figure = |asked: &Asked| match &asked.run {
                Some(name) => self.made.get(name.as_str())?.source().figure(asked),
                None => made.source().figure(asked),
            };
            task.goal.value(&figure)
        };
        let start = self.made.get(task.start.as_str()).map(reached);
        let end = reached(&solved);
        match end {
            Ok(value) if value != 0.0 => {}
            Ok(_) => {
                let figures = task.goal.asked().into_iter().map(|asked| {
                    let value = solved.source().figure(asked);
                    format!("{asked} = {}", value.unwrap_or(f64::NAN))
                });
                let figures = figures.collect::<Vec<_>>().join(", ");
                self.wrong(
                    at.0,
                    format!(
                        "the solution does not reach the goal {}: {figures}",
                        task.goal.text()
                    ),
                );
            }
            Err(asked) => self.wrong(
                at.0,
                format!("{}: {asked} is not known here", task.goal.text()),
            ),
        }
        if start.is_some_and(|start| start.is_ok_and(|value| value != 0.0)) {
            self.wrong(
                at.0,
                format!(
                    "the goal {} is reached before anything is changed",
                    task.goal.text()
                ),
            );
        }
    }

    fn light(&mut self, (line, at_hand): (usize, Option<&str>), light: Light) {
        let Some(made) = at_hand.and_then(|name| self.made.get(name)) else {
            self.wrong(
                line,
                "there is no run to light something in; a set-up was expected before it".to_owned(),
            );
            return;
        };
        let config = &made.timeline.report.config;
        let gpus = config.layout.dp * config.layout.tp * config.layout.pp;
        let (batches, bubble) = (
            config.layout.micro_batches,
            made.timeline.report.bubble_of_total,
        );
        if let Some(rank) = light.rank.filter(|rank| *rank as usize >= gpus) {
            self.wrong(
                line,
                format!("there is no GPU {rank} to light; there are {gpus}, counted from 0"),
            );
        }
        if let Some(batch) = light.micro_batch.filter(|batch| *batch as usize >= batches) {
            self.wrong(
                line,
                format!(
                    "there is no micro-batch {batch} to light; there are {batches}, counted from 0"
                ),
            );
        }
        if light.bubble && bubble <= 0.0 {
            self.wrong(line, "there is no bubble to light in this run".to_owned());
        }
    }
}

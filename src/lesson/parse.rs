//! Reading a lesson: front matter, pages, prose with figures, and blocks in TOML. What is wrong is told with its line and what
//! was expected there; reading goes on, so that all mistakes are told at once.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

use super::build::LADDER;
use super::expr::{Formula, is_taken};
use super::figures::{Style, is_known, near};
use super::settings;
use super::{
    Answer, Block, Choice, Content, Lesson, Light, Number, Open, Page, Part, Phase, Piece, Predict,
    Quiz, QuizChoice, Run, Setup, Task, Text,
};
use crate::scene::split::Topic;

/// Something that is wrong with a lesson.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The lesson's file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// The words that start a block, after three backquotes.
const BLOCKS: [&str; 7] = ["setup", "predict", "run", "light", "quiz", "task", "open"];
/// So long a lesson may be, in bytes, and so many blocks may it have.
pub(super) const LONGEST: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Front {
    title: String,
    summary: String,
    minutes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChoice {
    text: String,
    when: Option<Formula>,
    #[serde(default)]
    right: bool,
    because: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPredict {
    ask: String,
    #[serde(default)]
    options: Vec<RawChoice>,
    figure: Option<Formula>,
    formula: Option<Formula>,
    agrees: Option<f64>,
    tolerance: Option<f64>,
    style: Option<String>,
    bar: Option<Formula>,
    hints: Vec<String>,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRun {
    of: Option<String>,
    button: Option<String>,
    #[serde(default)]
    keep: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawLight {
    rank: Option<u32>,
    micro_batch: Option<u32>,
    #[serde(default)]
    bubble: bool,
    phase: Option<Phase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuiz {
    ask: String,
    options: Vec<RawChoice>,
    #[serde(default)]
    hints: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTask {
    ask: String,
    goal: Formula,
    start: Option<String>,
    solution: Table,
    hints: Vec<String>,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOpen {
    what: Part,
    at: Option<String>,
    button: String,
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Lesson {
    /// From its file's name and text; or all that is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader {
            file,
            mistakes: Vec::new(),
            setups: Vec::new(),
        };
        // As some editors write it. Lines stay the same.
        let text = text
            .strip_prefix('\u{feff}')
            .unwrap_or(text)
            .replace("\r\n", "\n");
        let lesson = reader.lesson(&text);
        match lesson {
            Some(lesson) if reader.mistakes.is_empty() => Ok(lesson),
            Some(_) | None => Err(reader.mistakes),
        }
    }
}

/// `01-pipeline-bubble.md` is `pipeline-bubble`.
pub(super) fn id_of(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".md").unwrap_or(name);
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    name[digits..].trim_start_matches('-').to_owned()
}

struct Reader<'a> {
    file: &'a str,
    mistakes: Vec<Mistake>,
    setups: Vec<Setup>,
}

/// A block's text, and the line in which it starts.
#[derive(Clone, Copy)]
struct Body<'a> {
    line: usize,
    text: &'a str,
}

impl Body<'_> {
    /// The line of a place in it.
    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        self.line + 1 + before.matches('\n').count()
    }

    /// The line in which a key is set; its first if that is not to be found.
    fn line_of(&self, key: &str) -> usize {
        let set = |line: &str| {
            line.trim_start()
                .strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let place = self.text.lines().position(set);
        place.map_or(self.line, |place| self.line + 1 + place)
    }
}

impl Reader<'_> {
    fn wrong(&mut self, line: usize, what: impl Into<String>) {
        self.mistakes.push(Mistake {
            file: self.file.to_owned(),
            line,
            what: what.into(),
        });
    }

    fn lesson(&mut self, text: &str) -> Option<Lesson> {
        if text.len() > LONGEST {
            self.wrong(1, "the file is larger than 1 MiB, which no lesson is");
            return None;
        }
        let Some((front, rest)) = text
            .strip_prefix("+++\n")
            .and_then(|rest| rest.split_once("\n+++\n"))
        else {
            self.wrong(
                1,
                "the file must start with its front matter: a line +++, then title, summary and minutes as TOML, then a line +++",
            );
            return None;
        };
        let front_body = Body {
            line: 1,
            text: front,
        };
        let front: Option<Front> = self.read("the front matter", front_body);
        let first = front_body.text.matches('\n').count() + 4;
        let pages = self.pages(rest, first);
        let front = front?;
        for (index, page) in pages.iter().enumerate() {
            if page.blocks.is_empty() {
                self.wrong(first, format!("page {} has nothing on it", index + 1));
            }
        }
        if pages.is_empty() {
            self.wrong(
                first,
                "there is no page; each starts with a heading, as ## Predict",
            );
        }
        Some(Lesson {
            id: id_of(self.file),
            file: self.file.to_owned(),
            title: front.title,
            summary: front.summary,
            minutes: front.minutes,
            pages,
        })
    }

    fn pages(&mut self, text: &str, first: usize) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        let mut prose = Prose::default();
        let mut lines = (first..).zip(text.split('\n'));
        while let Some((number, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                self.end_prose(&mut prose, &mut pages);
                let title = title.trim().to_owned();
                pages.push(Page {
                    title,
                    blocks: Vec::new(),
                });
            } else if let Some(word) = line
                .strip_prefix("```")
                .map(str::trim)
                .filter(|word| !word.is_empty())
            {
                let inner: Vec<(usize, &str)> = lines
                    .by_ref()
                    .take_while(|(_, line)| line.trim_end() != "```")
                    .collect();
                if number + inner.len() + 1 > first + text.matches('\n').count() {
                    self.wrong(
                        number,
                        format!(
                            "the block {word:?} has no end: a line with ``` alone was expected"
                        ),
                    );
                }
                let joined: Vec<&str> = inner.iter().map(|(_, line)| *line).collect();
                let joined = joined.join("\n");
                if !BLOCKS.contains(&word) {
                    if !["text", "sh", "toml", "csv"].contains(&word) {
                        let blocks = BLOCKS.join(", ");
                        self.wrong(number, format!("there is no block {word:?}; there are {blocks}, and text, sh, toml and csv for what is only shown"));
                    }
                    prose.push(number, &format!("{line}\n{joined}\n```"));
                    continue;
                }
                self.end_prose(&mut prose, &mut pages);
                let body = Body {
                    line: number,
                    text: &joined,
                };
                let content = self.block(word, body);
                let Some(page) = pages.last_mut() else {
                    self.wrong(number, "a block stands before the first page; a heading, as ## Predict, was expected before it");
                    continue;
                };
                page.blocks.extend(content.map(|content| Block {
                    line: number,
                    content,
                }));
            } else {
                prose.push(number, line);
            }
        }
        self.end_prose(&mut prose, &mut pages);
        pages
    }

    fn end_prose(&mut self, prose: &mut Prose, pages: &mut [Page]) {
        let taken = std::mem::take(prose);
        let words = taken.text.trim();
        if words.is_empty() {
            return;
        }
        let text = self.text(words, taken.line);
        match pages.last_mut() {
            Some(page) => page.blocks.push(Block {
                line: taken.line,
                content: Content::Text(text),
            }),
            None => self.wrong(taken.line, "text stands before the first page; a heading, as ## Predict, was expected before it"),
        }
    }

    fn read<T: DeserializeOwned>(&mut self, what: &str, body: Body<'_>) -> Option<T> {
        match toml::from_str(body.text) {
            Ok(read) => Some(read),
            Err(error) => {
                let line = error
                    .span()
                    .map_or(body.line, |span| body.line_at(span.start));
                let message = error.message().trim().replace('\n', "; ");
                self.wrong(line, format!("{what}: {message}"));
                None
            }
        }
    }

    fn block(&mut self, word: &str, body: Body<'_>) -> Option<Content> {
        match word {
            "setup" => self
                .setup(body)
                .map(|setup| Content::Setup(Box::new(setup))),
            "predict" => self.predict(body).map(Content::Predict),
            "run" => self.run(body).map(Content::Run),
            "light" => {
                let raw: RawLight = self.read("a light", body)?;
                Some(Content::Light(Light {
                    rank: raw.rank,
                    micro_batch: raw.micro_batch,
                    bubble: raw.bubble,
                    phase: raw.phase,
                }))
            }
            "quiz" => self.quiz(body).map(Content::Quiz),
            "task" => self.task(body).map(Content::Task),
            _ => {
                let raw: RawOpen = self.read("an open", body)?;
                self.known_place(&raw, body);
                Some(Content::Open(Open {
                    what: raw.what,
                    at: raw.at,
                    button: raw.button,
                }))
            }
        }
    }

    /// Whether there is the level or the story that is to be opened.
    fn known_place(&mut self, raw: &RawOpen, body: Body<'_>) {
        let known: Vec<String> = match raw.what {
            Part::Builder => LADDER
                .iter()
                .map(|level| level.name.clone().into_owned())
                .collect(),
            Part::Matrices => Topic::ALL
                .iter()
                .map(|topic| topic.name().to_lowercase())
                .collect(),
            Part::Layouts | Part::Guide => Vec::new(),
        };
        if let Some(at) = raw.at.as_ref().filter(|at| !known.contains(at)) {
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            self.wrong(
                body.line_of("at"),
                format!("there is no place {at:?} there; there are {known}"),
            );
        }
    }

    fn setup(&mut self, body: Body<'_>) -> Option<Setup> {
        let mut table: Table = self.read("a set-up", body)?;
        let Some(toml::Value::String(name)) = table.remove("name") else {
            self.wrong(
                body.line,
                "a set-up: name is missing; name = \"gpipe\" lets formulas ask for gpipe.makespan",
            );
            return None;
        };
        let word = |name: &str| {
            name.starts_with(char::is_alphabetic)
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        if !word(&name) || is_taken(&name) {
            self.wrong(body.line_of("name"), format!("a set-up's name stands in formulas: a letter, then letters, digits and _ were expected, not {name:?}"));
        }
        if self.setups.iter().any(|setup| setup.name == name) {
            self.wrong(
                body.line_of("name"),
                format!("there is a set-up {name:?} already; each needs a name of its own"),
            );
        }
        let base = match table.remove("like") {
            None => settings::one_gpu(),
            Some(like) => {
                let like = like.as_str().unwrap_or_default();
                let Some(found) = self.config_of(like) else {
                    self.no_setup(body.line_of("like"), like);
                    return None;
                };
                found
            }
        };
        let panels = self.panels(table.remove("panels"), body);
        let hide = table.remove("hide-controls");
        if hide.as_ref().is_some_and(|hide| hide.as_bool().is_none()) {
            self.wrong(
                body.line_of("hide-controls"),
                "hide-controls: true or false was expected",
            );
        }
        let hide_controls = hide.is_some_and(|hide| hide.as_bool() == Some(true));
        let config = self.config(&base, &table, body)?;
        let setup = Setup {
            name,
            config,
            panels,
            hide_controls,
        };
        self.setups.push(setup.clone());
        Some(setup)
    }

    fn panels(&mut self, given: Option<toml::Value>, body: Body<'_>) -> Vec<String> {
        let Some(given) = given else {
            return Vec::new();
        };
        let names = given.as_array().cloned().unwrap_or_default();
        let names: Vec<String> = names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let unknown = names.iter().find(|name| !PANELS.contains(&name.as_str()));
        if names.is_empty() || unknown.is_some() {
            let all = PANELS.join(", ");
            self.wrong(
                body.line_of("panels"),
                format!("panels: a list of some of {all} was expected, as [\"memory\"]"),
            );
        }
        names
    }

    fn config(
        &mut self,
        base: &crate::session::Config,
        table: &Table,
        body: Body<'_>,
    ) -> Option<crate::session::Config> {
        match settings::config(base, table) {
            Ok(config) => Some(config),
            Err((key, why)) => {
                let line = key.map_or(body.line, |key| body.line_of(&key));
                self.wrong(line, why);
                None
            }
        }
    }

    fn config_of(&self, name: &str) -> Option<crate::session::Config> {
        let found = self.setups.iter().find(|setup| setup.name == name);
        found.map(|setup| setup.config.clone())
    }

    fn no_setup(&mut self, line: usize, name: &str) {
        let known: Vec<String> = self.setups.iter().map(|setup| setup.name.clone()).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        self.wrong(
            line,
            format!("there is no set-up {name:?} before this; there is {known}"),
        );
    }

    /// The set-up that is named, or the last one.
    fn named_or_last(&mut self, name: Option<String>, line: usize) -> Option<String> {
        let last = || self.setups.last().map(|setup| setup.name.clone());
        let Some(name) = name.or_else(last) else {
            self.wrong(
                line,
                "there is no set-up before this; a block ```setup was expected",
            );
            return None;
        };
        if self.config_of(&name).is_none() {
            self.no_setup(line, &name);
            return None;
        }
        Some(name)
    }

    fn run(&mut self, body: Body<'_>) -> Option<Run> {
        let raw: RawRun = self.read("a run", body)?;
        let of = self.named_or_last(raw.of, body.line_of("of"))?;
        Some(Run {
            of,
            button: raw.button,
            keep: raw.keep,
        })
    }

    fn predict(&mut self, body: Body<'_>) -> Option<Predict> {
        let raw: RawPredict = self.read("a prediction", body)?;
        self.three(&raw.hints, body);
        let style = self.style(raw.style.as_deref(), body);
        let answer = match (raw.figure, raw.options.is_empty()) {
            (Some(figure), true) => {
                self.known(&figure, body.line_of("figure"));
                raw.formula
                    .iter()
                    .for_each(|formula| self.known(formula, body.line_of("formula")));
                let bar = raw
                    .bar
                    .as_ref()
                    .map(|most| most.value(&|_| None).unwrap_or_default());
                if bar.is_some_and(|bar| !(bar.is_finite() && bar > 0.0)) {
                    self.wrong(
                        body.line_of("bar"),
                        "bar: a number over 0 was expected, as \"100 %\"",
                    );
                }
                for (key, share) in [("agrees", raw.agrees), ("tolerance", raw.tolerance)] {
                    if share.is_some_and(|share| !(0.0..=10.0).contains(&share)) {
                        self.wrong(
                            body.line_of(key),
                            format!("{key}: a share from 0 to 10 was expected, as 0.1"),
                        );
                    }
                }
                Answer::Number(Number {
                    style: style.unwrap_or_else(|| Style::of(&figure)),
                    figure,
                    formula: raw.formula,
                    agrees: raw.agrees.unwrap_or(0.001),
                    tolerance: raw.tolerance.unwrap_or(0.1),
                    bar,
                })
            }
            (None, false) => Answer::Choice(self.choices(raw.options, body)?),
            (Some(_), false) | (None, true) => {
                self.wrong(
                    body.line,
                    "a prediction: either options or a figure was expected, as figure = \"bubble_of_total\"",
                );
                return None;
            }
        };
        Some(Predict {
            ask: self.text(&raw.ask, body.line_of("ask")),
            answer,
            hints: self.texts(&raw.hints, body.line_of("hints")),
            why: self.text(&raw.why, body.line_of("why")),
        })
    }

    fn choices(&mut self, raw: Vec<RawChoice>, body: Body<'_>) -> Option<Vec<Choice>> {
        let line = body.line_of("options");
        let mut choices = Vec::new();
        for choice in raw {
            let Some(when) = choice.when else {
                self.wrong(line, format!("the option {:?} does not say when it is right: when = \"...\" was expected, a formula over the run", choice.text));
                return None;
            };
            self.known(&when, line);
            choices.push(Choice {
                text: self.text(&choice.text, line),
                when,
                because: self.text(&choice.because, line),
            });
        }
        if choices.len() < 2 {
            self.wrong(line, "a prediction needs two options or more");
        }
        Some(choices)
    }

    fn quiz(&mut self, body: Body<'_>) -> Option<Quiz> {
        let raw: RawQuiz = self.read("a quiz", body)?;
        let line = body.line_of("options");
        let right = raw.options.iter().filter(|choice| choice.right).count();
        if right == 0 || right == raw.options.len() {
            self.wrong(
                line,
                "a quiz needs at least one right option (right = true) and one wrong one",
            );
        }
        let choices = raw.options.iter().map(|choice| QuizChoice {
            text: self.text(&choice.text, line),
            right: choice.right,
            because: self.text(&choice.because, line),
        });
        let choices = choices.collect();
        Some(Quiz {
            ask: self.text(&raw.ask, body.line_of("ask")),
            choices,
            hints: self.texts(&raw.hints, body.line_of("hints")),
        })
    }

    fn task(&mut self, body: Body<'_>) -> Option<Task> {
        let raw: RawTask = self.read("a task", body)?;
        self.three(&raw.hints, body);
        self.known(&raw.goal, body.line_of("goal"));
        let start = self.named_or_last(raw.start, body.line_of("start"))?;
        let base = self.config_of(&start)?;
        let solution = self.config(&base, &raw.solution, body)?;
        Some(Task {
            ask: self.text(&raw.ask, body.line_of("ask")),
            goal: raw.goal,
            start,
            solution: Box::new(solution),
            hints: self.texts(&raw.hints, body.line_of("hints")),
            why: self.text(&raw.why, body.line_of("why")),
        })
    }

    fn three(&mut self, hints: &[String], body: Body<'_>) {
        if hints.len() != 3 {
            let line = body.line_of("hints");
            self.wrong(line, format!("hints: three steps were expected (the concept, the principle, the answer), not {}", hints.len()));
        }
    }

    fn style(&mut self, name: Option<&str>, body: Body<'_>) -> Option<Style> {
        let name = name?;
        let style = Style::from_name(name);
        if style.is_none() {
            self.no_style(name, body.line_of("style"));
        }
        style
    }

    fn no_style(&mut self, name: &str, line: usize) {
        let all = Style::ALL.map(|(own, _)| own).join(", ");
        self.wrong(line, format!("there is no style {name:?}; there are {all}"));
    }

    fn texts(&mut self, texts: &[String], line: usize) -> Vec<Text> {
        texts.iter().map(|text| self.text(text, line)).collect()
    }

    /// Prose, in which `{{ bubble_of_total | percent }}` is a figure.
    fn text(&mut self, text: &str, line: usize) -> Text {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let at = line + text[..text.len() - after.len()].matches('\n').count();
            pieces.push(Piece::Words(before.to_owned()));
            let Some((hole, behind)) = after.split_once("}}") else {
                self.wrong(at, "a figure has no end: }} was expected");
                return Text(pieces);
            };
            pieces.extend(self.hole(hole, at));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Words(rest.to_owned()));
        }
        Text(pieces)
    }

    fn hole(&mut self, hole: &str, line: usize) -> Option<Piece> {
        let (formula, style) = match hole.split_once('|') {
            Some((formula, style)) => (formula, Some(style.trim())),
            None => (hole, None),
        };
        let formula = match Formula::parse(formula) {
            Ok(formula) => formula,
            Err(why) => {
                self.wrong(line, why);
                return None;
            }
        };
        self.known(&formula, line);
        let style = match style {
            None => Style::of(&formula),
            Some(name) => {
                let Some(style) = Style::from_name(name) else {
                    self.no_style(name, line);
                    return None;
                };
                style
            }
        };
        Some(Piece::Figure(formula, style))
    }

    /// Whether there are the figures and the runs that a formula names.
    fn known(&mut self, formula: &Formula, line: usize) {
        for asked in formula.asked() {
            if !is_known(asked) {
                let near = near(&asked.figure).join(", ");
                self.wrong(
                    line,
                    format!("there is no figure {:?}; near it are {near}", asked.figure),
                );
            }
            let run = asked.run.as_deref();
            if let Some(run) = run.filter(|run| self.config_of(run).is_none()) {
                self.no_setup(line, run);
            }
        }
    }
}

/// The panels that a set-up may open.
pub(super) const PANELS: [&str; 8] = [
    "loss",
    "mesh",
    "memory",
    "replicas",
    "traffic",
    "bubble",
    "selection",
    "now",
];

/// Lines that are no block, and where they start.
#[derive(Default)]
struct Prose {
    line: usize,
    text: String,
}

impl Prose {
    fn push(&mut self, line: usize, text: &str) {
        if self.text.trim().is_empty() {
            self.line = line;
            self.text.clear();
        }
        self.text.push_str(text);
        self.text.push('\n');
    }
}

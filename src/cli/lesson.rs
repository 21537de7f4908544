//! `shardscope lesson`: the lessons there are, one to be read, and all of them held to the engine.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::{CliError, CliResult};
use super::options::{Answer, LessonOptions};
use super::output::{print, print_json};
use super::table::{Align, Table};
use crate::lesson::check::check;
use crate::lesson::expr::Asked;
use crate::lesson::{Answer as Wanted, Content, Course, Files, Lesson, Mistake, Part, Text};
use crate::words::Language;

/// A lesson in a list.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    id: &'a str,
    title: &'a str,
    summary: &'a str,
    minutes: u32,
    pages: usize,
}

/// What a check found.
#[derive(Debug, Serialize)]
struct Found {
    lessons: usize,
    setups: usize,
    answers: usize,
    figures: usize,
    mistakes: Vec<String>,
}

/// Does what is asked of lessons.
pub(super) fn run(options: &LessonOptions) -> CliResult {
    match options {
        LessonOptions::List { source, answer } => list(&course(source)?, *answer),
        LessonOptions::Show { id, source } => show(&course(source)?, id),
        LessonOptions::Check { paths, answer } => check_all(paths, *answer),
    }
}

fn course((language, folder): &(Language, Option<PathBuf>)) -> CliResult<Course> {
    match folder {
        None => Ok(Course::bundled(*language)),
        Some(folder) => read(folder),
    }
}

fn read(path: &Path) -> CliResult<Course> {
    let course = Files::new(path).poll();
    course
        .unwrap_or_else(|| Ok(Course::default()))
        .map_err(|error| CliError::unreadable(path, error))
}

fn list(course: &Course, answer: Answer) -> CliResult {
    let listed = |lesson: &Lesson| -> [String; 4] {
        [
            lesson.id.clone(),
            lesson.title.clone(),
            format!("{} min", lesson.minutes),
            lesson.summary.clone(),
        ]
    };
    if answer == Answer::Json {
        let all: Vec<Listed<'_>> = course
            .lessons
            .iter()
            .map(|lesson| Listed {
                id: &lesson.id,
                title: &lesson.title,
                summary: &lesson.summary,
                minutes: lesson.minutes,
                pages: lesson.pages.len(),
            })
            .collect();
        print_json(&all)?;
    } else {
        let mut table = Table::new(&[Align::Left]);
        for lesson in &course.lessons {
            table.row(listed(lesson));
        }
        print(&table.render())?;
    }
    refuse(&course.mistakes)
}

fn refuse(mistakes: &[Mistake]) -> CliResult {
    if mistakes.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    let what = if lines.len() == 1 {
        "a mistake"
    } else {
        "mistakes"
    };
    Err(CliError::refused(format!(
        "{what} in lessons\n{}",
        lines.join("\n")
    )))
}

/// A lesson as a text: questions without their answers.
fn show(course: &Course, id: &str) -> CliResult {
    let Some(lesson) = course.lesson(id) else {
        refuse(&course.mistakes)?;
        let ids: Vec<&str> = course
            .lessons
            .iter()
            .map(|lesson| lesson.id.as_str())
            .collect();
        return Err(CliError::refused(format!(
            "there is no lesson {id:?}; there are {}",
            ids.join(", ")
        )));
    };
    let mut lines = vec![format!(
        "# {}\n\n{} ({} min)",
        lesson.title, lesson.summary, lesson.minutes
    )];
    for page in &lesson.pages {
        lines.push(format!("## {}", page.title));
        lines.extend(page.blocks.iter().map(|block| told(lesson, &block.content)));
    }
    print(&(lines.join("\n\n") + "\n"))
}

/// What is asked is asked; figures of runs that nobody has made yet are left open.
fn told(lesson: &Lesson, content: &Content) -> String {
    let open = |text: &Text| text.filled(&|_: &Asked| None);
    let options = |texts: Vec<String>| -> String {
        let lines = texts.iter().map(|text| format!("\n- [ ] {text}"));
        lines.collect()
    };
    match content {
        Content::Text(text) => open(text),
        Content::Setup(setup) => format!("    {}: {}", setup.name, setup.config.layout_line()),
        Content::Predict(predict) => {
            let answers = match &predict.answer {
                Wanted::Choice(choices) => {
                    choices.iter().map(|choice| open(&choice.text)).collect()
                }
                Wanted::Number(_) => vec!["____".to_owned()],
            };
            format!("**Predict.** {}\n{}", open(&predict.ask), options(answers))
        }
        Content::Run(run) => {
            let layout = lesson
                .setup(&run.of)
                .map(|setup| setup.config.layout_line());
            format!("    run {}: {}", run.of, layout.unwrap_or_default())
        }
        Content::Light(_) => "    (something is lit on the timeline)".to_owned(),
        Content::Quiz(quiz) => {
            let answers = quiz
                .choices
                .iter()
                .map(|choice| open(&choice.text))
                .collect();
            format!("**Check.** {}\n{}", open(&quiz.ask), options(answers))
        }
        Content::Task(task) => format!("**Task.** {}\n\n    {}", open(&task.ask), task.goal.text()),
        Content::Open(open) => {
            let part = match open.what {
                Part::Builder => "the schedule builder",
                Part::Matrices => "the matrices",
                Part::Layouts => "all layouts",
                Part::Guide => "the guide",
            };
            format!("    open {part}")
        }
    }
}

fn check_all(paths: &[PathBuf], answer: Answer) -> CliResult {
    let courses: Vec<Course> = if paths.is_empty() {
        Language::ALL.into_iter().map(Course::bundled).collect()
    } else {
        paths
            .iter()
            .map(|path| read(path))
            .collect::<CliResult<_>>()?
    };
    let mut found = Found {
        lessons: 0,
        setups: 0,
        answers: 0,
        figures: 0,
        mistakes: Vec::new(),
    };
    let mut all = Vec::new();
    for course in courses {
        all.extend(course.mistakes);
        for lesson in &course.lessons {
            found.lessons += 1;
            match check(lesson) {
                Ok(checked) => {
                    found.setups += checked.setups;
                    found.answers += checked.answers;
                    found.figures += checked.figures;
                }
                Err(mistakes) => all.extend(mistakes),
            }
        }
    }
    found.mistakes = all.iter().map(Mistake::to_string).collect();
    match answer {
        Answer::Json => print_json(&found)?,
        Answer::Text if all.is_empty() => print(&format!(
            "{} lessons: {} set-ups run, {} answers and {} figures in texts held to the engine, no mistake\n",
            found.lessons, found.setups, found.answers, found.figures
        ))?,
        Answer::Text => {}
    }
    refuse(&all)
}

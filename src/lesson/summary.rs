//! What a reader has done, as one HTML page: predictions beside what came out, answers, tasks, pictures.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::Made;
use super::{Answered, Content, Course, Lesson, Play, Progress};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b1f24}\
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #d0d7de;padding:.3em .6em;text-align:left;vertical-align:top}\
h2{margin-top:2em}.right::before{content:\"\u{2713} \"}.wrong::before{content:\"\u{2717} \"}figure{margin:1em 0}svg{max-width:100%;height:auto}";

/// A picture with its title, as SVG.
pub type Picture = (String, String);

/// The page, in the order of the course; what was not begun is left out.
pub fn html(
    course: &Course,
    progress: &BTreeMap<String, Progress>,
    pictures: &[Picture],
) -> String {
    let mut out = vec![format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Shardscope: what was done</title><style>{STYLE}</style></head><body>\n\
         <h1>Shardscope: what was done</h1>"
    )];
    let done = progress.values().filter(|progress| progress.done).count();
    out.push(format!(
        "<p>{done} of {} lessons done.</p>",
        course.lessons.len()
    ));
    for lesson in &course.lessons {
        if let Some(progress) = progress
            .get(&lesson.id)
            .filter(|progress| **progress != Progress::default())
        {
            out.push(of_lesson(lesson, progress));
        }
    }
    for (title, svg) in pictures {
        // An XML declaration has no place within a page.
        let svg = svg.find("<svg").map_or("", |start| &svg[start..]);
        out.push(format!(
            "<figure>{svg}<figcaption>{}</figcaption></figure>",
            escaped(title)
        ));
    }
    out.push("</body></html>\n".to_owned());
    out.join("\n")
}

fn of_lesson(lesson: &Arc<Lesson>, progress: &Progress) -> String {
    let mut play = Play::new(Arc::clone(lesson), progress.clone());
    let missing: Vec<_> = play.missing().into_iter().cloned().collect();
    for setup in missing {
        if let Ok(made) = Made::simulated(&setup.config) {
            play.restore(&setup.name, Arc::new(made));
        }
    }
    let mut rows = Vec::new();
    for page in 0..lesson.pages.len() {
        play.go_to(page);
        for (index, block) in lesson.pages[page].blocks.iter().enumerate() {
            rows.extend(row(&play, index, &block.content));
        }
    }
    let state = if progress.done { "done" } else { "begun" };
    let head = "<tr><th>Asked</th><th>Answered</th><th>Came out</th></tr>";
    format!(
        "<h2>{} ({state})</h2>\n<table>{head}\n{}</table>",
        escaped(&lesson.title),
        rows.join("\n")
    )
}

fn row(play: &Play, block: usize, content: &Content) -> Option<String> {
    let cells = |asked: &str, answered: &str, right: Option<bool>, out: &str| {
        let class = match right {
            Some(true) => " class=\"right\"",
            Some(false) => " class=\"wrong\"",
            None => "",
        };
        format!(
            "<tr><td>{}</td><td{class}>{}</td><td>{}</td></tr>",
            escaped(asked),
            escaped(answered),
            escaped(out)
        )
    };
    match content {
        Content::Predict(predict) => {
            let answered = play.predicted(block)?;
            let asked = play.filled(block, &predict.ask);
            Some(match play.verdict(block, predict) {
                Some(verdict) => cells(
                    &asked,
                    &verdict.predicted,
                    Some(verdict.right),
                    &verdict.measured,
                ),
                None => match answered {
                    Answered::Number(guess) => cells(&asked, &guess.to_string(), None, "not run"),
                    Answered::Choice(index) => {
                        cells(&asked, &format!("option {}", index + 1), None, "not run")
                    }
                },
            })
        }
        Content::Quiz(quiz) => {
            let chosen = play.chosen(block);
            let last = quiz.choices.get(*chosen.last()?)?;
            let right = quiz.choices.iter().filter(|choice| choice.right);
            let right: Vec<String> = right
                .map(|choice| play.filled(block, &choice.text))
                .collect();
            let tries = format!(
                "{} ({} tried)",
                play.filled(block, &last.text),
                chosen.len()
            );
            Some(cells(
                &play.filled(block, &quiz.ask),
                &tries,
                Some(last.right),
                &right.join("; "),
            ))
        }
        Content::Task(task) => play.is_reached(block).then(|| {
            cells(
                &play.filled(block, &task.ask),
                "reached",
                Some(true),
                task.goal.text(),
            )
        }),
        Content::Text(_)
        | Content::Setup(_)
        | Content::Run(_)
        | Content::Light(_)
        | Content::Open(_) => None,
    }
}

/// As text within a page.
fn escaped(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn what_was_done_is_told_and_what_was_not_is_left_out() {
        let course = Course::bundled(Language::English);
        let lesson = course.lesson("pipeline-bubble").unwrap();
        let mut play = Play::new(Arc::clone(lesson), Progress::default());
        let ask = play.seen().last().unwrap().0;
        play.predict(ask, Answered::Number(0.5));
        let run = play.seen().last().unwrap().0;
        let config = &lesson.setup("one").unwrap().config;
        play.made(run, Arc::new(Made::simulated(config).unwrap()));
        let progress = BTreeMap::from([("pipeline-bubble".to_owned(), play.progress().clone())]);
        let picture = ("A <run>".to_owned(), "<?xml?><svg></svg>".to_owned());
        let html = html(&course, &progress, &[picture]);
        assert!(
            html.contains("<td class=\"wrong\">50.0 %</td><td>75.0 %</td>"),
            "{html}"
        );
        assert!(
            html.contains("<figure><svg></svg><figcaption>A &lt;run&gt;</figcaption></figure>")
        );
        assert_eq!(html.matches("<h2>").count(), 1);
    }
}

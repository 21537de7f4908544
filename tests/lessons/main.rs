//! Every lesson played to its end in the window, through the accessibility tree: predicted, run, answered wrong and right, its
//! tasks solved; back and forth again; and taken up again after a restart in the middle.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]
#![expect(
    clippy::disallowed_methods,
    reason = "runs are waited for, but not for ever"
)]

mod look;

use std::time::{Duration, Instant};

use eframe::egui::accesskit::Role;
use eframe::egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use egui_kittest::{Harness, HarnessBuilder};
use shardscope::export::Kit;
use shardscope::lesson::{Answer, Content, Course, Lesson, Quiz, Task};
use shardscope::session::Config;
use shardscope::ui::{App, Motion, Options};
use shardscope::words::Language;

/// How long a run may take to be shown.
const PATIENCE: Duration = Duration::from_mins(1);

/// A window high enough that nothing of a page is scrolled away.
fn window(options: Options) -> Harness<'static, App> {
    opened(Harness::builder(), options)
}

/// The same, of which pictures can be made.
fn pictured(options: Options) -> Harness<'static, App> {
    opened(Harness::builder().wgpu(), options)
}

fn opened(builder: HarnessBuilder<App>, options: Options) -> Harness<'static, App> {
    let mut harness = builder
        .with_size([1800.0, 2400.0])
        .with_pixels_per_point(1.0)
        .with_max_steps(64)
        .build_eframe(move |cc| App::new(cc, &options).unwrap());
    harness.run_steps(3);
    harness
}

fn options(lesson: &str) -> Options {
    Options {
        lesson: Some(lesson.to_owned()),
        motion: Motion::Paused,
        ..Options::default()
    }
}

fn until(
    harness: &mut Harness<'static, App>,
    what: &str,
    is: impl Fn(&Harness<'static, App>) -> bool,
) {
    let started = Instant::now();
    while !is(harness) {
        assert!(started.elapsed() < PATIENCE, "{what} never came");
        harness.run_steps(1);
        std::thread::sleep(Duration::from_millis(2));
    }
    harness.run_steps(2);
}

/// Clicks the control with exactly that name, the last of several: blocks of a page come one after the other.
fn click(harness: &mut Harness<'static, App>, role: Role, name: &str) {
    let found = harness
        .query_all_by_label(name)
        .rfind(|node| node.accesskit_node().role() == role);
    let Some(node) = found else {
        panic!("there is no {role:?} {name:?}");
    };
    node.click();
    harness.run_steps(2);
}

fn has(harness: &Harness<'static, App>, name: &str) -> bool {
    harness.query_all_by_label(name).next().is_some()
}

fn mentions(harness: &Harness<'static, App>, part: &str) -> bool {
    harness.query_all_by_label_contains(part).next().is_some()
}

fn count(harness: &Harness<'static, App>, name: &str) -> usize {
    harness.query_all_by_label(name).count()
}

fn predict(harness: &mut Harness<'static, App>, answer: &Answer) {
    match answer {
        Answer::Choice(choices) => {
            // Nothing follows an open prediction: its options are the last of the page.
            let radios: Vec<_> = harness.query_all_by_role(Role::RadioButton).collect();
            radios[radios.len() - choices.len()].click();
            harness.run_steps(2);
        }
        Answer::Number(number) if number.bar.is_none() => {
            let field = harness
                .query_all_by_role(Role::TextInput)
                .next_back()
                .expect("a field");
            field.focus();
            harness.run_steps(1);
            let field = harness
                .query_all_by_role(Role::TextInput)
                .next_back()
                .expect("a field");
            field.type_text("1");
            harness.run_steps(2);
        }
        Answer::Number(_) => {}
    }
    click(harness, Role::Button, "Commit");
}

fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

/// First a wrong answer, then all that are right.
fn answer(harness: &mut Harness<'static, App>, quiz: &Quiz) {
    let name = |place: usize| plain(&quiz.choices[place].text.filled(&|_| None));
    let wrong = quiz
        .choices
        .iter()
        .position(|choice| !choice.right)
        .unwrap();
    let before = count(harness, "Not so.");
    click(harness, Role::RadioButton, &name(wrong));
    assert_eq!(count(harness, "Not so."), before + 1, "{}", name(wrong));
    let before = count(harness, "Right.");
    let right = quiz.choices.iter().position(|choice| choice.right).unwrap();
    click(harness, Role::RadioButton, &name(right));
    assert_eq!(count(harness, "Right."), before + 1, "{}", name(right));
}

/// Numbers are stepped at the controls as far as they are few steps away; all else is loaded as a whole.
fn solve(harness: &mut Harness<'static, App>, task: &Task, reached: usize) {
    let wanted = &task.solution;
    step_to(harness, wanted);
    if harness.state().config() != &**wanted {
        harness.state_mut().load((**wanted).clone());
    }
    until(harness, "the goal", |harness| {
        count(harness, "Reached.") > reached
    });
}

fn step_to(harness: &mut Harness<'static, App>, wanted: &Config) {
    for (name, of) in [
        (
            "micro-batches",
            (|config| config.layout.micro_batches) as fn(&Config) -> usize,
        ),
        ("pipeline parallel", |config| config.layout.pp),
        ("data parallel", |config| config.layout.dp),
    ] {
        let (now, target) = (of(harness.state().config()), of(wanted));
        let alone = {
            let mut only = harness.state().config().clone();
            only.layout = wanted.layout;
            only == *wanted
        };
        if alone && now.abs_diff(target) <= 4 && !harness.state().config().eq(wanted) {
            let more = if target > now { "More" } else { "Fewer" };
            for _ in 0..now.abs_diff(target) {
                if has(harness, &format!("{more} {name}")) {
                    click(harness, Role::Button, &format!("{more} {name}"));
                }
            }
        }
    }
}

/// Looks at a moment of a page, by its name.
type Looker<'a> = &'a mut dyn FnMut(&mut Harness<'static, App>, &str);

/// Everything that is to be done on a page, in order.
fn play_page(harness: &mut Harness<'static, App>, lesson: &Lesson, page: usize) {
    play_page_and(harness, lesson, page, &mut |_, _| {});
}

/// The same, with a look at each of its moments.
fn play_page_and(
    harness: &mut Harness<'static, App>,
    lesson: &Lesson,
    page: usize,
    look: Looker<'_>,
) {
    look(harness, "start");
    let (mut reached, mut ran) = (0, false);
    for block in &lesson.pages[page].blocks {
        match &block.content {
            Content::Predict(asked) => {
                let covered = has(harness, "Covered until you have predicted and run it");
                assert_eq!(covered, !ran, "{} page {page}", lesson.id);
                predict(harness, &asked.answer);
            }
            Content::Run(run) => {
                let words = run.button.as_deref().unwrap_or("Run it");
                let again = format!("{words} again");
                let before = count(harness, &again);
                click(harness, Role::Button, words);
                let started = Instant::now();
                while count(harness, &again) == before {
                    assert!(
                        started.elapsed() < PATIENCE,
                        "{}: the run of page {} never ended; under way: {}, behind: {}; {:?}; {}",
                        lesson.id,
                        page + 1,
                        has(harness, "To its end"),
                        has(harness, "preparing the new layout…"),
                        harness.state().lesson(),
                        harness.state().config().layout_line(),
                    );
                    if has(harness, "To its end") {
                        click(harness, Role::Button, "To its end");
                    }
                    harness.run_steps(1);
                }
                assert!(!has(harness, "Covered until you have predicted and run it"));
                let setup = lesson.setup(&run.of).unwrap();
                assert_eq!(
                    harness.state().config(),
                    &setup.config,
                    "{}: what was run stays",
                    lesson.id
                );
                ran = true;
                look(harness, "run");
            }
            Content::Quiz(quiz) => answer(harness, quiz),
            Content::Task(task) => {
                solve(harness, task, reached);
                reached += 1;
            }
            Content::Text(_) | Content::Setup(_) | Content::Light(_) | Content::Open(_) => {}
        }
    }
    let name = format!("{} page {}'s end", lesson.id, page + 1);
    until(harness, &name, |harness| {
        has(harness, &format!("Page {}, done, here", page + 1))
    });
    look(harness, "end");
    // A figure that is not known would be an ellipsis in the text; names of buttons end in one.
    let mut unknown = harness.query_all_by_label_contains(" …");
    let unknown = unknown.find_map(|node| {
        node.accesskit_node()
            .label()
            .filter(|label| !label.starts_with("What if …"))
    });
    assert_eq!(unknown, None, "{} page {}", lesson.id, page + 1);
}

fn play(lesson: &Lesson) {
    let mut harness = window(options(&lesson.id));
    for page in 0..lesson.pages.len() {
        assert_eq!(
            harness.state().lesson(),
            Some((lesson.id.as_str(), page, lesson.pages.len()))
        );
        play_page(&mut harness, lesson, page);
        if page + 1 < lesson.pages.len() {
            click(&mut harness, Role::Button, "Next");
        }
    }
    // Back and forth again: everything is still answered, and nothing is covered.
    for _ in 1..lesson.pages.len() {
        harness.key_press(Key::PageUp);
        harness.run_steps(3);
        assert!(
            !has(&harness, "Covered until you have predicted and run it"),
            "{}",
            lesson.id
        );
    }
    assert_eq!(harness.state().lesson().unwrap().1, 0);
    harness.key_press_modifiers(Modifiers::NONE, Key::PageDown);
    harness.run_steps(3);
    assert_eq!(
        harness.state().lesson().unwrap().1,
        1.min(lesson.pages.len() - 1)
    );
    for page in 1..=lesson.pages.len() {
        assert!(
            mentions(&harness, &format!("Page {page}, done")),
            "{} page {page}",
            lesson.id
        );
    }
    click(&mut harness, Role::Button, "All lessons");
}

/// One thread each half of the course: runs are waited for.
fn play_all(part: usize) {
    for lesson in Course::bundled(Language::English)
        .lessons
        .iter()
        .skip(part)
        .step_by(2)
    {
        play(lesson);
    }
}

#[test]
fn every_other_lesson_is_played_to_its_end() {
    play_all(0);
}

#[test]
fn the_lessons_between_are_played_to_their_ends() {
    play_all(1);
}

/// One lesson by itself, for its writer: `LESSON=hybrids cargo test --test lessons one -- --ignored`.
#[test]
#[ignore = "for whoever writes a lesson"]
fn one_lesson_is_played_to_its_end() {
    let id = std::env::var("LESSON").unwrap();
    play(Course::bundled(Language::English).lesson(&id).unwrap());
}

/// The first page of each lesson, before its prediction and after its run: at two sizes, on a desk and for the back of a
/// classroom, in both themes.
#[test]
fn texts_of_lessons_are_large_enough_and_stand_out() {
    let mut faults = Vec::new();
    for lesson in Course::bundled(Language::English).lessons {
        let mut harness = pictured(options(&lesson.id));
        play_page_and(&mut harness, &lesson, 0, &mut |harness, moment| {
            if moment == "end" {
                faults.extend(look::look(harness, &format!("{}-1-{moment}", lesson.id)));
            }
        });
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Pictures of every page's moments: `PICTURES=FOLDER cargo test --test lessons pictures -- --ignored`; `LESSON=ID` for one.
#[test]
#[ignore = "for eyes; it takes minutes"]
fn pictures_of_the_course() {
    let only = std::env::var("LESSON").ok();
    let mut faults = Vec::new();
    let lessons = Course::bundled(Language::English).lessons;
    for lesson in lessons
        .iter()
        .filter(|lesson| only.as_ref().is_none_or(|id| *id == lesson.id))
    {
        let mut harness = pictured(options(&lesson.id));
        for page in 0..lesson.pages.len() {
            play_page_and(&mut harness, lesson, page, &mut |harness, moment| {
                let name = format!("{}-{}-{moment}", lesson.id, page + 1);
                faults.extend(look::look(harness, &name));
            });
            if page + 1 < lesson.pages.len() {
                click(&mut harness, Role::Button, "Next");
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_lesson_goes_on_where_it_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Options {
        progress: Some(folder.path().join("progress.json")),
        ..options("pipeline-bubble")
    };
    let course = Course::bundled(Language::English);
    let lesson = course.lesson("pipeline-bubble").unwrap();
    let mut harness = window(kept.clone());
    play_page(&mut harness, lesson, 0);
    click(&mut harness, Role::Button, "Next");
    drop(harness);
    let mut harness = window(kept);
    assert_eq!(
        harness.state().lesson(),
        Some(("pipeline-bubble", 1, lesson.pages.len()))
    );
    assert!(has(&harness, "Page 1, done"));
    play_page(&mut harness, lesson, 1);
    // A text of this page names the run of the page before, which was made before the restart.
    assert!(mentions(&harness, "75.0 %"));
}

#[test]
fn the_window_speaks_german_and_keeps_what_was_done() {
    let mut harness = window(options("pipeline-bubble"));
    let english = Course::bundled(Language::English);
    play_page(&mut harness, english.lesson("pipeline-bubble").unwrap(), 0);
    click(&mut harness, Role::Button, "Keys");
    // The list takes some frames to its height.
    harness.run_steps(12);
    click(&mut harness, Role::Button, "Deutsch");
    harness.run_steps(3);
    click(&mut harness, Role::Button, "Schließen");
    for text in [
        "Lektionen…",
        "Datenparallel",
        "Es kam anders.",
        "Speicher",
        "Weiter",
    ] {
        assert!(has(&harness, text), "{text}");
    }
    let title = Course::bundled(Language::German);
    let title = title.lesson("pipeline-bubble").unwrap().title.clone();
    assert!(has(&harness, &title));
    click(&mut harness, Role::Button, "Weiter");
    assert!(has(&harness, "Festlegen") && !has(&harness, "Commit"));
}

#[test]
fn lessons_of_ones_own_are_read_again_when_saved_and_their_mistakes_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("01-own.md");
    let text = |words: &str| {
        format!(
            "+++\ntitle = \"My own\"\nsummary = \"Mine\"\nminutes = 1\n+++\n\n## One\n\n{words}\n"
        )
    };
    std::fs::write(&file, text("First words")).unwrap();
    let mut harness = window(Options {
        lessons: Some(folder.path().to_owned()),
        motion: Motion::Paused,
        ..Options::default()
    });
    until(&mut harness, "the lesson", |harness| has(harness, "Mine"));
    let row = harness
        .query_all_by_label_contains("My own")
        .next()
        .unwrap();
    row.click();
    harness.run_steps(3);
    assert!(mentions(&harness, "First words"));
    std::fs::write(&file, text("Other words now")).unwrap();
    until(&mut harness, "what was saved", |harness| {
        mentions(harness, "Other words")
    });
    std::fs::write(&file, text("Bad {{ bubbel }}")).unwrap();
    until(&mut harness, "the mistake", |harness| {
        mentions(harness, "01-own.md:9: there is no figure")
    });
}

#[test]
fn a_class_kit_restores_the_window() {
    let mut harness = window(options("pipeline-bubble"));
    click(&mut harness, Role::Button, "Next");
    // Not what the page sets up, so that a page that set itself up would be seen.
    let mut config = harness.state().config().clone();
    config.layout.micro_batches = 5;
    config.seed = u64::MAX;
    assert!(harness.state_mut().load(config));
    harness.key_press(Key::K);
    harness.key_press(Key::L);
    harness.key_press(Key::V);
    harness.run_steps(3);
    let kit = harness.state().kit();
    assert_eq!(kit.lesson, Some(("pipeline-bubble".to_owned(), 1)));
    assert!(kit.hide_controls && kit.presenter);
    let line = kit.line().unwrap();
    let restored = Kit::from_line(&line).unwrap();
    let mut other = window(Options {
        motion: Motion::Paused,
        ..Options::default().with_kit(restored)
    });
    other.run_steps(5);
    assert_eq!(other.state().kit(), kit);
    // And in a window that is open already.
    let mut third = window(Options {
        motion: Motion::Paused,
        ..Options::default()
    });
    third.key_press(Key::E);
    third.run_steps(2);
    let field = third
        .query_all_by_label("Class kit to load")
        .next()
        .unwrap();
    field.focus();
    third.run_steps(1);
    let field = third
        .query_all_by_label("Class kit to load")
        .next()
        .unwrap();
    field.type_text(&line);
    third.run_steps(2);
    click(&mut third, Role::Button, "Load");
    third.run_steps(3);
    assert_eq!(third.state().kit(), kit);
}

//! The lessons that come with the program, held to the engine and to what a lesson must have; and what is said of broken ones.

use super::check::check;
use super::*;
use crate::words::Language;

const FRONT: &str = "+++\ntitle = \"A\"\nsummary = \"B\"\nminutes = 3\n+++\n\n";
const SETUP: &str =
    "## Page\n\n```setup\nname = \"one\"\npp = 4\nmicro-batches = 2\ncosts = \"unit\"\n```\n";

/// All that is wrong with a lesson of that text, read and checked.
fn wrong(text: &str) -> String {
    let mistakes = match Lesson::parse("lessons/07-own.md", text) {
        Ok(lesson) => check(&lesson).err().unwrap_or_default(),
        Err(mistakes) => mistakes,
    };
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join(
        "
",
    )
}

fn page(blocks: &str) -> String {
    format!("{FRONT}{SETUP}{blocks}")
}

#[test]
fn the_course_is_right_in_every_language() {
    for language in Language::ALL {
        let course = Course::bundled(language);
        assert_eq!(course.mistakes, [], "{language:?}");
        for lesson in &course.lessons {
            let told = check(lesson)
                .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert!(told.is_ok(), "{}", told.unwrap_err().join("\n"));
        }
    }
}

#[test]
fn each_lesson_has_something_to_predict_to_change_and_to_answer() {
    for lesson in Course::bundled(Language::English).lessons {
        let blocks = || lesson.pages.iter().flat_map(|page| &page.blocks);
        let has = |wanted: fn(&Content) -> bool| blocks().any(|block| wanted(&block.content));
        assert!(
            has(|content| matches!(content, Content::Predict(_))),
            "{}",
            lesson.id
        );
        assert!(
            has(|content| matches!(content, Content::Run(_))),
            "{}",
            lesson.id
        );
        assert!(
            has(|content| matches!(content, Content::Quiz(_))),
            "{}",
            lesson.id
        );
        assert!(
            has(|content| matches!(content, Content::Task(_))),
            "{}",
            lesson.id
        );
    }
}

#[test]
fn lessons_in_other_languages_are_the_same_lessons() {
    let english = Course::bundled(Language::English);
    for language in Language::ALL {
        let other = Course::bundled(language);
        for (own, lesson) in english.lessons.iter().zip(&other.lessons) {
            assert_eq!(own.id, lesson.id);
            assert_eq!(
                own.pages.len(),
                lesson.pages.len(),
                "{} in {language:?}",
                own.id
            );
            // What is run and what is right are the same; only words differ.
            for (page, there) in own.pages.iter().zip(&lesson.pages) {
                let kinds = |page: &Page| -> Vec<std::mem::Discriminant<Content>> {
                    page.blocks
                        .iter()
                        .map(|block| std::mem::discriminant(&block.content))
                        .collect()
                };
                assert_eq!(
                    kinds(page),
                    kinds(there),
                    "{} in {language:?}: {}",
                    own.id,
                    page.title
                );
            }
            let configs = |lesson: &Lesson| -> Vec<Config> {
                lesson.setups().map(|setup| setup.config.clone()).collect()
            };
            assert_eq!(configs(own), configs(lesson), "{} in {language:?}", own.id);
        }
    }
}

#[test]
fn every_lesson_in_the_folder_comes_with_the_program() {
    let bundled: Vec<String> = Course::bundled(Language::English)
        .lessons
        .iter()
        .map(|lesson| lesson.file.clone())
        .collect();
    let mut files = Files::new(std::path::Path::new("lessons"));
    let course = files.poll().unwrap().unwrap();
    let found: Vec<String> = course
        .lessons
        .iter()
        .map(|lesson| lesson.file.clone())
        .collect();
    assert_eq!(found, bundled);
    assert!(files.poll().is_none(), "nothing was saved");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of broken lessons")]
fn every_kind_of_mistake_is_told_with_its_line_and_what_was_expected() {
    let hints = "hints = [\"a\", \"b\", \"c\"]\nwhy = \"d\"\n";
    let cases = [
        ("no front matter", "# A\n".to_owned()),
        (
            "front matter",
            "+++\ntitle = \"A\"\nminutes = \"x\"\n+++\n## P\nx\n".to_owned(),
        ),
        ("no page", FRONT.to_owned()),
        ("text before a page", format!("{FRONT}words\n\n## P\n\nx\n")),
        (
            "block before a page",
            format!("{FRONT}```setup\nname = \"one\"\n```\n\n## P\n\nx\n"),
        ),
        ("empty page", format!("{FRONT}## P\n\n## Q\n\nx\n")),
        ("unknown block", page("```predcit\nask = 1\n```\n")),
        ("no end", page("```run\n")),
        ("no name", format!("{FRONT}## P\n```setup\npp = 4\n```\n")),
        ("name twice", page("```setup\nname = \"one\"\n```\n")),
        (
            "like what",
            page("```setup\nname = \"two\"\nlike = \"on\"\n```\n"),
        ),
        (
            "unknown setting",
            page("```setup\nname = \"two\"\npp = 2\nmicro-batch = 4\n```\n"),
        ),
        (
            "wrong setting",
            page("```setup\nname = \"two\"\n\ntp = \"four\"\n```\n"),
        ),
        (
            "illegal layout",
            page("```setup\nname = \"two\"\ntp = 3\n```\n"),
        ),
        (
            "model",
            page("```setup\nname = \"two\"\nmodel = \"gpt9\"\n```\n"),
        ),
        (
            "schedule",
            page("```setup\nname = \"two\"\nschedule = \"1f2b\"\n```\n"),
        ),
        (
            "panels",
            page("```setup\nname = \"two\"\npanels = [\"memmory\"]\n```\n"),
        ),
        ("toml", page("```run\nkeep = yes\n```\n")),
        ("unknown key", page("```run\nkeeep = true\n```\n")),
        ("run of what", page("```run\nof = \"two\"\n```\n")),
        ("run without set-up", format!("{FRONT}## P\n```run\n```\n")),
        ("figure", page("The bubble is {{ bubbel_of_total }}.\n")),
        (
            "figure's run",
            page("The bubble is {{ two.bubble_of_total }}.\n"),
        ),
        (
            "no end of figure",
            page("The bubble is {{ bubble_of_total.\n"),
        ),
        (
            "style",
            page("The bubble is {{ bubble_of_total | per-cent }}.\n"),
        ),
        ("formula", page("The bubble is {{ (pp - 1 }}.\n")),
        ("figure without a model", page("{{ mfu }}\n")),
        ("no such GPU", page("{{ peak_memory(9) }}\n")),
        (
            "two hints",
            page(
                "```predict\nask = \"q\"\nfigure = \"makespan\"\nhints = [\"a\", \"b\"]\nwhy = \"d\"\n```\n",
            ),
        ),
        (
            "no answer",
            page(&format!("```predict\nask = \"q\"\n{hints}```\n")),
        ),
        (
            "formula against the run",
            page(&format!(
                "```predict\nask = \"q\"\nfigure = \"bubble_of_total\"\nformula = \"(pp - 1) / micro_batches\"\n{hints}```\n"
            )),
        ),
        (
            "two are right",
            page(&format!(
                "```predict\nask = \"q\"\noptions = [\n  {{ text = \"a\", when = \"pp > 1\", because = \"\" }},\n  {{ text = \"b\", when = \"pp > 2\", because = \"\" }},\n]\n{hints}```\n"
            )),
        ),
        (
            "no when",
            page(&format!(
                "```predict\nask = \"q\"\noptions = [{{ text = \"a\", because = \"\" }}]\n{hints}```\n"
            )),
        ),
        (
            "nothing right",
            page(
                "```quiz\nask = \"q\"\noptions = [{ text = \"a\", because = \"\" }, { text = \"b\", because = \"\" }]\n```\n",
            ),
        ),
        (
            "goal not reached",
            page(&format!(
                "```task\nask = \"q\"\ngoal = \"bubble_of_total < 10 %\"\nsolution = {{ micro-batches = 4 }}\n{hints}```\n"
            )),
        ),
        (
            "goal reached before",
            page(&format!(
                "```task\nask = \"q\"\ngoal = \"pp = 4\"\nsolution = {{ micro-batches = 4 }}\n{hints}```\n"
            )),
        ),
        ("light", page("```light\nrank = 4\n```\n")),
        (
            "open where",
            page("```open\nwhat = \"builder\"\nat = \"A cap\"\nbutton = \"b\"\n```\n"),
        ),
        (
            "name in formulas",
            page("```setup\nname = \"one-gpu\"\n```\n"),
        ),
        (
            "open",
            page("```open\nwhat = \"bilder\"\nbutton = \"b\"\n```\n"),
        ),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(name, text)| {
            let said = wrong(text);
            assert!(!said.is_empty(), "{name}: nothing is wrong with it");
            format!("# {name}\n{said}\n")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn nothing_that_is_no_lesson_makes_it_panic() {
    use proptest::prelude::*;
    let words = [
        "+++\n",
        "title = \"A\"\n",
        "summary = \"B\"\nminutes = 3\n",
        "## P\n",
        "```setup\n",
        "name = \"one\"\n",
        "pp = 4\n",
        "```\n",
        "```run\n",
        "```predict\n",
        "ask = \"{{ pp }}\"\n",
        "figure = \"pp\"\n",
        "hints = [\"\", \"\", \"\"]\nwhy = \"\"\n",
        "{{",
        "}}",
        "x\n",
        "```task\n",
        "goal = \"pp > 1\"\n",
        "```light\n",
        "\u{301}\n",
    ];
    let texts = prop::collection::vec(prop::sample::select(words.to_vec()), 0..40);
    proptest!(ProptestConfig::with_cases(200), |(texts in texts)| {
        let text: String = texts.concat();
        let _lesson = Lesson::parse("a.md", &text);
        let _lesson = Lesson::parse("a.md", &format!("{FRONT}{text}"));
    });
}

mod playing {
    use super::*;
    use std::sync::Arc;

    fn play() -> Play {
        let course = Course::bundled(Language::English);
        Play::new(
            Arc::clone(course.lesson("pipeline-bubble").unwrap()),
            Progress::default(),
        )
    }

    fn made(play: &Play, block: usize) -> Arc<check::Made> {
        let Content::Run(run) = &play.page().blocks[block].content else {
            panic!("no run");
        };
        let config = &play.lesson().setup(&run.of).unwrap().config;
        Arc::new(check::Made::simulated(config).unwrap())
    }

    #[test]
    fn a_run_is_covered_until_it_was_predicted_and_seen_when_it_was_run() {
        let mut play = play();
        assert!(play.covers());
        let last = play.seen().last().unwrap().0;
        play.predict(last, Answered::Number(0.5));
        play.predict(last, Answered::Number(0.75));
        assert_eq!(
            play.predicted(last),
            Some(Answered::Number(0.5)),
            "what was committed stays"
        );
        assert!(play.covers());
        let run = play.seen().last().unwrap().0;
        assert!(run > last);
        let figures = made(&play, run);
        play.made(run, figures);
        assert!(!play.covers());
        let Content::Predict(predict) = &play.page().blocks[last].content else {
            panic!("no prediction");
        };
        let verdict = play.verdict(last, predict).unwrap();
        assert!(!verdict.right);
        assert_eq!(
            (verdict.measured.as_str(), verdict.formula.as_deref()),
            ("75.0 %", Some("75.0 %"))
        );
    }

    #[test]
    fn a_restart_in_the_middle_goes_on_with_the_same_figures() {
        let mut play = play();
        let ask = play.seen().last().unwrap().0;
        play.predict(ask, Answered::Number(0.75));
        let run = play.seen().last().unwrap().0;
        let figures = made(&play, run);
        play.made(run, figures);
        play.forward();
        let kept = serde_json::to_string(play.progress()).unwrap();
        let mut again = Play::new(
            Arc::clone(play.lesson()),
            serde_json::from_str(&kept).unwrap(),
        );
        assert_eq!(again.progress(), play.progress());
        assert_eq!(again.progress().page, 1);
        let missing: Vec<Setup> = again.missing().into_iter().cloned().collect();
        assert_eq!(missing.len(), 1);
        for setup in missing {
            again.restore(
                &setup.name,
                Arc::new(check::Made::simulated(&setup.config).unwrap()),
            );
        }
        again.back();
        let Content::Predict(predict) = &again.page().blocks[ask].content else {
            panic!("no prediction");
        };
        assert!(again.verdict(ask, predict).unwrap().right);
    }
}

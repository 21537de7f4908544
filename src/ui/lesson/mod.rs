//! Lessons beside the timelines: the course, the lesson that is read, and what it does to the window.

mod blocks;
mod keep;
mod list;
mod outcome;
mod panel;
mod stage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use eframe::egui::Context;
use egui_commonmark::CommonMarkCache;

use crate::lesson::build::Progress as Built;
use crate::lesson::summary::{self, Picture};
use crate::lesson::{Answered, Course, Files, Part, Play};
use crate::words::Language;

use keep::Record;

pub(super) use keep::place;
pub(super) use panel::{show, width};
pub(super) use stage::Desk;

/// What a reader wants of a lesson.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::ui) enum Teach {
    /// The panel with the lessons, or no longer.
    Toggle,
    /// The lesson of that name.
    Open(String),
    /// Back to the list.
    List,
    /// The next page.
    Forward,
    /// The page before.
    Back,
    /// A page.
    Page(usize),
    /// A prediction committed.
    Predict(usize, Answered),
    /// The run of a block.
    Run(usize),
    /// The end of its first step at once.
    Finish,
    /// An option of a quiz.
    Choose(usize, usize),
    /// One more hint.
    Hint(usize),
    /// What a block lights, lit again.
    Light(usize),
    /// Another part of the window.
    Part(Part, Option<String>),
    /// Where the task of a block starts from.
    SetUp(usize),
    /// A page of what was done, to the file of that name.
    Summary(String),
    /// The lesson from its start, all answers forgotten.
    Restart,
}

/// The lessons, and the one that is read.
#[derive(Debug)]
pub(in crate::ui) struct Classroom {
    course: Course,
    /// A folder of one's own, in place of what comes with the program; and why it cannot be read.
    files: Option<(Files, Option<String>)>,
    /// When they were looked at last, on the window's clock.
    polled: Option<f64>,
    /// Whether the panel is open.
    open: bool,
    play: Option<Play>,
    /// What is kept between starts: how far the reader is in each lesson, what was built.
    record: Record,
    /// Where that is kept between starts; nowhere in tests.
    store: Option<PathBuf>,
    /// What is typed into blocks, before it is committed.
    drafts: BTreeMap<usize, Draft>,
    /// The set-up that is loaded.
    staged: Option<String>,
    /// The block whose run is under way.
    running: Option<usize>,
    /// Whether the end of the step is to be seen as soon as there is one.
    to_end: bool,
    /// Whether the controls were folded for a set-up.
    folded: bool,
    /// How many blocks of the page have been seen, so that each lights what it lights once.
    lit: usize,
    text: Texts,
    /// Where the summary goes, and what came of it.
    summary: (String, Option<Result<String, String>>),
}

/// What is typed or chosen before it is committed.
#[derive(Clone, Debug, Default)]
struct Draft {
    text: String,
    choice: Option<usize>,
    bar: f64,
    /// Why what was typed is no number.
    wrong: Option<String>,
}

/// What laying out Markdown remembers.
#[derive(Default)]
struct Texts(CommonMarkCache);

impl std::fmt::Debug for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

/// How often a folder is looked at for lessons that were saved.
const POLL: Duration = Duration::from_millis(700);

impl Classroom {
    /// The lessons in `language`, or of a folder; progress kept in the file `store`.
    pub(in crate::ui) fn new(
        language: Language,
        folder: Option<&PathBuf>,
        store: Option<PathBuf>,
    ) -> Self {
        let mut files = folder.map(|folder| (Files::new(folder), None));
        let course = match &mut files {
            None => Course::bundled(language),
            Some((files, wrong)) => match files.poll() {
                Some(Ok(course)) => course,
                Some(Err(error)) => {
                    *wrong = Some(error.to_string());
                    Course::default()
                }
                None => Course::default(),
            },
        };
        let record = store.as_deref().map(keep::read).unwrap_or_default();
        Self {
            course,
            files,
            polled: None,
            open: folder.is_some(),
            play: None,
            record,
            store,
            drafts: BTreeMap::new(),
            staged: None,
            running: None,
            to_end: false,
            folded: false,
            lit: 0,
            text: Texts::default(),
            summary: ("shardscope-summary.html".to_owned(), None),
        }
    }

    /// Whether the panel is open.
    pub(in crate::ui) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether a lesson is read, and not the list.
    pub(in crate::ui) fn reads(&self) -> bool {
        self.open && self.play.is_some()
    }

    /// The lesson that is read and its page, and how many it has.
    pub(in crate::ui) fn at(&self) -> Option<(&str, usize, usize)> {
        let play = self.play.as_ref()?;
        Some((
            &play.lesson().id,
            play.progress().page,
            play.lesson().pages.len(),
        ))
    }

    /// Whether the run is covered, as it is still to be predicted.
    pub(in crate::ui) fn covers(&self) -> bool {
        self.open && self.running.is_none() && self.play.as_ref().is_some_and(Play::covers)
    }

    /// Does what a reader wants.
    pub(in crate::ui) fn grant(&mut self, teach: Teach, desk: &mut Desk<'_>) {
        match teach {
            Teach::Toggle => self.open = !self.open,
            Teach::Open(id) => self.start(&id),
            Teach::List => self.leave(desk),
            Teach::Forward => self.turn(desk, Play::forward),
            Teach::Back => self.turn(desk, Play::back),
            Teach::Page(page) => self.turn(desk, |play| play.go_to(page)),
            Teach::SetUp(block) => self.set_up(block, desk),
            Teach::Restart => self.turn(desk, |play| {
                play.restart();
                true
            }),
            Teach::Run(block) => self.run(block, desk),
            Teach::Finish => self.to_end = true,
            Teach::Light(block) => self.light(block, desk),
            // The application opens other parts of the window.
            Teach::Part(..) | Teach::Summary(_) => {}
            Teach::Predict(block, answer) => self.with(|play| play.predict(block, answer)),
            Teach::Choose(block, option) => self.with(|play| {
                play.choose(block, option);
            }),
            Teach::Hint(block) => self.with(|play| play.hint(block)),
        }
        self.remember();
    }

    fn with(&mut self, act: impl FnOnce(&mut Play)) {
        if let Some(play) = &mut self.play {
            act(play);
        }
    }

    /// Opens a lesson where its reader was.
    pub(in crate::ui) fn start(&mut self, id: &str) {
        let Some(lesson) = self.course.lesson(id) else {
            return;
        };
        let progress = self.record.lessons.get(id).cloned().unwrap_or_default();
        let mut play = Play::new(lesson.clone(), progress);
        stage::restore(&mut play);
        self.play = Some(play);
        self.open = true;
        self.forget_page();
        self.staged = None;
    }

    /// A lesson at a page, with the run that is loaded already; none closes the one that is read. Whether it is known.
    pub(in crate::ui) fn resume(&mut self, at: Option<(String, usize)>) -> bool {
        self.remember();
        self.play = None;
        let Some((id, page)) = at else {
            self.open = false;
            return true;
        };
        self.start(&id);
        let Some(play) = &mut self.play else {
            return false;
        };
        play.go_to(page);
        self.staged = play.setup().map(|setup| setup.name.clone());
        true
    }

    fn leave(&mut self, desk: &mut Desk<'_>) {
        self.remember();
        self.play = None;
        self.forget_page();
        self.staged = None;
        self.fold(false, desk.view);
        desk.kept.clear();
    }

    fn turn(&mut self, desk: &mut Desk<'_>, act: impl FnOnce(&mut Play) -> bool) {
        if self.play.as_mut().is_some_and(act) {
            self.forget_page();
            self.staged = None;
            desk.kept.clear();
            desk.pane.attention.clear();
        }
    }

    fn forget_page(&mut self) {
        self.drafts.clear();
        self.running = None;
        self.to_end = false;
        self.lit = 0;
    }

    /// Keeps the progress, if it has changed.
    fn remember(&mut self) {
        let Some(play) = &self.play else {
            return;
        };
        let id = &play.lesson().id;
        if self.record.lessons.get(id) != Some(play.progress()) {
            self.record
                .lessons
                .insert(id.clone(), play.progress().clone());
            self.write();
        }
    }

    fn write(&self) {
        if let Some(store) = &self.store {
            keep::write(store, &self.record);
        }
    }

    /// What was done so far, as a page with pictures.
    pub(in crate::ui) fn summary(&self, pictures: &[Picture]) -> String {
        summary::html(&self.course, &self.record.lessons, pictures)
    }

    /// What came of a summary.
    pub(in crate::ui) fn summarised(&mut self, outcome: Result<String, String>) {
        self.summary.1 = Some(outcome);
    }

    /// The schedules that were built in earlier starts.
    pub(in crate::ui) fn built(&self) -> &Built {
        &self.record.built
    }

    /// Keeps what was built, if it has changed.
    pub(in crate::ui) fn remember_built(&mut self, built: &Built) {
        if self.record.built != *built {
            self.record.built = built.clone();
            self.write();
        }
    }

    /// The lessons that come with the program, in another language; what was done in them stays.
    pub(in crate::ui) fn speak(&mut self, language: Language) {
        if self.files.is_none() {
            self.teach(Course::bundled(language));
        }
    }

    /// Other texts of the lessons, also of the one that is read.
    fn teach(&mut self, course: Course) {
        self.course = course;
        let read = self.play.as_ref();
        let again = read.and_then(|play| self.course.lesson(&play.lesson().id));
        let again = again.cloned();
        if let Some((play, lesson)) = self.play.as_mut().zip(again)
            && *play.lesson() != lesson
        {
            play.reload(lesson);
            stage::restore(play);
            self.forget_page();
            self.staged = None;
        }
    }

    /// Reads lessons again that were saved.
    fn poll(&mut self, ctx: &Context) {
        let Some((files, wrong)) = &mut self.files else {
            return;
        };
        let now = ctx.input(|input| input.time);
        let due = self
            .polled
            .is_none_or(|polled| now - polled >= POLL.as_secs_f64());
        if due {
            self.polled = Some(now);
            match files.poll() {
                None => {}
                Some(Ok(course)) => {
                    *wrong = None;
                    self.teach(course);
                }
                Some(Err(error)) => *wrong = Some(error.to_string()),
            }
        }
        ctx.request_repaint_after(POLL);
    }
}

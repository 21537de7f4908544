//! What the application does for lessons: the classroom beside the run, the parts of the window that a lesson opens, class kits.

use std::path::Path;

use eframe::egui::{self, Context, Frame, Margin, RichText, Ui};

use super::App;
use crate::export::{self, Fonts, Kit};
use crate::lesson::Part;
use crate::lesson::build;
use crate::scene::fonts::Weight as FontWeight;
use crate::scene::split::Topic;
use crate::scene::tokens::Theme;
use crate::ui::builder::Build;
use crate::ui::export_panel::scene;
use crate::ui::lesson::{self, Classroom, Desk, Teach};
use crate::ui::options::Options;
use crate::ui::theme;
use crate::ui::view::{Middle, TextSize, View};
use crate::ui::wish::{Direction, Travel, Wish};

impl App {
    /// The lesson that is read, its page, and how many it has.
    pub fn lesson(&self) -> Option<(&str, usize, usize)> {
        self.classroom.at()
    }

    /// A page of the lesson that is read, else a training step.
    pub(super) fn turn(&mut self, direction: Direction, ctx: &Context) {
        let wish = match (self.classroom.reads(), direction) {
            (true, Direction::Up) => Wish::Teach(Teach::Forward),
            (true, Direction::Down) => Wish::Teach(Teach::Back),
            (false, Direction::Up) => Wish::Travel(Travel::StepForward),
            (false, Direction::Down) => Wish::Travel(Travel::StepBack),
        };
        self.grant(wish, ctx);
    }

    /// Does something with the classroom and all that a lesson works with.
    pub(super) fn with_classroom(&mut self, act: impl FnOnce(&mut Classroom, &mut Desk<'_>)) {
        let mut desk = Desk {
            run: &mut self.run,
            view: &mut self.view,
            pane: &mut self.pane,
            kept: &mut self.kept,
        };
        act(&mut self.classroom, &mut desk);
    }

    /// Opens what a lesson points to.
    pub(super) fn open_part(&mut self, part: Part, at: Option<&str>) {
        self.view.middle = match part {
            Part::Layouts => Middle::Sweep,
            Part::Guide => Middle::Guide,
            Part::Builder => Middle::Builder,
            Part::Matrices => Middle::Split,
        };
        if part == Part::Builder
            && let Some(level) = at.and_then(build::level_named)
        {
            self.build(Build::Level(level));
        }
        if part == Part::Matrices
            && let Some(topic) = at.and_then(Topic::from_name)
        {
            self.split.turn_to(topic);
        }
    }

    /// Writes a page of what was done in lessons, with the timeline that is shown.
    pub(super) fn summarise(&mut self, path: &str) {
        let theme = Theme::Light;
        let arrows = self.pane.timeline.arrows();
        let pictures: Vec<(String, String)> = self
            .shown()
            .map(|shown| {
                let title = shown.timeline.report.config.layout_line();
                (
                    title,
                    export::svg(&scene(&shown, theme, arrows), Fonts::Named),
                )
            })
            .into_iter()
            .collect();
        let page = self.classroom.summary(&pictures);
        let written = export::write_text(Path::new(path), &page);
        let told = written.map(|()| format!("Saved to {path}"));
        self.classroom
            .summarised(told.map_err(|error| error.to_string()));
    }

    /// What a class kit of this window restores.
    pub fn kit(&self) -> Kit {
        let lesson = self.classroom.at();
        Kit {
            config: self.run.config().clone(),
            lesson: lesson.map(|(id, page, _)| (id.to_owned(), page)),
            hide_controls: self.view.controls_folded,
            presenter: self.view.text == TextSize::Presenter,
            theme: self.view.theme,
        }
    }

    pub(super) fn copy_kit(&mut self, ctx: &Context) {
        let line = self.kit().line();
        if let Ok(line) = &line {
            ctx.copy_text(line.clone());
        }
        let told = line.map(|line| format!("Copied: one line of {} letters", line.len()));
        self.export.heard(told.map_err(|error| error.to_string()));
    }

    pub(super) fn load_kit(&mut self, line: &str) {
        match Kit::from_line_or_file(line.trim()) {
            Err(error) => self.export.heard(Err(error.to_string())),
            Ok(kit) => {
                if !self.run.load(kit.config) {
                    self.export.heard(Err(
                        "The run of this kit was refused; the controls say why".to_owned()
                    ));
                    return;
                }
                self.view.theme = kit.theme;
                self.view.text = if kit.presenter {
                    TextSize::Presenter
                } else {
                    TextSize::Desk
                };
                self.view.controls_folded = kit.hide_controls;
                self.view.middle = Middle::Timeline;
                self.kept.clear();
                let known = self.classroom.resume(kit.lesson);
                self.export.heard(if known {
                    Ok("Restored".to_owned())
                } else {
                    Err("The run is restored, but there is no such lesson here".to_owned())
                });
            }
        }
    }

    /// The lessons, at the right.
    pub(super) fn lay_out_lesson(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        if !self.classroom.is_open() {
            return;
        }
        let em = self.view.sizes().body;
        let side = Frame::new()
            .fill(theme::color(self.view.palette().panel))
            .inner_margin(Margin::symmetric((em * 0.9) as i8, (em * 0.5) as i8));
        let width = lesson::width(&self.view, ui.ctx().content_rect().width());
        egui::Panel::right("lessons")
            .exact_size(width)
            .resizable(false)
            .frame(side)
            .show(ui, |ui| {
                lesson::show(ui, &mut self.classroom, (&self.run, &self.view), wishes);
            });
    }
}

/// The lessons that the window starts with.
pub(super) fn classroom(options: &Options) -> Classroom {
    let mut classroom = Classroom::new(
        options.language,
        options.lessons.as_ref(),
        options.progress.clone(),
    );
    match (&options.lesson, options.page) {
        (Some(id), None) => classroom.start(id),
        (Some(id), Some(page)) => {
            classroom.resume(Some((id.clone(), page)));
        }
        (None, _) => {}
    }
    classroom
}

/// What stands in the timeline's place while it is still to be predicted.
pub(super) fn cover(ui: &mut Ui, view: &View) {
    let palette = view.palette();
    let text = RichText::new("Covered until you have predicted and run it")
        .font(theme::font(view.sizes().title(), FontWeight::SemiBold))
        .color(theme::color(palette.text_weak));
    ui.centered_and_justified(|ui| ui.label(text));
}

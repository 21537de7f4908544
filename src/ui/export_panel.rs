//! Saving the picture or the trace, over the window: a path, a button, and what came of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eframe::egui::{Button, ColorImage, Context, Id, Key, Modal, RichText, TextEdit, Ui};

use crate::export::{Drawing, Export, ExportError, Format, rgba, write, write_picture};
use crate::scene::fonts::Weight;
use crate::scene::tokens::Theme;
use crate::scene::{Arrows, Comparison, Picture, Scene};
use crate::session::{Report, StepRecord, Timeline};
use crate::trace::Trace;

use super::theme::{color, font};
use super::view::View;
use super::wish::{Show, Wish};

/// The endings that can be written, with what they are.
const ENDINGS: [(&str, &str); 9] = [
    ("png", "picture"),
    ("svg", "picture for the web"),
    ("pdf", "picture for print"),
    ("gif", "picture that moves as the timeline comes about"),
    ("apng", "the same in all its colours"),
    ("json", "trace for Perfetto and Chrome"),
    ("json.gz", "the same trace, packed"),
    ("pftrace", "trace in Perfetto's own format"),
    ("csv", "table of spans"),
];

/// Writes what is shown to a file.
pub(super) type Write<'a> = &'a dyn Fn(&Path) -> Result<(), ExportError>;

/// The form.
#[derive(Clone, Debug)]
pub(super) struct ExportPanel {
    path: String,
    theme: Option<Theme>,
    scale: Option<f32>,
    outcome: Option<Result<String, String>>,
    /// A class kit that was pasted.
    kit: String,
}

/// How large pictures in pixels are.
const SCALES: [(Option<f32>, &str); 3] = [
    (None, "as usual"),
    (Some(3.0), "4K: 3840 pixels wide"),
    (Some(1.0), "small: 1280 pixels wide"),
];

impl Default for ExportPanel {
    fn default() -> Self {
        Self {
            path: "shardscope.png".to_owned(),
            theme: None,
            scale: None,
            outcome: None,
            kit: String::new(),
        }
    }
}

impl ExportPanel {
    /// One line of text that restores all of it, to be copied or pasted.
    fn kit(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        ui.separator();
        ui.label(RichText::new("Class kit").font(font(view.sizes().body, Weight::SemiBold)));
        ui.label("One line of text that restores layout, seed, lesson, page and hidden controls");
        ui.horizontal(|ui| {
            let copy = ui.button("Copy class kit");
            let hint = "Paste it into a mail or a course page; shardscope --kit LINE opens it";
            if copy.on_hover_text(hint).clicked() {
                wishes.push(Wish::CopyKit);
            }
            let field = TextEdit::singleline(&mut self.kit)
                .hint_text("paste a kit here")
                .desired_width(ui.available_width() - view.sizes().body * 5.0);
            ui.add(field).accessible_name("Class kit to load");
            if ui.button("Load").clicked() {
                wishes.push(Wish::LoadKit(self.kit.clone()));
            }
        });
    }

    /// What came of a kit.
    pub(super) fn heard(&mut self, outcome: Result<String, String>) {
        self.outcome = Some(outcome);
    }

    /// Shows the form.
    pub(super) fn show(&mut self, ui: &Ui, view: &View, wishes: &mut Vec<Wish>) {
        let sizes = view.sizes();
        let modal = Modal::new(Id::unique("export")).show(ui.ctx(), |ui| {
            ui.set_width(sizes.body * 32.0);
            ui.label(RichText::new("Export").font(font(sizes.title(), Weight::SemiBold)));
            ui.label("Saves the timeline that is shown. The ending says as what");
            self.formats(ui);
            let label = ui.label("File");
            let field = TextEdit::singleline(&mut self.path).desired_width(f32::INFINITY);
            let field = ui.add(field).labelled_by(label.id);
            let entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            self.look(ui);
            ui.horizontal(|ui| {
                if ui.button("Save").clicked() || entered {
                    wishes.push(Wish::Save);
                }
                let copy = ui.button("Copy picture");
                if copy
                    .on_hover_text("To the clipboard, for a slide")
                    .clicked()
                {
                    wishes.push(Wish::Copy);
                }
                if ui.button("Close").clicked() {
                    wishes.push(Wish::Show(Show::Export));
                }
            });
            self.kit(ui, view, wishes);
            self.say(ui, view);
        });
        let escaped = ui.input(|input| input.key_pressed(Key::Escape));
        if modal.backdrop_response.clicked() || escaped {
            wishes.push(Wish::Show(Show::Export));
        }
    }

    /// A button for each ending.
    fn formats(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            for (ending, what) in ENDINGS {
                let on = self.path.ends_with(&format!(".{ending}"));
                let button = Button::selectable(on, format!(".{ending}"));
                let response = ui.add(button).on_hover_text(what);
                if response.clicked() {
                    self.path = with_ending(&self.path, ending);
                    self.outcome = None;
                }
            }
        });
    }

    /// Colours and size of pictures.
    fn look(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            ui.label("Colours");
            let themes = [(None, "the window's")];
            let named = Theme::ALL.map(|theme| (Some(theme), theme.name()));
            for (theme, name) in themes.into_iter().chain(named) {
                let hint = match theme {
                    Some(Theme::Paper) => "Pale, for print: told apart without colour too",
                    Some(_) | None => "Safe for the colour-blind",
                };
                let button = Button::selectable(self.theme == theme, name);
                if ui.add(button).on_hover_text(hint).clicked() {
                    self.theme = theme;
                }
            }
        });
        ui.horizontal_wrapped(|ui| {
            ui.label("Size");
            for (scale, name) in SCALES {
                if ui
                    .add(Button::selectable(self.scale == scale, name))
                    .clicked()
                {
                    self.scale = scale;
                }
            }
        });
    }

    /// The colours of pictures in a window of `theme`.
    pub(super) fn theme(&self, theme: Theme) -> Theme {
        self.theme.unwrap_or(theme)
    }

    /// How pictures in pixels are made.
    pub(super) fn drawing(&self) -> Drawing {
        Drawing {
            scale: self.scale,
            ..Drawing::default()
        }
    }

    /// Puts a picture on the clipboard, and says so.
    pub(super) fn copy(&mut self, ctx: &Context, scene: Option<&Scene>) {
        let Some(scene) = scene else {
            self.save(None);
            return;
        };
        self.outcome = Some(match rgba(scene, self.scale.unwrap_or(2.0)) {
            Ok((size, bytes)) => {
                ctx.copy_image(ColorImage::from_rgba_premultiplied(size, &bytes));
                Ok(format!("Copied {} × {} pixels", size[0], size[1]))
            }
            Err(error) => Err(error.to_string()),
        });
    }

    fn say(&self, ui: &mut Ui, view: &View) {
        let (text, tint) = match &self.outcome {
            None => return,
            Some(Ok(text)) => (text, view.palette().success),
            Some(Err(text)) => (text, view.palette().error),
        };
        ui.label(RichText::new(text).color(color(tint)));
    }

    /// Writes the file, and remembers what came of it; nothing can be written while there is no timeline.
    pub(super) fn save(&mut self, write: Option<Write<'_>>) {
        let Some(write) = write else {
            self.outcome = Some(Err(
                "The timeline is not ready yet; try again in a moment.".to_owned()
            ));
            return;
        };
        let path = PathBuf::from(self.path.trim());
        self.outcome = Some(match write(&path) {
            Ok(()) => {
                let shown = path.canonicalize().unwrap_or(path);
                Ok(format!("Saved {}", shown.display()))
            }
            Err(error) => Err(error.to_string()),
        });
    }
}

/// What is shown: a step's timeline, and all steps up to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) steps: &'a [Arc<StepRecord>],
    /// What it is compared with.
    pub(super) kept: &'a [Arc<Timeline>],
}

/// `path` with another of the endings.
fn with_ending(path: &str, ending: &str) -> String {
    let stem = ENDINGS
        .iter()
        .filter_map(|(known, _)| path.strip_suffix(&format!(".{known}")))
        .min_by_key(|stem| stem.len());
    match stem {
        Some(stem) => format!("{stem}.{ending}"),
        None => PathBuf::from(path)
            .with_extension(ending)
            .to_string_lossy()
            .into_owned(),
    }
}

/// Writes what is shown.
pub(super) fn save(
    shown: &Shown<'_>,
    path: &Path,
    (theme, arrows): (Theme, Arrows),
    drawing: Drawing,
) -> Result<(), ExportError> {
    let step = shown.timeline;
    if !shown.kept.is_empty() && Format::from_path(path)?.is_picture() {
        return save_comparison(shown, path, (theme, drawing));
    }
    let picture = picture(step, theme, arrows);
    let steps = shown.steps.iter().map(|record| record.report());
    let report = Report {
        steps: steps.collect(),
        ..step.report.clone()
    };
    let report = serde_json::to_value(&report).unwrap_or_default();
    write(
        path,
        &Export {
            trace: &step.trace,
            picture: &picture,
            report: &report,
            drawing,
        },
    )
}

/// All timelines on one axis, as they are shown.
fn save_comparison(
    shown: &Shown<'_>,
    path: &Path,
    (theme, drawing): (Theme, Drawing),
) -> Result<(), ExportError> {
    let (scene, title) = compared(shown, theme);
    write_picture(path, &scene, (&title, drawing.scale))
}

fn compared(shown: &Shown<'_>, theme: Theme) -> (Scene, String) {
    let kept = shown.kept.iter().map(Arc::as_ref);
    let all: Vec<&Timeline> = kept.chain([shown.timeline]).collect();
    let reports: Vec<&Report> = all.iter().map(|step| &step.report).collect();
    let traces: Vec<&Trace> = all.iter().map(|step| step.trace.as_ref()).collect();
    let comparison = Comparison {
        theme,
        ..crate::export::comparison(&reports)
    };
    (comparison.scene(&traces), comparison.title)
}

/// What is shown, as a picture.
pub(super) fn scene(shown: &Shown<'_>, theme: Theme, arrows: Arrows) -> Scene {
    if shown.kept.is_empty() {
        picture(shown.timeline, theme, arrows).scene(&shown.timeline.trace)
    } else {
        compared(shown, theme).0
    }
}

/// The picture of a step: the command line's, in the window's colours.
fn picture(step: &Timeline, theme: Theme, arrows: Arrows) -> Picture {
    Picture {
        theme,
        arrows: arrows == Arrows::Shown,
        ..crate::export::picture(&step.report)
    }
}

#[cfg(test)]
mod tests {
    use super::with_ending;

    #[test]
    fn an_ending_takes_the_place_of_the_one_before() {
        assert_eq!(with_ending("a.png", "json.gz"), "a.json.gz");
        assert_eq!(with_ending("a.json.gz", "pdf"), "a.pdf");
        assert_eq!(with_ending("run.2/b.tar", "csv"), "run.2/b.csv");
        assert_eq!(with_ending("c", "svg"), "c.svg");
    }
}

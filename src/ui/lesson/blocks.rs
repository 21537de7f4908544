//! The blocks of a page: prose, predictions, runs, lights, quizzes, tasks.

use eframe::egui::{Button, Frame, Key, Margin, RichText, Slider, Stroke, TextEdit, Ui};
use egui_commonmark::CommonMarkViewer;

use super::stage::source;
use super::{Classroom, Teach, outcome};
use crate::lesson::expr::Formula;
use crate::lesson::figures::Style;
use crate::lesson::{
    Answer, Answered, Block, Content, Light, Number, Open, Phase, Play, Predict, Quiz, Task, Text,
};
use crate::scene::fonts::Weight;
use crate::ui::run::Run;
use crate::ui::theme::{color, font};
use crate::ui::view::View;
use crate::ui::wish::Wish;
use crate::words::say;

/// What all blocks are shown with.
struct Reader<'a> {
    play: &'a Play,
    run: &'a Run,
    view: &'a View,
    /// The block's place on its page.
    block: usize,
}

/// Shows what is seen of the page.
pub(super) fn show(
    ui: &mut Ui,
    classroom: &mut Classroom,
    (run, view): (&Run, &View),
    wishes: &mut Vec<Wish>,
) {
    let Some(play) = classroom.play.take() else {
        return;
    };
    let title =
        RichText::new(&play.page().title).font(font(view.sizes().body * 1.15, Weight::SemiBold));
    ui.label(title);
    for (index, block) in play.seen() {
        let reader = Reader {
            play: &play,
            run,
            view,
            block: index,
        };
        ui.push_id(index, |ui| reader.show(ui, classroom, block, wishes));
        ui.add_space(view.sizes().gap() * 0.6);
    }
    classroom.play = Some(play);
}

impl Reader<'_> {
    fn show(&self, ui: &mut Ui, classroom: &mut Classroom, block: &Block, wishes: &mut Vec<Wish>) {
        match &block.content {
            Content::Text(text) => self.prose(ui, classroom, text),
            Content::Setup(_) => {}
            Content::Predict(predict) => self.framed(ui, say!(self.view, "Predict"), |ui| {
                self.predict(ui, classroom, predict, wishes);
            }),
            Content::Run(run) => {
                let words = run.button.as_deref().unwrap_or(say!(ui, "Run it"));
                self.run(ui, classroom, words, wishes);
            }
            Content::Light(light) => self.light(ui, *light, wishes),
            Content::Quiz(quiz) => {
                self.framed(ui, say!(self.view, "Check"), |ui| {
                    self.quiz(ui, classroom, quiz, wishes);
                });
            }
            Content::Task(task) => {
                self.framed(ui, say!(self.view, "Task"), |ui| {
                    self.task(ui, classroom, task, wishes);
                });
            }
            Content::Open(open) => Self::open(ui, open, wishes),
        }
    }

    fn framed(&self, ui: &mut Ui, title: &str, contents: impl FnOnce(&mut Ui)) {
        let (palette, sizes) = (self.view.palette(), self.view.sizes());
        Frame::new()
            .fill(color(palette.track))
            .stroke(Stroke::new(1.0, color(palette.divider)))
            .corner_radius(sizes.panel_radius())
            .inner_margin(Margin::same((sizes.body * 0.7) as i8))
            .show(ui, |ui| {
                ui.set_width(ui.available_width());
                // Rings of options that nobody has chosen are to be seen from afar.
                ui.visuals_mut().widgets.inactive.bg_stroke =
                    Stroke::new(1.0, color(palette.text_weak));
                let title = RichText::new(title).font(font(sizes.small(), Weight::SemiBold));
                ui.label(title.color(color(palette.accent)));
                contents(ui);
            });
    }

    fn prose(&self, ui: &mut Ui, classroom: &mut Classroom, text: &Text) {
        let filled = self.play.filled(self.block, text);
        self.markdown(ui, classroom, &filled);
    }

    fn markdown(&self, ui: &mut Ui, classroom: &mut Classroom, text: &str) {
        // What is only shown stands in a frame of its own: the viewer's has a sign that the program's fonts lack.
        for (place, part) in text.split("```").enumerate() {
            if place % 2 == 1 {
                let code = part.split_once('\n').map_or(part, |(_, code)| code);
                self.code(ui, code.trim_end());
            } else if !part.trim().is_empty() {
                ui.push_id((place, part.len()), |ui| {
                    // Egui's strong text is a colour, not a weight.
                    let strong = color(self.view.palette().accent);
                    ui.visuals_mut().widgets.active.fg_stroke.color = strong;
                    CommonMarkViewer::new().show(ui, &mut classroom.text.0, part);
                });
            }
        }
    }

    fn code(&self, ui: &mut Ui, code: &str) {
        let frame = Frame::new()
            .fill(color(self.view.palette().background))
            .corner_radius(self.view.sizes().panel_radius())
            .inner_margin(Margin::same((self.view.sizes().body * 0.5) as i8));
        frame.show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.label(RichText::new(code).monospace());
        });
    }

    fn predict(
        &self,
        ui: &mut Ui,
        classroom: &mut Classroom,
        predict: &Predict,
        wishes: &mut Vec<Wish>,
    ) {
        self.prose(ui, classroom, &predict.ask);
        match self.play.predicted(self.block) {
            None => {
                let answer = match &predict.answer {
                    Answer::Choice(choices) => {
                        let texts: Vec<String> = choices
                            .iter()
                            .map(|choice| self.play.filled(self.block, &choice.text))
                            .collect();
                        self.choose(ui, classroom, &texts)
                    }
                    Answer::Number(number) => self.number(ui, classroom, number),
                };
                if let Some(answer) = answer {
                    wishes.push(Wish::Teach(Teach::Predict(self.block, answer)));
                }
                self.hints(ui, classroom, &predict.hints, wishes);
            }
            Some(answered) => {
                outcome::show(ui, (self.play, self.view), (self.block, predict), answered);
                if let Some(verdict) = self.play.verdict(self.block, predict) {
                    if let Some(because) = &verdict.because {
                        self.prose(ui, classroom, because);
                    }
                    self.prose(ui, classroom, &predict.why);
                }
            }
        }
    }

    /// Options of a prediction; the one that is committed.
    fn choose(&self, ui: &mut Ui, classroom: &mut Classroom, texts: &[String]) -> Option<Answered> {
        let draft = classroom.drafts.entry(self.block).or_default();
        for (index, text) in texts.iter().enumerate() {
            if ui.radio(draft.choice == Some(index), plain(text)).clicked() {
                draft.choice = Some(index);
            }
        }
        let choice = draft.choice;
        let commit = ui.add_enabled(choice.is_some(), Button::new(say!(ui, "Commit")));
        let commit = commit.on_disabled_hover_text(say!(ui, "Choose one first"));
        commit
            .clicked()
            .then_some(choice)
            .flatten()
            .map(Answered::Choice)
    }

    /// A number to be typed, or a bar to be drawn; the one that is committed.
    fn number(&self, ui: &mut Ui, classroom: &mut Classroom, number: &Number) -> Option<Answered> {
        let draft = classroom.drafts.entry(self.block).or_default();
        if let Some(most) = number.bar {
            outcome::bar(ui, self.view, (draft.bar / most) as f32);
            let style = number.style;
            let slider = Slider::new(&mut draft.bar, 0.0..=most)
                .step_by(most / 200.0)
                .custom_formatter(move |value, _| style.write(value))
                .custom_parser(move |text| typed(text, style).ok());
            ui.spacing_mut().slider_width = ui.available_width() * 0.6;
            ui.add(slider)
                .accessible_name("Your prediction")
                .on_hover_text(say!(ui, "Draw the bar as long as you think it is"));
            let guess = draft.bar;
            return ui
                .button(say!(ui, "Commit"))
                .clicked()
                .then_some(Answered::Number(guess));
        }
        let commit = ui
            .horizontal(|ui| {
                let width = self.view.sizes().body * 8.0;
                let field = TextEdit::singleline(&mut draft.text)
                    .desired_width(width)
                    .hint_text(unit(number.style));
                let field = ui.add(field).accessible_name("Your prediction");
                let entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
                ui.label(RichText::new(unit(number.style)).weak());
                ui.button(say!(ui, "Commit")).clicked() || entered
            })
            .inner;
        if let Some(wrong) = &draft.wrong {
            ui.label(RichText::new(wrong).color(color(self.view.palette().error)));
        }
        if !commit {
            return None;
        }
        match typed(&draft.text, number.style) {
            Ok(guess) => Some(Answered::Number(guess)),
            Err(why) => {
                draft.wrong = Some(why);
                None
            }
        }
    }

    fn run(&self, ui: &mut Ui, classroom: &Classroom, words: &str, wishes: &mut Vec<Wish>) {
        let (palette, sizes) = (self.view.palette(), self.view.sizes());
        if classroom.is_running(self.block) {
            ui.horizontal(|ui| {
                ui.label(
                    RichText::new(say!(ui, "Running: watch the timelines"))
                        .color(color(palette.accent)),
                );
                if ui.button(say!(ui, "To its end")).clicked() {
                    wishes.push(Wish::Teach(Teach::Finish));
                }
            });
            return;
        }
        let made = self.play.is_made(self.block);
        let words = if made {
            say!(ui, "{words} again", words)
        } else {
            words.to_owned()
        };
        let text = RichText::new(words).font(font(sizes.body, Weight::SemiBold));
        if ui.add(Button::new(text).selected(!made)).clicked() {
            wishes.push(Wish::Teach(Teach::Run(self.block)));
        }
    }

    fn light(&self, ui: &mut Ui, light: Light, wishes: &mut Vec<Wish>) {
        let text = format!("Lit: {}", lit(light));
        if ui
            .button(RichText::new(text).small())
            .on_hover_text(say!(ui, "Light it again"))
            .clicked()
        {
            wishes.push(Wish::Teach(Teach::Light(self.block)));
        }
    }

    fn quiz(&self, ui: &mut Ui, classroom: &mut Classroom, quiz: &Quiz, wishes: &mut Vec<Wish>) {
        self.prose(ui, classroom, &quiz.ask);
        let chosen = self.play.chosen(self.block).to_vec();
        for (index, choice) in quiz.choices.iter().enumerate() {
            let text = plain(&self.play.filled(self.block, &choice.text));
            let tried = chosen.contains(&index);
            let sign = match (tried, choice.right) {
                (false, _) => "",
                (true, true) => "✓ ",
                (true, false) => "✗ ",
            };
            if ui.radio(tried, format!("{sign}{text}")).clicked() {
                wishes.push(Wish::Teach(Teach::Choose(self.block, index)));
            }
            if tried {
                self.verdict(ui, choice.right);
                self.prose(ui, classroom, &choice.because);
            }
        }
        let right = chosen
            .iter()
            .any(|index| quiz.choices.get(*index).is_some_and(|choice| choice.right));
        if !right && !quiz.hints.is_empty() {
            self.hints(ui, classroom, &quiz.hints, wishes);
        }
    }

    fn verdict(&self, ui: &mut Ui, right: bool) {
        let palette = self.view.palette();
        let (text, tint) = if right {
            (say!(self.view, "Right."), palette.accent)
        } else {
            (say!(self.view, "Not so."), palette.error)
        };
        ui.label(
            RichText::new(text)
                .font(font(self.view.sizes().body, Weight::SemiBold))
                .color(color(tint)),
        );
    }

    fn task(&self, ui: &mut Ui, classroom: &mut Classroom, task: &Task, wishes: &mut Vec<Wish>) {
        self.prose(ui, classroom, &task.ask);
        let palette = self.view.palette();
        // While another layout is prepared, figures are of the one before.
        if let Some(timeline) = self.run.timeline_of(0).filter(|_| !self.run.is_behind()) {
            let now = source(self.run, timeline);
            for (part, reached) in self.play.parts(task, now) {
                let (sign, tint) = if reached {
                    ("✓", palette.accent)
                } else {
                    ("○", palette.text_weak)
                };
                let value = value_now(&part, now);
                ui.label(
                    RichText::new(format!("{sign} {}{value}", readable(&part))).color(color(tint)),
                );
            }
        }
        if self.play.is_reached(self.block) {
            let text = RichText::new(say!(self.view, "Reached."))
                .font(font(self.view.sizes().body, Weight::SemiBold));
            ui.label(text.color(color(palette.accent)));
            self.prose(ui, classroom, &task.why);
        } else {
            self.hints(ui, classroom, &task.hints, wishes);
        }
        if ui
            .button(RichText::new(say!(ui, "Back to the start of the task")).small())
            .clicked()
        {
            wishes.push(Wish::Teach(Teach::SetUp(self.block)));
        }
    }

    fn hints(
        &self,
        ui: &mut Ui,
        classroom: &mut Classroom,
        hints: &[Text],
        wishes: &mut Vec<Wish>,
    ) {
        let given = self.play.hints(self.block).min(hints.len());
        for hint in &hints[..given] {
            self.prose(ui, classroom, hint);
        }
        if given < hints.len() {
            let text = say!(
                ui,
                "Hint {n} of {count}",
                n = given + 1,
                count = hints.len()
            );
            if ui.button(RichText::new(text).small()).clicked() {
                wishes.push(Wish::Teach(Teach::Hint(self.block)));
            }
        }
    }

    fn open(ui: &mut Ui, open: &Open, wishes: &mut Vec<Wish>) {
        if ui.button(&open.button).clicked() {
            wishes.push(Wish::Teach(Teach::Part(open.what, open.at.clone())));
        }
    }
}

/// Markdown's marks taken off, where only plain text can stand.
fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

/// `bubble_of_total < 10 %` in words that stand on the screen elsewhere.
fn readable(part: &str) -> String {
    part.replace('_', " ")
}

/// What the figure of a goal is now.
fn value_now(part: &str, now: crate::lesson::figures::Source<'_>) -> String {
    let Ok(formula) = Formula::parse(part) else {
        return String::new();
    };
    let asked = formula.asked();
    let Some(first) = asked.first().filter(|asked| asked.run.is_none()) else {
        return String::new();
    };
    let Ok(figure) = Formula::parse(&first.to_string()) else {
        return String::new();
    };
    let value = figure.value(&|asked| now.figure(asked));
    let style = Style::of(&figure);
    value.map_or_else(
        |_unknown| String::new(),
        |value| format!("  (now {})", style.write(value)),
    )
}

/// What is typed where no unit is given.
fn unit(style: Style) -> &'static str {
    match style {
        Style::Percent => "%",
        Style::Bytes => "MiB",
        Style::Time => "ms",
        Style::Plain | Style::Whole => "",
    }
}

/// A number as it was typed: a formula, with a unit or without.
fn typed(text: &str, style: Style) -> Result<f64, String> {
    let text = plain_number(text.trim());
    // A fraction is a share as it stands: 3/11.
    let share = style == Style::Percent && text.contains('/');
    let bare = !share && text.chars().all(|c| !c.is_alphabetic() && c != '%');
    let text = match unit(style) {
        unit if bare && !text.is_empty() && !unit.is_empty() => format!("({text}) * 1 {unit}"),
        _ => text,
    };
    let formula = Formula::parse(&text)?;
    let value = formula.value(&|_| None);
    let value = value.map_err(|asked| format!("{asked} is no number"))?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err("that is no number".to_owned())
    }
}

/// Thousands without the commas or spaces between them, and a decimal comma as a point.
fn plain_number(text: &str) -> String {
    let digits = |part: &str| part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.split([',', ' ']);
    let first = parts.next().unwrap_or_default();
    let number =
        !first.is_empty() && first.len() <= 3 && first.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<&str> = parts.collect();
    if number && !rest.is_empty() && rest.iter().all(|part| digits(part)) {
        return text.replace([',', ' '], "");
    }
    text.replace(',', ".")
}

/// What a light is on, in words.
fn lit(light: Light) -> String {
    let of = |what: &str| match light.rank {
        Some(rank) => format!("{what} of GPU {rank}"),
        None => what.to_owned(),
    };
    if light.bubble {
        return of("the longest bubble");
    }
    match (light.micro_batch, light.phase, light.rank) {
        (Some(batch), ..) => of(&format!("micro-batch {batch}")),
        (None, Some(Phase::WarmUp), _) => "the warm-up".to_owned(),
        (None, Some(Phase::Steady), _) => "the steady state".to_owned(),
        (None, Some(Phase::CoolDown), _) => "the cool-down".to_owned(),
        (None, None, Some(rank)) => format!("GPU {rank} and its groups"),
        (None, None, None) => "all of it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_meant() {
        for (text, style, wanted) in [
            ("27", Style::Percent, 0.27),
            ("27 %", Style::Percent, 0.27),
            ("27,5", Style::Percent, 0.275),
            ("3/11", Style::Percent, 3.0 / 11.0),
            ("2", Style::Bytes, 2_097_152.0),
            ("2 KiB", Style::Bytes, 2048.0),
            ("5", Style::Plain, 5.0),
            ("1,024", Style::Plain, 1024.0),
            ("50 000", Style::Plain, 50_000.0),
            ("1,5", Style::Plain, 1.5),
            ("2*3", Style::Bytes, 6_291_456.0),
            ("-5", Style::Percent, -0.05),
        ] {
            assert!(
                (typed(text, style).unwrap() - wanted).abs() < 1e-9,
                "{text}"
            );
        }
        for text in ["", "x", "1/0", "%"] {
            assert!(typed(text, Style::Percent).is_err(), "{text}");
        }
    }
}

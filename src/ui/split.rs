//! The inside of a layer in place of the timeline: its matrices cut over GPUs, step by step.

use std::sync::Arc;

use eframe::egui::{
    Align, Button, Context, Layout, Rect, RichText, Role, Sense, Slider, Ui, WidgetInfo, vec2,
};

use crate::scene::fonts::Weight as FontWeight;
use crate::scene::split::{Choice, Moment, Refusal, Step, Story, Topic, Way, scene};
use crate::scene::tokens::{Sizes, Theme};
use crate::scene::{Look as SceneLook, Size};

use super::icon::{Icon, Weight, keyed_button};
use super::paint::Painted;
use super::theme::{color, font};
use super::view::{Middle, View};
use super::wish::{Direction, Show, Travel, Wish};

/// Seconds for an entry to be computed, and for what moves or is only read.
const ENTRY: f32 = 0.3;
const MOVE: f32 = 2.5;
const READ: f32 = 5.0;
/// No computation takes longer, however many entries it has, nor less.
const WORK: std::ops::RangeInclusive<f32> = 2.0..=6.0;
/// Lines of narration that have their room in any case, so that the picture stays where it is.
const NARRATION: f32 = 2.0;

/// Whether what moves is seen to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pictures {
    #[default]
    Moving,
    /// Steps jump to their ends.
    Still,
}

/// What goes on by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Going {
    #[default]
    Resting,
    /// To the end of this step.
    ThisStep,
    /// To the end of the story.
    Playing,
}

/// On what a painted picture depends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    choice: Choice,
    moment: Moment,
    rect: Rect,
    theme: Theme,
    sizes: Sizes,
    pixels_per_point: f32,
}

/// The panel: which story, and how far it is told.
#[derive(Debug)]
pub(super) struct SplitPanel {
    choice: Choice,
    story: Result<Story, Refusal>,
    moment: Moment,
    going: Going,
    pictures: Pictures,
    /// Seconds that this step has been shown while playing.
    read: f32,
    painted: Option<(Setting, Arc<Painted>)>,
}

impl Default for SplitPanel {
    fn default() -> Self {
        let choice = Choice::default();
        Self {
            choice,
            story: Story::new(choice),
            moment: AT_FIRST,
            going: Going::Resting,
            pictures: Pictures::Moving,
            read: 0.0,
            painted: None,
        }
    }
}

/// A story opens with its first step as it is in the end: nothing moves before somebody asks.
const AT_FIRST: Moment = Moment {
    step: 0,
    progress: 1.0,
};

impl SplitPanel {
    /// Through the story, as one goes through a run.
    pub(super) fn travel(&mut self, travel: Travel) {
        match travel {
            Travel::PlayPause => self.play_or_pause(),
            Travel::StepForward | Travel::EventForward => self.to(self.moment.step + 1),
            Travel::StepBack | Travel::EventBack => {
                self.rest_at(self.moment.step.saturating_sub(1));
            }
            Travel::StepStart | Travel::Reset => self.rest_at(0),
            Travel::StepEnd => self.rest_at(usize::MAX),
            Travel::To(_) | Travel::Faster | Travel::Slower => {}
        }
    }

    /// To the entry computed next in this step, or the one before.
    pub(super) fn entry(&mut self, direction: Direction) {
        let index = self.moment.step;
        let Some(step) = self.step() else {
            return;
        };
        let (Some(last), now) = (step.entries().checked_sub(1), self.moment.entry(step)) else {
            return;
        };
        let entry = match (direction, now) {
            // From the end, on means around to the first.
            (Direction::Up, Some(_)) if self.moment.progress >= 1.0 => 0,
            (Direction::Up, now) => now.map_or(0, |now| (now + 1).min(last)),
            (Direction::Down, now) => now.unwrap_or(0).saturating_sub(1),
        };
        self.moment = Moment::of_entry((index, step), entry);
        self.going = Going::Resting;
    }

    fn step(&self) -> Option<&Step> {
        self.story.as_ref().ok()?.steps().get(self.moment.step)
    }

    fn count(&self) -> usize {
        self.story.as_ref().map_or(1, |story| story.steps().len())
    }

    fn last(&self) -> usize {
        self.count().saturating_sub(1)
    }

    fn play_or_pause(&mut self) {
        if self.going == Going::Playing {
            self.going = Going::Resting;
            return;
        }
        if self.moment.step == self.last() && self.moment.progress >= 1.0 {
            self.start(0);
        }
        self.read = 0.0;
        self.going = Going::Playing;
    }

    /// Shows a step from its start, or where pictures do not move, at its end.
    fn start(&mut self, step: usize) {
        self.rest_at(step);
        let moves = self.step().is_some_and(Step::moves);
        if moves && self.pictures == Pictures::Moving {
            self.moment.progress = 0.0;
        }
    }

    /// On to a step, which then goes to its end by itself.
    fn to(&mut self, step: usize) {
        let playing = self.going == Going::Playing;
        if step > self.last() {
            return self.rest_at(step);
        }
        self.start(step);
        self.going = match (playing, self.moment.progress < 1.0) {
            (true, _) => Going::Playing,
            (false, true) => Going::ThisStep,
            (false, false) => Going::Resting,
        };
    }

    /// A step as it is in the end.
    fn rest_at(&mut self, step: usize) {
        self.moment = Moment {
            step: step.min(self.last()),
            progress: 1.0,
        };
        self.read = 0.0;
        self.going = Going::Resting;
    }

    /// Lets seconds pass; in how many more there is something new to see, if anything goes on.
    pub(super) fn advance(&mut self, seconds: f32) -> Option<f32> {
        if self.going == Going::Resting {
            return None;
        }
        let length = self.step().map_or(MOVE, length);
        if self.moment.progress < 1.0 {
            self.moment.progress = (self.moment.progress + seconds / length).min(1.0);
            if self.moment.progress >= 1.0 && self.going == Going::ThisStep {
                self.going = Going::Resting;
                return None;
            }
            return Some(0.0);
        }
        self.read += seconds;
        if self.read >= READ {
            let next = self.moment.step + 1;
            if next > self.last() {
                self.going = Going::Resting;
                return None;
            }
            self.to(next);
        }
        Some(if self.moment.progress < 1.0 {
            0.0
        } else {
            READ - self.read
        })
    }

    fn choose(&mut self, choice: Choice) {
        if choice == self.choice {
            return;
        }
        // Other numbers are seen at the same step; another story starts at its first.
        let same = Choice {
            seed: self.choice.seed,
            ..choice
        } == self.choice;
        self.choice = choice;
        self.story = Story::new(choice);
        self.rest_at(if same { self.moment.step } else { 0 });
    }

    /// The story of a topic, from its start.
    pub(super) fn turn_to(&mut self, topic: Topic) {
        self.choose(Choice {
            topic,
            ..self.choice
        });
        self.rest_at(0);
    }

    /// Shows the panel.
    pub(super) fn show(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        self.head(ui, view, wishes);
        let sizes = view.sizes();
        if let Err(why) = &self.story {
            let large = font(sizes.body * 1.25, FontWeight::Regular);
            let text = RichText::new(why.to_string()).font(large);
            ui.add_space(sizes.space());
            ui.label(text.color(color(view.palette().error)));
            return;
        }
        self.narration(ui, view);
        let foot = ui.spacing().interact_size.y + sizes.gap();
        let room = ui.available_size() - vec2(0.0, foot);
        self.picture(ui, room, view);
        ui.horizontal(|ui| {
            self.buttons(ui);
            let from_the_right = Layout::right_to_left(Align::Center);
            ui.with_layout(from_the_right, |ui| self.progress(ui, view));
        });
    }

    /// Which story.
    fn head(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        let mut choice = self.choice;
        let gap = view.sizes().space() * 0.6;
        ui.horizontal_wrapped(|ui| {
            for topic in Topic::ALL {
                let hint = topic.about();
                chosen(ui, (topic.name(), hint), &mut choice.topic, topic);
            }
            ui.add_space(gap);
            for tp in Choice::GPUS {
                let name = if tp == 1 { "GPU" } else { "GPUs" };
                let name = format!("{tp} {name}");
                chosen(ui, (&name, "Tensor parallel degree"), &mut choice.tp, tp);
            }
            ui.add_space(gap);
            if choice.topic == Topic::Heads {
                for heads in Choice::HEADS {
                    let name = format!("{heads} heads");
                    chosen(ui, (&name, "Attention heads"), &mut choice.heads, heads);
                }
                ui.add_space(gap);
            }
            for way in Way::ALL {
                chosen(ui, (way.name(), "Which pass"), &mut choice.way, way);
            }
            ui.add_space(gap);
            let other = ui.button("Other numbers");
            if other.on_hover_text("The same with other numbers").clicked() {
                choice.seed = choice.seed.wrapping_add(1);
            }
            let named = ("Back to the timeline", "I");
            if keyed_button(ui, Icon::Close, Weight::Plain, named).clicked() {
                wishes.push(Wish::Show(Show::Middle(Middle::Split)));
            }
        });
        self.choose(choice);
    }

    /// What happens, in large text.
    fn narration(&self, ui: &mut Ui, view: &View) {
        let Some(step) = self.step() else {
            return;
        };
        let sizes = view.sizes();
        let title = font(sizes.body * 1.45, FontWeight::SemiBold);
        ui.horizontal(|ui| {
            ui.label(RichText::new(&step.title).font(title));
            let place = format!("step {} of {}", self.moment.step + 1, self.count());
            ui.label(RichText::new(place).weak());
        });
        let size = sizes.body * 1.15;
        let top = ui.cursor().top();
        ui.label(RichText::new(&step.narration).font(font(size, FontWeight::Regular)));
        let missing = NARRATION * size * 1.25 - (ui.cursor().top() - top);
        ui.add_space(missing.max(0.0));
    }

    fn picture(&mut self, ui: &mut Ui, room: eframe::egui::Vec2, view: &View) {
        let (rect, response) = ui.allocate_exact_size(room.max(vec2(1.0, 1.0)), Sense::hover());
        let place = format!("Step {} of {}", self.moment.step + 1, self.count());
        let account = self.step().map_or_else(String::new, Step::account);
        let text = format!("{place}. {account}");
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text.as_str()));
        let setting = Setting {
            choice: self.choice,
            moment: self.moment,
            rect,
            theme: view.theme,
            sizes: view.sizes(),
            pixels_per_point: ui.pixels_per_point(),
        };
        if let Some(painted) = self.painted(ui.ctx(), setting) {
            painted.paint(ui.painter());
        }
    }

    /// The picture, made anew only if something about it is.
    fn painted(&mut self, ctx: &Context, setting: Setting) -> Option<Arc<Painted>> {
        let kept = self.painted.as_ref().filter(|(own, _)| *own == setting);
        if let Some((_, painted)) = kept {
            return Some(Arc::clone(painted));
        }
        let story = self.story.as_ref().ok()?;
        let look = SceneLook {
            theme: setting.theme,
            sizes: setting.sizes,
            ..SceneLook::default()
        };
        let size = Size::new(setting.rect.width(), setting.rect.height());
        let scene = scene(story, setting.moment, size, &look);
        let painted = Arc::new(Painted::new(
            ctx,
            scene,
            setting.rect.min,
            setting.pixels_per_point,
        ));
        self.painted = Some((setting, Arc::clone(&painted)));
        Some(painted)
    }

    /// Through the steps.
    fn buttons(&mut self, ui: &mut Ui) {
        let play = match self.going {
            Going::Playing => (Icon::Pause, "Pause the story"),
            Going::Resting | Going::ThisStep => (Icon::Play, "Play the story"),
        };
        let first = (Icon::Reset, "First step of the story");
        let back = (Icon::EventBack, "Step back in the story");
        let on = (Icon::EventForward, "Step on in the story");
        let buttons = [
            (first, Weight::Plain, "Home", Travel::StepStart),
            (back, Weight::Plain, "← or Page up", Travel::EventBack),
            (play, Weight::Primary, "Space", Travel::PlayPause),
            (on, Weight::Plain, "→ or Page down", Travel::EventForward),
        ];
        for ((icon, name), weight, key, travel) in buttons {
            if keyed_button(ui, icon, weight, (name, key)).clicked() {
                self.travel(travel);
            }
        }
    }

    /// How far the story is told, and whether it moves; from the right.
    fn progress(&mut self, ui: &mut Ui, view: &View) {
        let mut moving = self.pictures == Pictures::Moving;
        let hint = "Whether matrices are seen to move; if not, steps jump to their ends";
        let checkbox = ui.checkbox(&mut moving, "Moving pictures");
        if checkbox.on_hover_text(hint).changed() {
            self.pictures = if moving {
                Pictures::Moving
            } else {
                Pictures::Still
            };
            self.rest_at(self.moment.step);
        }
        if self.step().is_some_and(|step| step.entries() > 0) {
            ui.label(RichText::new("↑ ↓ entry by entry").weak());
        }
        let mut shown = self.moment.step + 1;
        let room = ui.available_width() - view.sizes().space();
        ui.spacing_mut().slider_width = room.max(40.0);
        let slider = Slider::new(&mut shown, 1..=self.count()).show_value(false);
        let slider = ui.add(slider).accessible_name("Step of the story");
        if slider.changed() && shown != self.moment.step + 1 {
            self.rest_at(shown - 1);
        }
    }
}

/// A button of a choice.
fn chosen<T: PartialEq>(ui: &mut Ui, (name, hint): (&str, &str), now: &mut T, value: T) {
    let button = ui.add(Button::selectable(*now == value, name));
    if button.on_hover_text(hint).clicked() {
        *now = value;
    }
}

/// How long a step takes to be shown, in seconds.
fn length(step: &Step) -> f32 {
    match step.entries() {
        0 => MOVE,
        entries => (entries as f32 * ENTRY).clamp(*WORK.start(), *WORK.end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_plays_to_its_end_and_rests() {
        for pictures in [Pictures::Moving, Pictures::Still] {
            let mut panel = SplitPanel {
                pictures,
                ..SplitPanel::default()
            };
            panel.travel(Travel::PlayPause);
            let mut passed = 0.0;
            while panel.advance(0.1).is_some() {
                passed += 0.1;
                assert!(passed < 120.0);
            }
            assert_eq!(panel.moment.step, panel.last());
            assert!(passed > 10.0);
            // Once more from the start.
            panel.travel(Travel::PlayPause);
            assert_eq!(panel.moment.step, 0);
        }
    }

    #[test]
    fn without_moving_pictures_steps_jump() {
        let mut panel = SplitPanel {
            pictures: Pictures::Still,
            ..SplitPanel::default()
        };
        panel.travel(Travel::EventForward);
        assert_eq!((panel.moment.step, panel.moment.progress), (1, 1.0));
        assert_eq!(panel.advance(1.0), None);
    }

    #[test]
    fn a_step_is_gone_through_entry_by_entry() {
        let mut panel = SplitPanel::default();
        for entry in 0..5 {
            panel.entry(Direction::Up);
            let step = panel.step().unwrap();
            assert_eq!(panel.moment.entry(step), Some(entry));
        }
        panel.entry(Direction::Down);
        let step = panel.step().unwrap();
        assert_eq!(panel.moment.entry(step), Some(3));
    }
}

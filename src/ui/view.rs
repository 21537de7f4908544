//! How the window is set up: colours, text size, which panels are open.

use std::collections::BTreeSet;

use eframe::egui::Context;

use crate::scene::tokens::{Palette, Sizes, Theme};
use crate::words::{Language, Speaks};

use super::theme;
use super::wish::{Panel, Show};

/// How large texts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextSize {
    /// For whoever sits before it.
    #[default]
    Desk,
    /// For the back of a classroom.
    Presenter,
}

/// Something over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    /// The keys.
    Help,
    /// Where to save a file.
    Export,
}

/// What has the middle of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Middle {
    /// The timeline.
    #[default]
    Timeline,
    /// Every legal layout.
    Sweep,
    /// The choice of a layout.
    Guide,
    /// A schedule that is built by hand.
    Builder,
    /// The inside of a layer.
    Split,
}

impl Middle {
    /// Whether layouts are looked for.
    pub(super) fn is_layouts(self) -> bool {
        matches!(self, Self::Sweep | Self::Guide)
    }
}

/// How the window is set up.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Colours.
    pub(super) theme: Theme,
    /// How large texts are.
    pub(super) text: TextSize,
    /// The language of texts.
    pub(super) language: Language,
    /// Whether the controls are folded away.
    pub(super) controls_folded: bool,
    /// The timeline, or what is in its place.
    pub(super) middle: Middle,
    /// What lies over the window.
    pub(super) dialog: Option<Dialog>,
    /// The open panels; before anybody has opened or closed one, as many as have room.
    panels: Option<BTreeSet<Panel>>,
    /// Whether the lessons are open.
    pub(super) teaching: bool,
    /// Whether something is selected on the timeline, which is then told in a panel.
    pub(super) selecting: bool,
    sizes: Sizes,
    room: usize,
    /// The colours, text sizes and language that widgets have.
    dressed: Option<(Theme, Sizes, Language)>,
}

impl Speaks for View {
    fn language(&self) -> Language {
        self.language
    }
}

impl View {
    /// Set up with `theme` and `text`.
    pub(super) fn new(theme: Theme, text: TextSize) -> Self {
        Self {
            theme,
            text,
            language: Language::default(),
            controls_folded: false,
            middle: Middle::Timeline,
            dialog: None,
            panels: None,
            teaching: false,
            selecting: false,
            sizes: Sizes::DESK,
            room: 3,
            dressed: None,
        }
    }

    /// Sets the widgets' look when colours or text sizes change.
    pub(super) fn dress(&mut self, ctx: &Context) {
        self.fit(ctx.content_rect().height());
        let wanted = (self.theme, self.sizes, self.language);
        if self.dressed != Some(wanted) {
            theme::speak(ctx, self.language);
            theme::apply(ctx, self.theme, self.sizes);
            // What is laid out in this frame has the look of before.
            ctx.request_repaint();
            self.dressed = Some(wanted);
        }
    }

    /// Fits text sizes to the height of the window; whether they changed.
    pub(super) fn fit(&mut self, height: f32) -> bool {
        let fitting = match self.text {
            TextSize::Desk => Sizes {
                body: (height / 64.0).clamp(Sizes::DESK.body, 18.0),
                ..Sizes::DESK
            },
            TextSize::Presenter => Sizes::presenter(height),
        };
        let sizes = Sizes {
            body: (fitting.body * 4.0).round() / 4.0,
            least: (fitting.least * 4.0).ceil() / 4.0,
        };
        let changed = sizes != self.sizes;
        self.sizes = sizes;
        changed
    }

    /// Text sizes and distances.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Colours.
    pub(super) fn palette(&self) -> &'static Palette {
        self.theme.palette()
    }

    /// Tells how many panels have room side by side.
    pub(super) fn make_room(&mut self, panels: usize) {
        self.room = panels.clamp(1, Panel::ALL.len());
    }

    /// The open panels, in order.
    pub(super) fn panels(&self) -> Vec<Panel> {
        let opened = |panel: &Panel| match &self.panels {
            Some(panels) => panels.contains(panel),
            None => Panel::ALL[..self.room].contains(panel),
        };
        let mut open: Vec<Panel> = Panel::ALL.into_iter().filter(opened).collect();
        // What is selected takes the last one's place for as long as it is, so that nothing else moves.
        if self.selecting && !open.contains(&Panel::Selection) {
            if open.len() >= self.room {
                open.pop();
            }
            open.push(Panel::Selection);
        }
        open
    }

    /// More or less of the window.
    pub(super) fn show(&mut self, show: Show) {
        match show {
            Show::Panel(panel) => self.toggle_panel(panel),
            Show::Controls => self.controls_folded = !self.controls_folded,
            Show::Theme => {
                self.theme = match self.theme {
                    Theme::Dark => Theme::Light,
                    Theme::Light | Theme::Paper => Theme::Dark,
                }
            }
            Show::Presenter => {
                self.text = match self.text {
                    TextSize::Desk => TextSize::Presenter,
                    TextSize::Presenter => TextSize::Desk,
                }
            }
            Show::Help => self.toggle_dialog(Dialog::Help),
            Show::Middle(middle) => self.toggle_middle(middle),
            Show::Export => self.toggle_dialog(Dialog::Export),
            Show::Language(language) => self.language = language,
        }
    }

    /// These panels, and no others.
    pub(super) fn open_panels(&mut self, panels: impl IntoIterator<Item = Panel>) {
        self.panels = Some(panels.into_iter().collect());
    }

    fn toggle_middle(&mut self, middle: Middle) {
        self.middle = if self.middle == middle {
            Middle::Timeline
        } else {
            middle
        };
    }

    fn toggle_panel(&mut self, panel: Panel) {
        let mut panels: BTreeSet<Panel> = self.panels().into_iter().collect();
        if !panels.remove(&panel) {
            panels.insert(panel);
        }
        self.panels = Some(panels);
    }

    fn toggle_dialog(&mut self, dialog: Dialog) {
        self.dialog = if self.dialog == Some(dialog) {
            None
        } else {
            Some(dialog)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_open_as_many_as_have_room_until_somebody_chooses() {
        let mut view = View::new(Theme::Dark, TextSize::Desk);
        view.make_room(2);
        assert_eq!(view.panels(), [Panel::Loss, Panel::Mesh]);
        view.show(Show::Panel(Panel::Loss));
        view.make_room(5);
        assert_eq!(view.panels(), [Panel::Mesh]);
    }

    #[test]
    fn presenter_text_is_at_least_a_fiftieth_of_the_height() {
        for height in [600.0, 720.0, 1080.0, 2160.0] {
            let mut view = View::new(Theme::Dark, TextSize::Presenter);
            view.fit(height);
            assert!(view.sizes().body >= height / 50.0, "{height}");
            assert!(view.sizes().small() >= height / 50.0, "{height}");
        }
    }
}

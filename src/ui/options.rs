//! How the window starts.

use std::path::PathBuf;

use crate::export::Kit;
use crate::scene::tokens::Theme;
use crate::session::Config;
use crate::words::Language;

use super::playback::Motion;
use super::view::TextSize;

/// How the window starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is run first.
    pub config: Config,
    /// Colours.
    pub theme: Theme,
    /// How large texts are.
    pub text: TextSize,
    /// Whether it plays at once.
    pub motion: Motion,
    /// The language of texts.
    pub language: Language,
    /// A folder of lessons of one's own, in place of those that come with the program.
    pub lessons: Option<PathBuf>,
    /// The lesson that is open.
    pub lesson: Option<String>,
    /// Its page, from 0; where its reader was if absent.
    pub page: Option<usize>,
    /// Whether the controls are folded away.
    pub hide_controls: bool,
    /// Where progress in lessons is kept between starts; nowhere if absent.
    pub progress: Option<PathBuf>,
}

impl Options {
    /// As a class kit restores them.
    pub fn with_kit(self, kit: Kit) -> Self {
        let (lesson, page) = kit.lesson.unzip();
        Self {
            config: kit.config,
            theme: kit.theme,
            text: if kit.presenter {
                TextSize::Presenter
            } else {
                TextSize::Desk
            },
            lesson,
            page,
            hide_controls: kit.hide_controls,
            ..self
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Config::default(),
            theme: Theme::Dark,
            text: TextSize::Desk,
            motion: Motion::Playing,
            language: Language::English,
            lessons: None,
            lesson: None,
            page: None,
            hide_controls: false,
            progress: None,
        }
    }
}

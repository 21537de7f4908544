//! How the window starts.

use crate::scene::tokens::Theme;
use crate::session::Config;

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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Config::default(),
            theme: Theme::Dark,
            text: TextSize::Desk,
            motion: Motion::Playing,
        }
    }
}

//! The languages that texts are in, and every text in each of them.
//!
//! A text is written in English where it is said, `say!(view, "{n} of {all} ranks", n, all)`, and the catalogue of another
//! language (`assets/words`) has it by that. A text that is named in one place and said in another is a `mark!("…")` there.

mod catalogue;

use serde::{Deserialize, Serialize};

/// A language.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English, in which everything is.
    #[default]
    English,
    /// German.
    German,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::German];

    /// Its code (ISO 639-1).
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    /// Its name in itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "Deutsch",
        }
    }

    /// From its code, or a locale such as `de_AT.UTF-8`.
    pub fn from_code(code: &str) -> Option<Self> {
        let code = code.split(['_', '-', '.']).next().unwrap_or_default();
        Self::ALL
            .into_iter()
            .find(|language| language.code().eq_ignore_ascii_case(code))
    }
}

/// What knows the language that it speaks.
pub trait Speaks {
    /// That language.
    fn language(&self) -> Language;
}

impl Speaks for Language {
    fn language(&self) -> Language {
        *self
    }
}

/// A text in the language of what speaks it, with values in place of names in braces: `&'static str` without any, else a
/// `String`.
macro_rules! say {
    ($speaker:expr, $text:literal $(,)?) => {{
        use $crate::words::Speaks as _;
        $speaker.language().say($text)
    }};
    ($speaker:expr, $text:literal, $($name:ident $(= $value:expr)?),+ $(,)?) => {{
        use $crate::words::Speaks as _;
        $speaker.language().fill(
            $text,
            &[$((stringify!($name), $crate::words::value!($name $(, $value)?))),+],
        )
    }};
}

/// A value, or the variable of that name.
macro_rules! value {
    ($name:ident) => {
        &$name as &dyn std::fmt::Display
    };
    ($name:ident, $value:expr) => {
        &$value as &dyn std::fmt::Display
    };
}

/// A text that is said elsewhere, by `language.say(text)`.
macro_rules! mark {
    ($text:literal) => {
        $text
    };
}

pub(crate) use {mark, say, value};

//! Texts in other languages: of each English text, the other one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::LazyLock;

use super::Language;

/// Files of a language, each with its name and its text.
macro_rules! files {
    ($language:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../assets/words/", $language, "/", $name)))),+]
    };
}

/// The German texts, by the part of the program that they are in.
const GERMAN: &[(&str, &str)] = files!(
    "de": "builder.toml", "guide.toml", "lessons.toml", "matrices.toml", "run.toml", "timeline.toml", "window.toml",
);

/// Of each English text the one in another language.
type Catalogue = BTreeMap<String, String>;

/// Constant, so that it is read once.
static IN_GERMAN: LazyLock<Catalogue> = LazyLock::new(|| read(GERMAN));

/// What cannot be read stays English; a test says which file it is.
fn read(files: &[(&str, &str)]) -> Catalogue {
    let tables = files
        .iter()
        .map(|(_, text)| toml::from_str::<Catalogue>(text));
    tables.flat_map(Result::unwrap_or_default).collect()
}

impl Language {
    /// An English text of `say!` or `mark!` in this language; itself if there is no other.
    pub fn say(self, english: &str) -> &str {
        let catalogue = match self {
            Self::English => return english,
            Self::German => &*IN_GERMAN,
        };
        catalogue.get(english).map_or(english, String::as_str)
    }

    /// The same with values in place of `{name}`.
    pub fn fill(self, english: &str, values: &[(&str, &dyn Display)]) -> String {
        let mut rest = self.say(english);
        let mut filled = String::with_capacity(rest.len() + 16);
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                filled.push('{');
                rest = after;
                continue;
            };
            match values.iter().find(|(own, _)| *own == name) {
                Some((_, value)) => filled.push_str(&value.to_string()),
                None => filled.extend(["{", name, "}"]),
            }
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::words::{mark, say};

    /// Every `say!(…, "…")` and `mark!("…")` of the program.
    fn said(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("src/words") {
                // The macros themselves, and this test.
            } else if path.is_dir() {
                said(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for start in ["say!(", "mark!("] {
                    found.extend(text.split(start).skip(1).filter_map(literal));
                }
            }
        }
    }

    /// The first text in quotation marks in a macro's arguments; none in a comment on it.
    fn literal(arguments: &str) -> Option<String> {
        let (_, rest) = arguments.split_once('"')?;
        let mut text = String::new();
        let mut letters = rest.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, letters.peek()) {
                ('"', _) => return Some(text),
                ('\\', Some('\n')) => {
                    while letters.next_if(|next| next.is_whitespace()).is_some() {}
                }
                ('\\', _) => text.extend(letters.next()),
                _ => text.push(letter),
            }
        }
        None
    }

    fn names(text: &str) -> BTreeSet<&str> {
        let named = text.split('{').skip(1);
        named
            .filter_map(|rest| Some(rest.split_once('}')?.0))
            .collect()
    }

    #[test]
    fn every_text_is_there_once_in_every_language_and_none_is_stale() {
        let mut said_here = BTreeSet::new();
        said(Path::new("src"), &mut said_here);
        let mut known = BTreeSet::new();
        for (file, text) in GERMAN {
            let table: Catalogue =
                toml::from_str(text).unwrap_or_else(|why| panic!("{file}: {why}"));
            for (english, german) in table {
                assert!(!german.trim().is_empty(), "{file}: {english:?} is empty");
                assert_eq!(names(&english), names(&german), "{file}: {english:?}");
                assert!(
                    known.insert(english.clone()),
                    "{file}: {english:?} is there twice"
                );
            }
        }
        let missing: Vec<_> = said_here.difference(&known).collect();
        let stale: Vec<_> = known.difference(&said_here).collect();
        assert!(missing.is_empty(), "no German for {missing:#?}");
        assert!(stale.is_empty(), "nobody says {stale:#?}");
    }

    #[test]
    fn texts_are_found_and_filled() {
        let (en, de) = (Language::English, Language::German);
        assert_eq!(say!(en, "Loss"), "Loss");
        assert_eq!(say!(de, "Loss"), "Verlust");
        assert_eq!(de.say(mark!("Loss")), "Verlust");
        assert_eq!(de.say("not in the catalogue"), "not in the catalogue");
        assert_eq!(
            en.fill("{a} of {b}{a", &[("a", &3), ("b", &"x")]),
            "3 of x{a"
        );
        assert_eq!(en.fill("{c}", &[]), "{c}");
    }
}

//! A class kit: one line of text that restores a run, its seed, the lesson and its page, and what is hidden.
//!
//! `shardscope-kit-1:` and then the packed settings in base64 (RFC 4648, for addresses); packed by gzip, whose check sum tells a
//! line that was cut or changed.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use super::base64::{base64, unbase64};
use super::files::{read_text, zipped};
use crate::scene::tokens::Theme;
use crate::session::Config;

/// What a kit starts with, and which version this program writes.
const HEAD: &str = "shardscope-kit-";
const VERSION: u32 = 1;
/// So long may a kit be as a line, and so large unpacked.
const LONGEST: usize = 1 << 20;
const LARGEST: u64 = 4 << 20;

/// What a class kit restores.
#[derive(Clone, Debug, PartialEq)]
pub struct Kit {
    /// The run.
    pub config: Config,
    /// The lesson that is open, and its page from 0.
    pub lesson: Option<(String, usize)>,
    /// Whether the controls are folded away.
    pub hide_controls: bool,
    /// Whether texts are large, for a classroom.
    pub presenter: bool,
    /// Colours.
    pub theme: Theme,
}

/// The same as it is written. A seed may be larger than TOML's numbers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    seed: String,
    hide_controls: bool,
    presenter: bool,
    theme: String,
    lesson: Option<String>,
    page: Option<usize>,
    config: Config,
}

/// Why a line is no kit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KitError {
    /// Something else.
    #[error(
        "this is no class kit: a kit is one line that starts with {HEAD}{VERSION}: as \"Copy class kit\" gives it"
    )]
    Foreign,
    /// Of a later program.
    #[error(
        "this kit is of version {0}, but this program knows up to {VERSION}; a newer Shardscope reads it"
    )]
    Version(u32),
    /// Not whole.
    #[error("this kit is not whole ({0}); copy the whole line again")]
    Broken(String),
    /// A run that cannot be.
    #[error("the run of this kit cannot be: {0}")]
    Config(String),
    /// A file that cannot be read.
    #[error("{0}")]
    File(String),
    /// A run that no line can hold.
    #[error("this run cannot be put into a kit: {0}")]
    Unwritable(String),
}

impl Kit {
    /// As a line.
    pub fn line(&self) -> Result<String, KitError> {
        let mut config = self.config.clone();
        let seed = std::mem::take(&mut config.seed).to_string();
        let (lesson, page) = self.lesson.clone().unzip();
        let written = Written {
            seed,
            hide_controls: self.hide_controls,
            presenter: self.presenter,
            theme: self.theme.name().to_owned(),
            lesson,
            page,
            config,
        };
        let unwritable = |why: String| KitError::Unwritable(why);
        let text = toml::to_string(&written).map_err(|error| unwritable(error.to_string()))?;
        let packed = zipped(text.as_bytes()).map_err(|error| unwritable(error.to_string()))?;
        let code = base64(&packed).replace('+', "-").replace('/', "_");
        Ok(format!("{HEAD}{VERSION}:{}", code.trim_end_matches('=')))
    }

    /// From a line; what stands around it, and line breaks that a mail put into it, are no harm.
    pub fn from_line(text: &str) -> Result<Self, KitError> {
        if text.len() > LONGEST {
            return Err(KitError::Foreign);
        }
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (version, code) = text
            .strip_prefix(HEAD)
            .and_then(|rest| rest.split_once(':'))
            .ok_or(KitError::Foreign)?;
        let version: u32 = version.parse().map_err(|_not_a_number| KitError::Foreign)?;
        if version != VERSION {
            return Err(KitError::Version(version));
        }
        let packed = unbase64(&code.replace('-', "+").replace('_', "/"))
            .ok_or_else(|| KitError::Broken("a letter that no kit has".to_owned()))?;
        let mut bytes = Vec::new();
        GzDecoder::new(packed.as_slice())
            .take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| KitError::Broken(error.to_string()))?;
        if bytes.len() as u64 > LARGEST {
            return Err(KitError::Broken(
                "it unpacks to more than any kit".to_owned(),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|error| KitError::Broken(error.to_string()))?;
        Self::read(&text)
    }

    fn read(text: &str) -> Result<Self, KitError> {
        let broken = |what: &dyn std::fmt::Display| KitError::Broken(what.to_string());
        let written: Written = toml::from_str(text).map_err(|error| broken(&error.message()))?;
        let mut config = written.config;
        config.seed = written.seed.parse().map_err(|error| broken(&error))?;
        config
            .check()
            .map_err(|error| KitError::Config(error.to_string()))?;
        if config.custom.is_some() {
            // An order of one's own may hang, which only a plan tells.
            config
                .plan()
                .map_err(|error| KitError::Config(error.to_string()))?;
        }
        let theme = Theme::ALL
            .into_iter()
            .find(|theme| theme.name() == written.theme);
        Ok(Self {
            config,
            lesson: written
                .lesson
                .map(|id| (id, written.page.unwrap_or_default())),
            hide_controls: written.hide_controls,
            presenter: written.presenter,
            theme: theme.ok_or_else(|| broken(&"colours that are not known"))?,
        })
    }

    /// From a line, or from the file of that name with such a line in it.
    pub fn from_line_or_file(given: &str) -> Result<Self, KitError> {
        if given.trim_start().starts_with(HEAD) {
            return Self::from_line(given);
        }
        let text = read_text(Path::new(given), LONGEST as u64);
        let text = text.map_err(|error| KitError::File(error.to_string()))?;
        Self::from_line(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Slow, SlowPair};
    use crate::hardware::{Hardware, PROFILES};
    use crate::plan::Layout;
    use crate::schedule::ScheduleKind;
    use crate::session::Costs;
    use crate::shape::{ModelShape, PRESETS};
    use proptest::prelude::*;

    fn kit() -> Kit {
        Kit {
            config: Config::default(),
            lesson: Some(("pipeline-bubble".to_owned(), 2)),
            hide_controls: true,
            presenter: false,
            theme: Theme::Light,
        }
    }

    type Given = (
        (usize, usize, usize, usize, usize),
        (f64, f64, u64),
        (bool, bool, usize),
        (usize, usize),
    );

    fn given() -> impl Strategy<Value = Given> {
        (
            (1..5_usize, 1..5_usize, 1..5_usize, 1..40_usize, 1..9_usize),
            (0.01..1000.0_f64, 0.0..3.0_f64, any::<u64>()),
            (any::<bool>(), any::<bool>(), 0..9_usize),
            (0..PRESETS.len(), 0..PROFILES.len()),
        )
    }

    fn of(given: Given) -> Kit {
        let (
            (dp, tp, pp, micro_batches, micro_batch_size),
            (factor, jitter, seed),
            (one, other, page),
            (model, hardware),
        ) = given;
        let mut config = Config {
            layout: Layout {
                dp,
                tp,
                pp,
                micro_batches,
                micro_batch_size,
                schedule: if one {
                    ScheduleKind::GPipe
                } else {
                    ScheduleKind::OneFOneB
                },
                chunks: 1,
            },
            model: ModelShape::preset(PRESETS[model].0).unwrap(),
            hardware: Hardware::profile(PROFILES[hardware].0).unwrap(),
            seed,
            overlap: other,
            costs: if other { Costs::Model } else { Costs::unit() },
            ..Config::default()
        };
        config.disturbance.jitter = jitter;
        config.disturbance.slow = vec![Slow { rank: 0, factor }];
        if dp > 1 {
            config.disturbance.slow_pairs = vec![SlowPair {
                ranks: [0, 1],
                factor,
            }];
        }
        Kit {
            config,
            lesson: one.then(|| ("hybrids".to_owned(), page)),
            hide_controls: other,
            presenter: one,
            theme: Theme::ALL[page % Theme::ALL.len()],
        }
    }

    proptest! {
        #[test]
        fn a_kit_restores_exactly(given in given()) {
            let kit = of(given);
            prop_assume!(kit.config.check().is_ok());
            let line = kit.line().unwrap();
            prop_assert!(!line.contains(char::is_whitespace));
            prop_assert_eq!(Kit::from_line(&line).unwrap(), kit);
        }

        #[test]
        fn a_kit_that_was_changed_is_refused(at in 0..1000_usize, letter in "[A-Za-z0-9_-]") {
            let line = kit().line().unwrap();
            let at = at % line.len();
            let changed = format!("{}{letter}{}", &line[..at], &line[at + 1..]);
            prop_assume!(changed != line);
            // The last letters carry bits that belong to no byte, and gzip's head a few that mean nothing.
            let restored = Kit::from_line(&changed);
            prop_assert!(restored.is_err() || restored == Ok(kit()));
        }

        #[test]
        fn what_is_no_kit_is_refused(text in "(shardscope-kit-1:)?[ -~]{0,80}") {
            prop_assert!(Kit::from_line(&text).is_err());
        }
    }

    #[test]
    fn a_schedule_of_ones_own_is_in_its_kit() {
        let mut own = kit();
        let layout = Layout {
            pp: 2,
            micro_batches: 3,
            ..Layout::default()
        };
        own.config.layout = layout;
        own.config.custom = Some(layout.build_schedule().unwrap());
        let line = own.line().unwrap();
        assert_eq!(Kit::from_line(&line).unwrap(), own);
    }

    #[test]
    fn foreign_and_broken_kits_are_refused_with_a_reason() {
        let line = kit().line().unwrap();
        let later = line.replace("kit-1", "kit-2");
        let mut impossible = kit();
        impossible.config.layout.tp = 3;
        let cases = [
            "hello",
            "",
            "shardscope-kit-x:AA",
            &later,
            &line[..line.len() / 2],
            "shardscope-kit-1:!!!",
            &impossible.line().unwrap(),
        ];
        let said: Vec<String> = cases
            .iter()
            .map(|text| Kit::from_line(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(said.join("\n"));
        let broken = format!("{}\n {}", &line[..40], &line[40..]);
        assert_eq!(Kit::from_line(&broken), Ok(kit()), "a mail's line break");
        let long = "A".repeat(LONGEST + 1);
        assert_eq!(Kit::from_line(&long), Err(KitError::Foreign));
    }

    #[test]
    fn a_bomb_is_refused() {
        let packed = zipped(&vec![b' '; 64 << 20]).unwrap();
        let line = format!(
            "{HEAD}{VERSION}:{}",
            base64(&packed).replace('+', "-").replace('/', "_")
        );
        assert!(matches!(Kit::from_line(&line), Err(KitError::Broken(_))));
    }
}

//! What a key that is pressed wishes for.

use eframe::egui::{Context, Event, Key, Modifiers};

use super::bindings::BINDINGS;
use super::wish::Wish;

/// What a key is for, as the list groups them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Going through the run.
    Run,
    /// Looking at the timeline.
    Timeline,
    /// Changing the configuration.
    Layout,
    /// The window.
    Window,
    /// Building a schedule by hand.
    Building,
}

impl Group {
    /// Its heading.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Timeline => "Timeline",
            Self::Layout => "Layout",
            Self::Window => "Window",
            Self::Building => "Building a schedule",
        }
    }
}

/// Whether a key that a control with the focus understands goes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// To the control.
    Yields,
    /// To the window, unless text is being typed.
    Ignores,
}

/// A key and what it wishes for.
#[derive(Debug)]
pub(super) struct Binding {
    /// The key's name in the list.
    pub(super) shown: &'static str,
    /// What it does.
    pub(super) does: &'static str,
    /// Where it is listed.
    pub(super) group: Group,
    /// What it wishes for.
    pub(super) wish: Wish,
    /// With which modifiers, and which key.
    pub(super) keys: &'static [(Modifiers, Key)],
    /// Whether it goes to a control that has the focus.
    pub(super) focus: Focus,
}

/// What the keys pressed since the last frame wish for; they are taken from the input.
pub(super) fn pressed(ctx: &Context, listed: fn(&Binding) -> bool) -> Vec<Wish> {
    pressed_in(ctx, BINDINGS, listed)
}

/// The same of another table of keys.
pub(super) fn pressed_in(
    ctx: &Context,
    table: &'static [Binding],
    listed: fn(&Binding) -> bool,
) -> Vec<Wish> {
    if ctx.text_edit_focused() {
        return Vec::new();
    }
    let focused = ctx.memory(|memory| memory.focused().is_some());
    let mut wishes = Vec::new();
    ctx.input_mut(|input| {
        input.events.retain(|event| {
            let Event::Key {
                key,
                modifiers,
                pressed: true,
                ..
            } = event
            else {
                return true;
            };
            let found = find_in(table, *modifiers, *key);
            let found = found.filter(|binding| !yields(binding, focused) && listed(binding));
            wishes.extend(found.map(|binding| binding.wish.clone()));
            found.is_none()
        });
    });
    wishes
}

fn yields(binding: &Binding, focused: bool) -> bool {
    focused && binding.focus == Focus::Yields
}

/// The binding of a key in a table; the first that matches.
fn find_in(table: &'static [Binding], modifiers: Modifiers, key: Key) -> Option<&'static Binding> {
    // Which symbols need Shift depends on the keyboard, and so does whether it is reported.
    let symbol = !key.name().starts_with(|c: char| c.is_ascii_alphanumeric());
    let held = if symbol {
        Modifiers {
            shift: false,
            ..modifiers
        }
    } else {
        modifiers
    };
    let matches = |binding: &&Binding| {
        let own = binding.keys.iter().find(|(_, own)| *own == key);
        own.is_some_and(|_| {
            let mut of_key = binding.keys.iter().filter(|(_, own)| *own == key);
            of_key.any(|(wanted, _)| held.matches_exact(*wanted))
        })
    };
    table.iter().find(matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::builder::BUILDING;
    use crate::ui::edit::Field;
    use crate::ui::wish::Direction;
    use std::collections::HashSet;

    #[test]
    fn no_key_has_two_meanings() {
        let mut seen = HashSet::new();
        for table in [BINDINGS, BUILDING] {
            seen.clear();
            for (modifiers, key) in table.iter().flat_map(|binding| binding.keys) {
                assert!(
                    seen.insert((format!("{modifiers:?}"), *key)),
                    "{key:?} {modifiers:?}"
                );
            }
        }
    }

    #[test]
    fn every_key_finds_its_own_wish() {
        for table in [BINDINGS, BUILDING] {
            let keys = table.iter().flat_map(|binding| {
                let of = binding.keys.iter();
                of.map(move |&(modifiers, key)| (binding, modifiers, key))
            });
            for (binding, modifiers, key) in keys {
                let found = find_in(table, modifiers, key).unwrap();
                assert_eq!(found.wish, binding.wish, "{}", binding.shown);
            }
        }
    }

    #[test]
    fn every_control_has_a_key() {
        let fields = Field::NUMBERS.into_iter().chain([
            Field::Schedule,
            Field::Overlap,
            Field::Sequence,
            Field::Zero,
            Field::Sync,
            Field::Model,
            Field::Hardware,
            Field::Device,
            Field::SlowGpu,
            Field::SlowLink,
            Field::Jitter,
        ]);
        for field in fields {
            let has = |binding: &Binding| binding.wish == Wish::Next(field, Direction::Up);
            assert!(BINDINGS.iter().any(has), "{field:?}");
        }
    }
}

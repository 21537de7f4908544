//! Spans searched for by their names: a field over the timeline, how many there are, and the way from one to the next.

use std::sync::Arc;

use eframe::egui::{Id, Key, Modifiers, RichText, TextEdit, Ui};

use crate::scene::Hit;
use crate::trace::Trace;

use super::icon::{Icon, Weight, icon_button, keyed_button};
use super::theme::color;
use super::view::View;
use super::walk::{MOST_FOUND, search};
use super::wish::{Look, Wish};

/// What is searched for.
#[derive(Debug, Default)]
pub(super) struct Search {
    open: bool,
    /// Whether the field is to take the keys.
    asks: bool,
    words: String,
    /// What was found, for which words and in which timeline.
    found: Vec<Hit>,
    of: Option<(Arc<Trace>, String)>,
    at: Option<usize>,
}

impl Search {
    /// Opens the field, or takes the keys to it.
    pub(super) fn open(&mut self) {
        self.open = true;
        self.asks = true;
    }

    /// Closes the field and forgets what was found; whether it was open.
    pub(super) fn close(&mut self) -> bool {
        let open = self.open;
        *self = Self::default();
        open
    }

    /// What was found.
    pub(super) fn found(&self) -> &[Hit] {
        &self.found
    }

    /// Searches `trace`, if it or the words are others than before.
    pub(super) fn update(&mut self, trace: &Arc<Trace>) {
        let known = self.of.as_ref();
        let same = known.is_some_and(|(of, words)| Arc::ptr_eq(of, trace) && *words == self.words);
        if self.open && !same {
            self.found = search(trace, &self.words);
            self.of = Some((Arc::clone(trace), self.words.clone()));
            self.at = None;
        }
    }

    /// The next one found, or the one before; after the last comes the first.
    pub(super) fn go(&mut self, forward: bool) -> Option<Hit> {
        let count = self.found.len();
        let last = count.checked_sub(1)?;
        let next = match (self.at, forward) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
        };
        self.at = Some(next);
        self.found.get(next).copied()
    }

    /// Shows the field, from the right.
    pub(super) fn show(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        if !self.open {
            return;
        }
        if icon_button(ui, Icon::Close, Weight::Plain, "Close the search").clicked() {
            wishes.push(Wish::Dismiss);
        }
        let next = ("Next found", "Enter");
        if keyed_button(ui, Icon::EventForward, Weight::Plain, next).clicked() {
            wishes.push(Wish::Look(Look::NextFound));
        }
        let previous = ("Previous found", "Shift Enter");
        if keyed_button(ui, Icon::EventBack, Weight::Plain, previous).clicked() {
            wishes.push(Wish::Look(Look::PreviousFound));
        }
        let tint = color(view.palette().text_weak);
        ui.label(RichText::new(self.count()).color(tint));
        let id = Id::unique("search");
        let field = TextEdit::singleline(&mut self.words)
            .id(id)
            .hint_text("F3 gpu2 · all-reduce · waiting")
            .desired_width(view.sizes().body * 14.0);
        // Read before the field takes them.
        let (enter, back, escape) = ui.input_mut(|input| {
            (
                input.key_pressed(Key::Enter),
                input.modifiers.matches_logically(Modifiers::SHIFT) && input.modifiers.shift,
                input.key_pressed(Key::Escape),
            )
        });
        let response = ui.add(field);
        let label = ui.label("Search");
        let response = response.labelled_by(label.id);
        let typed = response.has_focus() || response.lost_focus();
        if std::mem::take(&mut self.asks) {
            response.request_focus();
        }
        if typed && escape {
            wishes.push(Wish::Dismiss);
        } else if typed && enter {
            wishes.push(Wish::Look(if back {
                Look::PreviousFound
            } else {
                Look::NextFound
            }));
            self.asks = true;
        }
    }

    /// How many there are, and which of them is shown.
    fn count(&self) -> String {
        let all = match self.found.len() {
            MOST_FOUND => format!("over {MOST_FOUND}"),
            count => count.to_string(),
        };
        match (self.at, self.words.trim().is_empty()) {
            (_, true) => String::new(),
            (Some(at), false) => format!("{} of {all}", at + 1),
            (None, false) => format!("{all} found"),
        }
    }
}

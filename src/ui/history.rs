//! Configurations that were left, to come back to.

use crate::session::Config;

/// Configurations to go back and forth between.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    past: Vec<Config>,
    future: Vec<Config>,
}

impl History {
    /// Remembers `left`, which another configuration takes the place of.
    pub(super) fn leave(&mut self, left: Config) {
        self.past.push(left);
        self.future.clear();
    }

    /// The configuration before `now`.
    pub(super) fn undo(&mut self, now: &Config) -> Option<Config> {
        let config = self.past.pop()?;
        self.future.push(now.clone());
        Some(config)
    }

    /// The configuration that `now` was undone from.
    pub(super) fn redo(&mut self, now: &Config) -> Option<Config> {
        let config = self.future.pop()?;
        self.past.push(now.clone());
        Some(config)
    }

    /// Whether there is anything to undo.
    pub(super) fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    /// Whether there is anything to redo.
    pub(super) fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::edit::{Change, Field};

    #[test]
    fn undo_and_redo_go_back_and_forth() {
        let first = Config::default();
        let second = Change::Number(Field::Dp, 1).applied(&first).unwrap();
        let mut history = History::default();
        history.leave(first.clone());
        assert_eq!(history.undo(&second), Some(first.clone()));
        assert!(!history.can_undo());
        assert_eq!(history.redo(&first), Some(second));
    }
}

//! What somebody wants of the board, and the keys for it.

use eframe::egui::{Key, Modifiers};

use crate::schedule::{Action, ScheduleKind};
use crate::ui::bindings::{key, shared};
use crate::ui::keys::{Binding, Group};
use crate::ui::wish::{Direction, Wish};
use crate::units::Pass;

/// Something that is shown besides the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ui) enum Aid {
    /// Which passes can be placed.
    Ready,
    /// The best known schedule, under the board.
    Reference,
    /// The chain of passes that makes it as long as it is.
    Path,
}

/// A board without rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ui) struct Free {
    /// How stages are placed, and the order to start from.
    pub(in crate::ui) kind: ScheduleKind,
    /// Pipeline ranks.
    pub(in crate::ui) ranks: usize,
    /// Micro-batches.
    pub(in crate::ui) micro_batches: usize,
    /// Chunks of a rank, where they can be chosen.
    pub(in crate::ui) chunks: usize,
}

/// Whether a free board starts empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ui) enum Start {
    /// With nothing on it.
    Empty,
    /// With the schedule on it.
    Filled,
}

/// A file of the board's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ui) enum FileWish {
    /// The form for it, or no longer.
    Form,
    /// Written.
    Save,
    /// Read.
    Open,
}

/// What somebody wants of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ui) enum Build {
    /// A level of the ladder; the one after the last is free.
    Level(usize),
    /// The next level, or the one before.
    NextLevel(Direction),
    /// Another rank.
    Rank(usize),
    /// The next rank, or the one before.
    NextRank(Direction),
    /// Another pass to be placed.
    Pick(Action),
    /// The next one, or the one before.
    NextPick(Direction),
    /// The chosen pass placed.
    Place,
    /// The next pass of a kind placed on the chosen rank.
    Next(Pass),
    /// A pass placed, at its earliest or at a chosen time.
    Put(Action, Option<u32>),
    /// A pass dropped on a rank's row at a time.
    Drop(usize, Action, u32),
    /// The chosen pass a unit later, or sooner.
    Wait(Direction),
    /// Why a placed pass starts when it does: on which rank, which of its passes.
    Explain(usize, usize),
    /// The last pass of the chosen rank taken back.
    TakeBack,
    /// The last move undone.
    Undo,
    /// And done again.
    Redo,
    /// Everything taken back.
    Reset,
    /// The next hint.
    Hint,
    /// More to be seen, or less.
    Aid(Aid),
    /// A free board of another size.
    Free(Free, Start),
    /// The order in a file.
    File(FileWish),
    /// The order run.
    Run,
}

const NONE: Modifiers = Modifiers::NONE;
const SHIFT: Modifiers = Modifiers::SHIFT;
const COMMAND: Modifiers = Modifiers::COMMAND;
const COMMAND_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);
const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

type Keys = &'static [(Modifiers, Key)];

/// A key that buttons know too.
const fn yields(shown: &'static str, keys: Keys, build: Build, does: &'static str) -> Binding {
    shared(Group::Building, shown, keys, Wish::Build(build), does)
}

const fn bound(shown: &'static str, keys: Keys, build: Build, does: &'static str) -> Binding {
    key(Group::Building, shown, keys, Wish::Build(build), does)
}

/// The keys while a schedule is built; they come before all others.
pub(in crate::ui) static BUILDING: &[Binding] = &[
    yields(
        "↓",
        &[(NONE, Key::ArrowDown)],
        Build::NextRank(UP),
        "choose the next GPU",
    ),
    yields(
        "↑",
        &[(NONE, Key::ArrowUp)],
        Build::NextRank(DOWN),
        "choose the GPU before",
    ),
    yields(
        "Shift →",
        &[(SHIFT, Key::ArrowRight)],
        Build::Wait(UP),
        "place it a unit later",
    ),
    yields(
        "Shift ←",
        &[(SHIFT, Key::ArrowLeft)],
        Build::Wait(DOWN),
        "a unit sooner",
    ),
    yields(
        "→",
        &[(NONE, Key::ArrowRight)],
        Build::NextPick(UP),
        "choose the next pass",
    ),
    yields(
        "←",
        &[(NONE, Key::ArrowLeft)],
        Build::NextPick(DOWN),
        "choose the pass before",
    ),
    yields(
        "Enter or Space",
        &[(NONE, Key::Enter), (NONE, Key::Space)],
        Build::Place,
        "place the chosen pass",
    ),
    bound(
        "F",
        &[(NONE, Key::F)],
        Build::Next(Pass::Forward),
        "place the next forward",
    ),
    bound(
        "B",
        &[(NONE, Key::B)],
        Build::Next(Pass::Backward),
        "place the next backward",
    ),
    bound(
        "I",
        &[(NONE, Key::I)],
        Build::Next(Pass::InputGrad),
        "place the next input-gradient",
    ),
    bound(
        "W",
        &[(NONE, Key::W)],
        Build::Next(Pass::WeightGrad),
        "place the next weight-gradient",
    ),
    yields(
        "Backspace or Delete",
        &[(NONE, Key::Backspace), (NONE, Key::Delete)],
        Build::TakeBack,
        "take the GPU's last pass back",
    ),
    bound(
        "Ctrl Shift Z or Ctrl Y",
        &[(COMMAND_SHIFT, Key::Z), (COMMAND, Key::Y)],
        Build::Redo,
        "do it again",
    ),
    bound(
        "Ctrl Z",
        &[(COMMAND, Key::Z)],
        Build::Undo,
        "undo the last move",
    ),
    bound("R", &[(NONE, Key::R)], Build::Reset, "an empty board"),
    bound("H", &[(NONE, Key::H)], Build::Hint, "a hint, then more"),
    bound(
        "A",
        &[(NONE, Key::A)],
        Build::Aid(Aid::Ready),
        "show what can be placed",
    ),
    bound(
        "X",
        &[(NONE, Key::X)],
        Build::Aid(Aid::Reference),
        "the best known schedule beneath",
    ),
    bound(
        "C",
        &[(NONE, Key::C)],
        Build::Aid(Aid::Path),
        "light the critical path",
    ),
    bound(
        "G",
        &[(NONE, Key::G)],
        Build::Run,
        "go: run it on emulated GPUs",
    ),
    bound(
        "S",
        &[(NONE, Key::S)],
        Build::File(FileWish::Form),
        "save or open it as CSV",
    ),
    yields(
        "Page down",
        &[(NONE, Key::PageDown)],
        Build::NextLevel(UP),
        "next level",
    ),
    yields(
        "Page up",
        &[(NONE, Key::PageUp)],
        Build::NextLevel(DOWN),
        "level before",
    ),
];

//! The keys: one table, which both answers to them and lists them under `?`.

use eframe::egui::{Key, Modifiers};

use super::edit::Field;
use super::keys::{Binding, Focus, Group};
use super::wish::{Direction, Look, Panel, Show, Travel, Wish};

const NONE: Modifiers = Modifiers::NONE;
const SHIFT: Modifiers = Modifiers::SHIFT;
const COMMAND: Modifiers = Modifiers::COMMAND;
const COMMAND_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

const fn key(
    group: Group,
    shown: &'static str,
    keys: &'static [(Modifiers, Key)],
    wish: Wish,
    does: &'static str,
) -> Binding {
    Binding {
        shown,
        does,
        group,
        wish,
        keys,
        focus: Focus::Ignores,
    }
}

/// A key that buttons and fields know too.
const fn shared(
    group: Group,
    shown: &'static str,
    keys: &'static [(Modifiers, Key)],
    wish: Wish,
    does: &'static str,
) -> Binding {
    Binding {
        shown,
        does,
        group,
        wish,
        keys,
        focus: Focus::Yields,
    }
}

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

/// All keys. Those with more modifiers come first, as the first that matches is taken.
pub(super) static BINDINGS: &[Binding] = &[
    shared(
        Group::Run,
        "Space or .",
        &[(NONE, Key::Space), (NONE, Key::Period)],
        Wish::Travel(Travel::PlayPause),
        "play or pause",
    ),
    shared(
        Group::Run,
        "Shift → or Page down",
        &[(SHIFT, Key::ArrowRight), (NONE, Key::PageDown)],
        Wish::Travel(Travel::StepForward),
        "one training step on; twice leaps",
    ),
    shared(
        Group::Run,
        "Shift ← or Page up",
        &[(SHIFT, Key::ArrowLeft), (NONE, Key::PageUp)],
        Wish::Travel(Travel::StepBack),
        "one training step back",
    ),
    shared(
        Group::Timeline,
        "Ctrl →",
        &[(COMMAND, Key::ArrowRight)],
        Wish::Look(Look::Later),
        "move on",
    ),
    shared(
        Group::Timeline,
        "Ctrl ←",
        &[(COMMAND, Key::ArrowLeft)],
        Wish::Look(Look::Earlier),
        "move back",
    ),
    shared(
        Group::Run,
        "→",
        &[(NONE, Key::ArrowRight)],
        Wish::Travel(Travel::EventForward),
        "to the next start or end of a pass",
    ),
    shared(
        Group::Run,
        "←",
        &[(NONE, Key::ArrowLeft)],
        Wish::Travel(Travel::EventBack),
        "to the last start or end of a pass",
    ),
    shared(
        Group::Run,
        "Home",
        &[(NONE, Key::Home)],
        Wish::Travel(Travel::StepStart),
        "start of this training step",
    ),
    shared(
        Group::Run,
        "End",
        &[(NONE, Key::End)],
        Wish::Travel(Travel::StepEnd),
        "end of this training step",
    ),
    key(
        Group::Run,
        "]",
        &[(NONE, Key::CloseBracket)],
        Wish::Travel(Travel::Faster),
        "faster",
    ),
    key(
        Group::Run,
        "[",
        &[(NONE, Key::OpenBracket)],
        Wish::Travel(Travel::Slower),
        "slower",
    ),
    key(
        Group::Run,
        "R",
        &[(NONE, Key::R)],
        Wish::Travel(Travel::Reset),
        "start anew with fresh weights",
    ),
    key(
        Group::Timeline,
        "F",
        &[(NONE, Key::F)],
        Wish::Look(Look::Fit),
        "fit the whole step",
    ),
    key(
        Group::Timeline,
        "+ or wheel",
        &[(NONE, Key::Plus), (NONE, Key::Equals)],
        Wish::Look(Look::ZoomIn),
        "zoom in",
    ),
    key(
        Group::Timeline,
        "−",
        &[(NONE, Key::Minus)],
        Wish::Look(Look::ZoomOut),
        "zoom out",
    ),
    shared(
        Group::Timeline,
        "↓",
        &[(NONE, Key::ArrowDown)],
        Wish::Look(Look::NextGpu),
        "light the next GPU and its groups",
    ),
    shared(
        Group::Timeline,
        "↑",
        &[(NONE, Key::ArrowUp)],
        Wish::Look(Look::PreviousGpu),
        "light the GPU before",
    ),
    key(
        Group::Timeline,
        "A",
        &[(NONE, Key::A)],
        Wish::Look(Look::Arrows),
        "arrows from sends to receives",
    ),
    key(
        Group::Layout,
        "Shift D",
        &[(SHIFT, Key::D)],
        Wish::Next(Field::Dp, DOWN),
        "data parallel, one less",
    ),
    key(
        Group::Layout,
        "D",
        &[(NONE, Key::D)],
        Wish::Next(Field::Dp, UP),
        "data parallel, one more",
    ),
    key(
        Group::Layout,
        "Shift T",
        &[(SHIFT, Key::T)],
        Wish::Next(Field::Tp, DOWN),
        "tensor parallel, one less",
    ),
    key(
        Group::Layout,
        "T",
        &[(NONE, Key::T)],
        Wish::Next(Field::Tp, UP),
        "tensor parallel, one more",
    ),
    key(
        Group::Layout,
        "Shift P",
        &[(SHIFT, Key::P)],
        Wish::Next(Field::Pp, DOWN),
        "pipeline parallel, one less",
    ),
    key(
        Group::Layout,
        "P",
        &[(NONE, Key::P)],
        Wish::Next(Field::Pp, UP),
        "pipeline parallel, one more",
    ),
    key(
        Group::Layout,
        "Shift M",
        &[(SHIFT, Key::M)],
        Wish::Next(Field::MicroBatches, DOWN),
        "micro-batches, one less",
    ),
    key(
        Group::Layout,
        "M",
        &[(NONE, Key::M)],
        Wish::Next(Field::MicroBatches, UP),
        "micro-batches, one more",
    ),
    key(
        Group::Layout,
        "Shift B",
        &[(SHIFT, Key::B)],
        Wish::Next(Field::MicroBatchSize, DOWN),
        "micro-batch size, one less",
    ),
    key(
        Group::Layout,
        "B",
        &[(NONE, Key::B)],
        Wish::Next(Field::MicroBatchSize, UP),
        "micro-batch size, one more",
    ),
    key(
        Group::Layout,
        "Shift C",
        &[(SHIFT, Key::C)],
        Wish::Next(Field::Chunks, DOWN),
        "chunks a GPU, one less",
    ),
    key(
        Group::Layout,
        "C",
        &[(NONE, Key::C)],
        Wish::Next(Field::Chunks, UP),
        "chunks a GPU, one more",
    ),
    key(
        Group::Layout,
        "S",
        &[(NONE, Key::S)],
        Wish::Next(Field::Schedule, UP),
        "next schedule",
    ),
    key(
        Group::Layout,
        "O",
        &[(NONE, Key::O)],
        Wish::Next(Field::Overlap, UP),
        "overlap on or off",
    ),
    key(
        Group::Layout,
        "Q",
        &[(NONE, Key::Q)],
        Wish::Next(Field::Sequence, UP),
        "sequence parallelism on or off",
    ),
    key(
        Group::Layout,
        "Z",
        &[(NONE, Key::Z)],
        Wish::Next(Field::Zero, UP),
        "ZeRO-1 on or off",
    ),
    key(
        Group::Layout,
        "G",
        &[(NONE, Key::G)],
        Wish::Next(Field::Sync, UP),
        "reduce gradients or not",
    ),
    key(
        Group::Layout,
        "N",
        &[(NONE, Key::N)],
        Wish::Next(Field::Model, UP),
        "next model",
    ),
    key(
        Group::Layout,
        "H",
        &[(NONE, Key::H)],
        Wish::Next(Field::Hardware, UP),
        "next hardware",
    ),
    key(
        Group::Layout,
        "W",
        &[(NONE, Key::W)],
        Wish::Next(Field::SlowGpu, UP),
        "slow down the next GPU",
    ),
    key(
        Group::Layout,
        "U",
        &[(NONE, Key::U)],
        Wish::Next(Field::SlowLink, UP),
        "slow down the next GPU's links",
    ),
    key(
        Group::Layout,
        "J",
        &[(NONE, Key::J)],
        Wish::Next(Field::Jitter, UP),
        "more jitter",
    ),
    key(
        Group::Layout,
        "Ctrl Shift Z or Ctrl Y",
        &[(COMMAND_SHIFT, Key::Z), (COMMAND, Key::Y)],
        Wish::Redo,
        "change it again",
    ),
    key(
        Group::Layout,
        "Ctrl Z",
        &[(COMMAND, Key::Z)],
        Wish::Undo,
        "undo the last change",
    ),
    key(
        Group::Window,
        "V",
        &[(NONE, Key::V)],
        Wish::Show(Show::Presenter),
        "larger text for a classroom",
    ),
    key(
        Group::Window,
        "L",
        &[(NONE, Key::L)],
        Wish::Show(Show::Theme),
        "light or dark",
    ),
    key(
        Group::Window,
        "K",
        &[(NONE, Key::K)],
        Wish::Show(Show::Controls),
        "fold the controls",
    ),
    key(
        Group::Window,
        "1",
        &[(NONE, Key::Num1)],
        Wish::Show(Show::Panel(Panel::Loss)),
        "panel with the loss",
    ),
    key(
        Group::Window,
        "2",
        &[(NONE, Key::Num2)],
        Wish::Show(Show::Panel(Panel::Mesh)),
        "panel with who holds what",
    ),
    key(
        Group::Window,
        "3",
        &[(NONE, Key::Num3)],
        Wish::Show(Show::Panel(Panel::Memory)),
        "panel with the memory",
    ),
    key(
        Group::Window,
        "4",
        &[(NONE, Key::Num4)],
        Wish::Show(Show::Panel(Panel::Replicas)),
        "panel with weights and text",
    ),
    key(
        Group::Window,
        "5",
        &[(NONE, Key::Num5)],
        Wish::Show(Show::Panel(Panel::Traffic)),
        "panel with the traffic",
    ),
    key(
        Group::Window,
        "6",
        &[(NONE, Key::Num6)],
        Wish::Show(Show::Panel(Panel::Bubble)),
        "panel with the bubble",
    ),
    key(
        Group::Window,
        "E",
        &[(NONE, Key::E)],
        Wish::Show(Show::Export),
        "save a picture or a trace",
    ),
    key(
        Group::Window,
        "?",
        &[(NONE, Key::Questionmark), (SHIFT, Key::Questionmark)],
        Wish::Show(Show::Help),
        "these keys",
    ),
    key(
        Group::Window,
        "Ctrl Q",
        &[(COMMAND, Key::Q)],
        Wish::Close,
        "close the window",
    ),
    shared(
        Group::Window,
        "Esc",
        &[(NONE, Key::Escape)],
        Wish::Dismiss,
        "close, deselect, forget a refusal",
    ),
];

//! What somebody wants: panels and keys collect wishes, and the application grants them in one place.

use super::builder::Build;
use super::edit::{Change, Field};
use super::lesson::Teach;
use super::view::Middle;
use crate::scene::Hit;
use crate::session::{Config, GuideSpec, SweepSpec};
use crate::trace::Area;
use crate::units::{Nanos, Rank};
use crate::words::{Language, mark};

/// A way through the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// Play, or pause.
    PlayPause,
    /// To the end of a training step.
    StepForward,
    /// To the end of the one before.
    StepBack,
    /// To where the next pass starts or ends on any GPU.
    EventForward,
    /// To where the last one did.
    EventBack,
    /// To the start of this training step.
    StepStart,
    /// To its end.
    StepEnd,
    /// To a time in this step.
    To(Nanos),
    /// A speed up.
    Faster,
    /// A speed down.
    Slower,
    /// Start anew with the same configuration.
    Reset,
}

/// A move of the timeline's part that is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All of it.
    Fit,
    /// Closer.
    ZoomIn,
    /// Further.
    ZoomOut,
    /// Earlier.
    Earlier,
    /// Later.
    Later,
    /// The next GPU selected.
    NextGpu,
    /// The one before.
    PreviousGpu,
    /// Arrows from sends to receives, or not.
    Arrows,
    /// What is selected, in all of the room.
    FitSelection,
    /// The span after the selected one on its lane.
    NextSpan,
    /// The span before it.
    PreviousSpan,
    /// Where the selected span's message, or its collective, goes on.
    AlongArrow,
    /// Where what it was made from comes from.
    AgainstArrow,
    /// A mark at the pointer, or at the playhead.
    Mark,
    /// No marks.
    ForgetMarks,
    /// Spans found by their names, or no longer.
    Search,
    /// To the next one found.
    NextFound,
    /// To the one found before.
    PreviousFound,
    /// Along with the playhead again.
    Follow,
    /// The chain behind what is selected, or the critical path, lit or no longer.
    Path,
    /// Rows folded in another way.
    Fold,
    /// Rows sorted by something else.
    Order,
    /// The chosen GPU's row at the top, or back in its place.
    Pin,
}

/// A panel under the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Panel {
    /// Loss against the one-GPU run.
    Loss,
    /// Who holds what.
    Mesh,
    /// Memory per GPU.
    Memory,
    /// Hashes of the replicas' weights, and text before and after.
    Replicas,
    /// What moved between GPUs.
    Traffic,
    /// Bubble against micro-batches.
    Bubble,
    /// What is selected on the timeline.
    Selection,
    /// What every GPU does at the playhead, in words.
    Now,
}

impl Panel {
    /// All of them, the most telling first.
    pub(super) const ALL: [Self; 8] = [
        Self::Loss,
        Self::Mesh,
        Self::Memory,
        Self::Replicas,
        Self::Traffic,
        Self::Bubble,
        Self::Selection,
        Self::Now,
    ];

    /// The name on its switch.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loss => mark!("Loss"),
            Self::Mesh => mark!("Who holds what"),
            Self::Memory => mark!("Memory"),
            Self::Replicas => mark!("Weights and text"),
            Self::Traffic => mark!("Traffic"),
            Self::Bubble => mark!("Bubble"),
            Self::Selection => mark!("Selection"),
            Self::Now => mark!("What happens now"),
        }
    }
}

/// A change to what is to be seen of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// A panel, or no longer.
    Panel(Panel),
    /// The controls, or no longer.
    Controls,
    /// Light colours, or dark ones.
    Theme,
    /// Larger text, or no longer.
    Presenter,
    /// The keys, or no longer.
    Help,
    /// Where to save a picture, or no longer.
    Export,
    /// Something in the timeline's place, or no longer.
    Middle(Middle),
    /// Texts in a language.
    Language(Language),
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wish {
    /// Another configuration.
    Change(Change),
    /// The next value of a control, or the one before.
    Next(Field, Direction),
    /// The offer of that number, of those that came with a refusal.
    TakeOffer(usize),
    /// The configuration before the last change.
    Undo,
    /// The change undone last.
    Redo,
    /// No more word of the refused change.
    Dismiss,
    /// Through the run.
    Travel(Travel),
    /// Another part of the timeline.
    Look(Look),
    /// More or less of the window.
    Show(Show),
    /// The groups of a GPU lit while it is pointed at, or nothing any more.
    Point(Option<Rank>),
    /// The groups of a GPU lit until another is chosen, or nothing any more.
    Choose(Option<Rank>),
    /// What was clicked on the timeline: its micro-batch is lit everywhere.
    Select(Option<Hit>),
    /// The same, and brought to where it is seen.
    GoTo(Hit),
    /// A part of the timeline whose figures are told.
    Area(Area),
    /// Every legal layout ranked.
    Sweep(Box<SweepSpec>),
    /// The layout to take, and why.
    Guide(Box<GuideSpec>),
    /// Another configuration, as a whole.
    Load(Box<Config>),
    /// The timeline kept, to compare others with it.
    Keep,
    /// The kept timeline of that number no longer.
    Forget(usize),
    /// None of them any longer.
    ForgetAll,
    /// A file with the picture or the trace.
    Save,
    /// The picture on the clipboard.
    Copy,
    /// Something of a lesson.
    Teach(Teach),
    /// A page of the lesson on or back; a training step where none is read. What remote controls send.
    Turn(Direction),
    /// Something on the board of a schedule built by hand.
    Build(Build),
    /// All of the screen, or a window again.
    FullScreen,
    /// A class kit on the clipboard.
    CopyKit,
    /// What a class kit restores.
    LoadKit(String),
    /// The end of the program.
    Close,
}

impl Wish {
    /// The GPU to be lit, if that is what is wished for.
    pub(super) fn pointed_at(&self) -> Option<Rank> {
        if let Self::Point(rank) = self {
            *rank
        } else {
            None
        }
    }
}

/// Which way a control goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the next value.
    Up,
    /// To the one before.
    Down,
}

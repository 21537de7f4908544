//! A schedule built by hand in place of the timeline: a ladder of levels, a grid, passes to place on it, what is wrong with a
//! move in words, and the way from there to a run.

mod canvas;
mod grid;
mod head;
mod play;
mod side;
mod tray;
mod ways;
mod wishes;

pub(super) use wishes::{Aid, BUILDING, Build};

use eframe::egui::{Align, Layout, Ui, vec2};

use crate::lesson::build::{
    Board, Figures, Hint, LADDER, Level, Likeness, Placed, Progress, Reference, Step,
};
use crate::schedule::{Action, ScheduleKind};
use crate::session::{Config, Timeline};

use super::view::View;
use super::wish::{Direction, Wish};
use wishes::Free;

/// A board with what belongs to its level.
#[derive(Debug)]
struct Sheet {
    board: Board,
    /// The known schedules that keep to its rules, the best first.
    references: Vec<Reference>,
}

impl Sheet {
    fn new(board: Board) -> Self {
        Self {
            references: board.level().references(),
            board,
        }
    }
}

/// How what was said is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    /// What was done.
    Plain,
    /// What cannot be.
    Wrong,
    /// What is done well.
    Good,
}

/// What is known of a board as it is now.
#[derive(Debug)]
struct Known {
    figures: Figures,
    likeness: Likeness,
    /// The passes of each rank that can be placed.
    ready: Vec<usize>,
    path: Vec<(usize, Placed)>,
    score: Option<u32>,
    stars: Option<u8>,
}

impl Known {
    fn of(board: &Board) -> Self {
        Self {
            figures: board.figures(),
            likeness: board.recognise(),
            ready: (0..board.level().ranks)
                .map(|rank| board.ready_set(rank).len())
                .collect(),
            path: board.critical_path(),
            score: board.score(),
            stars: board.stars(),
        }
    }
}

/// The file that the order is saved to or read from.
#[derive(Debug)]
struct FileForm {
    path: String,
    open: bool,
}

/// A schedule that can be run, and its timeline as it was drawn.
pub(super) type Built = Box<(Config, Timeline)>;

/// The panel.
#[derive(Debug)]
pub(super) struct Builder {
    /// One for each level of the ladder, and a free one.
    sheets: Vec<Sheet>,
    at: usize,
    free: Free,
    progress: Progress,
    /// The chosen rank, and the pass that is to be placed on it.
    rank: usize,
    pick: Option<Action>,
    /// How much later than at its earliest.
    wait: u32,
    said: Option<(Tone, String)>,
    hint: Option<(Step, Hint)>,
    aids: Vec<Aid>,
    file: FileForm,
    known: Known,
}

/// What a free board is at first.
const FREE: Free = Free {
    kind: ScheduleKind::OneFOneB,
    ranks: 4,
    micro_batches: 8,
    chunks: 2,
};

impl Default for Builder {
    fn default() -> Self {
        let free = Level::free(FREE.kind, FREE.ranks, FREE.micro_batches, FREE.chunks);
        let levels = LADDER.iter().map(|level| (*level).clone()).chain(free.ok());
        let boards = levels.filter_map(|level| Board::new(level).ok());
        let sheets: Vec<Sheet> = boards.map(Sheet::new).collect();
        let known = Known::of(&sheets[0].board);
        let mut builder = Self {
            sheets,
            at: 0,
            free: FREE,
            progress: Progress::default(),
            rank: 0,
            pick: None,
            wait: 0,
            said: None,
            hint: None,
            aids: Vec::new(),
            file: FileForm {
                path: "schedule.csv".to_owned(),
                open: false,
            },
            known,
        };
        builder.pick = builder.first_pick();
        builder
    }
}

impl Builder {
    /// With what was solved in earlier starts.
    pub(super) fn resumed(progress: Progress) -> Self {
        Self {
            progress,
            ..Self::default()
        }
    }

    fn sheet(&self) -> &Sheet {
        &self.sheets[self.at]
    }

    /// The board that is shown.
    pub(super) fn board(&self) -> &Board {
        &self.sheet().board
    }

    fn board_mut(&mut self) -> &mut Board {
        &mut self.sheets[self.at].board
    }

    /// Which levels were solved.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What was said last.
    pub(super) fn said(&self) -> Option<&str> {
        self.said.as_ref().map(|(_, text)| text.as_str())
    }

    fn is_free(&self) -> bool {
        self.at == LADDER.len()
    }

    fn shows(&self, aid: Aid) -> bool {
        self.aids.contains(&aid)
    }

    fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.said = Some((tone, text.into()));
    }

    /// Closes the form or forgets the hint; whether there was any.
    pub(super) fn dismiss(&mut self) -> bool {
        let open = std::mem::take(&mut self.file.open);
        open || self.hint.take().is_some()
    }

    /// Does what is wished for; what is to be run, if that is it.
    pub(super) fn grant(&mut self, build: Build, base: &Config) -> Option<Built> {
        match build {
            Build::Run => return self.run(base),
            Build::Level(at) => self.turn_to(at),
            Build::NextLevel(direction) => {
                self.turn_to(step(self.at, direction, self.sheets.len()));
            }
            Build::Rank(rank) => self.choose(rank),
            Build::NextRank(direction) => {
                self.choose(step(self.rank, direction, self.board().level().ranks));
            }
            Build::Pick(action) => (self.pick, self.wait) = (Some(action), 0),
            Build::NextPick(direction) => self.next_pick(direction),
            Build::Place => self.place_pick(),
            Build::Next(pass) => self.place_next(pass),
            Build::Put(action, at) => self.put(action, at),
            Build::Drop(rank, action, time) => {
                let at = self.drop_time(rank, action, time);
                self.rank = rank.min(self.board().level().ranks - 1);
                self.put(action, Some(at));
            }
            Build::Wait(Direction::Up) => self.wait = self.wait.saturating_add(1),
            Build::Wait(Direction::Down) => self.wait = self.wait.saturating_sub(1),
            Build::Explain(rank, index) => self.explain(rank, index),
            Build::TakeBack => self.take_back(),
            Build::Undo => {
                let done = self.board_mut().undo();
                self.moved(done, "Undone", "There is nothing to undo");
            }
            Build::Redo => {
                let done = self.board_mut().redo();
                self.moved(done, "Done again", "There is nothing to do again");
            }
            Build::Reset => {
                self.board_mut().reset();
                self.moved(true, "An empty board; Ctrl Z brings everything back", "");
            }
            Build::Hint => self.next_hint(),
            Build::Aid(aid) => self.toggle(aid),
            Build::Free(free, start) => self.set_free(free, start),
            Build::File(wish) => self.file(wish),
        }
        None
    }

    fn turn_to(&mut self, at: usize) {
        self.at = at.min(self.sheets.len() - 1);
        self.rank = 0;
        (self.said, self.hint, self.pick) = (None, None, None);
        self.refresh();
    }

    fn choose(&mut self, rank: usize) {
        self.rank = rank.min(self.board().level().ranks - 1);
        self.pick = None;
        self.refresh();
    }

    fn toggle(&mut self, aid: Aid) {
        if self.shows(aid) {
            self.aids.retain(|shown| *shown != aid);
        } else {
            self.aids.push(aid);
        }
    }

    /// Looks at the board anew.
    fn refresh(&mut self) {
        self.wait = 0;
        self.known = Known::of(self.board());
        let open = |action: &Action| self.board().find(*action).is_none();
        let own = |action: &Action| {
            self.board().level().holders.get(action.stage as usize) == Some(&self.rank)
        };
        self.pick = self.pick.filter(|pick| open(pick) && own(pick));
        if self.pick.is_none() {
            self.pick = self.first_pick();
        }
    }

    /// The passes of the chosen rank that are not placed yet.
    fn open_passes(&self) -> Vec<Action> {
        let all = self.board().level().passes_of(self.rank);
        all.filter(|action| self.board().find(*action).is_none())
            .collect()
    }

    /// The first pass that can be placed, or else the first that is still to be.
    fn first_pick(&self) -> Option<Action> {
        let open = self.open_passes();
        let ready = |action: &&Action| self.board().why_not(self.rank, **action).is_ok();
        open.iter().find(ready).or(open.first()).copied()
    }

    /// Shows the panel.
    pub(super) fn show(&mut self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        self.head(ui, view, wishes);
        let em = view.sizes().body;
        let room = ui.available_size();
        let side = (room.x * 0.27).clamp(em * 18.0, em * 26.0);
        let down = Layout::top_down(Align::Min);
        ui.horizontal_top(|ui| {
            let left = vec2(room.x - side - em, room.y);
            ui.allocate_ui_with_layout(left, down, |ui| {
                ui.set_min_size(left);
                let tray = self.tray_height(left.x, view);
                let grid = vec2(left.x, (room.y - tray).max(em * 8.0));
                self.grid(ui, grid, view, wishes);
                self.tray(ui, view, wishes);
            });
            ui.allocate_ui_with_layout(vec2(side, room.y), down, |ui| {
                self.side(ui, view, wishes);
            });
        });
    }
}

fn wish(build: Build) -> Wish {
    Wish::Build(build)
}

/// The next of `count`, or the one before; it ends at the ends.
fn step(at: usize, direction: Direction, count: usize) -> usize {
    match direction {
        Direction::Up => (at + 1).min(count.saturating_sub(1)),
        Direction::Down => at.saturating_sub(1),
    }
}

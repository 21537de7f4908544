//! A schedule built by hand in place of the timeline: a ladder of levels, a grid, passes to place on it, what is wrong with a
//! move in words, and the way from there to a run.

mod grid;
mod head;
mod side;
mod tray;
mod wishes;

pub(super) use wishes::{Aid, BUILDING, Build};

use std::path::Path;

use eframe::egui::{Align, Layout, Ui, vec2};

use crate::export::{read_text, write_text};
use crate::lesson::build::{
    Board, Figures, Hint, LADDER, Level, Likeness, Placed, Progress, Reference, Step, short,
};
use crate::schedule::{Action, ScheduleKind};
use crate::session::{Config, Timeline};
use crate::units::Pass;

use super::view::View;
use super::wish::{Direction, Wish};
use wishes::{FileWish, Free, Start};

/// The most bytes of a schedule's file.
const MOST_BYTES: u64 = 1 << 20;

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
                self.turn_to(step(self.at, direction, self.sheets.len()))
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

    fn next_pick(&mut self, direction: Direction) {
        let open = self.open_passes();
        if open.is_empty() {
            return;
        }
        let at = open.iter().position(|action| Some(*action) == self.pick);
        let count = open.len();
        let next = match (at, direction) {
            (None, _) => 0,
            (Some(at), Direction::Up) => (at + 1) % count,
            (Some(at), Direction::Down) => (at + count - 1) % count,
        };
        (self.pick, self.wait) = (Some(open[next]), 0);
    }

    fn place_pick(&mut self) {
        let Some(action) = self.pick else {
            self.say(
                Tone::Plain,
                format!("GPU {} has nothing left to place", self.rank),
            );
            return;
        };
        let earliest = self
            .board()
            .why_not(self.rank, action)
            .map(|ready| ready.start);
        let at = earliest.ok().filter(|_| self.wait > 0);
        self.put(action, at.map(|start| start.saturating_add(self.wait)));
    }

    /// The pass of that kind that can start first; if none can, why the first one cannot.
    fn place_next(&mut self, pass: Pass) {
        let ready = self.board().ready_set(self.rank);
        let of_kind = ready.iter().filter(|ready| ready.action.pass == pass);
        let first = of_kind.min_by_key(|ready| (ready.start, ready.action.micro_batch));
        let open = self.open_passes();
        let next = first.map(|ready| ready.action).or_else(|| {
            let mut of_kind = open.iter().filter(|action| action.pass == pass);
            of_kind.next().copied()
        });
        match next {
            Some(action) => self.put(action, None),
            None if self.board().level().has(pass) => self.say(
                Tone::Wrong,
                format!("GPU {} has no {} left to place.", self.rank, pass.letter()),
            ),
            None => {
                let splits = self.board().level().splits();
                let rule = if splits {
                    "in two, I and then W"
                } else {
                    "whole, B"
                };
                self.say(Tone::Wrong, format!("The backward pass is {rule} here."));
            }
        }
    }

    fn put(&mut self, action: Action, at: Option<u32>) {
        let rank = self.rank;
        let waits = self.board().why_not(rank, action).ok();
        match self.board_mut().place(rank, action, at) {
            Ok(placed) => {
                self.hint = None;
                let name = self.board().level().words(action);
                let waited = waits.filter(|_| at.is_none()).and_then(|ready| ready.waits);
                let waited = waited.map_or(String::new(), |(other, holder)| {
                    let other = self.board().level().words(other);
                    format!(", when {other} of GPU {holder} is ready")
                });
                self.say(
                    Tone::Plain,
                    format!("GPU {rank}: {name} at {}{waited}", placed.start),
                );
                self.pick = self.after(action);
                self.refresh();
                self.judge();
            }
            Err(why) => {
                if self.board().find(action).is_none() {
                    self.pick = Some(action);
                }
                self.say(Tone::Wrong, why.to_string());
            }
        }
    }

    /// The next micro-batch of the same kind, if it can be placed.
    fn after(&self, action: Action) -> Option<Action> {
        let next = Action {
            micro_batch: action.micro_batch + 1,
            ..action
        };
        let ready = self.board().why_not(self.rank, next);
        ready.ok().map(|ready| ready.action)
    }

    /// Says so when everything is placed, or nothing more can be.
    fn judge(&mut self) {
        if self.board().is_complete() {
            let (units, par) = (self.known.score.unwrap_or_default(), self.par());
            let Self {
                progress,
                sheets,
                at,
                ..
            } = self;
            progress.note(&sheets[*at].board);
            let beside = match par {
                Some(par) if units < par => {
                    format!(": better than any schedule known here (par {par})")
                }
                Some(par) if units == par => format!(", which is par"),
                Some(par) => format!(", par is {par}"),
                None => String::new(),
            };
            let text = format!(
                "All placed: {units} units{beside}. {}. Run it (G) to train by it.",
                self.known.likeness.words()
            );
            self.say(Tone::Good, text);
        } else if self.known.ready.iter().all(|&ready| ready == 0) {
            self.say(
                Tone::Wrong,
                "Stuck: no GPU can place anything more. Take something back (Backspace), so that a backward finds memory.",
            );
        }
    }

    fn par(&self) -> Option<u32> {
        self.sheet().references.first().map(|best| best.score)
    }

    fn explain(&mut self, rank: usize, index: usize) {
        let row = self.board().rows().get(rank);
        let Some(&placed) = row.and_then(|row| row.get(index)) else {
            return;
        };
        let text = self.why(rank, placed);
        self.choose(rank);
        self.say(Tone::Plain, text);
    }

    /// Why a placed pass starts when it does.
    fn why(&self, rank: usize, placed: Placed) -> String {
        let board = self.board();
        let (start, end) = (placed.start, board.end(placed));
        let name = board.level().words(placed.action);
        let cause = match board.cause(rank, placed) {
            None if start == 0 => "nothing comes before it".to_owned(),
            None => "it was placed later than it could be".to_owned(),
            Some((_, other)) if board.end(other) < start => {
                "it was placed later than it could be".to_owned()
            }
            Some((of, other)) if of == rank => {
                format!(
                    "GPU {rank} was busy with {} until then",
                    short(other.action)
                )
            }
            Some((of, other)) => {
                let other = board.level().words(other.action);
                format!("it waited for {other} of GPU {of}")
            }
        };
        format!("GPU {rank}: {name} from {start} to {end}; {cause}")
    }

    fn take_back(&mut self) {
        let rank = self.rank;
        let gone = self.board_mut().take_back(rank);
        let text = match gone.as_slice() {
            [] => format!("GPU {rank} has nothing to take back"),
            [(_, placed)] => format!("Took {} of GPU {rank} back", short(placed.action)),
            [(_, placed), others @ ..] => format!(
                "Took {} of GPU {rank} back, and {} passes that came of it",
                short(placed.action),
                others.len()
            ),
        };
        let first = gone.first().map(|(_, placed)| placed.action);
        self.moved(!gone.is_empty(), &text, &text);
        self.pick = first.or(self.pick);
    }

    fn moved(&mut self, done: bool, yes: &str, no: &str) {
        if done {
            self.hint = None;
            self.refresh();
        }
        self.say(Tone::Plain, if done { yes } else { no });
    }

    /// The next step of the hint; after the last one the move itself.
    fn next_hint(&mut self) {
        let next = match &self.hint {
            None => Step::Concept,
            Some((Step::Concept, _)) => Step::Principle,
            Some((Step::Principle, _)) => Step::Move,
            Some((Step::Move, hint)) => {
                if let Some((rank, ready)) = hint.next {
                    self.rank = rank;
                    self.put(ready.action, None);
                    // From now on, moves.
                    self.hint = Some((Step::Move, self.board().hint(Step::Move)));
                }
                return;
            }
        };
        self.hint = Some((next, self.board().hint(next)));
    }

    fn set_free(&mut self, free: Free, start: Start) {
        self.free = free;
        let Free {
            kind,
            ranks,
            micro_batches,
            chunks,
        } = free;
        let board = match start {
            Start::Empty => Level::free(kind, ranks, micro_batches, chunks)
                .and_then(Board::new)
                .map_err(|why| why.to_string()),
            Start::Filled => kind
                .build(ranks, micro_batches, of(kind, chunks))
                .map_err(|why| why.to_string())
                .and_then(|schedule| {
                    Board::from_schedule(&schedule).map_err(|why| why.to_string())
                }),
        };
        match board {
            Ok(board) => self.put_free(board),
            Err(why) => self.say(Tone::Wrong, format!("{why}.")),
        }
    }

    /// A board in the free one's place.
    fn put_free(&mut self, board: Board) {
        self.sheets[LADDER.len()] = Sheet::new(board);
        self.turn_to(LADDER.len());
    }

    fn file(&mut self, wish: FileWish) {
        let path = self.file.path.trim().to_owned();
        let path = Path::new(&path);
        let outcome = match wish {
            FileWish::Form => {
                self.file.open = !self.file.open;
                return;
            }
            FileWish::Save => self.save(path),
            FileWish::Open => self.open(path),
        };
        match outcome {
            Ok(text) => self.say(Tone::Good, text),
            Err(text) => self.say(Tone::Wrong, text),
        }
    }

    fn save(&self, path: &Path) -> Result<String, String> {
        let csv = self.board().to_csv();
        let csv = csv.map_err(|why| format!("Not saved: {why}."))?;
        write_text(path, &csv).map_err(|why| why.to_string())?;
        let shown = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(format!(
            "Saved {}, in PyTorch's format: --schedule takes it too",
            shown.display()
        ))
    }

    /// An order from a file on the free board; one that would hang is refused with the ranks that wait.
    fn open(&mut self, path: &Path) -> Result<String, String> {
        let text = read_text(path, MOST_BYTES).map_err(|why| why.to_string())?;
        let board = Board::from_csv(&text).map_err(|why| format!("Not opened: {why}."))?;
        self.put_free(board);
        Ok(format!("Opened {} on the free board", path.display()))
    }

    /// What runs by the board's order; what is still missing, or wrong, is said.
    fn run(&mut self, base: &Config) -> Option<Built> {
        let board = self.board();
        let built = board.to_config(base).map_err(|why| why.to_string());
        let built = built.and_then(|config| {
            let both = || {
                let real = Timeline::simulated(&config, "simulated")?;
                board.drawn(&config, &real.trace)
            };
            let drawn = both().map_err(|why| why.to_string())?;
            Ok(Box::new((config, drawn)))
        });
        match built {
            Ok(built) => Some(built),
            Err(why) => {
                self.say(Tone::Wrong, format!("It cannot run: {why}."));
                None
            }
        }
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

/// Chunks of a rank under a schedule, where `chunks` were chosen.
fn of(kind: ScheduleKind, chunks: usize) -> usize {
    match kind.chunks() {
        crate::schedule::Chunks::Loop => chunks,
        crate::schedule::Chunks::One | crate::schedule::Chunks::Vee => kind.chunks().count(),
    }
}

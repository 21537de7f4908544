//! Ways to a board and from it: a free one of any size, files, the run.

use std::path::Path;

use crate::export::{read_text, write_text};
use crate::lesson::build::{Board, LADDER, Level};
use crate::schedule::{Chunks, ScheduleKind};
use crate::session::{Config, Timeline};

use super::wishes::{FileWish, Free, Start};
use super::{Builder, Built, Sheet, Tone};

/// The most bytes of a schedule's file.
const MOST_BYTES: u64 = 1 << 20;

impl Builder {
    pub(super) fn set_free(&mut self, free: Free, start: Start) {
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

    pub(super) fn file(&mut self, wish: FileWish) {
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
    pub(super) fn run(&mut self, base: &Config) -> Option<Built> {
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
}

/// Chunks of a rank under a schedule, where `chunks` were chosen.
fn of(kind: ScheduleKind, chunks: usize) -> usize {
    match kind.chunks() {
        Chunks::Loop => chunks,
        Chunks::One | Chunks::Vee => kind.chunks().count(),
    }
}

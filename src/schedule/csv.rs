//! PyTorch's CSV of pipeline schedules: a row a rank, a cell a turn, written and read.

use super::{Action, Schedule, ScheduleError, Turn};
use crate::units::Pass;

/// What PyTorch puts behind a pair of actions that overlap.
const OVERLAP: &str = "OVERLAP_F_B";

impl Schedule {
    /// As PyTorch writes it: `0F0,0F1,0B0,0B1`, a row a rank.
    pub fn to_csv(&self) -> String {
        let row = |turns: &Vec<Turn>| match turns.as_slice() {
            // An empty line would be no rank.
            [] => ",\n".to_owned(),
            turns => turns.iter().map(cell).collect::<Vec<_>>().join(",") + "\n",
        };
        self.rows().iter().map(row).collect()
    }

    /// From PyTorch's CSV. Empty cells, as it writes for a rank with nothing to do, are skipped.
    pub fn from_csv(text: &str) -> Result<Self, ScheduleError> {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .enumerate();
        let rows = lines
            .map(|(row, line)| read_row(row + 1, line))
            .collect::<Result<_, _>>()?;
        Self::from_rows(rows)
    }
}

fn cell(turn: &Turn) -> String {
    match turn {
        Turn::One(action) => action.to_string(),
        Turn::Pair(forward, backward) => format!("({forward};{backward}){OVERLAP}"),
    }
}

fn read_row(row: usize, line: &str) -> Result<Vec<Turn>, ScheduleError> {
    let cells = line
        .split(',')
        .map(str::trim)
        .enumerate()
        .filter(|(_, text)| !text.is_empty());
    cells
        .map(|(cell, text)| {
            let wrong = || ScheduleError::Cell {
                row,
                cell: cell + 1,
                text: shortened(text),
            };
            read_turn(text).ok_or_else(wrong)
        })
        .collect()
}

/// At most what fits a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

fn read_turn(text: &str) -> Option<Turn> {
    let Some(rest) = text.strip_prefix('(') else {
        return read_action(text).map(Turn::One);
    };
    let (forward, backward) = rest
        .strip_suffix(OVERLAP)?
        .strip_suffix(')')?
        .split_once(';')?;
    let (forward, backward) = (read_action(forward)?, read_action(backward)?);
    let is_pair = forward.pass == Pass::Forward && backward.pass == Pass::Backward;
    is_pair.then_some(Turn::Pair(forward, backward))
}

fn read_action(text: &str) -> Option<Action> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (stage, rest) = text.split_at(at);
    let mut rest = rest.chars();
    let pass = Pass::from_letter(rest.next()?)?;
    let micro_batch = rest.as_str();
    if !micro_batch.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let small = |digits: &str| digits.parse::<u16>().ok().map(u32::from);
    Some(Action {
        stage: small(stage)?,
        pass,
        micro_batch: small(micro_batch)?,
    })
}

//! `shardscope schedule`: an order of work, as CSV, as a grid, as a picture.

use super::args::ScheduleFormat;
use super::error::{CliError, CliResult};
use super::options::ScheduleOptions;
use super::output::print;
use crate::export::{Fonts, picture, svg};
use crate::session::{Config, Report, Timeline};
use crate::trace::{Kind, Span, Stream, Trace};
use crate::units::{Nanos, percent};

/// The most characters of a grid.
const MOST_CELLS: usize = 1 << 24;

/// Prints it.
pub(super) fn run(options: &ScheduleOptions) -> CliResult {
    let config = &options.config;
    let schedule = config.schedule()?;
    match options.format {
        ScheduleFormat::Csv => print(&schedule.to_csv()),
        ScheduleFormat::Text => {
            let Timeline { trace, report, .. } = Timeline::simulated(config, "simulated")?;
            print(&grid(config, &trace, &report)?)
        }
        ScheduleFormat::Svg => {
            let Timeline { trace, report, .. } = Timeline::simulated(config, "simulated")?;
            print(&svg(&picture(&report).scene(&trace), Fonts::Embedded))
        }
    }
}

/// A row a rank, each pass as wide as it takes on unit time.
fn grid(config: &Config, trace: &Trace, report: &Report) -> CliResult<String> {
    let unit = Nanos::from_millis(1.0).0 / config.layout.chunks.max(1) as u64;
    let grid = Grid {
        trace,
        unit,
        by_stage: config.layout.chunks > 1,
    };
    let width = grid.cell_width();
    let units = grid.unit_at(trace.makespan);
    let cells = units
        .saturating_mul(width)
        .saturating_mul(trace.ranks.len());
    if cells > MOST_CELLS {
        return Err(CliError::refused(format!(
            "{units} units of {} ranks are too many to read as text; ask for fewer micro-batches or stages, or for \
             --format csv",
            trace.ranks.len()
        )));
    }
    let mut text = grid.axis(width);
    for rank in 0..trace.ranks.len() {
        text += &grid.row(rank, width);
    }
    let bubble = percent(report.bubble_of_total);
    let formula = config.bubble_formula().map_or(String::new(), |share| {
        format!(", textbook {}", percent(share))
    });
    Ok(text
        + &format!(
            "{units} units of time (F = I = W = 1, B = 2); bubble of total {bubble}{formula}\n"
        ))
}

/// A trace on unit time, to be drawn in characters.
struct Grid<'a> {
    trace: &'a Trace,
    /// Nanoseconds of a unit.
    unit: u64,
    /// Whether a rank has several stages, so that each pass names its own.
    by_stage: bool,
}

impl Grid<'_> {
    fn passes(&self, rank: usize) -> impl Iterator<Item = &Span> {
        let is_pass = |span: &&Span| self.trace.label(span.label).kind == Kind::Pass;
        self.trace
            .lane(rank, Stream::Passes)
            .spans()
            .iter()
            .filter(is_pass)
    }

    fn name(&self, span: &Span) -> String {
        let label = self.trace.label(span.label);
        match label.stage {
            Some(stage) if self.by_stage => format!("{stage}{}", label.short()),
            Some(_) | None => label.short(),
        }
    }

    fn unit_at(&self, time: Nanos) -> usize {
        let unit = self.unit.max(1);
        ((time.0 + unit / 2) / unit) as usize
    }

    /// Room for the longest name, in one unit, with its border.
    fn cell_width(&self) -> usize {
        let names = (0..self.trace.ranks.len()).flat_map(|rank| self.passes(rank));
        1 + names
            .map(|span| self.name(span).chars().count())
            .max()
            .unwrap_or(1)
            .max(2)
    }

    fn axis(&self, width: usize) -> String {
        let ticks =
            (0..self.unit_at(self.trace.makespan)).map(|unit| format!(" {unit:<0$}", width - 1));
        let axis = "unit    ".to_owned() + &ticks.collect::<String>();
        axis.trim_end().to_owned() + "\n"
    }

    fn row(&self, rank: usize, width: usize) -> String {
        let units = self.unit_at(self.trace.makespan);
        let mut cells = vec![' '; units * width + 1];
        // A dot in the middle of each idle unit.
        for unit in 0..units {
            cells[unit * width + width.div_ceil(2)] = '·';
        }
        for span in self.passes(rank) {
            let (from, to) = (
                self.unit_at(span.start) * width,
                self.unit_at(span.end) * width,
            );
            cells[from..=to].fill(' ');
            (cells[from], cells[to]) = ('│', '│');
            for (cell, letter) in cells[from + 1..to].iter_mut().zip(self.name(span).chars()) {
                *cell = letter;
            }
        }
        let row = format!("rank {rank:<3}") + &cells.into_iter().collect::<String>();
        row.trim_end().to_owned() + "\n"
    }
}

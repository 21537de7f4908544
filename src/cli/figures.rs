//! A run's figures as text: what was run, its figures, each rank's share of the step, what moved.

use super::table::{Align, Table};
use crate::session::{RankReport, Report, StepReport, TrafficReport};
use crate::units::{Bytes, Nanos, three_digits};

/// With more ranks than this, those that are alike share a row.
const FEW_RANKS: usize = 16;
/// The most rows of ranks or steps.
const MOST_ROWS: usize = 32;
/// The most ranks of a group that are listed.
const MOST_MEMBERS: usize = 8;

/// All of a report.
pub(super) fn text(report: &Report) -> String {
    let mut parts = vec![head(report)];
    parts.extend((!report.steps.is_empty()).then(|| steps(&report.steps)));
    parts.push(figures(report));
    parts.push(ranks(&report.ranks, report.makespan_s));
    parts.extend((!report.traffic.is_empty()).then(|| traffic(&report.traffic)));
    parts.join("\n")
}

/// What was run, on what, and how the times came about.
fn head(report: &Report) -> String {
    let about: Vec<String> = std::iter::once(report.model_line())
        .chain(report.hardware_line())
        .chain([report.engine_line()])
        .collect();
    format!("{}\n{}\n", report.config.layout_line(), about.join(" · "))
}

fn figures(report: &Report) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
    for figure in report.figures() {
        table.row([figure.name.to_owned(), figure.value, figure.note]);
    }
    table.render()
}

fn steps(steps: &[StepReport]) -> String {
    let mut table = Table::new(&[Align::Right]);
    table.row(["step", "loss", "gradient norm", "time"]);
    // Evenly spread, the last one always among them.
    let every = steps.len().div_ceil(MOST_ROWS);
    let shown = (0..steps.len()).filter(|index| (steps.len() - 1 - index).is_multiple_of(every));
    for index in shown {
        let step = &steps[index];
        table.row([
            index.to_string(),
            format!("{:.4}", step.loss),
            format!("{:.4}", step.grad_norm),
            Nanos::from_secs(step.time_s).to_string(),
        ]);
    }
    table.render()
}

/// A unit for all times of a table, so that they compare at a glance.
fn unit_of(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e3),
        _ => ("µs", 1e6),
    }
}

/// Each rank's share of a step of `makespan_s`.
pub(super) fn ranks(ranks: &[RankReport], makespan_s: f64) -> String {
    let rows = folded(ranks);
    let (unit, scale) = unit_of(makespan_s);
    let time = |seconds: f64| three_digits(seconds * scale);
    let is_folded = rows.iter().any(|(_, count)| *count > 1);
    let has_memory = ranks
        .iter()
        .any(|rank| rank.peak_memory_bytes.total() > Bytes::ZERO);
    let mut table = Table::new(&[Align::Right]);
    let mut head = vec!["rank".to_owned()];
    head.extend(is_folded.then(|| "alike".to_owned()));
    head.extend(["dp", "tp", "pp"].map(str::to_owned));
    head.extend(["compute", "transfer", "waiting", "idle"].map(|name| format!("{name} {unit}")));
    head.push("in flight".to_owned());
    head.extend(has_memory.then(|| "peak memory".to_owned()));
    table.row(head);
    for (rank, alike) in rows.iter().take(MOST_ROWS) {
        let mut cells = vec![rank.rank.to_string()];
        cells.extend(is_folded.then(|| format!("× {alike}")));
        cells.extend([rank.dp, rank.tp, rank.pp].map(|at| at.to_string()));
        let split = [rank.compute_s, rank.transfer_s, rank.wait_s, rank.idle_s];
        cells.extend(split.map(time));
        cells.push(rank.peak_in_flight.to_string());
        cells.extend(has_memory.then(|| rank.peak_memory_bytes.total().to_string()));
        table.row(cells);
    }
    let more = rows.len().saturating_sub(MOST_ROWS);
    if more == 0 {
        return table.render();
    }
    format!(
        "{}  … and {more} more; --json has them all\n",
        table.render()
    )
}

/// Ranks with how many are like each: all of one pipeline position with the same figures, if there are many.
fn folded(ranks: &[RankReport]) -> Vec<(RankReport, u32)> {
    if ranks.len() <= FEW_RANKS {
        return ranks.iter().map(|&rank| (rank, rank.count)).collect();
    }
    let mut rows: Vec<(RankReport, u32)> = Vec::new();
    for &rank in ranks {
        let alike = |(row, _): &&mut (RankReport, u32)| {
            let RankReport {
                rank: number,
                dp,
                tp,
                ..
            } = *row;
            row.pp == rank.pp
                && *row
                    == RankReport {
                        rank: number,
                        dp,
                        tp,
                        ..rank
                    }
        };
        match rows.iter_mut().find(alike) {
            Some((_, count)) => *count += rank.count,
            None => rows.push((rank, rank.count)),
        }
    }
    rows
}

fn traffic(traffic: &[TrafficReport]) -> String {
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Right]);
    table.row([
        "group",
        "kind",
        "ranks",
        "groups alike",
        "count",
        "size",
        "on the wire",
        "time",
        "bus bandwidth",
    ]);
    for row in traffic {
        table.row([
            row.group.clone(),
            row.kind.replace('_', "-"),
            members(&row.ranks),
            row.instances.to_string(),
            row.count.to_string(),
            Bytes(row.bytes).to_string(),
            Bytes(row.wire_bytes).to_string(),
            Nanos::from_secs(row.time_s).to_string(),
            rate(row.busbw),
        ]);
    }
    table.render()
}

/// Bytes a second, in powers of ten.
fn rate(bytes_per_s: f64) -> String {
    let (unit, scale) = match bytes_per_s {
        rate if rate >= 1e8 => ("GB/s", 1e9),
        rate if rate >= 1e5 => ("MB/s", 1e6),
        _ => ("kB/s", 1e3),
    };
    format!("{} {unit}", three_digits(bytes_per_s / scale))
}

fn members(ranks: &[u32]) -> String {
    let listed: Vec<_> = ranks
        .iter()
        .take(MOST_MEMBERS)
        .map(ToString::to_string)
        .collect();
    let more = if ranks.len() > MOST_MEMBERS {
        ",…"
    } else {
        ""
    };
    listed.join(",") + more
}

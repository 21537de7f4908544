//! `shardscope simulate --validate`: the cost model against what is published.

use super::error::CliResult;
use super::options::Answer;
use super::output::{print, print_json};
use super::table::{Align, Table};
use crate::session::{Comparison, Validation, validate};
use crate::units::percent;

/// Rows that a table shows at most; of a longer one the worst.
const MOST_ROWS: usize = 20;

/// Prints the tables, error by error.
pub(super) fn run(answer: Answer) -> CliResult {
    let tables = validate()?;
    match answer {
        Answer::Json => print_json(&serde_json::json!({ "tables": tables })),
        Answer::Text => {
            let texts: Vec<String> = tables.iter().map(text).collect();
            print(&texts.join("\n"))
        }
    }
}

fn text(table: &Validation) -> String {
    let mut rows: Vec<&Comparison> = table.rows.iter().collect();
    let all = rows.len();
    if all > MOST_ROWS {
        rows.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
        rows.truncate(MOST_ROWS);
    }
    let mut lines = Table::new(&[Align::Left, Align::Right]);
    lines.row(["", "published", "here", "error"].map(str::to_owned));
    for row in &rows {
        lines.row([
            row.name.clone(),
            figure(row.published),
            figure(row.ours),
            format!("{:+.1} %", row.error() * 100.0),
        ]);
    }
    let shown = if all > rows.len() {
        format!(" (the {} worst of {all})", rows.len())
    } else {
        String::new()
    };
    format!(
        "{}, {}{shown}\n\n{}\n  mean error {}, worst {}\n",
        table.title,
        table.unit,
        lines.render(),
        percent(table.mean_error()),
        percent(table.worst_error())
    )
}

fn figure(value: f64) -> String {
    if value < 1.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

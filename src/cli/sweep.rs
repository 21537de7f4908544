//! `shardscope sweep`: every legal layout for a number of GPUs, ranked.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::options::{Answer, SweepOptions};
use super::output::{print, print_json, progress, say};
use super::table::{Align, Table};
use crate::session::{Sweep, SweepRow, settings_of, sweep};
use crate::units::{Nanos, large, percent};

/// Sweeps, and tells the best.
pub(super) fn run(options: &SweepOptions) -> CliResult {
    let bar = progress(0, "layout {pos}/{len}  {bar:40}  {eta} left");
    let found = sweep(&options.spec, &mut |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let found = found.map_err(CliError::refused)?;
    // No one ends it but the system.
    let Some(found) = found else {
        return Ok(());
    };
    let Some(best) = found.rows.first() else {
        return Err(CliError::refused(format!(
            "no layout of {} GPUs goes with the model and a global batch of {}; try another batch, a multiple of a \
             divisor of the GPUs, or leave some degrees free",
            options.spec.gpus, options.spec.global_batch
        )));
    };
    if let Some(framework) = options.copy_as {
        let config = options.spec.config_of(best);
        return print(&settings_of(&config, framework));
    }
    match options.answer {
        Answer::Json => print_json(&object(options, &found)),
        Answer::Text => {
            say(&text(options, &found));
            Ok(())
        }
    }
}

fn object(options: &SweepOptions, found: &Sweep) -> Value {
    let spec = &options.spec;
    json!({
        "model": spec.base.model,
        "hardware": spec.base.hardware,
        "gpus": spec.gpus,
        "global_batch": spec.global_batch,
        "tokens": spec.tokens,
        "layouts": found.layouts,
        "fitting": found.fitting,
        "rows": found.rows,
        "pareto": found.pareto,
    })
}

fn text(options: &SweepOptions, found: &Sweep) -> String {
    let spec = &options.spec;
    let mut text = format!(
        "{} on {} × {}, global batch {}: {} layouts, {} fit\n\n",
        spec.base.model.name,
        spec.gpus,
        spec.base.hardware.title,
        spec.global_batch,
        found.layouts,
        found.fitting
    );
    if found.fitting == 0 {
        text += "none fits; those that need least memory:\n\n";
    }
    let mut table = Table::new(&[Align::Right]);
    table.row([
        "dp",
        "tp",
        "pp",
        "chunks",
        "micro",
        "batches",
        "recompute",
        "step",
        "bubble",
        "memory",
        "MFU",
        "GPU-hours",
        "cost",
        "energy",
        "",
    ]);
    for row in &found.rows {
        table.row(cells(row));
    }
    text += &table.render();
    text + &format!(
        "\nmicro: sequences of a micro-batch; GPU-hours, cost and energy of {} tokens; * no other that fits is both \
         faster and smaller\n",
        large(spec.tokens)
    )
}

fn cells(row: &SweepRow) -> Vec<String> {
    let layout = row.layout;
    let known = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{}{unit}", large(value)))
    };
    vec![
        layout.dp.to_string(),
        layout.tp.to_string(),
        layout.pp.to_string(),
        layout.chunks.to_string(),
        layout.micro_batch_size.to_string(),
        layout.micro_batches.to_string(),
        row.recompute.name().to_owned(),
        Nanos::from_secs(row.step_s).to_string(),
        percent(row.bubble_of_total),
        row.peak_memory_bytes.to_string(),
        percent(row.mfu),
        large(row.gpu_hours),
        known(row.usd, " USD"),
        known(row.kwh, " kWh"),
        if row.pareto { "*" } else { "" }.to_owned(),
    ]
}

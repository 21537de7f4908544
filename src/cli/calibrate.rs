//! `shardscope calibrate`: this machine's cores as hardware for `simulate` and `run`.

use std::path::PathBuf;

use serde_json::json;

use super::error::{CliError, CliResult};
use super::options::Answer;
use super::output::{print, print_json, progress, say};
use super::table::{Align, Table};
use crate::session::{Calibration, Machine};
use crate::units::large;

/// What is asked for.
#[derive(Debug)]
pub(super) struct CalibrateOptions {
    /// Where the hardware file goes; to standard output if nowhere.
    pub(super) out: Option<PathBuf>,
    pub(super) answer: Answer,
}

/// Measures, and writes the hardware.
pub(super) fn run(options: &CalibrateOptions) -> CliResult {
    let bar = progress(1, "{pos}/{len}  {bar:40}  {msg}");
    let machine = Machine::look();
    let memory = machine
        .memory_bytes
        .map_or(1.0, |bytes| bytes.0 as f64 / 1024.0 / 1024.0);
    // Ranks share the machine's memory.
    let memory_mib = (memory / machine.cores.max(1) as f64).floor();
    let calibration = Calibration::measure(memory_mib, &mut |done, all, what| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    });
    bar.finish_and_clear();
    let calibration = calibration.map_err(CliError::failed)?;
    let toml = calibration.to_toml().map_err(CliError::failed)?;
    if let Some(path) = &options.out {
        std::fs::write(path, &toml).map_err(|error| {
            CliError::failed(format!("cannot write {}: {error}", path.display()))
        })?;
        say(&format!("wrote {}\n", path.display()));
    }
    match options.answer {
        Answer::Json => print_json(&object(&calibration)),
        Answer::Text if options.out.is_some() => print(&text(&calibration)),
        Answer::Text => {
            say(&text(&calibration));
            print(&toml)
        }
    }
}

fn object(calibration: &Calibration) -> serde_json::Value {
    let speeds = &calibration.speeds;
    let products = speeds.products.iter();
    let products: Vec<_> = products
        .map(|(size, rate)| json!({ "size": size, "flops_per_s": rate }))
        .collect();
    let collectives = speeds.collectives.iter().map(|time| {
        json!({
            "name": time.name,
            "smallest_s": time.smallest.secs(),
            "large_s": time.large.secs(),
            "algbw": speeds.large.0 as f64 / time.large.secs(),
        })
    });
    json!({
        "products": products,
        "copied_bytes_per_s": speeds.copied,
        "launch_s": speeds.launch.secs(),
        "message_s": speeds.message.secs(),
        "large_bytes": speeds.large,
        "collectives": collectives.collect::<Vec<_>>(),
        "step_measured_s": calibration.measured.secs(),
        "step_modelled_s": calibration.modelled.secs(),
        "hardware": calibration.hardware,
    })
}

fn text(calibration: &Calibration) -> String {
    let speeds = &calibration.speeds;
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
    for (size, rate) in &speeds.products {
        let name = format!("product of {size} x {size}");
        table.row([name, format!("{} FLOP/s", large(*rate)), String::new()]);
    }
    let copied = format!("{:.1} GB/s", speeds.copied / 1e9);
    table.row(["copy on one core".to_owned(), copied, String::new()]);
    let launch = speeds.launch.to_string();
    table.row(["smallest operation".to_owned(), launch, String::new()]);
    let message = speeds.message.to_string();
    table.row(["message between ranks".to_owned(), message, String::new()]);
    for time in &speeds.collectives {
        let rate = speeds.large.0 as f64 / time.large.secs() / 1e9;
        table.row([
            format!("{} of two", time.name),
            format!("{rate:.1} GB/s"),
            format!("of {}; {} at the least", speeds.large, time.smallest),
        ]);
    }
    table.row([
        "step of nano on one thread".to_owned(),
        calibration.measured.to_string(),
        format!("the cost model, with these: {}", calibration.modelled),
    ]);
    table.render()
}

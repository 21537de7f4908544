//! `shardscope devices`: what can train on this machine.

use super::error::CliResult;
use super::options::Answer;
use super::output::{print, print_json};
use super::table::{Align, Table};
use crate::session::{Gpu, Machine};
use crate::units::Bytes;

/// Tells what there is.
pub(super) fn run(answer: Answer) -> CliResult {
    let machine = Machine::look();
    match answer {
        Answer::Json => print_json(&machine),
        Answer::Text => print(&text(&machine)),
    }
}

fn text(machine: &Machine) -> String {
    let memory = machine
        .memory_bytes
        .map_or("memory unknown".to_owned(), |bytes| {
            format!("{bytes} of memory")
        });
    let mut table = Table::new(&[Align::Left]);
    for device in &machine.devices {
        let available = if device.available { "yes" } else { "no" };
        table.row([device.name, available, device.note]);
    }
    format!(
        "This machine: {} cores, {memory}\n{}\n{}",
        machine.cores,
        table.render(),
        gpus(machine)
    )
}

fn gpus(machine: &Machine) -> String {
    if machine.gpus.is_empty() {
        let why = machine.gpus_note.as_deref().unwrap_or_default();
        return format!("GPUs: none; {why}\n");
    }
    let mut table = Table::new(&[Align::Left]);
    for gpu in &machine.gpus {
        table.row([gpu.index.to_string(), gpu.name.clone(), line(gpu)]);
    }
    format!("GPUs:\n{}", table.render())
}

/// What a GPU is and does now.
fn line(gpu: &Gpu) -> String {
    let said = [
        gpu.memory_bytes.map(|all| {
            let used = gpu.used_bytes.unwrap_or(Bytes::ZERO);
            format!("{used} of {all} used")
        }),
        gpu.compute_capability
            .as_ref()
            .map(|of| format!("compute capability {of}")),
        gpu.driver.as_ref().map(|of| format!("driver {of}")),
        gpu.pcie.as_ref().map(|of| format!("PCIe {of}")),
        (gpu.nvlinks > 0).then(|| format!("{} NVLink links", gpu.nvlinks)),
        gpu.utilization
            .map(|share| format!("busy {:.0} %", share * 100.0)),
        gpu.power_w.map(|watts| format!("{watts:.0} W")),
        gpu.temperature_c.map(|degrees| format!("{degrees} °C")),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    said.join(", ")
}

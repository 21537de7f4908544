//! `shardscope devices`: what can train on this machine.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::error::CliResult;
use super::options::Answer;
use super::output::{print, print_json};
use super::table::{Align, Table};
use crate::units::Bytes;

/// What there is.
#[derive(Debug, Serialize)]
struct Machine {
    /// Cores that this process may use.
    cores: usize,
    /// Memory of the machine, in bytes; null where it cannot be told.
    memory_bytes: Option<Bytes>,
    /// As `--device` names them.
    devices: Vec<Device>,
}

/// A kind of device.
#[derive(Debug, Serialize)]
struct Device {
    name: &'static str,
    available: bool,
    note: &'static str,
}

/// Tells what there is.
pub(super) fn run(answer: Answer) -> CliResult {
    let machine = look();
    match answer {
        Answer::Json => print_json(&machine),
        Answer::Text => print(&text(&machine)),
    }
}

fn look() -> Machine {
    let device = |name, available, note| Device {
        name,
        available,
        note,
    };
    Machine {
        cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        memory_bytes: memory(),
        devices: vec![
            device(
                "emulated",
                true,
                "any number of GPUs, their real maths on this machine's cores, their time on virtual clocks",
            ),
            device(
                "cpu",
                false,
                "a rank a core on wall clocks: not in this version",
            ),
            device(
                "cuda",
                false,
                "a rank a GPU, over NCCL: not in this version",
            ),
        ],
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
        "This machine: {} cores, {memory}\n{}",
        machine.cores,
        table.render()
    )
}

/// Memory of the machine, where the system says it in a file.
fn memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib * 1024))
}

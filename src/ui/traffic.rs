//! What moved between GPUs in a step, by group.

use eframe::egui::{Grid, RichText, ScrollArea, Ui};

use crate::session::{Timeline, TrafficReport};
use crate::units::{Bytes, Nanos, three_digits};

/// Shows the panel.
pub(super) fn show(ui: &mut Ui, step: &Timeline) {
    if step.report.traffic.is_empty() {
        ui.label(RichText::new("Nothing moves between GPUs").weak());
        return;
    }
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        Grid::new("traffic").min_row_height(0.0).show(ui, |ui| {
            for name in ["Group", "Each", "Size", "Time", "Bus"] {
                ui.label(RichText::new(name).weak().small());
            }
            ui.end_row();
            for row in &step.report.traffic {
                show_row(ui, row);
            }
        });
    });
}

fn show_row(ui: &mut Ui, row: &TrafficReport) {
    let instances = row.instances;
    let name = group_name(&row.group);
    let small = |text: String| RichText::new(text).small();
    ui.label(small(name.to_owned())).on_hover_text(format!(
        "{} of {instances} such groups, GPUs {}",
        row.kind,
        listed(&row.ranks)
    ));
    ui.label(small(format!("{} ×", row.count)));
    ui.label(small(Bytes(row.bytes).to_string()));
    ui.label(small(Nanos::from_secs(row.time_s).to_string()));
    ui.label(small(format!("{} GB/s", three_digits(row.busbw / 1e9))));
    ui.end_row();
}

fn group_name(group: &str) -> &'static str {
    match group {
        "dp" => "DP all-reduce",
        "tp" => "TP all-reduce",
        "pp" => "PP sends",
        "embedding" => "Tied embedding",
        _ => "Gradient norm",
    }
}

fn listed(ranks: &[u32]) -> String {
    let some: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let more = if ranks.len() > 8 { ", …" } else { "" };
    format!("{}{more}", some.join(", "))
}

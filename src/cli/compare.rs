//! `shardscope compare`: steps of several layouts on one time axis.

use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::options::{Answer, CompareOptions};
use super::output::{print_json, say};
use super::table::{Align, Table};
use crate::export;
use crate::scene::Comparison;
use crate::session::{Report, Timeline};
use crate::trace::Trace;

/// Reckons each step, draws them, and tells their figures.
pub(super) fn run(options: &CompareOptions) -> CliResult {
    let mut steps = Vec::new();
    for config in &options.configs {
        steps.push(Timeline::simulated(config, "simulated")?);
    }
    let reports: Vec<&Report> = steps.iter().map(|step| &step.report).collect();
    let comparison = options.output.dressed_too(export::comparison(&reports));
    if !options.output.files.is_empty() {
        let traces: Vec<&Trace> = steps.iter().map(|step| step.trace.as_ref()).collect();
        let scene = comparison.scene(&traces);
        for path in &options.output.files {
            let how = (comparison.title.as_str(), options.output.drawing.scale);
            export::write_picture(path, &scene, how).map_err(CliError::failed)?;
            say(&format!("wrote {}\n", path.display()));
        }
    }
    match options.output.answer {
        Answer::Json => print_json(&object(&comparison, &reports)),
        Answer::Text => {
            say(&text(&comparison));
            Ok(())
        }
    }
}

fn object(comparison: &Comparison, reports: &[&Report]) -> Value {
    let parts = comparison.parts.iter().zip(reports);
    let compared: Vec<Value> = parts
        .map(|(part, report)| json!({ "name": part.name, "report": report }))
        .collect();
    json!({ "compared": compared })
}

fn text(comparison: &Comparison) -> String {
    let mut table = Table::new(&[Align::Left]);
    for part in &comparison.parts {
        table.row([part.name.clone(), part.figures.clone()]);
    }
    format!("{}\n{}", comparison.stamp.line(), table.render())
}

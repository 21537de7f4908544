//! `run --predict`: what the cost model predicts of a step, beside what it took.

use serde_json::json;

use super::error::{CliError, CliResult};
use super::options::{Answer, Output};
use super::output::{print_json, say, write_files};
use super::table::{Align, Table};
use crate::export::{self, Export, Format};
use crate::session::{Prediction, Trained};
use crate::trace::Trace;
use crate::units::Nanos;

/// Delivers a measured step and its prediction; pictures are of both, traces of what was measured.
pub(super) fn run(trained: &Trained, figures: &str, output: &Output) -> CliResult {
    let measured = &trained.report;
    let prediction = Prediction::of(measured)?;
    let predicted = &prediction.timeline;
    let comparison = output.dressed_too(export::prediction(&predicted.report, measured));
    let traces: [&Trace; 2] = [&predicted.trace, &trained.timeline.trace];
    let mut others = Vec::new();
    for path in &output.files {
        if Format::from_path(path).is_ok_and(Format::is_picture) {
            let how = (comparison.title.as_str(), output.drawing.scale);
            export::write_picture(path, &comparison.scene(&traces), how)
                .map_err(CliError::failed)?;
            say(&format!("wrote {}\n", path.display()));
        } else {
            others.push(path);
        }
    }
    let value = serde_json::to_value(measured).map_err(CliError::failed)?;
    let picture = output.dressed(export::picture(measured));
    let export = Export {
        trace: &trained.timeline.trace,
        picture: &picture,
        report: &value,
        drawing: output.drawing,
    };
    write_files(&export, others)?;
    match output.answer {
        Answer::Json => {
            let mut value = value;
            value["prediction"] = json!({
                "report": predicted.report,
                "differences": prediction.differences,
            });
            print_json(&value)
        }
        Answer::Text => {
            say(&format!("{figures}\n{}", text(&prediction)));
            Ok(())
        }
    }
}

fn text(prediction: &Prediction) -> String {
    let aligns = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ];
    let mut table = Table::new(&aligns);
    table.row([
        "a rank's mean",
        "predicted",
        "measured",
        "more",
        "because of",
    ]);
    let time = |seconds: f64| Nanos::from_secs(seconds).to_string();
    for of in &prediction.differences {
        let more = of.measured_s - of.predicted_s;
        let sign = if more < 0.0 { "-" } else { "+" };
        table.row([
            of.part.to_owned(),
            time(of.predicted_s),
            time(of.measured_s),
            format!("{sign}{}", time(more.abs())),
            of.because.to_owned(),
        ]);
    }
    table.render()
}

//! `shardscope run`: a small transformer, trained for real.

use std::path::Path;

use super::beside;
use super::config::{read, read_bytes};
use super::error::{CliError, CliResult};
use super::figures;
use super::options::{RunInputs, RunOptions};
use super::output::{deliver, progress, say};
use crate::session::{Inputs, TrainError, save_weights, train};

/// Trains, and delivers the figures, the timeline, the weights and the gradients.
pub(super) fn run(options: &RunOptions) -> CliResult {
    let inputs = inputs(&options.inputs)?;
    let bar = progress(
        options.steps,
        "step {pos}/{len}  {bar:40}  loss {msg}  {eta} left",
    );
    let trained = train(
        &options.config,
        &inputs,
        options.steps,
        &mut |step, report| {
            bar.set_position(step + 1);
            bar.set_message(format!("{:.4}", report.loss));
        },
    );
    bar.finish_and_clear();
    let trained = trained.map_err(failed)?;
    let saves = [
        (&options.save_weights, &trained.weights),
        (&options.save_gradients, &trained.gradients),
    ];
    for (path, tensors) in saves {
        if let Some(path) = path {
            save_weights(tensors, path).map_err(|error| unwritable(path, &error))?;
            say(&format!("wrote {}\n", path.display()));
        }
    }
    let text = figures::text(&trained.report);
    if options.predict {
        return beside::run(&trained, &text, &options.output);
    }
    deliver(
        &trained.report,
        &text,
        &trained.timeline.trace,
        &options.output,
    )
}

fn inputs(files: &RunInputs) -> CliResult<Inputs> {
    let bytes = |path: &Option<_>| path.as_deref().map(read_bytes).transpose();
    Ok(Inputs {
        weights: bytes(&files.weights)?,
        tokens: bytes(&files.tokens)?,
        text: files.text.as_deref().map(read).transpose()?,
    })
}

fn failed(error: TrainError) -> CliError {
    if error.is_refusal() {
        CliError::refused(error)
    } else {
        CliError::failed(error)
    }
}

fn unwritable(path: &Path, error: &TrainError) -> CliError {
    CliError::failed(format!("cannot write {}: {error}", path.display()))
}

//! Settings of a set-up, in the words of the command line's configuration file, over those that they start from.

use serde_json::{Map, Value, json};
use toml::Table;

use crate::hardware::Hardware;
use crate::plan::Layout;
use crate::schedule::ScheduleKind;
use crate::session::{Config, Costs};
use crate::shape::ModelShape;

/// A setting that cannot be: its key, if it is one alone, and what is wrong.
pub(super) type Wrong = (Option<String>, String);

const NUMBERS: [&str; 7] = [
    "dp",
    "tp",
    "pp",
    "micro_batches",
    "micro_batch_size",
    "chunks",
    "seed",
];
const METHODS: [&str; 6] = [
    "recompute",
    "sequence_parallel",
    "zero",
    "grad_dtype",
    "attention",
    "no_sync",
];
const SLOW: [&str; 2] = ["slow", "slow_links"];
const OTHERS: [&str; 10] = [
    "schedule",
    "model",
    "hardware",
    "costs",
    "precision",
    "overlap",
    "layers_per_stage",
    "jitter",
    "global_batch",
    "slow_pairs",
];

/// What a lesson's set-ups start from: one GPU, one micro-batch.
pub(super) fn one_gpu() -> Config {
    Config {
        layout: Layout::default(),
        ..Config::default()
    }
}

/// `base` with the settings of `table`, checked.
pub(super) fn config(base: &Config, table: &Table) -> Result<Config, Wrong> {
    let mut config = base.clone();
    // Chunks and formats follow the schedule and the hardware, unless they are given.
    if let Some(name) = text(table, "schedule")? {
        let kind = ScheduleKind::from_name(name).map_err(|error| of("schedule", &error))?;
        config.layout.schedule = kind;
        config.layout.chunks = kind.chunks().count();
        config.custom = None;
    }
    if let Some(name) = text(table, "model")? {
        config.model = ModelShape::preset(name).map_err(|error| of("model", &error))?;
        config.layers_per_stage = None;
    }
    if let Some(name) = text(table, "hardware")? {
        config.hardware = Hardware::profile(name).map_err(|error| of("hardware", &error))?;
        config.precision = config.hardware.precision;
    }
    if let Some(costs) = text(table, "costs")? {
        config.costs = Costs::from_text(costs).map_err(|error| of("costs", &error))?;
    }
    let mut value = serde_json::to_value(&config).map_err(|error| (None, error.to_string()))?;
    let object = value
        .as_object_mut()
        .ok_or((None, "no settings".to_owned()))?;
    for (key, given) in table {
        set(object, key, given)?;
    }
    let mut config: Config = serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        (None, text)
    })?;
    if let Some(batch) = table
        .get("global-batch")
        .or_else(|| table.get("global_batch"))
    {
        let batch = batch
            .as_integer()
            .and_then(|batch| usize::try_from(batch).ok());
        let batch =
            batch.ok_or_else(|| of("global-batch", &"a number of sequences was expected"))?;
        let (dp, size) = (config.layout.dp, config.layout.micro_batch_size);
        config.layout.micro_batches = Layout::micro_batches_of(batch, dp, size)
            .map_err(|error| of("global-batch", &error))?;
    }
    config.check().map_err(|error| (None, error.to_string()))?;
    Ok(config)
}

fn of(key: &str, why: &dyn std::fmt::Display) -> Wrong {
    (Some(key.to_owned()), why.to_string())
}

fn text<'a>(table: &'a Table, key: &str) -> Result<Option<&'a str>, Wrong> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let name = value.as_str();
    name.map(Some)
        .ok_or_else(|| of(key, &"a name in quotes was expected"))
}

/// Sets one key of a configuration as serde writes it.
fn set(object: &mut Map<String, Value>, key: &str, given: &toml::Value) -> Result<(), Wrong> {
    let name = key.replace('-', "_");
    let value = serde_json::to_value(given).map_err(|error| of(key, &error))?;
    let wrong = |expected: &str| of(key, &format!("{expected} was expected, not {given}"));
    let mut put = |part: &str, name: &str, value: Value| {
        let part = object.entry(part).or_insert_with(|| json!({}));
        if let Some(part) = part.as_object_mut() {
            part.insert(name.to_owned(), value);
        }
    };
    match name.as_str() {
        "schedule" | "model" | "hardware" | "costs" | "global_batch" => {}
        "overlap" => {
            let on = given.as_bool().ok_or_else(|| wrong("true or false"))?;
            object.insert(name, json!(on));
        }
        "precision" | "layers_per_stage" => {
            object.insert(name, value);
        }
        "jitter" => {
            let percent = value
                .as_f64()
                .filter(|percent| (0.0..=1000.0).contains(percent));
            let percent = percent.ok_or_else(|| wrong("per cent, from 0 to 1000,"))?;
            put("disturbance", "jitter", json!(percent / 100.0));
        }
        "slow_pairs" => put("disturbance", "slow_pairs", value),
        name if NUMBERS.contains(&name) => {
            let number = value.as_u64().ok_or_else(|| wrong("a whole number"))?;
            object.insert(name.to_owned(), json!(number));
        }
        name if METHODS.contains(&name) => put("methods", name, value),
        name if SLOW.contains(&name) => {
            let list = slowed(given)
                .ok_or_else(|| wrong("GPUs and their factors, such as { 3 = 1.5 },"))?;
            put("disturbance", name, list);
        }
        _ => return Err(unknown(key)),
    }
    Ok(())
}

/// `{ 3 = 1.5 }`: GPU 3 takes 1.5 times as long.
fn slowed(given: &toml::Value) -> Option<Value> {
    let one = |(rank, factor): (&String, &toml::Value)| {
        let rank: u32 = rank.parse().ok()?;
        let factor = factor
            .as_float()
            .or_else(|| factor.as_integer().map(|whole| whole as f64))?;
        let there = (0.01..=1000.0).contains(&factor);
        there.then(|| json!({ "rank": rank, "factor": factor }))
    };
    let list: Option<Vec<Value>> = given.as_table()?.iter().map(one).collect();
    list.map(Value::Array)
}

fn unknown(key: &str) -> Wrong {
    let all = NUMBERS.iter().chain(&METHODS).chain(&SLOW).chain(&OTHERS);
    let mut names: Vec<String> = all.map(|name| name.replace('_', "-")).collect();
    names.sort_unstable();
    let why = format!(
        "there is no setting {key:?}; there are {}",
        names.join(", ")
    );
    (Some(key.to_owned()), why)
}

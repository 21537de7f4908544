//! A layout in the words of the programs that train by it.

use serde_json::json;

use super::config::Config;
use crate::hardware::Precision;
use crate::schedule::ScheduleKind;
use crate::shape::{Recompute, Zero};

/// A program that trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "desktop", derive(clap::ValueEnum))]
pub enum Framework {
    /// Megatron-LM's command line.
    Megatron,
    /// `DeepSpeed`'s JSON.
    Deepspeed,
    /// Torchtitan's TOML.
    Torchtitan,
}

/// The settings of a program for a configuration.
pub fn settings_of(config: &Config, framework: Framework) -> String {
    match framework {
        Framework::Megatron => megatron(config),
        Framework::Deepspeed => deepspeed(config),
        Framework::Torchtitan => torchtitan(config),
    }
}

/// What of a configuration a program's settings cannot say, if anything.
pub fn unsaid(config: &Config, framework: Framework) -> Option<String> {
    let schedule = match framework {
        Framework::Torchtitan => torchtitan_schedule(config).is_none(),
        Framework::Megatron | Framework::Deepspeed => {
            let usual = ScheduleKind::one_f_one_b(config.layout.chunks);
            config.custom.is_some() || config.layout.schedule != usual
        }
    };
    let chunks = framework == Framework::Deepspeed && config.layout.chunks > 1;
    let by_hand = config.layers_per_stage.is_some();
    let all = [
        (schedule, config.schedule_title()),
        (chunks, "several chunks a GPU"),
        (by_hand, "layers put on stages by hand"),
    ];
    let unsaid: Vec<&str> = all
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| *what)
        .collect();
    (!unsaid.is_empty()).then(|| unsaid.join(", "))
}

/// What torchtitan calls the schedule, if it has it.
fn torchtitan_schedule(config: &Config) -> Option<&'static str> {
    if config.custom.is_some() {
        return None;
    }
    match config.layout.schedule {
        ScheduleKind::GPipe => Some("GPipe"),
        ScheduleKind::OneFOneB => Some("1F1B"),
        ScheduleKind::Interleaved => Some("Interleaved1F1B"),
        ScheduleKind::LoopedBfs => Some("LoopedBFS"),
        ScheduleKind::InterleavedZb => Some("InterleavedZeroBubble"),
        ScheduleKind::ZbV => Some("ZBVZeroBubble"),
        ScheduleKind::DualPipeV => Some("DualPipeV"),
        ScheduleKind::ZbH1 | ScheduleKind::ZbH2 => None,
    }
}

fn megatron(config: &Config) -> String {
    let (layout, model, methods) = (&config.layout, &config.model, config.methods);
    let mut options: Vec<String> = Vec::new();
    let mut set = |name: &str, value: usize| options.push(format!("--{name} {value}"));
    set("num-layers", model.layers);
    set("hidden-size", model.hidden);
    set("num-attention-heads", model.heads);
    set("seq-length", model.seq);
    set("max-position-embeddings", model.seq);
    set("tensor-model-parallel-size", layout.tp);
    set("pipeline-model-parallel-size", layout.pp);
    if layout.chunks > 1 {
        let each = model.layers.div_ceil(layout.pp * layout.chunks);
        set("num-layers-per-virtual-pipeline-stage", each);
    }
    set("micro-batch-size", layout.micro_batch_size);
    set("global-batch-size", layout.global_batch());
    if model.kv_heads() != model.heads {
        set("num-query-groups", model.kv_heads());
    }
    if model.ffn_hidden.is_some() {
        set("ffn-hidden-size", model.ffn());
    }
    let flags = [
        (model.kv_heads() != model.heads, "--group-query-attention"),
        (model.gated, "--swiglu"),
        (model.rope, "--position-embedding-type rope"),
        (!model.tied, "--untie-embeddings-and-output-weights"),
        (methods.sequence_parallel, "--sequence-parallel"),
        (methods.zero != Zero::Off, "--use-distributed-optimizer"),
        (config.overlap, "--overlap-grad-reduce"),
        (
            config.overlap && methods.zero != Zero::Off,
            "--overlap-param-gather",
        ),
        (
            methods.recompute == Recompute::Selective,
            "--recompute-granularity selective",
        ),
        (
            methods.recompute == Recompute::Full,
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        ),
        (config.precision == Precision::Bf16, "--bf16"),
    ];
    let on = flags.into_iter().filter(|(on, _)| *on);
    options.extend(on.map(|(_, flag)| flag.to_owned()));
    options.join(" \\\n") + "\n"
}

fn deepspeed(config: &Config) -> String {
    let layout = &config.layout;
    let stage: u8 = config.methods.zero.into();
    let settings = json!({
        "train_batch_size": layout.global_batch(),
        "train_micro_batch_size_per_gpu": layout.micro_batch_size,
        "gradient_accumulation_steps": layout.micro_batches,
        "zero_optimization": { "stage": stage, "overlap_comm": config.overlap },
        "bf16": { "enabled": config.precision == Precision::Bf16 },
        "pipeline": { "stages": layout.pp },
        "tensor_parallel": { "autotp_size": layout.tp },
    });
    serde_json::to_string_pretty(&settings).unwrap_or_default() + "\n"
}

fn torchtitan(config: &Config) -> String {
    let (layout, model) = (&config.layout, &config.model);
    let schedule = torchtitan_schedule(config).unwrap_or("1F1B");
    let (replicate, shard) = if config.methods.zero == Zero::Off {
        (layout.dp, 1)
    } else {
        (1, layout.dp)
    };
    let mode = config.methods.recompute.name();
    format!(
        "[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n\n[parallelism]\n\
         data_parallel_replicate_degree = {replicate}\ndata_parallel_shard_degree = {shard}\n\
         tensor_parallel_degree = {}\npipeline_parallel_degree = {}\npipeline_parallel_schedule = \"{schedule}\"\n\
         pipeline_parallel_microbatch_size = {}\n\n[activation_checkpoint]\nmode = \"{mode}\"\n",
        layout.micro_batches * layout.micro_batch_size,
        layout.global_batch(),
        model.seq,
        layout.tp,
        layout.pp,
        layout.micro_batch_size,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::plan::Layout;
    use crate::schedule::ScheduleKind;
    use crate::shape::{Methods, ModelShape};

    #[test]
    fn a_layout_is_told_in_three_programs_words() {
        let hardware = Hardware::profile("h100").unwrap();
        let config = Config {
            layout: Layout {
                dp: 4,
                tp: 8,
                pp: 4,
                micro_batches: 16,
                micro_batch_size: 2,
                schedule: ScheduleKind::Interleaved,
                chunks: 5,
            },
            model: ModelShape::preset("llama2-70b").unwrap(),
            precision: hardware.precision,
            hardware,
            methods: Methods {
                recompute: Recompute::Selective,
                sequence_parallel: true,
                zero: Zero::Optimizer,
                ..Methods::default()
            },
            ..Config::default()
        };
        let frameworks = [
            Framework::Megatron,
            Framework::Deepspeed,
            Framework::Torchtitan,
        ];
        let said = frameworks.map(|framework| settings_of(&config, framework));
        insta::assert_snapshot!(said.join("---\n"));
        assert_eq!(unsaid(&config, Framework::Megatron), None);
        let mut other = config;
        other.layout.schedule = ScheduleKind::ZbV;
        other.layout.chunks = 2;
        assert_eq!(unsaid(&other, Framework::Torchtitan), None);
        let said = unsaid(&other, Framework::Deepspeed);
        assert_eq!(said.as_deref(), Some("ZB-V, several chunks a GPU"));
    }
}

//! The models that come with the program.

/// Name and TOML, the small ones that train here first.
pub const PRESETS: &[(&str, &str)] = &[
    ("nano", include_str!("../../assets/models/nano.toml")),
    ("mini", include_str!("../../assets/models/mini.toml")),
    ("gpt2", include_str!("../../assets/models/gpt2.toml")),
    (
        "gpt2-medium",
        include_str!("../../assets/models/gpt2-medium.toml"),
    ),
    (
        "gpt2-large",
        include_str!("../../assets/models/gpt2-large.toml"),
    ),
    ("gpt2-xl", include_str!("../../assets/models/gpt2-xl.toml")),
    (
        "gpt3-175b",
        include_str!("../../assets/models/gpt3-175b.toml"),
    ),
    (
        "megatron-1.7b",
        include_str!("../../assets/models/megatron-1.7b.toml"),
    ),
    (
        "megatron-3.6b",
        include_str!("../../assets/models/megatron-3.6b.toml"),
    ),
    (
        "megatron-7.5b",
        include_str!("../../assets/models/megatron-7.5b.toml"),
    ),
    (
        "megatron-18.4b",
        include_str!("../../assets/models/megatron-18.4b.toml"),
    ),
    (
        "megatron-39.1b",
        include_str!("../../assets/models/megatron-39.1b.toml"),
    ),
    (
        "megatron-76.1b",
        include_str!("../../assets/models/megatron-76.1b.toml"),
    ),
    (
        "megatron-145.6b",
        include_str!("../../assets/models/megatron-145.6b.toml"),
    ),
    (
        "megatron-310.1b",
        include_str!("../../assets/models/megatron-310.1b.toml"),
    ),
    (
        "megatron-529.6b",
        include_str!("../../assets/models/megatron-529.6b.toml"),
    ),
    (
        "megatron-1008b",
        include_str!("../../assets/models/megatron-1008b.toml"),
    ),
    (
        "llama2-7b",
        include_str!("../../assets/models/llama2-7b.toml"),
    ),
    (
        "llama2-13b",
        include_str!("../../assets/models/llama2-13b.toml"),
    ),
    (
        "llama2-70b",
        include_str!("../../assets/models/llama2-70b.toml"),
    ),
    (
        "llama3-8b",
        include_str!("../../assets/models/llama3-8b.toml"),
    ),
    (
        "llama3-70b",
        include_str!("../../assets/models/llama3-70b.toml"),
    ),
    (
        "llama3-405b",
        include_str!("../../assets/models/llama3-405b.toml"),
    ),
];

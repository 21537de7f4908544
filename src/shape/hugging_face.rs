//! A model from the `config.json` that Hugging Face repositories hold.

use serde::Deserialize;

use super::{ModelShape, Optimizer, ShapeError};

/// What is read of it; GPT-2's names and those of later models.
#[derive(Debug, Deserialize)]
struct Config {
    model_type: Option<String>,
    #[serde(alias = "n_layer", alias = "num_layers")]
    num_hidden_layers: usize,
    #[serde(alias = "n_embd", alias = "d_model")]
    hidden_size: usize,
    #[serde(alias = "n_head")]
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    #[serde(alias = "n_inner")]
    intermediate_size: Option<usize>,
    vocab_size: usize,
    #[serde(alias = "n_positions", alias = "n_ctx")]
    max_position_embeddings: usize,
    tie_word_embeddings: Option<bool>,
    #[serde(alias = "activation_function")]
    hidden_act: Option<String>,
    rope_theta: Option<f64>,
}

impl ModelShape {
    /// From the text of a `config.json`, checked. Sequences are as long as the model's positions.
    pub fn from_hugging_face(text: &str, name: &str) -> Result<Self, ShapeError> {
        let config: Config =
            serde_json::from_str(text).map_err(|error| ShapeError::Json(error.to_string()))?;
        let gpt = config
            .model_type
            .as_deref()
            .is_some_and(|kind| kind.starts_with("gpt"));
        let gated = config
            .hidden_act
            .as_deref()
            .is_some_and(|act| matches!(act, "silu" | "swish" | "swiglu" | "geglu"));
        let heads = config.num_attention_heads;
        let shape = Self {
            name: name.to_owned(),
            layers: config.num_hidden_layers,
            hidden: config.hidden_size,
            heads,
            vocab: config.vocab_size,
            seq: config.max_position_embeddings,
            kv_heads: config.num_key_value_heads.filter(|&kv| kv != heads),
            ffn_hidden: config.intermediate_size,
            gated: gated && !gpt,
            // As the library has it where it is not said.
            tied: config.tie_word_embeddings.unwrap_or(true),
            rope: config.rope_theta.is_some() || !gpt,
            optimizer: Optimizer::default(),
        };
        shape.check()?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_both_generations_are_read() {
        let gpt2 = r#"{"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
            "n_positions": 1024, "activation_function": "gelu_new", "n_inner": null}"#;
        let preset = ModelShape::preset("gpt2").unwrap();
        assert_eq!(ModelShape::from_hugging_face(gpt2, "gpt2").unwrap(), preset);
        let llama = r#"{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
            "max_position_embeddings": 8192, "hidden_act": "silu", "rope_theta": 500000.0,
            "tie_word_embeddings": false, "torch_dtype": "bfloat16"}"#;
        let preset = ModelShape::preset("llama3-8b").unwrap();
        let read = ModelShape::from_hugging_face(llama, "llama3-8b").unwrap();
        assert_eq!(read, preset);
    }

    #[test]
    fn other_files_are_refused() {
        let said = ModelShape::from_hugging_face("{}", "x")
            .unwrap_err()
            .to_string();
        assert!(said.contains("not a Hugging Face config.json"), "{said}");
    }
}

//! Tests of the whole layer: against autograd, against PyTorch, and of every cut against the uncut model.

mod autograd;
mod driver;
mod gpt_tiny;
mod layouts;

//! How much of its published figures a GPU reaches, and what work costs beside them.

use serde::{Deserialize, Serialize};

/// Constants of the cost model. Left out, they are the A100's under Megatron-LM, fitted all together to the
/// published step times of vTrain (A100 nodes), Narayanan 2021 and Korthikanti 2022 and to NCCL's all-reduce
/// times; `shardscope simulate --validate` prints how well they do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reach {
    /// The share of the peak rate that matrix products reach.
    pub products: f64,
    /// The share of the peak rate that attention's core in one kernel reaches.
    pub attention: f64,
    /// The share of the memory's bandwidth that element-wise work reaches.
    pub memory: f64,
    /// Time of the host to launch a kernel, in microseconds.
    pub launch_us: f64,
    /// Time of a kernel on the GPU beside its work, in microseconds.
    pub kernel_us: f64,
    /// Time to begin a pass beside its kernels, in microseconds.
    pub pass_us: f64,
    /// Time to begin a collective, in microseconds.
    pub collective_us: f64,
    /// The share of the memory's bandwidth at which a collective passes over its bytes.
    pub collective_memory: f64,
    /// Time to begin a send, in microseconds.
    pub send_us: f64,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            products: 0.81,
            // FlashAttention-2 on an H100, as its successor's paper has it (Shah 2024).
            attention: 0.35,
            memory: 0.82,
            launch_us: 36.5,
            kernel_us: 3.0,
            pass_us: 700.0,
            collective_us: 32.0,
            collective_memory: 0.26,
            send_us: 10.0,
        }
    }
}

impl Reach {
    /// What must be above zero.
    pub(super) fn shares(&self) -> [(&'static str, f64); 4] {
        [
            ("reach.products", self.products),
            ("reach.attention", self.attention),
            ("reach.memory", self.memory),
            ("reach.collective_memory", self.collective_memory),
        ]
    }

    /// What may be zero.
    pub(super) fn times(&self) -> [(&'static str, f64); 5] {
        [
            ("reach.launch_us", self.launch_us),
            ("reach.kernel_us", self.kernel_us),
            ("reach.pass_us", self.pass_us),
            ("reach.collective_us", self.collective_us),
            ("reach.send_us", self.send_us),
        ]
    }
}

//! What an operation costs: a roofline for computation, rings for all-reduces, latency and bandwidth for
//! sends.

use super::{Hardware, Link, Precision};
use crate::shape::Work;
use crate::units::{Bytes, Collective, Nanos, Pass};

/// How far a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Within a node.
    InNode,
    /// Across nodes.
    BetweenNodes,
}

/// Something to be priced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// Computation.
    Compute(Work),
    /// A whole pass of a stage, where no model is consulted.
    Pass(Pass),
    /// The optimizer's step over so many parameters.
    Optimizer {
        /// How many.
        params: u64,
    },
    /// A collective.
    Collective {
        /// Which.
        kind: Collective,
        /// The size of the whole: what each rank contributes to a sum, or has after a gathering.
        bytes: Bytes,
        /// How many ranks.
        ranks: usize,
        /// How far.
        level: Level,
    },
    /// A send.
    Send {
        /// How much.
        bytes: Bytes,
        /// How far.
        level: Level,
    },
}

/// What a task costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// How long its stream is occupied.
    pub occupies: Nanos,
    /// How much later, for a send, what was sent is there.
    pub delay: Nanos,
}

impl Price {
    fn of(occupies: Nanos) -> Self {
        Self {
            occupies,
            delay: Nanos::ZERO,
        }
    }
}

/// Anything that prices tasks.
pub trait Pricing {
    /// What `task` costs.
    fn price(&self, task: &Task) -> Price;
}

/// Passes of fixed duration: the textbook's picture, or measured passes of someone's stage.
///
/// Times are of a rank's whole share of a micro-batch and are divided by its chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassTimes {
    /// Forward.
    pub forward: Nanos,
    /// Input-gradient.
    pub input_grad: Nanos,
    /// Weight-gradient; the full backward is both.
    pub weight_grad: Nanos,
    /// From the end of a pass to its consumer on another rank, occupying nothing.
    pub comm: Nanos,
    /// Chunks of a rank.
    pub chunks: u64,
}

impl PassTimes {
    /// `F = I = W = 1 ms`, so `B = 2 ms`, and sends that take no time.
    pub fn unit(chunks: u64) -> Self {
        let one = Nanos(1_000_000);
        Self {
            forward: one,
            input_grad: one,
            weight_grad: one,
            comm: Nanos::ZERO,
            chunks,
        }
    }
}

impl Pricing for PassTimes {
    fn price(&self, task: &Task) -> Price {
        let backward = self.input_grad + self.weight_grad;
        let whole = match task {
            Task::Pass(Pass::Forward) => self.forward,
            Task::Pass(Pass::Backward) => backward,
            Task::Pass(Pass::InputGrad) => self.input_grad,
            Task::Pass(Pass::WeightGrad) => self.weight_grad,
            Task::Send { .. } => {
                return Price {
                    occupies: Nanos::ZERO,
                    delay: self.comm,
                };
            }
            Task::Compute(_) | Task::Optimizer { .. } | Task::Collective { .. } => Nanos::ZERO,
        };
        Price::of(Nanos(whole.0 / self.chunks.max(1)))
    }
}

/// Hardware and a number format.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// The GPUs and links.
    pub hardware: Hardware,
    /// The format of weights and activations.
    pub precision: Precision,
}

impl CostModel {
    fn link(&self, level: Level) -> Link {
        match level {
            Level::InNode => self.hardware.in_node,
            Level::BetweenNodes => self.hardware.between_nodes,
        }
    }

    /// Kernels are launched one after another; products run at the reachable share of the peak,
    /// element-wise work at the memory's bandwidth.
    fn compute(&self, work: Work) -> Nanos {
        let products =
            work.flops / (self.hardware.peak_flops(self.precision) * self.hardware.efficiency);
        let moved = work.elements * self.precision.bytes() as f64;
        let memory = moved / (self.hardware.memory_gb_per_s * 1e9);
        Nanos::from_secs(products + memory + work.kernels * self.hardware.launch_us * 1e-6)
    }

    /// Reads and writes weights, gradients and state once each.
    fn optimizer(&self, params: u64) -> Nanos {
        let each = 2 * (self.precision.bytes() + self.precision.optimizer_bytes())
            + self.precision.grad_bytes();
        let seconds = (params * each) as f64 / (self.hardware.memory_gb_per_s * 1e9);
        Nanos::from_secs(seconds + self.hardware.launch_us * 1e-6)
    }

    /// A ring of `n`: `2(n-1)` steps of an all-reduce, half as many of the others, each of a latency and a
    /// `1/n` of the bytes.
    fn ring(&self, kind: Collective, bytes: Bytes, ranks: usize, level: Level) -> Nanos {
        let link = self.link(level);
        let steps = kind.rounds() as f64 * (ranks as f64 - 1.0);
        let chunk = bytes.0 as f64 / ranks as f64;
        Nanos::from_secs(steps * (link.latency_us * 1e-6 + chunk / (link.gb_per_s * 1e9)))
    }

    fn send(&self, bytes: Bytes, level: Level) -> Nanos {
        let link = self.link(level);
        Nanos::from_secs(link.latency_us * 1e-6 + bytes.0 as f64 / (link.gb_per_s * 1e9))
    }
}

impl Pricing for CostModel {
    fn price(&self, task: &Task) -> Price {
        Price::of(match *task {
            Task::Compute(work) => self.compute(work),
            Task::Optimizer { params } => self.optimizer(params),
            Task::Collective {
                kind,
                bytes,
                ranks,
                level,
            } => self.ring(kind, bytes, ranks, level),
            Task::Send { bytes, level } => self.send(bytes, level),
            // Where no model is consulted there is nothing to price by.
            Task::Pass(_) => Nanos::ZERO,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_moves_its_share() {
        let hardware = Hardware::profile("a100-80gb").unwrap();
        let costs = CostModel {
            precision: Precision::Bf16,
            hardware,
        };
        let bytes = Bytes(1 << 30);
        let time = costs
            .ring(Collective::AllReduce, bytes, 8, Level::InNode)
            .secs();
        let busbw = bytes.0 as f64 / time * 2.0 * 7.0 / 8.0 / 1e9;
        let link = costs.hardware.in_node.gb_per_s;
        assert!((busbw / link - 1.0).abs() < 0.05, "{busbw} of {link} GB/s");
    }

    #[test]
    fn unit_passes_divide_by_chunks() {
        let two = PassTimes::unit(2);
        assert_eq!(
            two.price(&Task::Pass(Pass::Backward)).occupies,
            Nanos(1_000_000)
        );
        assert_eq!(
            two.price(&Task::Pass(Pass::Forward)).occupies,
            Nanos(500_000)
        );
    }
}

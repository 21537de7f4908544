//! What an operation costs: a roofline for each product, memory traffic for what lies between, the host's
//! pace, rings for collectives, latency and bandwidth for sends.

use super::{Hardware, Precision};
use crate::shape::{GradFormat, Product, Work};
use crate::units::{Bytes, Collective, Nanos, Pass};

/// Something to be priced.
#[derive(Clone, Debug, PartialEq)]
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
        /// How many of them in a node.
        per_node: usize,
    },
    /// A send.
    Send {
        /// How much.
        bytes: Bytes,
        /// Whether it leaves the node.
        leaves_node: bool,
        /// Ranks of a node that have the same to send: between nodes each sends a share, and gathers the
        /// others' on the other side.
        alike: usize,
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

/// Hardware and number formats.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// The GPUs and links.
    pub hardware: Hardware,
    /// The format of weights and activations.
    pub precision: Precision,
    /// The format of gradients.
    pub gradients: GradFormat,
}

/// How sharply the longer of two times hides the shorter: the exponent of a soft maximum.
const HIDING: i32 = 4;

impl CostModel {
    fn memory_rate(&self) -> f64 {
        self.hardware.memory_gb_per_s * 1e9 * self.hardware.reach.memory
    }

    /// Time to read and write elements.
    fn moved(&self, elements: f64) -> f64 {
        elements * self.precision.bytes() as f64 / self.memory_rate()
    }

    fn product(&self, product: &Product) -> f64 {
        let reach = &self.hardware.reach;
        let share = if product.fused {
            reach.attention
        } else {
            reach.products
        };
        let rate = self.hardware.peak_flops(self.precision) * share;
        (product.flops / rate).max(self.moved(product.elements))
    }

    /// The GPU's time, or the host's to launch it all; where they are near each other, a bit of both.
    fn compute(&self, work: &Work) -> Nanos {
        let reach = &self.hardware.reach;
        let products: f64 = work.products.iter().map(|one| self.product(one)).sum();
        let gpu = products + self.moved(work.elements) + work.kernels * reach.kernel_us * 1e-6;
        let host = work.kernels * reach.launch_us * 1e-6;
        let longer = gpu.max(host);
        let pace = if longer > 0.0 {
            let shares = (gpu / longer).powi(HIDING) + (host / longer).powi(HIDING);
            longer * shares.powf(1.0 / f64::from(HIDING))
        } else {
            0.0
        };
        Nanos::from_secs(pace + work.passes * reach.pass_us * 1e-6)
    }

    /// Reads and writes weights and state, and reads gradients.
    fn optimizer(&self, params: u64) -> Nanos {
        let each = 2 * (self.precision.bytes() + self.precision.optimizer_bytes())
            + self.precision.grad_bytes(self.gradients);
        let seconds = params as f64 * each as f64 / self.memory_rate();
        Nanos::from_secs(seconds + self.hardware.reach.kernel_us * 1e-6)
    }

    /// A ring of `n`, `2(n-1)` steps of an all-reduce, half as many of the others: each of a latency and a
    /// `1/n` of the bytes, over the links of a node and, where it leaves it, all its ranks' adapters together;
    /// and a pass over the bytes in memory. An all-reduce over nodes may go by a tree instead.
    fn ring(&self, kind: Collective, bytes: Bytes, ranks: usize, per_node: usize) -> Nanos {
        if ranks < 2 {
            return Nanos::ZERO;
        }
        let Hardware {
            in_node,
            between_nodes,
            reach,
            ..
        } = &self.hardware;
        let (n, size, rounds) = (ranks as f64, bytes.0 as f64, kind.rounds() as f64);
        let together = per_node.clamp(1, ranks);
        let mut latency = rounds * (n - 1.0) * in_node.latency_us;
        let mut rate = in_node.rate();
        if ranks > together {
            let nodes = ranks.div_ceil(together) as f64;
            latency += rounds * (nodes - 1.0) * between_nodes.latency_us;
            rate = rate.min(together as f64 * between_nodes.rate());
            if kind == Collective::AllReduce {
                // Over many nodes a sum goes up a tree of them and down again, as fast for large sizes.
                let hop = in_node.latency_us + between_nodes.latency_us;
                let in_nodes = (together - 1) as f64 * in_node.latency_us;
                latency = latency.min(rounds * (in_nodes + nodes.log2().ceil() * hop));
            }
        }
        let over = kind.bus_share(ranks) * size / rate;
        let memory = self.hardware.memory_gb_per_s * 1e9 * reach.collective_memory;
        let pass = rounds / 2.0 * size / memory;
        Nanos::from_secs((reach.collective_us + latency) * 1e-6 + over + pass)
    }

    fn send(&self, bytes: Bytes, leaves_node: bool, alike: usize) -> Nanos {
        let Hardware {
            in_node,
            between_nodes,
            reach,
            ..
        } = &self.hardware;
        let link = if leaves_node { between_nodes } else { in_node };
        let shares = if leaves_node { alike.max(1) } else { 1 };
        let time =
            (reach.send_us + link.latency_us) * 1e-6 + bytes.0 as f64 / shares as f64 / link.rate();
        Nanos::from_secs(time) + self.ring(Collective::AllGather, bytes, shares, shares)
    }
}

impl Pricing for CostModel {
    fn price(&self, task: &Task) -> Price {
        Price::of(match *task {
            Task::Compute(ref work) => self.compute(work),
            Task::Optimizer { params } => self.optimizer(params),
            Task::Collective {
                kind,
                bytes,
                ranks,
                per_node,
            } => self.ring(kind, bytes, ranks, per_node),
            Task::Send {
                bytes,
                leaves_node,
                alike,
            } => self.send(bytes, leaves_node, alike),
            // Where no model is consulted there is nothing to price by.
            Task::Pass(_) => Nanos::ZERO,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a100() -> CostModel {
        CostModel {
            hardware: Hardware::profile("a100-80gb").unwrap(),
            precision: Precision::Bf16,
            gradients: GradFormat::F32,
        }
    }

    #[test]
    fn a_large_ring_reaches_the_bus_bandwidth_of_nccls_table() {
        // 1 GiB over 8 GPUs: 229.2 GB/s, published with vTrain.
        let bytes = Bytes(1 << 30);
        let time = a100().ring(Collective::AllReduce, bytes, 8, 8).secs();
        let busbw = bytes.0 as f64 / time * Collective::AllReduce.bus_share(8) / 1e9;
        assert!((busbw / 229.2 - 1.0).abs() < 0.03, "{busbw} GB/s");
    }

    #[test]
    fn a_ring_over_nodes_shares_their_adapters() {
        let time = |per_node| {
            let costs = a100();
            costs
                .ring(Collective::AllReduce, Bytes(1 << 30), 16, per_node)
                .secs()
        };
        let ratio = time(1) / time(8);
        assert!((5.0..8.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_small_kernel_goes_at_the_hosts_pace_and_a_large_one_at_the_gpus() {
        let costs = a100();
        let work = |elements: f64| Work {
            elements,
            kernels: 10.0,
            ..Work::default()
        };
        let host = costs.hardware.reach.launch_us * 10.0;
        assert!((costs.compute(&work(1.0)).millis() * 1e3 / host - 1.0).abs() < 0.01);
        let large = costs.compute(&work(1e10)).secs();
        assert!((large / costs.moved(1e10) - 1.0).abs() < 0.01);
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

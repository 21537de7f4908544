//! What is published of a schedule for even stages whose sends take no time: its time, and how many
//! micro-batches a rank has in flight. Tests hold the engine to it, and the program shows it beside what the
//! engine finds.

use super::ScheduleKind;
use crate::units::Nanos;

/// A schedule's page in the textbook: `p` ranks, `m` micro-batches, `v` chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Textbook {
    /// Which.
    pub(super) kind: ScheduleKind,
    /// Pipeline ranks.
    pub(super) p: u64,
    /// Micro-batches.
    pub(super) m: u64,
    /// Chunks of a rank.
    pub(super) v: u64,
}

/// The times of a rank's share of a micro-batch, all its chunks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Forward.
    pub forward: Nanos,
    /// Input-gradient.
    pub input_grad: Nanos,
    /// Weight-gradient.
    pub weight_grad: Nanos,
}

impl Shares {
    /// The textbook's: `F = I = W`, so `B = 2F`.
    pub const EVEN: Self = Self {
        forward: Nanos(1_000_000),
        input_grad: Nanos(1_000_000),
        weight_grad: Nanos(1_000_000),
    };
}

impl Textbook {
    /// From the first pass of any rank to the last, where a formula is known.
    pub fn makespan(&self, shares: Shares) -> Option<Nanos> {
        let Self { kind, p, m, v } = *self;
        let (f, i, w) = (shares.forward, shares.input_grad, shares.weight_grad);
        let all = f + i + w;
        let small_w = w <= f.min(i);
        match kind {
            ScheduleKind::GPipe | ScheduleKind::OneFOneB => Some(all * (m + p - 1)),
            ScheduleKind::Interleaved => m
                .is_multiple_of(p)
                .then(|| all * m + Nanos((all * (p - 1)).0 / v)),
            ScheduleKind::LoopedBfs => {
                let chunk_times = (v - 1) * m.max(p) + m + p - 1;
                Some(Nanos((all * chunk_times).0 / v))
            }
            ScheduleKind::ZbH1 if !small_w => None,
            ScheduleKind::ZbH1 if m <= p => Some((f + i) * (m + p - 1) + w),
            ScheduleKind::ZbH1 => Some(all * m + (f + i - w) * (p - 1)),
            ScheduleKind::ZbH2
            | ScheduleKind::InterleavedZb
            | ScheduleKind::ZbV
            | ScheduleKind::DualPipeV => None,
        }
    }

    /// The share of idle time in the pipeline's, where a formula is known.
    pub fn bubble_of_total(&self, shares: Shares) -> Option<f64> {
        let busy = (shares.forward + shares.input_grad + shares.weight_grad) * self.m;
        let makespan = self.makespan(shares)?;
        Some(makespan.since(busy).0 as f64 / makespan.0.max(1) as f64)
    }

    /// The most (micro-batch, chunk) pairs that rank `i` has in flight, where a formula is known.
    pub fn in_flight(&self, rank: usize) -> Option<u64> {
        let Self { kind, p, m, v } = *self;
        let to_last = p - 1 - rank as u64;
        match kind {
            ScheduleKind::GPipe => Some(m),
            ScheduleKind::OneFOneB | ScheduleKind::ZbH1 => Some(m.min(to_last + 1)),
            ScheduleKind::Interleaved => m
                .is_multiple_of(p)
                .then(|| (m * v).min(2 * to_last + (v - 1) * p + 1)),
            ScheduleKind::LoopedBfs => Some(m * v),
            ScheduleKind::ZbH2 => Some(m.min(2 * to_last + 1)),
            ScheduleKind::ZbV if m >= 2 * p - 1 => Some(2 * p),
            ScheduleKind::DualPipeV => Some(2 * p + 1),
            ScheduleKind::InterleavedZb | ScheduleKind::ZbV => None,
        }
    }
}

//! `simulate`: no maths, only the clock, with durations from a cost model.

use super::clock;
use super::disturb::{Disturbance, Disturbed};
use crate::hardware::{Price, Pricing};
use crate::plan::{Plan, What};
use crate::trace::Trace;
use crate::units::Nanos;

/// One step of `plan` at the prices of `pricing`.
pub fn simulate(plan: &Plan, pricing: &dyn Pricing) -> Trace {
    let prices = prices(plan, pricing);
    clock::run(plan, |_, op| prices[op.task.0 as usize])
}

/// The same where some GPUs or links are slower than others.
pub fn simulate_disturbed(
    plan: &Plan,
    pricing: &dyn Pricing,
    how: &Disturbance,
    seed: u64,
) -> Trace {
    let prices = prices(plan, pricing);
    let disturbed = Disturbed::new(plan.program(), how, seed);
    clock::run(plan, |id, op| {
        disturbed.price(id, op, prices[op.task.0 as usize])
    })
}

/// One step of `plan` whose computations took what they were measured to take; transfers, which an
/// emulation does not have, are at the prices of `pricing`.
pub fn measured(plan: &Plan, pricing: &dyn Pricing, took: &[Nanos]) -> Trace {
    let prices = prices(plan, pricing);
    clock::run(plan, |id, op| match op.what {
        What::Compute { .. } | What::Optimizer => Price {
            occupies: took[id.index()],
            delay: Nanos::ZERO,
        },
        What::Send { .. } | What::Receive { .. } | What::Collective { .. } => {
            prices[op.task.0 as usize]
        }
    })
}

/// What each of the plan's tasks costs.
fn prices(plan: &Plan, pricing: &dyn Pricing) -> Vec<Price> {
    let tasks = plan.program().tasks.iter();
    tasks.map(|task| pricing.price(task)).collect()
}

//! `simulate`: no maths, only the clock, with durations from a cost model.

use super::clock;
use crate::hardware::{Price, Pricing};
use crate::plan::Plan;
use crate::trace::Trace;

/// One step of `plan` at the prices of `pricing`.
pub fn simulate(plan: &Plan, pricing: &dyn Pricing) -> Trace {
    let prices: Vec<Price> = plan
        .program()
        .tasks
        .iter()
        .map(|task| pricing.price(task))
        .collect();
    clock::run(plan, |_, op| prices[op.task.0 as usize])
}

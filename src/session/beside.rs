//! A run beside another: how they differ, and what that does to the figures.

use super::config::{Config, Costs, Device};
use super::report::Report;
use crate::shape::{Attention, GradFormat, Methods, Recompute};
use crate::units::{Bytes, Nanos, percent};

impl Config {
    /// What was changed to come here from `other`, most looked-at first: `PP 2`, `GPipe`, `overlap off`.
    pub fn difference(&self, other: &Self) -> Vec<String> {
        let (own, others) = (&self.layout, &other.layout);
        let numbers = [
            ("DP", own.dp, others.dp),
            ("TP", own.tp, others.tp),
            ("PP", own.pp, others.pp),
            ("micro-batches", own.micro_batches, others.micro_batches),
            (
                "micro-batch size",
                own.micro_batch_size,
                others.micro_batch_size,
            ),
        ];
        let mut all: Vec<String> = numbers
            .into_iter()
            .filter(|(_, own, others)| own != others)
            .map(|(name, own, _)| format!("{name} {own}"))
            .collect();
        let mut say = |changed: bool, text: String| all.extend(changed.then_some(text));
        let order = own.schedule != others.schedule || self.custom != other.custom;
        say(order, self.schedule_title().to_owned());
        say(
            own.chunks != others.chunks,
            format!("chunks {}", own.chunks),
        );
        say(self.model != other.model, self.model.name.clone());
        say(self.hardware != other.hardware, self.hardware.title.clone());
        say(
            self.precision != other.precision,
            self.precision.name().to_owned(),
        );
        say(
            self.overlap != other.overlap,
            switch("overlap", self.overlap),
        );
        all.extend(methods(self.methods, other.methods));
        let layers = match &self.layers_per_stage {
            Some(counts) => format!("layers {}", listed(counts)),
            None => "even stages".to_owned(),
        };
        let mut say = |changed: bool, text: String| all.extend(changed.then_some(text));
        say(self.layers_per_stage != other.layers_per_stage, layers);
        let slower = self.disturbance.describe();
        say(self.disturbance != other.disturbance, slower);
        let device = match self.device {
            Device::Emulated => "emulated",
            Device::Cpu => "threads, measured",
        };
        say(self.device != other.device, device.to_owned());
        let costs = match self.costs {
            Costs::Model => "the model's costs",
            Costs::Passes { .. } => "passes of fixed time",
        };
        say(self.costs != other.costs, costs.to_owned());
        say(self.seed != other.seed, format!("seed {}", self.seed));
        all
    }

    /// What it is called beside `first`: how it differs, or that it does not.
    pub fn name_beside(&self, first: &Self) -> String {
        let difference = self.difference(first);
        if difference.is_empty() {
            "the same".to_owned()
        } else {
            difference.join(", ")
        }
    }
}

/// Numbers with commas between them.
pub fn listed(numbers: &[usize]) -> String {
    let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn switch(name: &str, on: bool) -> String {
    format!("{name} {}", if on { "on" } else { "off" })
}

fn methods(own: Methods, others: Methods) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |changed: bool, text: String| all.extend(changed.then_some(text));
    let recompute = match own.recompute {
        Recompute::None => "no recomputation",
        Recompute::Selective => "selective recomputation",
        Recompute::Full => "full recomputation",
    };
    say(own.recompute != others.recompute, recompute.to_owned());
    let sequence = switch("sequence parallel", own.sequence_parallel);
    say(own.sequence_parallel != others.sequence_parallel, sequence);
    say(own.zero != others.zero, format!("ZeRO {}", own.zero as u8));
    let reduced = switch("gradient reduction", !own.no_sync);
    say(own.no_sync != others.no_sync, reduced);
    let gradients = match own.grad_dtype {
        GradFormat::F32 => "gradients in f32",
        GradFormat::Bf16 => "gradients in bf16",
    };
    say(own.grad_dtype != others.grad_dtype, gradients.to_owned());
    let attention = match own.attention {
        Attention::Fused => "fused attention",
        Attention::Unfused => "unfused attention",
    };
    say(own.attention != others.attention, attention.to_owned());
    all
}

impl Report {
    /// The fullest rank's memory.
    pub fn peak_memory(&self) -> Bytes {
        let peaks = self.ranks.iter().map(|rank| rank.peak_memory_bytes.total());
        peaks.max().unwrap_or_default()
    }

    /// The figures in a line, beside those of `first` where it is another: `step 15.2 ms (-14.3 %) · ...`.
    pub fn line_beside(&self, first: Option<&Self>) -> String {
        let change = |own: f64, of: fn(&Self) -> f64| match first.map(of) {
            Some(before) if own == before => " (the same)".to_owned(),
            Some(before) if before > 0.0 => format!(" ({:+.1} %)", (own / before - 1.0) * 100.0),
            Some(_) | None => String::new(),
        };
        let step = |report: &Self| report.makespan_s;
        let memory = |report: &Self| report.peak_memory().0 as f64;
        let mut parts = vec![
            format!(
                "step {}{}",
                Nanos::from_secs(step(self)),
                change(step(self), step)
            ),
            match first {
                None => format!("bubble {} of total", percent(self.bubble_of_total)),
                Some(first) => format!(
                    "bubble {} of total ({})",
                    percent(self.bubble_of_total),
                    points(self.bubble_of_total - first.bubble_of_total)
                ),
            },
        ];
        if self.config.costs == Costs::Model {
            let fits = if self.fits { "" } else { ", does not fit" };
            let peak = self.peak_memory();
            parts.push(format!(
                "peak memory {peak}{}{fits}",
                change(memory(self), memory)
            ));
        }
        // Steps of other batches are told apart by what they get through.
        let batch = |report: &Self| report.config.layout.global_batch() * report.config.model.seq;
        let rate = |report: &Self| report.tokens_per_s.unwrap_or_default();
        if let Some(own) = self.tokens_per_s
            && first.is_some_and(|first| batch(first) != batch(self))
        {
            parts.push(format!(
                "{} tokens/s{}",
                crate::units::large(own),
                change(own, rate)
            ));
        }
        parts.join(" · ")
    }
}

/// A difference of shares.
fn points(difference: f64) -> String {
    format!("{:+.1} points", difference * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleKind;
    use crate::session::Timeline;

    #[test]
    fn what_was_changed_is_said_and_what_it_does() {
        let before = Config::default();
        let mut after = before.clone();
        after.layout.schedule = ScheduleKind::GPipe;
        after.layout.tp = 2;
        after.overlap = false;
        after.layers_per_stage = Some(vec![3, 2, 2, 1]);
        after.disturbance.slow.push(crate::engine::Slow {
            rank: 3,
            factor: 2.0,
        });
        let said = after.difference(&before).join("; ");
        insta::assert_snapshot!(said, @"TP 2; GPipe; overlap off; layers 3, 2, 2, 1; GPU 3 takes 2 × as long");
        assert_eq!(before.name_beside(&before), "the same");
        let [first, second] = [&before, &after]
            .map(|config| Timeline::simulated(config, "simulated").unwrap().report);
        insta::assert_snapshot!(first.line_beside(None), @"step 23.8 ms · bubble 29.5 % of total · peak memory 24.7 MiB");
        insta::assert_snapshot!(second.line_beside(Some(&first)), @"step 36.6 ms (+53.8 %) · bubble 49.3 % of total (+19.9 points) · peak memory 35.0 MiB (+41.7 %)");
    }
}

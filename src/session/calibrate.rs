//! This machine's cores as hardware of the cost model: measured, and fitted to a small model's step.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::config::{Config, Device};
use super::trainer::{Inputs, TrainError, Trainer, simulate_step};
use crate::engine::Measured;
use crate::engine::{Speeds, calibrate, cores, recorded};
use crate::hardware::{Hardware, Link, Peak, Precision, Reach};
use crate::units::{Nanos, large};

/// Steps of the small model that the costs are fitted to.
const STEPS: usize = 7;

/// This machine as hardware.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// What was measured.
    pub speeds: Speeds,
    /// What the cost model takes.
    pub hardware: Hardware,
    /// A step of the small model on one thread: what it took.
    pub measured: Nanos,
    /// And what the cost model makes of it with this hardware.
    pub modelled: Nanos,
}

impl Calibration {
    /// Measures this machine; `tell` hears of each measurement, of how many there are.
    pub fn measure(
        memory_mib: f64,
        tell: &mut dyn FnMut(usize, usize, &str),
    ) -> Result<Self, TrainError> {
        let speeds = calibrate(tell)?;
        let mut hardware = of_speeds(&speeds, memory_mib);
        let one = Config {
            device: Device::Cpu,
            precision: Precision::F32,
            ..Config::default().on_one_gpu()
        };
        let measured = step_of(&one)?;
        let modelled = |hardware: &Hardware| -> Result<Nanos, TrainError> {
            let hardware = hardware.clone();
            let config = Config {
                hardware,
                ..one.clone()
            };
            Ok(simulate_step(&config)?.makespan)
        };
        fit(&mut hardware, measured, &modelled)?;
        Ok(Self {
            modelled: modelled(&hardware)?,
            speeds,
            hardware,
            measured,
        })
    }

    /// As a hardware file.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let products = self.speeds.products.iter();
        let products: Vec<String> = products
            .map(|&(size, rate)| format!("# product of {size} x {size}: {} FLOP/s\n", large(rate)))
            .collect();
        let text = format!(
            "# This machine's cores as hardware of the cost model: a rank is a thread. A step of nano on one thread took\n\
             # {}; with these figures the model makes it {}.\n",
            self.measured, self.modelled
        );
        Ok(text + &products.concat() + &toml::to_string(&self.hardware)?)
    }
}

/// What the measured speeds are as hardware, products and element-wise work still at their best.
fn of_speeds(speeds: &Speeds, memory_mib: f64) -> Hardware {
    let reduce = speeds.collective("all-reduce").copied();
    let (smallest, largest) =
        reduce.map_or((Nanos::ZERO, Nanos(1)), |time| (time.smallest, time.large));
    let micros = |time: Nanos| time.secs() * 1e6;
    // Of two ranks, each sends and receives the whole once (bus bandwidth is algorithm bandwidth).
    let rate = speeds.large.0 as f64 / largest.since(smallest).secs().max(1e-9) / 1e9;
    let link = Link {
        latency_us: micros(speeds.message),
        gb_per_s: rate,
        reached: 1.0,
    };
    let peak = speeds.peak() / 1e12;
    Hardware {
        name: "this-machine".to_owned(),
        title: "core of this machine".to_owned(),
        memory_mib,
        memory_gb_per_s: 2.0 * speeds.copied / 1e9,
        gpus_per_node: cores().max(1),
        in_node: link,
        between_nodes: link,
        precision: Precision::F32,
        peak_tflops: Peak {
            bf16: peak,
            f32: peak,
        },
        reach: Reach {
            products: 1.0,
            attention: 1.0,
            memory: 1.0,
            launch_us: 0.0,
            kernel_us: micros(speeds.launch),
            pass_us: 0.0,
            collective_us: (micros(smallest) - 2.0 * link.latency_us).max(0.0),
            collective_memory: 1.0,
            send_us: 0.0,
        },
        watts: None,
        usd_per_hour: None,
        source: Some("measured by `shardscope calibrate`".to_owned()),
    }
}

/// The median time of a small model's step on one thread.
fn step_of(config: &Config) -> Result<Nanos, TrainError> {
    let mut trainer = Trainer::new(config, &Inputs::default())?;
    let plan = Arc::new(config.training_plan()?);
    let stop = AtomicBool::new(false);
    let mut times = Vec::new();
    for _ in 0..STEPS {
        if let Measured::Times(took) = trainer.step(false, &stop)?.took {
            times.push(recorded(&plan, &took).makespan);
        }
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

/// Sets what products and element-wise work reach, together, so that the model makes of the small step what it took.
fn fit(
    hardware: &mut Hardware,
    wanted: Nanos,
    modelled: &dyn Fn(&Hardware) -> Result<Nanos, TrainError>,
) -> Result<(), TrainError> {
    let (mut low, mut high) = (0.001_f64, 1.0_f64);
    for _ in 0..40 {
        let share = (low * high).sqrt();
        hardware.reach.products = share;
        hardware.reach.attention = share;
        hardware.reach.memory = share;
        if modelled(hardware)? > wanted {
            low = share;
        } else {
            high = share;
        }
    }
    Ok(())
}

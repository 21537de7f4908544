//! What a run is of: a layout, a model, hardware and how time is told; checked, and made into a plan.

use serde::{Deserialize, Serialize};

use crate::engine::Disturbance;
use crate::hardware::{CostModel, Hardware, HardwareError, PassTimes, Precision, Pricing};
use crate::mesh::{Fold, MeshError};
use crate::plan::{
    Job, Layout, LayoutError, Load, ModelLoad, Plan, PlanError, check_layers, lower,
};
use crate::schedule::{Schedule, ScheduleError, ScheduleKind, Shares};
use crate::shape::{Methods, ModelShape, Recompute, Segment, ShapeError, Zero};
use crate::trace::FixedMemory;
use crate::units::{Bytes, Nanos, Rank};

/// Where an emulated operation's duration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// From the cost model: exactly reproducible.
    Modelled,
    /// From how long the operation took on this machine.
    Measured,
}

/// Where ranks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// On this machine's cores, one after the other or side by side, on virtual clocks.
    #[default]
    Emulated,
    /// Each a thread of this machine, on the wall clock.
    Cpu,
}

impl Device {
    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emulated => "emulated",
            Self::Cpu => "cpu",
        }
    }

    /// Whether it is the default.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks it by reference"
    )]
    pub fn is_emulated(&self) -> bool {
        *self == Self::Emulated
    }
}

/// The most ranks that are threads of this machine.
const MOST_THREADS: usize = 128;

/// What operations cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Costs {
    /// What the hardware makes of the model.
    Model,
    /// Passes of fixed duration; the model is not consulted.
    Passes {
        /// Forward, in nanoseconds.
        forward: Nanos,
        /// Input-gradient.
        input_grad: Nanos,
        /// Weight-gradient.
        weight_grad: Nanos,
        /// From the end of a pass to its consumer on another rank.
        comm: Nanos,
    },
}

impl Costs {
    /// The textbook's: `F = I = W = 1`, so `B = 2`, and sends that take no time.
    pub fn unit() -> Self {
        let PassTimes {
            forward,
            input_grad,
            weight_grad,
            comm,
            ..
        } = PassTimes::unit(1);
        Self::Passes {
            forward,
            input_grad,
            weight_grad,
            comm,
        }
    }
}

/// What a run is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How the model and its batch are cut.
    #[serde(flatten)]
    pub layout: Layout,
    /// The model.
    pub model: ModelShape,
    /// The GPUs and links.
    pub hardware: Hardware,
    /// The format that costs and memory are reckoned in; emulation computes in 32 bits.
    pub precision: Precision,
    /// Whether gradients are reduced while the backward pass goes on.
    pub overlap: bool,
    /// How memory and communication are saved.
    #[serde(default)]
    pub methods: Methods,
    /// Layers of each stage, put there by hand; evenly if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers_per_stage: Option<Vec<usize>>,
    /// What slows some GPUs down.
    #[serde(default, skip_serializing_if = "Disturbance::is_none")]
    pub disturbance: Disturbance,
    /// What operations cost.
    pub costs: Costs,
    /// Where an emulated operation's duration comes from.
    pub clock: Clock,
    /// Where ranks run.
    #[serde(default, skip_serializing_if = "Device::is_emulated")]
    pub device: Device,
    /// Of weights and batches.
    pub seed: u64,
    /// An order of work read from a file, in place of the layout's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Schedule>,
}

/// Why a run cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The layout cannot be, or does not go with the model.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The model cannot be.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The hardware cannot be.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The plan cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The model can be costed, but not trained.
    #[error(
        "{model} has {what}, which can be simulated but not trained here; use `simulate`, or another model"
    )]
    Untrainable {
        /// The model.
        model: String,
        /// What it has.
        what: &'static str,
    },
    /// A rank that is not there is to be slowed down.
    #[error("there is no GPU {rank} to slow down: the layout has {gpus}, counted from 0")]
    NoSuchRank {
        /// Which was meant.
        rank: Rank,
        /// How many there are.
        gpus: usize,
    },
    /// Layers are put on stages by hand, where there are none.
    #[error(
        "layers per stage (--layers-per-stage) mean nothing where every stage's passes take a fixed time (--costs); \
         leave out one of the two"
    )]
    NoLayers,
    /// Gradients are to be left unreduced, but something needs them reduced.
    #[error("gradients cannot be left unreduced (--no-sync) here: {0}; leave out one of the two")]
    NoSync(&'static str),
    /// The method can be costed, but not trained with.
    #[error("{0} can be simulated but not trained with here; leave it out, or use `simulate`")]
    CostsOnly(&'static str),
    /// What is emulated alone.
    #[error(
        "{0} cannot be had of ranks on this machine's own clock; leave it out, or use --device emulated"
    )]
    Emulated(&'static str),
    /// More threads than is sensible.
    #[error(
        "{ranks} ranks would be as many threads, over the {MOST_THREADS} that --device cpu starts; \
         --device emulated runs any number of ranks on this machine's cores"
    )]
    TooManyThreads {
        /// How many.
        ranks: usize,
    },
    /// All ranks together would take more memory than this machine should be asked for.
    #[error(
        "training {model} this way for real would take some {needs} for all ranks, over the {most} that emulation takes; \
         use a smaller model such as nano or mini, fewer replicas, smaller or fewer micro-batches, or `simulate` for the \
         figures alone"
    )]
    TooLarge {
        /// The model.
        model: String,
        /// Memory that all ranks would take.
        needs: Bytes,
        /// The most that is taken.
        most: Bytes,
    },
}

impl From<MeshError> for ConfigError {
    fn from(error: MeshError) -> Self {
        Self::Layout(error.into())
    }
}

impl From<ScheduleError> for ConfigError {
    fn from(error: ScheduleError) -> Self {
        Self::Layout(error.into())
    }
}

/// The first window: eight GPUs on which bubble, transfer and waiting are all to be seen.
impl Default for Config {
    fn default() -> Self {
        let layout = Layout {
            dp: 2,
            pp: 4,
            micro_batches: 8,
            micro_batch_size: 4,
            ..Layout::default()
        };
        // Both ship with the program, and a test reads every one of them.
        let model = ModelShape::preset("nano").unwrap_or_else(|_| unreachable!("nano ships"));
        let hardware =
            Hardware::profile("classroom").unwrap_or_else(|_| unreachable!("classroom ships"));
        Self {
            layout,
            model,
            precision: hardware.precision,
            hardware,
            overlap: true,
            methods: Methods::default(),
            layers_per_stage: None,
            disturbance: Disturbance::default(),
            costs: Costs::Model,
            clock: Clock::Modelled,
            device: Device::Emulated,
            seed: 1,
            custom: None,
        }
    }
}

/// The most ranks that are simulated each by itself.
const MOST_UNFOLDED: usize = 128;

/// The most memory that all emulated ranks may take.
const MOST_EMULATED: Bytes = Bytes(12 << 30);

impl Config {
    /// The order of work.
    pub fn schedule(&self) -> Result<Schedule, ConfigError> {
        match &self.custom {
            Some(schedule) => Ok(schedule.clone()),
            None => Ok(self.layout.build_schedule()?),
        }
    }

    /// Whether it can be, at little cost: all that is refused but what a plan of one's own order of work may
    /// hold in itself.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.model.check()?;
        let gpus = self.layout.mesh()?.ranks();
        if let Some(rank) = self
            .disturbance
            .ranks()
            .into_iter()
            .find(|rank| rank.index() >= gpus)
        {
            return Err(ConfigError::NoSuchRank { rank, gpus });
        }
        if self.methods.no_sync && self.methods.zero != Zero::Off {
            return Err(ConfigError::NoSync("ZeRO shares out what is reduced"));
        }
        match self.costs {
            Costs::Passes { .. } if self.layers_per_stage.is_some() => Err(ConfigError::NoLayers),
            Costs::Passes { .. } => Ok(()),
            Costs::Model => {
                // An order of one's own has been checked when it was read; it stands in the named one's place.
                let layout = if self.custom.is_some() {
                    Layout {
                        schedule: ScheduleKind::OneFOneB,
                        chunks: 1,
                        ..self.layout
                    }
                } else {
                    self.layout
                };
                layout.check(&self.model, self.methods)?;
                // Only now it is known that there are not too many stages to be counted.
                let counts = self.layers_per_stage.as_deref();
                Ok(check_layers(counts, self.model.layers, self.stages())?)
            }
        }
    }

    /// Checked and lowered; of many ranks, those that are alike told by one.
    pub fn plan(&self) -> Result<Plan, ConfigError> {
        let mesh = self.layout.mesh()?;
        // With jitter no two are alike.
        let many = mesh.ranks() > MOST_UNFOLDED && self.disturbance.jitter == 0.0;
        let apart = self.disturbance.ranks();
        let known = apart.iter().all(|rank| rank.index() < mesh.ranks());
        let fold = Fold::around(
            mesh,
            self.hardware.gpus_per_node,
            if known { &apart } else { &[] },
        );
        self.plan_of(fold.filter(|_| many).as_ref())
    }

    fn plan_of(&self, fold: Option<&Fold>) -> Result<Plan, ConfigError> {
        self.check()?;
        let mesh = self.layout.mesh()?;
        let schedule = self.schedule()?;
        let load = match self.costs {
            Costs::Passes { .. } => Load::Passes,
            Costs::Model => Load::Model(self.model_load()),
        };
        Ok(lower(&Job {
            fold,
            mesh,
            schedule: &schedule,
            load,
        })?)
    }

    /// Checked and lowered to be trained, whatever operations cost.
    pub fn training_plan(&self) -> Result<Plan, ConfigError> {
        self.check_trainable()?;
        let trained = Self {
            costs: Costs::Model,
            precision: Precision::F32,
            ..self.clone()
        };
        let plan = trained.plan_of(None)?;
        trained.check_room(&plan)?;
        if self.precision == Precision::F32 {
            return Ok(plan);
        }
        Self {
            costs: Costs::Model,
            ..self.clone()
        }
        .plan_of(None)
    }

    /// Whether this machine has room for all ranks of `plan`, computed in 32 bits: what a plan holds for good, and the
    /// most that each rank has in flight.
    fn check_room(&self, plan: &Plan) -> Result<(), ConfigError> {
        let program = plan.program();
        let fixed: Bytes = program.memory.iter().map(FixedMemory::total).sum();
        let tokens = self.layout.micro_batch_size * self.model.seq;
        let tp = self.layout.tp;
        let layer = self.model.stash_elements(Segment::Attention(0), tokens, tp)
            + self.model.stash_elements(Segment::Mlp(0), tokens, tp);
        let in_flight = program
            .mesh
            .coords()
            .zip(&program.peak_in_flight)
            .map(|(at, &count)| {
                let held =
                    (0..program.stages.len()).filter(|&stage| program.holders[stage] == at.pp);
                let layers: Vec<usize> = held
                    .map(|stage| program.stages[stage].layers.len())
                    .collect();
                // What is in flight is on one of a rank's chunks.
                let each = layers.iter().sum::<usize>().div_ceil(layers.len().max(1));
                Bytes(4 * layer) * (each as u64) * u64::from(count)
            });
        let needs = fixed + in_flight.sum();
        if needs > MOST_EMULATED {
            let model = self.model.name.clone();
            return Err(ConfigError::TooLarge {
                model,
                needs,
                most: MOST_EMULATED,
            });
        }
        Ok(())
    }

    fn check_trainable(&self) -> Result<(), ConfigError> {
        let model = self.model.name.clone();
        if let Some(what) = self.model.untrainable() {
            return Err(ConfigError::Untrainable { model, what });
        }
        let Methods {
            recompute, zero, ..
        } = self.methods;
        if recompute != Recompute::None {
            return Err(ConfigError::CostsOnly("recomputation"));
        }
        if zero > Zero::Optimizer {
            return Err(ConfigError::CostsOnly("ZeRO 2 or 3"));
        }
        self.check_device()
    }

    fn check_device(&self) -> Result<(), ConfigError> {
        let ranks = self.layout.dp * self.layout.tp * self.layout.pp;
        if self.device.is_emulated() {
            return Ok(());
        }
        if !self.disturbance.is_none() {
            return Err(ConfigError::Emulated("a GPU or a link made slower"));
        }
        if ranks > MOST_THREADS {
            return Err(ConfigError::TooManyThreads { ranks });
        }
        Ok(())
    }

    pub(super) fn model_load(&self) -> ModelLoad<'_> {
        ModelLoad {
            shape: &self.model,
            micro_batch_size: self.layout.micro_batch_size,
            precision: self.precision,
            overlap: self.overlap,
            methods: self.methods,
            gpus_per_node: self.hardware.gpus_per_node,
            layers_per_stage: self.layers_per_stage.as_deref(),
        }
    }

    /// How many stages the model is cut into.
    pub fn stages(&self) -> usize {
        self.custom.as_ref().map_or_else(
            || self.layout.pp.saturating_mul(self.layout.chunks),
            Schedule::stages,
        )
    }

    /// What prices the plan's tasks.
    pub fn pricing(&self) -> Box<dyn Pricing> {
        match self.costs {
            Costs::Model => Box::new(CostModel {
                hardware: self.hardware.clone(),
                precision: self.precision,
                gradients: self.methods.grad_dtype,
            }),
            Costs::Passes {
                forward,
                input_grad,
                weight_grad,
                comm,
            } => {
                let chunks =
                    self.custom
                        .as_ref()
                        .map_or(self.layout.chunks, Schedule::chunks) as u64;
                Box::new(PassTimes {
                    forward,
                    input_grad,
                    weight_grad,
                    comm,
                    chunks,
                })
            }
        }
    }

    /// The same training on one GPU.
    pub fn on_one_gpu(&self) -> Self {
        Self {
            layout: self.layout.on_one_gpu(),
            custom: None,
            layers_per_stage: None,
            disturbance: Disturbance::default(),
            device: Device::Emulated,
            ..self.clone()
        }
    }

    /// The schedule's name in texts.
    pub fn schedule_title(&self) -> &str {
        if self.custom.is_some() {
            "custom schedule"
        } else {
            self.layout.schedule.title()
        }
    }

    /// The layout in a line: `DP 2 × TP 1 × PP 4 · 8 micro-batches of 4 · 1F1B`.
    pub fn layout_line(&self) -> String {
        let Layout {
            dp,
            tp,
            pp,
            micro_batches,
            micro_batch_size,
            ..
        } = self.layout;
        let schedule = self.schedule_title();
        format!(
            "DP {dp} × TP {tp} × PP {pp} · {micro_batches} micro-batches of {micro_batch_size} · {schedule}"
        )
    }

    /// The bubble that the textbook gives for this layout, where it has one: for even stages.
    pub fn bubble_formula(&self) -> Option<f64> {
        let Costs::Passes {
            forward,
            input_grad,
            weight_grad,
            ..
        } = self.costs
        else {
            return None;
        };
        let shares = Shares {
            forward,
            input_grad,
            weight_grad,
        };
        let textbook = self.layout.textbook();
        self.custom
            .is_none()
            .then(|| textbook.bubble_of_total(shares))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_has_no_room_for_is_refused_before_anything_runs() {
        let mut config = Config::default();
        config.layout.schedule = ScheduleKind::GPipe;
        config.layout.micro_batches = 2000;
        config.layout.micro_batch_size = 64;
        let said = config.training_plan().unwrap_err().to_string();
        assert!(said.contains("for all ranks, over the 12.0 GiB"), "{said}");
        assert!(config.plan().is_ok(), "it can be simulated all the same");
        // One micro-batch in flight a stage and rank is no more than one step of it.
        config.layout.schedule = ScheduleKind::OneFOneB;
        config.layout.micro_batches = 16;
        config.layout.micro_batch_size = 4;
        assert!(config.training_plan().is_ok());
    }

    #[test]
    fn an_optimizer_that_cannot_compute_is_refused() {
        let mut config = Config::default();
        config.model.optimizer.beta1 = 1.0;
        let said = config.plan().unwrap_err().to_string();
        assert_eq!(said, "the optimizer's beta1 must be from 0 to below 1");
    }
}

//! Changes of the configuration: each is checked before it is asked for. One that cannot be says why and offers the
//! nearest that can; nothing is lost, and every change can be undone. Pure logic.

use crate::hardware::{Hardware, PROFILES};
use crate::plan::Layout;
use crate::schedule::ScheduleKind;
use crate::session::{Config, ConfigError, Device};
use crate::shape::{ModelShape, PRESETS, Zero};
use crate::words::mark;

use super::what_if;
use super::wish::Direction;

/// A control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Field {
    /// Data-parallel degree.
    Dp,
    /// Tensor-parallel degree.
    Tp,
    /// Pipeline-parallel degree.
    Pp,
    /// Micro-batches of each replica.
    MicroBatches,
    /// Sequences of a micro-batch.
    MicroBatchSize,
    /// Stages of a pipeline rank.
    Chunks,
    /// The order of work.
    Schedule,
    /// Whether gradients are reduced during the backward pass.
    Overlap,
    /// Whether tensor-parallel ranks share what lies between matrices.
    Sequence,
    /// Whether data-parallel ranks share the optimizer.
    Zero,
    /// Whether data-parallel ranks reduce their gradients.
    Sync,
    /// The model.
    Model,
    /// The GPUs.
    Hardware,
    /// Where ranks run.
    Device,
    /// A GPU that computes slowly.
    SlowGpu,
    /// How slowly.
    SlowGpuBy,
    /// A GPU whose links are slow.
    SlowLink,
    /// How slow they are.
    SlowLinkBy,
    /// How much times differ by chance.
    Jitter,
    /// Layers on stages.
    Layers,
}

impl Field {
    /// Those that are numbers.
    pub(super) const NUMBERS: [Self; 6] = [
        Self::Dp,
        Self::Tp,
        Self::Pp,
        Self::MicroBatches,
        Self::MicroBatchSize,
        Self::Chunks,
    ];

    /// The name beside the control.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dp => mark!("Data parallel"),
            Self::Tp => mark!("Tensor parallel"),
            Self::Pp => mark!("Pipeline parallel"),
            Self::MicroBatches => mark!("Micro-batches"),
            Self::MicroBatchSize => mark!("Micro-batch size"),
            Self::Chunks => mark!("Chunks a GPU"),
            Self::Schedule => mark!("Schedule"),
            Self::Overlap => mark!("Overlap"),
            Self::Sequence => mark!("Sequence parallel"),
            Self::Zero => "ZeRO-1",
            Self::Sync => mark!("Reduce gradients"),
            Self::Model => mark!("Model"),
            Self::Hardware => mark!("Hardware"),
            Self::Device => mark!("Ranks"),
            Self::SlowGpu => "Slow GPU",
            Self::SlowGpuBy => "How slow",
            Self::SlowLink => "Slow links",
            Self::SlowLinkBy => "How slow they are",
            Self::Jitter => "Jitter",
            Self::Layers => "Layers of each stage",
        }
    }

    /// The value of a number.
    pub(super) fn number(self, layout: &Layout) -> Option<usize> {
        self.number_mut(&mut { *layout }).copied()
    }

    fn number_mut(self, layout: &mut Layout) -> Option<&mut usize> {
        match self {
            Self::Dp => Some(&mut layout.dp),
            Self::Tp => Some(&mut layout.tp),
            Self::Pp => Some(&mut layout.pp),
            Self::MicroBatches => Some(&mut layout.micro_batches),
            Self::MicroBatchSize => Some(&mut layout.micro_batch_size),
            Self::Chunks => Some(&mut layout.chunks),
            Self::Schedule
            | Self::Overlap
            | Self::Sequence
            | Self::Zero
            | Self::Sync
            | Self::Model
            | Self::Hardware
            | Self::Device
            | Self::SlowGpu
            | Self::SlowGpuBy
            | Self::SlowLink
            | Self::SlowLinkBy
            | Self::Jitter
            | Self::Layers => None,
        }
    }
}

/// A change of one control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Of a number.
    Number(Field, usize),
    /// Of the order of work.
    Schedule(ScheduleKind),
    /// Of the overlap.
    Overlap(bool),
    /// Of sequence parallelism.
    Sequence(bool),
    /// Of the optimizer's sharing.
    Zero(bool),
    /// Of the gradients' reduction.
    Sync(bool),
    /// To the preset of that name.
    Model(&'static str),
    /// To the profile of that name.
    Hardware(&'static str),
    /// Of where ranks run.
    Device(Device),
    /// Of which GPU is slow, or whose links are.
    Straggler(Field, Option<u32>),
    /// Of how slow it is: its time in per cent of the others'.
    Slower(Field, u32),
    /// Of the jitter, in per cent.
    Jitter(u32),
    /// Of the layers on each stage; evenly again if absent.
    Layers(Option<Vec<usize>>),
}

impl Change {
    /// Which control changes.
    pub(super) fn field(&self) -> Field {
        match self {
            Self::Number(field, _) | Self::Straggler(field, _) | Self::Slower(field, _) => *field,
            Self::Schedule(_) => Field::Schedule,
            Self::Overlap(_) => Field::Overlap,
            Self::Sequence(_) => Field::Sequence,
            Self::Zero(_) => Field::Zero,
            Self::Sync(_) => Field::Sync,
            Self::Model(_) => Field::Model,
            Self::Hardware(_) => Field::Hardware,
            Self::Device(_) => Field::Device,
            Self::Jitter(_) => Field::Jitter,
            Self::Layers(_) => Field::Layers,
        }
    }

    /// What it asks for: `Tensor parallel 4`.
    pub(super) fn text(&self) -> String {
        let value = match self {
            Self::Number(_, value) => value.to_string(),
            Self::Schedule(kind) => kind.title().to_owned(),
            Self::Overlap(on) | Self::Sequence(on) | Self::Zero(on) | Self::Sync(on) => {
                if *on { "on" } else { "off" }.to_owned()
            }
            Self::Model(name) | Self::Hardware(name) => (*name).to_owned(),
            Self::Device(device) => device_name(*device).to_owned(),
            Self::Straggler(_, None) => "none".to_owned(),
            Self::Straggler(_, Some(rank)) => rank.to_string(),
            Self::Slower(_, percent) => what_if::slower_text(*percent),
            Self::Jitter(percent) => format!("{percent} %"),
            Self::Layers(None) => "even".to_owned(),
            Self::Layers(Some(layers)) => crate::session::listed(layers),
        };
        format!("{} {value}", self.field().name())
    }

    /// The configuration with the change, unchecked.
    pub(super) fn made_to(&self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        let stages = (config.stages(), config.model.layers);
        match *self {
            Self::Number(field, value) => {
                if let Some(number) = field.number_mut(&mut config.layout) {
                    *number = value;
                }
            }
            Self::Schedule(kind) => {
                let had = config.layout.schedule.chunks();
                config.layout.schedule = kind;
                // Chunks that the schedule before had need not be this one's.
                if kind.chunks() != had {
                    config.layout.chunks = kind.chunks().count();
                }
            }
            Self::Overlap(on) => config.overlap = on,
            Self::Sequence(on) => config.methods.sequence_parallel = on,
            Self::Sync(on) => config.methods.no_sync = !on,
            Self::Zero(on) => {
                config.methods.zero = if on { Zero::Optimizer } else { Zero::Off };
            }
            Self::Model(name) => config.model = ModelShape::preset(name)?,
            Self::Hardware(name) => {
                config.hardware = Hardware::profile(name)?;
                config.precision = config.hardware.precision;
            }
            Self::Device(device) => {
                config.device = device;
                // A thread of this machine is as fast as it is.
                if !device.is_emulated() {
                    config.disturbance = Config::default().disturbance;
                }
            }
            Self::Straggler(field, rank) => {
                config.device = Device::Emulated;
                let (list, usual) = what_if::list_of(&mut config.disturbance, field);
                *list = what_if::with_rank(list, rank, usual);
            }
            Self::Slower(field, percent) => {
                let (list, _) = what_if::list_of(&mut config.disturbance, field);
                *list = what_if::with_factor(list, percent);
            }
            Self::Jitter(percent) => {
                config.device = Device::Emulated;
                config.disturbance.jitter = f64::from(percent) / 100.0;
            }
            Self::Layers(ref layers) => {
                let by_hand = layers
                    .clone()
                    .filter(|layers| *layers != what_if::even(&config));
                config.layers_per_stage = by_hand;
            }
        }
        // What was put on stages by hand, or on GPUs, does not go with others.
        if stages != (config.stages(), config.model.layers) {
            config.layers_per_stage = None;
        }
        let gpus = config.layout.mesh().map_or(0, |mesh| mesh.ranks());
        config.disturbance.keep_within(gpus);
        Ok(config)
    }

    /// The configuration with the change, if there can be one.
    pub(super) fn applied(&self, config: &Config) -> Result<Config, ConfigError> {
        let config = self.made_to(config)?;
        // Lowering the plan, which may find more, is left to the session.
        config.check()?;
        Ok(config)
    }
}

/// Where ranks can run.
pub(super) const DEVICES: [Device; 2] = [Device::Emulated, Device::Cpu];

/// What that is called beside the control.
pub(super) fn device_name(device: Device) -> &'static str {
    match device {
        Device::Emulated => mark!("emulated"),
        Device::Cpu => mark!("threads"),
    }
}

/// One or more changes that together can be.
pub(super) type Offer = Vec<Change>;

/// A change that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// What was asked for.
    pub(super) asked: Change,
    /// Why it cannot be.
    pub(super) reason: String,
    /// The nearest that can.
    pub(super) offers: Vec<Offer>,
}

impl Refusal {
    /// What an offer's button says.
    pub(super) fn offer_text(&self, offer: &Offer) -> String {
        let kept = |change: &&Change| **change != self.asked;
        let parts: Vec<String> = offer.iter().filter(kept).map(Change::text).collect();
        parts.join(", ")
    }
}

/// Offers are looked for up to so far from what was asked.
const REACH: usize = 64;
/// More offers than this are no help.
const MOST_OFFERS: usize = 4;

/// `asked`, refused for `error`, with the nearest values that can be.
pub(super) fn refuse(config: &Config, asked: Change, error: &ConfigError) -> Refusal {
    let mut offers = near_it(config, &asked);
    offers.extend(beside_it(config, &asked));
    offers.truncate(MOST_OFFERS);
    Refusal {
        reason: sentence(&error.to_string()),
        asked,
        offers,
    }
}

/// Degrees as their abbreviations, the first letter large, a full stop at the end.
fn sentence(text: &str) -> String {
    let words = text.split(' ').map(|word| match word {
        "dp" | "tp" | "pp" => word.to_uppercase(),
        "tp:" => "TP".to_owned(),
        _ => word.to_owned(),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let stop = if text.ends_with(['.', '!']) { "" } else { "." };
    format!("{}{}{stop}", first.unwrap_or_default(), letters.as_str())
}

/// The nearest legal values of the same number, below and above.
fn near_it(config: &Config, asked: &Change) -> Vec<Offer> {
    let Change::Number(field, value) = *asked else {
        return Vec::new();
    };
    let legal = |value: &usize| Change::Number(field, *value).applied(config).is_ok();
    let below = (1..value).rev().take(REACH).find(legal);
    let above = (value.saturating_add(1)..).take(REACH).find(legal);
    let found = below.into_iter().chain(above);
    found
        .map(|value| vec![Change::Number(field, value)])
        .collect()
}

/// The same change with another number changed too.
fn beside_it(config: &Config, asked: &Change) -> Vec<Offer> {
    let Ok(with_it) = asked.made_to(config) else {
        return Vec::new();
    };
    let others = Field::NUMBERS
        .into_iter()
        .filter(|&field| field != asked.field());
    let offer = |field: Field| {
        let now = field.number(&with_it.layout)?;
        let nearest = (1..REACH).flat_map(|far| [now.checked_add(far), now.checked_sub(far)]);
        let changes = nearest.flatten().map(|value| Change::Number(field, value));
        let legal = changes
            .into_iter()
            .find(|change| change.applied(&with_it).is_ok())?;
        Some(vec![asked.clone(), legal])
    };
    others.filter_map(offer).collect()
}

/// The next value of a control, or the one before. From a refused value it goes on, so that a press more gets past it.
pub(super) fn next(
    config: &Config,
    refused: Option<&Refusal>,
    field: Field,
    direction: Direction,
) -> Change {
    let layout = &config.layout;
    let pending = refused.map(|refusal| &refusal.asked);
    match field {
        Field::Overlap => Change::Overlap(!config.overlap),
        Field::Sequence => Change::Sequence(!config.methods.sequence_parallel),
        Field::Sync => Change::Sync(config.methods.no_sync),
        Field::Zero => Change::Zero(config.methods.zero == Zero::Off),
        Field::Schedule => {
            let now = match pending {
                Some(Change::Schedule(kind)) => *kind,
                _ => layout.schedule,
            };
            Change::Schedule(neighbour(&ScheduleKind::ALL, &now, direction))
        }
        Field::SlowGpu | Field::SlowLink => next_straggler(config, field, direction),
        Field::SlowGpuBy | Field::SlowLinkBy => {
            let mut disturbance = config.disturbance.clone();
            let now = what_if::first(what_if::list_of(&mut disturbance, field).0);
            let percent = now.map_or(100, |(_, percent)| percent);
            Change::Slower(field, neighbour(&what_if::SLOWER, &percent, direction))
        }
        Field::Jitter => {
            let now = (config.disturbance.jitter * 100.0).round() as u32;
            Change::Jitter(neighbour(&what_if::JITTERS, &now, direction))
        }
        // Moved from stage to stage, and not along a list.
        Field::Layers => Change::Layers(None),
        Field::Model => Change::Model(named(PRESETS, &config.model.name, direction)),
        Field::Device => Change::Device(neighbour(&DEVICES, &config.device, direction)),
        Field::Hardware => Change::Hardware(named(PROFILES, &config.hardware.name, direction)),
        Field::Dp
        | Field::Tp
        | Field::Pp
        | Field::MicroBatches
        | Field::MicroBatchSize
        | Field::Chunks => {
            let now = match pending {
                Some(Change::Number(asked, value)) if *asked == field => *value,
                _ => field.number(layout).unwrap_or(1),
            };
            let value = match direction {
                Direction::Up => now.saturating_add(1),
                Direction::Down => now.saturating_sub(1),
            };
            Change::Number(field, value)
        }
    }
}

/// The next GPU to be slow, none after the last.
fn next_straggler(config: &Config, field: Field, direction: Direction) -> Change {
    let mut disturbance = config.disturbance.clone();
    let now = what_if::first(what_if::list_of(&mut disturbance, field).0).map(|(rank, _)| rank);
    let last = config
        .layout
        .mesh()
        .map_or(0, |mesh| mesh.ranks().saturating_sub(1) as u32);
    let next = match (direction, now) {
        (Direction::Up, None) => Some(0),
        (Direction::Up, Some(rank)) => (rank < last).then_some(rank + 1),
        (Direction::Down, None) => Some(last),
        (Direction::Down, Some(rank)) => rank.checked_sub(1),
    };
    Change::Straggler(field, next)
}

/// The name after `now` in a catalogue, or before it.
fn named(
    catalogue: &'static [(&'static str, &'static str)],
    now: &str,
    direction: Direction,
) -> &'static str {
    let names: Vec<&'static str> = catalogue.iter().map(|&(name, _)| name).collect();
    let now = names.iter().copied().find(|&name| name == now);
    neighbour(&names, &now.unwrap_or_default(), direction)
}

/// The entry after `now`, or before it; round at the ends.
fn neighbour<T: Copy + PartialEq>(all: &[T], now: &T, direction: Direction) -> T {
    let at = all.iter().position(|entry| entry == now);
    let count = all.len();
    let index = match (at, direction) {
        (None, _) => 0,
        (Some(at), Direction::Up) => (at + 1) % count,
        (Some(at), Direction::Down) => (at + count - 1) % count,
    };
    all[index]
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;

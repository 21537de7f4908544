//! What this machine has for ranks to run on: its cores, its memory, and NVIDIA GPUs where a driver tells of them.

use serde::Serialize;

use crate::engine::cores;
use crate::units::Bytes;

/// What there is.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory of the machine, in bytes; null where it cannot be told.
    pub memory_bytes: Option<Bytes>,
    /// As `--device` names them.
    pub devices: Vec<DeviceKind>,
    /// NVIDIA GPUs.
    pub gpus: Vec<Gpu>,
    /// Why there are none, or what could not be told of them; null if all could.
    pub gpus_note: Option<String>,
}

/// A kind of device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceKind {
    /// As `--device` names it.
    pub name: &'static str,
    /// Whether ranks can run on it.
    pub available: bool,
    /// What it is, or why not.
    pub note: &'static str,
}

/// An NVIDIA GPU; what it does not tell is null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gpu {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its memory, in bytes.
    pub memory_bytes: Option<Bytes>,
    /// Of that, used now.
    pub used_bytes: Option<Bytes>,
    /// Its compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// Its `PCIe` link, such as `gen 5 x16`.
    pub pcie: Option<String>,
    /// Its `NVLink` links that are up.
    pub nvlinks: u32,
    /// How near each other GPU is, in their order: the common ancestor on the `PCIe` tree.
    pub near: Vec<String>,
    /// The share of the last moments in which it computed.
    pub utilization: Option<f64>,
    /// Power drawn, in watts.
    pub power_w: Option<f64>,
    /// Temperature, in degrees Celsius.
    pub temperature_c: Option<u32>,
}

impl Machine {
    /// This one, now.
    pub fn look() -> Self {
        let device = |name, available, note| DeviceKind {
            name,
            available,
            note,
        };
        let (gpus, gpus_note) = gpus();
        Self {
            cores: cores(),
            memory_bytes: memory(),
            devices: vec![
                device(
                    "emulated",
                    true,
                    "any number of GPUs, their real maths on this machine's cores, their time on virtual clocks",
                ),
                device(
                    "cpu",
                    true,
                    "a thread a rank on the wall clock; true to parallel hardware while there are as many cores",
                ),
                device("cuda", false, "a rank a GPU, over NCCL: not in this build"),
            ],
            gpus,
            gpus_note,
        }
    }
}

/// Memory of the machine, where the system says it in a file.
fn memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib * 1024))
}

#[cfg(not(feature = "desktop"))]
fn gpus() -> (Vec<Gpu>, Option<String>) {
    (
        Vec::new(),
        Some("this build does not look for GPUs".to_owned()),
    )
}

/// All GPUs that the driver tells of; what keeps it from telling is said in a sentence.
#[cfg(feature = "desktop")]
fn gpus() -> (Vec<Gpu>, Option<String>) {
    match nvidia::all() {
        Ok(gpus) if gpus.is_empty() => (gpus, Some("the NVIDIA driver knows of no GPU".to_owned())),
        Ok(gpus) => (gpus, None),
        Err(error) => (Vec::new(), Some(nvidia::why(&error))),
    }
}

#[cfg(feature = "desktop")]
mod nvidia {
    //! Asks NVIDIA's management library, which comes with the driver and is loaded at run time.

    use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
    use nvml_wrapper::error::NvmlError;
    use nvml_wrapper::{Device, Nvml};

    use super::Gpu;
    use crate::units::Bytes;

    /// The most `NVLink` links of a GPU.
    const MOST_LINKS: u32 = 18;

    pub(super) fn all() -> Result<Vec<Gpu>, NvmlError> {
        let nvml = Nvml::init()?;
        let driver = nvml.sys_driver_version().ok();
        let count = nvml.device_count()?;
        let gpu = |index| {
            let device = nvml.device_by_index(index)?;
            Ok(Gpu {
                driver: driver.clone(),
                near: near(&nvml, &device, count),
                ..of(index, &device)
            })
        };
        (0..count).map(gpu).collect()
    }

    fn of(index: u32, device: &Device<'_>) -> Gpu {
        let memory = device.memory_info().ok();
        let capability = device.cuda_compute_capability().ok();
        let pcie = device
            .current_pcie_link_gen()
            .ok()
            .zip(device.current_pcie_link_width().ok());
        let is_up = |link: &u32| device.link_wrapper_for(*link).is_active().unwrap_or(false);
        Gpu {
            index,
            name: device
                .name()
                .unwrap_or_else(|_unknown| "NVIDIA GPU".to_owned()),
            memory_bytes: memory.as_ref().map(|memory| Bytes(memory.total)),
            used_bytes: memory.as_ref().map(|memory| Bytes(memory.used)),
            compute_capability: capability.map(|of| format!("{}.{}", of.major, of.minor)),
            pcie: pcie.map(|(generation, width)| format!("gen {generation} x{width}")),
            nvlinks: (0..MOST_LINKS).filter(is_up).count() as u32,
            utilization: device
                .utilization_rates()
                .ok()
                .map(|of| f64::from(of.gpu) / 100.0),
            power_w: device.power_usage().ok().map(|of| f64::from(of) / 1e3),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            ..Gpu::default()
        }
    }

    #[cfg(target_os = "linux")]
    fn near(nvml: &Nvml, device: &Device<'_>, count: u32) -> Vec<String> {
        let level = |index: u32| {
            let other = nvml.device_by_index(index);
            let common = other.and_then(|other| device.topology_common_ancestor(other));
            common.map_or_else(
                |_unknown| "unknown".to_owned(),
                |level| format!("{level:?}"),
            )
        };
        (0..count).map(level).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn near(_: &Nvml, _: &Device<'_>, _: u32) -> Vec<String> {
        Vec::new()
    }

    /// Why it tells nothing, and that nothing here depends on it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library has some thirty more, told in its own words"
    )]
    pub(super) fn why(error: &NvmlError) -> String {
        let why = match error {
            NvmlError::LibloadingError(_) => {
                "no NVIDIA driver is installed (its management library was not found)"
            }
            NvmlError::DriverNotLoaded => "the NVIDIA driver is installed but not loaded",
            NvmlError::NoPermission => "this user may not ask the NVIDIA driver",
            NvmlError::LibRmVersionMismatch => {
                "the NVIDIA driver and its library are of different versions, which a restart mends"
            }
            other => return format!("the NVIDIA driver says: {other}; emulation needs no GPU"),
        };
        format!("{why}; emulation needs no GPU")
    }
}

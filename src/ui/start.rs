//! Opens the window, and says in plain words why it cannot.

use std::path::PathBuf;

use eframe::egui::ViewportBuilder;

use super::app::App;
use super::lesson;
use super::options::Options;
use super::viewer::Viewer;

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// Nothing to show it on.
    #[error(
        "there is no display to open a window on ({0}); start it from a desktop session, or use the command line, \
         such as `shardscope run`"
    )]
    NoDisplay(String),
    /// Nothing to draw it with.
    #[error(
        "no graphics driver can draw the window ({0}); without a GPU, install a software driver, on Debian and Ubuntu \
         `apt-get install mesa-vulkan-drivers libvulkan1`"
    )]
    NoDriver(String),
    /// A library that the window system needs.
    #[error("the library {library} is missing; on Debian and Ubuntu `apt-get install {package}`")]
    NoLibrary {
        /// Its file.
        library: &'static str,
        /// What contains it.
        package: &'static str,
    },
    /// Anything else.
    #[error("the window could not be opened: {0}")]
    Other(String),
}

/// Opens the window and returns when it is closed.
pub fn run(mut options: Options) -> Result<(), UiError> {
    options.progress = options.progress.or_else(lesson::place);
    open(Box::new(move |cc| Ok(Box::new(App::new(cc, &options)?))))
}

/// Opens a window on traces in files, and returns when it is closed.
pub fn view(options: Options, files: Vec<PathBuf>) -> Result<(), UiError> {
    open(Box::new(move |cc| {
        Ok(Box::new(Viewer::open(cc, &options, files)?))
    }))
}

fn open(create: eframe::AppCreator<'_>) -> Result<(), UiError> {
    check_system()?;
    let native = eframe::NativeOptions {
        viewport: ViewportBuilder::default()
            .with_title("Shardscope")
            .with_app_id("shardscope")
            .with_inner_size([1280.0, 720.0])
            .with_min_inner_size([760.0, 480.0]),
        ..eframe::NativeOptions::default()
    };
    eframe::run_native("shardscope", native, create).map_err(UiError::from)
}

impl From<eframe::Error> for UiError {
    fn from(error: eframe::Error) -> Self {
        match error {
            eframe::Error::WinitEventLoop(error) => Self::NoDisplay(error.to_string()),
            eframe::Error::Winit(error) => Self::NoDisplay(error.to_string()),
            eframe::Error::Wgpu(error) => Self::NoDriver(error.to_string()),
            other @ eframe::Error::AppCreation(_) => Self::Other(other.to_string()),
        }
    }
}

/// Asked beforehand, as the window system's own words do not help. Its keyboard library is loaded at run time, and
/// its absence would end the program with a panic.
#[cfg(target_os = "linux")]
fn check_system() -> Result<(), UiError> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let wayland = set("WAYLAND_DISPLAY") || set("WAYLAND_SOCKET");
    if !wayland && !set("DISPLAY") {
        let why = "neither DISPLAY nor WAYLAND_DISPLAY is set";
        return Err(UiError::NoDisplay(why.to_owned()));
    }
    if xkbcommon_dl::xkbcommon_option().is_none() {
        return Err(UiError::NoLibrary {
            library: "libxkbcommon.so.0",
            package: "libxkbcommon0",
        });
    }
    if !wayland && xkbcommon_dl::x11::xkbcommon_x11_option().is_none() {
        return Err(UiError::NoLibrary {
            library: "libxkbcommon-x11.so.0",
            package: "libxkbcommon-x11-0",
        });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_system() -> Result<(), UiError> {
    Ok(())
}

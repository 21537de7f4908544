//! The program: the window, or the command line.

#[cfg(feature = "desktop")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "desktop")]
fn main() -> std::process::ExitCode {
    shardscope::cli::main(open_window)
}

/// Opens the window.
#[cfg(feature = "desktop")]
fn open_window() -> Result<(), String> {
    shardscope::ui::run(shardscope::ui::Options::default()).map_err(|error| error.to_string())
}

/// Without the desktop's features this package is a library.
#[cfg(not(feature = "desktop"))]
fn main() {}

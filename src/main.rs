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
fn open_window(show: shardscope::cli::Show) -> Result<(), String> {
    let mut options = shardscope::ui::Options::default();
    let closed = match show {
        shardscope::cli::Show::Run(window) => {
            options.language = window.language;
            options.lessons = window.lessons;
            options.lesson = window.lesson;
            if let Some(kit) = window.kit {
                options = options.with_kit(*kit);
            }
            shardscope::ui::run(options)
        }
        shardscope::cli::Show::Files(files) => shardscope::ui::view(options, files),
    };
    closed.map_err(|error| error.to_string())
}

/// Without the desktop's features this package is a library.
#[cfg(not(feature = "desktop"))]
fn main() {}

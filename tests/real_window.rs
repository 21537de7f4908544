//! The program in a real window: its layout changed by keys, trained, watched, exported, closed mid-run.
//!
//! Needs a virtual display (Xvfb) and xdotool; says so and passes where they are missing.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that is ended with the test.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A virtual display of its own.
struct Display {
    name: String,
    _server: Owned,
}

impl Display {
    fn start() -> Option<Self> {
        let mut server = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "1280x720x24",
                "-nolisten",
                "tcp",
                // Else it starts anew whenever its last client leaves, and who comes just then is turned away.
                "-noreset",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(server.stdout.take()?)
            .read_line(&mut line)
            .ok()?;
        Some(Self {
            name: format!(":{}", line.trim()),
            _server: Owned(server),
        })
    }

    fn xdotool(&self, args: &[&str]) -> Option<String> {
        let run = Command::new("xdotool")
            .args(args)
            .env("DISPLAY", &self.name)
            .output()
            .ok()?;
        run.status
            .success()
            .then(|| String::from_utf8_lossy(&run.stdout).trim().to_owned())
    }

    fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.xdotool(&["key", key]).expect("a key pressed");
            pause(400);
        }
    }
}

fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Tries so often, for what takes its time at each try.
fn attempts<T>(times: usize, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    (0..times).find_map(|_| {
        let found = attempt();
        if found.is_none() {
            pause(200);
        }
        found
    })
}

fn tried<T>(times: usize, what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    attempts(times, attempt).unwrap_or_else(|| panic!("{what} never came"))
}

/// Closes the window; with all its threads it ends at once: what a busy machine may add is seconds.
fn close(display: &Display, program: &mut Owned) {
    display.keys(&["ctrl+q"]);
    let status = (0..100).find_map(|_| {
        pause(100);
        program.0.try_wait().expect("a status")
    });
    let status = status.expect("it ends within ten seconds");
    assert!(status.success(), "{status}");
}

/// The program's window, with the focus.
fn open(display: &Display, folder: &Path, args: &[&str]) -> Owned {
    let log = folder.join("stderr");
    let said = std::fs::File::create(&log).expect("a file for what it says");
    let program = Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .args(args)
        .current_dir(folder)
        .env("DISPLAY", &display.name)
        .env("XDG_RUNTIME_DIR", folder)
        .env_remove("WAYLAND_DISPLAY")
        .stderr(said)
        .spawn()
        .expect("the program starts");
    let program = Owned(program);
    // For two minutes: a first frame on a busy machine without a GPU takes its time.
    let window = attempts(600, || {
        display.xdotool(&["search", "--onlyvisible", "--name", "Shardscope"])
    });
    let window = window.unwrap_or_else(|| {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        panic!("the window never came; the program said: {said}")
    });
    pause(2000);
    display.xdotool(&["windowfocus", window.lines().next().expect("a window")]);
    pause(500);
    program
}

/// What the export panel writes under `name`, through the keyboard. Tried again where a busy machine took
/// several keys for one frame's.
fn export(display: &Display, folder: &Path, name: &str) -> Vec<u8> {
    let path = folder.join(name);
    tried(8, name, || {
        display.keys(&["e"]);
        // Past the nine endings to the path.
        display.keys(&["Tab"; 10]);
        display.keys(&["ctrl+a"]);
        display.xdotool(&["type", "--delay", "80", name]);
        display.keys(&["Return"]);
        pause(2000);
        display.keys(&["Escape"]);
        pause(1000);
        // Written under another name and then renamed: what is there is whole.
        std::fs::read(&path).ok()
    })
}

/// The bubble that the window's trace has once it is of `pp` stages: what is shown follows the controls as soon
/// as the session has got there.
fn bubble_with(display: &Display, folder: &Path, pp: u64) -> f64 {
    let name = format!("{pp}.json");
    tried(8, "the layout", || {
        let trace: serde_json::Value =
            serde_json::from_slice(&export(display, folder, &name)).expect("a JSON trace");
        drop(std::fs::remove_file(folder.join(&name)));
        let report = &trace["shardscope"]["report"];
        (report["config"]["pp"] == pp)
            .then(|| report["bubble_of_total"].as_f64().expect("a bubble"))
    })
}

#[test]
fn pipeline_degree_changed_trained_exported_and_closed() {
    // Where the test command has seen to what is needed, missing it is a failure.
    let must = std::env::var_os("SHARDSCOPE_NEEDS_DISPLAY").is_some();
    let Some(display) = Display::start() else {
        assert!(!must, "Xvfb is missing");
        println!("skipped: Xvfb is missing; on Debian and Ubuntu `apt-get install xvfb xdotool`");
        return;
    };
    if display.xdotool(&["version"]).is_none() {
        assert!(!must, "xdotool is missing");
        println!("skipped: xdotool is missing; on Debian and Ubuntu `apt-get install xdotool`");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = open(&display, folder.path(), &[]);
    pause(3000);
    // From the first window's four stages down to one, and up to four again.
    display.keys(&["alt+shift+p", "alt+shift+p", "alt+shift+p"]);
    let no_bubble = bubble_with(&display, folder.path(), 1);
    display.keys(&["alt+p", "alt+p", "alt+p"]);
    let bubble = bubble_with(&display, folder.path(), 4);
    assert!(no_bubble < 1e-9, "one stage has no bubble, not {no_bubble}");
    assert!(
        (0.2..0.4).contains(&bubble),
        "four stages and eight micro-batches: {bubble}"
    );
    let picture = export(&display, folder.path(), "four.png");
    assert!(picture.starts_with(b"\x89PNG"), "a PNG");
    export(&display, folder.path(), "four.json");
    // Closed mid-run.
    close(&display, &mut program);
    // What it wrote opens in a window of its own, where its critical path is lit, and is written again.
    let mut viewer = open(&display, folder.path(), &["view", "four.json"]);
    display.keys(&["c"]);
    let again = export(&display, folder.path(), "again.svg");
    assert!(String::from_utf8_lossy(&again).contains("1F1B on 8 GPUs"));
    close(&display, &mut viewer);
}

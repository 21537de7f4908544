//! The program: the window, or the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    match shardscope::ui::run(shardscope::ui::Options::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The program's last word goes where errors go.
            #[expect(clippy::print_stderr, reason = "there is no window to say it in")]
            {
                eprintln!("shardscope: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

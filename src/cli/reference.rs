//! The command-line reference, from the same definitions that parse the command line.

use clap::{Command, CommandFactory as _};

use super::args::Cli;

/// Columns of the texts.
const WIDTH: usize = 100;

/// The reference as Markdown; `docs/cli.md` holds it, and a test compares.
pub fn reference() -> String {
    let mut root = Cli::command().term_width(WIDTH).max_term_width(WIDTH);
    root.build();
    let intro =
        "# Command line\n\nGenerated from the program's own definitions; a test compares them.\n";
    intro.to_owned() + &described(&root)
}

/// A command and all below it.
fn described(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let below: String = command.get_subcommands().map(described).collect();
    format!(
        "\n## `{name}`\n\n```text\n{}\n```\n{below}",
        lines.join("\n")
    )
}

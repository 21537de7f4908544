//! `docs/cli.md` is what the command line says of itself.
#![cfg(feature = "desktop")]

#[test]
fn the_reference_is_up_to_date() {
    let wanted = shardscope::cli::reference();
    let found = std::fs::read_to_string("docs/cli.md").unwrap_or_default();
    if found != wanted {
        std::fs::write("docs/cli.new.md", &wanted).unwrap();
        panic!("docs/cli.md is out of date; look at docs/cli.new.md and move it there");
    }
}

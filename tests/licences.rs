//! Dependencies' licences, checked against `deny.toml` without any further tool.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::{HashMap, HashSet};
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
}

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: HashSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: HashSet<String>,
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let deny: Deny = toml::from_str(&std::fs::read_to_string("deny.toml").unwrap()).unwrap();
    let exceptions: HashMap<_, _> = deny
        .licenses
        .exceptions
        .iter()
        .map(|exception| (exception.name.as_str(), &exception.allow))
        .collect();
    let packages = packages();
    assert!(packages.len() > 50, "only {} packages", packages.len());
    let bad: Vec<String> = packages
        .iter()
        .filter(|package| {
            let license = package.license.as_deref().unwrap_or("none");
            let is_allowed = |id: &str| {
                let exception = exceptions.get(package.name.as_str());
                deny.licenses.allow.contains(id)
                    || exception.is_some_and(|allow| allow.contains(id))
            };
            !allows(license, &is_allowed)
        })
        .map(|package| format!("{}: {:?}", package.name, package.license))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn expressions_are_read() {
    let is_mit = |id: &str| id == "MIT";
    for (expression, allowed) in [
        ("MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("MIT/GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND MIT", true),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("none", false),
    ] {
        assert_eq!(allows(expression, &is_mit), allowed, "{expression}");
    }
}

/// Everything that this machine's build is made of; what other platforms need may not be here.
fn packages() -> Vec<Package> {
    let version = output(Command::new("rustc").arg("-vV"));
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--offline",
        "--format-version",
        "1",
        "--filter-platform",
        host,
    ]);
    serde_json::from_str::<Metadata>(&output(&mut cargo))
        .unwrap()
        .packages
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Whether an SPDX expression can be met with licences that are allowed. `AND` binds tighter than `OR`.
fn allows(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let joined = spaced.replace(" WITH ", "+WITH+");
    let mut words = joined.split_whitespace().peekable();
    any(&mut words, is_allowed)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = all(words, is_allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, is_allowed);
    }
    met
}

fn all(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(words, is_allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, is_allowed);
    }
    met
}

fn one(words: &mut Words<'_>, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    match words.next() {
        Some("(") => {
            let met = any(words, is_allowed);
            assert_eq!(words.next(), Some(")"));
            met
        }
        Some(id) => is_allowed(&id.replace("+WITH+", " WITH ")),
        None => false,
    }
}

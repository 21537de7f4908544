//! Links between GPUs.

use serde::{Deserialize, Deserializer, Serialize};

/// A link between GPUs, per GPU and direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What a step over it takes besides the bytes, in microseconds; for a link between nodes, besides what
    /// a step within one takes.
    pub latency_us: f64,
    /// Bandwidth, in GB/s (powers of ten).
    pub gb_per_s: f64,
    /// The share of it that a large transfer reaches.
    #[serde(default = "all")]
    pub reached: f64,
}

fn all() -> f64 {
    1.0
}

impl Link {
    /// Bytes a second that a large transfer reaches.
    pub fn rate(&self) -> f64 {
        self.gb_per_s * 1e9 * self.reached
    }

    /// A link of the catalogue.
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = LINKS.iter().find(|(known, _)| *known == name)?;
        let entry: Entry = toml::from_str(text).ok()?;
        Some(Self {
            latency_us: entry.latency_us,
            gb_per_s: entry.gb_per_s,
            reached: entry.reached,
        })
    }
}

/// The links that there are, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Links;

impl std::fmt::Display for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = LINKS.iter().map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

/// A file of the catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[expect(dead_code, reason = "for whoever reads the file")]
    name: String,
    #[expect(dead_code, reason = "for whoever reads the file")]
    title: String,
    latency_us: f64,
    gb_per_s: f64,
    #[serde(default = "all")]
    reached: f64,
}

/// `"nvlink3"`, or a link's own figures.
pub(super) fn named_or_own<'de, D: Deserializer<'de>>(from: D) -> Result<Link, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a link's name, or its latency_us and gb_per_s")]
    enum Given {
        Named(String),
        Own(Link),
    }
    match Given::deserialize(from)? {
        Given::Own(link) => Ok(link),
        Given::Named(name) => Link::named(&name).ok_or_else(|| {
            serde::de::Error::custom(format!("no link is called {name:?}; there are {Links}"))
        }),
    }
}

macro_rules! links {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../assets/links/", $name, ".toml")))),*]
    };
}

/// The catalogue: name and TOML.
pub const LINKS: &[(&str, &str)] = links![
    "nvlink2",
    "nvlink3",
    "nvlink4",
    "nvlink5",
    "infinity-fabric",
    "pcie3",
    "pcie4",
    "pcie5",
    "ib-edr",
    "ib-hdr",
    "ib-ndr",
    "ib-xdr",
    "roce-400",
    "ethernet-10",
    "ethernet-25",
    "ethernet-100",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_reads() {
        for (name, text) in LINKS {
            let link = Link::named(name);
            assert!(link.is_some_and(|link| link.rate() > 0.0), "{name}");
            assert!(text.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }
}

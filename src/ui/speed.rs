//! How fast a run is played: virtual time to a second of real time.

use crate::units::Nanos;

/// How much virtual time a second shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    /// So much.
    PerSecond(Nanos),
    /// All of every step, as soon as it is trained.
    Fastest,
}

/// The speeds to choose from, in virtual nanoseconds a second; slowest first, then [`Speed::Fastest`].
const SPEEDS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// How long a step is to take when nobody has chosen a speed: long enough to follow, short enough to wait for.
const COMFORTABLE_SECS: f64 = 8.0;

impl Speed {
    /// The speed at which a step of `length` takes some eight seconds.
    pub(super) fn comfortable(length: Nanos) -> Self {
        let wanted = length.0 as f64 / COMFORTABLE_SECS;
        let distance = |speed: u64| (speed as f64 / wanted.max(1.0)).ln().abs();
        let nearest = SPEEDS
            .into_iter()
            .min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        Self::PerSecond(Nanos(nearest.unwrap_or(1_000_000)))
    }

    /// The next faster one; the fastest has none.
    #[must_use]
    pub(super) fn faster(self) -> Self {
        match self {
            Self::Fastest => Self::Fastest,
            Self::PerSecond(now) => SPEEDS
                .into_iter()
                .find(|&speed| speed > now.0)
                .map_or(Self::Fastest, |speed| Self::PerSecond(Nanos(speed))),
        }
    }

    /// The next slower one; the slowest has none.
    #[must_use]
    pub(super) fn slower(self) -> Self {
        let below = match self {
            Self::Fastest => u64::MAX,
            Self::PerSecond(now) => now.0,
        };
        let slower = SPEEDS.into_iter().rev().find(|&speed| speed < below);
        slower.map_or(self, |speed| Self::PerSecond(Nanos(speed)))
    }

    /// What it shows in a second: `1 s shows 2 ms`.
    pub(super) fn text(self) -> String {
        match self {
            Self::Fastest => "as fast as it trains".to_owned(),
            Self::PerSecond(shown) => format!("1 s shows {}", plain(shown)),
        }
    }
}

/// A round time without needless zeros: `2 ms`, not `2.00 ms`.
fn plain(time: Nanos) -> String {
    let (count, unit) = match time.0 {
        0..1_000 => (time.0, "ns"),
        1_000..1_000_000 => (time.0 / 1_000, "µs"),
        1_000_000..1_000_000_000 => (time.0 / 1_000_000, "ms"),
        _ => (time.0 / 1_000_000_000, "s"),
    };
    format!("{count} {unit}")
}

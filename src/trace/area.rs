//! The figures of a part of a trace: a stretch of time on some of its ranks.

use std::collections::BTreeMap;

use super::{Kind, Label, Phase, Span, Stream, TimeSplit, Trace};
use crate::units::{Nanos, Pass};

/// A part of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// From when.
    pub from: Nanos,
    /// Until when.
    pub to: Nanos,
    /// Its ranks, by their places in [`Trace::ranks`].
    pub ranks: Vec<usize>,
}

impl Area {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        self.to.since(self.from)
    }

    /// The part of a span that lies in it.
    fn part(&self, span: &Span) -> Nanos {
        span.end.min(self.to).since(span.start.max(self.from))
    }
}

/// Operations that are alike, of which some part lies in an area.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    /// What they are called: `F`, `all-reduce gradients`.
    pub name: String,
    /// Their process group's axis.
    pub group: Option<String>,
    /// How many spans.
    pub count: u64,
    /// The shortest, as a whole.
    pub least: Nanos,
    /// Their mean length, as a whole.
    pub mean: Nanos,
    /// The longest, as a whole.
    pub most: Nanos,
    /// Their time within the area, waiting apart.
    pub time: Nanos,
    /// Of communication: what members waited for others within the area.
    pub waiting: Nanos,
    /// Bytes, as nccl-tests would print the size; of an operation that lies in the area in part, its share.
    pub bytes: f64,
    /// Bytes over time, in bytes a second, where anything moves.
    pub algbw: Option<f64>,
    /// What that asks of each link, where it is known.
    pub busbw: Option<f64>,
}

/// What happens in an area.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AreaFigures {
    /// Where the time of its ranks goes, and of those that they stand for; sums to its length times all of these.
    pub split: TimeSplit,
    /// What runs, by kind: passes first, then communication.
    pub operations: Vec<Operations>,
}

/// What makes operations alike.
type Key<'a> = (Stream, Option<Pass>, Kind, &'a str, Option<&'a str>);

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    least: Option<Nanos>,
    most: Nanos,
    whole: u128,
    time: Nanos,
    waiting: Nanos,
    bytes: f64,
    /// Bytes times the share of them that each link carries.
    bus: f64,
    /// Whether that share was not known of any.
    unknown: bool,
}

impl Sums {
    fn add(&mut self, area: &Area, span: &Span, label: &Label) {
        let (part, whole) = (area.part(span), span.duration());
        if span.phase == Phase::Waiting {
            self.waiting += part;
            return;
        }
        self.count += 1;
        self.least = Some(self.least.map_or(whole, |least| least.min(whole)));
        self.most = self.most.max(whole);
        self.whole += u128::from(whole.0);
        self.time += part;
        let bytes = label.bytes as f64 * part.0 as f64 / whole.0.max(1) as f64;
        self.bytes += bytes;
        match label.bus_share() {
            Some(share) => self.bus += bytes * share,
            None => self.unknown = true,
        }
    }

    fn operations(self, key: &Key<'_>) -> Operations {
        let (stream, pass, _, name, group) = *key;
        let rate =
            |bytes: f64| (bytes > 0.0 && self.time > Nanos::ZERO).then(|| bytes / self.time.secs());
        let name = match pass.filter(|_| stream == Stream::Passes) {
            Some(pass) => pass.letter().to_string(),
            None => name.to_owned(),
        };
        Operations {
            name,
            group: group.map(str::to_owned),
            count: self.count,
            least: self.least.unwrap_or_default(),
            mean: Nanos((self.whole / u128::from(self.count.max(1))) as u64),
            most: self.most,
            time: self.time,
            waiting: self.waiting,
            bytes: self.bytes,
            algbw: rate(self.bytes),
            busbw: rate(self.bus).filter(|_| !self.unknown),
        }
    }
}

impl AreaFigures {
    /// The figures of `area` in `trace`.
    pub fn new(trace: &Trace, area: &Area) -> Self {
        let mut split = TimeSplit::default();
        let mut sums: BTreeMap<Key<'_>, Sums> = BTreeMap::new();
        let ranks = area.ranks.iter().copied();
        for rank in ranks.filter(|&rank| rank < trace.ranks.len()) {
            // For all that it stands for.
            split.add_times(split_of(trace, area, rank), trace.ranks[rank].count);
            for stream in Stream::ALL
                .into_iter()
                .filter(|stream| *stream != Stream::Compute)
            {
                let lane = trace.lane(rank, stream);
                for span in lane.overlapping(area.from, area.to) {
                    let label = trace.label(span.label);
                    // Passes of one letter are alike, whatever they are called.
                    let name = if label.pass.is_some() && stream == Stream::Passes {
                        ""
                    } else {
                        &label.name
                    };
                    let key = (
                        stream,
                        label.pass.filter(|_| stream == Stream::Passes),
                        label.kind,
                        name,
                        label.group.as_deref(),
                    );
                    sums.entry(key).or_default().add(area, span, label);
                }
            }
        }
        let operations = sums.iter().map(|(key, sums)| sums.operations(key));
        Self {
            split,
            operations: operations.collect(),
        }
    }
}

/// Where a rank's time in the area goes. Rows of other programs have no lane that tiles the step: what their spans leave is
/// idle.
fn split_of(trace: &Trace, area: &Area, rank: usize) -> TimeSplit {
    let mut split = TimeSplit::default();
    let compute = trace.lane(rank, Stream::Compute);
    let tiled = !compute.spans().is_empty();
    let lane = if tiled {
        compute
    } else {
        trace.lane(rank, Stream::Passes)
    };
    for span in lane.overlapping(area.from, area.to) {
        split.add(span.phase, area.part(span));
    }
    if !tiled {
        split.idle += area.length().since(split.total());
    }
    split
}

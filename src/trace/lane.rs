//! A lane: the spans of one stream of one rank, in order of their start.

use serde::{Deserialize, Serialize};

use super::LabelId;
use crate::units::{Nanos, Rank};

/// The streams of a rank, as lanes of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stream {
    /// Whole passes and the optimizer, as blocks over what the other lanes show in detail.
    Passes,
    /// Computation, and what fills the time between; tiles the step.
    Compute,
    /// Tensor-parallel collectives.
    Tp,
    /// Data-parallel collectives, and those over a replica.
    Dp,
    /// Sends to the next stage.
    SendNext,
    /// Sends to the previous stage.
    SendPrev,
}

impl Stream {
    /// All of them, in the order of lanes.
    pub const ALL: [Self; 6] = [
        Self::Passes,
        Self::Compute,
        Self::Tp,
        Self::Dp,
        Self::SendNext,
        Self::SendPrev,
    ];

    /// The name on a lane.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Compute => "compute",
            Self::Tp => "tensor parallel",
            Self::Dp => "data parallel",
            Self::SendNext => "send to next stage",
            Self::SendPrev => "send to previous stage",
        }
    }
}

/// What a rank or a stream does during a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Phase {
    /// Computing.
    Busy,
    /// Data is in flight: on a communication lane the transfer itself, on the compute lane a gap in which
    /// something needed is in flight.
    Transfer,
    /// In a collective whose members are not all there.
    Waiting,
    /// The micro-batch needed is not produced yet, or no pass is left: the bubble.
    Idle,
}

/// Something that lasts, in 24 bytes.
///
/// A gap on the compute lane has the label of what is to run after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// From when.
    pub start: Nanos,
    /// Until when.
    pub end: Nanos,
    /// What.
    pub label: LabelId,
    /// In which way.
    pub phase: Phase,
}

impl Span {
    /// How long.
    pub fn duration(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// Which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaneId {
    /// Of which rank.
    pub rank: Rank,
    /// Which stream.
    pub stream: Stream,
}

/// The spans of one stream of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Which.
    pub id: LaneId,
    spans: Vec<Span>,
    /// The longest span, which bounds how far back one that overlaps a time can have started.
    longest: Nanos,
}

impl Lane {
    /// Makes room for so many more spans at once.
    pub fn reserve(&mut self, spans: usize) {
        self.spans.reserve_exact(spans);
    }

    /// An empty lane.
    pub fn new(id: LaneId) -> Self {
        Self {
            id,
            spans: Vec::new(),
            longest: Nanos::ZERO,
        }
    }

    /// Appends a span; one of no duration leaves nothing to see and is left out.
    ///
    /// A span that starts before the last one is put in its place.
    pub fn push(&mut self, span: Span) {
        if span.end <= span.start {
            return;
        }
        self.longest = self.longest.max(span.duration());
        match self.spans.last() {
            Some(last) if last.start > span.start => {
                let at = self
                    .spans
                    .partition_point(|other| other.start <= span.start);
                self.spans.insert(at, span);
            }
            _ => self.spans.push(span),
        }
    }

    /// All spans, by start.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans that overlap the time from `from` to `to`, at little more than their cost.
    pub fn overlapping(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Span> {
        let reach = from.since(self.longest);
        let first = self.spans.partition_point(|span| span.start < reach);
        self.spans[first..]
            .iter()
            .take_while(move |span| span.start < to)
            .filter(move |span| span.end > from)
    }

    /// The span at `time`, the latest started if there are several.
    pub fn at(&self, time: Nanos) -> Option<&Span> {
        self.overlapping(time, Nanos(time.0.saturating_add(1)))
            .last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span {
            start: Nanos(start),
            end: Nanos(end),
            label: LabelId(0),
            phase: Phase::Busy,
        }
    }

    #[test]
    fn a_span_takes_24_bytes() {
        assert_eq!(size_of::<Span>(), 24);
    }

    #[test]
    fn overlapping_finds_long_spans_that_started_early() {
        let mut lane = Lane::new(LaneId {
            rank: Rank(0),
            stream: Stream::Compute,
        });
        for one in [span(0, 100), span(10, 20), span(30, 40), span(120, 130)] {
            lane.push(one);
        }
        let found: Vec<u64> = lane
            .overlapping(Nanos(35), Nanos(120))
            .map(|span| span.start.0)
            .collect();
        assert_eq!(found, [0, 30]);
        assert_eq!(lane.at(Nanos(35)).unwrap().start, Nanos(30));
        assert!(lane.at(Nanos(110)).is_none());
    }
}

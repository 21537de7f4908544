//! Holds what comes from a file to what the rest of the program takes for granted.

use crate::units::{Bytes, Nanos};

use super::super::{Span, Stream, Trace};
use super::{ImportError, damaged};

/// No step is longer (2.3 years), so that sums and products of times stay in range.
pub(super) const LONGEST: Nanos = Nanos(1 << 56);
/// No rank has more memory (an exbibyte).
const LARGEST: Bytes = Bytes(1 << 60);
/// There are no more ranks.
const MOST_RANKS: usize = 1 << 20;

/// A span, if it is one.
pub(super) fn span(trace: &Trace, span: Span) -> Result<Span, ImportError> {
    if span.end <= span.start || span.end > LONGEST {
        return Err(damaged(format!(
            "a span runs from {} ns to {} ns",
            span.start.0, span.end.0
        )));
    }
    if span.label.0 as usize >= trace.labels.len() {
        return Err(damaged(format!(
            "a span has the label {}, which is not there",
            span.label.0
        )));
    }
    Ok(span)
}

/// All but the spans.
pub(super) fn trace(trace: &Trace) -> Result<(), ImportError> {
    if trace.ranks.len() > MOST_RANKS {
        return Err(damaged(format!("there are {} ranks", trace.ranks.len())));
    }
    let ends = trace.ranks.iter().map(|info| info.pipeline_end);
    let arrow_times = trace
        .arrows
        .iter()
        .map(|arrow| arrow.arrived.max(arrow.left));
    let latest = ends.chain(arrow_times).max().unwrap_or_default();
    if latest.max(trace.makespan) > LONGEST {
        return Err(damaged("a time is over two years"));
    }
    if !trace.memory.is_empty() && trace.memory.len() != trace.ranks.len() {
        return Err(damaged("memory is there for some ranks only"));
    }
    if !trace.tracks.is_empty() && trace.tracks.len() != trace.ranks.len() {
        return Err(damaged("rows have names for some of them only"));
    }
    let dangling = |label: u32| label as usize >= trace.labels.len();
    if trace.arrows.iter().any(|arrow| dangling(arrow.label.0)) {
        return Err(damaged("an arrow has a label that is not there"));
    }
    trace.memory.iter().try_for_each(memory)
}

fn memory(memory: &super::super::Memory) -> Result<(), ImportError> {
    let fixed = memory.fixed;
    let sizes = [fixed.parameters, fixed.gradients, fixed.optimizer];
    let activations = memory.activations.iter().map(|&(_, bytes)| bytes);
    if sizes
        .into_iter()
        .chain(activations)
        .any(|bytes| bytes > LARGEST)
    {
        return Err(damaged("a rank has more than an exbibyte of memory"));
    }
    if !memory.activations.is_sorted_by_key(|&(time, _)| time) {
        return Err(damaged("memory is out of order"));
    }
    Ok(())
}

/// A rank does one thing at a time: its passes, and its computing, do not overlap.
/// Not so the threads of another program, of which the last row takes all that overlaps beyond its depth.
pub(super) fn lanes(trace: &Trace) -> Result<(), ImportError> {
    if !trace.tracks.is_empty() {
        return Ok(());
    }
    let serial = trace
        .lanes
        .iter()
        .filter(|lane| matches!(lane.id.stream, Stream::Passes | Stream::Compute));
    for lane in serial {
        let overlap = lane
            .spans()
            .windows(2)
            .any(|pair| pair[1].start < pair[0].end);
        if overlap {
            let (rank, stream) = (lane.id.rank, lane.id.stream.name());
            return Err(damaged(format!(
                "GPU {rank} has overlapping spans on {stream}"
            )));
        }
    }
    Ok(())
}

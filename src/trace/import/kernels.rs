//! What GPUs did, told by their kernels: by name, by what they moved, and as shares of time by the rule of Holistic Trace
//! Analysis.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::Kind;
use super::events::{Event, File, Of};

/// What a GPU's event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Compute,
    Communication,
    Memory,
}

fn holds(name: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(name, word).is_some()
}

/// By its name; kernels that are not known compute.
pub(super) fn class(name: &[u8]) -> Class {
    if name.starts_with(b"Memcpy") || name.starts_with(b"Memset") {
        Class::Memory
    } else if [&b"nccl"[..], b"NCCL", b"rccl", b"mscclpp"]
        .into_iter()
        .any(|word| holds(name, word))
    {
        Class::Communication
    } else {
        Class::Compute
    }
}

/// Of a communication kernel, by its name or the collective's.
pub(super) fn collective(name: &[u8]) -> Kind {
    let lower = name.to_ascii_lowercase();
    let known = [
        (&b"allreduce"[..], Kind::AllReduce),
        (b"all_reduce", Kind::AllReduce),
        (b"reducescatter", Kind::ReduceScatter),
        (b"reduce_scatter", Kind::ReduceScatter),
        (b"allgather", Kind::AllGather),
        (b"all_gather", Kind::AllGather),
        (b"sendrecv", Kind::Send),
    ];
    let found = known.into_iter().find(|(word, _)| holds(&lower, word));
    found.map_or(Kind::Collective, |(_, kind)| kind)
}

/// A GPU's shares of time; null where a trace holds no kernels. In microseconds and per cent of the time from its first
/// kernel's start to its last one's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuFigures {
    /// What was opened.
    pub trace: String,
    /// The file in it.
    pub file: String,
    /// The rank.
    pub rank: u64,
    /// Nothing runs.
    pub idle_us: Option<f64>,
    /// Some kernel computes, whatever else runs.
    pub compute_us: Option<f64>,
    /// Only communication or copies run.
    pub non_compute_us: Option<f64>,
    /// From the first start to the last end.
    pub kernel_span_us: Option<f64>,
    /// Share of the span.
    pub idle_pct: Option<f64>,
    /// Share of the span.
    pub compute_pct: Option<f64>,
    /// Share of the span.
    pub non_compute_pct: Option<f64>,
    /// The share of communication under which something computes.
    pub comp_comm_overlap_pct: Option<f64>,
    /// How long it waited for others in collectives that were matched: longer than the shortest member's.
    pub comm_wait_us: Option<f64>,
    /// How many kernels and copies count.
    pub kernels: u64,
    /// Added to its clock; null where clocks could not be aligned.
    pub clock_offset_us: Option<f64>,
}

/// Spans joined where they touch, by start.
#[derive(Clone, Debug, Default)]
struct Union(Vec<(i64, i64)>);

impl Union {
    fn of(spans: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut spans: Vec<(i64, i64)> = spans.collect();
        spans.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (start, end) in spans {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        Self(joined)
    }

    fn length(&self) -> f64 {
        self.0
            .iter()
            .map(|&(start, end)| end.saturating_sub(start) as f64)
            .sum()
    }

    /// How long both last at once.
    fn shared(&self, other: &Self) -> f64 {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut sum = 0.0;
        while let (Some(&&(a, b)), Some(&&(c, d))) = (own.peek(), others.peek()) {
            sum += b.min(d).saturating_sub(a.max(c)).max(0) as f64;
            if b < d {
                own.next();
            } else {
                others.next();
            }
        }
        sum
    }
}

/// The places in a file's events of those that count: where there are two or more profiler steps, those whose launch
/// precedes the start of the last.
pub(super) fn counted(file: &File<'_>) -> Vec<u32> {
    let steps = file.events.iter().filter(|event| event.of == Of::Step);
    let starts: Vec<i64> = steps.map(|event| event.start).collect();
    let last = starts.iter().copied().max().filter(|_| starts.len() > 1);
    let mut launched: HashMap<u64, i64> = HashMap::new();
    if last.is_some() {
        // Without a number it launched nothing that can be told.
        let launches = file.events.iter();
        let launches = launches.filter(|event| event.of == Of::Launch && event.correlation != 0);
        launched.extend(launches.map(|event| (event.correlation, event.start)));
    }
    let counts = |event: &Event| {
        last.is_none_or(|last| {
            launched
                .get(&event.correlation)
                .is_some_and(|&at| at < last)
        })
    };
    let all = (0_u32..).zip(&file.events);
    all.filter(|(_, event)| event.of == Of::Gpu && counts(event))
        .map(|(index, _)| index)
        .collect()
}

/// The shares of a file's GPU.
pub(super) fn figures(file: &File<'_>, counted: &[u32]) -> GpuFigures {
    let spans = |wanted: Option<Class>| {
        let events = counted.iter().map(|&index| &file.events[index as usize]);
        let of = |event: &&Event| wanted.is_none_or(|wanted| file.class(event) == wanted);
        Union::of(events.filter(of).map(|event| (event.start, event.end())))
    };
    let all = spans(None);
    let (Some(&(first, _)), Some(&(_, last))) = (all.0.first(), all.0.last()) else {
        return GpuFigures::default();
    };
    // Times since 1970 in nanoseconds have more digits than a floating-point number.
    let span = last.saturating_sub(first) as f64;
    let (compute, communication) = (
        spans(Some(Class::Compute)),
        spans(Some(Class::Communication)),
    );
    let (idle, busy) = (span - all.length(), compute.length());
    let other = all.length() - busy;
    let micros = |nanos: f64| Some(nanos / 1e3);
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole * 100.0);
    GpuFigures {
        idle_us: micros(idle),
        compute_us: micros(busy),
        non_compute_us: micros(other),
        kernel_span_us: micros(span),
        idle_pct: share(idle, span),
        compute_pct: share(busy, span),
        non_compute_pct: share(other, span),
        comp_comm_overlap_pct: share(compute.shared(&communication), communication.length()),
        kernels: counted.len() as u64,
        ..GpuFigures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_known_by_name() {
        let nccl = b"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        assert_eq!(class(nccl), Class::Communication);
        assert_eq!(collective(nccl), Kind::AllReduce);
        assert_eq!(collective(b"_allgather_base"), Kind::AllGather);
        assert_eq!(class(b"Memcpy HtoD (Pinned -> Device)"), Class::Memory);
        assert_eq!(class(b"ampere_sgemm_128x64_tn"), Class::Compute);
        assert_eq!(class(b"something new"), Class::Compute);
    }

    #[test]
    fn unions_join_what_touches_and_share_what_overlaps() {
        let one = Union::of([(5, 9), (0, 3), (3, 4)].into_iter());
        assert_eq!((one.0.len(), one.length()), (2, 8.0));
        assert_eq!(one.shared(&Union::of([(2, 6)].into_iter())), 3.0);
    }
}

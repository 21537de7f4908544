//! Traces of other programs, one file a rank, made one: a row for each stream of a GPU, or for each thread where there is
//! none; what overlaps goes to a further row.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::super::{Arrow, Kind, Label, LabelId, Labels, Phase, RankInfo, Span, Stream, Trace};
use super::align::{Alignment, Matched, align};
use super::events::{self, Comm, Event, File, Flow, FlowPart, Of};
use super::kernels::{self, Class, GpuFigures, collective};
use super::{ImportError, damaged};
use crate::units::{Nanos, Rank};

/// More rows than this are left out, and said to be.
const MOST_ROWS: usize = 4096;
/// Times that lie further apart than this, some three months, are of no run.
const LONGEST: Nanos = Nanos(9_000_000_000_000_000);
/// Of more collectives, those with the longest waits are told.
const MOST_COLLECTIVES: usize = 10_000;
/// What overlaps goes to at most so many further rows; the last takes all that is left.
const MOST_DEEP: usize = 64;

/// A trace of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// What happened; a row for each stream or thread.
    pub trace: Trace,
    /// Each file's GPU.
    pub ranks: Vec<GpuFigures>,
    /// Who waited for whom in the collectives that several files take part in, those with the longest waits first.
    pub collectives: Vec<CollectiveWaits>,
    /// What there is to say: clocks that could not be aligned, events that could not be read.
    pub notes: Vec<String>,
}

/// A collective of several ranks: how long each was in it before the last one came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveWaits {
    /// Its kernel's name, or the collective's.
    pub name: String,
    /// When it ended, from the start of the trace, in microseconds.
    pub end_us: f64,
    /// The rank that came last, for which the others waited.
    pub last: u64,
    /// Each rank with its wait, in microseconds.
    pub waits: Vec<(u64, f64)>,
}

impl CollectiveWaits {
    /// What all its ranks waited, in microseconds.
    pub fn sum_us(&self) -> f64 {
        self.waits.iter().map(|(_, wait)| wait).sum()
    }
}

/// A file's name and its bytes, unpacked.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFile<'a> {
    /// What was opened: the file, or the archive that it is in.
    pub given: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Reads files that other programs wrote: one, or one for each rank. `progress` is told how many bytes of all of them
/// are read, and may end it.
pub fn foreign(
    sources: &[ForeignFile<'_>],
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Foreign, ImportError> {
    let mut read = Vec::new();
    let mut before = 0;
    for source in sources {
        let file = events::read(source.bytes, &mut |at| progress(before + at));
        let file = file.ok_or(ImportError::Stopped)?;
        before += source.bytes.len();
        if !file.has_events {
            return Err(ImportError::NoEvents {
                file: source.name.to_owned(),
            });
        }
        read.push((source, file));
    }
    // By rank, where they say it; else as they were given.
    read.sort_by_key(|(_, file)| file.rank.unwrap_or(u64::MAX));
    let (sources, files): (Vec<&ForeignFile<'_>>, Vec<File<'_>>) = read.into_iter().unzip();
    let alignment = align(&files);
    let mut builder = Builder::new(&files, &alignment)?;
    builder.rows();
    let note = |(index, why): &(usize, String)| {
        let name = sources[*index].name;
        format!(
            "{name}: its clock is not aligned with the first one's, and it starts with it: {why}"
        )
    };
    let mut notes: Vec<String> = alignment.notes.iter().map(note).collect();
    let unreadable: u64 = files.iter().map(|file| file.unreadable).sum();
    if unreadable > 0 {
        notes.push(format!(
            "{unreadable} events could not be read and are left out"
        ));
    }
    if builder.left_out > 0 {
        let rows = builder.left_out;
        notes.push(format!(
            "{rows} threads and streams have no row, as there are over {MOST_ROWS}"
        ));
    }
    let ranks = builder.figures(&sources);
    let collectives = builder.collectives();
    Ok(Foreign {
        trace: builder.finish(),
        ranks,
        collectives,
        notes,
    })
}

/// A row in the making.
struct Row {
    file: usize,
    name: String,
    spans: Vec<Span>,
}

/// Where an event went.
#[derive(Clone, Copy, Debug)]
struct Place {
    row: u32,
    start: i64,
    end: i64,
}

struct Builder<'a> {
    files: &'a [File<'a>],
    alignment: &'a Alignment,
    /// How long each matched collective takes its shortest member, by file and place among its events.
    shortest: BTreeMap<(usize, u32), i64>,
    /// Added to each file's times to bring them on one clock; a file that could not be aligned starts with the first.
    shifts: Vec<i128>,
    /// The earliest time of all.
    origin: i128,
    labels: Labels,
    /// Labels of events of which nothing but their name is known, by file.
    known: HashMap<(usize, u32, Of), LabelId>,
    rows: Vec<Row>,
    arrows: Vec<Arrow>,
    left_out: usize,
}

impl<'a> Builder<'a> {
    fn new(files: &'a [File<'a>], alignment: &'a Alignment) -> Result<Self, ImportError> {
        let mut shortest = BTreeMap::new();
        for matched in &alignment.matched {
            let lengths = matched.members.iter();
            let lengths = lengths.map(|&(file, index)| files[file].events[index as usize].length);
            let least = lengths.min().unwrap_or_default();
            shortest.extend(matched.members.iter().map(|&member| (member, least)));
        }
        let mut builder = Self {
            files,
            alignment,
            shortest,
            shifts: shifts(files, alignment),
            origin: 0,
            labels: Labels::default(),
            known: HashMap::new(),
            rows: Vec::new(),
            arrows: Vec::new(),
            left_out: 0,
        };
        let (mut first, mut last) = (i128::MAX, i128::MIN);
        for (index, file) in files.iter().enumerate() {
            for event in file.events.iter().filter(|event| drawn(file, event)) {
                first = first.min(builder.shifted(index, event.start));
                last = last.max(builder.shifted(index, event.end()));
            }
        }
        builder.origin = if first == i128::MAX { 0 } else { first };
        if last.saturating_sub(first) > i128::from(LONGEST.0) {
            return Err(damaged("its times lie over three months apart"));
        }
        Ok(builder)
    }

    /// A time of a file on the common clock.
    fn shifted(&self, file: usize, at: i64) -> i128 {
        i128::from(at) + self.shifts[file]
    }

    fn nanos(&self, file: usize, at: i64) -> Nanos {
        let since = (self.shifted(file, at) - self.origin).clamp(0, i128::from(LONGEST.0));
        Nanos(since as u64)
    }

    /// Lays out every stream's or thread's events, longest first where they start together.
    fn rows(&mut self) {
        for index in 0..self.files.len() {
            let file = &self.files[index];
            let mut by_track: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (place, event) in (0_u32..).zip(&file.events) {
                if drawn(file, event) {
                    by_track.entry(event.track).or_default().push(place);
                }
            }
            let mut tracks: Vec<(u32, Vec<u32>)> = by_track.into_iter().collect();
            tracks.sort_by_key(|(track, _)| order(file, *track));
            let mut places = HashMap::new();
            for (track, mut events) in tracks {
                let key = |&place: &u32| {
                    let event = &file.events[place as usize];
                    (event.start, std::cmp::Reverse(event.length))
                };
                events.sort_by_key(key);
                let placed = self.track((index, track), &events);
                places.insert(track, placed);
            }
            self.flows(index, &places);
        }
    }

    /// A stream's or thread's events on as many rows as it takes.
    fn track(&mut self, (index, track): (usize, u32), events: &[u32]) -> Vec<Place> {
        let file = &self.files[index];
        let first = self.rows.len();
        let mut ends: Vec<i64> = Vec::new();
        let mut places = Vec::new();
        for &place in events {
            let event = &file.events[place as usize];
            let free = ends.iter().position(|&end| end <= event.start);
            let mut deep = free.unwrap_or(ends.len()).min(MOST_DEEP - 1);
            if deep == ends.len() && self.rows.len() >= MOST_ROWS {
                // No further row: what overlaps stays on the last one of its own.
                let Some(last) = deep.checked_sub(1) else {
                    self.left_out += 1;
                    return places;
                };
                deep = last;
            }
            if deep == ends.len() {
                ends.push(i64::MIN);
                self.rows.push(Row {
                    file: index,
                    name: row_name(file, track, deep),
                    spans: Vec::new(),
                });
            }
            // What lasts no time is drawn all the same.
            let end = event.end().max(event.start.saturating_add(1));
            ends[deep] = ends[deep].max(end);
            let spans = self.spans(index, place);
            self.rows[first + deep].spans.extend(spans);
            places.push(Place {
                row: (first + deep) as u32,
                start: event.start,
                end: event.end(),
            });
        }
        places
    }

    /// What is drawn of an event: of a matched collective, first the wait for its last member.
    fn spans(&mut self, index: usize, place: u32) -> Vec<Span> {
        let file = &self.files[index];
        let event = &file.events[place as usize];
        let label = self.label(index, place);
        let communicates = event.of == Of::Gpu && file.class(event) == Class::Communication;
        let phase = if communicates {
            Phase::Transfer
        } else {
            Phase::Busy
        };
        let start = self.nanos(index, event.start);
        // What lasts no time is still something that happened.
        let end = self.nanos(index, event.end()).max(Nanos(start.0 + 1));
        let span = |start, end, phase| Span {
            start,
            end,
            label,
            phase,
        };
        let shortest = self.shortest.get(&(index, place)).copied();
        let arrived = shortest.map_or(start, |length| {
            self.nanos(index, event.end().saturating_sub(length))
                .max(start)
        });
        let all = [
            span(start, arrived, Phase::Waiting),
            span(arrived.min(end), end, phase),
        ];
        all.into_iter()
            .filter(|span| span.end > span.start)
            .collect()
    }

    fn label(&mut self, index: usize, place: u32) -> LabelId {
        let file = &self.files[index];
        let event = &file.events[place as usize];
        let said = file.comms.get(&place).copied().unwrap_or_default();
        let key = (index, event.name, event.of);
        // Kernels of one name are many, and what nothing more is said of has one label.
        let plain = said == Comm::default();
        if let Some(&known) = self.known.get(&key).filter(|_| plain) {
            return known;
        }
        let raw = file.names.list[event.name as usize];
        let kind = match (event.of, file.class(event)) {
            (Of::Gpu, Class::Compute) => Kind::Kernel,
            (Of::Gpu, Class::Communication) => collective(said.name.unwrap_or(raw)),
            (Of::Gpu, Class::Memory) => Kind::Copy,
            (Of::Launch | Of::Step | Of::Thread, _) => Kind::Other,
        };
        let group = said
            .group
            .map(|group| String::from_utf8_lossy(group).into_owned().into());
        // The size that nccl-tests prints of an all-gather is what each rank gets: its own share of all ranks.
        let shares = if kind == Kind::AllGather {
            u64::from(said.members.max(1))
        } else {
            1
        };
        let bytes = said.bytes().saturating_mul(shares);
        let id = self.labels.id(Label {
            bytes,
            members: said.members,
            group,
            ..Label::new(kind, file.names.text(event.name))
        });
        if plain {
            self.known.insert(key, id);
        }
        id
    }

    /// Arrows from each part of a flow to its next: from the slice that it lies in to the one that the next lies in, or
    /// that comes next after an end that does not say so.
    fn flows(&mut self, index: usize, places: &HashMap<u32, Vec<Place>>) {
        let file = &self.files[index];
        let mut flows: Vec<Flow> = file.flows.clone();
        flows.sort_by_key(|flow| (flow.id, flow.at, flow.part == FlowPart::End));
        // By track and row: on a row, slices follow one another.
        let mut by_row: HashMap<u32, BTreeMap<u32, Vec<Place>>> = HashMap::new();
        for flow in &flows {
            by_row.entry(flow.track).or_insert_with(|| {
                let mut rows: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
                for place in places.get(&flow.track).into_iter().flatten() {
                    rows.entry(place.row).or_default().push(*place);
                }
                rows
            });
        }
        let bound = |flow: &Flow| -> Option<Place> {
            if flow.part == FlowPart::End && !flow.encloses {
                let places = places.get(&flow.track)?;
                let next = places.partition_point(|place| place.start < flow.at);
                return places.get(next).copied();
            }
            let before = |row: &Vec<Place>| {
                let after = row.partition_point(|place| place.start <= flow.at);
                let place = row.get(after.checked_sub(1)?)?;
                (place.end >= flow.at).then_some(*place)
            };
            let rows = by_row.get(&flow.track)?.values();
            rows.filter_map(before).max_by_key(|place| place.start)
        };
        for pair in flows.windows(2) {
            let [from, to] = pair else { continue };
            let joined =
                from.id == to.id && from.part != FlowPart::End && to.part != FlowPart::Start;
            let (Some(source), Some(target), true) = (bound(from), bound(to), joined) else {
                continue;
            };
            let name = file.names.text(from.name);
            let label = self.labels.id(Label::new(Kind::Send, name));
            self.arrows.push(Arrow {
                from: Rank(source.row),
                left: self.nanos(index, from.at),
                to: Rank(target.row),
                arrived: self.nanos(index, to.at.max(target.start)),
                label,
            });
        }
    }

    /// Of each matched collective, how much longer than its shortest member each took: those with the longest waits first.
    fn collectives(&self) -> Vec<CollectiveWaits> {
        let rank = |file: usize| self.files[file].rank.unwrap_or(file as u64);
        let of = |matched: &Matched| {
            let event = |&(file, place): &(usize, u32)| &self.files[file].events[place as usize];
            let shortest = matched
                .members
                .iter()
                .min_by_key(|member| event(member).length)?;
            let (file, place) = *shortest;
            let said = self.files[file]
                .comms
                .get(&place)
                .copied()
                .unwrap_or_default();
            let raw = self.files[file].names.list[event(shortest).name as usize];
            let waits = matched.members.iter().map(|member| {
                let wait = event(member).length.saturating_sub(event(shortest).length);
                (rank(member.0), wait as f64 / 1e3)
            });
            Some(CollectiveWaits {
                name: super::scan::unescaped(said.name.unwrap_or(raw)),
                end_us: self.nanos(file, event(shortest).end()).0 as f64 / 1e3,
                last: rank(file),
                waits: waits.collect(),
            })
        };
        let mut all: Vec<CollectiveWaits> = self.alignment.matched.iter().filter_map(of).collect();
        all.sort_by(|one, other| other.sum_us().total_cmp(&one.sum_us()));
        all.truncate(MOST_COLLECTIVES);
        all
    }

    fn figures(&self, sources: &[&ForeignFile<'_>]) -> Vec<GpuFigures> {
        let mut waited = vec![0_i128; self.files.len()];
        for (&(file, place), &shortest) in &self.shortest {
            let length = self.files[file].events[place as usize].length;
            waited[file] += i128::from(length) - i128::from(shortest);
        }
        let all = self.files.iter().zip(sources).enumerate();
        all.map(|(index, (file, source))| {
            let counted = kernels::counted(file);
            let waited = waited[index];
            let matched = !self.alignment.matched.is_empty();
            let offset = self.alignment.offsets[index].filter(|_| self.files.len() > 1);
            GpuFigures {
                trace: source.given.to_owned(),
                file: source.name.to_owned(),
                rank: file.rank.unwrap_or(index as u64),
                comm_wait_us: matched.then_some(waited as f64 / 1e3),
                clock_offset_us: offset.map(|offset| offset as f64 / 1e3),
                ..kernels::figures(file, &counted)
            }
        })
        .collect()
    }

    fn finish(self) -> Trace {
        let infos = (0_u32..).zip(&self.rows).map(|(index, row)| RankInfo {
            rank: Rank(index),
            dp: row.file as u32,
            tp: 0,
            pp: 0,
            count: 1,
            pipeline_end: Nanos::ZERO,
            peak_in_flight: 0,
        });
        let mut trace = Trace::new(infos.collect(), self.labels.into_vec());
        for (index, mut row) in self.rows.into_iter().enumerate() {
            trace.tracks.push(row.name);
            row.spans.sort_by_key(|span| span.start);
            let lane = trace.lane_mut(index, Stream::Passes);
            lane.reserve(row.spans.len());
            for span in row.spans {
                trace.makespan = trace.makespan.max(span.end);
                trace.lane_mut(index, Stream::Passes).push(span);
            }
        }
        trace.arrows = self.arrows;
        trace
    }
}

fn shifts(files: &[File<'_>], alignment: &Alignment) -> Vec<i128> {
    let first = |file: &File<'_>| {
        let drawn = file.events.iter().filter(|event| drawn(file, event));
        let first = drawn.map(|event| event.start).min().unwrap_or_default();
        i128::from(first) + i128::from(file.base)
    };
    let start = files.first().map_or(0, first);
    let of = |(file, offset): (&File<'_>, &Option<i64>)| {
        let apart = offset.map_or_else(|| start - first(file), i128::from);
        i128::from(file.base) + apart
    };
    files.iter().zip(&alignment.offsets).map(of).collect()
}

/// GPUs' events, or all there are where no GPU is.
fn drawn(file: &File<'_>, event: &Event) -> bool {
    event.of == Of::Gpu || !file.has_gpu()
}

/// Streams and threads by number where they have one.
fn order(file: &File<'_>, track: u32) -> (u64, u64, u32) {
    let number = |word: &[u8]| super::scan::whole(word).unwrap_or(u64::MAX);
    let of = &file.tracks[track as usize];
    (number(of.process), number(of.thread), track)
}

fn row_name(file: &File<'_>, track: u32, deep: usize) -> String {
    let of = &file.tracks[track as usize];
    let thread = String::from_utf8_lossy(of.thread);
    let name = if file.has_gpu() {
        let gpu = file.rank.map_or_else(
            || String::from_utf8_lossy(of.process).into_owned(),
            |rank| rank.to_string(),
        );
        format!("GPU {gpu} · stream {thread}")
    } else {
        of.name
            .map_or_else(|| format!("thread {thread}"), super::scan::unescaped)
    };
    match deep {
        0 => name,
        deep => format!("{name} ({})", deep + 1),
    }
}

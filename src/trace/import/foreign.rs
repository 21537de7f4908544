//! Traces of other programs, one file a rank, made one: a row for each stream of a GPU, or for each thread where there is
//! none; what overlaps goes to a further row.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::super::{Arrow, Kind, Label, LabelId, Labels, Phase, RankInfo, Span, Stream, Trace};
use super::align::{Alignment, align};
use super::check::LONGEST;
use super::events::{self, Comm, Event, File, Flow, FlowPart, Of};
use super::kernels::{self, Class, GpuFigures, collective};
use super::{ImportError, damaged};
use crate::units::{Nanos, Rank};

/// More rows than this are left out, and said to be.
const MOST_ROWS: usize = 4096;
/// What overlaps goes to at most so many further rows; the last takes all that is left.
const MOST_DEEP: usize = 64;

/// A trace of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// What happened; a row for each stream or thread.
    pub trace: Trace,
    /// Each file's GPU.
    pub ranks: Vec<GpuFigures>,
    /// What there is to say: clocks that could not be aligned, events that could not be read.
    pub notes: Vec<String>,
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
    let mut notes = alignment.notes.clone();
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
    Ok(Foreign {
        trace: builder.finish(),
        ranks,
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
    shortest: HashMap<(usize, u32), i64>,
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
        let mut shortest = HashMap::new();
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
            return Err(damaged("its times lie over two years apart"));
        }
        Ok(builder)
    }

    /// A time of a file on the common clock.
    fn shifted(&self, file: usize, at: i64) -> i128 {
        let offset = self.alignment.offsets[file].unwrap_or_default();
        i128::from(at) + i128::from(self.files[file].base) + i128::from(offset)
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
            let deep = free.unwrap_or(ends.len()).min(MOST_DEEP - 1);
            if deep == ends.len() {
                if self.rows.len() >= MOST_ROWS {
                    self.left_out += usize::from(deep == 0);
                    return places;
                }
                ends.push(i64::MIN);
                self.rows.push(Row {
                    file: index,
                    name: row_name(file, track, deep),
                    spans: Vec::new(),
                });
            }
            ends[deep] = ends[deep].max(event.end());
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
        let id = self.labels.id(Label {
            bytes: said.bytes(),
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
        let bound = |flow: &Flow| -> Option<Place> {
            let places = places.get(&flow.track)?;
            let after = places.partition_point(|place| place.start <= flow.at);
            let enclosing = || {
                let mut before = places[..after].iter().rev().take(MOST_DEEP);
                before.find(|place| place.end >= flow.at).copied()
            };
            if flow.part == FlowPart::End && !flow.encloses {
                let from = places.partition_point(|place| place.start < flow.at);
                places.get(from).copied()
            } else {
                enclosing()
            }
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

    fn figures(&self, sources: &[&ForeignFile<'_>]) -> Vec<GpuFigures> {
        let all = self.files.iter().zip(sources).enumerate();
        all.map(|(index, (file, source))| {
            let counted = kernels::counted(file);
            let waits = self.shortest.iter().filter(|((of, _), _)| *of == index);
            let waited: i64 = waits
                .map(|((_, place), shortest)| file.events[*place as usize].length - shortest)
                .sum();
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
        for (index, row) in self.rows.into_iter().enumerate() {
            trace.tracks.push(row.name);
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

//! Chrome's trace events, as PyTorch's profiler (Kineto) and others write them, gone over once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;

use super::kernels::{Class, class};
use super::scan::{Next, Scanner, Value, nanos, unescaped, whole};

/// More threads and streams than anyone looks at; events of further ones are counted and left out.
const MOST_TRACKS: usize = 1 << 14;
/// No file of a run's ranks has as many events; of more, those after are counted and left out.
const MOST_EVENTS: usize = 1 << 24;
/// Progress is told every so many bytes.
const TELL_EVERY: usize = 1 << 22;

/// What an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// Something a GPU does: a kernel, a copy.
    Gpu,
    /// The call that had a GPU do something.
    Launch,
    /// One of the profiler's steps.
    Step,
    /// Anything else, on a thread.
    Thread,
}

/// Something that lasts. Times in nanoseconds, of the file's own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) start: i64,
    pub(super) length: i64,
    /// What ties a launch and what it launched; 0 for nothing.
    pub(super) correlation: u64,
    pub(super) name: u32,
    pub(super) track: u32,
    pub(super) of: Of,
}

impl Event {
    pub(super) fn end(&self) -> i64 {
        self.start.saturating_add(self.length)
    }
}

/// An end of an arrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) id: u64,
    pub(super) name: u32,
    pub(super) track: u32,
    pub(super) at: i64,
    /// Where it starts, on its way, or where it ends.
    pub(super) part: FlowPart,
    /// It ends at the slice that it lies in, and not at the next.
    pub(super) encloses: bool,
}

/// Which part of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowPart {
    Start,
    Step,
    End,
}

/// What a communication kernel says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Comm<'a> {
    /// The collective's name.
    pub(super) name: Option<&'a [u8]>,
    /// The process group's.
    pub(super) group: Option<&'a [u8]>,
    /// How many ranks that has.
    pub(super) members: u32,
    /// Which, as far as they are listed: groups of other ranks may have its name.
    pub(super) ranks: Option<&'a [u8]>,
    elements: u64,
    dtype: Option<&'a [u8]>,
}

impl Comm<'_> {
    /// The size of what a rank puts in.
    pub(super) fn bytes(&self) -> u64 {
        let each = match self.dtype.unwrap_or_default() {
            b"Byte" | b"Char" | b"Bool" => 1,
            b"Half" | b"BFloat16" | b"Short" => 2,
            b"Float" | b"Int" => 4,
            b"Double" | b"Long" => 8,
            _ => 0,
        };
        self.elements.saturating_mul(each)
    }
}

/// A thread or a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track<'a> {
    pub(super) process: &'a [u8],
    pub(super) thread: &'a [u8],
    /// What the file calls it.
    pub(super) name: Option<&'a [u8]>,
}

/// Equal byte strings under one number.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) list: Vec<&'a [u8]>,
    ids: HashMap<&'a [u8], u32>,
}

impl<'a> Names<'a> {
    fn id(&mut self, name: &'a [u8]) -> u32 {
        let next = self.list.len() as u32;
        *self.ids.entry(name).or_insert_with(|| {
            self.list.push(name);
            next
        })
    }

    /// The text of a name.
    pub(super) fn text(&self, id: u32) -> String {
        self.list
            .get(id as usize)
            .map_or_else(String::new, |name| unescaped(name))
    }
}

/// A file's events.
#[derive(Debug, Default)]
pub(super) struct File<'a> {
    /// The rank that it says it is of.
    pub(super) rank: Option<u64>,
    /// Added to all its times.
    pub(super) base: i64,
    pub(super) names: Names<'a>,
    pub(super) tracks: Vec<Track<'a>>,
    track_ids: HashMap<(&'a [u8], &'a [u8]), u32>,
    pub(super) events: Vec<Event>,
    pub(super) flows: Vec<Flow>,
    /// Of each name, what a GPU's event so called is.
    classes: Vec<Class>,
    /// By place in `events`.
    pub(super) comms: HashMap<u32, Comm<'a>>,
    /// Begun and not yet ended, by track.
    open: HashMap<u32, Vec<u32>>,
    /// What could not be read: times that are none, ends without a start.
    pub(super) unreadable: u64,
    /// Whether the file has events at all, and some of a GPU.
    pub(super) has_events: bool,
    has_gpu: bool,
}

/// An event as it stands in the file.
#[derive(Clone, Copy, Debug, Default)]
struct Raw<'a> {
    phase: &'a [u8],
    category: &'a [u8],
    name: &'a [u8],
    process: &'a [u8],
    thread: &'a [u8],
    at: Option<&'a [u8]>,
    lasts: Option<&'a [u8]>,
    id: &'a [u8],
    binds: &'a [u8],
    correlation: u64,
    label: Option<&'a [u8]>,
    comm: Comm<'a>,
}

/// Reads a file; `progress` is told how many bytes are read, and may end it: then there is nothing.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Option<File<'a>> {
    let mut file = File::default();
    let mut scanner = Scanner::new(bytes);
    match scanner.next() {
        Next::Value(Value::Array) => file.events(&mut scanner, progress)?,
        Next::Value(Value::Object) => {
            while let Some((name, value)) = scanner.member() {
                match (name, value) {
                    (b"traceEvents", Value::Array) => file.events(&mut scanner, progress)?,
                    (b"distributedInfo", Value::Object) => file.about(&mut scanner),
                    (b"baseTimeNanoseconds", Value::Word(word)) => {
                        file.base = std::str::from_utf8(word)
                            .ok()
                            .and_then(|word| word.parse().ok())
                            .unwrap_or_default();
                    }
                    _ => {
                        if !scanner.pass(value) {
                            break;
                        }
                    }
                }
            }
        }
        Next::Value(Value::Text(_) | Value::Word(_)) | Next::Close | Next::End => {}
    }
    file.close();
    Some(file)
}

impl<'a> File<'a> {
    /// What a GPU's event is.
    pub(super) fn class(&self, event: &Event) -> Class {
        let class = self.classes.get(event.name as usize);
        class.copied().unwrap_or(Class::Compute)
    }

    /// Whether a GPU did anything.
    pub(super) fn has_gpu(&self) -> bool {
        self.has_gpu
    }

    fn about(&mut self, scanner: &mut Scanner<'a>) {
        while let Some((name, value)) = scanner.member() {
            if let (b"rank", Value::Word(word)) = (name, value) {
                self.rank = whole(word);
            } else if !scanner.pass(value) {
                return;
            }
        }
    }

    fn events(
        &mut self,
        scanner: &mut Scanner<'a>,
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Option<()> {
        let mut told = 0;
        loop {
            match scanner.next() {
                Next::Value(Value::Object) => {
                    let raw = raw(scanner);
                    self.add(&raw);
                }
                Next::Value(value) => {
                    if !scanner.pass(value) {
                        return Some(());
                    }
                }
                Next::Close | Next::End => return Some(()),
            }
            if scanner.at() - told >= TELL_EVERY {
                told = scanner.at();
                if progress(told).is_break() {
                    return None;
                }
            }
        }
    }

    fn add(&mut self, raw: &Raw<'a>) {
        self.has_events |= !raw.phase.is_empty();
        match raw.phase {
            b"X" => self.complete(raw),
            b"B" => self.begin(raw),
            b"E" => self.end(raw),
            b"M" => self.metadata(raw),
            b"s" => self.flow(raw, FlowPart::Start),
            b"t" => self.flow(raw, FlowPart::Step),
            b"f" => self.flow(raw, FlowPart::End),
            // Instants, counters and asynchronous events have no place on a lane.
            _ => {}
        }
    }

    fn track(&mut self, raw: &Raw<'a>) -> Option<u32> {
        let key = (raw.process, raw.thread);
        if let Some(&id) = self.track_ids.get(&key) {
            return Some(id);
        }
        if self.tracks.len() >= MOST_TRACKS {
            self.unreadable += 1;
            return None;
        }
        let id = self.tracks.len() as u32;
        self.tracks.push(Track {
            process: raw.process,
            thread: raw.thread,
            name: None,
        });
        self.track_ids.insert(key, id);
        Some(id)
    }

    fn complete(&mut self, raw: &Raw<'a>) {
        let (start, length) = (raw.at.and_then(nanos), raw.lasts.map_or(Some(0), nanos));
        let (Some(start), Some(length)) = (start, length.filter(|&length| length >= 0)) else {
            self.unreadable += 1;
            return;
        };
        let Some(track) = self.track(raw) else { return };
        if self.events.len() >= MOST_EVENTS {
            self.unreadable += 1;
            return;
        }
        if raw.comm != Comm::default() {
            self.comms.insert(self.events.len() as u32, raw.comm);
        }
        let name = self.names.id(raw.name);
        let of = kind(raw.category, raw.name);
        self.has_gpu |= of == Of::Gpu;
        self.events.push(Event {
            start,
            length,
            correlation: raw.correlation,
            name,
            track,
            of,
        });
    }

    fn begin(&mut self, raw: &Raw<'a>) {
        let before = self.events.len();
        self.complete(&Raw {
            lasts: None,
            ..*raw
        });
        if let Some(event) = self.events.get(before) {
            self.open
                .entry(event.track)
                .or_default()
                .push(before as u32);
        }
    }

    fn end(&mut self, raw: &Raw<'a>) {
        let at = raw.at.and_then(nanos);
        let track = self.track_ids.get(&(raw.process, raw.thread));
        let open = track
            .and_then(|track| self.open.get_mut(track))
            .and_then(Vec::pop);
        let (Some(at), Some(index)) = (at, open) else {
            self.unreadable += 1;
            return;
        };
        let event = &mut self.events[index as usize];
        event.length = at.saturating_sub(event.start).max(0);
    }

    /// What was begun and never ended lasts until the last time there is.
    fn close(&mut self) {
        // Names are few and events many.
        self.classes = self.names.list.iter().map(|name| class(name)).collect();
        let last = self.events.iter().map(Event::end).max().unwrap_or_default();
        for index in std::mem::take(&mut self.open).into_values().flatten() {
            let event = &mut self.events[index as usize];
            event.length = last.saturating_sub(event.start).max(0);
        }
    }

    fn metadata(&mut self, raw: &Raw<'a>) {
        if let (b"thread_name", Some(name)) = (raw.name, raw.label)
            && let Some(track) = self.track(raw)
        {
            self.tracks[track as usize].name = Some(name);
        }
    }

    fn flow(&mut self, raw: &Raw<'a>, part: FlowPart) {
        let (Some(at), Some(track)) = (raw.at.and_then(nanos), self.track(raw)) else {
            self.unreadable += 1;
            return;
        };
        // An arrow is told by its category, its name and its number.
        let mut hasher = DefaultHasher::new();
        (raw.category, raw.name, raw.id).hash(&mut hasher);
        let id = hasher.finish();
        let name = self.names.id(raw.name);
        self.flows.push(Flow {
            id,
            name,
            track,
            at,
            part,
            encloses: raw.binds == b"e",
        });
    }
}

fn kind(category: &[u8], name: &[u8]) -> Of {
    match category {
        b"kernel" | b"Kernel" | b"gpu_memcpy" | b"gpu_memset" | b"Memcpy" | b"Memset" => Of::Gpu,
        b"cuda_runtime" | b"cuda_driver" | b"Runtime" => Of::Launch,
        b"gpu_user_annotation" => Of::Thread,
        _ if name.starts_with(b"ProfilerStep") => Of::Step,
        _ => Of::Thread,
    }
}

/// The bytes of a value that is no container.
fn plain(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(bytes) | Value::Word(bytes) => Some(bytes),
        Value::Object | Value::Array => None,
    }
}

fn raw<'a>(scanner: &mut Scanner<'a>) -> Raw<'a> {
    let mut raw = Raw::default();
    while let Some((name, value)) = scanner.member() {
        if let (b"args", Value::Object) = (name, value) {
            args(scanner, &mut raw);
            continue;
        }
        let Some(bytes) = plain(value) else {
            if !scanner.pass(value) {
                break;
            }
            continue;
        };
        match name {
            b"ph" => raw.phase = bytes,
            b"cat" => raw.category = bytes,
            b"name" => raw.name = bytes,
            b"pid" => raw.process = bytes,
            b"tid" => raw.thread = bytes,
            b"ts" => raw.at = Some(bytes),
            b"dur" => raw.lasts = Some(bytes),
            b"id" => raw.id = bytes,
            b"bp" => raw.binds = bytes,
            _ => {}
        }
    }
    raw
}

fn args<'a>(scanner: &mut Scanner<'a>, raw: &mut Raw<'a>) {
    while let Some((name, value)) = scanner.member() {
        let Some(bytes) = plain(value) else {
            let from = scanner.place();
            if !scanner.pass(value) {
                return;
            }
            if name == b"Process Group Ranks" {
                raw.comm.ranks = Some(scanner.since(from).trim_ascii());
            }
            continue;
        };
        match name {
            b"correlation" => raw.correlation = whole(bytes).unwrap_or_default(),
            b"name" => raw.label = Some(bytes),
            b"Collective name" => raw.comm.name = Some(bytes),
            b"Process Group Name" => raw.comm.group = Some(bytes),
            b"Process Group Ranks" => raw.comm.ranks = Some(bytes),
            b"Group size" => {
                raw.comm.members = whole(bytes)
                    .and_then(|size| u32::try_from(size).ok())
                    .unwrap_or_default();
            }
            b"In msg nelems" => raw.comm.elements = whole(bytes).unwrap_or_default(),
            b"dtype" => raw.comm.dtype = Some(bytes),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> File<'_> {
        read(text.as_bytes(), &mut |_| ControlFlow::Continue(())).unwrap()
    }

    #[test]
    fn begins_and_ends_nest_and_what_has_no_end_lasts() {
        let file = read_all(
            r#"[{"ph":"B","name":"a","pid":1,"tid":1,"ts":0},{"ph":"B","name":"b","pid":1,"tid":1,"ts":2},
            {"ph":"E","pid":1,"tid":1,"ts":5},{"ph":"E","pid":2,"tid":1,"ts":5},{"ph":"X","name":"c","ts":6,"dur":4}"#,
        );
        let lengths: Vec<i64> = file.events.iter().map(|event| event.length).collect();
        assert_eq!(lengths, [10_000, 3_000, 4_000]);
        assert_eq!(file.unreadable, 1, "an end on a thread that began nothing");
    }

    #[test]
    fn impossible_times_are_counted_and_left_out() {
        let file = read_all(
            r#"{"traceEvents":[{"ph":"X","ts":NaN,"dur":1},{"ph":"X","ts":9223372036854775808,"dur":1},
            {"ph":"X","ts":1,"dur":-1},{"ph":"X","ts":-1,"dur":1},{"ph":"X","dur":1}]}"#,
        );
        assert_eq!((file.events.len(), file.unreadable), (1, 4));
    }
}

//! Traces opened: our own, or those of other programs, one file a rank, in a folder or an archive.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::trace::import::{self, Foreign, ForeignFile, Imported};

use super::error::ExportError;
use super::files::{MOST_BYTES, read};

/// The most files of a folder or an archive that are read: a rank each.
const MOST_FILES: usize = 4096;
/// Where our own files say that they are ours: before all events.
const OWN: &[u8] = b"\"shardscope\":";
const OWN_WITHIN: usize = 1 << 16;

/// What was opened.
#[derive(Debug)]
pub enum Opened {
    /// A run of ours.
    Own(Box<Imported>),
    /// A trace of another program, all its ranks in one.
    Foreign(Box<Foreign>),
}

/// A file in memory, unpacked.
struct Unpacked {
    /// What was given: the file itself, or the archive or folder that it is in.
    given: String,
    name: String,
    bytes: Vec<u8>,
}

/// Is told how many bytes of how many are read, and may end it.
type Tell<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

/// So many bytes are read at a time.
const CHUNK: u64 = 4 << 20;

/// Opens files; several, a folder and an archive are ranks of one run. `progress` is told how many bytes of how many
/// are read, and may end it.
pub fn open(
    paths: &[PathBuf],
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Opened, ExportError> {
    if let [path] = paths
        && is_own(path)?
    {
        return Ok(Opened::Own(Box::new(read(path)?)));
    }
    let mut files = Vec::new();
    let mut left = MOST_BYTES;
    for path in paths {
        unpack(path, &mut files, &mut left, progress)?;
    }
    let Some(first) = paths.first().filter(|_| !files.is_empty()) else {
        return Err(ExportError::Empty {
            path: paths.first().cloned().unwrap_or_default(),
        });
    };
    let own = |file: &&Unpacked| memchr::memmem::find(head(&file.bytes), OWN).is_some();
    if let Some(own) = files.iter().find(own) {
        return Err(ExportError::Several {
            path: PathBuf::from(&own.name),
        });
    }
    let sources: Vec<ForeignFile<'_>> = files
        .iter()
        .map(|file| ForeignFile {
            given: &file.given,
            name: &file.name,
            bytes: &file.bytes,
        })
        .collect();
    let all = files.iter().map(|file| file.bytes.len()).sum();
    let found = import::foreign(&sources, &mut |done| progress(done, all));
    found
        .map(|found| Opened::Foreign(Box::new(found)))
        .map_err(|source| ExportError::Import {
            path: first.clone(),
            source,
        })
}

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(OWN_WITHIN)]
}

fn refused(path: &Path) -> impl Fn(io::Error) -> ExportError + '_ {
    move |source| ExportError::Read {
        path: path.to_owned(),
        source,
    }
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether all files are ones that we wrote, each of which stands alone.
pub fn all_own(paths: &[PathBuf]) -> Result<bool, ExportError> {
    for path in paths {
        if !is_own(path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file is one that we wrote, as far as its ending and its head tell.
fn is_own(path: &Path) -> Result<bool, ExportError> {
    if path.is_dir() || has_ending(path, &[".tar.gz", ".tgz", ".tar"]) {
        return Ok(false);
    }
    let foreign = path.is_dir() || has_ending(path, &[".json", ".json.gz"]);
    if !foreign {
        // Tables, pictures, and what is none of these: the reader of our own says which.
        return Ok(true);
    }
    let file = File::open(path).map_err(refused(path))?;
    let reader: Box<dyn Read> = if has_ending(path, &[".gz"]) {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut start = Vec::new();
    let read = reader.take(OWN_WITHIN as u64).read_to_end(&mut start);
    read.map_err(refused(path))?;
    Ok(memchr::memmem::find(&start, OWN).is_some())
}

/// A file, all of a folder's, or an archive's.
fn unpack(
    path: &Path,
    files: &mut Vec<Unpacked>,
    left: &mut u64,
    progress: Tell<'_>,
) -> Result<(), ExportError> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(refused(path))?;
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let inner = entry.map_err(refused(path))?.path();
            if inner.is_file() && has_ending(&inner, &[".json", ".json.gz"]) {
                inside.push(inner);
            }
        }
        inside.sort();
        return inside
            .iter()
            .try_for_each(|inner| unpack(inner, files, left, &mut *progress));
    }
    let file = File::open(path).map_err(refused(path))?;
    if has_ending(path, &[".tar.gz", ".tgz"]) {
        let mut unpacked = MultiGzDecoder::new(file);
        return unpack_archive(path, &mut unpacked, files, (left, progress));
    }
    if has_ending(path, &[".tar"]) {
        return unpack_archive(path, &mut { file }, files, (left, progress));
    }
    let long = file.metadata().map_err(refused(path))?.len();
    let bytes = if has_ending(path, &[".gz"]) {
        let unpacked = unpacked_length(&file, long).unwrap_or(0);
        limited(
            path,
            (&mut MultiGzDecoder::new(file), unpacked),
            left,
            progress,
        )?
    } else {
        limited(path, (&mut { file }, long), left, progress)?
    };
    add(path, file_name(path), bytes, files)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn unpack_archive(
    path: &Path,
    reader: &mut dyn Read,
    files: &mut Vec<Unpacked>,
    (left, progress): (&mut u64, Tell<'_>),
) -> Result<(), ExportError> {
    // Whatever is in it, its long names and what is passed over too.
    let mut archive = tar::Archive::new(reader.take(2 * MOST_BYTES));
    let mut inside = Vec::new();
    for entry in archive.entries().map_err(refused(path))? {
        let mut entry = entry.map_err(refused(path))?;
        let inner = entry.path().map_err(refused(path))?.into_owned();
        if !entry.header().entry_type().is_file() || !has_ending(&inner, &[".json", ".json.gz"]) {
            continue;
        }
        let bytes = if has_ending(&inner, &[".gz"]) {
            limited(
                path,
                (&mut MultiGzDecoder::new(&mut entry), 0),
                left,
                &mut *progress,
            )?
        } else {
            let long = entry.size();
            limited(path, (&mut entry, long), left, &mut *progress)?
        };
        add(path, file_name(&inner), bytes, &mut inside)?;
    }
    inside.sort_by(|a, b| a.name.cmp(&b.name));
    files.append(&mut inside);
    Ok(())
}

fn add(
    path: &Path,
    name: String,
    bytes: Vec<u8>,
    files: &mut Vec<Unpacked>,
) -> Result<(), ExportError> {
    if files.len() >= MOST_FILES {
        return Err(ExportError::TooLarge {
            path: path.to_owned(),
            limit: MOST_BYTES,
        });
    }
    let given = file_name(path);
    files.push(Unpacked { given, name, bytes });
    Ok(())
}

/// How long a packed file says that it is unpacked, as far as that can be: a file of zeros is packed to a thousandth.
fn unpacked_length(mut file: &File, packed: u64) -> Option<u64> {
    let mut end = [0; 4];
    file.seek(SeekFrom::End(-4)).ok()?;
    file.read_exact(&mut end).ok()?;
    file.rewind().ok()?;
    let said = u64::from(u32::from_le_bytes(end));
    (said <= packed.saturating_mul(1100)).then_some(said)
}

/// All that `reader` gives, of all files together no more than what is left. It says how long it is, so that there is room
/// for that at once, where growing would take twice as much.
fn limited(
    path: &Path,
    (reader, long): (&mut dyn Read, u64),
    left: &mut u64,
    progress: Tell<'_>,
) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    // One more, so that the end is seen without growing; a wrong length costs nothing but address space.
    let room = long.min(*left).saturating_add(64);
    drop(bytes.try_reserve_exact(room as usize));
    let mut reader = reader.take(*left + 1);
    loop {
        let before = bytes.len();
        let read = reader.by_ref().take(CHUNK).read_to_end(&mut bytes);
        read.map_err(refused(path))?;
        if bytes.len() == before {
            break;
        }
        // How much there is in all is known when all of it is there.
        if progress(bytes.len(), 0).is_break() {
            return Err(ExportError::Import {
                path: path.to_owned(),
                source: import::ImportError::Stopped,
            });
        }
    }
    match left.checked_sub(bytes.len() as u64) {
        Some(rest) => *left = rest,
        None => {
            return Err(ExportError::TooLarge {
                path: path.to_owned(),
                limit: MOST_BYTES,
            });
        }
    }
    Ok(bytes)
}

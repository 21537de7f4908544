//! Files: written as a whole or not at all, read up to a limit.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};

use crate::scene::Scene;
use crate::trace::import::{self, Imported};

use super::error::ExportError;
use super::{Export, Format, drawn};

/// The most bytes a trace may have, unpacked.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// Writes `export` in the format that the ending of `path` stands for.
///
/// The file appears whole or not at all: a failed export leaves the one that was there.
pub fn write(path: &Path, export: &Export<'_>) -> Result<(), ExportError> {
    put(path, &export.bytes(Format::from_path(path)?)?)
}

/// Writes `scene`, called `title`, as the picture that the ending of `path` stands for; whole or not at all.
pub fn write_picture(
    path: &Path,
    scene: &Scene,
    (title, scale): (&str, Option<f32>),
) -> Result<(), ExportError> {
    let format = Format::from_path(path)?;
    put(path, &drawn(scene, (title, scale), format)?)
}

/// Writes `text` as it is; whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), ExportError> {
    put(path, text.as_bytes())
}

/// Reads a text of at most `limit` bytes; what is no UTF-8 is replaced.
pub fn read_text(path: &Path, limit: u64) -> Result<String, ExportError> {
    let refused = |source| ExportError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(refused)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(refused)?;
    if bytes.len() as u64 > limit {
        let path = path.to_owned();
        return Err(ExportError::TooLarge { path, limit });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    replace(path, bytes).map_err(|source| ExportError::Write {
        path: path.to_owned(),
        source,
    })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Only within a folder can a file be renamed in one step.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".shardscope-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As for any new file: the process's umask takes away what it must.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// `bytes` compressed, with neither name nor date.
pub(super) fn zipped(bytes: &[u8]) -> Result<Vec<u8>, ExportError> {
    let packed = || -> io::Result<Vec<u8>> {
        let mut encoder = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::default());
        encoder.write_all(bytes)?;
        encoder.finish()
    };
    packed().map_err(|error| ExportError::Picture {
        what: ".json.gz",
        why: error.to_string(),
    })
}

/// Reads a trace that [`write()`] wrote as Chrome JSON, packed or not, or as CSV.
pub fn read(path: &Path) -> Result<Imported, ExportError> {
    let format = Format::from_path(path)?;
    let limit = |reader: &mut dyn Read| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let refused = |source| ExportError::Read {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(refused)?;
    let bytes = match format {
        Format::ChromeGz => limit(&mut MultiGzDecoder::new(file)),
        Format::Chrome
        | Format::Perfetto
        | Format::Csv
        | Format::Png
        | Format::Gif
        | Format::Apng
        | Format::Svg
        | Format::Pdf => limit(&mut file),
    };
    let bytes = bytes.map_err(refused)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ExportError::TooLarge {
            path: path.to_owned(),
            limit: MOST_BYTES,
        });
    }
    let imported = match format {
        Format::Chrome | Format::ChromeGz => import::chrome(&bytes),
        Format::Perfetto => import::perfetto(&bytes),
        Format::Csv => import::csv(&String::from_utf8_lossy(&bytes)),
        Format::Png | Format::Gif | Format::Apng | Format::Svg | Format::Pdf => {
            Err(import::ImportError::Picture)
        }
    };
    imported.map_err(|source| ExportError::Import {
        path: path.to_owned(),
        source,
    })
}

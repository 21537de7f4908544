//! Traces and pictures as files: PNG, SVG, PDF, Chrome JSON, Perfetto's protobuf, CSV.
//!
//! Every writer is a pure function from its input to bytes, and identical input gives identical bytes. Only [`write()`]
//! and [`read`] touch files.

mod base64;
mod chrome;
mod csv;
mod error;
mod files;
mod film;
mod kit;
mod open;
mod pdf;
mod perfetto;
mod png;
mod report;
mod svg;
#[cfg(test)]
mod tests;
mod viewed;

pub use chrome::chrome;
pub use csv::csv;
pub use error::{ExportError, FORMATS};
pub use files::{read, read_text, write, write_picture, write_text};
pub use film::{apng, gif};
pub use kit::{Kit, KitError};
pub use open::{Opened, all_own, open};
pub use pdf::pdf;
pub use perfetto::perfetto;
pub use png::{png, rgba};
pub use report::{comparison, picture, prediction};
pub use svg::{Fonts, svg};
pub use viewed::{Others, Viewed, others_table};

use std::path::Path;

use serde_json::Value;

use crate::scene::{Picture, Scene};
use crate::trace::Trace;

/// A kind of file that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A picture in pixels.
    Png,
    /// A picture in vectors.
    Svg,
    /// A picture in vectors, for print.
    Pdf,
    /// Chrome's trace format.
    Chrome,
    /// The same, compressed.
    ChromeGz,
    /// The timeline as it comes about, as an animated GIF.
    Gif,
    /// The same as an animated PNG.
    Apng,
    /// Perfetto's protobuf.
    Perfetto,
    /// A table of spans.
    Csv,
}

impl Format {
    /// Whether it is a picture that does not move.
    pub fn is_picture(self) -> bool {
        matches!(self, Self::Png | Self::Svg | Self::Pdf)
    }

    /// Whether it is a picture, moving or not.
    pub fn is_drawn(self) -> bool {
        self.is_picture() || matches!(self, Self::Gif | Self::Apng)
    }

    /// The format that a file's ending stands for.
    pub fn from_path(path: &Path) -> Result<Self, ExportError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        let known = [
            (".png", Self::Png),
            (".svg", Self::Svg),
            (".pdf", Self::Pdf),
            (".gif", Self::Gif),
            (".apng", Self::Apng),
            (".json", Self::Chrome),
            (".json.gz", Self::ChromeGz),
            (".pftrace", Self::Perfetto),
            (".csv", Self::Csv),
        ];
        if let Some((_, format)) = known.into_iter().find(|(ending, _)| name.ends_with(ending)) {
            return Ok(format);
        }
        let path = path.to_owned();
        Err(ExportError::UnknownEnding { path })
    }
}

/// What goes into a file.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Title, stamp, figures, and how the picture looks.
    pub picture: &'a Picture,
    /// The run's figures, as `--json` prints them; carried along in Chrome JSON.
    pub report: &'a Value,
    /// How pictures in pixels are made.
    pub drawing: Drawing,
}

/// How pictures in pixels are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawing {
    /// Pixels a point; if not given, two for a still picture and one for one that moves.
    pub scale: Option<f32>,
    /// How long a picture that moves takes, without the rest at its end.
    pub seconds: f64,
}

impl Default for Drawing {
    fn default() -> Self {
        Self {
            scale: None,
            seconds: 10.0,
        }
    }
}

/// Pixels a point of a PNG: sharp on a projector of 2560 pixels.
const PNG_SCALE: f32 = 2.0;

impl Export<'_> {
    /// The bytes of a file of `format`.
    pub fn bytes(&self, format: Format) -> Result<Vec<u8>, ExportError> {
        match format {
            Format::Png | Format::Svg | Format::Pdf => {
                let scene = self.picture.scene(self.trace);
                drawn(&scene, (&self.picture.title, self.drawing.scale), format)
            }
            Format::Gif => gif(self),
            Format::Apng => apng(self),
            Format::Chrome => Ok(chrome(self).into_bytes()),
            Format::Perfetto => Ok(perfetto(self)),
            Format::ChromeGz => files::zipped(chrome(self).as_bytes()),
            Format::Csv => Ok(csv(self.trace).into_bytes()),
        }
    }
}

/// A scene as a picture of `format`; nothing for the formats of traces.
fn drawn(
    scene: &Scene,
    (title, scale): (&str, Option<f32>),
    format: Format,
) -> Result<Vec<u8>, ExportError> {
    match format {
        Format::Png => png(scene, scale.unwrap_or(PNG_SCALE)),
        Format::Svg => Ok(svg(scene, Fonts::Embedded).into_bytes()),
        Format::Pdf => pdf(scene, title),
        Format::Gif
        | Format::Apng
        | Format::Chrome
        | Format::ChromeGz
        | Format::Perfetto
        | Format::Csv => Err(ExportError::NoTrace),
    }
}

//! A timeline as it comes about, as an animated GIF or PNG: what has happened left of the playhead, empty rows right of it.

use std::borrow::Cow;
use std::collections::HashMap;

use color_quant::NeuQuant;
use resvg::tiny_skia::{Pixmap, Transform};

use crate::scene::{Overview, Picture, Playhead, Rect};
use crate::units::Nanos;

use super::error::ExportError;
use super::png::{pixels, tree};
use super::{Drawing, Export};

/// Frames a second: what viewers of GIFs show evenly.
const RATE: f64 = 12.5;
/// The most frames, and the longest side in pixels.
const MOST_FRAMES: usize = 1500;
const MOST_PIXELS: f32 = 3840.0;
/// How long the end is shown, in milliseconds.
const REST: u16 = 2500;
/// The quantiser looks at one pixel in so many.
const SAMPLE: i32 = 10;

/// A part of a picture that changes, and for how long it is shown then.
struct Frame {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
    rgba: Vec<u8>,
    millis: u16,
}

fn failed(what: &'static str) -> impl Fn(String) -> ExportError {
    move |why| ExportError::Picture { what, why }
}

/// A picture being changed.
struct Stage<'a> {
    full: Pixmap,
    empty: Pixmap,
    now: Pixmap,
    head: Playhead<'a>,
    scale: f32,
}

impl Stage<'_> {
    /// Puts the playhead at `time`; the part that changes.
    fn put(&mut self, time: Nanos, before: Option<Rect>) -> Result<Rect, ExportError> {
        let (head, pill) = self.head.at(time);
        let split = (self.head.x(time) * self.scale) as u32;
        let touched = head.grown(2.0);
        let dirty = before.map_or(touched, |before| {
            let left = before.x.min(touched.x);
            let right = before.right().max(touched.right());
            Rect::new(left, touched.y, right - left, touched.height)
        });
        let (left, top, width, height) = self.pixels(dirty);
        for y in top..top + height {
            for x in left..left + width {
                let source = if x < split { &self.full } else { &self.empty };
                let place = ((y * self.now.width() + x) * 4) as usize;
                let pixel: [u8; 4] = std::array::from_fn(|part| source.data()[place + part]);
                self.now.data_mut()[place..place + 4].copy_from_slice(&pixel);
            }
        }
        let scene = tree(&pill)?;
        let to = Transform::from_row(
            self.scale,
            0.0,
            0.0,
            self.scale,
            head.x * self.scale,
            head.y * self.scale,
        );
        resvg::render(&scene, to, &mut self.now.as_mut());
        Ok(dirty)
    }

    /// A place in whole pixels, held to the picture.
    fn pixels(&self, rect: Rect) -> (u32, u32, u32, u32) {
        let (wide, high) = (self.now.width(), self.now.height());
        let low = |at: f32, most: u32| ((at * self.scale).floor().max(0.0) as u32).min(most - 1);
        let high_end = |at: f32, most: u32| ((at * self.scale).ceil().max(1.0) as u32).min(most);
        let (left, top) = (low(rect.x, wide), low(rect.y, high));
        let right = high_end(rect.right(), wide).max(left + 1);
        let bottom = high_end(rect.bottom(), high).max(top + 1);
        (left, top, right - left, bottom - top)
    }

    fn cut(&self, rect: Rect, millis: u16) -> Frame {
        let (left, top, width, height) = self.pixels(rect);
        let row = self.now.width() as usize * 4;
        let mut rgba = Vec::with_capacity((width * height * 4) as usize);
        for y in top..top + height {
            let from = y as usize * row + left as usize * 4;
            rgba.extend_from_slice(&self.now.data()[from..from + width as usize * 4]);
        }
        Frame {
            left,
            top,
            width,
            height,
            rgba,
            millis,
        }
    }
}

/// Frames one after the other, the first of which is the whole picture; none is kept.
struct Reel<'a> {
    stage: Stage<'a>,
    /// Of the whole picture, in points.
    size: Rect,
    /// How many there are after the first, and how many there were.
    count: usize,
    made: usize,
    millis: u16,
    touched: Option<Rect>,
}

impl<'a> Reel<'a> {
    fn new(
        export: &Export<'a>,
        overview: &'a Overview,
        what: &'static str,
    ) -> Result<Self, ExportError> {
        let Drawing { scale, seconds, .. } = export.drawing;
        let picture: &Picture = export.picture;
        let scene = |until| picture.scene_until(export.trace, overview, until);
        let whole = scene(None);
        let longest = whole.size.width.max(whole.size.height).max(1.0);
        let scale = scale.unwrap_or(1.0).min(MOST_PIXELS / longest);
        let empty = pixels(&scene(Some(Nanos::ZERO)), scale)?;
        let full = pixels(&whole, scale)?;
        if full.width() > u32::from(u16::MAX) || full.height() > u32::from(u16::MAX) {
            return Err(failed(what)("it is too large".to_owned()));
        }
        let count = ((seconds * RATE) as usize).clamp(2, MOST_FRAMES);
        let millis = (seconds * 1000.0 / count as f64).round();
        Ok(Self {
            stage: Stage {
                full,
                now: empty.clone(),
                empty,
                head: picture.playhead(export.trace, overview),
                scale,
            },
            size: Rect::new(0.0, 0.0, whole.size.width, whole.size.height),
            count,
            made: 0,
            millis: millis.clamp(20.0, 60_000.0) as u16,
            touched: None,
        })
    }

    /// The next frame, if there is one.
    fn next(&mut self) -> Result<Option<Frame>, ExportError> {
        let Self { count, made, .. } = *self;
        if made > count {
            return Ok(None);
        }
        self.made += 1;
        let (from, to) = self.stage.head.times();
        let share = made as f64 / count as f64;
        let time = Nanos(from.0 + (to.since(from).0 as f64 * share) as u64);
        let dirty = self.stage.put(time, self.touched)?;
        self.touched = Some(self.stage.head.at(time).0.grown(2.0));
        let changed = if made == 0 { self.size } else { dirty };
        let millis = if made == count { REST } else { self.millis };
        Ok(Some(self.stage.cut(changed, millis)))
    }
}

/// `export`'s timeline as an animated GIF.
pub fn gif(export: &Export<'_>) -> Result<Vec<u8>, ExportError> {
    let failed = failed("GIF");
    let overview = Overview::new(export.trace);
    let mut reel = Reel::new(export, &overview, "GIF")?;
    let quantiser = NeuQuant::new(SAMPLE, 256, reel.stage.full.data());
    let (width, height) = (
        reel.stage.full.width() as u16,
        reel.stage.full.height() as u16,
    );
    let mut bytes = Vec::new();
    let colours = quantiser.color_map_rgb();
    let made = gif::Encoder::new(&mut bytes, width, height, &colours);
    let mut encoder = made.map_err(|error| failed(error.to_string()))?;
    let repeated = encoder.set_repeat(gif::Repeat::Infinite);
    repeated.map_err(|error| failed(error.to_string()))?;
    let mut known: HashMap<[u8; 4], u8> = HashMap::new();
    while let Some(frame) = reel.next()? {
        let indexed = frame.rgba.as_chunks::<4>().0.iter().map(|&pixel| {
            *known
                .entry(pixel)
                .or_insert_with(|| quantiser.index_of(&pixel) as u8)
        });
        let frame = gif::Frame {
            delay: frame.millis / 10,
            left: frame.left as u16,
            top: frame.top as u16,
            width: frame.width as u16,
            height: frame.height as u16,
            buffer: Cow::Owned(indexed.collect()),
            ..gif::Frame::default()
        };
        encoder
            .write_frame(&frame)
            .map_err(|error| failed(error.to_string()))?;
    }
    drop(encoder);
    Ok(bytes)
}

/// `export`'s timeline as an animated PNG.
pub fn apng(export: &Export<'_>) -> Result<Vec<u8>, ExportError> {
    let refused = |error: png::EncodingError| failed("APNG")(error.to_string());
    let overview = Overview::new(export.trace);
    let mut reel = Reel::new(export, &overview, "APNG")?;
    let mut bytes = Vec::new();
    let (width, height) = (reel.stage.full.width(), reel.stage.full.height());
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    let frames = reel.count as u32 + 1;
    encoder.set_animated(frames, 0).map_err(refused)?;
    encoder
        .set_frame_delay(reel.millis, 1000)
        .map_err(refused)?;
    let mut writer = encoder.write_header().map_err(refused)?;
    let mut first = true;
    while let Some(frame) = reel.next()? {
        if !std::mem::take(&mut first) {
            writer
                .set_frame_dimension(frame.width, frame.height)
                .map_err(refused)?;
            writer
                .set_frame_position(frame.left, frame.top)
                .map_err(refused)?;
            writer
                .set_frame_delay(frame.millis, 1000)
                .map_err(refused)?;
        }
        writer.write_image_data(&frame.rgba).map_err(refused)?;
    }
    writer.finish().map_err(refused)?;
    Ok(bytes)
}

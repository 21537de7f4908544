//! Pictures that move: their frames are there, and the last one is the still picture.

use super::pictures::picture;
use crate::export::{Drawing, Export, apng, gif, rgba};
use crate::scene::sample::Sample;
use crate::scene::tokens::Theme;
use crate::scene::{Overview, Size};
use crate::units::Nanos;

const SECONDS: f64 = 1.0;

fn sample() -> crate::trace::Trace {
    Sample {
        dp: 1,
        tp: 1,
        pp: 4,
        micro_batches: 4,
    }
    .trace()
}

fn film_of(make: fn(&Export<'_>) -> Result<Vec<u8>, crate::export::ExportError>) -> Vec<u8> {
    let trace = sample();
    let picture = picture(&trace, Theme::Light, Size::new(640.0, 480.0));
    make(&Export {
        trace: &trace,
        picture: &picture,
        report: &serde_json::Value::Null,
        drawing: Drawing {
            scale: None,
            seconds: SECONDS,
        },
    })
    .unwrap()
}

/// All frames of an animated PNG, one over the other.
fn last_of(bytes: &[u8]) -> (Vec<u8>, usize, u32) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let frames = reader.info().animation_control().unwrap().num_frames as usize;
    let (width, height) = (reader.info().width, reader.info().height);
    let mut whole = vec![0; (width * height * 4) as usize];
    for _ in 0..frames {
        let mut part = vec![0; whole.len()];
        reader.next_frame(&mut part).unwrap();
        let place = *reader.info().frame_control().unwrap();
        for y in 0..place.height {
            let row = (place.width * 4) as usize;
            let from = y as usize * row;
            let to = (((y + place.y_offset) * width + place.x_offset) * 4) as usize;
            whole[to..to + row].copy_from_slice(&part[from..from + row]);
        }
    }
    (whole, frames, width)
}

#[test]
fn the_last_frame_is_the_still_picture_but_for_the_playhead() {
    let (last, frames, width) = last_of(&film_of(apng));
    assert_eq!(frames, 13, "a second at 12.5 frames, and the start");
    let trace = sample();
    let picture = picture(&trace, Theme::Light, Size::new(640.0, 480.0));
    let (size, still) = rgba(&picture.scene(&trace), 1.0).unwrap();
    assert_eq!((size[0] as u32, last.len()), (width, still.len()));
    let overview = Overview::new(&trace);
    let (head, _) = picture.playhead(&trace, &overview).at(trace.makespan);
    let mut apart = 0;
    for (index, (one, other)) in last.chunks(4).zip(still.chunks(4)).enumerate() {
        let (x, y) = (index % width as usize, index / width as usize);
        let at = crate::scene::Point::new(x as f32 + 0.5, y as f32 + 0.5);
        apart += usize::from(one != other && !head.grown(2.5).contains(at));
    }
    assert_eq!(apart, 0);
}

#[test]
fn at_the_start_no_row_has_anything() {
    let trace = sample();
    let picture = picture(&trace, Theme::Light, Size::new(640.0, 480.0));
    let overview = Overview::new(&trace);
    let forward = Theme::Light.palette().forward;
    let blue = |until| {
        let scene = picture.scene_until(&trace, &overview, until);
        let (_, pixels) = rgba(&scene, 1.0).unwrap();
        let is = |pixel: &[u8]| pixel[..3] == [forward.r, forward.g, forward.b];
        pixels.chunks(4).filter(|pixel| is(pixel)).count()
    };
    // What is left is the legend's swatch.
    let swatch = blue(Some(Nanos::ZERO));
    assert!(blue(None) > 10 * swatch && swatch < 200, "{swatch}");
}

#[test]
fn a_gif_has_as_many_frames_and_the_same_bytes_each_time() {
    let bytes = film_of(gif);
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes.as_slice()).unwrap();
    let mut frames = 0;
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        frames += 1;
        assert!(frame.delay >= 2);
    }
    assert_eq!(frames, 13);
    assert_eq!(bytes, film_of(gif));
}

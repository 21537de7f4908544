//! How lessons look: every text that is drawn, measured for size and contrast on what lies under it; and pictures of each
//! lesson's moments, for eyes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use eframe::egui::epaint::ClippedShape;
use eframe::egui::{Color32, Key, Rect, Shape, vec2};
use egui_kittest::Harness;
use image::RgbaImage;
use shardscope::scene::Colour;
use shardscope::ui::App;

/// A text on the screen: what it says, how large its letters are, in which colour, and where.
struct Seen {
    text: String,
    size: f32,
    colour: Color32,
    place: Rect,
}

/// Whether something that is painted later lies over a good part of `place`, such as the playhead's time over the axis.
fn covered(place: Rect, later: &[ClippedShape]) -> bool {
    later.iter().any(|clipped| {
        let Shape::Rect(rect) = &clipped.shape else {
            return false;
        };
        let seen = rect.rect.intersect(clipped.clip_rect).intersect(place);
        rect.fill.a() == 255 && seen.is_positive() && seen.area() > place.area() * 0.2
    })
}

/// The texts that are wholly seen.
fn texts(harness: &Harness<'static, App>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let shapes = &harness.output().shapes;
    for (index, clipped) in shapes.iter().enumerate() {
        let mut own = Vec::new();
        collect(&clipped.shape, clipped.clip_rect, &mut own);
        own.retain(|text| !covered(text.place, &shapes[index + 1..]));
        seen.append(&mut own);
    }
    seen
}

fn collect(shape: &Shape, clip: Rect, seen: &mut Vec<Seen>) {
    if let Shape::Vec(shapes) = shape {
        for shape in shapes {
            collect(shape, clip, seen);
        }
    }
    let Shape::Text(text) = shape else {
        return;
    };
    let place = text.visual_bounding_rect();
    if !clip.contains_rect(place) || text.galley.is_empty() || text.opacity_factor < 1.0 {
        return;
    }
    for section in &text.galley.job.sections {
        let range = section.byte_range.start.0..section.byte_range.end.0;
        let words = &text.galley.job.text[range];
        let own = section.format.color;
        let colour = match text.override_text_color {
            Some(over) => over,
            None if own == Color32::PLACEHOLDER => text.fallback_color,
            None => own,
        };
        if words.chars().any(char::is_alphanumeric) {
            seen.push(Seen {
                text: words.to_owned(),
                size: section.format.font_id.size,
                colour,
                place,
            });
        }
    }
}

/// What a text lies on: the most frequent colour in its place.
fn ground(picture: &RgbaImage, place: Rect) -> Colour {
    // Around the letters as well, as bold ones fill most of their own place.
    let place = place.expand(2.0);
    let mut counts: BTreeMap<[u8; 4], usize> = BTreeMap::new();
    for y in place.top() as u32..(place.bottom() as u32).min(picture.height()) {
        for x in place.left() as u32..(place.right() as u32).min(picture.width()) {
            *counts.entry(picture.get_pixel(x, y).0).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let [r, g, b, a] = most.map_or([0; 4], |(colour, _)| colour);
    Colour { r, g, b, a }
}

/// Whether a text is the letter, number or name on a block of a timeline, which lies over its `legend`: it is as large as its
/// block has room for, and the legend says it at full size.
fn on_a_block(seen: &Seen, legend: Option<f32>) -> bool {
    let text = seen.text.as_str();
    if legend.is_none_or(|legend| seen.place.bottom() > legend) {
        return false;
    }
    let letter = text.trim_start_matches(['F', 'B', 'I', 'W']);
    letter.chars().all(|digit| digit.is_ascii_digit())
        || [
            "opt",
            "O",
            "waiting",
            "DP",
            "TP",
            "PP",
            "transfer",
            "all-reduce",
        ]
        .contains(&text)
        || text.starts_with("idle ")
        || text.ends_with(" %")
}

/// What is too small or too pale, of all that is drawn.
fn faults(harness: &Harness<'static, App>, picture: &RgbaImage, least: f32) -> Vec<String> {
    let mut faults = Vec::new();
    let texts = texts(harness);
    let legend = texts.iter().find(|seen| seen.text == "F forward");
    let legend = legend.map(|seen| seen.place.top());
    for seen in texts {
        let text: String = seen.text.chars().take(40).collect();
        if seen.size < least && !on_a_block(&seen, legend) {
            faults.push(format!("{text:?} is {:.1} points of {least:.1}", seen.size));
        }
        let [r, g, b, a] = seen.colour.to_array();
        let contrast = Colour { r, g, b, a }.contrast(ground(picture, seen.place));
        // What cannot be pressed now is paler.
        let enough = if a < 255 { 3.0 } else { 4.5 };
        if contrast < enough {
            let from = seen.place.min;
            faults.push(format!(
                "{text:?} at {from:?} has a contrast of {contrast:.2}"
            ));
        }
    }
    faults
}

/// Sizes of windows, and whether they are for the back of a classroom.
const WINDOWS: [(f32, f32, bool); 4] = [
    (1280.0, 720.0, false),
    (1920.0, 1080.0, false),
    (1280.0, 720.0, true),
    (1920.0, 1080.0, true),
];

/// Looks at a moment in both themes and at each size; with `PICTURES=FOLDER` they are kept. Leaves the window as it was.
pub(super) fn look(harness: &mut Harness<'static, App>, moment: &str) -> Vec<String> {
    let before = harness.ctx.content_rect().size();
    let folder = std::env::var_os("PICTURES").map(PathBuf::from);
    let mut all = Vec::new();
    for theme in ["dark", "light"] {
        for (width, height, presenter) in WINDOWS {
            harness.set_size(vec2(width, height));
            if presenter {
                harness.key_press(Key::V);
            }
            harness.run_steps(4);
            let picture = harness.render().unwrap();
            let least = if presenter { height / 50.0 } else { 11.0 };
            let name = format!(
                "{moment}-{theme}-{height}{}",
                if presenter { "-presenter" } else { "" }
            );
            let found = faults(harness, &picture, least);
            all.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
            if let Some(folder) = &folder {
                picture.save(folder.join(format!("{name}.png"))).unwrap();
            }
            if presenter {
                harness.key_press(Key::V);
            }
        }
        harness.key_press(Key::L);
        harness.run_steps(1);
    }
    harness.set_size(before);
    harness.run_steps(3);
    all
}

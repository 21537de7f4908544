//! Pictures: their size, their text, the same bytes every time. With `SHARDSCOPE_PICTURES` set to a folder, some are
//! left there to be looked at.

use resvg::usvg;
use serde_json::Value;

use crate::engine::simulate;
use crate::scene::sample::Sample;
use crate::scene::tokens::Theme;
use crate::scene::{Arrows, Card, Look, Overview, Picture, Size, Stamp, Timeline, Viewport};
use crate::session::Config;
use crate::trace::Trace;
use crate::units::{Bytes, Nanos, percent};

use super::super::{Export, Fonts, Format, pdf, png, svg};

const EIGHT: Sample = Sample {
    dp: 2,
    tp: 1,
    pp: 4,
    micro_batches: 8,
};

pub(super) fn picture(trace: &Trace, theme: Theme, size: Size) -> Picture {
    let card = |label: &str, value: String, note: &str| Card {
        label: label.to_owned(),
        value,
        note: note.to_owned(),
    };
    Picture {
        title: "1F1B on 8 GPUs: 4 stages, 8 micro-batches".to_owned(),
        stamp: Stamp {
            layout: "DP 2 × TP 1 × PP 4 · 1F1B · 8 micro-batches of 4".to_owned(),
            model: "nano, 1.6 M parameters".to_owned(),
            hardware: "classroom GPU".to_owned(),
            engine: "simulated times".to_owned(),
            bubble: "idle / pipeline time".to_owned(),
            version: "0.1.0".to_owned(),
        },
        cards: vec![
            card("Step", trace.makespan.to_string(), "virtual time"),
            card(
                "Bubble",
                percent(trace.bubbles().of_total),
                "of total · formula 27.3 %",
            ),
            card(
                "Exposed transfer",
                "6.1 %".to_owned(),
                "all-reduce 4.9, sends 1.2",
            ),
            card(
                "Peak memory",
                "18.8 MiB".to_owned(),
                "GPU 0 · 4 micro-batches live",
            ),
        ],
        theme,
        size,
        ..Picture::default()
    }
}

fn export(trace: &Trace, format: Format) -> Vec<u8> {
    let picture = picture(trace, Theme::Light, Size::new(1280.0, 720.0));
    let export = Export {
        trace,
        picture: &picture,
        report: &Value::Null,
        drawing: crate::export::Drawing::default(),
    };
    export.bytes(format).unwrap()
}

#[test]
fn a_png_has_two_pixels_a_point_and_is_no_blank() {
    let bytes = export(&EIGHT.trace(), Format::Png);
    let pixmap = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert_eq!((pixmap.width(), pixmap.height()), (2560, 1440));
    let forward = Theme::Light.palette().forward;
    let blue = pixmap.pixels().iter().filter(|pixel| {
        (pixel.red(), pixel.green(), pixel.blue()) == (forward.r, forward.g, forward.b)
    });
    assert!(blue.count() > 50_000, "forward passes are blue");
}

#[test]
fn an_svg_is_well_formed_and_its_text_is_text() {
    let text = String::from_utf8(export(&EIGHT.trace(), Format::Svg)).unwrap();
    let document = usvg::roxmltree::Document::parse(&text).unwrap();
    let words: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    for word in ["F3", "B7", "GPU 5", "replica 1 · stage 3", "28.5 %"] {
        assert!(words.contains(&word), "{word} is missing");
    }
    assert!(
        words.iter().any(|word| word.starts_with("idle ")),
        "no bubble is named"
    );
}

#[test]
fn a_pdf_has_fonts_not_outlines() {
    let bytes = export(&EIGHT.trace(), Format::Pdf);
    assert!(bytes.starts_with(b"%PDF-"));
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("/ToUnicode"), "text cannot be selected");
    assert!(text.contains("Inter"), "the font is not in it");
    assert!(!text.contains("/CreationDate"));
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let trace = EIGHT.trace();
    for format in [
        Format::Png,
        Format::Svg,
        Format::Pdf,
        Format::Chrome,
        Format::ChromeGz,
        Format::Csv,
    ] {
        assert!(
            export(&trace, format) == export(&trace, format),
            "{format:?}"
        );
    }
}

#[test]
fn widths_are_those_of_the_font() {
    use crate::scene::fonts::{self, Weight};
    use crate::scene::{Anchor, Colour, Point, Scene, Shape, Text};
    for (weight, text) in [
        (Weight::Regular, "replica 0 stage 3"),
        (Weight::SemiBold, "F10 idle 19 %"),
    ] {
        let scene = Scene {
            size: Size::new(400.0, 100.0),
            background: Colour::hex(0),
            shapes: vec![Shape::Text(Text {
                at: Point::new(10.0, 50.0),
                anchor: Anchor::Start,
                size: 20.0,
                weight,
                colour: Colour::hex(0x00ff_ffff),
                words: text.to_owned(),
            })],
        };
        let tree = png::tree(&scene).unwrap();
        let nodes = tree.root().children();
        let mut measured = None;
        for node in nodes {
            if let usvg::Node::Text(text) = node {
                measured = Some(text.bounding_box().width());
            }
        }
        let (ours, theirs) = (fonts::width(text, 20.0, weight), measured.unwrap());
        assert!(
            (ours - theirs).abs() < 0.03 * theirs,
            "{text}: {ours} for {theirs}"
        );
    }
}

#[test]
fn pictures_to_look_at() {
    let Ok(folder) = std::env::var("SHARDSCOPE_PICTURES") else {
        return;
    };
    let save = |name: &str, trace: &Trace, theme, (width, height): (f32, f32)| {
        let scene = picture(trace, theme, Size::new(width, height)).scene(trace);
        std::fs::write(format!("{folder}/{name}.png"), png(&scene, 1.0).unwrap()).unwrap();
        std::fs::write(format!("{folder}/{name}.svg"), svg(&scene, Fonts::Embedded)).unwrap();
        std::fs::write(format!("{folder}/{name}.pdf"), pdf(&scene, name).unwrap()).unwrap();
    };
    let trace = EIGHT.trace();
    save("dark-720", &trace, Theme::Dark, (1280.0, 720.0));
    save("light-720", &trace, Theme::Light, (1280.0, 720.0));
    save("dark-1080", &trace, Theme::Dark, (1920.0, 1080.0));
    save("light-1080", &trace, Theme::Light, (1920.0, 1080.0));
    let four = Sample { dp: 1, ..EIGHT }.trace();
    save("four", &four, Theme::Dark, (1280.0, 720.0));
    let tensor = Sample {
        tp: 2,
        dp: 1,
        pp: 2,
        micro_batches: 4,
    }
    .trace();
    save("tensor", &tensor, Theme::Light, (1280.0, 720.0));
    let many = Sample {
        dp: 4,
        tp: 2,
        pp: 8,
        micro_batches: 32,
    }
    .trace();
    save_live(&folder, &trace);
    save_simulated(&folder);
    save("many", &many, Theme::Dark, (1280.0, 720.0));
}

/// A window in the middle of a run: half of it drawn, a micro-batch lit, arrows, something selected.
fn save_live(folder: &str, trace: &Trace) {
    let overview = Overview::new(trace);
    let now = Nanos(trace.makespan.0 * 3 / 5);
    let mut look = Look {
        playhead: Some(now),
        until: Some(now),
        arrows: Arrows::Shown,
        capacity: Some(Bytes(24 << 20)),
        ..Look::default()
    };
    look.lit.micro_batches.insert(2);
    let view = Viewport::whole(trace, Size::new(900.0, 520.0));
    look.selected = Timeline::new(trace, &overview, view, &look).hit(425.0, 40.0);
    let scene = Timeline::new(trace, &overview, view, &look).scene();
    std::fs::write(format!("{folder}/live.png"), png(&scene, 1.5).unwrap()).unwrap();
}

/// What the simulator makes of real layouts.
fn save_simulated(folder: &str) {
    use crate::schedule::ScheduleKind::{GPipe, OneFOneB};
    for (name, kind, tp, chunks) in [
        ("sim-1f1b", OneFOneB, 1, 1),
        ("sim-gpipe", GPipe, 1, 1),
        ("sim-tp", OneFOneB, 2, 1),
    ] {
        let mut config = Config::default();
        config.layout.schedule = kind;
        config.layout.tp = tp;
        config.layout.dp = 2 / tp;
        config.layout.chunks = chunks;
        let trace = simulate(&config.plan().unwrap(), config.pricing().as_ref());
        let mut picture = picture(&trace, Theme::Dark, Size::new(1600.0, 900.0));
        config.schedule_title().clone_into(&mut picture.title);
        picture.stamp.layout = config.layout_line();
        let scene = picture.scene(&trace);
        std::fs::write(format!("{folder}/{name}.png"), png(&scene, 1.0).unwrap()).unwrap();
    }
}

//! The timeline by mouse and by key, on a trace in a file and on a run: each gesture does what it is for.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{
    Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, TouchPhase, pos2,
    vec2,
};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use shardscope::export::{Opened, Viewed, picture};
use shardscope::scene::tokens::Theme;
use shardscope::session::{Config, Session, Snapshot, Timeline};
use shardscope::trace::import::Imported;
use shardscope::trace::{Stream, Trace};
use shardscope::ui::{App, LookedAt, Motion, Options, Viewer};

fn options() -> Options {
    Options {
        theme: Theme::Dark,
        motion: Motion::Paused,
        ..Options::default()
    }
}

fn step() -> Timeline {
    Timeline::simulated(&Config::default(), "simulated").unwrap()
}

struct Window {
    harness: Harness<'static, Viewer>,
    trace: Arc<Trace>,
}

impl Window {
    fn new() -> Self {
        let step = step();
        let imported = Imported {
            trace: (*step.trace).clone(),
            picture: serde_json::to_value(picture(&step.report)).unwrap(),
            report: serde_json::to_value(&step.report).unwrap(),
        };
        let files = [PathBuf::from("run.json")];
        let viewed = Viewed::new(&files, Opened::Own(Box::new(imported))).unwrap();
        let trace = Arc::clone(&viewed.trace);
        let mut harness = Harness::builder()
            .with_size([1280.0, 720.0])
            .with_pixels_per_point(1.0)
            // Fast enough for a double click.
            .with_step_dt(1.0 / 60.0)
            .wgpu()
            .build_eframe(move |cc| Viewer::with_viewed(cc, &options(), viewed));
        harness.run_steps(3);
        Self { harness, trace }
    }

    fn at(&self) -> LookedAt {
        self.harness.state().looked_at().unwrap()
    }

    /// The part of the trace that is seen.
    fn length(&self) -> u64 {
        let (from, to) = self.at().seen;
        to - from
    }

    /// The middle of a pass of a rank, where it is drawn; the rank's row is found by its place in the order of rows.
    fn place(&self, rank: usize, name: &str) -> Pos2 {
        let spans = self.trace.lane(rank, Stream::Passes).spans();
        let span = spans
            .iter()
            .find(|span| self.trace.label(span.label).short() == name)
            .unwrap();
        let row = shardscope::scene::row_order(&self.trace)
            .iter()
            .position(|&index| index == rank)
            .unwrap();
        self.in_row(row, u64::midpoint(span.start.0, span.end.0))
    }

    fn in_row(&self, row: usize, time: u64) -> Pos2 {
        let LookedAt {
            plot: [left, top, right, bottom],
            seen: (from, mut to),
            rows: (rows, _),
            ..
        } = self.at();
        if to == self.trace.makespan.0 {
            // With the little air after the end.
            to += to / 60;
        }
        let share = (time - from) as f32 / (to - from) as f32;
        // Replicas are a little apart, and a block is in the upper part of its row.
        let pitch = (bottom - top) / (rows as f32 + 0.2);
        let group = if row >= rows / 2 { 0.25 } else { 0.0 };
        pos2(
            left + share * (right - left),
            top + (row as f32 + group + 0.2) * pitch,
        )
    }

    fn press(&mut self, modifiers: Modifiers, key: Key) {
        self.harness.key_press_modifiers(modifiers, key);
        self.harness.run_steps(3);
    }

    fn key(&mut self, key: Key) {
        self.press(Modifiers::NONE, key);
    }

    fn move_to(&mut self, at: Pos2) {
        self.harness.event(Event::PointerMoved(at));
        self.harness.run_steps(2);
    }

    fn button(&mut self, at: Pos2, (button, modifiers): (PointerButton, Modifiers), pressed: bool) {
        self.harness.event(Event::PointerButton {
            pos: at,
            button,
            pressed,
            modifiers,
        });
    }

    fn click(&mut self, at: Pos2) {
        self.move_to(at);
        for pressed in [true, false] {
            self.button(at, (PointerButton::Primary, Modifiers::NONE), pressed);
        }
        self.harness.run_steps(3);
    }

    fn double_click(&mut self, at: Pos2) {
        self.move_to(at);
        for pressed in [true, false, true, false] {
            self.button(at, (PointerButton::Primary, Modifiers::NONE), pressed);
            self.harness.step();
        }
        self.harness.run_steps(3);
    }

    fn drag(&mut self, from: Pos2, to: Pos2, how: (PointerButton, Modifiers)) {
        self.move_to(from);
        self.harness.event(Event::ModifiersChanged(how.1));
        self.button(from, how, true);
        self.harness.step();
        for share in [0.2, 0.6, 1.0] {
            self.harness
                .event_modifiers(Event::PointerMoved(from + (to - from) * share), how.1);
            self.harness.step();
        }
        self.button(to, how, false);
        self.harness.step();
        self.harness.event(Event::ModifiersChanged(Modifiers::NONE));
        self.harness.run_steps(3);
    }

    /// The pointer beside everything, and all at rest: for a picture, or for another click.
    fn settle(&mut self) {
        self.move_to(pos2(6.0, 6.0));
        self.harness.run_steps(60);
    }

    fn wheel(&mut self, at: Pos2, delta: eframe::egui::Vec2, modifiers: Modifiers) {
        self.move_to(at);
        self.harness.event(Event::ModifiersChanged(modifiers));
        self.harness.event(Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta,
            phase: TouchPhase::Move,
            source: MouseWheelSource::Wheel,
            modifiers,
        });
        self.harness.run_steps(60);
        self.harness.event(Event::ModifiersChanged(Modifiers::NONE));
        self.harness.run_steps(2);
    }
}

const PLAIN: (PointerButton, Modifiers) = (PointerButton::Primary, Modifiers::NONE);

#[test]
fn keys_zoom_at_the_pointer_and_move() {
    let mut window = Window::new();
    let whole = window.length();
    let middle = window.in_row(2, window.trace.makespan.0 / 2);
    window.move_to(middle);
    window.key(Key::W);
    window.key(Key::W);
    let (from, to) = window.at().seen;
    assert!(to - from < whole / 2);
    // What was under the pointer stays there.
    let half = window.trace.makespan.0 / 2;
    assert!(u64::midpoint(from, to).abs_diff(half) < whole / 20);
    window.key(Key::D);
    assert!(window.at().seen.0 > from);
    window.key(Key::A);
    assert!(window.at().seen.0.abs_diff(from) <= 2);
    window.key(Key::S);
    window.key(Key::S);
    window.key(Key::S);
    assert_eq!(window.length(), whole);
    window.key(Key::W);
    window.key(Key::F);
    assert_eq!(window.length(), whole);
}

#[test]
fn the_wheel_zooms_with_ctrl_and_moves_with_shift() {
    let mut window = Window::new();
    let whole = window.length();
    let at = window.in_row(1, window.trace.makespan.0 / 2);
    window.wheel(at, vec2(0.0, 120.0), Modifiers::COMMAND);
    let zoomed = window.length();
    assert!(zoomed < whole, "{zoomed} of {whole}");
    let before = window.at().seen;
    window.wheel(at, vec2(0.0, -60.0), Modifiers::SHIFT);
    let after = window.at().seen;
    assert!(after.0 > before.0 && (after.1 - after.0).abs_diff(zoomed) <= 2);
    // All rows fit, so that by itself it zooms too.
    window.wheel(at, vec2(0.0, 80.0), Modifiers::NONE);
    assert!(window.length() < zoomed);
}

#[test]
fn a_drag_selects_an_area_that_snaps_to_edges() {
    let mut window = Window::new();
    let span = window.trace.lane(0, Stream::Passes).spans()[4];
    let from = window.in_row(0, span.start.0) + vec2(2.0, 0.0);
    let to = window.in_row(2, span.end.0) + vec2(-2.0, 0.0);
    window.drag(from, pos2(to.x, from.y), PLAIN);
    assert_eq!(window.at().area, Some((span.start.0, span.end.0, 1)));
    window.harness.get_by_label_contains("of GPU 0, from");
    window.drag(from, to, PLAIN);
    assert_eq!(window.at().area.unwrap().2, 3);
    window.harness.get_by_label_contains("of 3 GPUs, from");
    window.harness.get_by_label("busbw");
    window.settle();
    window.harness.snapshot("area");
    let length = window.at().area.map(|(from, to, _)| to - from).unwrap();
    window.press(Modifiers::SHIFT, Key::F);
    assert!(window.length() < length * 3 / 2 + 20);
    window.key(Key::Escape);
    assert_eq!(window.at().area, None);
}

#[test]
fn a_drag_with_shift_or_the_middle_button_moves_and_selects_nothing() {
    let mut window = Window::new();
    window.key(Key::W);
    window.key(Key::W);
    let from = window.in_row(1, u64::midpoint(window.at().seen.0, window.at().seen.1));
    for how in [
        (PointerButton::Primary, Modifiers::SHIFT),
        (PointerButton::Middle, Modifiers::NONE),
    ] {
        let before = window.at().seen;
        window.drag(from, from + vec2(-90.0, 0.0), how);
        let after = window.at();
        assert!(after.seen.0 > before.0, "{how:?}");
        assert_eq!(after.area, None);
        window.drag(from, from + vec2(90.0, 0.0), how);
    }
    assert!(window.at().stays);
}

#[test]
fn a_click_selects_and_a_double_click_zooms_there() {
    let mut window = Window::new();
    let at = window.place(2, "F1");
    window.click(at);
    assert!(
        window
            .at()
            .selected
            .unwrap()
            .starts_with("F1, forward on stage 1")
    );
    window.harness.get_by_label("What came before it");
    let whole = window.length();
    window.double_click(at);
    let spans = window.trace.lane(2, Stream::Passes).spans();
    let span = spans
        .iter()
        .find(|span| window.trace.label(span.label).short() == "F1")
        .unwrap();
    assert!(window.length() < whole / 5);
    let (from, to) = window.at().seen;
    assert!(from <= span.start.0 && to >= span.end.0);
    // Beside everything, all is seen again.
    window.settle();
    let [left, .., bottom] = window.at().plot;
    window.double_click(pos2(left - 20.0, bottom - 4.0));
    assert_eq!(window.length(), whole);
}

#[test]
fn the_lane_and_the_arrows_are_gone_along_by_key() {
    let mut window = Window::new();
    for (key, selected) in [
        (Key::Period, "F0, forward on stage 0"),
        (Key::Period, "F1"),
        (Key::Comma, "F0"),
        (Key::CloseBracket, "F0, forward on stage 1"),
        (Key::CloseBracket, "F0, forward on stage 2"),
        (Key::OpenBracket, "F0, forward on stage 1"),
    ] {
        window.key(key);
        let now = window.at().selected.unwrap();
        assert!(now.starts_with(selected), "{key:?}: {now}");
    }
    window.key(Key::Escape);
    assert_eq!(window.at().selected, None);
}

#[test]
fn the_chain_behind_and_the_critical_path_are_lit() {
    let mut window = Window::new();
    window.key(Key::C);
    let whole = window.at().lit;
    assert!(whole > 10);
    window.settle();
    window.harness.snapshot("critical_path");
    window.key(Key::C);
    assert_eq!(window.at().lit, 0);
    let at = window.place(2, "B0");
    window.click(at);
    window.harness.get_by_label("Light the chain").click();
    window.harness.run_steps(3);
    let lit = window.at().lit;
    assert!(lit > 3 && lit < whole, "{lit}");
}

#[test]
fn times_are_marked_and_measured() {
    let mut window = Window::new();
    let span = window.trace.lane(0, Stream::Passes).spans()[4];
    let at = window.in_row(0, span.start.0);
    window.move_to(at + vec2(2.0, 0.0));
    window.key(Key::M);
    let at = window.in_row(0, span.end.0);
    window.move_to(at + vec2(-2.0, 0.0));
    window.key(Key::M);
    assert_eq!(window.at().marks, [span.start.0, span.end.0]);
    window.key(Key::M);
    assert_eq!(window.at().marks, [span.start.0]);
    window.press(Modifiers::SHIFT, Key::M);
    assert!(window.at().marks.is_empty());
}

#[test]
fn spans_are_found_by_name_and_gone_through() {
    let mut window = Window::new();
    window.key(Key::Slash);
    window.harness.get_by_label("Search");
    window.harness.event(Event::Text("f2 gpu 1".to_owned()));
    window.harness.run_steps(3);
    let found = window.at().found;
    assert!(found >= 2, "{found}");
    window.key(Key::Enter);
    let first = window.at().selected.unwrap();
    assert!(first.contains("F2") && first.ends_with("GPU 1"), "{first}");
    window.key(Key::Enter);
    assert_ne!(window.at().selected.unwrap(), first);
    window.harness.get_by_label_contains("2 of ");
    window.key(Key::Escape);
    assert!(window.harness.query_by_label("Search").is_none());
    assert_eq!(window.at().found, 0);
    // A key that was typed did nothing else.
    assert!(!window.at().stays);
}

#[test]
fn rows_are_folded_sorted_and_pinned() {
    let mut window = Window::new();
    assert_eq!(window.at().rows, (8, 0));
    window.key(Key::ArrowDown);
    window.key(Key::ArrowDown);
    window.key(Key::P);
    assert_eq!(window.at().rows, (8, 1));
    window.key(Key::P);
    window.key(Key::Escape);
    window.key(Key::U);
    assert_eq!(window.at().rows.0, 8, "each GPU's passes alone");
    window.key(Key::U);
    assert_eq!(window.at().rows.0, 4, "stages");
    window.settle();
    window.harness.snapshot("folded");
    window.key(Key::U);
    assert_eq!(window.at().rows.0, 2, "replicas");
    window.harness.get_by_label("folded per replica").click();
    window.harness.run_steps(3);
    assert_eq!(window.at().rows.0, 8);
    window.key(Key::O);
    window.harness.get_by_label("by stage");
}

#[test]
fn the_keys_of_a_file_are_listed() {
    let mut window = Window::new();
    window.key(Key::Questionmark);
    window
        .harness
        .get_by_label("next on the lane; drag selects an area");
    assert!(window.harness.query_by_label("play or pause").is_none());
    window.key(Key::Escape);
}

#[test]
fn while_nothing_changes_nothing_is_painted() {
    let mut window = Window::new();
    // Panics if the window goes on repainting.
    window.harness.run();
    let at = window.place(2, "B0");
    window.click(at);
    window.key(Key::C);
    window.harness.run();
}

#[test]
fn moving_pauses_following_and_a_button_resumes() {
    let session = Session::start(Config::default(), || ()).unwrap();
    let preview = loop {
        if let Some(preview) = &session.snapshot().preview {
            break Arc::clone(preview);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    let snapshot = Arc::new(Snapshot {
        config: Arc::clone(&session.snapshot().config),
        preview: Some(preview),
        ..Snapshot::default()
    });
    let mut harness = Harness::builder()
        .with_size([1280.0, 720.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::with_snapshot(cc, &options(), snapshot));
    harness.run_steps(3);
    let stays = |harness: &Harness<'static, App>| harness.state().looked_at().unwrap().stays;
    for key in [Key::W, Key::W] {
        harness.key_press(key);
        harness.run_steps(2);
    }
    assert!(!stays(&harness));
    harness.key_press(Key::D);
    harness.run_steps(2);
    assert!(stays(&harness));
    harness.get_by_label("Follow").click();
    harness.run_steps(2);
    assert!(!stays(&harness));
    // The playhead is in what is seen again.
    let (from, _) = harness.state().looked_at().unwrap().seen;
    assert_eq!(from, 0);
}

//! Building a schedule by hand in the window: by keys and by clicks, refused in words, undone, saved, run.
#![cfg(feature = "desktop")]

use std::sync::Arc;
use std::time::Duration;

use eframe::egui::{Event, Key, Modifiers, PointerButton, Pos2, Role, pos2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use shardscope::lesson::build::LADDER;
use shardscope::scene::tokens::Theme;
use shardscope::session::Snapshot;
use shardscope::ui::{App, Motion, Options};

fn options(theme: Theme) -> Options {
    Options {
        theme,
        motion: Motion::Paused,
        ..Options::default()
    }
}

/// A window of that size with the builder open.
fn window(size: [f32; 2], theme: Theme) -> Harness<'static, App> {
    let mut harness = Harness::builder()
        .with_size(size)
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| {
            App::with_snapshot(cc, &options(theme), Arc::new(Snapshot::default()))
        });
    harness.run_steps(3);
    press(&mut harness, &[Key::B]);
    harness
}

fn small() -> Harness<'static, App> {
    window([1000.0, 640.0], Theme::Dark)
}

fn press(harness: &mut Harness<'static, App>, keys: &[Key]) {
    for &key in keys {
        harness.key_press(key);
        harness.run_steps(2);
    }
}

fn command(harness: &mut Harness<'static, App>, key: Key) {
    harness.key_press_modifiers(Modifiers::COMMAND, key);
    harness.run_steps(2);
}

fn click(harness: &mut Harness<'static, App>, label: &str) {
    harness.get_by_label(label).click();
    harness.run_steps(3);
}

fn said(harness: &Harness<'static, App>) -> String {
    harness.state().board_said().unwrap_or_default().to_owned()
}

/// The first level by letters and arrows, as 1F1B has it.
const SOLUTION: [Key; 10] = [
    Key::F,
    Key::F,
    Key::ArrowDown,
    Key::F,
    Key::B,
    Key::F,
    Key::B,
    Key::ArrowUp,
    Key::B,
    Key::B,
];

#[test]
fn the_first_level_is_solved_by_keys() {
    let mut harness = small();
    harness.get_by_label("Grid of 2 GPUs: 0 passes placed, 8 left");
    press(&mut harness, &SOLUTION);
    assert_eq!(harness.state().board().score(), Some(9));
    assert!(
        said(&harness).contains("9 units, which is par"),
        "{}",
        said(&harness)
    );
    assert!(
        said(&harness).contains("This is 1F1B"),
        "{}",
        said(&harness)
    );
    let level = &LADDER[0].name;
    let best = harness.state().progress().best(level).unwrap();
    assert_eq!((best.score, best.stars), (9, 3));
    harness.get_by_label("Level 1: Two stages, 3 of 3 stars");
    press(&mut harness, &[Key::PageDown]);
    harness.get_by_label("Grid of 4 GPUs: 0 passes placed, 8 left");
    press(&mut harness, &[Key::Escape]);
    assert!(harness.query_by_label_contains("Grid of").is_none());
}

#[test]
fn arrows_choose_and_enter_places() {
    let mut harness = small();
    // F0 is chosen first, F1 after it.
    press(
        &mut harness,
        &[Key::Enter, Key::ArrowLeft, Key::ArrowRight, Key::Enter],
    );
    harness.get_by_label("Row of GPU 0: F0 at 0, F1 at 1");
    press(&mut harness, &[Key::ArrowDown]);
    harness.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight);
    harness.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight);
    harness.run_steps(2);
    press(&mut harness, &[Key::Space]);
    harness.get_by_label("Row of GPU 1: F0 at 3");
}

#[test]
fn the_first_level_is_solved_by_clicks() {
    let mut harness = small();
    click(&mut harness, "Place F0 on GPU 0");
    click(&mut harness, "Place F1 on GPU 0");
    click(&mut harness, "Row of GPU 1: nothing placed");
    for pass in ["F0", "B0", "F1", "B1"] {
        click(&mut harness, &format!("Place {pass} on GPU 1"));
    }
    click(&mut harness, "Row of GPU 0: F0 at 0, F1 at 1");
    click(&mut harness, "Place B0 on GPU 0");
    click(&mut harness, "Place B1 on GPU 0");
    assert_eq!(harness.state().board().stars(), Some(3));
}

/// A click of the pointer, be it on what has no name of its own.
fn click_at(harness: &mut Harness<'static, App>, at: Pos2) {
    harness.event(Event::PointerMoved(at));
    harness.run_steps(2);
    for pressed in [true, false] {
        harness.event(Event::PointerButton {
            pos: at,
            button: PointerButton::Primary,
            pressed,
            modifiers: Modifiers::NONE,
        });
        harness.step();
    }
    harness.run_steps(3);
}

#[test]
fn a_click_on_a_row_places_what_is_chosen_or_says_why_a_block_is_there() {
    let mut harness = small();
    press(&mut harness, &[Key::F, Key::ArrowDown]);
    let row = harness.get_by_label("Row of GPU 1: nothing placed").rect();
    // Names take the left; ten units the rest.
    let unit = (row.width() - 7.0 * 14.0) / 10.0;
    let at = |time: f32| pos2(row.left() + 7.0 * 14.0 + time * unit, row.center().y);
    click_at(&mut harness, at(0.5));
    assert_eq!(
        said(&harness),
        "F0 of stage 1 cannot start at 0: it needs F0 of stage 0, which GPU 0 has ready at 1."
    );
    click_at(&mut harness, at(3.5));
    harness.get_by_label("Row of GPU 1: F0 at 3");
    click_at(&mut harness, at(3.5));
    assert_eq!(
        said(&harness),
        "GPU 1: F0 from 3 to 4; it was placed later than it could be"
    );
}

#[test]
fn a_pass_is_dragged_to_its_time() {
    let mut harness = small();
    let chip = harness.get_by_label("Place F1 on GPU 0").rect().center();
    let own = harness.get_by_label("Row of GPU 0: nothing placed").rect();
    let other = harness.get_by_label("Row of GPU 1: nothing placed").rect();
    let unit = (own.width() - 7.0 * 14.0) / 10.0;
    let x = own.left() + 7.0 * 14.0 + 2.5 * unit;
    drag(&mut harness, chip, pos2(x, other.center().y));
    assert_eq!(said(&harness), "Stage 0 is not GPU 1's: GPU 0 holds it.");
    press(&mut harness, &[Key::ArrowUp]);
    drag(&mut harness, chip, pos2(x, own.center().y));
    harness.get_by_label("Row of GPU 0: F1 at 2");
}

fn drag(harness: &mut Harness<'static, App>, from: Pos2, to: Pos2) {
    harness.event(Event::PointerMoved(from));
    harness.run_steps(2);
    for (at, pressed) in [(from, true), (to, false)] {
        harness.event(Event::PointerMoved(at));
        harness.step();
        harness.event(Event::PointerButton {
            pos: at,
            button: PointerButton::Primary,
            pressed,
            modifiers: Modifiers::NONE,
        });
        harness.step();
    }
    harness.run_steps(3);
}

#[test]
fn illegal_moves_are_told_in_words() {
    let mut harness = small();
    click(&mut harness, "Place B1 on GPU 0");
    let why = "B1 of stage 0 needs F1 of the same stage first, which GPU 0 has not placed yet.";
    assert_eq!(said(&harness), why);
    harness.get_by_label(why);
    press(&mut harness, &[Key::W]);
    assert_eq!(said(&harness), "The backward pass is whole, B here.");
    click(&mut harness, "Level 4: A cap on memory");
    press(&mut harness, &[Key::F; 5]);
    assert!(said(&harness).starts_with("Memory cap: GPU 0 already holds 4 micro-batches"));
    press(&mut harness, &[Key::G]);
    assert_eq!(
        said(&harness),
        "It cannot run: 60 passes are still to be placed."
    );
}

#[test]
fn moves_are_undone_and_done_again() {
    let mut harness = small();
    press(&mut harness, &[Key::F, Key::F]);
    command(&mut harness, Key::Z);
    assert_eq!(harness.state().board().placed(), 1);
    command(&mut harness, Key::Y);
    assert_eq!(harness.state().board().placed(), 2);
    press(&mut harness, &[Key::Backspace]);
    assert_eq!(harness.state().board().placed(), 1);
    press(&mut harness, &[Key::R]);
    assert_eq!(harness.state().board().placed(), 0);
    click(&mut harness, "Undo");
    click(&mut harness, "Undo");
    assert_eq!(harness.state().board().placed(), 2);
    click(&mut harness, "Redo");
    assert_eq!(harness.state().board().placed(), 1);
    // The run's own changes are untouched.
    assert_eq!(
        *harness.state().config(),
        shardscope::session::Config::default()
    );
}

#[test]
fn hints_solve_a_level_in_the_end() {
    let mut harness = small();
    press(&mut harness, &[Key::H]);
    harness.get_by_label("Hint 1 of 3");
    press(&mut harness, &[Key::H]);
    harness.get_by_label("Hint 2 of 3");
    press(&mut harness, &[Key::H]);
    harness.get_by_label_contains("Next, towards");
    press(&mut harness, &[Key::H; 9]);
    assert_eq!(harness.state().board().stars(), Some(3));
    assert!(said(&harness).starts_with("Everything is placed"));
}

#[test]
fn the_keys_of_the_board_are_listed() {
    let mut harness = small();
    press(&mut harness, &[Key::Questionmark]);
    harness.get_by_label("take the GPU's last pass back");
    assert!(harness.query_by_label("play or pause").is_none());
}

#[test]
fn an_order_is_saved_and_opened_and_a_hanging_one_refused() {
    let mut harness = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.csv");
    press(&mut harness, &SOLUTION);
    press(&mut harness, &[Key::S]);
    let fill = |harness: &mut Harness<'static, App>, path: &std::path::Path| {
        let field = harness
            .get_all_by_label("File")
            .find(|node| node.accesskit_node().role() == Role::TextInput)
            .unwrap();
        field.set_text_value_accesskit(&path.to_string_lossy());
        harness.run_steps(2);
    };
    fill(&mut harness, &path);
    click(&mut harness, "Save as CSV");
    assert!(said(&harness).starts_with("Saved"), "{}", said(&harness));
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    click(&mut harness, "Open CSV");
    assert_eq!(harness.state().board().score(), Some(9));
    assert_eq!(harness.state().board().level().name, "A free board");
    std::fs::write(&path, "0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0").unwrap();
    click(&mut harness, "Open CSV");
    assert!(
        said(&harness).contains("wait for each other forever"),
        "{}",
        said(&harness)
    );
    assert!(said(&harness).contains("rank 1"), "{}", said(&harness));
}

#[test]
fn a_free_board_starts_from_any_schedule() {
    let mut harness = small();
    click(&mut harness, "Level Free: A free board");
    harness.get_by_label("Grid of 4 GPUs: 0 passes placed, 64 left");
    click(&mut harness, "Start from the schedule");
    assert_eq!(harness.state().board().score(), Some(33));
}

#[test]
fn what_was_built_trains_with_the_drawn_timeline_above() {
    let mut harness = Harness::builder()
        .with_size([1280.0, 900.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::new(cc, &options(Theme::Dark)).unwrap());
    wait_for(&mut harness, "Timeline of 8 GPUs");
    press(&mut harness, &[Key::B]);
    press(&mut harness, &SOLUTION);
    press(&mut harness, &[Key::G]);
    wait_for(&mut harness, "Timeline of 2 GPUs");
    let config = harness.state().config().clone();
    assert_eq!((config.layout.pp, config.layout.micro_batches), (2, 2));
    assert_eq!(config.custom, harness.state().board().to_schedule().ok());
    // Its line, and the button that closes it.
    assert_eq!(harness.query_all_by_label_contains("As drawn: ").count(), 2);
    harness.get_by_label_contains("Now: ");
    // It really trains.
    wait_for(&mut harness, "Timeline of 2 GPUs, step 2");
    harness.key_press(Key::Space);
    harness.run_steps(3);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    wait_for(&mut harness, "Timeline of 8 GPUs");
}

/// Until something so called is there, at most half a minute.
fn wait_for(harness: &mut Harness<'static, App>, label: &str) {
    for _ in 0..3000 {
        harness.step();
        if harness.query_all_by_label_contains(label).count() > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never came: {label}");
}

#[test]
fn a_level_half_way_looks_as_it_does() {
    let mut harness = window([1280.0, 720.0], Theme::Dark);
    click(&mut harness, "Level 4: A cap on memory");
    press(&mut harness, &[Key::H; 30]);
    press(&mut harness, &[Key::A, Key::X, Key::C]);
    harness.snapshot("builder");
}

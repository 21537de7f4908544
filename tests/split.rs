//! The inside of a layer in the window: gone through by keys and by buttons, told in words, and as two pictures.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::sync::Arc;

use eframe::egui::Key;
use egui_kittest::kittest::Queryable as _;
use egui_kittest::{Harness, SnapshotResults};
use shardscope::scene::split::{Choice, Step, Story, Topic, Way};
use shardscope::scene::tokens::Theme;
use shardscope::session::Snapshot;
use shardscope::ui::{App, Motion, Options, TextSize};

/// A window on the inside of a layer; what is run beside it does not matter.
fn window(size: [f32; 2], theme: Theme, text: TextSize) -> Harness<'static, App> {
    let options = Options {
        theme,
        text,
        motion: Motion::Paused,
        ..Options::default()
    };
    let snapshot = Arc::new(Snapshot::default());
    let mut harness = Harness::builder()
        .with_size(size)
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::with_snapshot(cc, &options, snapshot));
    harness.run_steps(2);
    press(&mut harness, Key::I);
    harness
}

fn desk() -> Harness<'static, App> {
    window([1280.0, 720.0], Theme::Dark, TextSize::Desk)
}

fn press(harness: &mut Harness<'static, App>, key: Key) {
    harness.key_press(key);
    harness.run_steps(2);
}

fn click(harness: &mut Harness<'static, App>, name: &str) {
    harness.get_by_label(name).click();
    harness.run_steps(2);
}

/// The step of the story that is shown, as a screen reader has it.
fn shows(harness: &Harness<'static, App>, story: &Story, step: usize) {
    let account = story.steps()[step].account();
    let text = format!("Step {} of {}. {account}", step + 1, story.steps().len());
    assert!(harness.query_by_label(&text).is_some(), "lacks: {text}");
}

fn story(topic: Topic, way: Way) -> Story {
    Story::new(Choice {
        topic,
        way,
        ..Choice::default()
    })
    .unwrap()
}

#[test]
fn every_story_is_gone_through_to_its_end_and_back() {
    let mut harness = desk();
    click(&mut harness, "Moving pictures");
    for topic in Topic::ALL {
        for way in Way::ALL {
            click(&mut harness, topic.name());
            click(&mut harness, way.name());
            let story = story(topic, way);
            let last = story.steps().len() - 1;
            shows(&harness, &story, 0);
            for step in 1..=last {
                let by_key = [Key::ArrowRight, Key::PageDown][step % 2];
                press(&mut harness, by_key);
                shows(&harness, &story, step);
            }
            press(&mut harness, Key::ArrowRight);
            shows(&harness, &story, last);
            for step in (0..last).rev() {
                press(&mut harness, [Key::ArrowLeft, Key::PageUp][step % 2]);
                shows(&harness, &story, step);
            }
            for step in 1..=last {
                click(&mut harness, "Step on in the story");
                shows(&harness, &story, step);
            }
            for step in (0..last).rev() {
                click(&mut harness, "Step back in the story");
                shows(&harness, &story, step);
            }
            press(&mut harness, Key::End);
            shows(&harness, &story, last);
            press(&mut harness, Key::Home);
            shows(&harness, &story, 0);
        }
    }
}

#[test]
fn nothing_is_painted_anew_while_nothing_moves() {
    let mut harness = desk();
    // `run` fails if the window keeps asking for frames.
    harness.run();
    click(&mut harness, "Moving pictures");
    press(&mut harness, Key::ArrowRight);
    harness.run();
    click(&mut harness, "Moving pictures");
    press(&mut harness, Key::ArrowRight);
    // A step moves for seconds, and then rests.
    harness.run_steps(600);
    harness.run();
    shows(&harness, &story(Topic::Columns, Way::Forward), 2);
}

#[test]
fn space_plays_to_the_end() {
    let mut harness = desk();
    let story = story(Topic::Columns, Way::Forward);
    press(&mut harness, Key::Space);
    assert!(harness.query_by_label("Pause the story").is_some());
    harness.run_steps(60 * 60);
    shows(&harness, &story, story.steps().len() - 1);
    assert!(harness.query_by_label("Play the story").is_some());
}

#[test]
fn part_of_a_head_is_refused_in_words() {
    let mut harness = desk();
    for name in ["Heads", "4 GPUs", "2 heads"] {
        click(&mut harness, name);
    }
    harness.get_by_label_contains("a GPU would hold a part of a head");
    click(&mut harness, "4 heads");
    let choice = Choice {
        topic: Topic::Heads,
        tp: 4,
        ..Choice::default()
    };
    shows(&harness, &Story::new(choice).unwrap(), 0);
}

#[test]
fn it_opens_and_closes_by_key_and_button() {
    let mut harness = desk();
    assert!(harness.query_by_label("Other numbers").is_some());
    for close in [Key::I, Key::Escape] {
        press(&mut harness, close);
        assert!(harness.query_by_label("Other numbers").is_none());
        click(&mut harness, "Matrices…");
        assert!(harness.query_by_label("Other numbers").is_some());
    }
    click(&mut harness, "Back to the timeline");
    assert!(harness.query_by_label("Other numbers").is_none());
    assert!(harness.query_by_label("Start").is_some());
}

#[test]
fn other_numbers_are_the_same_step() {
    let mut harness = desk();
    click(&mut harness, "Moving pictures");
    press(&mut harness, Key::ArrowRight);
    click(&mut harness, "Other numbers");
    let choice = Choice {
        seed: 1,
        ..Choice::default()
    };
    let other = Story::new(choice).unwrap();
    shows(&harness, &other, 1);
    let first = story(Topic::Columns, Way::Forward);
    assert_ne!(Step::account(&other.steps()[1]), first.steps()[1].account());
}

#[test]
fn two_pictures() {
    let mut results = SnapshotResults::new();
    let shown = [
        (Theme::Dark, TextSize::Presenter, "Columns", 2, "split_dark"),
        (Theme::Light, TextSize::Desk, "MLP", 6, "split_light"),
    ];
    for (theme, text, topic, steps, name) in shown {
        let mut harness = window([1280.0, 720.0], theme, text);
        click(&mut harness, "Moving pictures");
        click(&mut harness, topic);
        for _ in 0..steps {
            press(&mut harness, Key::ArrowRight);
        }
        harness.snapshot(name);
        results.extend_harness(&mut harness);
    }
}

//! The window, driven without one: pictures of every panel in both themes, keys and buttons through the
//! accessibility tree, and threads that end with it.
#![cfg(feature = "desktop")]
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eframe::egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use egui_kittest::{Harness, SnapshotResults};
use shardscope::hardware::Hardware;
use shardscope::scene::tokens::Theme;
use shardscope::session::{
    Command, Config, GuideSpec, GuideState, Replica, Session, Snapshot, Status, StepRecord,
    SweepSpec, SweepState, guide,
};
use shardscope::shape::ModelShape;
use shardscope::ui::{App, Motion, Options, TextSize};

/// A run of `config` as a session would show it after some steps; losses, hashes and texts are made up, so that
/// pictures do not depend on the machine's arithmetic.
fn trained(config: Config, steps: usize) -> Arc<Snapshot> {
    let session = Session::start(config, || ()).unwrap();
    let preview = loop {
        if let Some(preview) = &session.snapshot().preview {
            break Arc::clone(preview);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let config = Box::new((*session.snapshot().config).clone());
    let spec = SweepSpec {
        top: 24,
        ..SweepSpec::around(&config, 8)
    };
    session.send(Command::Curve(config));
    session.send(Command::Sweep(Some(Box::new(spec))));
    let first = loop {
        let snapshot = session.snapshot();
        if matches!(snapshot.sweep, Some(SweepState::Found { .. })) {
            break snapshot;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let record = |index: usize| {
        let loss = 3.1 + 2.4 * (-(index as f64) / 12.0).exp() + 0.05 * (index as f64 * 1.7).sin();
        let hash = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index as u64 + 1);
        Arc::new(StepRecord {
            loss,
            reference_loss: Some(loss + 2e-7),
            grad_norm: 1.0,
            replicas: vec![Replica { hash }; preview.report.config.layout.dp],
            timeline: Arc::clone(&preview),
        })
    };
    Arc::new(Snapshot {
        generation: first.generation,
        config: Arc::clone(&first.config),
        steps: (0..steps).map(record).collect(),
        preview: Some(Arc::clone(&preview)),
        status: Status::Ready,
        text_before: Some("q\u{1}Zx|~ ekW 9".to_owned()),
        text_now: Some("the sea and the se".to_owned()),
        curve: first.curve.clone(),
        sweep: first.sweep.clone(),
        ..Snapshot::default()
    })
}

fn options(theme: Theme) -> Options {
    Options {
        theme,
        motion: Motion::Paused,
        ..Options::default()
    }
}

fn window(size: [f32; 2], options: Options, snapshot: Arc<Snapshot>) -> Harness<'static, App> {
    let mut harness = Harness::builder()
        .with_size(size)
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::with_snapshot(cc, &options, snapshot));
    harness.run_steps(3);
    harness
}

fn desk(theme: Theme) -> Harness<'static, App> {
    window(
        [1280.0, 720.0],
        options(theme),
        trained(Config::default(), 30),
    )
}

/// A small window, to try keys in.
fn small() -> Harness<'static, App> {
    window(
        [900.0, 600.0],
        options(Theme::Dark),
        trained(Config::default(), 3),
    )
}

fn press(harness: &mut Harness<'static, App>, keys: &[Key]) {
    for &key in keys {
        harness.key_press(key);
        harness.run_steps(2);
    }
}

/// Keys of the layout, which are held with Alt.
fn alt(harness: &mut Harness<'static, App>, keys: &[Key]) {
    for &key in keys {
        harness.key_press_modifiers(Modifiers::ALT, key);
        harness.run_steps(2);
    }
}

/// A window in which only the panel with that number is open.
fn panel(number: Key, theme: Theme) -> Harness<'static, App> {
    let mut harness = window(
        [760.0, 500.0],
        options(theme),
        trained(Config::default(), 30),
    );
    press(&mut harness, &[Key::K]);
    // Two panels have room at first.
    press(&mut harness, &[Key::Num1, Key::Num2]);
    press(&mut harness, &[number, Key::PageDown, Key::PageDown]);
    // At the end of a step nothing happens.
    let on = if number == Key::Num8 { 16 } else { 0 };
    press(&mut harness, &vec![Key::ArrowRight; on]);
    harness
}

const PANELS: [(Key, &str); 8] = [
    (Key::Num1, "loss"),
    (Key::Num2, "mesh"),
    (Key::Num3, "memory"),
    (Key::Num4, "replicas"),
    (Key::Num5, "traffic"),
    (Key::Num6, "bubble"),
    (Key::Num7, "selection"),
    (Key::Num8, "now"),
];

#[test]
fn every_panel_in_both_themes() {
    let mut results = SnapshotResults::new();
    for (theme, name) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        for (key, panel_name) in PANELS {
            let mut harness = panel(key, theme);
            harness.snapshot(format!("panel_{panel_name}_{name}"));
            results.extend_harness(&mut harness);
        }
    }
}

#[test]
fn what_every_gpu_does_now_is_read_step_by_step() {
    let mut harness = small();
    press(&mut harness, &[Key::Num1, Key::Num8, Key::Home]);
    harness.get_by_label_contains("Warm-up: 2 of 8");
    harness.get_by_label_contains("GPUs 0, 1 (stage 0): forward of micro-batch 0");
    press(&mut harness, &[Key::ArrowRight]);
    harness.get_by_label_contains("GPUs 0, 1 (stage 0): forward of micro-batch 1");
    press(&mut harness, &[Key::End]);
    harness.get_by_label_contains("The training step is done");
    let timeline = harness.get_by_label_contains("Timeline of");
    let account = timeline.accesskit_node().description().unwrap();
    assert!(account.contains("of total"), "{account}");
    assert!(account.contains("F0 F1"), "{account}");
}

#[test]
fn the_window_in_both_themes() {
    let mut results = SnapshotResults::new();
    for (theme, name) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        let mut harness = desk(theme);
        for _ in 0..24 {
            harness.key_press(Key::ArrowRight);
        }
        harness.run_steps(2);
        harness.snapshot(format!("window_{name}"));
        results.extend_harness(&mut harness);
    }
}

#[test]
fn the_window_for_a_classroom() {
    let options = Options {
        text: TextSize::Presenter,
        ..options(Theme::Dark)
    };
    let mut harness = window([1920.0, 1080.0], options, trained(Config::default(), 30));
    press(
        &mut harness,
        &[Key::PageDown, Key::PageDown, Key::PageDown, Key::PageDown],
    );
    harness.snapshot("window_presenter");
}

#[test]
fn a_refused_change_says_why_and_offers_what_works() {
    let mut harness = small();
    alt(&mut harness, &[Key::T, Key::T]);
    assert_eq!(harness.state().config().layout.tp, 2);
    harness.get_by_label_contains("whole heads");
    harness.snapshot("refused");
    harness.get_by_label("Tensor parallel 4").click();
    harness.run_steps(2);
    assert_eq!(harness.state().config().layout.tp, 4);
    assert!(harness.query_by_label_contains("whole heads").is_none());
}

#[test]
fn the_keys_are_listed() {
    let mut harness = small();
    press(&mut harness, &[Key::Questionmark]);
    harness.get_by_label("play or pause");
    harness.snapshot("keys");
    press(&mut harness, &[Key::Escape]);
    assert!(harness.query_by_label("play or pause").is_none());
}

#[test]
fn layout_changes_by_key_and_comes_back() {
    let mut harness = small();
    alt(&mut harness, &[Key::D, Key::M, Key::S, Key::O]);
    let changed = harness.state().config().clone();
    assert_eq!((changed.layout.dp, changed.layout.micro_batches), (3, 9));
    assert!(!changed.overlap);
    for _ in 0..4 {
        harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
        harness.run_steps(2);
    }
    assert_eq!(*harness.state().config(), Config::default());
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Y);
    harness.run_steps(2);
    assert_eq!(harness.state().config().layout.dp, 3);
    harness.key_press_modifiers(Modifiers::ALT.plus(Modifiers::SHIFT), Key::D);
    harness.run_steps(2);
    assert_eq!(harness.state().config().layout.dp, 2);
}

#[test]
fn every_control_is_named_and_works_by_button() {
    let mut harness = small();
    for (button, field) in [("More data parallel", 0), ("More micro-batches", 1)] {
        harness.get_by_label(button).click();
        harness.run_steps(2);
        let layout = harness.state().config().layout;
        assert_eq!([layout.dp, layout.micro_batches][field], [3, 9][field]);
    }
    for name in [
        "Data parallel",
        "Tensor parallel",
        "Pipeline parallel",
        "Micro-batches",
        "Micro-batch size",
        "Schedule",
        "Overlap",
        "Model",
        "Hardware",
        "Start",
        "One step",
        "One step back",
        "One pass on",
        "One pass back",
        "Reset",
        "Faster",
        "Slower",
        "Keys",
        "Light or dark",
    ] {
        let count = harness.query_all_by_label(name).count();
        assert!(count >= 1, "{name}");
    }
}

#[test]
fn the_run_is_gone_through_by_key() {
    let mut harness = small();
    assert_eq!(harness.state().playhead(), (0, 0));
    press(&mut harness, &[Key::PageDown, Key::PageDown]);
    let (step, end) = harness.state().playhead();
    assert!(step == 0 && end > 0 && !harness.state().is_playing());
    press(&mut harness, &[Key::ArrowRight]);
    assert_eq!(harness.state().playhead(), (1, 0));
    press(
        &mut harness,
        &[Key::ArrowRight, Key::ArrowRight, Key::ArrowLeft],
    );
    assert!(harness.state().playhead().1 > 0);
    press(&mut harness, &[Key::PageUp]);
    assert_eq!(harness.state().playhead(), (0, end));
    press(&mut harness, &[Key::Home]);
    assert_eq!(harness.state().playhead(), (0, 0));
    press(&mut harness, &[Key::Space]);
    assert!(harness.state().is_playing());
    harness.run_steps(5);
    assert!(harness.state().playhead().1 > 0);
    press(&mut harness, &[Key::R]);
    assert_eq!(harness.state().playhead().0, 0);
}

#[test]
fn while_nothing_moves_nothing_is_painted() {
    let mut harness = small();
    // Panics if the window goes on repainting.
    harness.run();
    press(&mut harness, &[Key::Space, Key::Space]);
    harness.run();
}

#[test]
fn a_gpu_chosen_by_key_lights_its_groups() {
    let mut harness = desk(Theme::Dark);
    press(&mut harness, &[Key::End, Key::ArrowDown, Key::ArrowDown]);
    harness.get_by_label_contains("GPU 2: layers");
    harness.snapshot("groups");
}

#[test]
fn a_key_typed_into_a_field_is_text() {
    let mut harness = small();
    press(&mut harness, &[Key::E]);
    let field = harness.get_by_label("File");
    field.focus();
    harness.run_steps(2);
    press(&mut harness, &[Key::D]);
    assert_eq!(harness.state().config().layout.dp, 2);
}

#[test]
fn a_picture_is_saved_where_it_is_wanted() {
    let mut harness = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.svg");
    press(&mut harness, &[Key::E]);
    let field = harness
        .get_all_by_label("File")
        .find(|node| node.accesskit_node().role() == eframe::egui::Role::TextInput)
        .unwrap();
    field.set_text_value_accesskit(&path.to_string_lossy());
    harness.run_steps(2);
    harness.get_by_label("Save").click();
    harness.run_steps(2);
    harness.get_by_label_contains("Saved");
    assert!(std::fs::read_to_string(&path).unwrap().contains("<svg"));
}

#[test]
fn every_layout_is_listed_and_a_click_loads_one() {
    let mut harness = desk(Theme::Light);
    press(&mut harness, &[Key::Y]);
    harness.get_by_label_contains("276 layouts, 276 fit into 96.0 MiB");
    harness.snapshot("sweep");
    harness
        .get_by_label("Load DP 8 × TP 1 × PP 1, 1 × 8")
        .click();
    harness.run_steps(2);
    let layout = harness.state().config().layout;
    assert_eq!([layout.dp, layout.pp, layout.micro_batch_size], [8, 1, 8]);
    // The timeline is back, and so is the layout before if it is wanted.
    assert!(harness.query_by_label_contains("276 layouts").is_none());
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(2);
    assert_eq!(*harness.state().config(), Config::default());
}

/// A run for which a layout has been chosen.
fn guided() -> Arc<Snapshot> {
    let run = trained(Config::default(), 3);
    let spec = GuideSpec::around(&run.config, 8);
    let found = guide(&spec, &mut |_, _| ControlFlow::Continue(()));
    Arc::new(Snapshot {
        guide: Some(GuideState::Found {
            spec: Arc::new(spec),
            found: Arc::new(found.unwrap().unwrap()),
        }),
        ..(*run).clone()
    })
}

#[test]
fn a_layout_is_chosen_and_its_reasons_are_told() {
    let mut harness = window([1280.0, 720.0], options(Theme::Light), guided());
    press(&mut harness, &[Key::G]);
    harness.get_by_label("Does the whole training fit one GPU?");
    harness.get_by_label("Yes");
    harness.get_by_label_contains("Every GPU can hold all of the model");
    harness.snapshot("guide");
    for name in [
        "Model to lay out",
        "Hardware to lay out",
        "GPUs to lay out",
        "Global batch to lay out",
        "Previous question",
        "Next question",
    ] {
        assert!(harness.query_all_by_label(name).count() >= 1, "{name}");
    }
    let Some(GuideState::Found { found, .. }) = &guided().guide else {
        panic!("it was found");
    };
    harness.get_by_label("Use it").click();
    harness.run_steps(2);
    let config = harness.state().config().clone();
    assert_eq!(config.layout, found.chosen.layout);
    assert!(harness.query_by_label("Use it").is_none());
    // The chosen one is shown; a rejected one is looked at, and the one before comes back.
    press(&mut harness, &[Key::G]);
    harness.get_by_label("Show Pipeline parallel alone").click();
    harness.run_steps(2);
    assert_eq!(harness.state().config().layout.pp, 8);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(2);
    assert_eq!(*harness.state().config(), config);
}

#[test]
fn the_way_to_a_layout_is_walked_through_by_key() {
    let mut harness = window([1280.0, 720.0], options(Theme::Dark), guided());
    press(&mut harness, &[Key::G, Key::Home]);
    harness.get_by_label("Does the whole training fit one GPU?");
    assert!(harness.query_by_label("Yes").is_none(), "not answered yet");
    assert!(harness.query_by_label("Use it").is_none());
    press(&mut harness, &[Key::ArrowRight, Key::PageDown]);
    harness.get_by_label("Yes");
    let question = "Over how many GPUs of a node is each layer sliced (tensor parallel)?";
    harness.get_by_label(question);
    press(&mut harness, &[Key::ArrowRight]);
    harness.get_by_label("TP 1");
    harness.snapshot("guide_walk");
    press(&mut harness, &[Key::ArrowLeft, Key::ArrowLeft]);
    assert!(harness.query_by_label(question).is_none());
    assert_eq!(
        harness.state().playhead(),
        (0, 0),
        "the run stays where it is"
    );
    press(&mut harness, &[Key::End]);
    harness.get_by_label("Use it");
    press(&mut harness, &[Key::Escape]);
    assert!(harness.query_by_label("Use it").is_none());
}

#[test]
fn where_nothing_fits_it_says_how_many_gpus_would_do() {
    let hardware = Hardware::profile("a100-80gb").unwrap();
    let options = Options {
        config: Config {
            model: ModelShape::preset("gpt3-175b").unwrap(),
            precision: hardware.precision,
            hardware,
            ..Config::default()
        },
        ..options(Theme::Dark)
    };
    let mut harness = Harness::builder()
        .with_size([1280.0, 720.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::new(cc, &options).unwrap());
    wait_for(&mut harness, "Timeline of 8 GPUs");
    press(&mut harness, &[Key::G]);
    wait_for(&mut harness, "gpt3-175b does not fit 8 × A100 80 GB");
    harness
        .render()
        .unwrap()
        .save("/tmp/guide_none.png")
        .unwrap();
    harness.get_by_label("Ask for 64 GPUs").click();
    wait_for(&mut harness, "Use it");
    harness.get_by_label("Every layout").click();
    wait_for(&mut harness, "none fits into 80.0 GiB");
}

#[test]
fn timelines_are_compared_on_one_axis() {
    let mut harness = desk(Theme::Dark);
    press(&mut harness, &[Key::PageDown, Key::PageDown, Key::X]);
    harness.get_by_label("Now: the same");
    harness.snapshot("compared");
    let name = "Compare no longer with DP 2 × TP 1 × PP 4 · 8 micro-batches of 4 · 1F1B";
    harness.get_by_label(name).click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Now: the same").is_none());
}

#[test]
fn before_and_after_a_what_if_are_on_one_axis() {
    let mut harness = live();
    press(&mut harness, &[Key::X]);
    alt(&mut harness, &[Key::W]);
    assert_eq!(harness.state().config().disturbance.slow[0].factor, 2.0);
    wait_for(&mut harness, "Now: GPU 0 takes 2 × as long");
    harness.get_by_label_contains("What if …").click();
    harness.run_steps(20);
    harness
        .get_by_label("Move a layer right between stages 0 and 1")
        .click();
    harness.run_steps(2);
    let layers = harness.state().config().layers_per_stage.clone();
    assert_eq!(layers, Some(vec![1, 3, 2, 2]));
    // Fewer GPUs than the slow one's number leave it out, and other stages the layers.
    alt(&mut harness, &[Key::P]);
    assert_eq!(harness.state().config().layers_per_stage, None);
    harness.key_press_modifiers(Modifiers::SHIFT, Key::X);
    wait_for(&mut harness, "Keep to compare");
    assert!(harness.query_by_label("Stop comparing").is_none());
}

/// A window that really trains.
fn live() -> Harness<'static, App> {
    let options = options(Theme::Dark);
    let mut harness = Harness::builder()
        .with_size([1280.0, 1000.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::new(cc, &options).unwrap());
    wait_for(&mut harness, "Timeline of 8 GPUs");
    harness
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
fn many_changes_in_a_row_end_at_the_last() {
    let mut harness = live();
    for key in [Key::D, Key::D, Key::M, Key::D] {
        harness.key_press_modifiers(Modifiers::ALT, key);
    }
    harness.step();
    wait_for(&mut harness, "Timeline of 20 GPUs");
    assert_eq!(harness.state().config().layout.micro_batches, 9);
}

#[test]
fn closing_it_mid_run_ends_its_threads_at_once() {
    let options = Options::default();
    let mut harness = Harness::builder()
        .with_size([900.0, 600.0])
        .with_pixels_per_point(1.0)
        .wgpu()
        .build_eframe(move |cc| App::new(cc, &options).unwrap());
    for _ in 0..20 {
        harness.step();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(harness.state().is_playing());
    // Without the renderer, which takes its own time to end.
    let app = harness.into_state();
    #[expect(clippy::disallowed_methods, reason = "a test of real time")]
    let start = Instant::now();
    drop(app);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

//! The guide's answers, held to the sweep.

use std::ops::ControlFlow;

use super::*;
use crate::hardware::Hardware;
use crate::session::snapshot::{Command, GuideState};
use crate::session::sweep::sweep;
use crate::session::worker::Session;
use crate::shape::ModelShape;

fn spec(model: &str, hardware: &str, gpus: usize) -> GuideSpec {
    let hardware = Hardware::profile(hardware).unwrap();
    let base = Config {
        model: ModelShape::preset(model).unwrap(),
        precision: hardware.precision,
        hardware,
        ..Config::default()
    };
    GuideSpec {
        global_batch: gpus,
        ..GuideSpec::around(&base, gpus)
    }
}

fn answer(spec: &GuideSpec) -> Guide {
    guide(spec, &mut |_, _| ControlFlow::Continue(()))
        .unwrap()
        .unwrap()
}

/// What people are told, a line a question and an alternative.
fn told(guide: &Guide) -> String {
    let mut lines = vec![format!(
        "{} | {} | {} | bubble {}",
        guide.chosen.named(),
        guide.chosen.step_text(),
        guide.chosen.peak_memory_bytes,
        percent(guide.chosen.bubble_of_total)
    )];
    for reason in &guide.reasons {
        lines.push(format!("{} {}", reason.question, reason.answer));
        lines.push(format!("    {}", reason.consequence));
    }
    let rejected = guide.rejected.iter();
    lines.extend(rejected.map(|one| format!("- {}: {}", one.name, one.why)));
    lines.join("\n")
}

/// The questions that the answers are held to.
const ASKED: [(&str, &str, usize); 6] = [
    ("nano", "classroom", 8),
    ("gpt2-xl", "a100-80gb", 8),
    ("llama3-8b", "h100", 16),
    ("llama2-70b", "h100", 64),
    ("gpt3-175b", "a100-80gb", 512),
    ("llama3-405b", "h100", 1024),
];

#[test]
fn its_layout_is_within_a_twentieth_of_the_sweeps_best() {
    for (model, hardware, gpus) in ASKED {
        let spec = spec(model, hardware, gpus);
        let guide = answer(&spec);
        let mut best = f64::MAX;
        for sequence_parallel in [false, true] {
            for zero in [Zero::Off, Zero::Optimizer] {
                let around = SweepSpec {
                    global_batch: gpus,
                    top: 1,
                    ..SweepSpec::around(&spec.base, gpus)
                };
                let methods = Methods {
                    sequence_parallel,
                    zero,
                    ..around.base.methods
                };
                let base = Config {
                    methods,
                    ..around.base.clone()
                };
                let found = sweep(&SweepSpec { base, ..around }, &mut |_, _| {
                    ControlFlow::Continue(())
                });
                let rows = found.unwrap().unwrap().rows;
                let fitting = rows.iter().filter(|row| row.fits);
                best = fitting.map(|row| row.step_s).fold(best, f64::min);
            }
        }
        assert!(guide.chosen.fits && guide.chosen.simulated);
        assert!(guide.chosen.step_s <= best * 1.05, "{model} on {gpus}");
        assert!(guide.rejected.len() >= 3, "{model} on {gpus}");
    }
}

#[test]
fn its_reasons_and_alternatives_are_told_with_figures() {
    insta::assert_snapshot!(told(&answer(&spec("gpt3-175b", "a100-80gb", 512))));
}

#[test]
fn one_gpu_and_odd_batches_are_answered_too() {
    let alone = answer(&spec("nano", "classroom", 1));
    assert_eq!(alone.chosen.layout.mesh().unwrap().ranks(), 1);
    assert_eq!(alone.reasons[0].verdict, Verdict::Yes);
    assert!(alone.rejected.len() >= 3, "{}", told(&alone));
    let odd = GuideSpec {
        global_batch: 6,
        ..spec("nano", "classroom", 4)
    };
    let told = told(&answer(&odd));
    assert!(
        told.contains("not a multiple of dp x micro-batch size"),
        "{told}"
    );
    let prime = GuideSpec {
        global_batch: 7,
        ..spec("nano", "classroom", 64)
    };
    let error = guide(&prime, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    insta::assert_snapshot!(error, @"no layout of 64 GPUs goes with nano and a global batch of 7: the batch must be a multiple of the replicas, so try 64 or a multiple of it");
}

#[test]
fn where_nothing_fits_the_fewest_gpus_are_told() {
    let asked = spec("gpt3-175b", "a100-80gb", 8);
    let error = guide(&asked, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    insta::assert_snapshot!(error, @"gpt3-175b does not fit 8 × A100 80 GB: what needs least needs 367 GiB of 80.0 GiB a GPU (DP 1 × TP 8 × PP 1, 8 micro-batches of 1, sequence parallel, full recomputation); doubling them, 64 GPUs are the first that would do, with 48.2 GiB a GPU (DP 1 × TP 8 × PP 8, 64 micro-batches of 1, sequence parallel, full recomputation)");
    let GuideError::NothingFits { fewest, .. } = error else {
        panic!("{error}");
    };
    let fewest = fewest.unwrap();
    let again = GuideSpec {
        gpus: fewest.gpus,
        global_batch: fewest.global_batch,
        ..asked.clone()
    };
    assert!(answer(&again).chosen.fits);
    let half = GuideSpec {
        gpus: fewest.gpus / 2,
        global_batch: fewest.global_batch / 2,
        ..asked
    };
    assert!(guide(&half, &mut |_, _| ControlFlow::Continue(())).is_err());
}

#[test]
fn what_is_not_allowed_is_not_done() {
    let allowed = Allowed {
        sequence_parallel: false,
        zero: Zero::Off,
        recompute: Recompute::None,
    };
    let asked = GuideSpec {
        allowed,
        ..spec("megatron-3.6b", "a100-80gb", 16)
    };
    let found = answer(&asked);
    assert!(found.chosen.methods_named().is_empty(), "{}", told(&found));
    assert!(
        found
            .reasons
            .iter()
            .all(|reason| reason.topic < Topic::Sequence)
    );
}

#[test]
fn it_ends_when_told() {
    let asked = spec("llama2-70b", "h100", 64);
    let mut all = 0;
    guide(&asked, &mut |_, _| {
        all += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    for last in [1, all / 2, all] {
        let mut calls = 0;
        let found = guide(&asked, &mut |_, _| {
            calls += 1;
            if calls == last {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert_eq!((found.unwrap(), calls), (None, last));
    }
}

#[test]
fn an_answer_survives_json() {
    let found = answer(&spec("nano", "classroom", 8));
    let text = serde_json::to_string(&found).unwrap();
    let again: Guide = serde_json::from_str(&text).unwrap();
    assert_eq!(again.chosen.layout, found.chosen.layout);
    assert_eq!(again.reasons.len(), found.reasons.len());
}

/// Waits, at most a minute, until a session's question is answered as wanted.
fn until(session: &Session, wanted: impl Fn(Option<&GuideState>) -> bool) {
    for _ in 0..6000 {
        if wanted(session.snapshot().guide.as_ref()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it never came");
}

#[test]
fn a_session_answers_beside_the_training_and_the_last_question_counts() {
    let session = Session::start(Config::default(), || {}).unwrap();
    let ask = |spec: &GuideSpec| session.send(Command::Guide(Some(Box::new(spec.clone()))));
    ask(&spec("llama3-405b", "h100", 4096));
    let small = spec("nano", "classroom", 8);
    ask(&small);
    until(
        &session,
        |state| matches!(state, Some(GuideState::Found { spec, .. }) if **spec == small),
    );
    ask(&spec("gpt3-175b", "a100-80gb", 8));
    until(&session, |state| {
        matches!(
            state,
            Some(GuideState::Refused {
                fewest: Some((64, 64)),
                ..
            })
        )
    });
    session.send(Command::Guide(None));
    until(&session, |state| state.is_none());
}

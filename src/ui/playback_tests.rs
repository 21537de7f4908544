//! Tests of the playhead.

use super::*;

const LENGTH: Nanos = Nanos(16_000_000);

fn road(trained: u64) -> Road<impl Fn(u64) -> Nanos> {
    Road {
        trained,
        trains: true,
        length: |_| LENGTH,
    }
}

fn at(step: u64, time: u64) -> Position {
    Position {
        step,
        time: Nanos(time),
    }
}

fn playing() -> Playback {
    let mut playback = Playback::new(Motion::Playing);
    playback.restart(LENGTH);
    playback
}

fn pass_seconds(playback: &mut Playback, road: &Road<impl Fn(u64) -> Nanos>, seconds: u64) {
    for _ in 0..seconds * 20 {
        playback.advance(Duration::from_millis(50), road);
    }
}

#[test]
fn a_step_takes_some_eight_seconds_at_first() {
    assert_eq!(
        Speed::comfortable(LENGTH),
        Speed::PerSecond(Nanos(2_000_000))
    );
    let mut playback = playing();
    pass_seconds(&mut playback, &road(0), 7);
    assert_eq!(playback.at(), at(0, 14_000_000));
}

#[test]
fn it_waits_at_the_end_of_a_step_that_is_not_trained_yet() {
    let mut playback = playing();
    pass_seconds(&mut playback, &road(0), 30);
    assert_eq!(playback.at(), at(0, LENGTH.0));
    assert!(!playback.advance(Duration::from_millis(50), &road(0)));
    assert!(playback.advance(Duration::from_millis(50), &road(1)));
    assert_eq!(playback.at().step, 1);
}

#[test]
fn a_long_frame_does_not_leap() {
    let mut playback = playing();
    playback.advance(Duration::from_mins(1), &road(9));
    assert_eq!(playback.at(), at(0, 500_000));
}

#[test]
fn one_step_forward_plays_to_the_end_and_stops_and_twice_leaps() {
    let mut playback = Playback::new(Motion::Paused);
    playback.restart(LENGTH);
    playback.step_forward(&road(0));
    assert!(playback.is_playing());
    assert_eq!(playback.wants(), 1);
    pass_seconds(&mut playback, &road(1), 9);
    assert!(!playback.is_playing());
    assert_eq!(playback.at(), at(0, LENGTH.0));
    playback.step_forward(&road(1));
    assert_eq!(playback.wants(), 2);
    playback.step_forward(&road(2));
    assert_eq!(playback.at(), at(1, LENGTH.0));
    assert!(!playback.is_playing());
}

#[test]
fn steps_back_go_to_the_end_before_and_to_the_start() {
    let mut playback = playing();
    pass_seconds(&mut playback, &road(9), 12);
    assert_eq!(playback.at().step, 1);
    playback.step_back(&road(9));
    assert_eq!(playback.at(), at(0, LENGTH.0));
    assert!(!playback.is_playing());
    playback.step_back(&road(9));
    assert_eq!(playback.at(), Position::default());
    assert_eq!(
        playback.seen().step,
        1,
        "what has been seen is not forgotten"
    );
}

#[test]
fn scrubbing_ends_at_what_there_is() {
    let mut playback = playing();
    playback.scrub(at(7, 5), &road(2));
    assert_eq!(playback.at(), at(2, LENGTH.0));
    playback.scrub(at(1, 5), &road(2));
    assert_eq!(playback.at(), at(1, 5));
}

#[test]
fn training_is_asked_for_only_a_little_ahead() {
    let mut playback = Playback::new(Motion::Paused);
    assert_eq!(playback.wants(), 0);
    playback.toggle();
    assert_eq!(playback.wants(), 2);
    playback.toggle();
    assert_eq!(playback.wants(), 0);
}

#[test]
fn as_fast_as_it_trains_is_always_at_the_last_end() {
    let mut playback = playing();
    for _ in 0..40 {
        playback.faster();
    }
    assert_eq!(playback.speed(), Speed::Fastest);
    assert!(!playback.advance(Duration::from_millis(50), &road(0)));
    assert!(playback.advance(Duration::from_millis(50), &road(5)));
    assert_eq!(playback.at(), at(4, LENGTH.0));
    assert_eq!(playback.wants(), 13);
    playback.slower();
    assert_eq!(playback.speed().text(), "1 s shows 10 s");
}

#[test]
fn a_simulated_step_alone_is_played_once() {
    let road = Road {
        trained: 0,
        trains: false,
        length: |_| LENGTH,
    };
    let mut playback = playing();
    pass_seconds(&mut playback, &road, 20);
    assert_eq!(playback.at(), at(0, LENGTH.0));
}

#[test]
fn a_chosen_speed_stays_for_the_next_run() {
    let mut playback = playing();
    playback.restart(LENGTH * 100);
    assert_eq!(playback.speed().text(), "1 s shows 200 ms");
    playback.faster();
    playback.restart(LENGTH);
    assert_eq!(playback.speed().text(), "1 s shows 500 ms");
}

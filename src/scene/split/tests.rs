//! Every story at every degree: the same result as uncut, told in words, and large enough to read.

use proptest::prelude::*;

use super::step::Form;
use super::{Choice, Moment, Refusal, Step, Story, Topic, Way, scene, text_size};
use crate::scene::tokens::{Sizes, Theme};
use crate::scene::{Look, Shape, Size};
use crate::units::Collective;

/// All stories that can be told with a seed.
fn all(seed: u64) -> Vec<Story> {
    let mut stories = Vec::new();
    for topic in Topic::ALL {
        for way in Way::ALL {
            for (tp, heads) in [(1, 2), (2, 2), (1, 4), (2, 4), (4, 4)] {
                let choice = Choice {
                    topic,
                    way,
                    tp,
                    heads,
                    seed,
                };
                // Heads are for attention only.
                if topic == Topic::Heads || heads == 4 {
                    stories.push(Story::new(choice).unwrap());
                }
            }
        }
    }
    stories
}

fn equals_uncut(story: &Story) {
    let last = story.steps().last().unwrap();
    let difference = last.difference().unwrap();
    assert!(difference < 1e-4, "{:?}: {difference}", story.choice());
    let exact = matches!(story.choice().topic, Topic::Columns | Topic::Rows);
    assert!(!exact || difference == 0.0, "{:?}", story.choice());
}

#[test]
fn put_together_is_the_uncut_product() {
    for story in all(0) {
        equals_uncut(&story);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn with_any_numbers(seed in any::<u64>()) {
        for story in all(seed) {
            equals_uncut(&story);
        }
    }
}

/// The numbers that were compared are not all zero, so that being equal says something.
#[test]
fn what_is_compared_is_not_empty() {
    for story in all(0) {
        let last = story.steps().last().unwrap();
        for group in &last.picture.above {
            assert_eq!(group.form, Form::Pair);
            let zero = group.tiles[0].matrix.map(|_| 0.0);
            let size = group.tiles[1].matrix.difference(&zero);
            assert!(size > 0.1, "{:?} {}", story.choice(), group.tiles[1].name);
        }
    }
}

/// A layer has an all-reduce forward and one backward in each of its halves; what is local moves nothing.
#[test]
fn collectives_are_those_of_the_field() {
    let collectives = |topic, way| -> Vec<(Collective, u64)> {
        let choice = Choice {
            topic,
            way,
            ..Choice::default()
        };
        let story = Story::new(choice).unwrap();
        let traffic = story.steps().iter().filter_map(Step::traffic);
        traffic
            .map(|traffic| (traffic.collective, traffic.bytes().0))
            .collect()
    };
    let reduce = |bytes| (Collective::AllReduce, bytes);
    let expected = [
        (
            Topic::Columns,
            vec![(Collective::AllGather, 128)],
            vec![reduce(64)],
        ),
        (Topic::Rows, vec![reduce(64)], vec![]),
        (Topic::Mlp, vec![reduce(64)], vec![reduce(64)]),
        (Topic::Heads, vec![reduce(48)], vec![reduce(48)]),
        // The embedding's; then the largest, and targets and sums together.
        (
            Topic::Vocabulary,
            vec![reduce(64), reduce(16), reduce(32)],
            vec![reduce(64)],
        ),
    ];
    for (topic, forward, backward) in expected {
        assert_eq!(collectives(topic, Way::Forward), forward, "{topic:?}");
        assert_eq!(collectives(topic, Way::Backward), backward, "{topic:?}");
    }
    for story in all(0).iter().filter(|story| story.choice().tp == 1) {
        assert!(story.steps().iter().all(|step| step.traffic().is_none()));
    }
}

#[test]
fn part_of_a_head_is_refused_with_the_reason() {
    let choice = Choice {
        topic: Topic::Heads,
        tp: 4,
        heads: 2,
        ..Choice::default()
    };
    let why = Story::new(choice).unwrap_err();
    insta::assert_snapshot!(why, @"2 heads on 4 GPUs: a GPU would hold a part of a head. A score is a sum over all of a head's columns, and softmax needs whole rows of whole scores, so every score would have to be all-reduced. TP must divide the heads: take 1 or 2 GPUs, or 4 heads.");
    let odd = Choice {
        tp: 3,
        ..Choice::default()
    };
    assert_eq!(Story::new(odd).unwrap_err(), Refusal::Gpus { tp: 3 });
    let odd = Choice {
        topic: Topic::Heads,
        heads: 0,
        ..Choice::default()
    };
    assert_eq!(Story::new(odd).unwrap_err(), Refusal::Heads { heads: 0 });
}

#[test]
fn stories_in_words() {
    for topic in Topic::ALL {
        for way in Way::ALL {
            let choice = Choice {
                topic,
                way,
                ..Choice::default()
            };
            let story = Story::new(choice).unwrap();
            let accounts: Vec<String> = story.steps().iter().map(Step::account).collect();
            let name = format!("{}_{}", topic.name(), way.name()).to_lowercase();
            insta::assert_snapshot!(name, accounts.join("\n\n"));
        }
    }
}

/// What the panel has for its picture in a window of 1280 x 720 with large texts.
const CLASSROOM: Size = Size::new(1250.0, 500.0);

#[test]
fn every_step_can_be_read_at_the_back_of_a_classroom() {
    let mut small = Vec::new();
    for story in all(0) {
        for step in story.steps() {
            let size = text_size(step, CLASSROOM, Sizes::presenter(720.0));
            if size < 720.0 / 50.0 {
                let choice = story.choice();
                let (topic, way) = (choice.topic.name(), choice.way.name());
                small.push(format!(
                    "{topic} {way} {} GPUs, {}: {size:.1}",
                    choice.tp, step.title
                ));
            }
        }
    }
    assert!(small.is_empty(), "{}", small.join("\n"));
}

#[test]
fn a_picture_stays_in_its_room_at_any_moment() {
    let look = Look {
        theme: Theme::Light,
        ..Look::default()
    };
    for story in all(1) {
        for step in 0..story.steps().len() {
            for progress in [0.0, 0.2, 0.5, 0.9, 1.0] {
                let picture = scene(&story, Moment { step, progress }, CLASSROOM, &look);
                for shape in &picture.shapes {
                    if let Shape::Text(text) = shape {
                        let bounds = text.bounds();
                        assert!(bounds.x > -1.0 && bounds.right() < CLASSROOM.width + 1.0);
                        assert!(bounds.y > -1.0 && bounds.bottom() < CLASSROOM.height + 1.0);
                    }
                }
                let numbers = picture
                    .shapes
                    .iter()
                    .filter(|shape| matches!(shape, Shape::Text(_)));
                assert!(numbers.count() > 10, "{:?} step {step}", story.choice());
            }
        }
    }
}

/// Small rooms and odd moments are drawn too, with whatever fits.
#[test]
fn no_room_is_too_small() {
    let story = Story::new(Choice::default()).unwrap();
    for size in [
        Size::new(0.0, 0.0),
        Size::new(30.0, 4000.0),
        Size::new(1.0, 1.0),
    ] {
        for progress in [f32::NAN, -1.0, 7.0] {
            let moment = Moment { step: 99, progress };
            scene(&story, moment, size, &Look::default());
        }
    }
}

#[test]
fn entries_are_gone_through_one_by_one() {
    for story in all(0) {
        for (index, step) in story.steps().iter().enumerate() {
            for entry in 0..step.entries() {
                let moment = Moment::of_entry((index, step), entry);
                assert_eq!(
                    moment.entry(step),
                    Some(entry),
                    "{:?} {}",
                    story.choice(),
                    step.title
                );
            }
        }
    }
}

//! The ladder of levels, from two stages to zero bubble.

use std::borrow::Cow;

use super::level::{Backward, Level, Measure, Times};

/// What of a level is not text.
#[derive(Clone, Copy)]
struct Rules {
    holders: &'static [usize],
    ranks: usize,
    micro_batches: usize,
    backward: Backward,
    cap: Option<usize>,
    measure: Measure,
}

/// A stage on each of four ranks, one micro-batch, whole backwards, no cap.
const PLAIN: Rules = Rules {
    holders: &[0, 1, 2, 3],
    ranks: 4,
    micro_batches: 1,
    backward: Backward::Whole,
    cap: None,
    measure: Measure::Makespan,
};

const fn level(name: &'static str, rules: Rules, texts: [&'static str; 3]) -> Level {
    let [goal, concept, principle] = texts;
    Level {
        name: Cow::Borrowed(name),
        goal: Cow::Borrowed(goal),
        concept: Cow::Borrowed(concept),
        principle: Cow::Borrowed(principle),
        ranks: rules.ranks,
        holders: Cow::Borrowed(rules.holders),
        micro_batches: rules.micro_batches,
        times: Times::EVEN,
        backward: rules.backward,
        cap: rules.cap,
        measure: rules.measure,
    }
}

/// Two GPUs.
static FIRST: Level = level(
    "Two stages",
    Rules {
        ranks: 2,
        holders: &[0, 1],
        micro_batches: 2,
        ..PLAIN
    },
    [
        "Two GPUs, each with half the layers, train on two micro-batches. Place every forward (F) and backward (B) pass, and \
             finish as early as you can.",
        "A forward pass needs what the stage before has made of the same micro-batch. A backward pass needs the gradient of \
             the stage after it, and its own forward.",
        "While GPU 1 works on the first micro-batch, GPU 0 can already work on the second. The last stage can go back as soon \
             as it has gone forward.",
    ],
);

/// Without micro-batches.
static ONE: Level = level(
    "One micro-batch",
    Rules {
        ranks: 4,
        holders: &[0, 1, 2, 3],
        micro_batches: 1,
        ..PLAIN
    },
    [
        "Four GPUs and a batch in one piece. Place all passes, and see how much of the time each GPU does nothing: the bubble.",
        "With one micro-batch only one stage has anything to do at any time: three of four GPUs wait.",
        "Down with F from GPU 0 to GPU 3, then back up with B. There is no other order.",
    ],
);

/// All forwards, then all backwards.
static GPIPE: Level = level(
    "Four micro-batches",
    Rules {
        ranks: 4,
        holders: &[0, 1, 2, 3],
        micro_batches: 4,
        ..PLAIN
    },
    [
        "The same four GPUs, and the batch in four micro-batches. Reach 21 units: the bubble falls from 75 % to 42.9 %, which \
             is (p-1)/(m+p-1).",
        "Micro-batches follow each other through the pipeline, so that stages work at once. The bubble is what is left at \
             both ends.",
        "Simplest: all forwards, then all backwards. This is GPipe. Whatever the order, the last stage must never wait.",
    ],
);

/// As few in flight as keep the pipe full.
static ONE_F_ONE_B: Level = level(
    "A cap on memory",
    Rules {
        ranks: 4,
        holders: &[0, 1, 2, 3],
        micro_batches: 8,
        cap: Some(4),
        ..PLAIN
    },
    [
        "Eight micro-batches, but a GPU has memory for the activations of four at a time. Reach 33 units all the same, as \
             GPipe would with memory for eight.",
        "A micro-batch's activations stay in memory from its F to the end of its B. Who goes back early frees memory early.",
        "Stage i warms up with p-1-i forwards; then one forward and one backward in turn, to the end; then the backwards that \
             are left. This is 1F1B: the same bubble as GPipe, and at most p micro-batches in flight.",
    ],
);

/// Several chunks a rank.
static INTERLEAVED: Level = level(
    "Two chunks a GPU",
    Rules {
        ranks: 4,
        holders: &[0, 1, 2, 3, 0, 1, 2, 3],
        micro_batches: 4,
        ..PLAIN
    },
    [
        "Each GPU holds two thin stages: GPU 0 stages 0 and 4, GPU 1 stages 1 and 5, … A unit is a thin stage's forward, half \
             of what it was. Reach 33 of these units, where 1F1B with thick stages would take 42.",
        "A micro-batch goes through all GPUs twice. The pipe fills with thin stages, so the bubble at both ends is half as \
             long, and twice as much is sent.",
        "All four micro-batches go through stages 0 to 3 and then, without a pause, through 4 to 7. Backwards the other way: \
             the second chunk first.",
    ],
);

/// The backward in two, in 1F1B's memory.
static ZB_H1: Level = level(
    "The backward in two",
    Rules {
        ranks: 3,
        holders: &[0, 1, 2],
        micro_batches: 6,
        backward: Backward::Split,
        cap: Some(3),
        ..PLAIN
    },
    [
        "Three GPUs, six micro-batches, memory for three. The backward pass is in two now: I hands the gradient on, W only \
             adds to the GPU's own weights. 1F1B takes 24 units; reach 20.",
        "Only I is waited for by another GPU. W can be done at any later time: it can fill what would be bubble.",
        "Keep 1F1B's order with I for B. Put off W where another GPU waits for your I or F, and do it where you would have \
             nothing else to do. This is ZB-H1.",
    ],
);

/// More in flight, no bubble.
static ZB_H2: Level = level(
    "Zero bubble",
    Rules {
        ranks: 3,
        holders: &[0, 1, 2],
        micro_batches: 6,
        backward: Backward::Split,
        cap: Some(5),
        measure: Measure::StageSpan,
    },
    [
        "Memory for five micro-batches, and what counts is each GPU's own time from its first pass to its last (so the \
             optimizer's step may start at its own time on each GPU). Six micro-batches are 18 units of work. Reach 18: no GPU \
             ever waits.",
        "The first GPU waits for its first gradient, which comes back only after the way down and up. With enough forwards at \
             hand it has something to do until then.",
        "Warm up with 2(p-1-i)+1 forwards on GPU i, then I and F in turn. W fills what is left, mostly on the later GPUs. This \
             is ZB-H2.",
    ],
);

/// Down and back up.
static ZB_V: Level = level(
    "A V",
    Rules {
        ranks: 2,
        holders: &[0, 1, 1, 0],
        micro_batches: 4,
        backward: Backward::Split,
        cap: Some(4),
        measure: Measure::StageSpan,
    },
    [
        "Four thin stages on two GPUs, placed down and back up: GPU 0 holds the first and the last. Four micro-batches are 24 \
             units of work for each GPU. Reach zero bubble, in the memory of 1F1B: four thin stages' activations.",
        "The last stage is on the first GPU, so a gradient starts where the micro-batch came in, and nobody waits long for \
             its first one.",
        "Send micro-batches down, and bring each up and back as soon as you can: F, I and W of the second chunk in a row \
             free memory at once. Then the two chunks in turn. This is ZB-V.",
    ],
);

/// The levels, the easiest first.
pub static LADDER: [&Level; 8] = [
    &FIRST,
    &ONE,
    &GPIPE,
    &ONE_F_ONE_B,
    &INTERLEAVED,
    &ZB_H1,
    &ZB_H2,
    &ZB_V,
];

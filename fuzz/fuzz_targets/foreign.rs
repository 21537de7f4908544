//! Traces of other programs, one file or two that are ranks of one run: read, and drawn.
#![no_main]

mod exercise;

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use shardscope::trace::import::{ForeignFile, foreign};

fuzz_target!(|data: &[u8]| {
    // A line of its own cuts it in two.
    let cut = data.windows(3).position(|bytes| bytes == b"\n%\n");
    let parts = match cut {
        Some(at) => vec![&data[..at], &data[at + 3..]],
        None => vec![data],
    };
    let files: Vec<ForeignFile<'_>> = parts
        .into_iter()
        .map(|bytes| ForeignFile {
            given: "a.json",
            name: "a.json",
            bytes,
        })
        .collect();
    if let Ok(found) = foreign(&files, &mut |_| ControlFlow::Continue(())) {
        exercise::exercise(&found.trace);
    }
});

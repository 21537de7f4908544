//! The table of spans.
#![no_main]

mod exercise;

use libfuzzer_sys::fuzz_target;
use shardscope::trace::import::csv;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(found) = csv(text) {
        exercise::exercise(&found.trace);
    }
});

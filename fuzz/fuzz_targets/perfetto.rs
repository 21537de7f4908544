//! Our own files, as anybody may have damaged them.
#![no_main]

mod exercise;

use libfuzzer_sys::fuzz_target;
use shardscope::trace::import::perfetto;

fuzz_target!(|data: &[u8]| {
    if let Ok(found) = perfetto(data) {
        exercise::exercise(&found.trace);
    }
});

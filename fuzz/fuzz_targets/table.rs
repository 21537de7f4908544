//! The table of spans.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shardscope::trace::critical_path;
use shardscope::trace::import::csv;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(found) = csv(text) {
        critical_path(&found.trace);
        found.trace.bubbles();
    }
});

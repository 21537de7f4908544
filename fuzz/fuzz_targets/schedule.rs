//! PyTorch's CSV of schedules: what is read is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shardscope::schedule::Schedule;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(schedule) = Schedule::from_csv(text) {
        let again = Schedule::from_csv(&schedule.to_csv());
        assert_eq!(again.as_ref().ok(), Some(&schedule));
    }
});

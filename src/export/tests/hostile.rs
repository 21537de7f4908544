//! Files that mean harm: each ends with a clear error or a bounded result.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::export::{ExportError, Opened, files, open};
use crate::trace::import;

fn opened(path: &Path) -> Result<Opened, ExportError> {
    let paths = [PathBuf::from(path)];
    open(&paths, &mut |_, _| ControlFlow::Continue(()))
}

/// A file of that name and with those bytes, opened.
fn open_bytes(name: &str, bytes: &[u8]) -> Result<Opened, ExportError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    opened(&path)
}

fn refusal(name: &str, bytes: &[u8]) -> String {
    open_bytes(name, bytes).unwrap_err().to_string()
}

#[test]
fn a_gigabyte_of_nesting_is_counted_and_not_followed() {
    for open in [b"[".as_slice(), b"{\"a\":"] {
        let text = open.repeat(1_000_000_000 / open.len());
        let source = import::ForeignFile {
            given: "a",
            name: "a",
            bytes: &text,
        };
        let found = import::foreign(&[source], &mut |_| ControlFlow::Continue(()));
        assert!(found.is_err());
    }
}

#[test]
fn nesting_in_a_file_of_ours_is_an_error() {
    let text = format!("{{\"shardscope\":{}", "[".repeat(1 << 20));
    assert!(refusal("a.json", text.as_bytes()).contains("a.json"));
}

#[test]
fn what_is_no_gzip_or_is_cut_off_is_refused_by_name() {
    assert!(refusal("a.json.gz", b"no gzip at all").contains("a.json.gz"));
    let packed =
        files::zipped(&b"[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\"}]".repeat(99)).unwrap();
    for cut in [0, 1, 9, 20, packed.len() - 5, packed.len() - 1] {
        assert!(
            refusal("a.json.gz", &packed[..cut]).contains("a.json.gz"),
            "{cut}"
        );
    }
}

#[test]
fn a_bomb_is_not_unpacked_whatever_it_says_that_it_is_long() {
    let mebibyte = files::zipped(&vec![b' '; 1 << 20]).unwrap();
    let bomb = mebibyte.repeat(1025);
    let error = open_bytes("a.json.gz", &bomb).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge { .. }), "{error}");
    // One that says four gibibytes, and is a few bytes.
    let mut liar = files::zipped(b"[]").unwrap();
    let end = liar.len() - 4;
    liar[end..].copy_from_slice(&[255; 4]);
    assert!(open_bytes("a.json.gz", &liar).is_err());
    // In an archive.
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(bomb.len() as u64);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, "rank0.json.gz", bomb.as_slice())
        .unwrap();
    let archive = archive.into_inner().unwrap();
    let error = open_bytes("a.tar", &archive).unwrap_err();
    assert!(matches!(error, ExportError::TooLarge { .. }), "{error}");
}

#[test]
fn an_archive_that_says_it_is_longer_than_it_is_takes_no_room_for_that() {
    let mut header = tar::Header::new_gnu();
    header.set_path("rank0.json").unwrap();
    header.set_size(1 << 29);
    header.set_mode(0o644);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(b"[{\"ph\":\"X\"");
    assert!(open_bytes("a.tar", &bytes).is_err());
}

#[test]
fn numbers_that_are_no_times_are_left_out_and_ids_may_come_twice() {
    let event = |ts: &str, dur: &str| {
        format!(r#"{{"ph":"X","pid":1,"tid":1,"name":"k","ts":{ts},"dur":{dur}}}"#)
    };
    let times = [
        "NaN",
        "-1",
        "9223372036854775808",
        "1e400",
        "-9223372036854775808",
        "\"x\"",
        "null",
        "5",
    ];
    let mut events: Vec<String> = times.iter().map(|ts| event(ts, "3")).collect();
    events.extend(times.iter().map(|dur| event("7", dur)));
    // The same flow a thousand times over, started and ended.
    for index in 0..1000 {
        let part = ["s", "t", "f"][index % 3];
        events.push(format!(
            r#"{{"ph":"{part}","id":1,"pid":1,"tid":1,"ts":6,"name":"f"}}"#
        ));
    }
    let text = format!("[{}]", events.join(","));
    let Ok(Opened::Foreign(found)) = open_bytes("a.json", text.as_bytes()) else {
        panic!("it is drawn as far as it can be");
    };
    // Of the times, -1 and 5; of the lengths, 5. All starts come before all ends: each joins the part after it.
    assert_eq!(found.trace.span_count(), 3);
    assert_eq!(found.trace.arrows.len(), 334);
    let said = found
        .notes
        .iter()
        .any(|note| note.contains("could not be read"));
    assert!(said, "{:?}", found.notes);
}

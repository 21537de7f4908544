//! A forgiving reader of JSON: what other trace viewers accept is accepted, commas left out and ends cut off included.
//!
//! It goes over the bytes once, builds nothing, and counts nesting instead of following it, so that no file can make
//! it use more than the file's own memory.

/// A value, or the start of one that holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A string's bytes between its quotes, escapes as they are.
    Text(&'a [u8]),
    /// A number, or a word such as `true`, `null` and `NaN`, as written.
    Word(&'a [u8]),
    /// `{`: its members come next.
    Object,
    /// `[`: its elements come next.
    Array,
}

/// What stands next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A value.
    Value(Value<'a>),
    /// `}` or `]`.
    Close,
    /// Nothing more.
    End,
}

/// Where in the bytes it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Between values: white space, commas and colons, however many.
fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')
}

fn ends_word(byte: u8) -> bool {
    is_between(byte) || matches!(byte, b'}' | b']' | b'{' | b'[' | b'"')
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        // A byte order mark, as some editors write.
        let at = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        Self { bytes, at }
    }

    /// How many bytes it has gone over.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What stands next; a value that holds others has been entered.
    pub(super) fn next(&mut self) -> Next<'a> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                byte if is_between(byte) => self.at += 1,
                b'{' => {
                    self.at += 1;
                    return Next::Value(Value::Object);
                }
                b'[' => {
                    self.at += 1;
                    return Next::Value(Value::Array);
                }
                b'}' | b']' => {
                    self.at += 1;
                    return Next::Close;
                }
                b'"' => {
                    return self
                        .text()
                        .map_or(Next::End, |text| Next::Value(Value::Text(text)));
                }
                _ => return Next::Value(Value::Word(self.word())),
            }
        }
        Next::End
    }

    /// A string that starts here; nothing if it has no end.
    fn text(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.bytes.get(at..)?);
            let Some(found) = found else {
                self.at = self.bytes.len();
                return None;
            };
            at += found;
            if self.bytes[at] == b'"' {
                self.at = at + 1;
                return Some(&self.bytes[start..at]);
            }
            at += 2;
        }
    }

    fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|&byte| ends_word(byte));
        self.at = start + length.unwrap_or(rest.len());
        &self.bytes[start..self.at]
    }

    /// Goes over the rest of an object or array that was entered; whether it has an end.
    pub(super) fn leave(&mut self) -> bool {
        let mut depth = 1_u64;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    if self.text().is_none() {
                        return false;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return true;
            }
        }
        false
    }

    /// Goes over `value`, whatever it holds; whether it has an end.
    pub(super) fn pass(&mut self, value: Value<'_>) -> bool {
        match value {
            Value::Text(_) | Value::Word(_) => true,
            Value::Object | Value::Array => self.leave(),
        }
    }

    /// How far it has come.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// What was read since it was at that place.
    pub(super) fn since(&self, place: usize) -> &'a [u8] {
        self.bytes.get(place..self.at).unwrap_or_default()
    }

    /// The next member of an object that was entered: its name and its value, which may have been entered. Nothing at
    /// the object's end, or where the bytes end.
    pub(super) fn member(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        loop {
            match self.next() {
                Next::Value(Value::Text(name)) => match self.next() {
                    Next::Value(value) => return Some((name, value)),
                    Next::Close | Next::End => return None,
                },
                // No name: something went wrong before, and what stands here is nobody's.
                Next::Value(value) => {
                    if !self.pass(value) {
                        return None;
                    }
                }
                Next::Close | Next::End => return None,
            }
        }
    }
}

/// A string's text, its escapes resolved; what is no UTF-8 is replaced.
pub(super) fn unescaped(text: &[u8]) -> String {
    let plain = String::from_utf8_lossy(text);
    if !plain.contains('\\') {
        return plain.into_owned();
    }
    let quoted = format!("\"{plain}\"");
    serde_json::from_str(&quoted).unwrap_or_else(|_| plain.into_owned())
}

/// Microseconds as written, in whole nanoseconds: digits are read as digits, as times since 1970 with a fraction have
/// more of them than a floating-point number.
pub(super) fn nanos(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, word),
    };
    let (mut value, mut decimals, mut in_fraction) = (0_i64, 0, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' if decimals < 3 => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals += u32::from(in_fraction);
            }
            // Picoseconds and less.
            b'0'..=b'9' => {}
            b'.' if !in_fraction => in_fraction = true,
            _ => return rounded(word),
        }
    }
    let value = value.checked_mul(10_i64.pow(3 - decimals))?;
    (!digits.is_empty()).then_some(if negative { -value } else { value })
}

/// A number with an exponent.
fn rounded(word: &[u8]) -> Option<i64> {
    let value: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let nanos = (value * 1e3).round();
    (nanos.abs() < 9e18).then_some(nanos as i64)
}

/// A whole number of at most 64 bits.
pub(super) fn whole(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Next<'_>> {
        let mut scanner = Scanner::new(text.as_bytes());
        let mut found = Vec::new();
        loop {
            let next = scanner.next();
            found.push(next);
            if next == Next::End {
                return found;
            }
        }
    }

    #[test]
    fn times_keep_every_digit() {
        assert_eq!(nanos(b"1694128201428006"), Some(1_694_128_201_428_006_000));
        assert_eq!(
            nanos(b"1694128201428006.125"),
            Some(1_694_128_201_428_006_125)
        );
        assert_eq!(nanos(b"-0.5"), Some(-500));
        assert_eq!(nanos(b"1.00049"), Some(1000));
        assert_eq!(nanos(b"1.5e3"), Some(1_500_000));
        for bad in [
            "NaN",
            "Infinity",
            "1e300",
            "9223372036854775808",
            "",
            "-",
            "1.2.3",
            "x",
        ] {
            assert_eq!(nanos(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn commas_and_ends_may_be_missing() {
        let whole = all(r#"[{"a": 1}, {"b": "x\"y"}]"#);
        assert_eq!(all(r#"[{"a" 1} {"b" "x\"y"}]"#), whole);
        let cut = all(r#"[{"a": 1}, {"b": "x"#);
        assert_eq!(cut[..5], whole[..5]);
        assert_eq!(cut.last(), Some(&Next::End));
    }

    #[test]
    fn nesting_is_counted_and_not_followed() {
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        let mut scanner = Scanner::new(deep.as_bytes());
        assert_eq!(scanner.next(), Next::Value(Value::Array));
        assert!(scanner.leave());
        assert_eq!(scanner.at(), deep.len());
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(unescaped(br"a\u00e9\n\\"), "a\u{e9}\n\\");
        assert_eq!(unescaped(br"\u12"), r"\u12");
    }
}

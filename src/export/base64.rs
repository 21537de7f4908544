//! Base64 (RFC 4648), to put the font into an SVG and a class kit into a line.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` in base64, padded.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= chunk.len() {
                let digit = bits >> (18 - 6 * place) & 63;
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// The bytes of `text`, padded or not; nothing if it has other letters.
pub(super) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for letter in chunk {
            let digit = DIGITS.iter().position(|own| own == letter)?;
            bits = bits << 6 | digit as u32;
        }
        bits <<= 6 * (4 - chunk.len());
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[1..chunk.len().max(1)]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{base64, unbase64};

    #[test]
    fn the_rfcs_examples() {
        for (text, code) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), code);
            assert_eq!(unbase64(code).as_deref(), Some(text.as_bytes()));
            assert_eq!(
                unbase64(code.trim_end_matches('=')).as_deref(),
                Some(text.as_bytes())
            );
        }
    }
}

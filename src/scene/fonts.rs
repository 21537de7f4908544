//! The one font of the program, in two weights, and how wide a text in it is.
//!
//! Subsets of Inter with tabular figures; `assets/fonts/subset.py` makes them. Pictures and window use nothing
//! else, so that they look the same everywhere.

use serde::{Deserialize, Serialize};

use super::advances::{ADVANCES, UNITS_PER_EM};

/// Inter, regular, as an OpenType file.
pub const REGULAR: &[u8] = include_bytes!("../../assets/fonts/Inter-Regular.otf");
/// Inter, semi-bold, as an OpenType file.
pub const SEMI_BOLD: &[u8] = include_bytes!("../../assets/fonts/Inter-SemiBold.otf");
/// What the font is called in pictures.
pub const FAMILY: &str = "Inter";

/// How far above its baseline a capital reaches, in ems; to centre text by eye.
pub const CAP_HEIGHT: f32 = 0.727;

/// How heavy a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Weight {
    /// For reading.
    Regular,
    /// For names and figures.
    SemiBold,
}

/// How wide `text` is at `size`; kerning, a per cent or two, is left out.
pub fn width(text: &str, size: f32, weight: Weight) -> f32 {
    let units: u64 = text
        .chars()
        .map(|character| u64::from(advance(character, weight)))
        .sum();
    units as f32 / UNITS_PER_EM * size
}

fn advance(character: char, weight: Weight) -> u16 {
    let code = u32::from(character);
    let found = ADVANCES.binary_search_by_key(&code, |&(code, ..)| code);
    // What the font lacks is drawn as a box as wide as an `M`.
    let (_, regular, semi_bold) = found.map_or((0, 2500, 2500), |index| ADVANCES[index]);
    match weight {
        Weight::Regular => regular,
        Weight::SemiBold => semi_bold,
    }
}

/// `text`, or as much of it as fits into `room`, with an ellipsis.
pub fn shortened(text: &str, size: f32, weight: Weight, room: f32) -> String {
    if width(text, size, weight) <= room {
        return text.to_owned();
    }
    let mut left = room - width("…", size, weight);
    let kept: String = text
        .chars()
        .take_while(|&character| {
            left -= f32::from(advance(character, weight)) / UNITS_PER_EM * size;
            left >= 0.0
        })
        .collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_tabular() {
        let one = width("111", 10.0, Weight::Regular);
        assert_eq!(one, width("808", 10.0, Weight::Regular));
        assert!((one - 19.4).abs() < 0.1, "{one}");
    }

    #[test]
    fn a_long_text_is_cut_to_its_room() {
        let cut = shortened("replica 0 · stage 3", 10.0, Weight::Regular, 50.0);
        assert!(cut.ends_with('…'));
        assert!(width(&cut, 10.0, Weight::Regular) <= 50.0);
    }
}

//! A colour, its contrast to another, and mixtures.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Red, green, blue and opacity in sRGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Colour {
    /// Red.
    pub r: u8,
    /// Green.
    pub g: u8,
    /// Blue.
    pub b: u8,
    /// Opacity: 255 hides what is below.
    pub a: u8,
}

/// Light of each component, as sRGB defines it; asked for each block that has a name.
static LINEAR: LazyLock<[f32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|component| {
        let value = component as f32 / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    })
});

impl Colour {
    /// Nothing to see.
    pub const CLEAR: Self = Self {
        r: 0,
        g: 0,
        b: 0,
        a: 0,
    };

    /// From `0xRRGGBB`, opaque.
    pub const fn hex(rgb: u32) -> Self {
        Self {
            r: (rgb >> 16) as u8,
            g: (rgb >> 8) as u8,
            b: rgb as u8,
            a: 255,
        }
    }

    /// The same colour with opacity `share` of what it has.
    pub fn faded(self, share: f32) -> Self {
        Self {
            a: (f32::from(self.a) * share).round() as u8,
            ..self
        }
    }

    /// This colour with `share` of `other` mixed in, component by component.
    pub fn mixed(self, other: Self, share: f32) -> Self {
        let mix = |own: u8, other: u8| {
            let (own, other) = (f32::from(own), f32::from(other));
            (own + (other - own) * share).round() as u8
        };
        Self {
            r: mix(self.r, other.r),
            g: mix(self.g, other.g),
            b: mix(self.b, other.b),
            a: mix(self.a, other.a),
        }
    }

    /// The opaque colour that this one makes when it lies over `below`.
    pub fn over(self, below: Self) -> Self {
        let opaque = Self { a: 255, ..self };
        below.mixed(opaque, f32::from(self.a) / 255.0)
    }

    /// Relative luminance, from 0 (black) to 1 (white), as WCAG 2 defines it.
    pub fn luminance(self) -> f32 {
        let linear = |component: u8| LINEAR[component as usize];
        0.2126 * linear(self.r) + 0.7152 * linear(self.g) + 0.0722 * linear(self.b)
    }

    /// Contrast ratio to `other`, from 1 to 21, as WCAG 2 defines it.
    pub fn contrast(self, other: Self) -> f32 {
        let (own, other) = (self.luminance(), other.luminance());
        (own.max(other) + 0.05) / (own.min(other) + 0.05)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_on_white_has_the_full_contrast() {
        let (black, white) = (Colour::hex(0x0000_0000), Colour::hex(0x00ff_ffff));
        assert!((black.contrast(white) - 21.0).abs() < 0.01);
        assert_eq!(white.faded(0.5).over(black), Colour::hex(0x0080_8080));
    }
}

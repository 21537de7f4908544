//! Design tokens: every colour, size and distance of the program, per theme.
//!
//! Passes and communication have the colours of Okabe and Ito's palette, which the colour-blind tell apart;
//! where one of them is too pale for a white page it is darkened. Tests hold text to a contrast of 4.5 and
//! shapes to 3 against what they lie on.

use serde::{Deserialize, Serialize};

use super::colour::Colour;
use crate::units::Pass;

/// Dark for screens, light for paper and bright rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// Light shapes on a dark ground.
    #[default]
    Dark,
    /// Dark shapes on a white ground.
    Light,
    /// Pale fills under black letters on white, told apart in print without colour too.
    Paper,
}

impl Theme {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dark, Self::Light, Self::Paper];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Paper => "paper",
        }
    }

    /// The theme's colours.
    pub fn palette(self) -> &'static Palette {
        match self {
            Self::Dark => &DARK,
            Self::Light => &LIGHT,
            Self::Paper => &PAPER,
        }
    }
}

/// A theme's colours.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    /// Behind everything.
    pub background: Colour,
    /// Behind a group of controls or a figure.
    pub panel: Colour,
    /// A control, or something raised from a panel.
    pub raised: Colour,
    /// The bed of a row in which nothing happens.
    pub track: Colour,
    /// Lines of a grid, borders of panels: felt rather than seen.
    pub grid: Colour,
    /// A line between groups.
    pub divider: Colour,
    /// Text to be read first.
    pub text: Colour,
    /// Text to be read second.
    pub text_weak: Colour,
    /// Text on a dark block.
    pub on_dark: Colour,
    /// Text on a light block.
    pub on_light: Colour,
    /// What can be acted on.
    pub accent: Colour,
    /// What went wrong.
    pub error: Colour,
    /// What went right.
    pub success: Colour,
    /// The outline of what is selected or pointed at.
    pub selected: Colour,
    /// The chain of operations that others wait for.
    pub critical: Colour,
    /// The playhead.
    pub playhead: Colour,
    /// `F`.
    pub forward: Colour,
    /// `B`.
    pub backward: Colour,
    /// `I`.
    pub input_grad: Colour,
    /// `W`.
    pub weight_grad: Colour,
    /// The optimizer's step.
    pub optimizer: Colour,
    /// Sends between stages.
    pub send: Colour,
    /// Data-parallel all-reduces.
    pub all_reduce: Colour,
    /// Tensor-parallel all-reduces.
    pub all_reduce_tp: Colour,
    /// The stripes of waiting.
    pub waiting: Colour,
    /// What is under them.
    pub waiting_bed: Colour,
    /// The stripes of the bubble.
    pub bubble: Colour,
    /// What is under them.
    pub bubble_bed: Colour,
    /// What memory holds.
    pub memory: MemoryPalette,
}

/// The colours of what memory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPalette {
    /// Parameters.
    pub parameters: Colour,
    /// Gradients.
    pub gradients: Colour,
    /// The optimizer's state.
    pub optimizer: Colour,
    /// Activations.
    pub activations: Colour,
    /// The line of what the device has.
    pub capacity: Colour,
}

const DARK: Palette = Palette {
    background: Colour::hex(0x0014_181d),
    panel: Colour::hex(0x001c_2128),
    raised: Colour::hex(0x0029_303a),
    track: Colour::hex(0x001a_1f26),
    grid: Colour::hex(0x0029_2f38),
    divider: Colour::hex(0x003e_4753),
    text: Colour::hex(0x00f2_f5f8),
    text_weak: Colour::hex(0x00ac_b6c3),
    on_dark: Colour::hex(0x00ff_ffff),
    on_light: Colour::hex(0x000b_0e12),
    accent: Colour::hex(0x0056_b4e9),
    error: Colour::hex(0x00ff_7a59),
    success: Colour::hex(0x003d_cca0),
    selected: Colour::hex(0x00ff_ffff),
    critical: Colour::hex(0x00ff_5c8a),
    playhead: Colour::hex(0x00ff_ffff),
    forward: Colour::hex(0x0056_b4e9),
    backward: Colour::hex(0x0000_9e73),
    input_grad: Colour::hex(0x007f_e0be),
    weight_grad: Colour::hex(0x00e6_9f00),
    optimizer: Colour::hex(0x00a3_b1c4),
    send: Colour::hex(0x00cc_79a7),
    all_reduce: Colour::hex(0x00d5_5e00),
    all_reduce_tp: Colour::hex(0x00ff_9a5c),
    waiting: Colour::hex(0x00f0_e442),
    waiting_bed: Colour::hex(0x002b_2b1c),
    bubble: Colour::hex(0x0079_8492),
    bubble_bed: Colour::hex(0x0025_2b33),
    memory: MemoryPalette {
        parameters: Colour::hex(0x006b_7788),
        gradients: Colour::hex(0x0083_8fa0),
        optimizer: Colour::hex(0x009d_a8b8),
        activations: Colour::hex(0x00c9_d6ea),
        capacity: Colour::hex(0x00ff_7a59),
    },
};

const LIGHT: Palette = Palette {
    background: Colour::hex(0x00ff_ffff),
    panel: Colour::hex(0x00f3_f5f8),
    raised: Colour::hex(0x00e4_e9ef),
    track: Colour::hex(0x00f4_f6f9),
    grid: Colour::hex(0x00de_e3e9),
    divider: Colour::hex(0x00b4_bdc8),
    text: Colour::hex(0x0014_181d),
    text_weak: Colour::hex(0x004f_5b69),
    on_dark: Colour::hex(0x00ff_ffff),
    on_light: Colour::hex(0x000b_0e12),
    accent: Colour::hex(0x0000_66a1),
    error: Colour::hex(0x00b3_3a00),
    success: Colour::hex(0x0000_7353),
    selected: Colour::hex(0x0000_0000),
    critical: Colour::hex(0x00c2_1556),
    playhead: Colour::hex(0x0014_181d),
    forward: Colour::hex(0x0000_72b2),
    backward: Colour::hex(0x0000_9e73),
    input_grad: Colour::hex(0x0000_5c45),
    weight_grad: Colour::hex(0x00c2_7f00),
    optimizer: Colour::hex(0x005f_6c7d),
    send: Colour::hex(0x00c0_6697),
    all_reduce: Colour::hex(0x00d5_5e00),
    all_reduce_tp: Colour::hex(0x008f_3a00),
    waiting: Colour::hex(0x008c_8000),
    waiting_bed: Colour::hex(0x00fd_f9c9),
    bubble: Colour::hex(0x0087_919d),
    bubble_bed: Colour::hex(0x00ec_eff3),
    memory: MemoryPalette {
        parameters: Colour::hex(0x008a_95a3),
        gradients: Colour::hex(0x0075_8191),
        optimizer: Colour::hex(0x0062_6f80),
        activations: Colour::hex(0x003d_4b60),
        capacity: Colour::hex(0x00b3_3a00),
    },
};

const PAPER: Palette = Palette {
    forward: Colour::hex(0x00c9_dcf0),
    backward: Colour::hex(0x006f_a287),
    input_grad: Colour::hex(0x009c_cbb0),
    weight_grad: Colour::hex(0x00f0_c36d),
    optimizer: Colour::hex(0x00a8_afb7),
    send: Colour::hex(0x00b0_7aa1),
    all_reduce: Colour::hex(0x00c8_5a3c),
    all_reduce_tp: Colour::hex(0x00a0_4a2c),
    track: Colour::hex(0x00fa_fafa),
    bubble: Colour::hex(0x0088_8888),
    bubble_bed: Colour::hex(0x00ff_ffff),
    waiting_bed: Colour::hex(0x00ff_fdf0),
    text: Colour::hex(0x0000_0000),
    text_weak: Colour::hex(0x0040_4040),
    ..LIGHT
};

impl Palette {
    /// The colour of a pass.
    pub fn pass(&self, pass: Pass) -> Colour {
        match pass {
            Pass::Forward => self.forward,
            Pass::Backward => self.backward,
            Pass::InputGrad => self.input_grad,
            Pass::WeightGrad => self.weight_grad,
        }
    }

    /// The colour of a pass on a rank's `chunk`th stage: each further chunk stands out more from the ground.
    pub fn pass_of_chunk(&self, pass: Pass, chunk: usize) -> Colour {
        let towards = if self.background.luminance() < 0.5 {
            self.on_dark
        } else {
            self.on_light
        };
        let share = 0.32 * chunk.min(2) as f32;
        self.pass(pass).mixed(towards, share)
    }

    /// The text colour that reads best on `block`.
    pub fn text_on(&self, block: Colour) -> Colour {
        if block.contrast(self.on_dark) >= block.contrast(self.on_light) {
            self.on_dark
        } else {
            self.on_light
        }
    }

    /// The colour of a text that is put back while something else is lit: it still reads.
    pub fn text_if_lit(&self, lit: bool) -> Colour {
        if lit { self.text } else { self.text_weak }
    }

    /// `colour`, put back while something else is lit.
    pub fn dimmed(&self, colour: Colour) -> Colour {
        colour.mixed(self.background, 0.72)
    }
}

/// Text sizes and distances, all from one: that of body text, in points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Body text.
    pub body: f32,
    /// Nothing is smaller than this but letters on small blocks.
    pub least: f32,
}

impl Sizes {
    /// For a window on a desk.
    pub const DESK: Self = Self {
        body: 14.0,
        least: 11.0,
    };

    /// For the back of a classroom: small print is a fiftieth of the screen's `height`, and other text somewhat larger.
    pub fn presenter(height: f32) -> Self {
        Self {
            body: (height / 47.0).max(Self::DESK.body),
            least: height / 50.0,
        }
    }

    /// A title.
    pub fn title(self) -> f32 {
        self.body * 1.7
    }

    /// A figure to be read from afar.
    pub fn figure(self) -> f32 {
        self.body * 1.75
    }

    /// Small print.
    pub fn small(self) -> f32 {
        (self.body * 0.86).max(self.least)
    }

    /// The distance between things that belong together.
    pub fn gap(self) -> f32 {
        self.body * 0.5
    }

    /// The distance between things that do not.
    pub fn space(self) -> f32 {
        self.body * 1.25
    }

    /// Corners of blocks.
    pub fn radius(self) -> f32 {
        self.body * 0.18
    }

    /// Corners of panels.
    pub fn panel_radius(self) -> f32 {
        self.body * 0.55
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::DESK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(palette: &Palette) -> Vec<(&'static str, Colour)> {
        let memory = &palette.memory;
        vec![
            ("forward", palette.forward),
            ("backward", palette.backward),
            ("input-gradient", palette.input_grad),
            ("weight-gradient", palette.weight_grad),
            ("optimizer", palette.optimizer),
            ("send", palette.send),
            ("all-reduce", palette.all_reduce),
            ("TP all-reduce", palette.all_reduce_tp),
            ("waiting", palette.waiting),
            ("bubble", palette.bubble),
            ("parameters", memory.parameters),
            ("gradients", memory.gradients),
            ("optimizer state", memory.optimizer),
            ("activations", memory.activations),
            ("capacity", memory.capacity),
            ("selected", palette.selected),
            ("playhead", palette.playhead),
        ]
    }

    #[test]
    fn shapes_stand_out_from_the_background() {
        for theme in [Theme::Dark, Theme::Light] {
            let palette = theme.palette();
            for (name, colour) in shapes(palette) {
                let contrast = colour.contrast(palette.background);
                assert!(contrast >= 3.0, "{theme:?} {name}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn text_reads_on_all_it_lies_on() {
        for theme in [Theme::Dark, Theme::Light] {
            let palette = theme.palette();
            let texts = [
                palette.text,
                palette.text_weak,
                palette.accent,
                palette.error,
                palette.success,
            ];
            for (index, text) in texts.into_iter().enumerate() {
                for ground in [palette.background, palette.panel, palette.track] {
                    let contrast = text.contrast(ground);
                    assert!(contrast >= 4.5, "{theme:?} text {index}: {contrast:.2}");
                }
            }
        }
    }

    #[test]
    fn letters_read_on_every_block() {
        for theme in Theme::ALL {
            let palette = theme.palette();
            let passes = [
                Pass::Forward,
                Pass::Backward,
                Pass::InputGrad,
                Pass::WeightGrad,
            ];
            let chunks = passes
                .iter()
                .flat_map(|&pass| (0..3).map(move |chunk| palette.pass_of_chunk(pass, chunk)));
            for block in chunks.chain([palette.optimizer, palette.send, palette.all_reduce]) {
                let contrast = palette.text_on(block).contrast(block);
                assert!(contrast >= 4.5, "{theme:?} {block:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn on_paper_passes_are_told_apart_without_colour() {
        let palette = Theme::Paper.palette();
        let mut greys = [
            palette.forward,
            palette.backward,
            palette.input_grad,
            palette.weight_grad,
            palette.optimizer,
        ]
        .map(Colour::luminance);
        greys.sort_by(f32::total_cmp);
        for pair in greys.windows(2) {
            let contrast = (pair[1] + 0.05) / (pair[0] + 0.05);
            assert!(contrast >= 1.09, "{greys:?}");
        }
    }

    #[test]
    fn hatching_shows_on_its_own_bed() {
        for theme in [Theme::Dark, Theme::Light] {
            let palette = theme.palette();
            let pairs = [
                (palette.bubble, palette.bubble_bed),
                (palette.waiting, palette.waiting_bed),
            ];
            for (stripes, bed) in pairs {
                let contrast = stripes.contrast(bed);
                assert!(contrast >= 2.5, "{theme:?}: {contrast:.2}");
            }
        }
    }
}

//! A trace and a viewport turned into shapes, with no widget in it.
//!
//! The window paints a [`Scene`] and the exporters write it, so that a picture is the same wherever it is made.
//! Nothing here draws, reads a file or holds a clock. [`Overview`] reads a trace once; [`Timeline`] is made anew for
//! every frame and reads only what is visible; [`Picture`] adds title, stamp, legend and figures.

mod advances;
mod arrows;
mod axis;
mod blocks;
mod canvas;
mod cards;
mod colour;
mod comparison;
mod density;
mod folded;
pub mod fonts;
mod legend;
mod lineup;
mod look;
mod memory;
mod names;
pub mod narration;
mod overview;
mod picture;
mod place;
mod rows;
mod runs;
#[cfg(test)]
pub(crate) mod sample;
mod scale;
mod shape;
pub mod split;
#[cfg(test)]
mod tests;
mod timeline;
pub mod tokens;
mod traffic;

pub use blocks::kernel as kernel_name;
pub use cards::Card;
pub use colour::Colour;
pub use comparison::{Comparison, Part, Stack};
pub use legend::Legend;
pub use lineup::{Arrangement, Fold, Lineup, Order};
pub use look::{Arrows, Common, Hit, Lit, Look, Viewport};
pub use names::name as row_name;
pub use overview::{Holds, Overview, row_order};
pub use picture::{Picture, Playhead, Stamp};
pub use rows::{Band, Rows, Track};
pub use scale::Scale;
pub use shape::{Anchor, Hatch, Point, Quad, Rect, Scene, Shape, Size, Stroke, Text};
pub use timeline::Timeline;

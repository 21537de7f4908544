//! A whole picture for a slide or a page: title, stamp, timeline, legend, figures.

use serde::{Deserialize, Serialize};

use crate::trace::Trace;
use crate::units::{Bytes, Nanos};

use super::canvas::{Canvas, Type};
use super::cards::{self, Card};
use super::fonts::shortened;
use super::legend::Legend;
use super::look::{Arrows, Look, Viewport};
use super::overview::{Holds, Overview};
use super::shape::{Anchor, Point, Rect, Scene, Size};
use super::timeline::Timeline;
use super::tokens::{Palette, Sizes, Theme};

/// A picture is made higher for many ranks, up to this many times its height.
const TALLEST: f32 = 6.0;
/// So that each row has at least this height, in body-text sizes.
const COMFORT: f32 = 1.6;

/// The least and the largest side of a picture.
const SMALLEST: f32 = 480.0;
const LARGEST: f32 = 8192.0;

/// What a picture says about where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamp {
    /// Degrees, schedule, micro-batches: `DP 2 × TP 1 × PP 4 · 1F1B · 8 micro-batches of 4`.
    pub layout: String,
    /// The model: `nano, 1.6 M parameters`.
    pub model: String,
    /// The hardware: `classroom GPU`.
    pub hardware: String,
    /// `simulated`, `emulated, simulated times`, `measured`: how the times came about.
    pub engine: String,
    /// Which bubble the figures show: `idle / pipeline time`.
    pub bubble: String,
    /// The program's version.
    pub version: String,
}

impl Stamp {
    /// In one line.
    pub fn line(&self) -> String {
        let bubble = match self.bubble.as_str() {
            "" => String::new(),
            definition => format!("bubble = {definition}"),
        };
        let version = match self.version.as_str() {
            "" => String::new(),
            version => format!("Shardscope {version}"),
        };
        let parts = [
            &self.layout,
            &self.model,
            &self.hardware,
            &self.engine,
            &bubble,
            &version,
        ];
        let said: Vec<&str> = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(String::as_str)
            .collect();
        said.join("  ·  ")
    }
}

/// A picture's contents, the trace apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Picture {
    /// The title.
    pub title: String,
    /// Where it comes from.
    pub stamp: Stamp,
    /// Figures under the timeline.
    pub cards: Vec<Card>,
    /// Colours.
    pub theme: Theme,
    /// How large it is, in points; higher if there are many ranks.
    pub size: Size,
    /// The time shown, or all of it.
    pub range: Option<(Nanos, Nanos)>,
    /// Whether arrows join sends and receives.
    pub arrows: bool,
    /// What memory a device has.
    pub capacity: Option<Bytes>,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            title: String::new(),
            stamp: Stamp::default(),
            cards: Vec::new(),
            theme: Theme::Light,
            size: Size::new(1280.0, 720.0),
            range: None,
            arrows: false,
            capacity: None,
        }
    }
}

impl Picture {
    /// The picture of `trace`.
    pub fn scene(&self, trace: &Trace) -> Scene {
        let overview = Overview::new(trace);
        let Page {
            size,
            sizes,
            margin,
            width,
            head,
        } = Page::new(self.size);
        let palette = self.theme.palette();
        let legend = Legend::new(overview.holds, self.theme, sizes, width);
        let foot = self.foot(&legend, sizes) + margin;
        let besides = head + foot + sizes.body * 2.0;
        let height = comfortable(size, overview.lineup.len(), sizes, besides);
        let room = Size::new(width, height - head - foot);
        let look = self.look(sizes);
        let timeline = Timeline::new(trace, &overview, self.view(trace, room), &look);

        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, size.width, height));
        let at = Point::new(margin, margin);
        draw_head(
            (&self.title, &self.stamp),
            (at, width),
            (palette, sizes),
            &mut canvas,
        );
        let legend_top = height - foot + sizes.body * 0.8;
        let note_at = Point::new(margin + width, legend_top - sizes.body * 0.1);
        timeline.draw_note(note_at, &mut canvas);
        let cards_top = legend_top + legend.height() + sizes.body * 0.8;
        let place = (Point::new(margin, cards_top), width);
        cards::draw(&self.cards, place, (palette, sizes), &mut canvas);
        let mut scene = Scene {
            size: Size::new(size.width, height),
            background: palette.background,
            shapes: canvas.into_shapes(),
        };
        // Rows that are too low for memory need no entry for it.
        let shown = Holds {
            memory: timeline.rows().memory.is_some(),
            ..overview.holds
        };
        let legend = Legend::new(shown, self.theme, sizes, width);
        scene.place(timeline.scene(), Point::new(margin, head));
        scene.place(legend.into_scene(), Point::new(margin, legend_top));
        scene
    }

    fn look(&self, sizes: Sizes) -> Look {
        Look {
            theme: self.theme,
            sizes,
            arrows: if self.arrows {
                Arrows::Shown
            } else {
                Arrows::Hidden
            },
            capacity: self.capacity,
            ..Look::default()
        }
    }

    fn view(&self, trace: &Trace, room: Size) -> Viewport {
        let whole = Viewport::whole(trace, room);
        let (from, to) = self.range.unwrap_or((whole.from, whole.to));
        Viewport { from, to, ..whole }
    }

    /// How high what lies under the timeline is.
    fn foot(&self, legend: &Legend, sizes: Sizes) -> f32 {
        let cards = if self.cards.is_empty() {
            0.0
        } else {
            cards::height(sizes) + sizes.body * 0.8
        };
        sizes.body * 0.8 + legend.height() + cards
    }
}

/// A page: how large it is and its texts, and where its contents start.
pub(super) struct Page {
    pub(super) size: Size,
    pub(super) sizes: Sizes,
    pub(super) margin: f32,
    /// Between the margins.
    pub(super) width: f32,
    /// The margin, the title and the stamp.
    pub(super) head: f32,
}

impl Page {
    /// A page of about `size`.
    pub(super) fn new(size: Size) -> Self {
        let size = sensible(size);
        let sizes = Sizes {
            body: (size.width / 80.0).min(size.height / 45.0),
        };
        let margin = sizes.body * 2.0;
        Self {
            size,
            sizes,
            margin,
            width: size.width - 2.0 * margin,
            head: margin + sizes.body * 4.6,
        }
    }
}

/// Title and stamp.
pub(super) fn draw_head(
    (title, stamp): (&str, &Stamp),
    (at, width): (Point, f32),
    (palette, sizes): (&Palette, Sizes),
    canvas: &mut Canvas,
) {
    let strong = Type::semi_bold(sizes.title(), palette.text);
    let weak = Type::regular(sizes.body, palette.text_weak);
    let lines = [(0.75, strong, title.to_owned()), (2.75, weak, stamp.line())];
    for (down, mut style, text) in lines {
        // A long stamp is set smaller before it is cut.
        let wide = style.width(&text);
        style.size *= (width / wide.max(1.0)).clamp(0.72, 1.0);
        let text = shortened(&text, style.size, style.weight, width);
        let middle = Point::new(at.x, at.y + down * sizes.body);
        canvas.text_at_middle(middle, Anchor::Start, style, text);
    }
}

/// High enough for the rows, within reason.
pub(super) fn comfortable(size: Size, rows: usize, sizes: Sizes, besides: f32) -> f32 {
    let wanted = besides + rows as f32 * sizes.body * COMFORT;
    wanted.clamp(size.height, size.height * TALLEST)
}

/// A size that can be drawn, whatever a file says.
fn sensible(size: Size) -> Size {
    let held = |length: f32, usual: f32| {
        if length.is_finite() {
            length.clamp(SMALLEST, LARGEST)
        } else {
            usual
        }
    };
    let usual = Picture::default().size;
    Size::new(
        held(size.width, usual.width),
        held(size.height, usual.height),
    )
}

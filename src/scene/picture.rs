//! A whole picture for a slide or a page: title, stamp, timeline, legend, figures.

use serde::{Deserialize, Serialize};

use crate::trace::Trace;
use crate::units::{Bytes, Nanos};

use super::canvas::{Canvas, Type};
use super::cards::{self, Card};
use super::colour::Colour;
use super::fonts::shortened;
use super::legend::Legend;
use super::look::{Arrows, Look, Viewport};
use super::overview::{Holds, Overview};
use super::scale::Scale;
use super::shape::{Anchor, Point, Quad, Rect, Scene, Size, Stroke};
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
        self.scene_until(trace, &Overview::new(trace), None)
    }

    /// The picture of `trace`, of which `overview` is the overview, with nothing in it that is later than `until`.
    pub fn scene_until(&self, trace: &Trace, overview: &Overview, until: Option<Nanos>) -> Scene {
        let frame = Frame::new(self, overview);
        let Page {
            size,
            sizes,
            margin,
            width,
            head,
        } = frame.page;
        let palette = self.theme.palette();
        let look = Look {
            until,
            ..self.look(sizes)
        };
        let timeline = Timeline::new(trace, overview, self.view(trace, frame.room), &look);

        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, size.width, frame.height));
        let at = Point::new(margin, margin);
        draw_head(
            (&self.title, &self.stamp),
            (at, width),
            (palette, sizes),
            &mut canvas,
        );
        let legend_top = frame.legend_top;
        let note_at = Point::new(margin + width, legend_top - sizes.body * 0.1);
        timeline.draw_note(note_at, &mut canvas);
        let cards_top = legend_top + frame.legend_height + sizes.body * 0.8;
        let place = (Point::new(margin, cards_top), width);
        cards::draw(&self.cards, place, (palette, sizes), &mut canvas);
        let mut scene = Scene {
            size: Size::new(size.width, frame.height),
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

    /// Where a playhead goes in the picture of `trace`, of which `overview` is the overview.
    pub fn playhead<'a>(&self, trace: &'a Trace, overview: &'a Overview) -> Playhead<'a> {
        let frame = Frame::new(self, overview);
        let look = self.look(frame.page.sizes);
        let view = self.view(trace, frame.room);
        let timeline = Timeline::new(trace, overview, view, &look);
        Playhead {
            trace,
            theme: self.theme,
            sizes: frame.page.sizes,
            origin: Point::new(frame.page.margin, frame.page.head),
            scale: *timeline.scale(),
            plot: timeline.plot(),
            bottom: timeline.plot().y + timeline.rows().height().min(timeline.plot().height),
        }
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

/// How a picture is laid out.
struct Frame {
    page: Page,
    height: f32,
    /// For the timeline.
    room: Size,
    legend_top: f32,
    legend_height: f32,
}

impl Frame {
    fn new(picture: &Picture, overview: &Overview) -> Self {
        let page = Page::new(picture.size);
        let sizes = page.sizes;
        let legend = Legend::new(overview.holds, picture.theme, sizes, page.width);
        let foot = picture.foot(&legend, sizes) + page.margin;
        let besides = page.head + foot + sizes.body * 2.0;
        let height = comfortable(page.size, overview.lineup.len(), sizes, besides);
        Self {
            room: Size::new(page.width, height - page.head - foot),
            legend_top: height - foot + sizes.body * 0.8,
            legend_height: legend.height(),
            height,
            page,
        }
    }
}

/// A playhead in a picture, which moves while all else stays.
#[derive(Clone, Debug)]
pub struct Playhead<'a> {
    trace: &'a Trace,
    theme: Theme,
    sizes: Sizes,
    /// Where the timeline is in the picture.
    origin: Point,
    scale: Scale,
    plot: Rect,
    bottom: f32,
}

impl Playhead<'_> {
    /// From when to when it goes.
    pub fn times(&self) -> (Nanos, Nanos) {
        (self.scale.from, self.scale.to.min(self.trace.makespan))
    }

    /// Where it is along the picture at a time.
    pub fn x(&self, time: Nanos) -> f32 {
        self.origin.x + self.scale.x(time)
    }

    /// Its place in the picture at a time, and what it looks like there.
    pub fn at(&self, time: Nanos) -> (Rect, Scene) {
        let palette = self.theme.palette();
        let style = Type::semi_bold(self.sizes.small(), palette.background);
        let text = time.to_string();
        // As wide for all times, so that it does not shimmer.
        let width = style.width("000.0 ms").max(style.width(&text)) + self.sizes.body * 0.8;
        let high = self.sizes.body * 1.35;
        let x = self.scale.x(time);
        let left =
            (x - width / 2.0).clamp(self.plot.x, (self.plot.right() - width).max(self.plot.x));
        let top = self.plot.y - self.sizes.body - high / 2.0;
        let height = self.bottom - top;
        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, width, height));
        let line = Stroke::solid(1.6, palette.playhead);
        let along = (x - left).clamp(0.8, width - 0.8);
        canvas.line(Point::new(along, high), Point::new(along, height), line);
        let pill = Rect::new(0.0, 0.0, width, high);
        canvas.quad(Quad::new(pill, palette.playhead).rounded(high / 2.0));
        canvas.text_at_middle(pill.centre(), Anchor::Middle, style, text);
        let scene = Scene {
            size: Size::new(width, height),
            background: Colour::CLEAR,
            shapes: canvas.into_shapes(),
        };
        let place = Rect::new(self.origin.x + left, self.origin.y + top, width, height);
        (place, scene)
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
            least: 0.0,
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

//! What a scene is made of: a few plain shapes that any painter can draw.

use super::colour::Colour;
use super::fonts::Weight;

/// A place, in points from the top left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f32,
    /// Down.
    pub y: f32,
}

impl Point {
    /// The point at `x`, `y`.
    pub const fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }
}

/// Width and height.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    /// Width.
    pub width: f32,
    /// Height.
    pub height: f32,
}

impl Size {
    /// A size of `width` by `height`.
    pub const fn new(width: f32, height: f32) -> Self {
        Self { width, height }
    }
}

/// A rectangle with sides along the axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f32,
    /// Top edge.
    pub y: f32,
    /// Width.
    pub width: f32,
    /// Height.
    pub height: f32,
}

impl Rect {
    /// From its top left and its size.
    pub const fn new(x: f32, y: f32, width: f32, height: f32) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// Right edge.
    pub fn right(&self) -> f32 {
        self.x + self.width
    }

    /// Bottom edge.
    pub fn bottom(&self) -> f32 {
        self.y + self.height
    }

    /// Its middle.
    pub fn centre(&self) -> Point {
        Point::new(self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// Whether a point lies in it.
    pub fn contains(&self, at: Point) -> bool {
        (self.x..self.right()).contains(&at.x) && (self.y..self.bottom()).contains(&at.y)
    }

    /// What it shares with `other`, if anything.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let width = self.right().min(other.right()) - x;
        let height = self.bottom().min(other.bottom()) - y;
        (width > 0.0 && height > 0.0).then(|| Self::new(x, y, width, height))
    }

    /// Whether `other` lies in it, to half a point.
    pub fn encloses(&self, other: &Self) -> bool {
        other.x >= self.x - 0.5
            && other.y >= self.y - 0.5
            && other.right() <= self.right() + 0.5
            && other.bottom() <= self.bottom() + 0.5
    }

    /// Larger by `by` on each side; smaller if negative.
    pub fn grown(&self, by: f32) -> Self {
        Self::new(
            self.x - by,
            self.y - by,
            self.width + 2.0 * by,
            self.height + 2.0 * by,
        )
    }
}

/// Stripes over a quad, continuous from one quad to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hatch {
    /// Rising to the right, wide apart: the bubble.
    Bubble(Colour),
    /// Falling to the right, close: waiting.
    Waiting(Colour),
}

impl Hatch {
    /// The stripes' colour.
    pub fn colour(self) -> Colour {
        match self {
            Self::Bubble(colour) | Self::Waiting(colour) => colour,
        }
    }

    /// The stripes' distance from each other, measured along `x`, in points.
    pub fn spacing(self) -> f32 {
        match self {
            Self::Bubble(_) => 9.0,
            Self::Waiting(_) => 6.0,
        }
    }

    /// The stripes' thickness, in points.
    pub fn thickness(self) -> f32 {
        match self {
            Self::Bubble(_) => 1.4,
            Self::Waiting(_) => 1.8,
        }
    }

    /// Whether stripes rise to the right (`/`) or fall (`\`); all are at 45°.
    pub fn rises(self) -> bool {
        matches!(self, Self::Bubble(_))
    }
}

/// A line's look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// How thick.
    pub width: f32,
    /// In what colour.
    pub colour: Colour,
    /// Lengths of dash and gap, or a whole line.
    pub dash: Option<f32>,
}

impl Stroke {
    /// A whole line.
    pub const fn solid(width: f32, colour: Colour) -> Self {
        Self {
            width,
            colour,
            dash: None,
        }
    }
}

/// A filled rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quad {
    /// Where.
    pub rect: Rect,
    /// Its fill.
    pub fill: Colour,
    /// Stripes over the fill.
    pub hatch: Option<Hatch>,
    /// Its outline, centred on its edge.
    pub stroke: Option<Stroke>,
    /// Of its corners.
    pub radius: f32,
}

impl Quad {
    /// Plain, with square corners.
    pub const fn new(rect: Rect, fill: Colour) -> Self {
        Self {
            rect,
            fill,
            hatch: None,
            stroke: None,
            radius: 0.0,
        }
    }

    /// With rounded corners.
    pub const fn rounded(mut self, radius: f32) -> Self {
        self.radius = radius;
        self
    }

    /// With stripes.
    pub const fn hatched(mut self, hatch: Hatch) -> Self {
        self.hatch = Some(hatch);
        self
    }

    /// With an outline.
    pub const fn outlined(mut self, stroke: Stroke) -> Self {
        self.stroke = Some(stroke);
        self
    }
}

/// Where a text lies from its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// To the right of it.
    Start,
    /// Around it.
    Middle,
    /// To the left of it.
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where its baseline is.
    pub at: Point,
    /// Which way it extends from there.
    pub anchor: Anchor,
    /// Its size: an em, in points.
    pub size: f32,
    /// How heavy it is.
    pub weight: Weight,
    /// Its colour.
    pub colour: Colour,
    /// What it says.
    pub words: String,
}

impl Text {
    /// The place it takes, from the top of its capitals to the foot of its descenders.
    pub fn bounds(&self) -> Rect {
        let width = super::fonts::width(&self.words, self.size, self.weight);
        let left = match self.anchor {
            Anchor::Start => self.at.x,
            Anchor::Middle => self.at.x - width / 2.0,
            Anchor::End => self.at.x - width,
        };
        let rise = super::fonts::CAP_HEIGHT * self.size;
        Rect::new(left, self.at.y - rise, width, rise + 0.22 * self.size)
    }
}

/// Something to paint.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A rectangle.
    Quad(Quad),
    /// A line of text.
    Text(Text),
    /// A line through points.
    Line {
        /// Two points or more.
        points: Vec<Point>,
        /// Its look.
        stroke: Stroke,
    },
    /// A filled convex polygon.
    Polygon {
        /// Its corners.
        points: Vec<Point>,
        /// Its fill.
        fill: Colour,
    },
    /// Cells of equal width side by side, over all of a rectangle.
    Cells {
        /// Where.
        rect: Rect,
        /// Their colours, from the left.
        colours: Vec<Colour>,
    },
    /// The area between a step curve and a level: from each point's `x` on it reaches to its `y`.
    Steps {
        /// Where the curve changes, from the left.
        points: Vec<Point>,
        /// Where it ends.
        end: f32,
        /// The level from which it is filled.
        base: f32,
        /// Its fill.
        fill: Colour,
    },
}

/// Shapes, from the bottom up.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// How large the whole is.
    pub size: Size,
    /// What lies behind the shapes.
    pub background: Colour,
    /// The shapes.
    pub shapes: Vec<Shape>,
}

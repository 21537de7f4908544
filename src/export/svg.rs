//! A scene as SVG: shapes as shapes, text as text, stripes as patterns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::scene::{Anchor, Colour, Hatch, Point, Quad, Rect, Scene, Shape, Stroke, Text, fonts};

use super::base64::base64;

/// Whether the picture carries its font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fonts {
    /// Yes: it looks the same in any browser.
    Embedded,
    /// No: who reads it has the font.
    Named,
}

/// `scene` as SVG.
pub fn svg(scene: &Scene, fonts: Fonts) -> String {
    let mut writer = Writer::default();
    for shape in &scene.shapes {
        writer.shape(shape);
    }
    let size = scene.size;
    let (width, height) = (Number(size.width), Number(size.height));
    let style = match fonts {
        Fonts::Embedded => font_faces(),
        Fonts::Named => String::new(),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{}, sans-serif\">\n<defs>{style}{}</defs>\n\
         <rect width=\"{width}\" height=\"{height}\"{}/>\n{}</svg>\n",
        fonts::FAMILY,
        writer.patterns(),
        fill(scene.background),
        writer.body,
    )
}

fn font_faces() -> String {
    let faces = [(400, fonts::REGULAR), (600, fonts::SEMI_BOLD)].map(|(weight, file)| {
        format!(
            "@font-face{{font-family:{};font-weight:{weight};src:url(data:font/otf;base64,{})}}",
            fonts::FAMILY,
            base64(file)
        )
    });
    format!("<style>{}</style>", faces.concat())
}

/// A length with at most two decimals.
struct Number(f32);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.2}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

fn paint(attribute: &str, colour: Colour) -> String {
    let Colour { r, g, b, a } = colour;
    let opacity = match a {
        255 => String::new(),
        _ => format!(" {attribute}-opacity=\"{}\"", Number(f32::from(a) / 255.0)),
    };
    format!(" {attribute}=\"#{r:02x}{g:02x}{b:02x}\"{opacity}")
}

fn fill(colour: Colour) -> String {
    paint("fill", colour)
}

fn outline(stroke: Stroke) -> String {
    let dash = stroke.dash.map_or_else(String::new, |dash| {
        format!(" stroke-dasharray=\"{}\"", Number(dash))
    });
    let width = Number(stroke.width);
    format!(
        "{} stroke-width=\"{width}\"{dash}",
        paint("stroke", stroke.colour)
    )
}

/// Text as it may stand in an element; what XML cannot hold becomes a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

#[derive(Default)]
struct Writer {
    body: String,
    /// Patterns in use, by their name.
    hatches: BTreeMap<String, Hatch>,
}

impl Writer {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        writeln!(self.body, "{text}").unwrap_or_default();
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Quad(quad) => self.quad(quad),
            Shape::Text(text) => self.text(text),
            Shape::Line { points, stroke } => {
                let points = list(points);
                let stroke = outline(*stroke);
                self.line(format_args!(
                    "<polyline points=\"{points}\" fill=\"none\"{stroke}/>"
                ));
            }
            Shape::Polygon {
                points,
                fill: colour,
            } => {
                let points = list(points);
                self.line(format_args!(
                    "<polygon points=\"{points}\"{}/>",
                    fill(*colour)
                ));
            }
            Shape::Cells { rect, colours } => self.cells(*rect, colours),
            Shape::Steps {
                points,
                end,
                base,
                fill: colour,
            } => self.steps(points, (*end, *base), *colour),
        }
    }

    /// Cells of one colour side by side as one rectangle; a hair wider, lest the ground shows between them.
    fn cells(&mut self, rect: Rect, colours: &[Colour]) {
        let each = rect.width / colours.len().max(1) as f32;
        let mut left = rect.x;
        for run in colours.chunk_by(|one, next| one == next) {
            let width = each * run.len() as f32;
            let piece = Rect::new(
                left,
                rect.y,
                (width + 0.2).min(rect.right() - left),
                rect.height,
            );
            self.quad(&Quad::new(piece, run[0]));
            left += width;
        }
    }

    fn quad(&mut self, quad: &Quad) {
        let rect = quad.rect;
        let (x, y) = (Number(rect.x), Number(rect.y));
        let (width, height) = (Number(rect.width), Number(rect.height));
        let radius = match quad.radius {
            radius if radius > 0.0 => format!(" rx=\"{}\"", Number(radius)),
            _ => String::new(),
        };
        let place =
            format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{radius}");
        let colour = match quad.fill.a {
            0 => " fill=\"none\"".to_owned(),
            _ => fill(quad.fill),
        };
        let stroke = quad.stroke.map_or_else(String::new, outline);
        self.line(format_args!("{place}{colour}{stroke}/>"));
        if let Some(hatch) = quad.hatch {
            let name = hatch_name(hatch);
            self.line(format_args!("{place} fill=\"url(#{name})\"/>"));
            self.hatches.insert(name, hatch);
        }
    }

    fn text(&mut self, text: &Text) {
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = match text.weight {
            fonts::Weight::Regular => "",
            fonts::Weight::SemiBold => " font-weight=\"600\"",
        };
        let (x, y, size) = (Number(text.at.x), Number(text.at.y), Number(text.size));
        let (colour, words) = (fill(text.colour), escaped(&text.words));
        self.line(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{weight}{anchor}{colour}>{words}</text>"
        ));
    }

    fn steps(&mut self, points: &[Point], (end, base): (f32, f32), colour: Colour) {
        let Some(first) = points.first() else { return };
        let mut path = format!("M{} {}", Number(first.x), Number(base));
        for point in points {
            write!(path, "H{}V{}", Number(point.x), Number(point.y)).unwrap_or_default();
        }
        write!(path, "H{}V{}Z", Number(end), Number(base)).unwrap_or_default();
        self.line(format_args!("<path d=\"{path}\"{}/>", fill(colour)));
    }

    fn patterns(&self) -> String {
        let patterns = self
            .hatches
            .iter()
            .map(|(name, hatch)| pattern(name, *hatch));
        patterns.collect::<Vec<_>>().concat()
    }
}

fn list(points: &[Point]) -> String {
    let points = points
        .iter()
        .map(|at| format!("{},{}", Number(at.x), Number(at.y)));
    points.collect::<Vec<_>>().join(" ")
}

fn hatch_name(hatch: Hatch) -> String {
    let Colour { r, g, b, a } = hatch.colour();
    let kind = match hatch {
        Hatch::Bubble(_) => "bubble",
        Hatch::Waiting(_) => "waiting",
    };
    format!("{kind}-{r:02x}{g:02x}{b:02x}{a:02x}")
}

/// A tile of stripes; those at its corners are cut by the tile's edges and continued by its neighbours.
fn pattern(name: &str, hatch: Hatch) -> String {
    let side = hatch.spacing();
    let s = Number(side);
    let (out, over) = (Number(-side), Number(2.0 * side));
    let path = if hatch.rises() {
        format!("M{out} {s}L{s} {out}M{out} {over}L{over} {out}M0 {over}L{over} 0")
    } else {
        format!("M0 {out}L{over} {s}M{out} {out}L{over} {over}M{out} 0L{s} {over}")
    };
    let stroke = outline(Stroke::solid(hatch.thickness(), hatch.colour()));
    format!(
        "<pattern id=\"{name}\" width=\"{s}\" height=\"{s}\" patternUnits=\"userSpaceOnUse\">\
         <path d=\"{path}\" fill=\"none\"{stroke}/></pattern>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_a_name() {
        assert_eq!(escaped("<b>&\u{1}"), "&lt;b&gt;&amp;?");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(Number(12.0).to_string(), "12");
        assert_eq!(Number(-0.001).to_string(), "0");
        assert_eq!(Number(100.5).to_string(), "100.5");
    }
}

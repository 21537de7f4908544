//! Several timelines on one time axis, one above the other: what they share, and the picture of them.

use crate::trace::Trace;
use crate::units::{Bytes, Nanos};

use super::axis;
use super::canvas::{Canvas, Type};
use super::fonts::shortened;
use super::legend::Legend;
use super::look::{Common, Look, Viewport};
use super::names;
use super::overview::{Holds, Overview};
use super::picture::{Page, Stamp, comfortable, draw_head};
use super::rows::Rows;
use super::shape::{Anchor, Point, Rect, Scene, Size, Stroke};
use super::timeline::Timeline;
use super::tokens::{Palette, Sizes, Theme};

/// Timelines on one time axis: what they share, and the height of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The time at the right edge of all of them.
    pub to: Nanos,
    /// What they have in common.
    pub common: Common,
    /// How high each is, its axis included: their rows are as high as one another's.
    pub heights: Vec<f32>,
}

impl Stack {
    /// `parts` in room of `height`.
    pub fn new(parts: &[(&Trace, &Overview)], sizes: Sizes, height: f32) -> Self {
        let all: f32 = parts
            .iter()
            .map(|(_, overview)| Rows::pitches(overview))
            .sum();
        let axes = axis::height(sizes) * parts.len() as f32;
        let pitch = (height - axes).max(0.0) / all.max(1.0);
        let heights: Vec<f32> = parts
            .iter()
            .map(|(_, overview)| axis::height(sizes) + pitch * Rows::pitches(overview))
            .collect();
        let ends = parts.iter().map(|(trace, _)| Viewport::end_of(trace));
        let mut common = Common::default();
        for ((trace, overview), height) in parts.iter().zip(&heights) {
            let rows = Rows::new(overview, sizes, height - axis::height(sizes));
            let names = names::column(trace, overview, (&rows, sizes));
            common.names = common.names.max(names);
            common.memory = common.memory.max(overview.peak_memory);
        }
        Self {
            to: ends.max().unwrap_or_default(),
            common,
            heights,
        }
    }
}

/// A timeline among others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What it is of, or how it differs from the first.
    pub name: String,
    /// Its figures, beside those of the first.
    pub figures: String,
    /// What memory a device has.
    pub capacity: Option<Bytes>,
}

/// A picture of several timelines on one time axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The title.
    pub title: String,
    /// Where they come from: what they have in common.
    pub stamp: Stamp,
    /// Colours.
    pub theme: Theme,
    /// How large it is, in points; higher if there are many ranks.
    pub size: Size,
    /// The timelines, the one that others are compared with first.
    pub parts: Vec<Part>,
}

/// How high the line over each timeline is, in body-text sizes.
const HEADING: f32 = 2.0;

impl Comparison {
    /// The picture of `traces`, one for each part.
    pub fn scene(&self, traces: &[&Trace]) -> Scene {
        let overviews: Vec<Overview> = traces.iter().map(|trace| Overview::new(trace)).collect();
        let known: Vec<(&Trace, &Overview)> = traces.iter().copied().zip(&overviews).collect();
        let Page {
            size,
            sizes,
            margin,
            width,
            head,
        } = Page::new(self.size);
        let palette = self.theme.palette();
        let holds = overviews.iter().map(|overview| overview.holds);
        let holds = holds.fold(Holds::default(), Holds::or);
        let legend = Legend::new(holds, self.theme, sizes, width);
        let foot = sizes.body * 0.8 + legend.height() + margin;
        let headings = HEADING * sizes.body * known.len() as f32;
        let axes = axis::height(sizes) * known.len() as f32;
        let rows = overviews.iter().map(|overview| overview.lineup.len()).sum();
        let height = comfortable(size, rows, sizes, head + foot + headings + axes);
        let stack = Stack::new(&known, sizes, height - head - foot - headings);

        let mut canvas = Canvas::new(Rect::new(0.0, 0.0, size.width, height));
        let at = Point::new(margin, margin);
        draw_head(
            (&self.title, &self.stamp),
            (at, width),
            (palette, sizes),
            &mut canvas,
        );
        let mut scene = Scene {
            size: Size::new(size.width, height),
            background: palette.background,
            shapes: Vec::new(),
        };
        let (mut top, mut with_memory) = (head, false);
        for ((part, &(trace, overview)), &high) in self.parts.iter().zip(&known).zip(&stack.heights)
        {
            let at = Point::new(margin, top + sizes.body);
            draw_heading(part, (at, width), (palette, sizes), &mut canvas);
            top += HEADING * sizes.body;
            let look = Look {
                theme: self.theme,
                sizes,
                capacity: part.capacity,
                common: stack.common,
                ..Look::default()
            };
            let view = Viewport {
                to: stack.to,
                ..Viewport::whole(trace, Size::new(width, high))
            };
            let timeline = Timeline::new(trace, overview, view, &look);
            with_memory |= timeline.rows().memory.is_some();
            let place = Point::new(margin, top);
            draw_end(&timeline, place, &mut canvas);
            let note_at = Point::new(margin + width, top - sizes.body * 0.6);
            timeline.draw_note(note_at, &mut canvas);
            scene.place(timeline.scene(), place);
            top += high;
        }
        // Over the timelines: their ends.
        scene.shapes.extend(canvas.into_shapes());
        // Rows that are too low for memory need no entry for it.
        let shown = Holds {
            memory: with_memory,
            ..holds
        };
        let legend = Legend::new(shown, self.theme, sizes, width);
        scene.place(
            legend.into_scene(),
            Point::new(margin, height - foot + sizes.body * 0.8),
        );
        scene
    }
}

/// What a timeline is of, and its figures.
fn draw_heading(
    part: &Part,
    (at, width): (Point, f32),
    (palette, sizes): (&Palette, Sizes),
    canvas: &mut Canvas,
) {
    let name = Type::semi_bold(sizes.body, palette.text);
    let figures = Type::regular(sizes.body, palette.text_weak);
    let gap = sizes.body * 1.5;
    let said = shortened(&part.name, name.size, name.weight, width * 0.6);
    let after = name.width(&said) + gap;
    canvas.text_at_middle(at, Anchor::Start, name, said);
    let room = (width - after).max(0.0);
    let text = shortened(&part.figures, figures.size, figures.weight, room);
    canvas.text_at_middle(Point::new(at.x + after, at.y), Anchor::Start, figures, text);
}

/// A line where a timeline ends.
fn draw_end(timeline: &Timeline<'_>, at: Point, canvas: &mut Canvas) {
    let x = at.x + timeline.scale().x(timeline.trace.makespan);
    let plot = timeline.plot();
    let bottom = plot.y + timeline.rows().height().min(plot.height);
    let stroke = Stroke::solid(1.6, timeline.look.theme.palette().accent);
    let top = Point::new(x, at.y + plot.y - timeline.look.sizes.gap() * 0.6);
    canvas.line(top, Point::new(x, at.y + bottom), stroke);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::sample::Sample;

    #[test]
    fn timelines_share_an_axis_a_scale_of_memory_and_the_height_of_rows() {
        let sample = |dp, pp, micro_batches| Sample {
            dp,
            tp: 1,
            pp,
            micro_batches,
        };
        let traces = [sample(1, 2, 4).trace(), sample(2, 8, 16).trace()];
        let overviews = traces.each_ref().map(Overview::new);
        let parts: Vec<(&Trace, &Overview)> = traces.iter().zip(&overviews).collect();
        let stack = Stack::new(&parts, Sizes::DESK, 700.0);
        assert!((stack.heights.iter().sum::<f32>() - 700.0).abs() < 0.1);
        let look = Look {
            common: stack.common,
            ..Look::default()
        };
        let laid: Vec<Timeline<'_>> = parts
            .iter()
            .zip(&stack.heights)
            .map(|(&(trace, overview), &height)| {
                let view = Viewport {
                    to: stack.to,
                    ..Viewport::whole(trace, Size::new(900.0, height))
                };
                Timeline::new(trace, overview, view, &look)
            })
            .collect();
        let x = |timeline: &Timeline<'_>| timeline.scale().x(Nanos(1_000_000));
        assert_eq!(x(&laid[0]), x(&laid[1]));
        assert!((laid[0].rows().pitch - laid[1].rows().pitch).abs() < 0.1);
        assert!(stack.to > traces[0].makespan && stack.to > traces[1].makespan);
        assert_eq!(
            stack.common.memory,
            overviews[0].peak_memory.max(overviews[1].peak_memory)
        );
    }
}

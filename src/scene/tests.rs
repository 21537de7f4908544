//! Scenes as text, and what the window relies on: hits, cuts, zoom.

use crate::trace::{Stream, Trace};
use crate::units::Nanos;

use super::sample::Sample;
use super::tokens::{Sizes, Theme};
use super::{
    Arrows, Card, Colour, Hatch, Holds, Legend, Look, Overview, Picture, Point, Quad, Scene, Shape,
    Size, Timeline, Viewport,
};

const TWO: Sample = Sample {
    dp: 1,
    tp: 1,
    pp: 2,
    micro_batches: 2,
};

/// A shape a line, in whole points.
fn text(scene: &Scene) -> String {
    let lines = scene.shapes.iter().map(|shape| match shape {
        Shape::Quad(quad) => quad_text(quad),
        Shape::Cells { rect, colours } => {
            let place = at(Point::new(rect.x, rect.y));
            format!("{} cells at {place}", colours.len())
        }
        Shape::Text(text) => format!(
            "text {} {:?} {:.0} {:?}",
            at(text.at),
            text.anchor,
            text.size,
            text.words
        ),
        Shape::Line { points, stroke } => {
            let points: Vec<String> = points.iter().copied().map(at).collect();
            format!("line {} {}", points.join(" "), hex(stroke.colour))
        }
        Shape::Polygon { points, fill } => format!("polygon {} {}", at(points[0]), hex(*fill)),
        Shape::Steps {
            points,
            end,
            base,
            fill,
        } => {
            let points: Vec<String> = points.iter().copied().map(at).collect();
            format!(
                "steps {} to {end:.0} on {base:.0} {}",
                points.join(" "),
                hex(*fill)
            )
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn quad_text(quad: &Quad) -> String {
    let rect = quad.rect;
    let hatch = match quad.hatch {
        None => "",
        Some(Hatch::Bubble(_)) => " bubble",
        Some(Hatch::Waiting(_)) => " waiting",
    };
    let stroke = quad.stroke.map_or_else(String::new, |stroke| {
        format!(" outlined {}", hex(stroke.colour))
    });
    let place = at(Point::new(rect.x, rect.y));
    format!(
        "quad {place} {:.0}x{:.0} {}{hatch}{stroke}",
        rect.width,
        rect.height,
        hex(quad.fill)
    )
}

fn at(point: Point) -> String {
    format!("{:.0},{:.0}", point.x, point.y)
}

fn hex(colour: Colour) -> String {
    format!(
        "#{:02x}{:02x}{:02x}{:02x}",
        colour.r, colour.g, colour.b, colour.a
    )
}

fn scene_of(trace: &Trace, size: Size, look: &Look) -> Scene {
    let overview = Overview::new(trace);
    Timeline::new(trace, &overview, Viewport::whole(trace, size), look).scene()
}

fn words(scene: &Scene) -> Vec<&str> {
    let mut words = Vec::new();
    for shape in &scene.shapes {
        if let Shape::Text(text) = shape {
            words.push(text.words.as_str());
        }
    }
    words
}

#[test]
fn two_stages() {
    let scene = scene_of(&TWO.trace(), Size::new(640.0, 180.0), &Look::default());
    insta::assert_snapshot!(text(&scene));
}

#[test]
fn tensor_parallel_within_a_pass_with_arrows() {
    let sample = Sample {
        tp: 2,
        micro_batches: 1,
        ..TWO
    };
    let look = Look {
        arrows: Arrows::Shown,
        theme: Theme::Light,
        ..Look::default()
    };
    insta::assert_snapshot!(text(&scene_of(
        &sample.trace(),
        Size::new(640.0, 320.0),
        &look
    )));
}

#[test]
fn a_picture_with_cards() {
    let picture = Picture {
        title: "Two stages".to_owned(),
        cards: vec![Card {
            label: "Bubble".to_owned(),
            value: "33.3 %".to_owned(),
            note: "of total".to_owned(),
        }],
        ..Picture::default()
    };
    insta::assert_snapshot!(text(&picture.scene(&TWO.trace())));
}

#[test]
fn an_empty_trace_is_an_empty_picture_not_a_panic() {
    let scene = Picture::default().scene(&Trace::default());
    assert!(
        scene
            .shapes
            .iter()
            .all(|shape| !matches!(shape, Shape::Steps { .. }))
    );
}

#[test]
fn names_stay_within_their_blocks() {
    let trace = Sample {
        pp: 4,
        micro_batches: 12,
        ..TWO
    }
    .trace();
    let scene = scene_of(&trace, Size::new(700.0, 300.0), &Look::default());
    let mut last: Option<&Quad> = None;
    for shape in &scene.shapes {
        if let Shape::Quad(quad) = shape {
            last = Some(quad);
        }
        if let Shape::Text(label) = shape
            && label.words.starts_with(['F', 'B'])
        {
            let (block, bounds) = (last.unwrap().rect, label.bounds());
            assert!(block.encloses(&bounds), "{} in {block:?}", label.words);
        }
    }
}

#[test]
fn nothing_later_than_until_is_drawn() {
    let trace = TWO.trace();
    let overview = Overview::new(&trace);
    let now = Nanos(trace.makespan.0 / 2);
    let look = Look {
        until: Some(now),
        ..Look::default()
    };
    let view = Viewport::whole(&trace, Size::new(640.0, 180.0));
    let timeline = Timeline::new(&trace, &overview, view, &look);
    let (edge, bed) = (timeline.scale().x(now), Theme::Dark.palette().track);
    let scene = timeline.scene();
    for shape in &scene.shapes {
        if let Shape::Quad(quad) = shape {
            let late = quad.rect.right() > edge + 3.0 && quad.fill != bed;
            assert!(!late, "{quad:?} reaches over {edge}");
        }
    }
    assert!(!words(&scene).contains(&"optimizer"));
    assert!(timeline.hit(edge + 40.0, 60.0).is_none());
}

#[test]
fn what_is_drawn_is_hit_where_it_is_drawn() {
    let trace = Sample {
        dp: 2,
        pp: 4,
        micro_batches: 8,
        ..TWO
    }
    .trace();
    let overview = Overview::new(&trace);
    let look = Look::default();
    let view = Viewport::whole(&trace, Size::new(1200.0, 500.0));
    let timeline = Timeline::new(&trace, &overview, view, &look);
    for rank_index in 0..trace.ranks.len() {
        for span in trace.lane(rank_index, Stream::Passes).spans() {
            let hit = super::Hit {
                rank_index,
                stream: Stream::Passes,
                span: *span,
            };
            let rect = timeline.rect_of(&hit).unwrap();
            let centre = rect.centre();
            assert_eq!(timeline.hit(centre.x, centre.y), Some(hit));
            assert_eq!(timeline.rank_at(centre.y), Some(rank_index));
        }
        for span in trace.lane(rank_index, Stream::SendNext).spans() {
            let hit = super::Hit {
                rank_index,
                stream: Stream::SendNext,
                span: *span,
            };
            let centre = timeline.rect_of(&hit).unwrap().centre();
            assert_eq!(timeline.hit(centre.x, centre.y), Some(hit));
        }
    }
    assert_eq!(timeline.hit(5.0, 100.0), None);
}

#[test]
fn a_gap_is_hit_where_no_pass_is() {
    let trace = TWO.trace();
    let overview = Overview::new(&trace);
    let look = Look::default();
    let view = Viewport::whole(&trace, Size::new(640.0, 180.0));
    let timeline = Timeline::new(&trace, &overview, view, &look);
    let second = timeline.rect_of(&super::Hit {
        rank_index: 1,
        stream: Stream::Compute,
        span: trace.lane(1, Stream::Compute).spans()[0],
    });
    let centre = second.unwrap().centre();
    let hit = timeline.hit(centre.x, centre.y).unwrap();
    assert_eq!((hit.stream, hit.span.start), (Stream::Compute, Nanos::ZERO));
}

#[test]
fn zoom_keeps_what_is_under_the_pointer() {
    let trace = TWO.trace();
    let overview = Overview::new(&trace);
    let look = Look::default();
    let view = Viewport::whole(&trace, Size::new(640.0, 180.0));
    let timeline = Timeline::new(&trace, &overview, view, &look);
    let under = timeline.scale().time(300.0);
    let closer = Timeline::new(&trace, &overview, timeline.zoomed(300.0, 8.0), &look);
    assert!((closer.scale().x(under) - 300.0).abs() < 0.5);
    let moved = Timeline::new(&trace, &overview, closer.panned(50.0), &look);
    assert!((moved.scale().x(under) - 250.0).abs() < 0.5);
    let start = timeline.panned(-1000.0);
    assert_eq!(start.from, Nanos::ZERO);
}

#[test]
fn a_single_micro_batch_can_be_lit() {
    let trace = TWO.trace();
    let mut look = Look::default();
    look.lit.micro_batches.insert(1);
    let palette = Theme::Dark.palette();
    let scene = scene_of(&trace, Size::new(640.0, 180.0), &look);
    let count = |colour: Colour| {
        let quads = scene.shapes.iter();
        quads
            .filter(|shape| matches!(shape, Shape::Quad(quad) if quad.fill == colour))
            .count()
    };
    assert_eq!(count(palette.forward), 2);
    assert_eq!(count(palette.dimmed(palette.forward)), 2);
}

#[test]
fn ten_thousand_ranks_cost_what_is_visible() {
    let trace = Sample {
        dp: 1000,
        tp: 1,
        pp: 4,
        micro_batches: 4,
    }
    .trace();
    let scene = scene_of(&trace, Size::new(1200.0, 600.0), &Look::default());
    assert!(scene.shapes.len() < 6000, "{}", scene.shapes.len());
}

#[test]
fn a_legend_has_what_there_is_and_breaks_lines() {
    let holds = Holds {
        sends: true,
        idle: true,
        ..Holds::default()
    };
    let wide = Legend::new(holds, Theme::Dark, Sizes::DESK, 600.0);
    let narrow = Legend::new(holds, Theme::Dark, Sizes::DESK, 90.0);
    assert!(narrow.height() > wide.height());
    assert_eq!(words(&wide.into_scene()), ["send", "bubble"]);
}

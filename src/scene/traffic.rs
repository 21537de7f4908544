//! The communication of a row: sends, tensor- and data-parallel collectives, each on its track; transfer solid,
//! waiting hatched.

use crate::trace::{Phase, Span, Stream};

use super::blocks::mean;
use super::canvas::{Canvas, Type};
use super::colour::Colour;
use super::density;
use super::rows::{Band, Rows, Track};
use super::runs::{Run, runs};
use super::shape::{Anchor, Hatch, Quad, Rect};
use super::timeline::{Row, Timeline};

/// With more spans a point than this, transfers are drawn as shares of time.
const CROWDED: f32 = 2.0;
/// Even the shortest transfer is as wide as this, in points.
pub(super) const LEAST_WIDTH: f32 = 2.5;

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    for &(track, _) in &timeline.rows.tracks {
        for &stream in track.streams() {
            let Some(band) = band_of(&timeline.rows, stream) else {
                continue;
            };
            let band = band.moved(row.top);
            let lane = timeline.trace.lane(row.rank_index, stream);
            let crowded = density::seen(lane, &timeline.scale).len() as f32
                > CROWDED * (timeline.scale.right() - timeline.scale.left());
            if crowded && let Some(cells) = timeline.cells(row.rank_index, stream) {
                let moving = colour_of(timeline, stream);
                timeline.draw_cells(row.rank_index, (band, moving), &cells, canvas);
                continue;
            }
            for run in runs(lane, &timeline.scale, timeline.until()) {
                draw_run(timeline, row, (stream, band), run, canvas);
            }
        }
    }
}

/// The band of a communication lane. The two sends share a track; where they overlap, one is above the other.
pub(super) fn band_of(rows: &Rows, stream: Stream) -> Option<Band> {
    let holds = |track: &Track| track.streams().contains(&stream);
    let (track, band) = rows.tracks.iter().find(|(track, _)| holds(track))?;
    let (count, index) = if rows.sends_apart && *track == Track::Sends {
        (2.0, f32::from(stream == Stream::SendPrev))
    } else {
        (1.0, 0.0)
    };
    // A hairline between tracks keeps them apart.
    let height = (band.height - 1.0).max(0.5) / count;
    Some(Band {
        top: band.top + 1.0 + index * height,
        height,
    })
}

fn draw_run(
    timeline: &Timeline<'_>,
    row: Row,
    (stream, band): (Stream, Band),
    run: Run<'_>,
    canvas: &mut Canvas,
) {
    let palette = timeline.palette();
    let (from, to) = run.times();
    let mut rect = timeline.rect(band, from, to);
    rect.width = rect.width.max(LEAST_WIDTH);
    let lit = |span: &Span| {
        let rank = timeline.trace.ranks[row.rank_index].rank;
        timeline
            .look
            .lit
            .holds(rank, timeline.trace.label(span.label))
    };
    let shade = |span: &Span, colour: Colour| {
        if lit(span) {
            colour
        } else {
            palette.dimmed(colour)
        }
    };
    let waits = run.samples().all(|span| span.phase == Phase::Waiting);
    if waits {
        let Some(first) = run.samples().next() else {
            return;
        };
        let hatch = Hatch::Waiting(shade(first, palette.waiting));
        canvas.quad(Quad::new(rect, shade(first, palette.waiting_bed)).hatched(hatch));
        return;
    }
    let moving = run.samples().filter(|span| span.phase != Phase::Waiting);
    let colour =
        mean(moving.map(|span| (shade(span, colour_of(timeline, stream)), span.duration())));
    let radius = (band.height / 3.0).min(rect.width / 3.0).min(2.0);
    canvas.quad(Quad::new(rect, colour).rounded(radius));
    if let Run::One(span) = run {
        draw_name(timeline, rect, stream, (span, colour), canvas);
    }
}

pub(super) fn colour_of(timeline: &Timeline<'_>, stream: Stream) -> Colour {
    let palette = timeline.palette();
    match stream {
        Stream::Tp => palette.all_reduce_tp,
        Stream::Dp => palette.all_reduce,
        Stream::Passes | Stream::Compute | Stream::SendNext | Stream::SendPrev => palette.send,
    }
}

/// `TP` or `DP`, or all of the name, where there is room.
fn draw_name(
    timeline: &Timeline<'_>,
    rect: Rect,
    stream: Stream,
    (span, colour): (&Span, Colour),
    canvas: &mut Canvas,
) {
    let short = match stream {
        Stream::Tp => "TP",
        Stream::Dp => "DP",
        Stream::Passes | Stream::Compute | Stream::SendNext | Stream::SendPrev => return,
    };
    let size = rect.height * 0.95;
    if size < timeline.look.sizes.body * 0.45 {
        return;
    }
    let style = Type::semi_bold(size, timeline.palette().text_on(colour));
    let long = format!("{short} {}", timeline.trace.label(span.label).name);
    let room = rect.width - size * 0.6;
    let fitting = [long.as_str(), short]
        .into_iter()
        .find(|name| style.width(name) <= room);
    if let Some(name) = fitting {
        canvas.text_at_middle(rect.centre(), Anchor::Middle, style, name);
    }
}

//! The blocks of a row: passes with their letter and micro-batch, and what fills the time between them.

use crate::trace::{Kind, Label, LabelId, Phase, Span, Stream};
use crate::units::{Nanos, Rank};

use super::canvas::{Canvas, Type};
use super::colour::Colour;
use super::density::{self, Cell};
use super::overview::is_communication;
use super::runs::{Run, runs};
use super::shape::{Anchor, Hatch, Point, Quad, Rect, Stroke};
use super::timeline::{Row, Timeline};

/// A block's name is so high for a block's height, and at least so high for body text.
pub(super) const NAME: f32 = 0.68;
pub(super) const SMALLEST_NAME: f32 = 0.5;
/// How wide a narrow letter is at least, in ems.
const LETTER: f32 = 0.26;
/// In a crowd, blocks at least this wide are drawn by themselves.
const WIDE: f32 = 10.0;
/// Blocks at least this wide are set apart by a hairline.
const APART: f32 = 4.0;
/// Blocks lower or narrower than this, in body-text sizes, have square corners.
const LOW: f32 = 0.9;
/// What happens within a pass is shown from this width on.
const INNER: f32 = 1.5;
/// How much of its colour an exposed transfer is filled with.
pub(super) const TINT: f32 = 0.42;

/// A gap between passes, of neighbouring spans of one phase.
#[derive(Clone, Copy, Debug)]
struct Gap {
    phase: Phase,
    from: Nanos,
    to: Nanos,
}

pub(super) fn draw(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let band = timeline.rows.block.moved(row.top);
    let bed = Rect::new(
        timeline.scale.left(),
        band.top,
        timeline.scale.right() - timeline.scale.left(),
        band.height,
    );
    // Cells cover all of it, and are painted before everything else of the row.
    if let Some(cells) = timeline.cells(row.rank_index, Stream::Passes) {
        draw_dense(timeline, row, cells, canvas);
        return;
    }
    canvas.quad(Quad::new(bed, timeline.palette().track).rounded(timeline.look.sizes.radius()));
    let gaps = gaps(timeline, row);
    for gap in &gaps {
        draw_gap(timeline, row, *gap, canvas);
    }
    let lane = timeline.trace.lane(row.rank_index, Stream::Passes);
    for run in runs(lane, &timeline.scale, timeline.until()) {
        draw_pass(timeline, row, run, canvas);
    }
    draw_inner(timeline, row, canvas);
    draw_share(timeline, row, &gaps, canvas);
}

/// More passes than points: their shares of each point's time, with what fills the time between, and over them those that
/// are wide all the same.
fn draw_dense(timeline: &Timeline<'_>, row: Row, mut cells: Vec<Cell>, canvas: &mut Canvas) {
    let gaps = timeline.every_cell(row.rank_index, Stream::Compute);
    for (cell, gap) in cells.iter_mut().zip(gaps) {
        *cell = cell.with(gap);
    }
    let band = timeline.rows.block.moved(row.top);
    let moving = timeline.palette().all_reduce;
    timeline.draw_cells(row.rank_index, (band, moving), &cells, canvas);
    if !timeline.has_names() {
        return;
    }
    let mut left = density::seen(
        timeline.trace.lane(row.rank_index, Stream::Passes),
        &timeline.scale,
    );
    let points = timeline.scale.right() - timeline.scale.left();
    let each = points / cells.len().max(1) as f32;
    for run in full_runs(&cells, each) {
        let middle = timeline.scale.left() + (run.start + run.end) as f32 / 2.0 * each;
        let middle = timeline.scale.time(middle);
        // Runs come in order, and so do spans.
        let started = left.partition_point(|span| span.start <= middle);
        let (before, next) = left.split_at(started);
        left = next;
        let wide =
            |span: &&Span| span.end > middle && timeline.scale.width_of(span.duration()) >= WIDE;
        if let Some(span) = before.last().filter(wide) {
            draw_pass(timeline, row, Run::One(span), canvas);
        }
    }
}

/// Where cells side by side are full of one class, as they are under a wide span.
fn full_runs(cells: &[Cell], each: f32) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for run in cells.chunk_by(|one, next| one == next) {
        let end = start + run.len();
        let wide = run.len() as f32 * each >= WIDE * 0.75;
        if wide && run[0].shares().iter().any(|&share| share >= 254) {
            found.push(start..end);
        }
        start = end;
    }
    found
}

/// The visible gaps of the compute lane, neighbours of one phase joined.
fn gaps(timeline: &Timeline<'_>, row: Row) -> Vec<Gap> {
    let lane = timeline.trace.lane(row.rank_index, Stream::Compute);
    let mut gaps: Vec<Gap> = Vec::new();
    for run in runs(lane, &timeline.scale, timeline.until()) {
        let Some(first) = run.samples().find(|span| span.phase != Phase::Busy) else {
            continue;
        };
        let (from, to) = run.times();
        match gaps.last_mut() {
            Some(last) if last.phase == first.phase && last.to == from => last.to = to,
            _ => gaps.push(Gap {
                phase: first.phase,
                from,
                to,
            }),
        }
    }
    gaps
}

fn draw_gap(timeline: &Timeline<'_>, row: Row, gap: Gap, canvas: &mut Canvas) {
    let palette = timeline.palette();
    let lit = timeline
        .look
        .lit
        .gap(timeline.trace.ranks[row.rank_index].rank);
    let shade = |colour: Colour| if lit { colour } else { palette.dimmed(colour) };
    let rect = timeline.rect(timeline.rows.block.moved(row.top), gap.from, gap.to);
    let radius = radius(timeline, rect).min(rect.width / 2.0);
    let (quad, word) = match gap.phase {
        Phase::Busy => return,
        Phase::Idle => {
            let hatch = Hatch::Bubble(shade(palette.bubble));
            let quad = Quad::new(rect, shade(palette.bubble_bed)).hatched(hatch);
            (quad, None)
        }
        Phase::Waiting => {
            let hatch = Hatch::Waiting(shade(palette.waiting));
            let quad = Quad::new(rect, shade(palette.waiting_bed)).hatched(hatch);
            (quad, Some("waiting"))
        }
        Phase::Transfer => {
            let colour = shade(in_flight(timeline, row, gap));
            let edge = Stroke::solid(1.0, colour);
            let inside = rect.grown(-0.5_f32.min(rect.width / 4.0));
            let fill = colour.faded(TINT).over(palette.background);
            let quad = Quad::new(inside, fill).outlined(edge);
            (quad, Some("transfer"))
        }
    };
    canvas.quad(quad.rounded(radius));
    if let Some(word) = word {
        draw_pill(timeline, rect, word, canvas);
    }
}

/// The colour of what is in flight during a gap: the collective under it, or else a send.
fn in_flight(timeline: &Timeline<'_>, row: Row, gap: Gap) -> Colour {
    let middle = Nanos(u64::midpoint(gap.from.0, gap.to.0));
    let moving = |stream: Stream| {
        timeline
            .trace
            .lane(row.rank_index, stream)
            .at(middle)
            .is_some()
    };
    let palette = timeline.palette();
    if moving(Stream::Dp) {
        palette.all_reduce
    } else if moving(Stream::Tp) {
        palette.all_reduce_tp
    } else {
        palette.send
    }
}

fn draw_pass(timeline: &Timeline<'_>, row: Row, run: Run<'_>, canvas: &mut Canvas) {
    let (from, to) = run.times();
    let mut rect = timeline.rect(timeline.rows.block.moved(row.top), from, to);
    let Run::One(span) = run else {
        let colours = run.samples().map(|span| {
            let (colour, _) = pass_colour(timeline, row, span);
            (colour, span.duration())
        });
        rect.width = rect.width.max(1.0);
        canvas.quad(Quad::new(rect, mean(colours)));
        return;
    };
    let (colour, ink) = pass_colour(timeline, row, span);
    let visible = rect;
    if rect.width >= APART {
        rect.width -= 1.0;
    }
    let radius = radius(timeline, rect).min(rect.width / 4.0);
    if span.phase == Phase::Waiting {
        let palette = timeline.palette();
        let waits = Quad::new(rect, palette.waiting_bed).hatched(Hatch::Waiting(palette.waiting));
        canvas.quad(waits.rounded(radius));
        draw_pill(timeline, rect, "waiting", canvas);
        return;
    }
    canvas.quad(Quad::new(rect, colour).rounded(radius));
    let rank = timeline.trace.ranks[row.rank_index].rank;
    draw_label(timeline, rank, (visible, colour, ink), span.label, canvas);
}

/// How round corners are: not at all on low and on narrow blocks, where nobody sees it and which are many.
fn radius(timeline: &Timeline<'_>, rect: Rect) -> f32 {
    let sizes = timeline.look.sizes;
    if rect.height.min(rect.width) < sizes.body * LOW {
        0.0
    } else {
        sizes.radius()
    }
}

/// The colour of a block, and of what is written on it.
fn pass_colour(timeline: &Timeline<'_>, row: Row, span: &Span) -> (Colour, Colour) {
    let palette = timeline.palette();
    let label = timeline.trace.label(span.label);
    let lit = timeline.block_colour(span.label, || match (label.kind, label.pass) {
        (Kind::Kernel, _) => palette.forward,
        (kind, None) if is_communication(kind) => palette.all_reduce,
        (Kind::Optimizer, _) | (_, None) => palette.optimizer,
        (_, Some(pass)) => {
            // Ranks that hold a stage hold the same ones.
            let chunk = timeline.overview.chunk(row.rank_index, label.stage);
            palette.pass_of_chunk(pass, chunk)
        }
    });
    let rank = timeline.trace.ranks[row.rank_index].rank;
    if timeline.look.lit.holds(rank, label) {
        lit
    } else {
        let colour = palette.dimmed(lit.0);
        (colour, palette.text_on(colour))
    }
}

/// The longest of a block's names that fits into it.
fn draw_label(
    timeline: &Timeline<'_>,
    rank: Rank,
    (block, colour, ink): (Rect, Colour, Colour),
    label_id: LabelId,
    canvas: &mut Canvas,
) {
    let body = timeline.look.sizes.body;
    let size = (block.height * NAME).min(body * 1.12);
    // No name is narrower than a letter: most blocks of a crowd are.
    let letter = size.max(body * SMALLEST_NAME) * 0.74 * LETTER;
    if size < body * SMALLEST_NAME || block.width < letter {
        return;
    }
    // A smaller name is better than a shorter one.
    let known = timeline.block_names(label_id);
    let candidates = known
        .iter()
        .flat_map(|(name, width)| [1.0, 0.86, 0.74].map(|share| (share * size, name, *width)));
    let fitting = candidates
        .filter(|(size, ..)| *size >= body * SMALLEST_NAME)
        .find(|(size, _, width)| width * size <= block.width - 1.0 - size * 0.22);
    if let Some((size, name, width)) = fitting {
        let lit = timeline
            .look
            .lit
            .holds(rank, timeline.trace.label(label_id));
        let ink = if lit { ink } else { ink.mixed(colour, 0.35) };
        let style = Type::semi_bold(size, ink);
        let middle = Point::new(block.centre().x - 0.5, block.centre().y);
        canvas.text_within(middle, style, (name, width * size));
    }
}

/// What a block may be called, the longest first.
pub(super) fn names(label: &Label) -> Vec<String> {
    match (label.kind, label.pass) {
        (_, Some(pass)) => vec![label.short(), pass.letter().to_string()],
        (Kind::Optimizer, None) => ["optimizer", "opt", "O"].map(str::to_owned).to_vec(),
        (Kind::Kernel, None) => vec![label.short(), kernel(&label.name)],
        (_, None) => vec![label.short()],
    }
}

/// A kernel's own name, without what it returns, where it lives, its template's and its own arguments.
pub fn kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let end = name.find(['<', '(']).unwrap_or(name.len());
    let path = &name[..end];
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

/// Within passes wide enough: when they transfer or wait instead of computing.
fn draw_inner(timeline: &Timeline<'_>, row: Row, canvas: &mut Canvas) {
    let (rank_index, scale) = (row.rank_index, &timeline.scale);
    let passes = timeline.trace.lane(rank_index, Stream::Passes);
    let palette = timeline.palette();
    let band = timeline.rows.block.moved(row.top);
    for run in runs(
        timeline.trace.lane(rank_index, Stream::Compute),
        scale,
        timeline.until(),
    ) {
        let Run::One(span) = run else { continue };
        let narrow = scale.width_of(span.duration()) < INNER;
        let within = |pass: &Span| pass.start <= span.start && pass.end >= span.end;
        if span.phase == Phase::Busy || narrow || !passes.at(span.start).is_some_and(within) {
            continue;
        }
        let mut rect = timeline.rect(band, span.start, span.end);
        rect.y += rect.height * 0.86;
        rect.height *= 0.14;
        let quad = match span.phase {
            Phase::Waiting => {
                Quad::new(rect, palette.waiting_bed).hatched(Hatch::Waiting(palette.waiting))
            }
            Phase::Busy | Phase::Transfer | Phase::Idle => Quad::new(rect, palette.all_reduce_tp),
        };
        canvas.quad(quad);
    }
}

/// The share of idle time, on the largest gap where it is.
fn draw_share(timeline: &Timeline<'_>, row: Row, gaps: &[Gap], canvas: &mut Canvas) {
    let idle = gaps.iter().filter(|gap| gap.phase == Phase::Idle);
    let Some(gap) = idle.max_by_key(|gap| gap.to.since(gap.from)) else {
        return;
    };
    let (trace, rank_index) = (timeline.trace, row.rank_index);
    let share = timeline
        .overview
        .idle_share(trace, rank_index, timeline.until());
    let rect = timeline.rect(timeline.rows.block.moved(row.top), gap.from, gap.to);
    let short = whole_percent(share);
    if !draw_pill(timeline, rect, &format!("idle {short}"), canvas) {
        draw_pill(timeline, rect, &short, canvas);
    }
}

/// A share in whole per cent; a small one with a decimal.
fn whole_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A word on a small ground of its own in the middle of `gap`, if it fits; whether it does.
fn draw_pill(timeline: &Timeline<'_>, gap: Rect, word: &str, canvas: &mut Canvas) -> bool {
    let palette = timeline.palette();
    let body = timeline.look.sizes.body;
    let size = (gap.height * 0.6).min(body);
    let style = Type::semi_bold(size, palette.text);
    let width = style.width(word) + size * 0.9;
    if size < body * 0.5 || width > gap.width - 4.0 {
        return false;
    }
    let height = (size * 1.45).min(gap.height);
    let centre = gap.centre();
    let pill = Rect::new(
        centre.x - width / 2.0,
        centre.y - height / 2.0,
        width,
        height,
    );
    canvas.quad(Quad::new(pill, palette.background.faded(0.88)).rounded(height / 2.0));
    canvas.text_at_middle(centre, Anchor::Middle, style, word);
    true
}

/// The mean of colours, each counted by its time.
pub(super) fn mean(parts: impl Iterator<Item = (Colour, Nanos)>) -> Colour {
    let mut sum = 0.0;
    parts.fold(Colour::CLEAR, |mean, (colour, time)| {
        let weight = time.0 as f32;
        sum += weight;
        mean.mixed(colour, weight / sum.max(1.0))
    })
}

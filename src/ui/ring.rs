//! A collective as a ring of its members: which chunk each sends to the next at each step, and who has what by then.

use eframe::egui::{Align2, Pos2, Rect, RichText, Sense, Shape, Slider, Stroke, Ui, pos2, vec2};

use crate::scene::fonts::Weight;
use crate::trace::Span;
use crate::units::{Collective, Nanos};

use super::theme::{color, font};
use super::view::View;

/// A ring of more is drawn as one of this many.
const MOST_DRAWN: usize = 8;
/// How long a step takes when it is played, in seconds.
const STEP_SECONDS: f64 = 0.9;

/// The animation: where it is, in steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    at: f64,
    plays: bool,
    of: Option<Span>,
    playhead: Option<Nanos>,
}

/// How much of a chunk a member has: summands of a sum, or the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    /// Not it.
    Nothing,
    /// A sum over so many members.
    Part(usize),
    /// What everyone is to have.
    Whole,
}

/// How many steps a ring of `n` takes.
fn steps(kind: Collective, n: usize) -> usize {
    kind.rounds() as usize * (n - 1)
}

/// The chunk that `member` sends to the next one in a step: while summing, its own first and then what it was sent; while
/// gathering, what it has the whole of first.
fn sends(kind: Collective, n: usize, step: usize, member: usize) -> usize {
    let (gathers, step) = match kind {
        Collective::AllReduce if step >= n - 1 => (true, step - (n - 1)),
        Collective::AllReduce | Collective::ReduceScatter => (false, step),
        Collective::AllGather => (true, step),
    };
    let first = match (kind, gathers) {
        // After summing, a member has the whole of the chunk after its own.
        (Collective::AllReduce, true) => member + 1,
        _ => member,
    };
    (first + n - step % n) % n
}

/// What `member` has of `chunk` before a step.
fn has(kind: Collective, n: usize, step: usize, (member, chunk): (usize, usize)) -> Has {
    let start = match kind {
        Collective::AllGather if member == chunk => Has::Whole,
        Collective::AllGather => Has::Nothing,
        Collective::AllReduce | Collective::ReduceScatter => Has::Part(1),
    };
    let mut own = start;
    let before = (member + n - 1) % n;
    for step in 0..step {
        if sends(kind, n, step, before) != chunk {
            continue;
        }
        // What comes in while summing is a sum over one more member at each step.
        let sums = kind != Collective::AllGather && step < n - 1;
        // What comes in while summing is a sum over one more member at each step.
        own = if sums && step + 2 < n {
            Has::Part(step + 2)
        } else {
            Has::Whole
        };
    }
    own
}

impl Ring {
    /// Shows the ring of `n` members, at the playhead while it goes through the span, else where it was put.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        (kind, members): (Collective, usize),
        (span, playhead): (Span, Option<Nanos>),
        view: &View,
    ) {
        let n = members.clamp(2, MOST_DRAWN);
        let all = steps(kind, n);
        if self.of != Some(span) {
            *self = Self {
                of: Some(span),
                playhead,
                ..Self::default()
            };
        }
        self.follow(span, playhead, all);
        if self.plays {
            let passed = ui.input(|input| f64::from(input.stable_dt.min(0.1)));
            self.at += passed / STEP_SECONDS;
            if self.at >= all as f64 {
                self.at = all as f64;
                self.plays = false;
            }
            ui.ctx().request_repaint();
        }
        let drawn = if members > n {
            format!("drawn for {n} of its {members} members: ")
        } else {
            String::new()
        };
        let text = format!(
            "{} as a ring, {drawn}{} chunks, {} steps",
            kind.name(),
            n,
            all
        );
        ui.label(RichText::new(text).small());
        ui.horizontal(|ui| {
            let name = if self.plays {
                "Pause the ring"
            } else {
                "Play the ring"
            };
            if ui
                .small_button(if self.plays { "Pause" } else { "Play" })
                .on_hover_text(name)
                .clicked()
            {
                if !self.plays && self.at >= all as f64 {
                    self.at = 0.0;
                }
                self.plays = !self.plays;
            }
            let slider = Slider::new(&mut self.at, 0.0..=all as f64)
                .text("step")
                .fixed_decimals(1);
            if ui.add(slider).changed() {
                self.plays = false;
            }
        });
        let side = view.sizes().body * 13.0;
        let (rect, _) = ui.allocate_exact_size(vec2(side * 1.6, side), Sense::hover());
        self.paint(ui, rect, (kind, n), view);
    }

    /// While the playhead goes through the span, the ring goes with it.
    fn follow(&mut self, span: Span, playhead: Option<Nanos>, all: usize) {
        let moved = playhead != self.playhead;
        self.playhead = playhead;
        let inside = playhead.filter(|time| moved && (span.start..=span.end).contains(time));
        if let Some(time) = inside {
            let share = time.since(span.start).0 as f64 / span.duration().0.max(1) as f64;
            self.at = share * all as f64;
            self.plays = false;
        }
    }

    fn paint(&self, ui: &Ui, rect: Rect, (kind, n): (Collective, usize), view: &View) {
        let (palette, sizes) = (view.palette(), view.sizes());
        let all = steps(kind, n);
        let step = (self.at as usize).min(all);
        let share = if step == all {
            0.0
        } else {
            self.at.fract() as f32
        };
        let centre = rect.center();
        let radius = vec2(rect.width() * 0.36, rect.height() * 0.38);
        let place = |member: f32| -> Pos2 {
            let turn = member / n as f32 * std::f32::consts::TAU - std::f32::consts::FRAC_PI_2;
            centre + vec2(turn.cos() * radius.x, turn.sin() * radius.y)
        };
        let painter = ui.painter();
        let ring: Vec<Pos2> = (0..=72)
            .map(|at| place(at as f32 * n as f32 / 72.0))
            .collect();
        painter.add(Shape::line(ring, Stroke::new(1.0, color(palette.divider))));
        let cell = (rect.width() * 0.2 / n as f32).min(sizes.body * 0.7);
        for member in 0..n {
            let at = place(member as f32);
            let left = at.x - cell * n as f32 / 2.0;
            for chunk in 0..n {
                let own = has(kind, n, step, (member, chunk));
                let whole = Rect::from_min_size(
                    pos2(left + cell * chunk as f32, at.y - cell),
                    vec2(cell - 1.0, cell * 2.0),
                );
                painter.rect_filled(whole, 1.0, color(palette.raised));
                let (filled, tint) = match own {
                    Has::Nothing => continue,
                    Has::Part(parts) => (parts as f32 / n as f32, palette.all_reduce_tp),
                    Has::Whole => (1.0, palette.success),
                };
                let part = Rect::from_min_max(
                    pos2(whole.left(), whole.bottom() - whole.height() * filled),
                    whole.max,
                );
                painter.rect_filled(part, 1.0, color(tint));
            }
            let name = painter.layout_no_wrap(
                member.to_string(),
                font(sizes.small(), Weight::SemiBold),
                color(palette.text),
            );
            let above = Align2::CENTER_BOTTOM.anchor_size(at - vec2(0.0, cell + 1.0), name.size());
            painter.galley(above.min, name, color(palette.text));
        }
        if step == all {
            return;
        }
        for member in 0..n {
            let at = place(member as f32 + share);
            let chunk = sends(kind, n, step, member);
            let text = painter.layout_no_wrap(
                chunk.to_string(),
                font(sizes.small(), Weight::SemiBold),
                color(palette.on_light),
            );
            painter.circle_filled(at, sizes.body * 0.62, color(palette.all_reduce));
            let middle = Align2::CENTER_CENTER.anchor_size(at, text.size());
            painter.galley(middle.min, text, color(palette.on_light));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_end_each_has_what_the_collective_gives() {
        for n in 2..9 {
            for member in 0..n {
                let at_end = |kind, chunk| has(kind, n, steps(kind, n), (member, chunk));
                for chunk in 0..n {
                    assert_eq!(
                        at_end(Collective::AllReduce, chunk),
                        Has::Whole,
                        "{n} {member} {chunk}"
                    );
                    assert_eq!(at_end(Collective::AllGather, chunk), Has::Whole);
                }
                let whole =
                    (0..n).filter(|&chunk| at_end(Collective::ReduceScatter, chunk) == Has::Whole);
                assert_eq!(whole.collect::<Vec<_>>(), [(member + 1) % n]);
            }
        }
    }

    #[test]
    fn nobody_sends_what_it_does_not_have() {
        let kinds = [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ];
        let all = kinds
            .into_iter()
            .flat_map(|kind| (2..9).map(move |n| (kind, n)));
        for (kind, n) in all {
            for (step, member) in
                (0..steps(kind, n)).flat_map(|step| (0..n).map(move |member| (step, member)))
            {
                let chunk = sends(kind, n, step, member);
                let own = has(kind, n, step, (member, chunk));
                let sums = kind != Collective::AllGather && step < n - 1;
                let wanted = if sums {
                    Has::Part(step + 1)
                } else {
                    Has::Whole
                };
                assert_eq!(own, wanted, "{kind:?} {n} {step} {member}");
            }
        }
    }
}

//! The grid: a row a rank, a column a unit, blocks as on the timeline; the best known schedule beneath on the same axis.

use eframe::egui::{Id, Pos2, Rect as Area, Role, ScrollArea, Sense, Ui, Vec2, WidgetInfo, vec2};

use crate::lesson::build::{Measure, Placed, Reference, short};
use crate::scene::fonts::Weight;
use crate::scene::tokens::Sizes;
use crate::scene::{Anchor, Point, Quad, Rect, Scene, Shape, Size, Stroke};
use crate::schedule::Action;
use crate::ui::paint::Painted;
use crate::ui::view::View;
use crate::ui::wish::Wish;

use super::canvas::{Canvas, HEADING, Places, SMALL, draw_axis, draw_par, draw_reference};
use super::{Aid, Build, Builder, wish};

/// How wide the rows' names are, how high the axis, and a row at least and at most, in body-text sizes.
const NAMES: f32 = 7.0;
const AXIS: f32 = 1.5;
const LEAST: f32 = 1.7;
const MOST: f32 = 9.0;

impl Builder {
    /// Shows the grid in room of `size`.
    pub(super) fn grid(&self, ui: &mut Ui, size: Vec2, view: &View, wishes: &mut Vec<Wish>) {
        let sizes = view.sizes();
        let reference = self.sheet().references.first();
        let reference = reference.filter(|_| self.shows(Aid::Reference));
        let places = self.places(size, sizes, reference);
        let own = places.top + places.pitch * self.board().level().ranks as f32;
        let below = reference.map_or(0.0, |reference| {
            sizes.body * (HEADING + SMALL * reference.board.level().ranks as f32)
        });
        ScrollArea::vertical()
            .id_salt("grid")
            .max_height(size.y)
            .auto_shrink([false, true])
            .show(ui, |ui| {
                let room = vec2(places.width, own + below);
                let (area, response) = ui.allocate_exact_size(room, Sense::hover());
                let name = self.described();
                response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name.as_str()));
                let mut canvas = Canvas::new(view.palette(), self.board().level());
                self.draw(&mut canvas, &places);
                if let Some(reference) = reference {
                    draw_reference(&mut canvas, reference, &places, own);
                }
                let scene = Scene {
                    size: Size::new(room.x, room.y),
                    background: view.palette().background,
                    shapes: canvas.shapes,
                };
                Painted::new(ui.ctx(), scene, area.min, ui.pixels_per_point()).paint(ui.painter());
                self.touch(ui, area, &places, wishes);
            });
    }

    fn places(&self, size: Vec2, sizes: Sizes, reference: Option<&Reference>) -> Places {
        let em = sizes.body;
        let board = self.board();
        let ranks = board.level().ranks as f32;
        let below = if reference.is_some() {
            HEADING + SMALL * ranks
        } else {
            0.0
        };
        let best = self.sheet().references.first();
        let best = best.map_or(0, |best| best.board.figures().makespan + 1);
        let ghost = self.ghost().map_or(0, |(action, start)| {
            start + board.level().times.of(action.pass) + 1
        });
        let to = (self.known.figures.makespan + 1)
            .max(best)
            .max(ghost)
            .max(6);
        let width = size.x - em * 0.5;
        let left = em * NAMES;
        Places {
            width,
            left,
            unit: (width - left).max(1.0) / to as f32,
            to,
            top: em * AXIS,
            pitch: ((size.y - em * (AXIS + below + 0.4)) / ranks).clamp(em * LEAST, em * MOST),
            sizes,
        }
    }

    /// Where the chosen pass would come, if it can be placed.
    fn ghost(&self) -> Option<(Action, u32)> {
        let action = self.pick?;
        let ready = self.board().why_not(self.rank, action).ok()?;
        Some((action, ready.start.saturating_add(self.wait)))
    }

    /// The board in a sentence, for those who cannot see it.
    fn described(&self) -> String {
        let board = self.board();
        format!(
            "Grid of {} GPUs: {} passes placed, {} left",
            board.level().ranks,
            board.placed(),
            board.left()
        )
    }

    fn draw(&self, canvas: &mut Canvas<'_>, places: &Places) {
        let board = self.board();
        let palette = canvas.palette;
        let chosen = places.row(self.rank);
        canvas.quad(Quad::new(chosen, palette.raised).rounded(places.sizes.radius()));
        let bar = Rect::new(chosen.x, chosen.y, places.sizes.body * 0.25, chosen.height);
        canvas.quad(Quad::new(bar, palette.accent));
        for rank in 0..board.level().ranks {
            canvas.bed((rank, places));
        }
        let par = self
            .par()
            .filter(|_| board.level().measure == Measure::Makespan);
        draw_axis(canvas, places, (par, board.level().ranks));
        for rank in 0..board.level().ranks {
            self.row_name(canvas, rank, places);
            canvas.row(board, rank, (rank, places));
        }
        if let Some((action, start)) = self.ghost() {
            let end = start + board.level().times.of(action.pass);
            canvas.ghost(places.rect(self.rank, start, end), action, places.sizes);
        }
        let hinted = self.hint.as_ref().and_then(|(_, hint)| hint.next);
        if let Some((rank, ready)) = hinted {
            let end = ready.start + board.level().times.of(ready.action.pass);
            let rect = places.rect(rank, ready.start, end);
            canvas.ghost(rect, ready.action, places.sizes);
            let ring = Stroke::solid(3.0, palette.accent);
            canvas.quad(
                Quad::new(rect, palette.accent.faded(0.0))
                    .outlined(ring)
                    .rounded(places.sizes.radius()),
            );
        }
        if self.shows(Aid::Path) {
            self.draw_path(canvas, places);
        }
        if let Some(par) = par {
            draw_par(canvas, places, (par, board.level().ranks));
        }
    }

    /// The GPU, its stages, and what it holds.
    fn row_name(&self, canvas: &mut Canvas<'_>, rank: usize, places: &Places) {
        let (board, palette) = (self.board(), canvas.palette);
        let em = places.sizes.body;
        let stages: Vec<String> = board
            .level()
            .stages_of(rank)
            .map(|stage| stage.to_string())
            .collect();
        let noun = if stages.len() > 1 { "stages" } else { "stage" };
        let stages = format!("{noun} {}", stages.join(", "));
        let held = board.held(rank);
        let held = match board.level().cap {
            Some(cap) => format!("holds {held} of {cap}"),
            None => format!("holds {held}"),
        };
        let mut lines = vec![(format!("GPU {rank}"), em, Weight::SemiBold, palette.text)];
        let small = places.sizes.small();
        lines.push((stages, small, Weight::Regular, palette.text_weak));
        lines.push((held, small, Weight::Regular, palette.text_weak));
        if self.shows(Aid::Ready) {
            let ready = format!("{} ready", self.known.ready[rank]);
            lines.push((ready, small, Weight::Regular, palette.accent));
        }
        let row = places.row(rank);
        let room = ((row.height - em * 0.3) / (small * 1.22)) as usize;
        lines.truncate(room.max(1));
        let step = small * 1.22;
        let first = row.centre().y - step * (lines.len() as f32 - 1.0) / 2.0;
        for (index, (words, size, weight, colour)) in lines.iter().enumerate() {
            let at = Point::new(em * 0.55, first + step * index as f32);
            canvas.text(at, Anchor::Start, (*size, *weight), (*colour, words));
        }
    }

    fn draw_path(&self, canvas: &mut Canvas<'_>, places: &Places) {
        let stroke = Stroke::solid(2.4, canvas.palette.critical);
        let rect_of = |&(rank, placed): &(usize, Placed)| {
            places
                .rect(rank, placed.start, self.board().end(placed))
                .grown(-0.5)
        };
        let rects: Vec<(usize, Rect)> = self
            .known
            .path
            .iter()
            .map(|link| (link.0, rect_of(link)))
            .collect();
        for pair in rects.windows(2) {
            if pair[0].0 != pair[1].0 {
                let points = vec![
                    Point::new(pair[0].1.right(), pair[0].1.centre().y),
                    Point::new(pair[1].1.x, pair[1].1.centre().y),
                ];
                canvas.shapes.push(Shape::Line { points, stroke });
            }
        }
        let clear = canvas.palette.critical.faded(0.0);
        for (_, rect) in rects {
            let quad = Quad::new(rect, clear).outlined(stroke);
            canvas.quad(quad.rounded(places.sizes.radius()));
        }
    }

    /// Rows answer to the pointer: another rank is chosen, a block says why it is where it is, and where nothing is the chosen
    /// pass is placed.
    fn touch(&self, ui: &Ui, area: Area, places: &Places, wishes: &mut Vec<Wish>) {
        for rank in 0..self.board().level().ranks {
            let row = places.row(rank);
            let rect =
                Area::from_min_size(area.min + vec2(row.x, row.y), vec2(row.width, row.height));
            let response = ui.interact(rect, Id::unique(("row", rank)), Sense::click());
            let name = self.row_described(rank);
            response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name.as_str()));
            let at = |at: Pos2| (at.x - area.min.x - places.left) / places.unit;
            let dropped = response.dnd_release_payload::<Action>();
            if let Some((action, at)) = dropped.zip(pointer(ui).map(at)) {
                let time = at.max(0.0) as u32;
                wishes.push(wish(Build::Drop(rank, *action, time)));
            }
            let block = |at: f32| {
                let all = self.board().rows()[rank].iter();
                let mut all = all.enumerate();
                all.find(|(_, placed)| {
                    let end = self.board().end(**placed) as f32;
                    (placed.start as f32..end).contains(&at)
                })
            };
            if response.clicked() {
                let at = response.interact_pointer_pos().map(at);
                wishes.push(wish(self.clicked(
                    rank,
                    at,
                    at.and_then(block).map(|(index, _)| index),
                )));
            }
            if let Some((_, placed)) = response.hover_pos().map(at).and_then(block) {
                response.on_hover_text_at_pointer(self.why(rank, *placed));
            }
        }
    }

    /// What is dropped on a row goes where the pointer is, or where it comes by itself if the pointer is on that.
    pub(super) fn drop_time(&self, rank: usize, action: Action, time: u32) -> u32 {
        let ready = self.board().why_not(rank, action).ok();
        let length = self.board().level().times.of(action.pass);
        let on_it = |start: &u32| (*start..start.saturating_add(length)).contains(&time);
        ready.map(|ready| ready.start).filter(on_it).unwrap_or(time)
    }

    /// What a click on a row is for.
    fn clicked(&self, rank: usize, at: Option<f32>, block: Option<usize>) -> Build {
        if let Some(index) = block {
            return Build::Explain(rank, index);
        }
        let time = at.filter(|at| *at >= 0.0).map(|at| at as u32);
        match (time, self.pick, self.ghost()) {
            (Some(time), Some(action), ghost) if rank == self.rank => {
                let length = self.board().level().times.of(action.pass);
                let on_it = |(_, start): &(Action, u32)| (*start..start + length).contains(&time);
                // On the ghost is where it is.
                let at = ghost.filter(on_it).map_or(time, |(_, start)| start);
                Build::Put(action, Some(at))
            }
            _ => Build::Rank(rank),
        }
    }

    fn row_described(&self, rank: usize) -> String {
        let row = &self.board().rows()[rank];
        let mut all: Vec<String> = row
            .iter()
            .map(|placed| format!("{} at {}", short(placed.action), placed.start))
            .collect();
        if all.is_empty() {
            all.push("nothing placed".to_owned());
        }
        format!("Row of GPU {rank}: {}", all.join(", "))
    }
}

fn pointer(ui: &Ui) -> Option<Pos2> {
    ui.input(|input| input.pointer.interact_pos())
}

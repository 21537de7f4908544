//! What a lesson does to the window: it loads set-ups, runs them, lights things, and looks whether goals are reached.

use std::sync::Arc;

use eframe::egui::Context;

use super::Classroom;
use crate::lesson::check::Made;
use crate::lesson::figures::Source;
use crate::lesson::{Block, Content, Light, Phase, Play, Setup};
use crate::scene::Hit;
use crate::session::Timeline;
use crate::trace::{Area, Phase as Time, Stream, Trace};
use crate::units::{Nanos, Rank};

use crate::ui::kept::Kept;
use crate::ui::pane::Pane;
use crate::ui::run::Run;
use crate::ui::view::{Middle, View};
use crate::ui::wish::{Panel, Travel};

/// What of the window a lesson works with.
pub(in crate::ui) struct Desk<'a> {
    pub(in crate::ui) run: &'a mut Run,
    pub(in crate::ui) view: &'a mut View,
    pub(in crate::ui) pane: &'a mut Pane,
    pub(in crate::ui) kept: &'a mut Kept,
}

impl Desk<'_> {
    fn set_up(&mut self, setup: &Setup) {
        if *self.run.config() == setup.config {
            self.run.travel(Travel::Reset);
        } else {
            self.run.load(setup.config.clone());
        }
        // Which also pauses.
        self.run.travel(Travel::StepStart);
        let panels: Vec<Panel> = setup.panels.iter().filter_map(|name| panel(name)).collect();
        if !panels.is_empty() {
            self.view.open_panels(panels);
        }
        self.view.middle = Middle::Timeline;
    }
}

/// Simulates what was run before a restart: the figures are the same.
pub(super) fn restore(play: &mut Play) {
    let missing: Vec<Setup> = play.missing().into_iter().cloned().collect();
    for setup in missing {
        if let Ok(made) = Made::simulated(&setup.config) {
            play.restore(&setup.name, Arc::new(made));
        }
    }
}

fn panel(name: &str) -> Option<Panel> {
    Some(match name {
        "loss" => Panel::Loss,
        "mesh" => Panel::Mesh,
        "memory" => Panel::Memory,
        "replicas" => Panel::Replicas,
        "traffic" => Panel::Traffic,
        "bubble" => Panel::Bubble,
        "selection" => Panel::Selection,
        "now" => Panel::Now,
        _ => return None,
    })
}

impl Classroom {
    /// Keeps the window and the lesson together; called each frame.
    pub(in crate::ui) fn follow(&mut self, desk: &mut Desk<'_>, ctx: &Context) {
        self.poll(ctx);
        if !self.open {
            return;
        }
        self.stage(desk);
        self.seek_end(desk);
        self.hear_run(desk);
        self.hear_loss(desk);
        self.look(desk);
        self.light_new(desk);
        self.remember();
    }

    /// Loads the set-up of where the reader is, once for each page; what is run on it then stays.
    fn stage(&mut self, desk: &mut Desk<'_>) {
        if self.staged.is_some() || self.running.is_some() {
            return;
        }
        let Some(setup) = self.play.as_ref().and_then(Play::setup).cloned() else {
            return;
        };
        self.load(&setup, desk);
        // What was run on this page before is shown to its end.
        self.to_end = self.play.as_ref().is_some_and(|play| {
            let mut seen = play.seen().into_iter().rev();
            let last = seen.find(|(_, block)| matches!(block.content, Content::Run(_)));
            last.is_some_and(|(index, _)| play.is_made(index))
        });
    }

    fn load(&mut self, setup: &Setup, desk: &mut Desk<'_>) {
        desk.set_up(setup);
        self.fold(setup.hide_controls, desk.view);
        self.staged = Some(setup.name.clone());
        self.to_end = false;
    }

    /// Folds the controls for a set-up that wants it, and unfolds what was folded for one.
    pub(super) fn fold(&mut self, hide: bool, view: &mut View) {
        if hide && !view.controls_folded {
            (view.controls_folded, self.folded) = (true, true);
        } else if !hide && self.folded {
            (view.controls_folded, self.folded) = (false, false);
        }
    }

    /// Goes to the end of the step as soon as its timeline is there.
    fn seek_end(&mut self, desk: &mut Desk<'_>) {
        let there = desk.run.timeline_of(0).is_some() && !desk.run.is_behind();
        if self.to_end && there {
            self.to_end = false;
            desk.run.travel(Travel::StepEnd);
        }
    }

    /// Starts the run of a block.
    pub(super) fn run(&mut self, block: usize, desk: &mut Desk<'_>) {
        let Some(play) = &self.play else {
            return;
        };
        let Some(Content::Run(run)) = play.page().blocks.get(block).map(|block| &block.content)
        else {
            return;
        };
        let Some(setup) = play.lesson().setup(&run.of) else {
            return;
        };
        if run.keep {
            let before = play.page().blocks[..block].iter().rev();
            let other = before
                .chain(play.lesson().blocks_before(play.progress().page))
                .filter_map(Block::runs)
                .find(|name| *name != run.of);
            let other = other.and_then(|name| play.lesson().setup(name));
            if let Some(made) = other.and_then(|setup| Made::simulated(&setup.config).ok()) {
                desk.kept.clear();
                desk.kept.keep(&made.timeline);
            }
        }
        let setup = setup.clone();
        self.load(&setup, desk);
        desk.run.travel(Travel::PlayPause);
        self.running = Some(block);
    }

    /// Loads what a task starts from.
    pub(super) fn set_up(&mut self, block: usize, desk: &mut Desk<'_>) {
        let Some(play) = &self.play else {
            return;
        };
        let Some(Content::Task(task)) = play.page().blocks.get(block).map(|block| &block.content)
        else {
            return;
        };
        if let Some(setup) = play.lesson().setup(&task.start).cloned() {
            self.running = None;
            self.load(&setup, desk);
        }
    }

    /// Whether the run that is under way has shown its first step: then its figures are known.
    fn hear_run(&mut self, desk: &mut Desk<'_>) {
        let (Some(block), Some(play)) = (self.running, &mut self.play) else {
            return;
        };
        let Some(Content::Run(of)) = play.page().blocks.get(block).map(|block| &block.content)
        else {
            self.running = None;
            return;
        };
        let setup = play.lesson().setup(&of.of);
        if desk.run.is_behind() {
            return;
        }
        // Somebody runs something else: this run will never end.
        if setup.is_none_or(|setup| setup.config != *desk.run.config()) {
            self.running = None;
            return;
        }
        let at = desk.run.playback().at();
        let ended = at.step > 0 || (at.time > Nanos::ZERO && at.time >= desk.run.length());
        let Some(timeline) = desk.run.timeline_of(0).filter(|_| ended) else {
            return;
        };
        if setup.is_some_and(|setup| setup.config == timeline.report.config) {
            let made = Made {
                loss_apart: loss_apart(desk.run),
                timeline: Arc::clone(timeline),
            };
            play.made(block, Arc::new(made));
            self.running = None;
            // It stands at the end of the step, to be looked at.
            let end = if at.step > 0 {
                Travel::StepBack
            } else {
                Travel::StepEnd
            };
            desk.run.travel(end);
        }
    }

    /// A loss may be known only after the figures of its run.
    fn hear_loss(&mut self, desk: &Desk<'_>) {
        let (Some(name), Some(play)) = (&self.staged, &mut self.play) else {
            return;
        };
        let setup = play.lesson().setup(name);
        let shown = setup.is_some_and(|setup| setup.config == *desk.run.snapshot().config);
        if let Some(loss) = loss_apart(desk.run).filter(|_| shown) {
            play.learn_loss(name, loss);
        }
    }

    /// Whether what is run reaches the goals of the page's tasks.
    fn look(&mut self, desk: &mut Desk<'_>) {
        let Some(play) = &mut self.play else {
            return;
        };
        if desk.run.is_behind() {
            return;
        }
        let Some(timeline) = desk.run.timeline_of(0).cloned() else {
            return;
        };
        let tasks: Vec<usize> = play
            .seen()
            .into_iter()
            .filter(|(_, block)| matches!(block.content, Content::Task(_)))
            .map(|(index, _)| index)
            .collect();
        for block in tasks {
            if !play.is_reached(block) {
                play.look(block, source(desk.run, &timeline));
            }
        }
    }

    /// Lights what blocks light that have come to be seen.
    fn light_new(&mut self, desk: &mut Desk<'_>) {
        let Some(play) = &self.play else {
            return;
        };
        let blocks = play.seen();
        let seen = blocks.len();
        let fresh: Vec<usize> = blocks
            .into_iter()
            .filter(|(index, block)| {
                *index >= self.lit && matches!(block.content, Content::Light(_))
            })
            .map(|(index, _)| index)
            .collect();
        let ready = desk.run.timeline().is_some() && !desk.run.is_behind();
        if ready && self.lit < seen {
            self.lit = seen;
            for block in fresh {
                self.light(block, desk);
            }
        }
    }

    /// Lights what a block lights.
    pub(super) fn light(&mut self, block: usize, desk: &mut Desk<'_>) {
        let Some(play) = &self.play else {
            return;
        };
        let Some(Content::Light(light)) = play.page().blocks.get(block).map(|block| &block.content)
        else {
            return;
        };
        let Some(timeline) = desk.run.timeline().cloned() else {
            return;
        };
        desk.pane.attention.clear();
        let trace = &timeline.trace;
        if let Some(hit) = bubble(trace, *light).or_else(|| pass_of(trace, *light)) {
            desk.pane.go_to(trace, hit);
        } else if let Some(phase) = light.phase {
            desk.pane.select_area(part(trace, phase));
        } else if let Some(rank) = light.rank {
            desk.pane.choose(Some(Rank(rank)));
        }
    }

    /// Whether a run is under way that the lesson waits for.
    pub(super) fn is_running(&self, block: usize) -> bool {
        self.running == Some(block)
    }
}

/// What figures of the run are read from.
pub(super) fn source<'a>(run: &Run, timeline: &'a Timeline) -> Source<'a> {
    Source {
        loss_apart: loss_apart(run),
        ..Source::of_run(&timeline.report)
    }
}

fn loss_apart(run: &Run) -> Option<f64> {
    let last = run.snapshot().steps.last()?;
    Some((last.loss - last.reference_loss?).abs())
}

/// The longest bubble, of a GPU or of all.
fn bubble(trace: &Trace, light: Light) -> Option<Hit> {
    if !light.bubble {
        return None;
    }
    let wanted = |rank: Rank| light.rank.is_none_or(|own| Rank(own) == rank);
    let ranks = (0..trace.ranks.len()).filter(|&index| wanted(trace.ranks[index].rank));
    let hits = ranks.flat_map(|rank_index| {
        let lane = trace.lane(rank_index, Stream::Compute);
        let idle = lane.spans().iter().filter(|span| span.phase == Time::Idle);
        idle.map(move |span| Hit {
            rank_index,
            stream: Stream::Compute,
            span: *span,
        })
    });
    // The first of those that are as long.
    hits.reduce(|best, hit| {
        if hit.span.duration() > best.span.duration() {
            hit
        } else {
            best
        }
    })
}

/// A pass of the micro-batch that is lit.
fn pass_of(trace: &Trace, light: Light) -> Option<Hit> {
    let batch = light.micro_batch?;
    let wanted = |rank: Rank| light.rank.is_none_or(|own| Rank(own) == rank);
    let mut ranks = (0..trace.ranks.len()).filter(|&index| wanted(trace.ranks[index].rank));
    ranks.find_map(|rank_index| {
        let lane = trace.lane(rank_index, Stream::Passes);
        let of_batch = lane.spans().iter().find(|span| {
            let label = trace.labels.get(span.label.0 as usize);
            label.is_some_and(|label| label.micro_batch == Some(batch))
        });
        of_batch.map(|span| Hit {
            rank_index,
            stream: Stream::Passes,
            span: *span,
        })
    })
}

/// A part of the step over all GPUs: until all have begun, while all go on, from when the first has finished.
fn part(trace: &Trace, phase: Phase) -> Area {
    let spans = |rank: usize| trace.lane(rank, Stream::Passes).spans();
    let ranks = 0..trace.ranks.len();
    let begun = ranks
        .clone()
        .filter_map(|rank| spans(rank).first())
        .map(|span| span.start)
        .max();
    let ended = ranks
        .clone()
        .filter_map(|rank| spans(rank).last())
        .map(|span| span.end)
        .min();
    let begun = begun.unwrap_or_default();
    let ended = ended.unwrap_or(trace.makespan).max(begun);
    let (from, to) = match phase {
        Phase::WarmUp => (Nanos::ZERO, begun),
        Phase::Steady => (begun, ended),
        Phase::CoolDown => (ended, trace.pipeline_end()),
    };
    Area {
        from,
        to,
        ranks: ranks.collect(),
    }
}

//! The passes of the chosen rank that are still to be placed: a click places one.

use eframe::egui::{
    Align2, Color32, Id, LayerId, Order, Pos2, Rect, Response, RichText, Role, ScrollArea, Sense,
    Stroke, StrokeKind, Ui, WidgetInfo, vec2,
};

use crate::lesson::build::short;
use crate::scene::fonts::Weight;
use crate::schedule::Action;
use crate::ui::theme::{color, font};
use crate::ui::view::View;
use crate::ui::wish::Wish;
use crate::units::Pass;

use super::{Aid, Build, Builder, wish};

/// The most micro-batches of a kind that are offered at once.
const MOST: usize = 12;
/// A chip's size, and the height of what is over chips, in body-text sizes.
const WIDE: f32 = 2.5;
const HIGH: f32 = 1.8;
const GAP: f32 = 0.35;
const CAPTION: f32 = 1.7;
/// The most rows of chips that are seen at once.
const ROWS: usize = 5;

/// Passes of one kind on one stage.
struct Group {
    name: String,
    chips: Vec<Action>,
    more: usize,
}

impl Builder {
    /// The kinds of passes that the chosen rank has.
    fn groups(&self) -> Vec<Group> {
        let level = self.board().level();
        let stages: Vec<usize> = level.stages_of(self.rank).collect();
        let several = stages.len() > 1;
        let kinds = stages.iter().flat_map(|&stage| {
            let passes = level.backward.passes().iter();
            passes.map(move |&pass| (stage, pass))
        });
        let group = |(stage, pass): (usize, Pass)| {
            let all = (0..level.micro_batches as u32).map(|micro_batch| Action {
                stage: stage as u32,
                pass,
                micro_batch,
            });
            // Of few, the placed ones keep their places.
            let few = level.micro_batches <= MOST;
            let open: Vec<Action> = all
                .filter(|action| few || self.board().find(*action).is_none())
                .collect();
            let name = if several {
                format!("{} of stage {stage}", kind(pass))
            } else {
                kind(pass).to_owned()
            };
            Group {
                name,
                more: open.len().saturating_sub(MOST),
                chips: open.into_iter().take(MOST).collect(),
            }
        };
        kinds.map(group).collect()
    }

    /// How wide a group of chips is.
    fn group_width(&self, em: f32) -> f32 {
        let chips = self.board().level().micro_batches.min(MOST) as f32;
        let name = if self.board().level().chunks() > 1 {
            10.5
        } else {
            7.5
        };
        em * (name + chips * (WIDE + GAP) + 2.5)
    }

    fn columns(&self, width: f32, em: f32) -> usize {
        ((width / self.group_width(em)) as usize).max(1)
    }

    /// How high the tray is in room of that width.
    pub(super) fn tray_height(&self, width: f32, view: &View) -> f32 {
        let em = view.sizes().body;
        let groups = self.groups().len();
        let rows = groups.div_ceil(self.columns(width, em)).min(ROWS);
        em * (CAPTION + rows as f32 * (HIGH + GAP) + 0.6)
    }

    /// Shows the tray.
    pub(super) fn tray(&self, ui: &mut Ui, view: &View, wishes: &mut Vec<Wish>) {
        let em = view.sizes().body;
        ui.spacing_mut().item_spacing = vec2(em * GAP, em * GAP);
        let caption = RichText::new(format!(
            "GPU {}'s passes. A click places one at its earliest; drag it to a time, or choose it with Shift and click on the row",
            self.rank
        ));
        ui.label(caption.small().weak());
        let columns = self.columns(ui.available_width(), em);
        let width = self.group_width(em);
        ScrollArea::vertical()
            .id_salt("tray")
            .auto_shrink(false)
            .show(ui, |ui| {
                let groups = self.groups();
                // Down the columns, so that a stage's kinds stay together.
                let rows = groups.len().div_ceil(columns).max(1);
                for row in 0..rows {
                    ui.horizontal(|ui| {
                        for group in groups.iter().skip(row).step_by(rows) {
                            self.group(ui, group, (view, width), wishes);
                        }
                    });
                }
            });
    }

    fn group(
        &self,
        ui: &mut Ui,
        group: &Group,
        (view, width): (&View, f32),
        wishes: &mut Vec<Wish>,
    ) {
        let em = view.sizes().body;
        let start = ui.cursor().left();
        let name = if self.board().level().chunks() > 1 {
            10.0
        } else {
            7.0
        };
        let label = RichText::new(&group.name).small();
        ui.allocate_ui(vec2(em * name, em * HIGH), |ui| {
            ui.set_min_size(vec2(em * name, em * HIGH));
            ui.label(label);
        });
        for &action in &group.chips {
            let response = self.chip(ui, action, view);
            let only = response.secondary_clicked() || ui.input(|input| input.modifiers.shift);
            if response.secondary_clicked() || response.clicked() {
                let build = if only {
                    Build::Pick(action)
                } else {
                    Build::Put(action, None)
                };
                wishes.push(wish(build));
            }
        }
        if group.more > 0 {
            ui.label(RichText::new(format!("+{}", group.more)).weak());
        }
        let left = width - (ui.cursor().left() - start);
        ui.add_space(left.max(0.0));
    }

    /// A pass: filled while it can be placed or nobody asked, hollow while not, a dot once it is.
    fn chip(&self, ui: &mut Ui, action: Action, view: &View) -> Response {
        let (palette, em) = (view.palette(), view.sizes().body);
        let (rect, response) =
            ui.allocate_exact_size(vec2(em * WIDE, em * HIGH), Sense::click_and_drag());
        let placed = self.board().find(action).is_some();
        let why = self.board().why_not(self.rank, action);
        let words = self.board().level().words(action);
        let name = if placed {
            format!("{words} on GPU {} is placed", self.rank)
        } else {
            format!("Place {words} on GPU {}", self.rank)
        };
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name.as_str()));
        response.dnd_set_drag_payload(action);
        let painter = ui.painter();
        let (radius, style) = (view.sizes().radius() * 1.5, font(em, Weight::SemiBold));
        let fill = palette.pass(action.pass);
        let hollow = self.shows(Aid::Ready) && why.is_err();
        let (bed, ink) = match (placed, hollow) {
            (true, _) => (Color32::TRANSPARENT, color(palette.text_weak)),
            (false, true) => (color(palette.panel), color(palette.text_weak)),
            (false, false) => (color(fill), color(palette.text_on(fill))),
        };
        painter.rect_filled(rect, radius, bed);
        if hollow && !placed {
            let edge = Stroke::new(1.5, color(fill));
            painter.rect_stroke(rect, radius, edge, StrokeKind::Inside);
        }
        let text = if placed {
            "·".to_owned()
        } else {
            short(action)
        };
        painter.text(rect.center(), Align2::CENTER_CENTER, text, style, ink);
        if let Some(at) = response
            .dragged()
            .then(|| ui.input(|input| input.pointer.hover_pos()))
        {
            carried(ui, action, at, view);
        }
        if self.pick == Some(action) || response.hovered() || response.has_focus() {
            let edge = Stroke::new(2.0, color(palette.selected));
            painter.rect_stroke(rect.expand(1.0), radius, edge, StrokeKind::Outside);
        }
        let tells = self.shows(Aid::Ready) || placed;
        match why {
            Ok(ready) if tells => {
                response.on_hover_text(format!("{words} can start at {}", ready.start))
            }
            Err(why) if tells => response.on_hover_text(why.to_string()),
            Ok(_) | Err(_) => response,
        }
    }
}

/// A pass on its way to the grid, at the pointer.
fn carried(ui: &Ui, action: Action, at: Option<Pos2>, view: &View) {
    let (palette, em) = (view.palette(), view.sizes().body);
    let Some(at) = at else { return };
    let layer = LayerId::new(Order::Tooltip, Id::unique("carried"));
    let painter = ui.ctx().layer_painter(layer);
    let rect = Rect::from_center_size(at, vec2(em * WIDE, em * HIGH));
    let fill = palette.pass(action.pass);
    painter.rect_filled(
        rect,
        view.sizes().radius() * 1.5,
        color(fill).gamma_multiply(0.8),
    );
    let style = font(em, Weight::SemiBold);
    let ink = color(palette.text_on(fill));
    painter.text(at, Align2::CENTER_CENTER, short(action), style, ink);
}

fn kind(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "F forward",
        Pass::Backward => "B backward",
        Pass::InputGrad => "I input-grad",
        Pass::WeightGrad => "W weight-grad",
    }
}

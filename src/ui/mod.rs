//! The window: controls, live timelines and figures of a session. Only this layer knows widgets.
//!
//! Panels collect wishes and change nothing; [`App`] grants them in one place. What needs no widget
//! (the playhead, changes and their offers, descriptions, figures) is pure and tested by itself.

mod app;
mod attention;
mod bindings;
mod bubble_plot;
mod builder;
mod cards;
mod controls;
mod describe;
mod dock;
mod edit;
mod events;
mod export_panel;
mod figures;
mod guide;
mod guide_path;
mod help;
mod history;
mod holdings;
mod icon;
mod kept;
mod keys;
mod lesson;
mod loss;
mod memory;
mod mesh_view;
mod now;
#[cfg(test)]
mod now_tests;
mod options;
mod overlay;
mod paint;
mod pane;
mod playback;
mod plot;
mod replicas;
mod ring;
mod run;
mod search;
mod selection;
mod speed;
mod split;
mod start;
mod stepper;
mod sweep;
mod theme;
mod timeline;
mod timeline_input;
mod timeline_view;
mod traffic;
mod transport;
mod view;
mod viewer;
mod walk;
mod what_if;
mod wish;

pub use app::App;
pub use options::Options;
pub use pane::LookedAt;
pub use playback::{Motion, Position};
pub use start::{UiError, run, view};
pub use view::TextSize;
pub use viewer::Viewer;

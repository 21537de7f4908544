//! The look of widgets, from the design tokens, and the program's font.

use std::sync::Arc;

use eframe::egui::epaint::text::{FontData, FontDefinitions, FontFamily, FontId};
use eframe::egui::style::{Selection, WidgetVisuals, Widgets};
use eframe::egui::{
    Color32, Context, CornerRadius, Id, Margin, Shadow, Stroke, Style, TextStyle,
    Theme as EguiTheme, Ui, Visuals, vec2,
};

use crate::scene::Colour;
use crate::scene::fonts::{REGULAR, SEMI_BOLD, Weight};
use crate::scene::tokens::{Palette, Sizes, Theme};
use crate::words::{Language, Speaks};

const SEMI_BOLD_FAMILY: &str = "semi-bold";

/// A token's colour for egui.
pub(super) fn color(colour: Colour) -> Color32 {
    Color32::from_rgba_unmultiplied(colour.r, colour.g, colour.b, colour.a)
}

/// The font of a weight at a size.
pub(super) fn font(size: f32, weight: Weight) -> FontId {
    let family = match weight {
        Weight::Regular => FontFamily::Proportional,
        Weight::SemiBold => FontFamily::Name(SEMI_BOLD_FAMILY.into()),
    };
    FontId::new(size, family)
}

/// Makes the program's font egui's; what it lacks comes from egui's own.
pub(super) fn install_fonts(ctx: &Context) {
    let mut fonts = FontDefinitions::default();
    let fallbacks = fonts
        .families
        .get(&FontFamily::Proportional)
        .cloned()
        .unwrap_or_default();
    let families = [
        (FontFamily::Proportional, "Inter", REGULAR),
        (
            FontFamily::Name(SEMI_BOLD_FAMILY.into()),
            "Inter semi-bold",
            SEMI_BOLD,
        ),
    ];
    for (family, name, bytes) in families {
        fonts
            .font_data
            .insert(name.to_owned(), Arc::new(FontData::from_static(bytes)));
        let with_fallbacks = std::iter::once(name.to_owned()).chain(fallbacks.iter().cloned());
        fonts.families.insert(family, with_fallbacks.collect());
    }
    ctx.set_fonts(fonts);
}

/// Sets the language in which what has no view speaks.
pub(super) fn speak(ctx: &Context, language: Language) {
    ctx.data_mut(|data| data.insert_temp(Id::unique("language"), language));
}

impl Speaks for Context {
    fn language(&self) -> Language {
        self.data(|data| data.get_temp(Id::unique("language")))
            .unwrap_or_default()
    }
}

impl Speaks for Ui {
    fn language(&self) -> Language {
        self.ctx().language()
    }
}

/// Sets colours, text sizes and distances of all widgets.
pub(super) fn apply(ctx: &Context, theme: Theme, sizes: Sizes) {
    let egui_theme = match theme {
        Theme::Dark => EguiTheme::Dark,
        Theme::Light | Theme::Paper => EguiTheme::Light,
    };
    ctx.set_theme(egui_theme);
    ctx.style_mut_of(egui_theme, |style| fill(style, theme, sizes));
}

fn fill(style: &mut Style, theme: Theme, sizes: Sizes) {
    let em = sizes.body;
    let regular = |size: f32| font(size, Weight::Regular);
    style.text_styles = [
        (TextStyle::Small, regular(sizes.small())),
        (TextStyle::Body, regular(em)),
        (TextStyle::Button, regular(em)),
        (TextStyle::Heading, font(sizes.title(), Weight::SemiBold)),
        (
            TextStyle::Monospace,
            FontId::new(sizes.small(), FontFamily::Monospace),
        ),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = vec2(sizes.gap(), sizes.gap() * 0.7);
    spacing.button_padding = vec2(em * 0.55, em * 0.25);
    spacing.interact_size = vec2(em * 1.9, em * 1.75);
    spacing.combo_width = em * 6.0;
    spacing.icon_width = em;
    spacing.window_margin = Margin::same((em * 1.1) as i8);
    spacing.menu_margin = Margin::same((em * 0.4) as i8);
    spacing.tooltip_width = em * 28.0;
    spacing.combo_height = em * 24.0;
    spacing.scroll.floating = true;
    style.visuals = visuals(theme, sizes);
    style.animation_time = 0.0;
    style.interaction.selectable_labels = false;
    style.interaction.tooltip_delay = 0.25;
    // A warning for egui's own developers, that debug builds would paint over texts.
    #[cfg(debug_assertions)]
    {
        style.debug.show_unaligned = false;
    }
}

fn visuals(theme: Theme, sizes: Sizes) -> Visuals {
    let palette = theme.palette();
    let base = match theme {
        Theme::Dark => Visuals::dark(),
        Theme::Light | Theme::Paper => Visuals::light(),
    };
    let radius = CornerRadius::same(sizes.panel_radius() as u8);
    Visuals {
        widgets: widgets(palette, sizes),
        selection: Selection {
            bg_fill: color(palette.accent.mixed(palette.panel, 0.88)),
            stroke: Stroke::new(1.5, color(palette.accent)),
        },
        hyperlink_color: color(palette.accent),
        faint_bg_color: color(palette.track),
        extreme_bg_color: color(palette.background),
        warn_fg_color: color(palette.error),
        error_fg_color: color(palette.error),
        weak_text_color: Some(color(palette.text_weak)),
        panel_fill: color(palette.background),
        window_fill: color(palette.panel),
        window_stroke: Stroke::new(1.0, color(palette.divider)),
        window_corner_radius: radius,
        menu_corner_radius: radius,
        window_shadow: Shadow {
            offset: [0, 8],
            blur: 24,
            spread: 0,
            color: Color32::from_black_alpha(60),
        },
        popup_shadow: Shadow {
            offset: [0, 4],
            blur: 12,
            spread: 0,
            color: Color32::from_black_alpha(50),
        },
        ..base
    }
}

fn widgets(palette: &Palette, sizes: Sizes) -> Widgets {
    let radius = CornerRadius::same((sizes.body * 0.4) as u8);
    let of = |fill: Colour, border: Colour, text: Colour| WidgetVisuals {
        bg_fill: color(fill),
        weak_bg_fill: color(fill),
        bg_stroke: Stroke::new(1.0, color(border)),
        corner_radius: radius,
        fg_stroke: Stroke::new(1.0, color(text)),
        expansion: 0.0,
    };
    let lit = palette.raised.mixed(palette.accent, 0.16);
    Widgets {
        noninteractive: of(palette.panel, palette.grid, palette.text),
        inactive: of(palette.raised, palette.raised, palette.text),
        hovered: of(lit, palette.accent, palette.text),
        active: of(
            palette.raised.mixed(palette.accent, 0.35),
            palette.accent,
            palette.text,
        ),
        open: of(lit, palette.divider, palette.text),
    }
}

//! A scene as PDF: vectors, and text that can be selected and searched.

use krilla::geom::Size;
use krilla::metadata::Metadata;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt as _, SvgSettings};

use crate::scene::Scene;

use super::error::ExportError;
use super::png::tree;

/// `scene` on a page of its own size, called `title`.
pub fn pdf(scene: &Scene, title: &str) -> Result<Vec<u8>, ExportError> {
    let refused = |why: String| ExportError::Picture { what: "PDF", why };
    let tree = tree(scene)?;
    let (width, height) = (scene.size.width, scene.size.height);
    let size = Size::from_wh(width, height)
        .ok_or_else(|| refused(format!("a page of {width} x {height} points is no page")))?;
    let settings = PageSettings::from_wh(width, height)
        .ok_or_else(|| refused(format!("a page of {width} x {height} points is no page")))?;
    let mut document = krilla::Document::new();
    document.set_metadata(
        Metadata::new()
            .title(title.to_owned())
            .creator("Shardscope".to_owned()),
    );
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    surface
        .draw_svg(&tree, size, SvgSettings::default())
        .ok_or_else(|| refused("the picture could not be drawn".to_owned()))?;
    surface.finish();
    page.finish();
    document
        .finish()
        .map_err(|error| refused(format!("{error:?}")))
}

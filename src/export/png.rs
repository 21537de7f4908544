//! A scene as PNG, and as the tree of shapes that PNG and PDF are made from.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

use crate::scene::{Scene, fonts};

use super::error::ExportError;
use super::svg::{Fonts, svg};

/// The longest side of a picture, in pixels: what viewers open without trouble.
const MOST_PIXELS: f32 = 16_384.0;

/// `scene` as PNG, `scale` pixels a point; less if the picture would be too large to open.
pub fn png(scene: &Scene, scale: f32) -> Result<Vec<u8>, ExportError> {
    pixels(scene, scale)?
        .encode_png()
        .map_err(|error| ExportError::Picture {
            what: "PNG",
            why: error.to_string(),
        })
}

/// `scene` in pixels, `scale` a point; less if the picture would be too large to open.
pub(super) fn pixels(scene: &Scene, scale: f32) -> Result<Pixmap, ExportError> {
    let tree = tree(scene)?;
    let longest = scene.size.width.max(scene.size.height).max(1.0);
    let scale = scale.min(MOST_PIXELS / longest);
    let side = |length: f32| (length * scale).round().max(1.0) as u32;
    let (width, height) = (side(scene.size.width), side(scene.size.height));
    let mut pixmap = Pixmap::new(width, height).ok_or_else(|| ExportError::Picture {
        what: "PNG",
        why: format!("{width} x {height} pixels do not fit into memory"),
    })?;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixmap.as_mut(),
    );
    Ok(pixmap)
}

/// `scene` in pixels, for the clipboard: width, height, and red, green, blue and opacity of each.
pub fn rgba(scene: &Scene, scale: f32) -> Result<([usize; 2], Vec<u8>), ExportError> {
    let pixmap = pixels(scene, scale)?;
    let size = [pixmap.width() as usize, pixmap.height() as usize];
    Ok((size, pixmap.take()))
}

/// Our own fonts, read once: pictures that move have many small parts.
static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut database = usvg::fontdb::Database::new();
    for file in [fonts::REGULAR, fonts::SEMI_BOLD] {
        database.load_font_data(file.to_vec());
    }
    database.set_sans_serif_family(fonts::FAMILY);
    Arc::new(database)
});

/// `scene` as resvg sees it, with our own font and no other.
pub(super) fn tree(scene: &Scene) -> Result<usvg::Tree, ExportError> {
    let options = usvg::Options {
        font_family: fonts::FAMILY.to_owned(),
        fontdb: Arc::clone(&FONTS),
        ..usvg::Options::default()
    };
    usvg::Tree::from_str(&svg(scene, Fonts::Named), &options).map_err(|error| {
        ExportError::Picture {
            what: "picture",
            why: error.to_string(),
        }
    })
}

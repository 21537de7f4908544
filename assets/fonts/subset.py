"""Cuts Inter down to what Shardscope draws, with tabular figures, and writes the table of advance widths.

    pip install fonttools
    python subset.py FOLDER_WITH_INTER_OTF

Writes Inter-Regular.otf and Inter-SemiBold.otf here, and ../../src/scene/advances.rs.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

HERE = Path(__file__).parent
RANGES = [
    (0x20, 0x7E),  # ASCII
    (0xA0, 0x17F),  # Latin-1 and Latin Extended-A
    (0x391, 0x3C9),  # Greek, for formulas
    (0x2010, 0x2026),  # punctuation
    (0x2030, 0x203A),
    (0x2070, 0x208E),  # superscripts and subscripts
    (0x2190, 0x21BB),  # arrows
    (0x2200, 0x2265),  # mathematics
    (0x2318, 0x2318),
    (0x23CE, 0x23FA),
    (0x25A0, 0x25FF),  # geometric shapes
    (0x2605, 0x2606),
    (0x2713, 0x2717),
]


def tabular(font: TTFont) -> dict[str, str]:
    """The glyphs that feature `tnum` puts in the place of others."""
    gsub = font["GSUB"].table
    lookups = {
        index
        for record in gsub.FeatureList.FeatureRecord
        if record.FeatureTag == "tnum"
        for index in record.Feature.LookupListIndex
    }
    mapping: dict[str, str] = {}
    for index in lookups:
        for table in gsub.LookupList.Lookup[index].SubTable:
            mapping.update(getattr(table, "ExtSubTable", table).mapping)
    return mapping


def subset(source: Path, target: Path) -> TTFont:
    font = TTFont(source, recalcTimestamp=False)
    figures = tabular(font)
    for table in font["cmap"].tables:
        for code in range(0x30, 0x3A):
            if code in table.cmap:
                table.cmap[code] = figures.get(table.cmap[code], table.cmap[code])
    options = Options()
    options.layout_features = ["kern", "mark", "mkmk", "ccmp"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 11, 13, 14, 16, 17]
    options.hinting = False
    options.desubroutinize = False
    options.notdef_outline = True
    cutter = Subsetter(options)
    cutter.populate(unicodes=[code for low, high in RANGES for code in range(low, high + 1)])
    cutter.subset(font)
    font.save(target, reorderTables=True)
    return TTFont(target)


def advances(font: TTFont) -> dict[int, int]:
    metrics = font["hmtx"].metrics
    return {code: metrics[name][0] for code, name in font.getBestCmap().items()}


def rust_table(regular: TTFont, semi_bold: TTFont) -> str:
    widths = [advances(regular), advances(semi_bold)]
    entries = [f"({code}, {widths[0][code]}, {widths[1][code]})" for code in sorted(widths[0])]
    rows = [", ".join(entries[at : at + 5]) for at in range(0, len(entries), 5)]
    body = "\n".join(f"    {row}," for row in rows)
    return (
        "//! How far each character of the shipped font advances. Written by `assets/fonts/subset.py`.\n\n"
        f"/// Font units in an em.\npub(super) const UNITS_PER_EM: f32 = {regular['head'].unitsPerEm}.0;\n\n"
        "/// Character, advance in regular, advance in semi-bold; by character.\n"
        "#[rustfmt::skip]\n"
        f"pub(super) const ADVANCES: &[(u32, u16, u16)] = &[\n{body}\n];\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    fonts = [subset(folder / f"Inter-{weight}.otf", HERE / f"Inter-{weight}.otf") for weight in ("Regular", "SemiBold")]
    table = HERE.parent.parent / "src" / "scene" / "advances.rs"
    table.parent.mkdir(exist_ok=True)
    table.write_text(rust_table(*fonts))


main()

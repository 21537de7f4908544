//! `Z = GeLU(XA) B`: `A` by columns and then `B` by rows, so that one all-reduce is enough.

use crate::model::rng::Rng;

use super::Way;
use super::matrix::{Matrix, number};
use super::script::{HIDDEN, Script, TOKENS, WIDE};
use super::step::{Group, Reach, Share, Sign, Step, Tile};

/// The curve of `GeLU` in its tanh form, `0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
fn gelu(x: f32) -> f32 {
    let inner = INNER * (x + CUBE * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// Its slope.
fn slope(x: f32) -> f32 {
    let t = (INNER * (x + CUBE * x * x * x)).tanh();
    let inner = INNER * (1.0 + 3.0 * CUBE * x * x);
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner
}

const INNER: f32 = 0.797_884_6;
const CUBE: f32 = 0.044_715;

struct Numbers {
    x: Matrix,
    a: Matrix,
    h: Matrix,
    g: Matrix,
    b: Matrix,
}

/// The steps on `tp` GPUs.
pub(super) fn steps(way: Way, tp: usize, rng: &mut Rng) -> Vec<Step> {
    let x = Matrix::whole_numbers((TOKENS, HIDDEN), rng);
    let a = Matrix::signs((HIDDEN, WIDE), rng);
    let b = Matrix::signs((WIDE, HIDDEN), rng);
    let h = x.times(&a);
    let g = h.map(gelu);
    let numbers = Numbers { x, a, h, g, b };
    match way {
        Way::Forward => forward(Script::new(tp), &numbers),
        Way::Backward => {
            let dz = Matrix::signs((TOKENS, HIDDEN), rng);
            backward(Script::new(tp), &numbers, &dz)
        }
    }
}

fn forward(mut script: Script, numbers: &Numbers) -> Vec<Step> {
    let Numbers { x, a, g, b, .. } = numbers;
    let (cut, down) = (script.by_columns(), script.by_rows());
    let z = g.times(b);
    let wholes = [
        Tile::whole("X", x),
        Tile::new("A", cut, a),
        Tile::new("B", down, b),
    ];
    let words = "The MLP of a layer: X times A, GeLU on every number, times B. A is cut by columns and B by \
                 rows, so that what comes out of the one lies where the other needs it.";
    let [x_tile, a_tile, b_tile] = wholes.clone();
    let all = vec![x_tile, a_tile, b_tile, Tile::whole("Z", &z)];
    script.still(
        ("Z = GeLU(XA) B, uncut", words.to_owned()),
        vec![Group::tiles(all)],
    );
    let (firsts, seconds) = (script.columns(a), script.rows(b));
    let words =
        "X goes to every GPU. Columns of A and the rows of B that meet them go to the same GPU.";
    script.hand_out(
        ("A by columns, B by rows", words.to_owned()),
        wholes.to_vec(),
        |gpu| {
            vec![
                Tile::whole("X", x),
                Tile::new("A", Share::Piece(gpu), &firsts[gpu]),
                Tile::new("B", Share::Piece(gpu), &seconds[gpu]),
            ]
        },
    );
    let hidden = script.each(|gpu| x.times(&firsts[gpu]));
    let words = "Each GPU makes its own columns of H = XA: finished numbers, as no sum was cut.";
    script.work(("H, by columns", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::whole("X", x),
            Tile::new("A", Share::Piece(gpu), &firsts[gpu]),
            Tile::new("H", Share::Piece(gpu), &hidden[gpu]),
        )]
    });
    let bent = script.each(|gpu| hidden[gpu].map(gelu));
    let words = "GeLU acts on each number by itself, so each GPU bends its own columns. Nothing is sent here.";
    script.work(("GeLU, where H lies", words.to_owned()), |gpu| {
        vec![Group::each(
            Tile::new("H", Share::Piece(gpu), &hidden[gpu]),
            ("GeLU", Reach::Entry),
            Tile::new("G", Share::Piece(gpu), &bent[gpu]),
        )]
    });
    other_way_round(&mut script, x, a);
    let sums = script.each(|gpu| bent[gpu].times(&seconds[gpu]));
    let parts = script.each(|gpu| Tile::new("Z", script.partial(gpu), &sums[gpu]));
    let words = "Its columns of G meet just the rows of B that it holds. Now the sums are cut: every GPU has a \
                 part of every entry of Z.";
    script.work(("Z, a part on each", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("G", Share::Piece(gpu), &bent[gpu]),
            Tile::new("B", Share::Piece(gpu), &seconds[gpu]),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&sums);
    let words = "Two products, one all-reduce: the parts of Z are added, and every GPU has the layer's output.";
    script.all_reduce(
        ("The one all-reduce forward", words.to_owned()),
        (&parts, Tile::whole("Z", &together)),
        (Sign::Plus, 1),
    );
    script.compare("", &[("Z", Share::Whole, together, z)]);
    script.into_steps()
}

/// Why rows first would cost an all-reduce more, with the first column of `H`.
fn other_way_round(script: &mut Script, x: &Matrix, a: &Matrix) {
    if script.tp == 1 {
        return;
    }
    let (slices, pieces) = (script.columns(x), script.rows(a));
    let sums = script.each(|gpu| slices[gpu].times(&pieces[gpu].of_columns(0..1)));
    let bent = script.each(|gpu| sums[gpu].map(gelu));
    let right = Matrix::sum(&sums).map(gelu);
    let wrong = Matrix::sum(&bent);
    let apart = |row: usize| (right.at(row, 0) - wrong.at(row, 0)).abs();
    let row = (0..TOKENS)
        .max_by(|&one, &other| apart(one).total_cmp(&apart(other)))
        .unwrap_or(0);
    let words = format!(
        "The first column of H, if A were cut by rows: GeLU of the sum is not the sum of GeLUs (row {}: {} \
         against {}). The parts would have to meet in an all-reduce before GeLU. By columns they need not.",
        row + 1,
        number(right.at(row, 0), 2),
        number(wrong.at(row, 0), 2)
    );
    let part = |name: &str, list: &[Matrix]| -> Vec<Tile> {
        let tile = |(gpu, matrix): (usize, &Matrix)| Tile::new(name, Share::Partial(gpu), matrix);
        list.iter().enumerate().map(tile).collect()
    };
    let groups = vec![
        Group::join(
            part("H", &sums),
            Sign::Plus,
            Tile::whole("H", &Matrix::sum(&sums)),
        ),
        Group::tiles(vec![Tile::whole("GeLU(H)", &right)]),
        Group::join(
            part("GeLU(H)", &bent),
            Sign::Plus,
            Tile::whole("not GeLU(H)", &wrong),
        ),
    ];
    script.still(("Why not rows first", words), groups);
}

fn backward(mut script: Script, numbers: &Numbers, dz: &Matrix) -> Vec<Step> {
    let Numbers { x, a, h, g, b } = numbers;
    let (cut, down) = (script.by_columns(), script.by_rows());
    let dh = dz
        .times(&b.transposed())
        .zip(&h.map(slope), |own, other| own * other);
    let uncut = [
        x.transposed().times(&dh),
        g.transposed().times(dz),
        dh.times(&a.transposed()),
    ];
    let whole = || Tile::whole("dZ", dz);
    let words = "Forward left X, H and G where they were made. Backward, dZ comes to every GPU whole, and goes \
                 through B, GeLU and A.";
    let known = vec![
        Tile::whole("X", x),
        Tile::new("A", cut, a),
        Tile::new("H", cut, h),
        Tile::new("B", down, b),
        whole(),
    ];
    script.still(
        ("What there is", words.to_owned()),
        vec![Group::tiles(known)],
    );
    let (firsts, seconds) = (script.columns(a), script.rows(b));
    let (hidden, bent) = (script.columns(h), script.columns(g));
    let of_b = script.each(|gpu| bent[gpu].transposed().times(dz));
    let words = "The gradient of its rows of B: its columns of G, and dZ. All of it is here.";
    script.work(("dB stays where B is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("Gᵀ", Share::Piece(gpu), &bent[gpu].transposed()),
            whole(),
            Tile::new("dB", Share::Piece(gpu), &of_b[gpu]),
        )]
    });
    let of_g = script.each(|gpu| dz.times(&seconds[gpu].transposed()));
    let words = "The gradient of its columns of G, whole: B was cut by rows, so dG comes out cut by columns.";
    script.work(("dG, by columns", words.to_owned()), |gpu| {
        vec![Group::product(
            whole(),
            Tile::new("Bᵀ", Share::Piece(gpu), &seconds[gpu].transposed()),
            Tile::new("dG", Share::Piece(gpu), &of_g[gpu]),
        )]
    });
    let of_h = script.each(|gpu| of_g[gpu].zip(&hidden[gpu].map(slope), |own, other| own * other));
    let words =
        "Backwards through GeLU each number is multiplied by the slope at its own place in H.";
    script.work(("dH, number by number", words.to_owned()), |gpu| {
        let slopes = hidden[gpu].map(slope);
        vec![Group::join(
            vec![
                Tile::new("dG", Share::Piece(gpu), &of_g[gpu]),
                Tile::new("slope", Share::Piece(gpu), &slopes),
            ],
            Sign::Times,
            Tile::new("dH", Share::Piece(gpu), &of_h[gpu]),
        )]
    });
    through_the_first(script, (x, &firsts), (&of_h, &of_b), uncut)
}

/// The last steps backward: `dA`, the parts of `dX`, and their sum.
fn through_the_first(
    mut script: Script,
    (x, firsts): (&Matrix, &[Matrix]),
    (of_h, of_b): (&[Matrix], &[Matrix]),
    [da, db, dx]: [Matrix; 3],
) -> Vec<Step> {
    let xt = x.transposed();
    let of_a = script.each(|gpu| xt.times(&of_h[gpu]));
    let words = "The gradient of its columns of A: X, and its columns of dH. All of it is here.";
    script.work(("dA stays where A is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::whole("Xᵀ", &xt),
            Tile::new("dH", Share::Piece(gpu), &of_h[gpu]),
            Tile::new("dA", Share::Piece(gpu), &of_a[gpu]),
        )]
    });
    let sums = script.each(|gpu| of_h[gpu].times(&firsts[gpu].transposed()));
    let parts = script.each(|gpu| Tile::new("dX", script.partial(gpu), &sums[gpu]));
    let words =
        "X went into all columns of H, so dX is a sum over all of them, and each GPU has a part.";
    script.work(("dX, a part on each", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("dH", Share::Piece(gpu), &of_h[gpu]),
            Tile::new("Aᵀ", Share::Piece(gpu), &firsts[gpu].transposed()),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&sums);
    let words =
        "One all-reduce backward too, of the same size as forward: dX for the layer before.";
    script.all_reduce(
        ("The one all-reduce backward", words.to_owned()),
        (&parts, Tile::whole("dX", &together)),
        (Sign::Plus, 1),
    );
    let (cut, down) = (script.by_columns(), script.by_rows());
    script.compare(
        "",
        &[
            ("dA", cut, Matrix::beside(&of_a), da),
            ("dB", down, Matrix::stacked(of_b), db),
            ("dX", Share::Whole, together, dx),
        ],
    );
    script.into_steps()
}

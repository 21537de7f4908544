//! `Y = XA` with `A` cut by columns: outputs lie side by side, and only the gradient of `X` is a sum.

use crate::model::rng::Rng;

use super::Way;
use super::matrix::Matrix;
use super::script::{HIDDEN, Script, TOKENS, WIDE};
use super::step::{Group, Share, Sign, Step, Tile};

struct Numbers {
    x: Matrix,
    a: Matrix,
    y: Matrix,
}

/// The steps on `tp` GPUs.
pub(super) fn steps(way: Way, tp: usize, rng: &mut Rng) -> Vec<Step> {
    let x = Matrix::whole_numbers((TOKENS, HIDDEN), rng);
    let a = Matrix::whole_numbers((HIDDEN, WIDE), rng);
    let y = x.times(&a);
    let numbers = Numbers { x, a, y };
    match way {
        Way::Forward => forward(Script::new(tp), &numbers),
        Way::Backward => {
            let dy = Matrix::whole_numbers((TOKENS, WIDE), rng);
            backward(Script::new(tp), &numbers, &dy)
        }
    }
}

fn forward(mut script: Script, Numbers { x, a, y }: &Numbers) -> Vec<Step> {
    let cut = script.by_columns();
    let product = Group::product(
        Tile::whole("X", x),
        Tile::new("A", cut, a),
        Tile::new("Y", cut, y),
    );
    let words = "An entry of Y is a row of X times a column of A, summed. So a column of Y needs \
                 all of X, but only its own column of A.";
    script.uncut(("Y = XA, uncut", words.to_owned()), vec![product]);
    let pieces = script.columns(a);
    let words = format!(
        "A is cut by columns: each GPU holds {} of its {WIDE}. X is not cut; every GPU has a copy.",
        WIDE / script.tp
    );
    script.hand_out(
        ("A cut by columns", words),
        vec![Tile::whole("X", x), Tile::new("A", cut, a)],
        |gpu| {
            let piece = Tile::new("A", Share::Piece(gpu), &pieces[gpu]);
            vec![Tile::whole("X", x), piece]
        },
    );
    let outputs: Vec<Matrix> = pieces.iter().map(|piece| x.times(piece)).collect();
    let words = "Each GPU multiplies X by the columns it holds and has whole, finished columns of Y. Nobody \
                 waits for anybody.";
    script.work(("Each its own columns of Y", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::whole("X", x),
            Tile::new("A", Share::Piece(gpu), &pieces[gpu]),
            Tile::new("Y", Share::Piece(gpu), &outputs[gpu]),
        )]
    });
    let parts = script.each(|gpu| Tile::new("Y", Share::Piece(gpu), &outputs[gpu]));
    let together = Matrix::beside(&outputs);
    let words = "If Y is wanted whole, an all-gather puts the columns side by side. Inside a layer \
                 nobody asks for it: what follows goes on with Y as it is cut.";
    script.all_gather(
        ("All-gather, if Y is wanted whole", words.to_owned()),
        &parts,
        Tile::new("Y", cut, &together),
    );
    script.compare(
        " No sum was split, so none is rounded in another way.",
        &[("Y", cut, together, y.clone())],
    );
    script.into_steps()
}

fn backward(mut script: Script, Numbers { x, a, .. }: &Numbers, dy: &Matrix) -> Vec<Step> {
    let (cut, down) = (script.by_columns(), script.by_rows());
    let (xt, at) = (x.transposed(), a.transposed());
    let (da, dx) = (xt.times(dy), dy.times(&at));
    let groups = vec![
        Group::product(
            Tile::whole("Xᵀ", &xt),
            Tile::new("dY", cut, dy),
            Tile::new("dA", cut, &da),
        ),
        Group::product(
            Tile::new("dY", cut, dy),
            Tile::new("Aᵀ", down, &at),
            Tile::whole("dX", &dx),
        ),
    ];
    let words = "Backward, the gradient dY comes in and two products are made of it: dA, X transposed times dY, for the \
                 weights, and dX, dY times A transposed, for the layer before.";
    script.uncut(("dA and dX, uncut", words.to_owned()), groups);
    let (pieces, slices) = (script.columns(a), script.columns(dy));
    let words = "Each GPU still has X and its columns of A, and gets the gradient of the columns of Y \
                 that it made.";
    script.hand_out(
        ("dY is cut as Y was", words.to_owned()),
        vec![
            Tile::whole("X", x),
            Tile::new("A", cut, a),
            Tile::new("dY", cut, dy),
        ],
        |gpu| {
            vec![
                Tile::whole("X", x),
                Tile::new("A", Share::Piece(gpu), &pieces[gpu]),
                Tile::new("dY", Share::Piece(gpu), &slices[gpu]),
            ]
        },
    );
    let weights: Vec<Matrix> = slices.iter().map(|slice| xt.times(slice)).collect();
    let words = "The gradient of a column of A needs X and the same column of dY. Both are here: each GPU \
                 has the whole gradient of its own weights, and sends nothing.";
    script.work(("dA stays where A is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::whole("Xᵀ", &xt),
            Tile::new("dY", Share::Piece(gpu), &slices[gpu]),
            Tile::new("dA", Share::Piece(gpu), &weights[gpu]),
        )]
    });
    let together = sum_of_inputs(&mut script, &pieces, &slices);
    script.compare(
        "",
        &[
            ("dA", cut, Matrix::beside(&weights), da),
            ("dX", Share::Whole, together, dx),
        ],
    );
    script.into_steps()
}

/// Each GPU's part of `dX`, and their sum.
fn sum_of_inputs(script: &mut Script, pieces: &[Matrix], slices: &[Matrix]) -> Matrix {
    let inputs = script.each(|gpu| slices[gpu].times(&pieces[gpu].transposed()));
    let parts = script.each(|gpu| Tile::new("dX", script.partial(gpu), &inputs[gpu]));
    let words = "X went into every column of Y, so its gradient is a sum over all columns. A GPU can sum \
                 over its own only: what it has is a partial sum (dashed).";
    script.work(("Each a part of dX", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("dY", Share::Piece(gpu), &slices[gpu]),
            Tile::new("Aᵀ", Share::Piece(gpu), &pieces[gpu].transposed()),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&inputs);
    let words = "The one all-reduce of the backward pass: entry by entry the parts are added, and every \
                 GPU gets the sum. Megatron calls this f: nothing forward, an all-reduce backward.";
    script.all_reduce(
        ("All-reduce of dX", words.to_owned()),
        (&parts, Tile::whole("dX", &together)),
        (Sign::Plus, 1),
    );
    together
}

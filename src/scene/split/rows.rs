//! `Y = XA` with `A` cut by rows and `X` by columns: every GPU has a partial sum of all of `Y`.

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
    let x = Matrix::whole_numbers((TOKENS, WIDE), rng);
    let a = Matrix::whole_numbers((WIDE, HIDDEN), rng);
    let y = x.times(&a);
    let numbers = Numbers { x, a, y };
    match way {
        Way::Forward => forward(Script::new(tp), &numbers),
        Way::Backward => {
            let dy = Matrix::whole_numbers((TOKENS, HIDDEN), rng);
            backward(Script::new(tp), &numbers, &dy)
        }
    }
}

fn forward(mut script: Script, Numbers { x, a, y }: &Numbers) -> Vec<Step> {
    let (cut, down) = (script.by_columns(), script.by_rows());
    let wholes = [Tile::new("X", cut, x), Tile::new("A", down, a)];
    let [left, top] = wholes.clone();
    let words = format!(
        "Every entry of Y is a sum of {WIDE} products. Cut that sum: the first columns of X meet the first \
         rows of A only, the last ones the last."
    );
    script.uncut(
        ("Y = XA, uncut", words),
        vec![Group::product(left, top, Tile::whole("Y", y))],
    );
    let (slices, pieces) = (script.columns(x), script.rows(a));
    let piece = |gpu: usize| {
        [
            Tile::new("X", Share::Piece(gpu), &slices[gpu]),
            Tile::new("A", Share::Piece(gpu), &pieces[gpu]),
        ]
    };
    let words = format!(
        "A is cut by rows, {} to a GPU, and X by columns to match. After a layer cut by columns X lies \
         just so already.",
        WIDE / script.tp
    );
    script.hand_out(
        ("A cut by rows, X by columns", words),
        wholes.to_vec(),
        |gpu| piece(gpu).to_vec(),
    );
    let sums = script.each(|gpu| slices[gpu].times(&pieces[gpu]));
    let parts = script.each(|gpu| Tile::new("Y", script.partial(gpu), &sums[gpu]));
    let words = "Each GPU has a number for every entry of Y, but it summed over its own rows of A only: \
                 partial sums (dashed), of no use alone.";
    script.work(("Each a part of every sum", words.to_owned()), |gpu| {
        let [left, top] = piece(gpu);
        vec![Group::product(left, top, parts[gpu].clone())]
    });
    let together = Matrix::sum(&sums);
    let words = "The parts meet and are added, entry by entry; every GPU leaves with the same whole Y. \
                 Nobody can go on before it has come.";
    script.all_reduce(
        ("All-reduce of Y", words.to_owned()),
        (&parts, Tile::whole("Y", &together)),
        (Sign::Plus, 1),
    );
    script.compare("", &[("Y", Share::Whole, together, y.clone())]);
    script.into_steps()
}

fn backward(mut script: Script, Numbers { x, a, .. }: &Numbers, dy: &Matrix) -> Vec<Step> {
    let (cut, down) = (script.by_columns(), script.by_rows());
    let (xt, at) = (x.transposed(), a.transposed());
    let (da, dx) = (xt.times(dy), dy.times(&at));
    let whole = || Tile::whole("dY", dy);
    let groups = vec![
        Group::product(
            Tile::new("Xᵀ", down, &xt),
            whole(),
            Tile::new("dA", down, &da),
        ),
        Group::product(
            whole(),
            Tile::new("Aᵀ", cut, &at),
            Tile::new("dX", cut, &dx),
        ),
    ];
    let words = "Backward, dA is X transposed times dY, and dX is dY times A transposed. A row of dA needs a column of X and all of dY; a column \
                 of dX needs a row of A and all of dY.";
    script.uncut(("dA and dX, uncut", words.to_owned()), groups);
    let (slices, pieces) = (script.columns(x), script.rows(a));
    let words = "Forward, Y was a plain sum of the parts, so each part has the gradient of the whole: dY \
                 comes to every GPU as it is, with no communication.";
    script.hand_out(
        ("dY goes to every GPU", words.to_owned()),
        vec![Tile::new("X", cut, x), Tile::new("A", down, a), whole()],
        |gpu| {
            vec![
                Tile::new("X", Share::Piece(gpu), &slices[gpu]),
                Tile::new("A", Share::Piece(gpu), &pieces[gpu]),
                whole(),
            ]
        },
    );
    let weights = script.each(|gpu| slices[gpu].transposed().times(dy));
    let words =
        "The gradient of its own rows of A: its own columns of X, and dY. All of it is here.";
    script.work(("dA stays where A is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("Xᵀ", Share::Piece(gpu), &slices[gpu].transposed()),
            whole(),
            Tile::new("dA", Share::Piece(gpu), &weights[gpu]),
        )]
    });
    let inputs = script.each(|gpu| dy.times(&pieces[gpu].transposed()));
    let words = "The gradient of its own columns of X, whole. It stays cut by columns, just as a layer cut by \
                 columns before it wants it. No all-reduce: Megatron calls this g, an all-reduce forward, \
                 nothing backward.";
    script.work(("dX comes out cut as X is", words.to_owned()), |gpu| {
        vec![Group::product(
            whole(),
            Tile::new("Aᵀ", Share::Piece(gpu), &pieces[gpu].transposed()),
            Tile::new("dX", Share::Piece(gpu), &inputs[gpu]),
        )]
    });
    let pairs = [
        ("dA", down, Matrix::stacked(&weights), da),
        ("dX", cut, Matrix::beside(&inputs), dx),
    ];
    script.compare(" Nothing was sent.", &pairs);
    script.into_steps()
}

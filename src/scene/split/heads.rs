//! Attention: whole heads on each GPU, QKV by columns and the output projection by rows, one all-reduce.

use std::ops::Range;

use crate::model::rng::Rng;

use super::Way;
use super::head::{Back, Head, letter};
use super::matrix::Matrix;
use super::script::{HIDDEN, Script};
use super::step::{Group, Reach, Share, Sign, Step, Tile};

/// Tokens of this story: scores grow with their square.
const TOKENS: usize = 3;

/// The layer's matrices, and all that the uncut pass makes of them.
struct Layer {
    heads: usize,
    x: Matrix,
    w: Matrix,
    o: Matrix,
    qkv: Matrix,
    all: Vec<Head>,
    c: Matrix,
}

impl Layer {
    fn new(heads: usize, rng: &mut Rng) -> Self {
        let x = Matrix::signs((TOKENS, HIDDEN), rng);
        let w = Matrix::signs((HIDDEN, 3 * HIDDEN), rng);
        let o = Matrix::signs((HIDDEN, HIDDEN), rng);
        let qkv = x.times(&w);
        let all = heads_of(0..heads, &qkv);
        let c = Matrix::beside(&all.iter().map(|head| head.c.clone()).collect::<Vec<_>>());
        Self {
            heads,
            x,
            w,
            o,
            qkv,
            all,
            c,
        }
    }

    /// What the columns of `W` make: queries, keys and values, head by head.
    fn columns(&self, heads: Range<usize>) -> Vec<String> {
        let width = HIDDEN / self.heads;
        let names =
            heads.flat_map(|head| ["q", "k", "v"].map(|part| format!("{part}{}", letter(head))));
        names
            .flat_map(|name| std::iter::repeat_n(name, width))
            .collect()
    }
}

/// Heads from their columns, which lie side by side.
fn heads_of(heads: Range<usize>, qkv: &Matrix) -> Vec<Head> {
    let width = qkv.shape().1 / heads.len().max(1);
    let own = |(place, head): (usize, usize)| {
        Head::new(head, &qkv.of_columns(place * width..(place + 1) * width))
    };
    heads.enumerate().map(own).collect()
}

/// The steps on `tp` GPUs, which divides `heads`.
pub(super) fn steps(way: Way, (tp, heads): (usize, usize), rng: &mut Rng) -> Vec<Step> {
    let layer = Layer::new(heads, rng);
    match way {
        Way::Forward => forward(Script::new(tp), &layer),
        Way::Backward => {
            let dy = Matrix::signs((TOKENS, HIDDEN), rng);
            backward(Script::new(tp), &layer, &dy)
        }
    }
}

fn wholes(script: &Script, layer: &Layer) -> [Tile; 3] {
    [
        Tile::whole("X", &layer.x),
        Tile::new("W", script.by_columns(), &layer.w).with_columns(&layer.columns(0..layer.heads)),
        Tile::new("O", script.by_rows(), &layer.o),
    ]
}

fn forward(mut script: Script, layer: &Layer) -> Vec<Step> {
    let y = layer.c.times(&layer.o);
    let [x, w, o] = wholes(&script, layer);
    let words = format!(
        "W makes queries, keys and values of X, for {} heads, {}; O mixes what the heads found. A head needs its \
         own queries and keys and nobody else's: so heads can be cut apart, but no head in two.",
        layer.heads,
        (0..layer.heads)
            .map(|head| letter(head).to_string())
            .collect::<Vec<_>>()
            .join(", ")
    );
    let all = vec![x.clone(), w.clone(), o.clone(), Tile::whole("Y", &y)];
    script.still(("Attention, uncut", words), vec![Group::tiles(all)]);
    let own = script.each(|gpu| script.range(gpu, layer.heads));
    let (firsts, seconds) = (script.columns(&layer.w), script.rows(&layer.o));
    let names = script.each(|gpu| layer.columns(own[gpu].clone()));
    let piece =
        |gpu: usize| Tile::new("W", Share::Piece(gpu), &firsts[gpu]).with_columns(&names[gpu]);
    let words =
        "Each GPU gets the columns of W that make its heads, and the rows of O that take them in.";
    script.hand_out(
        ("Whole heads to each GPU", words.to_owned()),
        vec![x, w, o],
        |gpu| {
            let rows = Tile::new("O", Share::Piece(gpu), &seconds[gpu]);
            vec![Tile::whole("X", &layer.x), piece(gpu), rows]
        },
    );
    let qkv = script.each(|gpu| layer.x.times(&firsts[gpu]));
    let words = "A product cut by columns, as in the MLP: each GPU makes the queries, keys and values of its heads.";
    script.work(("Queries, keys, values", words.to_owned()), |gpu| {
        let result = Tile::new("QKV", Share::Piece(gpu), &qkv[gpu]);
        vec![Group::product(
            Tile::whole("X", &layer.x),
            piece(gpu),
            result,
        )]
    });
    let heads = script.each(|gpu| heads_of(own[gpu].clone(), &qkv[gpu]));
    within(&mut script, &heads);
    let found = script.each(|gpu| {
        let parts: Vec<Matrix> = heads[gpu].iter().map(|head| head.c.clone()).collect();
        Matrix::beside(&parts)
    });
    let sums = script.each(|gpu| found[gpu].times(&seconds[gpu]));
    let parts = script.each(|gpu| Tile::new("Y", script.partial(gpu), &sums[gpu]));
    let words = "C lies cut by columns, O by rows: every GPU has a part of every entry of Y.";
    script.work(("The output projection", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("C", Share::Piece(gpu), &found[gpu]),
            Tile::new("O", Share::Piece(gpu), &seconds[gpu]),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&sums);
    let words = "Scores and softmax needed nobody else; one all-reduce adds what the heads found.";
    script.all_reduce(
        ("The one all-reduce of attention", words.to_owned()),
        (&parts, Tile::whole("Y", &together)),
        (Sign::Plus, 1),
    );
    script.compare("", &[("Y", Share::Whole, together, y)]);
    script.into_steps()
}

/// What happens within the heads.
fn within(script: &mut Script, heads: &[Vec<Head>]) {
    let words = "Every query times every key of the same head. All of a head's columns are on one GPU, so the sums \
                 are whole.";
    script.work(("Scores, head by head", words.to_owned()), |gpu| {
        let group = |head: &Head| {
            Group::product(
                head.tile("Q", gpu, &head.q),
                head.tile("Kᵀ", gpu, &head.k.transposed()),
                head.tile("S", gpu, &head.s),
            )
        };
        heads[gpu].iter().map(group).collect()
    });
    let words = "Scores are divided by √d; each token looks at itself and at those before it. A softmax needs a \
                 whole row of whole scores: half a head would need an all-reduce here, of every score.";
    script.work(("Softmax, row by row", words.to_owned()), |gpu| {
        let group = |head: &Head| {
            Group::each(
                head.tile("S", gpu, &head.s),
                ("softmax", Reach::Past),
                head.tile("P", gpu, &head.p),
            )
            .telling(|row, column| head.softmax_told(row, column))
        };
        heads[gpu].iter().map(group).collect()
    });
    let words = "Each token takes of the values what its row of P says.";
    script.work(("Values, weighed", words.to_owned()), |gpu| {
        let group = |head: &Head| {
            Group::product(
                head.tile("P", gpu, &head.p),
                head.tile("V", gpu, &head.v),
                head.tile("C", gpu, &head.c),
            )
        };
        heads[gpu].iter().map(group).collect()
    });
}

fn backward(mut script: Script, layer: &Layer, dy: &Matrix) -> Vec<Step> {
    let [x, w, o] = wholes(&script, layer);
    let whole = || Tile::whole("dY", dy);
    let words = "Backward, dY comes to every GPU whole: Y was a plain sum of the parts. It goes through O, the \
                 heads, and W.";
    let found = Tile::new("C", script.by_columns(), &layer.c);
    script.still(
        ("What there is", words.to_owned()),
        vec![Group::tiles(vec![x, w, found, o, whole()])],
    );
    let own = script.each(|gpu| script.range(gpu, layer.heads));
    let (firsts, seconds) = (script.columns(&layer.w), script.rows(&layer.o));
    let heads = script.each(|gpu| heads_of(own[gpu].clone(), &script.columns(&layer.qkv)[gpu]));
    let found = script.columns(&layer.c);
    let of_o = script.each(|gpu| found[gpu].transposed().times(dy));
    let words = "The gradient of its rows of O: its columns of C, and dY.";
    script.work(("dO stays where O is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("Cᵀ", Share::Piece(gpu), &found[gpu].transposed()),
            whole(),
            Tile::new("dO", Share::Piece(gpu), &of_o[gpu]),
        )]
    });
    let of_c = script.each(|gpu| dy.times(&seconds[gpu].transposed()));
    let words = "The gradient of what its heads found comes out whole, cut by columns.";
    script.work(("dC, by heads", words.to_owned()), |gpu| {
        vec![Group::product(
            whole(),
            Tile::new("Oᵀ", Share::Piece(gpu), &seconds[gpu].transposed()),
            Tile::new("dC", Share::Piece(gpu), &of_c[gpu]),
        )]
    });
    let backs = back_through(&mut script, &heads, &of_c);
    let of_qkv = script.each(|gpu| {
        let parts: Vec<Matrix> = backs[gpu]
            .iter()
            .flat_map(|back| [back.dq.clone(), back.dk.clone(), back.dv.clone()])
            .collect();
        Matrix::beside(&parts)
    });
    through_w(&mut script, layer, (&firsts, &of_qkv), (&of_o, dy));
    script.into_steps()
}

/// Backwards through the heads: nothing leaves a GPU.
fn back_through(script: &mut Script, heads: &[Vec<Head>], of_c: &[Matrix]) -> Vec<Vec<Back>> {
    let slice = |gpu: usize, place: usize| {
        let width = of_c[gpu].shape().1 / heads[gpu].len().max(1);
        of_c[gpu].of_columns(place * width..(place + 1) * width)
    };
    let backs = script.each(|gpu| {
        let back = |(place, head): (usize, &Head)| head.backward(&slice(gpu, place));
        heads[gpu].iter().enumerate().map(back).collect::<Vec<_>>()
    });
    let groups = |gpu: usize, group: &dyn Fn(usize, &Head, &Back) -> Group| -> Vec<Group> {
        let pairs = heads[gpu].iter().zip(&backs[gpu]).enumerate();
        pairs
            .map(|(place, (head, back))| group(place, head, back))
            .collect()
    };
    let words = "The gradient of the values: P upside down, times dC. Each head by itself.";
    script.work(("dV, head by head", words.to_owned()), |gpu| {
        groups(gpu, &|place, head, back| {
            Group::product(
                head.tile("Pᵀ", gpu, &head.p.transposed()),
                head.tile("dC", gpu, &slice(gpu, place)),
                head.tile("dV", gpu, &back.dv),
            )
        })
    });
    let words = "The gradient of the shares: dC times the values.";
    script.work(("dP, head by head", words.to_owned()), |gpu| {
        groups(gpu, &|place, head, back| {
            Group::product(
                head.tile("dC", gpu, &slice(gpu, place)),
                head.tile("Vᵀ", gpu, &head.v.transposed()),
                head.tile("dP", gpu, &back.dp),
            )
        })
    });
    let words = "Backwards through softmax: a whole row again, of one head.";
    script.work(("dS, row by row", words.to_owned()), |gpu| {
        groups(gpu, &|_, head, back| {
            Group::each(
                head.tile("dP", gpu, &back.dp),
                ("softmax′", Reach::Past),
                head.tile("dS", gpu, &back.ds),
            )
            .telling(|row, column| head.slope_told(back, row, column))
        })
    });
    let words = "The gradient of the queries: dS times the keys.";
    script.work(("dQ, head by head", words.to_owned()), |gpu| {
        groups(gpu, &|_, head, back| {
            Group::product(
                head.tile("dS", gpu, &back.ds),
                head.tile("K", gpu, &head.k),
                head.tile("dQ", gpu, &back.dq),
            )
        })
    });
    let words = "The gradient of the keys: dS upside down, times the queries.";
    script.work(("dK, head by head", words.to_owned()), |gpu| {
        groups(gpu, &|_, head, back| {
            Group::product(
                head.tile("dSᵀ", gpu, &back.ds.transposed()),
                head.tile("Q", gpu, &head.q),
                head.tile("dK", gpu, &back.dk),
            )
        })
    });
    backs
}

/// The last steps backward: `dW`, the parts of `dX`, their sum, and the same uncut.
fn through_w(
    script: &mut Script,
    layer: &Layer,
    (firsts, of_qkv): (&[Matrix], &[Matrix]),
    (of_o, dy): (&[Matrix], &Matrix),
) {
    let xt = layer.x.transposed();
    let of_w = script.each(|gpu| xt.times(&of_qkv[gpu]));
    let words =
        "The gradient of its columns of W: X, and the gradients of its queries, keys and values.";
    script.work(("dW stays where W is", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::whole("Xᵀ", &xt),
            Tile::new("dQKV", Share::Piece(gpu), &of_qkv[gpu]),
            Tile::new("dW", Share::Piece(gpu), &of_w[gpu]),
        )]
    });
    let sums = script.each(|gpu| of_qkv[gpu].times(&firsts[gpu].transposed()));
    let parts = script.each(|gpu| Tile::new("dX", script.partial(gpu), &sums[gpu]));
    let words = "X went into every head, so dX is a sum over all heads, and each GPU has a part.";
    script.work(("dX, a part on each", words.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("dQKV", Share::Piece(gpu), &of_qkv[gpu]),
            Tile::new("Wᵀ", Share::Piece(gpu), &firsts[gpu].transposed()),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&sums);
    let words =
        "One all-reduce backward, as in the MLP. Two forward and two backward make up a layer.";
    script.all_reduce(
        ("The one all-reduce backward", words.to_owned()),
        (&parts, Tile::whole("dX", &together)),
        (Sign::Plus, 1),
    );
    let dc = dy.times(&layer.o.transposed());
    let width = HIDDEN / layer.heads;
    let back = |(place, head): (usize, &Head)| {
        let back = head.backward(&dc.of_columns(place * width..(place + 1) * width));
        [back.dq, back.dk, back.dv]
    };
    let uncut: Vec<Matrix> = layer.all.iter().enumerate().flat_map(back).collect();
    let dqkv = Matrix::beside(&uncut);
    let pairs = [
        (
            "dW",
            script.by_columns(),
            Matrix::beside(&of_w),
            xt.times(&dqkv),
        ),
        (
            "dO",
            script.by_rows(),
            Matrix::stacked(of_o),
            layer.c.transposed().times(dy),
        ),
        (
            "dX",
            Share::Whole,
            together,
            dqkv.times(&layer.w.transposed()),
        ),
    ];
    script.compare("", &pairs);
}

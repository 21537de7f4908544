//! The vocabulary: the embedding cut by words, logits by words, and a loss that never puts the logits together.

use crate::model::rng::Rng;

use super::Way;
use super::matrix::{Matrix, factor, number};
use super::script::{HIDDEN, Script, TOKENS};
use super::step::{Group, Reach, Share, Sign, Step, Tile, Told};

/// The vocabulary.
const WORDS: [&str; 8] = ["a", "cat", "dog", "on", "rug", "sat", "the", "."];
/// The words of a text; each is to be followed by the next.
const TEXT: [usize; TOKENS + 1] = [6, 1, 5, 3, 0];

fn words() -> Vec<String> {
    WORDS.map(str::to_owned).to_vec()
}

fn tokens() -> Vec<String> {
    TEXT[..TOKENS]
        .iter()
        .map(|&word| WORDS[word].to_owned())
        .collect()
}

/// `[tokens, vocabulary]`: 1 at each token's word, `from` 0 for the words read, 1 for those to be told.
fn one_hot(from: usize) -> Matrix {
    Matrix::from_fn((TOKENS, WORDS.len()), |row, column| {
        if TEXT[row + from] == column { 1.0 } else { 0.0 }
    })
}

fn most(row: &[f32]) -> f32 {
    row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// A column that stands beside others, taken away from each of a matrix' columns, and the exponential.
fn raised(logits: &Matrix, most: &Matrix) -> Matrix {
    Matrix::from_fn(logits.shape(), |row, column| {
        (logits.at(row, column) - most.at(row, 0)).exp()
    })
}

/// What a loss is made from, for each token: its target's logit, and the sum of exponentials.
fn target_and_sum(logits: &Matrix, (most, targets): (&Matrix, &Matrix)) -> Matrix {
    let target = logits
        .zip(targets, |own, is| own * is)
        .per_row(|row| row.iter().sum());
    let sum = raised(logits, most).per_row(|row| row.iter().sum());
    Matrix::beside(&[target, sum])
}

/// Whether the word that follows a token is among those of a GPU, in words.
fn target_told(row: usize, targets: &Matrix) -> String {
    let word = WORDS[TEXT[row + 1]];
    let here = targets.per_row(|own| own.iter().sum()).at(row, 0) > 0.0;
    if here {
        format!("logit of “{word}”")
    } else {
        format!("“{word}” is not here")
    }
}

/// The sum of exponentials of a token's logits on a GPU.
fn powers_told(row: usize, (logits, most): (&Matrix, &Matrix)) -> Told {
    let power = |word: usize| {
        let power = logits.at(row, word) - most.at(row, 0);
        let sign = if word == 0 { "" } else { "+ " };
        format!("{sign}exp({})", number(power, 0))
    };
    ((0..logits.shape().1).map(power).collect(), "=")
}

/// A token's loss of its largest logit, its target's, and its sum.
fn loss_told(row: usize, known: &Matrix) -> Told {
    let number = |column: usize| known.text(row, column);
    let terms = vec![
        format!("ln {}", number(2)),
        format!("+ {}", factor(&number(0))),
        format!("− {}", factor(&number(1))),
    ];
    (terms, "=")
}

/// The gradient of a logit so far under the largest, of which `sum` is the sum of exponentials.
fn slope_told((power, target): (f32, f32), sum: &str) -> Told {
    let share = format!("(exp({}) / {sum}", number(power, 0));
    let target = format!("− {}) / {TOKENS}", number(target, 0));
    (vec![share, target], "=")
}

/// `ln(sum) + max − target` of each token.
fn losses(most: &Matrix, both: &Matrix) -> Matrix {
    Matrix::from_fn((TOKENS, 1), |row, _| {
        both.at(row, 1).ln() + most.at(row, 0) - both.at(row, 0)
    })
}

/// The gradient of the mean loss by the logits: softmax, less 1 at the target, over the tokens.
fn of_logits(logits: &Matrix, (most, sums): (&Matrix, &Matrix), targets: &Matrix) -> Matrix {
    let powers = raised(logits, most);
    Matrix::from_fn(logits.shape(), |row, column| {
        (powers.at(row, column) / sums.at(row, 1) - targets.at(row, column)) / TOKENS as f32
    })
}

/// The steps on `tp` GPUs.
pub(super) fn steps(way: Way, tp: usize, rng: &mut Rng) -> Vec<Step> {
    let e = Matrix::signs((WORDS.len(), HIDDEN), rng);
    match way {
        Way::Forward => forward(Script::new(tp), &e),
        Way::Backward => backward(Script::new(tp), &e),
    }
}

fn forward(mut script: Script, e: &Matrix) -> Vec<Step> {
    let (read, x) = (one_hot(0), one_hot(0).times(e));
    let (cut, down) = (script.by_columns(), script.by_rows());
    let text = tokens();
    let embedding = Tile::new("E", down, e).with_rows(&words());
    let hot = Tile::new("words", cut, &read)
        .with_rows(&text)
        .with_columns(&words());
    let told = "Looking a word up is a product with a row that is 1 at that word. The embedding E has a row for each \
                word: cut by rows, it is a product cut by rows.";
    script.uncut(
        ("The embedding, uncut", told.to_owned()),
        vec![Group::product(
            Tile::new("words", cut, &read).with_rows(&text),
            embedding.clone(),
            Tile::whole("X", &x),
        )],
    );
    let (hots, pieces) = (script.columns(&read), script.rows(e));
    let names = script.each(|gpu| words()[script.range(gpu, WORDS.len())].to_vec());
    let own = |gpu: usize| Tile::new("E", Share::Piece(gpu), &pieces[gpu]).with_rows(&names[gpu]);
    let told = format!(
        "Each GPU holds {} of the {} words. A real vocabulary has 50,000 or more: it is one of the largest matrices \
         of a model.",
        WORDS.len() / script.tp,
        WORDS.len()
    );
    script.hand_out(
        ("The vocabulary cut by words", told),
        vec![hot, embedding],
        |gpu| {
            let columns =
                Tile::new("words", Share::Piece(gpu), &hots[gpu]).with_columns(&names[gpu]);
            vec![columns, own(gpu)]
        },
    );
    let looked = script.each(|gpu| hots[gpu].times(&pieces[gpu]));
    let parts =
        script.each(|gpu| Tile::new("X", script.partial(gpu), &looked[gpu]).with_rows(&text));
    let told = "Each GPU looks up the words that it holds and writes zeros for all others. For each token just one \
                GPU has something else.";
    script.work(("Look up, or zeros", told.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("words", Share::Piece(gpu), &hots[gpu]).with_rows(&text),
            own(gpu),
            parts[gpu].clone(),
        )]
    });
    let together = Matrix::sum(&looked);
    let told = "Added up, every row has found its word: each sum has one part that is not zero.";
    script.all_reduce(
        ("All-reduce of X", told.to_owned()),
        (&parts, Tile::whole("X", &together)),
        (Sign::Plus, 1),
    );
    let losses = loss(&mut script, &pieces, &together, &names);
    let logits = x.times(&e.transposed());
    let most = logits.per_row(most);
    let both = target_and_sum(&logits, (&most, &one_hot(1)));
    let pairs = [
        ("X", Share::Whole, together, x),
        ("loss", Share::Whole, losses, self::losses(&most, &both)),
    ];
    let told = format!(
        " For the loss {} numbers went round, not the {} logits.",
        3 * TOKENS,
        logits.len()
    );
    script.compare(if script.tp == 1 { "" } else { &told }, &pairs);
    script.into_steps()
}

/// From `X` to the loss; the layers between are left out. The losses of the tokens.
fn loss(script: &mut Script, pieces: &[Matrix], x: &Matrix, names: &[Vec<String>]) -> Matrix {
    let logits = script.each(|gpu| x.times(&pieces[gpu].transposed()));
    let logits_of = |gpu: usize| Tile::new("L", Share::Piece(gpu), &logits[gpu]);
    let told = "Left out: the layers. What comes out of them is compared with every word of the same E: logits, cut \
                by columns. Each GPU has those of its words.";
    script.work(("Logits, by words", told.to_owned()), |gpu| {
        let top =
            Tile::new("Eᵀ", Share::Piece(gpu), &pieces[gpu].transposed()).with_columns(&names[gpu]);
        vec![Group::product(Tile::whole("X", x), top, logits_of(gpu))]
    });
    let most = largest(script, &logits);
    let targets = script.columns(&one_hot(1));
    let own_both = script.each(|gpu| target_and_sum(&logits[gpu], (&most, &targets[gpu])));
    let columns = ["target".to_owned(), "sum".to_owned()];
    let parts = script
        .each(|gpu| Tile::new("t, s", script.partial(gpu), &own_both[gpu]).with_columns(&columns));
    let told = "Each GPU sums exp(logit − max) over its words, and gives the logit of the word that follows if it \
                holds it, else 0.";
    script.work(("The target's logit, and a sum", told.to_owned()), |gpu| {
        vec![
            Group::each(logits_of(gpu), ("t, s", Reach::Row), parts[gpu].clone()).telling(
                |row, column| match column {
                    0 => (vec![target_told(row, &targets[gpu])], "→"),
                    _ => powers_told(row, (&logits[gpu], &most)),
                },
            ),
        ]
    });
    let both = Matrix::sum(&own_both);
    let told = "Two more numbers a token, and every GPU knows all that the loss needs.";
    script.all_reduce(
        ("All-reduce of targets and sums", told.to_owned()),
        (&parts, Tile::whole("t, s", &both).with_columns(&columns)),
        (Sign::Plus, 2),
    );
    let losses = losses(&most, &both);
    let known = Matrix::beside(&[most, both]);
    let heads = ["max", "target", "sum"].map(str::to_owned);
    let told = "The loss of a token is ln(sum) + max − target: the same on every GPU.";
    script.work(("The loss", told.to_owned()), |_| {
        let from = Tile::whole("m, t, s", &known).with_columns(&heads);
        vec![
            Group::each(from, ("loss", Reach::Row), Tile::whole("loss", &losses))
                .telling(|row, _| loss_told(row, &known)),
        ]
    });
    losses
}

/// The largest logit of each token, of all words.
fn largest(script: &mut Script, logits: &[Matrix]) -> Matrix {
    let own_most = script.each(|gpu| logits[gpu].per_row(most));
    let parts = script.each(|gpu| Tile::new("max", script.partial(gpu), &own_most[gpu]));
    let told = format!(
        "A softmax over {} words needs them all, but not the logits themselves: first the largest of each token.",
        WORDS.len()
    );
    script.work(("The largest here", told), |gpu| {
        vec![Group::each(
            Tile::new("L", Share::Piece(gpu), &logits[gpu]),
            ("max", Reach::Row),
            parts[gpu].clone(),
        )]
    });
    let largest = Matrix::reduced(&own_most, f32::max);
    let told = "An all-reduce with max instead of a sum: a number a token.";
    script.all_reduce(
        ("All-reduce of the largest", told.to_owned()),
        (&parts, Tile::whole("max", &largest)),
        (Sign::Max, 1),
    );
    largest
}

fn backward(mut script: Script, e: &Matrix) -> Vec<Step> {
    let (read, targets) = (one_hot(0), one_hot(1));
    let x = read.times(e);
    let logits = x.times(&e.transposed());
    let most = logits.per_row(most);
    let sums = target_and_sum(&logits, (&most, &targets));
    let (cut, down) = (script.by_columns(), script.by_rows());
    let told = "Every GPU still has its logits L, and the largest and the sum of each token, which the loss reduced. \
                The gradient of a logit is its softmax, less 1 at the word that follows, over the tokens.";
    let known = vec![
        Tile::new("L", cut, &logits)
            .with_rows(&tokens())
            .with_columns(&words()),
        Tile::whole("X", &x),
        Tile::new("E", down, e).with_rows(&words()),
    ];
    let known = vec![Group::tiles(known)];
    script.still(("What there is", told.to_owned()), known);
    let own_logits = script.columns(&logits);
    let own_targets = script.columns(&targets);
    let of_l = script.each(|gpu| of_logits(&own_logits[gpu], (&most, &sums), &own_targets[gpu]));
    let told = "Each GPU makes the gradients of its own logits, from numbers that it has. Nothing is sent.";
    script.work(("dL, by words", told.to_owned()), |gpu| {
        vec![
            Group::each(
                Tile::new("L", Share::Piece(gpu), &own_logits[gpu]),
                ("softmax′", Reach::Entry),
                Tile::new("dL", Share::Piece(gpu), &of_l[gpu]),
            )
            .telling(|row, column| {
                let power = own_logits[gpu].at(row, column) - most.at(row, 0);
                let target = own_targets[gpu].at(row, column);
                slope_told((power, target), &sums.text(row, 1))
            }),
        ]
    });
    let pieces = script.rows(e);
    let names = script.each(|gpu| words()[script.range(gpu, WORDS.len())].to_vec());
    let parts_of_x = script.each(|gpu| of_l[gpu].times(&pieces[gpu]));
    let parts = script.each(|gpu| Tile::new("dX", script.partial(gpu), &parts_of_x[gpu]));
    let told = "X met every word, so dX is a sum over all words, and each GPU has a part.";
    script.work(("dX, a part on each", told.to_owned()), |gpu| {
        let top = Tile::new("E", Share::Piece(gpu), &pieces[gpu]).with_rows(&names[gpu]);
        let left = Tile::new("dL", Share::Piece(gpu), &of_l[gpu]);
        vec![Group::product(left, top, parts[gpu].clone())]
    });
    let dx = Matrix::sum(&parts_of_x);
    let told = "The head's one all-reduce backward. Then dX goes back through the layers, which are left out here.";
    script.all_reduce(
        ("All-reduce of dX", told.to_owned()),
        (&parts, Tile::whole("dX", &dx)),
        (Sign::Plus, 1),
    );
    let of_e = of_the_embedding(&mut script, (&x, &dx), &of_l, &names);
    let whole_l = of_logits(&logits, (&most, &sums), &targets);
    let whole_x = whole_l.times(e);
    let head = whole_l.transposed().times(&x);
    let lookup = read.transposed().times(&whole_x);
    let pairs = [
        (
            "dE",
            down,
            Matrix::stacked(&of_e),
            Matrix::sum(&[head, lookup]),
        ),
        ("dX", Share::Whole, dx, whole_x),
    ];
    script.compare("", &pairs);
    script.into_steps()
}

/// Both gradients of each GPU's rows of `E`, and their sum: no word is on two GPUs, so nothing is sent.
fn of_the_embedding(
    script: &mut Script,
    (x, dx): (&Matrix, &Matrix),
    of_l: &[Matrix],
    names: &[Vec<String>],
) -> Vec<Matrix> {
    let head = script.each(|gpu| of_l[gpu].transposed().times(x));
    let told = "As the head, E met X: the gradient of a word's row is its logits' gradients times X. All of it is here.";
    script.work(("dE of the logits", told.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("dLᵀ", Share::Piece(gpu), &of_l[gpu].transposed()).with_rows(&names[gpu]),
            Tile::whole("X", x),
            Tile::new("dE", Share::Piece(gpu), &head[gpu]),
        )]
    });
    let hots = script.columns(&one_hot(0));
    let lookup = script.each(|gpu| hots[gpu].transposed().times(dx));
    let told = "As the embedding, a word's row gets dX of every token that looked it up. A GPU adds up those of its \
                own words.";
    script.work(("dE of the look-up", told.to_owned()), |gpu| {
        vec![Group::product(
            Tile::new("wordsᵀ", Share::Piece(gpu), &hots[gpu].transposed()),
            Tile::whole("dX", dx),
            Tile::new("dE", Share::Piece(gpu), &lookup[gpu]),
        )]
    });
    let both = script.each(|gpu| Matrix::sum(&[head[gpu].clone(), lookup[gpu].clone()]));
    let told = "E is used twice, so its gradient is the sum of both. Each word lives on one GPU: nothing is sent.";
    script.work(("dE, both together", told.to_owned()), |gpu| {
        let tile = |name: &str, matrix: &Matrix| Tile::new(name, Share::Piece(gpu), matrix);
        vec![Group::join(
            vec![
                tile("head", &head[gpu]).with_rows(&names[gpu]),
                tile("look-up", &lookup[gpu]),
            ],
            Sign::Plus,
            tile("dE", &both[gpu]),
        )]
    });
    both
}

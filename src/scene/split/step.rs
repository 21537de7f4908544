//! One step of a story: which matrices are where, what is computed from what, what moves, and the same in words.

use crate::units::{Bytes, Collective};

use super::matrix::{Matrix, factor, small};

/// Bytes of a number: the stories compute in float32.
const NUMBER: u64 = 4;

/// What part of something a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it, or a copy of all of it.
    Whole,
    /// A GPU's piece, which nobody else has.
    Piece(usize),
    /// What a GPU has of a sum: others' parts are missing.
    Partial(usize),
    /// All of it, of which the columns lie on so many GPUs.
    ByColumns(usize),
    /// All of it, of which the rows lie on so many GPUs.
    ByRows(usize),
}

/// A matrix as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Its name: `A₀`.
    pub name: String,
    /// Its numbers.
    pub matrix: Matrix,
    /// What part it is.
    pub share: Share,
    /// Names of its rows; none, or as many as it has.
    pub(super) rows: Vec<String>,
    /// Names of its columns; none, or as many as it has.
    pub(super) columns: Vec<String>,
}

impl Tile {
    /// `matrix` called `name`.
    pub(super) fn new(name: &str, share: Share, matrix: &Matrix) -> Self {
        let name = match share {
            Share::Piece(gpu) | Share::Partial(gpu) => name_on(name, gpu),
            Share::Whole | Share::ByColumns(_) | Share::ByRows(_) => name.to_owned(),
        };
        Self {
            name,
            matrix: matrix.clone(),
            share,
            rows: Vec::new(),
            columns: Vec::new(),
        }
    }

    pub(super) fn whole(name: &str, matrix: &Matrix) -> Self {
        Self::new(name, Share::Whole, matrix)
    }

    pub(super) fn with_rows(mut self, names: &[String]) -> Self {
        self.rows = names.to_vec();
        self
    }

    pub(super) fn with_columns(mut self, names: &[String]) -> Self {
        self.columns = names.to_vec();
        self
    }

    /// The GPU to which a cell belongs, if it belongs to one.
    pub(super) fn owner(&self, row: usize, column: usize) -> Option<usize> {
        let (rows, columns) = self.matrix.shape();
        match self.share {
            Share::Whole => None,
            Share::Piece(gpu) | Share::Partial(gpu) => Some(gpu),
            Share::ByColumns(gpus) => Some(column * gpus / columns.max(1)),
            Share::ByRows(gpus) => Some(row * gpus / rows.max(1)),
        }
    }

    /// Its shape in words: `4 × 2`.
    pub(super) fn shape(&self) -> String {
        let (rows, columns) = self.matrix.shape();
        format!("{rows} × {columns}")
    }

    fn words(&self, with_numbers: bool) -> String {
        let share = match self.share {
            Share::Whole | Share::Piece(_) => String::new(),
            Share::Partial(_) => ", this GPU's part only".to_owned(),
            Share::ByColumns(gpus) => format!(", columns on {gpus} GPUs"),
            Share::ByRows(gpus) => format!(", rows on {gpus} GPUs"),
        };
        let numbers = if with_numbers {
            format!(": {}", self.matrix.words())
        } else {
            String::new()
        };
        format!("{} ({}{share}){numbers}", self.name, self.shape())
    }
}

/// A name with the GPU's number behind and below it, on each of its factors' first letters: `A₀`, `Xᵀ₀`.
fn name_on(name: &str, gpu: usize) -> String {
    let digits = gpu.to_string();
    let below = |digit: char| {
        let value = digit.to_digit(10).unwrap_or(0);
        char::from_u32(0x2080 + value).unwrap_or(digit)
    };
    let below: String = digits.chars().map(below).collect();
    match name.split_once('ᵀ') {
        Some((before, after)) => format!("{before}{below}ᵀ{after}"),
        None => format!("{name}{below}"),
    }
}

/// What an entry of a result is made from, where matrices are changed entry by entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The entry at the same place.
    Entry,
    /// All of its row.
    Row,
    /// Its row up to the column of the row's own number: what a token may look back at.
    Past,
}

/// How results are joined, entry by entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Max,
    Times,
}

impl Sign {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Max => "max",
            Self::Times => "·",
        }
    }
}

/// How tiles stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Left, top, and their product in the corner between.
    Product,
    /// From, and what is made of it.
    Each(String, Reach),
    /// Side by side.
    Tiles,
    /// Parts, and last what they make together.
    Join(Sign),
    /// Put together, and uncut.
    Pair,
}

/// How an entry comes about: the terms, and what they make.
pub(super) type Working = (Vec<String>, String);

/// The terms of an entry, and the sign before what they make.
pub(super) type Told = (Vec<String>, &'static str);

/// Tiles that stand together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) form: Form,
    pub(super) tiles: Vec<Tile>,
    /// How each entry of the result comes about, row by row, where the form does not say it.
    told: Vec<Told>,
}

impl Group {
    fn new(form: Form, tiles: Vec<Tile>) -> Self {
        Self {
            form,
            tiles,
            told: Vec::new(),
        }
    }

    pub(super) fn product(left: Tile, top: Tile, result: Tile) -> Self {
        Self::new(Form::Product, vec![left, top, result])
    }

    pub(super) fn each(from: Tile, (how, reach): (&str, Reach), to: Tile) -> Self {
        Self::new(Form::Each(how.to_owned(), reach), vec![from, to])
    }

    pub(super) fn tiles(tiles: Vec<Tile>) -> Self {
        Self::new(Form::Tiles, tiles)
    }

    pub(super) fn pair(ours: Tile, uncut: Tile) -> Self {
        Self::new(Form::Pair, vec![ours, uncut])
    }

    pub(super) fn join(mut parts: Vec<Tile>, sign: Sign, result: Tile) -> Self {
        parts.push(result);
        Self::new(Form::Join(sign), parts)
    }

    /// With the terms of each entry of the result.
    pub(super) fn telling(mut self, terms: impl Fn(usize, usize) -> Told) -> Self {
        let shape = self.tiles.last().map_or((0, 0), |tile| tile.matrix.shape());
        let places = (0..shape.0).flat_map(|row| (0..shape.1).map(move |column| (row, column)));
        self.told = places.map(|(row, column)| terms(row, column)).collect();
        self
    }

    /// Where its result is among its tiles.
    pub(super) fn result(&self) -> Option<usize> {
        match self.form {
            Form::Product | Form::Each(..) | Form::Join(_) => self.tiles.len().checked_sub(1),
            Form::Tiles | Form::Pair => None,
        }
    }

    /// How an entry of its result comes about. Where the numbers as they are written make another one than is
    /// written, it is `≈`.
    pub(super) fn working(&self, row: usize, column: usize) -> Option<Working> {
        let (result, parts) = self.tiles.split_last()?;
        let made = result.matrix.text(row, column);
        let equals = |written: f32| {
            let apart = (written - result.matrix.written(row, column)).abs();
            let sign = if apart < 1e-3 { "=" } else { "≈" };
            format!("{sign} {made}")
        };
        let texts = parts.iter().map(|tile| tile.matrix.text(row, column));
        let mut numbers = parts.iter().map(|tile| tile.matrix.written(row, column));
        let told = self.told.get(row * result.matrix.shape().1 + column);
        match &self.form {
            Form::Product => {
                let (left, top) = (&parts.first()?.matrix, &parts.get(1)?.matrix);
                let inner = 0..left.shape().1;
                let term = |inner: usize| {
                    let (a, b) = (left.text(row, inner), top.text(inner, column));
                    format!("{}·{}", factor(&a), factor(&b))
                };
                let part = |inner| left.written(row, inner) * top.written(inner, column);
                let sum = inner.clone().map(part).sum();
                Some((plus(inner.map(term)), equals(sum)))
            }
            Form::Each(..) if told.is_some() => {
                let (terms, sign) = told?;
                Some((terms.clone(), format!("{sign} {made}")))
            }
            Form::Each(how, reach) => {
                let from = &parts.first()?.matrix;
                let range = match reach {
                    Reach::Entry => column..column + 1,
                    Reach::Row | Reach::Past => 0..from.shape().1,
                };
                let list: Vec<String> = range.map(|inner| from.text(row, inner)).collect();
                Some((
                    vec![format!("{how}({})", list.join(", "))],
                    format!("→ {made}"),
                ))
            }
            Form::Join(Sign::Max) => {
                let list: Vec<String> = texts.collect();
                let most = numbers.fold(f32::NEG_INFINITY, f32::max);
                Some((vec![format!("max({})", list.join(", "))], equals(most)))
            }
            Form::Join(Sign::Times) => {
                let list: Vec<String> = texts.map(|text| factor(&text)).collect();
                Some((vec![list.join(" · ")], equals(numbers.product())))
            }
            Form::Join(Sign::Plus) => {
                let sum = numbers.by_ref().sum();
                Some((plus(texts.map(|text| factor(&text))), equals(sum)))
            }
            Form::Tiles | Form::Pair => None,
        }
    }

    fn words(&self, all_numbers: bool) -> String {
        let result = self.result();
        let tile = |(slot, tile): (usize, &Tile)| tile.words(all_numbers || Some(slot) == result);
        let tiles: Vec<String> = self.tiles.iter().enumerate().map(tile).collect();
        tiles.join(", ")
    }
}

/// Terms of a sum, each but the first with its sign.
fn plus(terms: impl Iterator<Item = String>) -> Vec<String> {
    let sign = |(index, term): (usize, String)| {
        if index == 0 {
            term
        } else {
            format!("+ {term}")
        }
    };
    terms.enumerate().map(sign).collect()
}

/// What moves between the GPUs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// What they do together.
    pub collective: Collective,
    /// How it joins numbers: `sum`, `max`; nothing for a gather.
    pub operation: &'static str,
    /// How many collectives, one after the other.
    pub times: u64,
    /// How many numbers each has, as all of them leave it.
    pub numbers: u64,
    /// Among how many GPUs.
    pub gpus: usize,
}

impl Traffic {
    /// The size of all of them.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.times * self.numbers * NUMBER)
    }

    /// What each GPU sends in a ring.
    pub fn sent(&self) -> Bytes {
        let share = self.collective.bus_share(self.gpus);
        Bytes((self.bytes().0 as f64 * share).round() as u64)
    }

    /// In a line: `All-reduce (sum) of 16 numbers, 64 B · in a ring each GPU sends 64 B`.
    pub fn words(&self) -> String {
        let operation = match self.operation {
            "" => String::new(),
            operation => format!(" ({operation})"),
        };
        let name = match (self.collective, self.times) {
            (Collective::AllReduce, 1) => "All-reduce".to_owned(),
            (Collective::ReduceScatter, 1) => "Reduce-scatter".to_owned(),
            (Collective::AllGather, 1) => "All-gather".to_owned(),
            (collective, times) => format!("{times} {}s", collective.name()),
        };
        let each = if self.times == 1 { "" } else { " each" };
        format!(
            "{name}{operation} of {} numbers{each}, {} · in a ring each GPU sends {}",
            self.numbers,
            self.bytes(),
            self.sent()
        )
    }
}

/// A collective: what the GPUs bring, and what all of them leave with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Band {
    pub(super) traffic: Traffic,
    /// The parts joined, or what a gather makes alone.
    pub(super) group: Group,
}

/// What happens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing moves.
    Still,
    /// Pieces of what is above go to the GPUs.
    HandOut,
    /// Results are computed, entry by entry.
    Work,
    /// The GPUs' tiles meet, and what they make goes back to each.
    Collect,
}

/// What is shown in a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) action: Action,
    /// On no GPU: the uncut matrices.
    pub(super) above: Vec<Group>,
    /// On each GPU.
    pub(super) gpus: Vec<Vec<Group>>,
    pub(super) band: Option<Band>,
}

/// One step of a story.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What happens, in a few words.
    pub title: String,
    /// What happens and why, in a sentence or two.
    pub narration: String,
    pub(super) picture: Picture,
}

impl Step {
    /// What moves between GPUs, if anything does.
    pub fn traffic(&self) -> Option<Traffic> {
        self.picture.band.as_ref().map(|band| band.traffic)
    }

    /// The largest difference between what was put together and what was computed uncut, where they are compared.
    pub fn difference(&self) -> Option<f32> {
        let pairs = self
            .picture
            .above
            .iter()
            .filter(|group| group.form == Form::Pair);
        let differences = pairs.filter_map(|group| {
            let (one, other) = (group.tiles.first()?, group.tiles.get(1)?);
            Some(one.matrix.difference(&other.matrix))
        });
        differences.reduce(f32::max)
    }

    /// How many entries are computed one after the other, on each GPU at once; 0 where none are.
    pub fn entries(&self) -> usize {
        let picture = &self.picture;
        let on_gpus = picture.gpus.iter().flatten();
        let band = picture.band.as_ref().map(|band| &band.group);
        let groups = match picture.action {
            Action::Still | Action::HandOut => return 0,
            Action::Work => picture.above.iter().chain(on_gpus).collect(),
            Action::Collect => Vec::from_iter(band),
        };
        let results = groups
            .into_iter()
            .filter_map(|group| group.tiles.get(group.result()?));
        results.map(|tile| tile.matrix.len()).max().unwrap_or(0)
    }

    /// Whether anything moves or is computed in it.
    pub fn moves(&self) -> bool {
        self.picture.action != Action::Still
    }

    /// The step in words, with the numbers that are new in it.
    pub fn account(&self) -> String {
        let picture = &self.picture;
        let all = picture.action != Action::Work;
        let words = |groups: &[Group]| -> String {
            let groups: Vec<String> = groups.iter().map(|group| group.words(all)).collect();
            groups.join("; ")
        };
        let mut lines = vec![format!("{}. {}", self.title, self.narration)];
        if !picture.above.is_empty() {
            lines.push(format!("Shown: {}.", words(&picture.above)));
        }
        for (gpu, groups) in picture.gpus.iter().enumerate() {
            lines.push(format!("GPU {gpu}: {}.", words(groups)));
        }
        if let Some(band) = &picture.band {
            lines.push(format!("{}.", band.traffic.words()));
            let result = band.group.tiles.last().map(|tile| tile.words(true));
            lines.extend(result.map(|words| format!("Every GPU then has {words}.")));
        }
        if let Some(difference) = self.difference() {
            lines.push(format!("Largest difference: {}.", small(difference)));
        }
        lines.join("\n")
    }
}

//! Small matrices of float32, as a GPU would compute them, and their numbers as text.

use std::ops::Range;

use crate::model::rng::Rng;

/// A matrix `[rows, columns]`, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Of what `value` says for each row and column.
    pub(super) fn from_fn(
        (rows, columns): (usize, usize),
        mut value: impl FnMut(usize, usize) -> f32,
    ) -> Self {
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Self {
            rows,
            columns,
            values: places.map(|(row, column)| value(row, column)).collect(),
        }
    }

    /// Of whole numbers from -2 to 2, so that sums can be checked by eye.
    pub(super) fn whole_numbers(shape: (usize, usize), rng: &mut Rng) -> Self {
        Self::from_fn(shape, |_, _| rng.below(5) as f32 - 2.0)
    }

    /// Of -1, 0 and 1, where several products follow each other.
    pub(super) fn signs(shape: (usize, usize), rng: &mut Rng) -> Self {
        Self::from_fn(shape, |_, _| rng.below(3) as f32 - 1.0)
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number at a place in it.
    pub fn at(&self, row: usize, column: usize) -> f32 {
        self.values[row * self.columns + column]
    }

    /// `self` times `other`, each entry summed from the left.
    pub(super) fn times(&self, other: &Self) -> Self {
        Self::from_fn((self.rows, other.columns), |row, column| {
            (0..self.columns)
                .map(|inner| self.at(row, inner) * other.at(inner, column))
                .sum()
        })
    }

    pub(super) fn transposed(&self) -> Self {
        Self::from_fn((self.columns, self.rows), |row, column| {
            self.at(column, row)
        })
    }

    /// Some of the columns.
    pub(super) fn of_columns(&self, range: Range<usize>) -> Self {
        Self::from_fn((self.rows, range.len()), |row, column| {
            self.at(row, range.start + column)
        })
    }

    /// Some of the rows.
    pub(super) fn of_rows(&self, range: Range<usize>) -> Self {
        Self::from_fn((range.len(), self.columns), |row, column| {
            self.at(range.start + row, column)
        })
    }

    /// Each number changed by itself.
    pub(super) fn map(&self, change: impl Fn(f32) -> f32) -> Self {
        Self::from_fn(self.shape(), |row, column| change(self.at(row, column)))
    }

    /// Each number with its partner in `other`, of the same shape.
    pub(super) fn zip(&self, other: &Self, join: impl Fn(f32, f32) -> f32) -> Self {
        Self::from_fn(self.shape(), |row, column| {
            join(self.at(row, column), other.at(row, column))
        })
    }

    /// The column of what `fold` makes of each row.
    pub(super) fn per_row(&self, fold: impl Fn(&[f32]) -> f32) -> Self {
        Self::from_fn((self.rows, 1), |row, _| {
            fold(&self.values[row * self.columns..(row + 1) * self.columns])
        })
    }

    /// Matrices side by side, with as many rows each.
    pub(super) fn beside(parts: &[Self]) -> Self {
        let rows = parts.first().map_or(0, |part| part.rows);
        let row = |row: usize| {
            parts
                .iter()
                .flat_map(move |part| (0..part.columns).map(move |column| part.at(row, column)))
        };
        Self {
            rows,
            columns: parts.iter().map(|part| part.columns).sum(),
            values: (0..rows).flat_map(row).collect(),
        }
    }

    /// Matrices one above the other, with as many columns each.
    pub(super) fn stacked(parts: &[Self]) -> Self {
        Self {
            rows: parts.iter().map(|part| part.rows).sum(),
            columns: parts.first().map_or(0, |part| part.columns),
            values: parts.iter().flat_map(|part| part.values.clone()).collect(),
        }
    }

    /// The sum of matrices of one shape, in their order, as a collective makes it.
    pub(super) fn sum(parts: &[Self]) -> Self {
        Self::reduced(parts, |own, other| own + other)
    }

    /// Matrices of one shape joined entry by entry.
    pub(super) fn reduced(parts: &[Self], join: impl Fn(f32, f32) -> f32) -> Self {
        let Some((first, rest)) = parts.split_first() else {
            return Self::from_fn((0, 0), |_, _| 0.0);
        };
        rest.iter()
            .fold(first.clone(), |sum, part| sum.zip(part, &join))
    }

    /// The largest difference between entries; infinite between shapes.
    pub fn difference(&self, other: &Self) -> f32 {
        if self.shape() != other.shape() {
            return f32::INFINITY;
        }
        let pairs = self.values.iter().zip(&other.values);
        pairs
            .map(|(own, other)| (own - other).abs())
            .fold(0.0, f32::max)
    }

    /// The numbers behind the decimal point that it is written with: none if all are whole.
    pub(super) fn digits(&self) -> usize {
        let whole = self.values.iter().all(|value| value.round() == *value);
        if whole { 0 } else { 2 }
    }

    /// The number at a place as it is written.
    pub(super) fn text(&self, row: usize, column: usize) -> String {
        number(self.at(row, column), self.digits())
    }

    /// The number at a place as it reads where it is written.
    pub(super) fn written(&self, row: usize, column: usize) -> f32 {
        match self.digits() {
            0 => self.at(row, column),
            _ => (self.at(row, column) * 100.0).round() / 100.0,
        }
    }

    /// All numbers: rows apart by semicolons.
    pub(super) fn words(&self) -> String {
        let row = |row: usize| -> String {
            let numbers: Vec<String> = (0..self.columns)
                .map(|column| self.text(row, column))
                .collect();
            numbers.join(" ")
        };
        (0..self.rows).map(row).collect::<Vec<_>>().join("; ")
    }
}

/// `value` with so many decimals, a true minus, and no negative zero.
pub(super) fn number(value: f32, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let zero = text.chars().all(|digit| matches!(digit, '0' | '.'));
    if value < 0.0 && !zero {
        format!("−{text}")
    } else {
        text
    }
}

/// The same within a sum or a product: a negative number in brackets.
pub(super) fn factor(text: &str) -> String {
    if text.starts_with('−') {
        format!("({text})")
    } else {
        text.to_owned()
    }
}

/// A difference, however small.
pub fn small(value: f32) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value < 0.001 {
        format!("{value:.1e}").replace('-', "−")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_a_textbook() {
        let texts = [
            number(-2.0, 0),
            number(-0.001, 2),
            number(0.5, 2),
            small(2.4e-7),
        ];
        assert_eq!(texts, ["−2", "0.00", "0.50", "2.4e−7"]);
    }

    #[test]
    fn pieces_put_together_are_the_whole() {
        let whole = Matrix::whole_numbers((4, 8), &mut Rng::new(3, 0));
        let columns = [whole.of_columns(0..4), whole.of_columns(4..8)];
        assert_eq!(Matrix::beside(&columns), whole);
        let rows = [whole.of_rows(0..1), whole.of_rows(1..4)];
        assert_eq!(Matrix::stacked(&rows), whole);
        assert_eq!(whole.transposed().transposed(), whole);
    }
}

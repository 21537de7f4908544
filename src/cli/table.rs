//! Text in columns.

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows of cells, each column as wide as its widest cell.
#[derive(Debug)]
pub(super) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; further columns stand as the last one.
    pub(super) fn new(aligns: &[Align]) -> Self {
        Self {
            aligns: aligns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// All rows, indented by two.
    pub(super) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let line: String = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match self.align(column) {
                    Align::Left => format!("  {cell:<width$}"),
                    Align::Right => format!("  {cell:>width$}"),
                })
                .collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn align(&self, column: usize) -> Align {
        let last = self.aligns.last().copied().unwrap_or(Align::Left);
        self.aligns.get(column).copied().unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[Align::Left, Align::Right]);
        table.row(["rank", "µs"]);
        table.row(["0", "12345"]);
        assert_eq!(table.render(), "  rank     µs\n  0     12345\n");
    }
}

//! Small formulas over the figures of a run: `bubble_of_total < 10 % and peak_memory(0) <= 40 MiB`.
//!
//! Numbers may carry a unit; a name is a figure of the run at hand, `gpipe.peak_memory` one of the run of that name. What
//! is true is 1, what is not is 0.

use std::fmt;

/// Whether a name means something of its own in formulas.
pub(super) fn is_taken(name: &str) -> bool {
    let function = FUNCTIONS.iter().any(|(own, _)| *own == name);
    function || OPERATORS.iter().any(|(own, _)| *own == name)
}

/// A formula as it was written, and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    node: Node,
}

/// A figure that a formula asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The run's name; the one at hand if absent.
    pub run: Option<String>,
    /// The figure's name.
    pub figure: String,
    /// Of which rank, where only one is asked for.
    pub rank: Option<usize>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = &self.run {
            write!(f, "{run}.")?;
        }
        f.write_str(&self.figure)?;
        match self.rank {
            Some(rank) => write!(f, "({rank})"),
            None => Ok(()),
        }
    }
}

/// What a formula is made of.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Figure(Asked),
    Call(Function, Vec<Self>),
    Negative(Box<Self>),
    Both(Operator, Box<(Self, Self)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Abs,
    Round,
    Ceil,
    Floor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Differs,
    Plus,
    Minus,
    Times,
    Over,
}

/// So long may a formula be, so that its parts are few enough to be gone through one within the other.
const LONGEST: usize = 2048;
/// How deep a formula may be nested.
const DEEPEST: usize = 40;
/// How much two figures may differ and still be called equal: more than rounding, less than any effect.
const EQUAL: f64 = 1e-9;

/// All operators, the longest first, so that `<=` is not taken for `<`.
const OPERATORS: [(&str, Operator); 14] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::Differs),
    ("and", Operator::And),
    ("or", Operator::Or),
    ("<", Operator::Less),
    (">", Operator::More),
    ("=", Operator::Equal),
    ("+", Operator::Plus),
    ("-", Operator::Minus),
    ("*", Operator::Times),
    ("×", Operator::Times),
    ("/", Operator::Over),
];

const FUNCTIONS: [(&str, Function); 6] = [
    ("min", Function::Min),
    ("max", Function::Max),
    ("abs", Function::Abs),
    ("round", Function::Round),
    ("ceil", Function::Ceil),
    ("floor", Function::Floor),
];

/// Units and what one of them is, the longest first.
const UNITS: [(&str, f64); 12] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("%", 0.01),
];

impl Operator {
    /// How strongly it binds.
    fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Less
            | Self::AtMost
            | Self::More
            | Self::AtLeast
            | Self::Equal
            | Self::Differs => 3,
            Self::Plus | Self::Minus => 4,
            Self::Times | Self::Over => 5,
        }
    }

    fn of(self, one: f64, other: f64) -> f64 {
        let equal = (one - other).abs() <= EQUAL * one.abs().max(other.abs());
        let truth = |is: bool| f64::from(u8::from(is));
        match self {
            Self::Or => truth(one != 0.0 || other != 0.0),
            Self::And => truth(one != 0.0 && other != 0.0),
            Self::Less => truth(one < other && !equal),
            Self::AtMost => truth(one <= other || equal),
            Self::More => truth(one > other && !equal),
            Self::AtLeast => truth(one >= other || equal),
            Self::Equal => truth(equal),
            Self::Differs => truth(!equal),
            Self::Plus => one + other,
            Self::Minus => one - other,
            Self::Times => one * other,
            Self::Over => one / other,
        }
    }
}

impl Formula {
    /// From its text; or what is wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("the formula is longer than {LONGEST} letters"));
        }
        let mut reader = Reader {
            rest: text,
            depth: 0,
        };
        let node = reader.formula(0)?;
        reader.skip();
        if reader.rest.is_empty() {
            let text = text.trim().to_owned();
            return Ok(Self { text, node });
        }
        Err(format!(
            "{:?} was not expected in {text:?}",
            shortened(reader.rest)
        ))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value, with figures from `figure`; the first that is not known otherwise.
    pub fn value(&self, figure: &dyn Fn(&Asked) -> Option<f64>) -> Result<f64, Asked> {
        self.node.value(figure)
    }

    /// All figures that it asks for.
    pub fn asked(&self) -> Vec<&Asked> {
        let mut all = Vec::new();
        self.node.asked(&mut all);
        all
    }

    /// The parts that must all be true: `a` and `b` of `a and b`.
    pub fn parts(&self) -> Vec<Self> {
        conjuncts(&self.text).unwrap_or_else(|| vec![self.clone()])
    }
}

/// The parts of `a and b and c`; nothing if it is none.
fn conjuncts(text: &str) -> Option<Vec<Formula>> {
    let mut reader = Reader {
        rest: text,
        depth: 0,
    };
    let mut parts = Vec::new();
    loop {
        let from = reader.rest;
        let node = reader.formula(Operator::And.strength()).ok()?;
        let text = from[..from.len() - reader.rest.len()].trim().to_owned();
        parts.push(Formula { text, node });
        match reader.operator() {
            None => return reader.rest.is_empty().then_some(parts),
            Some((Operator::And, length)) => reader.rest = &reader.rest[length..],
            Some(_) => return None,
        }
    }
}

impl Node {
    fn value(&self, figure: &dyn Fn(&Asked) -> Option<f64>) -> Result<f64, Asked> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Figure(asked) => figure(asked).ok_or_else(|| asked.clone())?,
            Self::Negative(inner) => -inner.value(figure)?,
            Self::Both(operator, sides) => {
                operator.of(sides.0.value(figure)?, sides.1.value(figure)?)
            }
            Self::Call(function, arguments) => {
                let values: Vec<f64> = arguments
                    .iter()
                    .map(|argument| argument.value(figure))
                    .collect::<Result<_, _>>()?;
                let first = values.first().copied().unwrap_or_default();
                let rest = values.iter().copied();
                match function {
                    Function::Min => rest.fold(first, f64::min),
                    Function::Max => rest.fold(first, f64::max),
                    Function::Abs => first.abs(),
                    Function::Round => first.round(),
                    Function::Ceil => first.ceil(),
                    Function::Floor => first.floor(),
                }
            }
        })
    }

    fn asked<'a>(&'a self, all: &mut Vec<&'a Asked>) {
        match self {
            Self::Number(_) => {}
            Self::Figure(asked) => all.push(asked),
            Self::Negative(inner) => inner.asked(all),
            Self::Both(_, sides) => {
                sides.0.asked(all);
                sides.1.asked(all);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|argument| argument.asked(all)),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'a str {
        let letters = |c: char| !(c.is_alphanumeric() || c == '_');
        let end = self.rest.find(letters).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A formula of operators that bind more strongly than `least`.
    fn formula(&mut self, least: u8) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the formula is nested too deeply".to_owned());
        }
        let mut left = self.single()?;
        while let Some((operator, length)) = self
            .operator()
            .filter(|(found, _)| found.strength() > least)
        {
            self.rest = &self.rest[length..];
            let right = self.formula(operator.strength())?;
            left = Node::Both(operator, Box::new((left, right)));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&mut self) -> Option<(Operator, usize)> {
        self.skip();
        let found = OPERATORS.iter().find(|(text, _)| {
            let word = text.starts_with(char::is_alphabetic);
            let after = self.rest.strip_prefix(text);
            // `order` is no `or`.
            after.is_some_and(|after| {
                !(word && after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
        });
        found.map(|(text, operator)| (*operator, text.len()))
    }

    fn single(&mut self) -> Result<Node, String> {
        self.skip();
        let nothing = || Err("a number, a figure or a bracket is missing at the end".to_owned());
        let Some(first) = self.rest.chars().next() else {
            return nothing();
        };
        match first {
            '-' => {
                self.rest = &self.rest[1..];
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err("the formula is nested too deeply".to_owned());
                }
                let inner = self.single()?;
                self.depth -= 1;
                Ok(Node::Negative(Box::new(inner)))
            }
            '(' => {
                self.rest = &self.rest[1..];
                let inner = self.formula(0)?;
                if self.take(")") {
                    Ok(inner)
                } else {
                    Err(format!(
                        "a closing bracket is missing before {:?}",
                        shortened(self.rest)
                    ))
                }
            }
            '0'..='9' | '.' => self.number(),
            letter if letter.is_alphabetic() => self.named(),
            _ => Err(format!(
                "a number or a figure was expected at {:?}",
                shortened(self.rest)
            )),
        }
    }

    fn number(&mut self) -> Result<Node, String> {
        let digits = |c: char| !(c.is_ascii_digit() || c == '.' || c == '_');
        let end = self.rest.find(digits).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        let number: f64 = text
            .replace('_', "")
            .parse()
            .map_err(|_bad| format!("{text:?} is no number"))?;
        self.rest = rest;
        let after = rest.trim_start();
        let unit = UNITS.iter().find(|(unit, _)| {
            let rest = after.strip_prefix(unit);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        let times = unit.map_or(1.0, |(unit, times)| {
            self.rest = &after[unit.len()..];
            *times
        });
        Ok(Node::Number(number * times))
    }

    fn named(&mut self) -> Result<Node, String> {
        let first = self.word();
        let function = FUNCTIONS.iter().find(|(name, _)| *name == first);
        if let Some((name, function)) = function {
            return self.call(name, *function);
        }
        let (run, figure) = if self.rest.starts_with('.') {
            self.rest = &self.rest[1..];
            (Some(first.to_owned()), self.word())
        } else {
            (None, first)
        };
        if figure.is_empty() {
            return Err(format!("the name of a figure is missing after {first:?}."));
        }
        let mut rank = None;
        if self.rest.starts_with('(') {
            self.rest = &self.rest[1..];
            self.skip();
            let digits = self.word();
            let number = digits.parse();
            rank = Some(number.map_err(|_bad| {
                format!("{figure}(...) takes the number of a GPU, not {digits:?}")
            })?);
            if !self.take(")") {
                return Err(format!(
                    "a closing bracket is missing after {figure}({digits}"
                ));
            }
        }
        Ok(Node::Figure(Asked {
            run,
            figure: figure.to_owned(),
            rank,
        }))
    }

    fn call(&mut self, name: &str, function: Function) -> Result<Node, String> {
        if !self.take("(") {
            return Err(format!("{name} takes its numbers in brackets"));
        }
        let mut arguments = vec![self.formula(0)?];
        while self.take(",") {
            arguments.push(self.formula(0)?);
        }
        if self.take(")") {
            Ok(Node::Call(function, arguments))
        } else {
            Err(format!(
                "a closing bracket is missing after the numbers of {name}"
            ))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(24).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> f64 {
        let figure = |asked: &Asked| match asked.to_string().as_str() {
            "pp" => Some(4.0),
            "m" => Some(8.0),
            "gpipe.peak(1)" => Some(2048.0),
            _ => None,
        };
        Formula::parse(text).unwrap().value(&figure).unwrap()
    }

    #[test]
    fn formulas_are_read_as_they_are_meant() {
        for (text, wanted) in [
            ("1 + 2 * 3", 7.0),
            ("10 - 3 - 2", 5.0),
            ("-(1 + 2) / 3", -1.0),
            ("(pp - 1) / (m + pp - 1)", 3.0 / 11.0),
            ("10 %", 0.1),
            ("2 KiB = gpipe.peak(1)", 1.0),
            ("pp >= 4 and m < 8 or 1", 1.0),
            ("pp >= 4 and m < 8", 0.0),
            ("max(pp, m, 3) - min(pp, m)", 4.0),
            ("0.1 + 0.2 == 0.3", 1.0),
            ("0.1 + 0.2 > 0.3", 0.0),
            ("1_000 ms", 1.0),
            ("round(2.5) × 2", 6.0),
        ] {
            assert!(
                (value(text) - wanted).abs() < 1e-12,
                "{text}: {}",
                value(text)
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said: Vec<String> = [
            "", "1 +", "(1", "pp(x)", "min 1", "1 $ 2", "gpipe.", "1..2", "a b",
        ]
        .into_iter()
        .map(|text| format!("{text:?}: {}", Formula::parse(text).unwrap_err()))
        .collect();
        insta::assert_snapshot!(said.join("\n"));
        assert!(Formula::parse(&"(".repeat(100_000)).is_err());
        assert!(Formula::parse(&"-".repeat(100_000)).is_err());
        assert!(Formula::parse(&"1+".repeat(100_000)).is_err());
    }

    #[test]
    fn a_goal_falls_into_its_parts() {
        let parts = |text: &str| -> Vec<String> {
            let formula = Formula::parse(text).unwrap();
            formula
                .parts()
                .iter()
                .map(|part| part.text().to_owned())
                .collect()
        };
        assert_eq!(
            parts("pp > 1 and peak(0) < 2 MiB"),
            ["pp > 1", "peak(0) < 2 MiB"]
        );
        assert_eq!(
            parts("(pp > 1 and m > 1) or m > 9"),
            ["(pp > 1 and m > 1) or m > 9"]
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-a-z0-9 .()+*/<>=%]{0,60}") {
            if let Ok(formula) = Formula::parse(&text) {
                let _value = formula.value(&|_| Some(1.0));
            }
        }
    }
}

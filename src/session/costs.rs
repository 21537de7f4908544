//! Costs as they are written: `model`, `unit`, or the passes of a stage in milliseconds.

use super::config::Costs;
use crate::units::Nanos;

/// The longest pass that is taken, in milliseconds: sums of the longest schedule stay far from overflow.
const LONGEST_MS: f64 = 1e6;

impl Costs {
    /// What `text` says; or what is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "model" => Ok(Self::Model),
            "unit" => Ok(Self::unit()),
            _ => passes(text),
        }
    }
}

fn passes(text: &str) -> Result<Costs, String> {
    let (mut f, mut i, mut w, mut comm) = (None, None, None, None);
    for part in text.split(',') {
        let part = part.trim();
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} is not of the form f=MS"))?;
        let slot = match key.trim() {
            "f" => &mut f,
            "i" | "b" => &mut i,
            "w" => &mut w,
            "comm" => &mut comm,
            other => return Err(format!("{other:?} is none of f, i (or b), w and comm")),
        };
        if slot.replace(millis(key, value.trim())?).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    let needed = |name: &str, value: Option<Nanos>| {
        value.ok_or_else(|| format!("{name}= is missing; f, i and w are all needed"))
    };
    let (forward, input_grad) = (needed("f", f)?, needed("i", i)?);
    let weight_grad = needed("w", w)?;
    if forward + input_grad + weight_grad == Nanos::ZERO {
        return Err("f, i and w are all 0, so there is nothing to time".to_owned());
    }
    Ok(Costs::Passes {
        forward,
        input_grad,
        weight_grad,
        comm: comm.unwrap_or_default(),
    })
}

fn millis(key: &str, value: &str) -> Result<Nanos, String> {
    value
        .parse::<f64>()
        .ok()
        .filter(|ms| (0.0..=LONGEST_MS).contains(ms))
        .map(Nanos::from_millis)
        .ok_or_else(|| format!("{key}={value} is not a time from 0 to {LONGEST_MS} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_all_ones() {
        assert_eq!(Costs::from_text("f=1,b=1,w=1").unwrap(), Costs::unit());
        assert_eq!(
            Costs::from_text("w=1, i=1, comm=0, f=1").unwrap(),
            Costs::unit()
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "f",
            "f=1",
            "f=1,i=1",
            "f=1,i=1,w=x",
            "f=1,i=1,w=nan",
            "f=1,i=1,w=-1",
            "f=1,i=1,b=1,w=1",
            "f=0,i=0,w=0",
            "f=1e300,i=1,w=1",
            "g=1",
        ] {
            assert!(Costs::from_text(text).is_err(), "{text}");
        }
    }
}

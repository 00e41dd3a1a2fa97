//! `SKEW` and `KURT`: the shape of a distribution by its central moments.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// One of both aggregates; its argument is a DOUBLE.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    name: &'static str,
    signature: Signature,
}

impl Shape {
    pub fn new(name: &'static str) -> Self {
        Self { name, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Shape {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let state =
            |number| Arc::new(Field::new(format!("{}[state {number}]", args.name), DataType::Float64, true));
        Ok((0..5).map(state).collect())
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Gathered { is_skew: self.name == "skew", moments: Moments::default() }))
    }
}

/// How many values there were, their mean, and the sums of the powers of their distances from it.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl Moments {
    /// Adds the moments of other values. Sums of distances stay small, so that no digits are lost as in sums of powers.
    fn merge(&mut self, other: Self) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let (a, b) = (self.count, other.count);
        let count = a + b;
        let apart = other.mean - self.mean;
        let step = apart / count;
        let product = apart * step * a * b;
        let third = self.third
            + other.third
            + product * step * (a - b)
            + 3.0 * step * (a * other.second - b * self.second);
        self.fourth += other.fourth
            + product * step * step * (a * a - a * b + b * b)
            + 6.0 * step * step * (a * a * other.second + b * b * self.second)
            + 4.0 * step * (a * other.third - b * self.third);
        self.third = third;
        self.second += other.second + product;
        self.mean += step * b;
        self.count = count;
    }

    /// `None` if all values are one.
    fn skew(self) -> Option<f64> {
        (self.second > 0.0).then(|| self.count.sqrt() * self.third / self.second.powf(1.5))
    }

    fn kurt(self) -> Option<f64> {
        (self.second > 0.0).then(|| self.count * self.fourth / (self.second * self.second) - 3.0)
    }
}

#[derive(Debug)]
struct Gathered {
    is_skew: bool,
    moments: Moments,
}

impl Accumulator for Gathered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.moments.merge(Moments { count: 1.0, mean: value, ..Moments::default() });
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> = states.iter().map(AsArray::as_primitive::<Float64Type>).collect();
        for row in 0..columns[0].len() {
            let at = |column: usize| columns[column].value(row);
            let (count, mean, second, third, fourth) = (at(0), at(1), at(2), at(3), at(4));
            self.moments.merge(Moments { count, mean, second, third, fourth });
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Moments { count, mean, second, third, fourth } = self.moments;
        Ok([count, mean, second, third, fourth].map(ScalarValue::from).to_vec())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = if self.is_skew { self.moments.skew() } else { self.moments.kurt() };
        Ok(ScalarValue::Float64(found.filter(|value| value.is_finite())))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_parts_are_those_of_the_whole() {
        let values = [2.0, 3.5, -1.0, 8.0, 8.0, 0.25, 100.0, 4.0];
        let of = |values: &[f64]| {
            let mut all = Moments::default();
            values.iter().for_each(|value| {
                all.merge(Moments { count: 1.0, mean: *value, ..Moments::default() });
            });
            all
        };
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let power = |k: i32| values.iter().map(|value| (value - mean).powi(k)).sum::<f64>() / n;
        let (skew, kurt) = (power(3) / power(2).powf(1.5), power(4) / (power(2) * power(2)) - 3.0);
        for at in 0..=values.len() {
            let (mut left, right) = (of(&values[..at]), of(&values[at..]));
            left.merge(right);
            assert!((left.skew().unwrap() - skew).abs() < 1e-12, "{at}");
            assert!((left.kurt().unwrap() - kurt).abs() < 1e-12, "{at}");
        }
        assert_eq!(of(&[1.0, 1.0]).skew(), None);
        assert_eq!(Moments::default().kurt(), None);
    }
}

//! Finding the partition of a row.

use super::{Bound, Partition, PartitionRows, PartitionValue};
use std::cmp::Ordering;

/// A [`PartitionValue`] where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueRef<'a> {
    Null,
    Int(i128),
    Text(&'a str),
}

impl PartitionValue {
    /// The value where it is.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Int(*value),
            Self::Text(text) => ValueRef::Text(text),
        }
    }
}

impl ValueRef<'_> {
    /// Copies the value into an owned one.
    #[must_use]
    pub fn to_value(self) -> PartitionValue {
        match self {
            Self::Null => PartitionValue::Null,
            Self::Int(value) => PartitionValue::Int(value),
            Self::Text(text) => PartitionValue::Text(text.to_owned()),
        }
    }

    /// NULL is at the beginning of the lowest range.
    fn compare(self, bound: &Bound) -> Ordering {
        match (self, bound) {
            (Self::Null, Bound::Min) => Ordering::Equal,
            (Self::Null, _) | (_, Bound::Max) => Ordering::Less,
            (_, Bound::Min) => Ordering::Greater,
            (value, Bound::Value(bound)) => value.cmp(&bound.as_ref()),
        }
    }
}

fn compare(values: &[ValueRef<'_>], bounds: &[Bound]) -> Ordering {
    let unequal = |(value, bound): (&ValueRef<'_>, &Bound)| {
        Some(value.compare(bound)).filter(|order| *order != Ordering::Equal)
    };
    values.iter().zip(bounds).find_map(unequal).unwrap_or(Ordering::Equal)
}

/// The partitions in the order of their bounds or values, each with its place in the list.
#[derive(Debug)]
pub(super) enum Finder {
    Ranges(Vec<(Vec<Bound>, Vec<Bound>, usize)>),
    Integers(IntegerRanges),
    Values { values: Vec<(Vec<PartitionValue>, usize)>, others: Option<usize> },
}

impl Finder {
    pub(super) fn new(list: &[Partition]) -> Self {
        let (mut ranges, mut values, mut others) = (Vec::new(), Vec::new(), None);
        for (place, partition) in list.iter().enumerate() {
            match &partition.rows {
                PartitionRows::Range { lower, upper } => ranges.push((lower.clone(), upper.clone(), place)),
                PartitionRows::Values(tuples) => {
                    values.extend(tuples.iter().map(|tuple| (tuple.clone(), place)));
                }
                PartitionRows::Others => others = Some(place),
            }
        }
        if ranges.is_empty() {
            values.sort();
            return Self::Values { values, others };
        }
        ranges.sort();
        let integers =
            |(lower, upper, place): &(Vec<Bound>, Vec<Bound>, usize)| match (&lower[..], &upper[..]) {
                ([lower], [upper]) => Some((integer(lower)?, integer(upper)?, *place)),
                _ => None,
            };
        match ranges.iter().map(integers).collect() {
            Some(integers) => Self::Integers(IntegerRanges::new(integers)),
            None => Self::Ranges(ranges),
        }
    }

    pub(super) fn find(&self, values: &[ValueRef<'_>]) -> Option<usize> {
        match self {
            Self::Integers(ranges) => match values {
                [ValueRef::Int(value)] => ranges.find(*value),
                _ => ranges.null,
            },
            Self::Ranges(ranges) => {
                let after = ranges.partition_point(|(lower, ..)| compare(values, lower) != Ordering::Less);
                let (_, upper, place) = ranges.get(after.checked_sub(1)?)?;
                (compare(values, upper) == Ordering::Less).then_some(*place)
            }
            Self::Values { values: known, others } => {
                let order = |(tuple, _): &(Vec<PartitionValue>, usize)| {
                    tuple.iter().map(PartitionValue::as_ref).cmp(values.iter().copied())
                };
                match known.binary_search_by(order) {
                    Ok(found) => Some(known[found].1),
                    Err(_) => *others,
                }
            }
        }
    }
}

/// Ranges of one column of integers.
#[derive(Debug)]
pub(super) struct IntegerRanges {
    /// Lower bounds, upper bounds and places, in order.
    ranges: Vec<(i128, i128, usize)>,
    /// The place of the range that has NULL, which is below all values.
    pub null: Option<usize>,
    steps: Steps,
}

/// A lookup table for values: steps of equal width, and the number of ranges that begin at or before each. With it, rows of many
/// days are found without a search among all days.
#[derive(Debug, Default)]
struct Steps {
    first: i128,
    /// The width is a power of two.
    width_log2: u32,
    /// The number of ranges that begin at or before the beginning of each step.
    ranges: Vec<usize>,
}

/// Steps per range, so that hardly any step has several ranges.
const STEPS_OF_RANGE: usize = 4;

impl IntegerRanges {
    fn new(ranges: Vec<(i128, i128, usize)>) -> Self {
        let null = ranges.first().filter(|(lower, ..)| *lower == i128::MIN).map(|(.., place)| *place);
        let steps = Steps::new(&ranges);
        Self { ranges, null, steps }
    }

    /// The place of the range that has the value.
    pub fn find(&self, value: i128) -> Option<usize> {
        let (from, to) = self.steps.around(value, self.ranges.len());
        let after = from + self.ranges[from..to].partition_point(|(lower, ..)| *lower <= value);
        let (_, upper, place) = self.ranges.get(after.checked_sub(1)?)?;
        (value < *upper).then_some(*place)
    }
}

impl Steps {
    fn new(ranges: &[(i128, i128, usize)]) -> Self {
        let lowers = || ranges.iter().map(|(lower, ..)| *lower).filter(|lower| *lower != i128::MIN);
        let (Some(first), Some(last)) = (lowers().next(), lowers().next_back()) else {
            return Self::default();
        };
        // Numbers that lie so far apart are not worth a thought.
        let Some(span) = last.checked_sub(first) else { return Self::default() };
        let steps = (ranges.len() * STEPS_OF_RANGE) as i128;
        let width_log2 = (span / steps + 1).ilog2();
        let begins = (0..=span >> width_log2).map(|step| first + (step << width_log2));
        let before = |begin| ranges.partition_point(|(lower, ..)| *lower <= begin);
        Self { first, width_log2, ranges: begins.map(before).collect() }
    }

    /// Bounds on the index of the first range that begins after a value.
    fn around(&self, value: i128, ranges: usize) -> (usize, usize) {
        let step =
            value.checked_sub(self.first).filter(|above| *above >= 0).map(|above| above >> self.width_log2);
        let Some(step) = step.and_then(|step| usize::try_from(step).ok()) else { return (0, ranges) };
        match (self.ranges.get(step), self.ranges.get(step + 1)) {
            (Some(from), Some(to)) => (*from, *to),
            (Some(from), None) => (*from, ranges),
            // Behind the beginning of the last range.
            (None, _) => (self.ranges.last().copied().unwrap_or_default(), ranges),
        }
    }
}

/// No column has the greatest number of all, so below it is below MAXVALUE.
fn integer(bound: &Bound) -> Option<i128> {
    match bound {
        Bound::Min => Some(i128::MIN),
        Bound::Value(PartitionValue::Int(value)) => Some(*value),
        Bound::Value(_) => None,
        Bound::Max => Some(i128::MAX),
    }
}

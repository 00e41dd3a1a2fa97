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
    /// The value as one to keep.
    #[must_use]
    pub fn to_value(self) -> PartitionValue {
        match self {
            Self::Null => PartitionValue::Null,
            Self::Int(value) => PartitionValue::Int(value),
            Self::Text(text) => PartitionValue::Text(text.to_owned()),
        }
    }

    /// NULL is where the lowest range begins.
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
    /// Ranges of one column of integers: the lower bound, the upper one, and whether NULL is in it.
    Integers(Vec<(i128, i128, bool, usize)>),
    Values {
        values: Vec<(Vec<PartitionValue>, usize)>,
        others: Option<usize>,
    },
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
                ([lower], [upper]) => {
                    let has_null = *lower == Bound::Min;
                    Some((integer(lower)?, integer(upper)?, has_null, *place))
                }
                _ => None,
            };
        match ranges.iter().map(integers).collect() {
            Some(integers) => Self::Integers(integers),
            None => Self::Ranges(ranges),
        }
    }

    pub(super) fn find(&self, values: &[ValueRef<'_>]) -> Option<usize> {
        match self {
            Self::Integers(ranges) => {
                let &[ValueRef::Int(value)] = values else {
                    // NULL is below all, so only the first may have it.
                    let (.., has_null, place) = ranges.first()?;
                    return has_null.then_some(*place);
                };
                let after = ranges.partition_point(|(lower, ..)| *lower <= value);
                let (_, upper, _, place) = ranges.get(after.checked_sub(1)?)?;
                (value < *upper).then_some(*place)
            }
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

/// No column has the greatest number of all, so below it is below MAXVALUE.
fn integer(bound: &Bound) -> Option<i128> {
    match bound {
        Bound::Min => Some(i128::MIN),
        Bound::Value(PartitionValue::Int(value)) => Some(*value),
        Bound::Value(_) => None,
        Bound::Max => Some(i128::MAX),
    }
}

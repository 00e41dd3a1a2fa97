//! How the rows of a table are divided into partitions.
//!
//! A partition is a fact about data files and no table of its own: the definition has the partitions with their bounds, and
//! the columns of a row alone decide which of them it is in.
//!
//! Invariant: no two partitions of a table have a row in common. Not this module's business: how statements spell partitions, and
//! where files record theirs.

mod auto;
mod find;
mod names;
mod rows;
mod show;

pub use auto::{AutoPartition, TimeUnit, list_name, range_name};
pub use find::ValueRef;
pub use names::PartitionNames;

use crate::ids::{ColumnId, PartitionId};
use find::Finder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// How the rows of a table are divided into partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Partitioning {
    /// The table is one partition.
    #[default]
    None,
    By(Arc<Partitions>),
}

impl Partitioning {
    /// The partitions of a table that has such.
    #[must_use]
    pub const fn partitions(&self) -> Option<&Arc<Partitions>> {
        match self {
            Self::None => None,
            Self::By(partitions) => Some(partitions),
        }
    }
}

/// How the columns of a row determine its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionMethod {
    /// The range that the values of the columns are in, from left to right.
    Range,
    /// The values themselves.
    List,
}

impl PartitionMethod {
    /// The word of the statement.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "RANGE",
            Self::List => "LIST",
        }
    }
}

/// The partitions of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    pub method: PartitionMethod,
    /// The columns that decide, in order.
    pub columns: Vec<ColumnId>,
    /// The partitions that loads create for their rows; `None`: they create none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<AutoPartition>,
    /// In the order of their making.
    pub list: Vec<Partition>,
    /// The id that the next partition gets.
    pub next_id: PartitionId,
    #[serde(skip)]
    finder: Found,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Never used twice in a table.
    pub id: PartitionId,
    pub name: String,
    pub rows: PartitionRows,
    /// As given; without effect on one node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// Partitions that were dropped for good, which the Delta log may not have yet.
///
/// A definition with a mark gains and loses no partitions: the drop is completed first. So the marked partitions have no row in common
/// with the definition's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropMark {
    /// A version of the Delta log without the drop, and greater than that of any earlier drop's mark: when the log has the drop, it says
    /// this number.
    pub log_version: u64,
    pub partitions: Vec<Partition>,
}

impl DropMark {
    /// The partitions before the drop that left these.
    #[must_use]
    pub fn before(&self, left: &Partitions) -> Partitions {
        let mut before = left.clone();
        let is_gone = |partition: &&Partition| left.by_id(partition.id).is_none();
        before.list.extend(self.partitions.iter().filter(is_gone).cloned());
        before
    }
}

/// The rows of a partition: one bound per column, or values of all columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionRows {
    /// From `lower` on and below `upper`, compared from left to right.
    Range {
        lower: Vec<Bound>,
        upper: Vec<Bound>,
    },
    Values(Vec<Vec<PartitionValue>>),
    /// The rows with values that no other partition has.
    Others,
}

/// The end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Bound {
    /// Below every value; NULL is here.
    Min,
    Value(PartitionValue),
    /// `MAXVALUE`.
    Max,
}

/// The value of a column that decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PartitionValue {
    Null,
    /// An integer, a BOOLEAN as 0 or 1, a DATE in days since 1970-01-01, a DATETIME in µs since 1970-01-01 00:00:00.
    #[serde(with = "int_text")]
    Int(i128),
    Text(String),
}

/// JSON's numbers are too short for all integers.
mod int_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Finder for the partition of a row, built on first use. It contains nothing that the partitions do not say.
#[derive(Debug, Default)]
struct Found(OnceLock<Finder>);

impl Clone for Found {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Found {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Found {}

impl Partitions {
    /// A table's partitioning before it has partitions.
    #[must_use]
    pub fn new(method: PartitionMethod, columns: Vec<ColumnId>) -> Self {
        Self {
            method,
            columns,
            auto: None,
            list: Vec::new(),
            next_id: PartitionId(1),
            finder: Found::default(),
        }
    }

    /// Whether no partition was ever removed.
    #[must_use]
    pub fn has_all_that_were(&self) -> bool {
        self.next_id.0 == self.list.len() as u64 + 1
    }

    /// Adds a partition, which has no row in common with the others.
    pub fn add(&mut self, name: &str, rows: PartitionRows, properties: BTreeMap<String, String>) {
        self.list.push(Partition { id: self.next_id, name: name.to_owned(), rows, properties });
        self.next_id = self.next_id.next();
        self.finder = Found::default();
    }

    /// Removes the partitions with these ids.
    pub fn remove(&mut self, ids: &[PartitionId]) {
        self.list.retain(|partition| !ids.contains(&partition.id));
        self.finder = Found::default();
    }

    /// Some of the partitions alone, with their ids.
    #[must_use]
    pub fn only(&self, ids: &[PartitionId]) -> Self {
        let mut some = self.clone();
        some.list.retain(|partition| ids.contains(&partition.id));
        some
    }

    /// The partitions whose ids `other` does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut some = self.clone();
        some.list.retain(|partition| other.by_id(partition.id).is_none());
        some
    }

    /// The index in the list of the partition of a row with these column values. `None` if the row has none.
    #[must_use]
    pub fn find(&self, values: &[ValueRef<'_>]) -> Option<usize> {
        self.finder().find(values)
    }

    fn finder(&self) -> &Finder {
        self.finder.0.get_or_init(|| Finder::new(&self.list))
    }

    /// The place in the list of the partition called `name` in any case.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|partition| partition.name.eq_ignore_ascii_case(name))
    }

    /// The partition with that id.
    #[must_use]
    pub fn by_id(&self, id: PartitionId) -> Option<&Partition> {
        self.list.iter().find(|partition| partition.id == id)
    }
}

#[cfg(test)]
mod tests;

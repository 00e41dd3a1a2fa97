//! A change of a table, and its record.

use crate::kept::KeptPartition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tributary_table::changed_def;
use tributary_types::{PartitionId, Partitioning, Partitions, SourceId, TableDef, TableId};

/// The kind of the records of changes of partitions. A heavy schema change is a job, whose record is its owner's business.
pub const KIND: &str = "change_partitions";

/// Kinds of records that older servers wrote.
const OLD_KINDS: [&str; 2] = ["replace_partitions", "recycle_partitions"];

/// A change of a table that crosses its Delta log.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Greater than that of every earlier change of the table.
    pub id: SourceId,
    pub table: TableId,
    pub effect: Effect,
}

/// The result of a change, for the catalog.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a statement makes one")]
pub enum Effect {
    /// The table has the columns, keys and properties of this definition.
    Columns(Arc<TableDef>),
    Partitions(NewPartitions),
}

/// The partitions of a table after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewPartitions {
    /// All partitions of the table after it.
    pub partitions: Partitions,
    /// The table whose rows were taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Partitions that are no longer in the table, and are retained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Dropped>,
    /// Retained partitions that are restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<PartitionId>,
}

/// A table that loses partitions whose rows become rows of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    pub table: TableId,
    /// The partitions that it loses.
    pub moved: Vec<PartitionId>,
}

/// A partition that is dropped and retained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub kept: KeptPartition,
}

impl NewPartitions {
    #[must_use]
    pub fn new(partitions: Partitions) -> Self {
        Self { partitions, beside: None, dropped: Vec::new(), recovered: Vec::new() }
    }
}

/// The body of a record: what [`Change::read`] reads.
#[derive(Serialize, Deserialize)]
struct Body {
    table: TableId,
    #[serde(flatten)]
    partitions: NewPartitions,
}

/// The body of a replacement's record, as older servers wrote it.
#[derive(Deserialize)]
struct OldReplacement {
    table: TableId,
    partitions: Partitions,
    beside: TableId,
    moved: Vec<PartitionId>,
}

/// The body of the record of a change of partitions.
#[must_use]
pub fn written(table: TableId, partitions: &NewPartitions) -> Value {
    let body = Body { table, partitions: partitions.clone() };
    serde_json::to_value(body).unwrap_or_default()
}

impl Change {
    /// The newest format of bodies that is read, and the one that is written.
    pub const FORMAT: u32 = 1;

    /// Whether this is the kind of a record of a change of partitions, written by this or an older server.
    #[must_use]
    pub fn has_kind(kind: &str) -> bool {
        kind == KIND || OLD_KINDS.contains(&kind)
    }

    /// Reads the body of a record of that kind.
    ///
    /// # Errors
    /// The reason why it can't be read, in words.
    pub fn read(id: SourceId, kind: &str, body: Value) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| error.to_string();
        let Body { table, partitions } = match kind {
            "replace_partitions" => {
                let OldReplacement { table, partitions, beside, moved } =
                    serde_json::from_value(body).map_err(unreadable)?;
                let beside = Some(Beside { table: beside, moved });
                Body { table, partitions: NewPartitions { beside, ..NewPartitions::new(partitions) } }
            }
            _ => serde_json::from_value(body).map_err(unreadable)?,
        };
        Ok(Self { id, table, effect: Effect::Partitions(partitions) })
    }

    /// The definition after the change of a table that has `current` before it.
    #[must_use]
    pub fn definition(&self, current: &TableDef) -> TableDef {
        match &self.effect {
            Effect::Columns(target) => changed_def(target, current),
            Effect::Partitions(NewPartitions { partitions, .. }) => {
                let partitioning = Partitioning::By(Arc::new(partitions.clone()));
                // The change was made after an earlier drop of partitions.
                TableDef { partitioning, drop_mark: None, ..current.clone() }
            }
        }
    }

    /// The definition after the change of the table whose rows it takes over.
    #[must_use]
    pub fn definition_beside(&self, current: &TableDef) -> TableDef {
        let Some(beside) = self.beside() else { return current.clone() };
        let Some(partitions) = current.partitioning.partitions() else { return current.clone() };
        let mut left = Partitions::clone(partitions);
        left.remove(&beside.moved);
        TableDef { partitioning: Partitioning::By(Arc::new(left)), ..current.clone() }
    }

    #[must_use]
    pub fn partitions(&self) -> Option<&NewPartitions> {
        match &self.effect {
            Effect::Columns(_) => None,
            Effect::Partitions(partitions) => Some(partitions),
        }
    }

    #[must_use]
    pub fn beside(&self) -> Option<&Beside> {
        self.partitions()?.beside.as_ref()
    }

    /// Whether the catalog must already have had the change, given its contents. Numbers of schemas and partitions never
    /// decrease. Only catalogs of servers that did not store a last change need this.
    pub(crate) fn is_older_than(&self, current: &TableDef) -> bool {
        match &self.effect {
            Effect::Columns(target) => current.schema.version > target.schema.version,
            Effect::Partitions(NewPartitions { partitions, .. }) => {
                let now = current.partitioning.partitions();
                now.is_some_and(|now| now.next_id > partitions.next_id)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, text: &str) -> Change {
        Change::read(SourceId(7), kind, serde_json::from_str(text.trim()).unwrap()).unwrap()
    }

    #[test]
    fn records_are_written_and_read_as_the_golden_file_says() {
        let golden = include_str!("golden/change-1.json").trim();
        let change = read(KIND, golden);
        let partitions = change.partitions().unwrap();
        assert_eq!(written(change.table, partitions).to_string(), golden);
        assert_eq!((partitions.dropped.len(), partitions.recovered.len()), (1, 1));
        assert_eq!(change.beside().unwrap().moved, [PartitionId(1)]);
    }

    #[test]
    fn records_of_older_servers_are_read() {
        let replacement = read(OLD_KINDS[0], include_str!("golden/replace_partitions-0.json"));
        assert_eq!(replacement.beside(), Some(&Beside { table: TableId(12), moved: vec![PartitionId(1)] }));
        let dropped = read(OLD_KINDS[1], include_str!("golden/recycle_partitions-0.json"));
        let partitions = dropped.partitions().unwrap();
        assert_eq!(partitions.dropped[0].kept.files.len(), 1);
        assert!(partitions.recovered.is_empty());
    }
}

//! The catalog's record of a dropped partition until it is recovered or erased.

use serde::{Deserialize, Serialize};
use tributary_table::KeptFile;
use tributary_types::{Partition, PartitionId, SchemaVersion};

/// The newest format that is read, and the one that is written; an added field has a default and leaves the format unchanged.
const FORMAT: u32 = 1;

/// A dropped partition with its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptPartition {
    format: u32,
    pub partition: Partition,
    /// The table's, when the partition was dropped.
    pub schema: SchemaVersion,
    /// The id that the table's next partition would have had.
    pub next: PartitionId,
    pub files: Vec<KeptFile>,
}

impl KeptPartition {
    #[must_use]
    pub fn new(partition: Partition, schema: SchemaVersion, next: PartitionId, files: Vec<KeptFile>) -> Self {
        Self { format: FORMAT, partition, schema, next, files }
    }

    /// The size of its data files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|kept| kept.file.size_bytes).sum()
    }

    /// # Panics
    /// Never: it has only texts and numbers.
    #[must_use]
    pub fn written(&self) -> String {
        serde_json::to_string(self).expect("a kept partition has only texts and numbers")
    }

    /// Reads what [`KeptPartition::written`] wrote, here or in an older server.
    ///
    /// # Errors
    /// The reason why it can't be read, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| format!("the kept partition can't be read: {error}");
        let Head { format } = serde_json::from_str(text).map_err(unreadable)?;
        if format > FORMAT {
            return Err(format!(
                "the kept partition can't be read: it has format {format}, and this program knows formats up to {FORMAT}"
            ));
        }
        serde_json::from_str(text).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_partition_is_read_as_it_was_written() {
        let golden = include_str!("golden/kept-1.json").trim();
        let kept = KeptPartition::read(golden).unwrap();
        assert_eq!(kept.written(), golden);
        assert_eq!(kept.files.len(), 1);
        // Even if nothing else about it is known.
        let error = KeptPartition::read("{\"format\":2}").unwrap_err();
        assert!(error.contains("format 2"), "{error}");
    }
}

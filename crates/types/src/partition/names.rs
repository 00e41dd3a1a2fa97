//! Partitions that a statement or a load names.

use crate::error::{ErrorCode, SqlError};
use crate::table::TableDef;

/// The partitions that a statement or a load names behind a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PartitionNames {
    /// None, or `PARTITION (*)`: whichever the rows are in.
    #[default]
    Any,
    Named(Vec<String>),
    Temporary(Vec<String>),
}

impl PartitionNames {
    /// Whether no partition is named.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// The names.
    #[must_use]
    pub fn named(&self) -> &[String] {
        match self {
            Self::Any => &[],
            Self::Named(names) | Self::Temporary(names) => names,
        }
    }

    /// Like [`Self::resolve`], for temporary partitions of `table`, which are the partitions of `beside`.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_temporary(
        &self,
        table: &TableDef,
        beside: Option<&TableDef>,
    ) -> Result<Vec<bool>, SqlError> {
        if table.partitioning.partitions().is_none() {
            return Err(not_partitioned());
        }
        let temporary = beside.and_then(|beside| beside.partitioning.partitions());
        let list = temporary.map_or(&[][..], |temporary| &temporary.list);
        let mut allowed = vec![false; list.len()];
        for name in self.named() {
            let place = temporary.and_then(|temporary| temporary.index_of(name));
            allowed[place.ok_or_else(|| not_found(name, table))?] = true;
        }
        Ok(allowed)
    }

    /// By the places of the table's partitions, which of them are named. `None`: all are meant.
    ///
    /// # Errors
    /// The table has no partitions (1747), or none with such a name.
    pub fn resolve(&self, table: &TableDef) -> Result<Option<Vec<bool>>, SqlError> {
        let names = match self {
            Self::Any => return Ok(None),
            Self::Named(names) => names,
            Self::Temporary(_) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "temporary partitions are not supported here: name partitions of the table",
                ));
            }
        };
        let Some(partitions) = table.partitioning.partitions() else {
            return Err(not_partitioned());
        };
        let mut allowed = vec![false; partitions.list.len()];
        for name in names {
            let place = partitions.index_of(name).ok_or_else(|| not_found(name, table))?;
            allowed[place] = true;
        }
        Ok(Some(allowed))
    }
}

fn not_partitioned() -> SqlError {
    SqlError::new(ErrorCode::NotPartitioned, "PARTITION () clause on non partitioned table")
}

fn not_found(name: &str, table: &TableDef) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("partition {name} is not found in table {}", table.name))
}

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

    /// By the places of the table's partitions, which of them are named. `None`: all are meant.
    ///
    /// # Errors
    /// The table has no partitions (1747), or none of such a name.
    pub fn resolve(&self, table: &TableDef) -> Result<Option<Vec<bool>>, SqlError> {
        let names = match self {
            Self::Any => return Ok(None),
            Self::Named(names) => names,
            Self::Temporary(_) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "temporary partitions are not supported yet: name partitions of the table",
                ));
            }
        };
        let Some(partitions) = table.partitioning.partitions() else {
            return Err(SqlError::new(
                ErrorCode::NotPartitioned,
                "PARTITION () clause on non partitioned table",
            ));
        };
        let mut allowed = vec![false; partitions.list.len()];
        for name in names {
            let place = partitions.index_of(name).ok_or_else(|| {
                let text = format!("partition {name} is not found in table {}", table.name);
                SqlError::detail(ErrorCode::Unknown, text)
            })?;
            allowed[place] = true;
        }
        Ok(Some(allowed))
    }
}

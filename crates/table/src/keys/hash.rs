//! Keys as numbers.
//!
//! 96 bits of XXH3 over the values in Arrow's row format, which is the same for equal values and different for others, NULL
//! included. Two keys of a billion have the same number with a chance of one in 10¹¹.

use crate::error::TableError;
use arrow::array::ArrayRef;
use arrow::row::{RowConverter, SortField};
use std::hash::{BuildHasherDefault, Hasher};
use tributary_types::TableSchema;
use xxhash_rust::xxh3::xxh3_128;

const DOING: &str = "hashing keys";

/// The number of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash {
    pub(crate) high: u64,
    pub(crate) low: u32,
}

impl std::hash::Hash for KeyHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.high);
    }
}

/// Takes a [`KeyHash`] for what it is.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

pub(crate) type BuildIdentity = BuildHasherDefault<Identity>;

/// Hashes the keys of a table's rows.
pub(crate) struct KeyHasher(RowConverter);

impl KeyHasher {
    pub(crate) fn new(schema: &TableSchema) -> Result<Self, TableError> {
        let keys = schema.columns.iter().filter(|column| column.is_key);
        let fields = keys.map(|column| SortField::new(column.data_type.to_arrow())).collect();
        Ok(Self(RowConverter::new(fields).map_err(TableError::arrow(DOING))?))
    }

    /// The keys whose columns these are, in the order of the schema.
    pub(crate) fn of_columns(&self, columns: &[ArrayRef]) -> Result<Vec<KeyHash>, TableError> {
        let rows = self.0.convert_columns(columns).map_err(TableError::arrow(DOING))?;
        let hash = |row: arrow::row::Row<'_>| {
            let hash = xxh3_128(row.as_ref());
            KeyHash { high: (hash >> 64) as u64, low: hash as u32 }
        };
        Ok(rows.iter().map(hash).collect())
    }
}

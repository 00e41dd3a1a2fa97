//! Keys as numbers.
//!
//! 83 bits of XXH3 over the values in Arrow's row format, which is the same for equal values and different for others, NULL
//! included. If each of a billion rows is looked up among a billion others, the probability of one mistaken match is 10⁻⁷.

use crate::error::TableError;
use arrow::array::ArrayRef;
use arrow::row::{RowConverter, SortField};
use std::hash::{BuildHasherDefault, Hasher};
use tributary_types::TableSchema;
use xxhash_rust::xxh3::xxh3_128;

const DOING: &str = "hashing keys";

/// Bits of the number of a key.
pub(crate) const KEY_BITS: u32 = 83;
const LOW_BITS: u32 = KEY_BITS - u64::BITS;

/// The number of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash {
    high: u64,
    /// The last bits; in 32 of them, because a number of 128 takes more memory in maps.
    low: u32,
}

impl KeyHash {
    /// The key whose number is in the last [`KEY_BITS`] bits.
    pub(crate) fn from_bits(bits: u128) -> Self {
        Self { high: (bits >> LOW_BITS) as u64, low: bits as u32 & ((1 << LOW_BITS) - 1) }
    }

    /// The first bits; of two numbers the greater one has no less of them.
    pub(crate) fn leading(self) -> u64 {
        self.high
    }

    pub(crate) fn bits(self) -> u128 {
        u128::from(self.high) << LOW_BITS | u128::from(self.low)
    }
}

impl std::hash::Hash for KeyHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.high);
    }
}

/// Uses a [`KeyHash`] as its own hash.
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
        let hash = |row: arrow::row::Row<'_>| xxh3_128(row.as_ref()) >> (u128::BITS - KEY_BITS);
        Ok(rows.iter().map(|row| KeyHash::from_bits(hash(row))).collect())
    }
}

//! Values of BITMAP and HLL columns, which represent sets, as bytes.
//!
//! Their bytes are what columns, the write-ahead log and data files have, so both formats stay readable. A text of bytes is a
//! value of one of the two at most. Not the business of this module: functions of SQL over them.

pub mod bitmap;
pub mod hll;

pub use bitmap::Bitmap;
pub use hll::Hll;

use crate::data_type::DataType;

/// A 32-bit hash, for elements without an integer value.
#[must_use]
pub fn hash32(value: &[u8]) -> u32 {
    (hash64(value) >> 32) as u32
}

/// A hash of 64 bits.
#[must_use]
pub fn hash64(value: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(value)
}

/// The bytes of the value without elements, of a type that has such values.
#[must_use]
pub fn empty(data_type: DataType) -> Option<Vec<u8>> {
    match data_type {
        DataType::Bitmap => Some(Bitmap::default().bytes()),
        DataType::Hll => Some(Hll::default().bytes()),
        _ => None,
    }
}

/// Whether the bytes are a value of the type.
#[must_use]
pub fn is_value(data_type: DataType, bytes: &[u8]) -> bool {
    match data_type {
        DataType::Bitmap => Bitmap::read(bytes).is_some(),
        DataType::Hll => Hll::read(bytes).is_some(),
        _ => false,
    }
}

/// A value that others are merged into.
#[derive(Clone, Debug)]
pub enum State {
    Bitmap(Bitmap),
    Hll(Hll),
}

impl State {
    /// The value without elements, of a type that has such values.
    #[must_use]
    pub fn new(data_type: DataType) -> Option<Self> {
        match data_type {
            DataType::Bitmap => Some(Self::Bitmap(Bitmap::default())),
            DataType::Hll => Some(Self::Hll(Hll::default())),
            _ => None,
        }
    }

    /// Adds all elements of another value of the same type. Returns `false` if the bytes are not one.
    pub fn merge(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Bitmap(bitmap) => Bitmap::read(bytes).map(|other| bitmap.union(other)).is_some(),
            Self::Hll(hll) => Hll::read(bytes).map(|other| hll.merge(&other)).is_some(),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bitmap(bitmap) => bitmap.bytes(),
            Self::Hll(hll) => hll.bytes(),
        }
    }
}

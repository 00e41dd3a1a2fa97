//! The deleted rows of a data file.
//!
//! Rows are known by their position in the file, from 0. Not the business of this module: how a vector is stored
//! ([`super::vector`]), and why rows are deleted.

use crate::ambient::new_uuid;
use arrow::buffer::{BooleanBuffer, MutableBuffer};
use arrow::util::bit_util;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deltalake_core::kernel::DeletionVectorDescriptor;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use uuid::Uuid;

/// Positions of rows in one data file.
pub type RowSet = RoaringTreemap;

/// Rows as a text: base64 of Roaring's portable format.
#[must_use]
pub fn rows_to_text(rows: &RowSet) -> String {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    // Writing to memory never fails.
    let _ = rows.serialize_into(&mut bytes);
    STANDARD.encode(bytes)
}

/// The rows that [`rows_to_text`] has written.
///
/// # Errors
/// The text is not of that form, in words.
pub fn rows_from_text(text: &str) -> Result<RowSet, String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    RowSet::deserialize_from(&bytes[..]).map_err(|error| error.to_string())
}

/// Deleted rows of one data file. They never change; with more deletes the file gets others.
pub struct Deletes {
    rows: RowSet,
    id: DeletesId,
    /// The live rows, computed when the file is first read.
    left: OnceLock<BooleanBuffer>,
}

/// Deletes of the same id are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DeletesId {
    /// The Delta log has them.
    Vector(DeletionVectorDescriptor),
    /// It does not have them yet.
    Unlogged(Uuid),
}

impl Deletes {
    pub(crate) fn new(rows: RowSet, vector: DeletionVectorDescriptor) -> Self {
        Self { rows, id: DeletesId::Vector(vector), left: OnceLock::new() }
    }

    /// Deletes that no log has yet, different from all others.
    pub(crate) fn unlogged(rows: RowSet) -> Self {
        Self { rows, id: DeletesId::Unlogged(new_uuid()), left: OnceLock::new() }
    }

    pub(crate) fn is_logged(&self) -> bool {
        matches!(self.id, DeletesId::Vector(_))
    }

    /// The positions of the deleted rows.
    #[must_use]
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// How many rows are deleted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.len()
    }

    /// The path of the vector's file, relative to the table's location. `None` if there is no such file.
    pub(crate) fn path(&self) -> Option<String> {
        match &self.id {
            DeletesId::Vector(vector) => super::vector_path(vector),
            DeletesId::Unlogged(_) => None,
        }
    }

    /// Their reference in the log.
    ///
    /// # Panics
    /// If no log has them.
    pub(crate) fn vector(&self) -> &DeletionVectorDescriptor {
        match &self.id {
            DeletesId::Vector(vector) => vector,
            DeletesId::Unlogged(_) => panic!("deletes are stored before an entry names them"),
        }
    }

    /// The rows of a file of `file_rows` rows that are not deleted: a bit for each row.
    #[must_use]
    pub fn left(&self, file_rows: u64) -> &BooleanBuffer {
        self.left.get_or_init(|| left_of(&self.rows, std::iter::once(0..file_rows)))
    }

    /// The remaining rows, for a reader of some consecutive parts of the file.
    pub(crate) fn left_in(&self, parts: impl Iterator<Item = Range<u64>> + Clone) -> RowSelection {
        RowSelection::from_boolean_buffer(left_of(&self.rows, parts))
    }
}

impl PartialEq for Deletes {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Deletes {}

impl fmt::Debug for Deletes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {:?}", self.count(), self.id)
    }
}

fn left_of(deleted: &RowSet, parts: impl Iterator<Item = Range<u64>> + Clone) -> BooleanBuffer {
    let length = |part: &Range<u64>| usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
    let rows: usize = parts.clone().map(|part| length(&part)).sum();
    let mut bits = MutableBuffer::new(rows.div_ceil(8)).with_bitset(rows.div_ceil(8), true);
    let mut before = 0;
    for part in parts {
        let mut positions = deleted.iter();
        positions.advance_to(part.start);
        for position in positions.take_while(|position| *position < part.end) {
            let place = usize::try_from(position - part.start).unwrap_or(usize::MAX);
            bit_util::unset_bit(bits.as_slice_mut(), before + place);
        }
        before += length(&part);
    }
    BooleanBuffer::new(bits.into(), 0, rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::RowSelector;

    /// Deletes with only a meaningful id.
    pub(crate) fn deletes(id: &str, rows: impl IntoIterator<Item = u64>) -> Deletes {
        let vector = DeletionVectorDescriptor {
            storage_type: deltalake_core::kernel::StorageType::UuidRelativePath,
            path_or_inline_dv: id.to_owned(),
            offset: Some(1),
            size_in_bytes: 1,
            cardinality: 1,
        };
        Deletes::new(rows.into_iter().collect(), vector)
    }

    #[test]
    fn what_is_left_are_all_rows_but_the_deleted_ones() {
        let deletes = deletes("x", [0, 1, 7, 8, 99]);
        let (select, skip) = (RowSelector::select, RowSelector::skip);
        let whole = vec![skip(2), select(5), skip(2), select(90), skip(1)];
        let left = RowSelection::from_boolean_buffer(deletes.left(100).clone());
        assert_eq!(Vec::<RowSelector>::from(left), whole);
        let parts = [1..3, 7..8, 98..100];
        let some = vec![skip(1), select(1), skip(1), select(1), skip(1)];
        assert_eq!(Vec::<RowSelector>::from(deletes.left_in(parts.into_iter())), some);
    }
}

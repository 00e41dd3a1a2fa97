//! Committed rows that are not in a data file yet.
//!
//! The memtable is a list of immutable parts. Publications append parts; small neighbours are
//! merged so that the list stays short, at a cost of a few copies per row however small the
//! publications are. Parts that a flush is writing are never merged with later ones.

use crate::error::TableError;
use crate::file::RowSet;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::DataType;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tributary_types::{Lsn, Version};

/// Parts are merged up to this many rows.
const MERGE_ROWS: usize = 4096;
/// Parts are merged up to this many bytes.
const MERGE_BYTES: usize = 1024 * 1024;

/// Rows of one publication or of several neighbouring ones.
#[derive(Clone, Debug)]
pub struct MemPart {
    /// The last publication in this part.
    pub version: Version,
    /// The rows, in the snapshot's schema.
    pub batch: RecordBatch,
    /// Arrow memory of the rows.
    pub bytes: usize,
    /// The first byte of the write-ahead log that holds any of the rows.
    pub lsn: Lsn,
    /// When the oldest of the rows were published.
    pub since: Instant,
    /// The arrival number of the first row. Rows of later parts have later numbers, without gaps within a part. 0 in a
    /// table whose rows all stay.
    pub first_row: u64,
    /// Rows of the batch that later rows supersede.
    pub superseded: Option<Arc<RowSet>>,
    /// Rows of the batch that delete the rows of their keys, and which no later row supersedes. They count as superseded, too.
    pub deletions: Option<Arc<RowSet>>,
    /// Whether it is known which rows these rows supersede; always in a table whose rows all stay.
    pub is_settled: bool,
}

impl MemPart {
    /// How many rows no later row supersedes, as far as that is known.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.batch.num_rows() as u64 - self.superseded.as_ref().map_or(0, |rows| rows.len())
    }

    /// Whether the row with that arrival number has its key: it is live, or deletes.
    pub(crate) fn has_key(&self, row: u64) -> bool {
        let has = |rows: &Option<Arc<RowSet>>| {
            rows.as_ref().is_some_and(|rows| rows.contains(row - self.first_row))
        };
        !has(&self.superseded) || has(&self.deletions)
    }

    /// The part without these rows, for a query that should not see them.
    pub(crate) fn without(&self, rows: impl Iterator<Item = u64>) -> Self {
        let mut superseded = self.superseded.as_deref().cloned().unwrap_or_default();
        superseded.extend(rows);
        let superseded = (!superseded.is_empty()).then(|| Arc::new(superseded));
        Self { superseded, deletions: None, ..self.clone() }
    }

    /// The part without these rows, permanently.
    pub(crate) fn cut(&self, rows: &RowSet) -> Self {
        let some = |rows: RowSet| (!rows.is_empty()).then(|| Arc::new(rows));
        let superseded = self.superseded.as_deref().cloned().unwrap_or_default() | rows;
        let deletions = self.deletions.as_deref().and_then(|deletions| some(deletions - rows));
        Self { superseded: some(superseded), deletions, ..self.clone() }
    }

    /// The rows that no later row supersedes.
    ///
    /// # Errors
    /// [`TableError::Arrow`].
    pub fn live_batch(&self) -> Result<RecordBatch, TableError> {
        self.batch_without(self.superseded.as_deref())
    }

    /// [`MemPart::live_batch`] and the rows that delete.
    ///
    /// # Errors
    /// [`TableError::Arrow`].
    pub fn kept_batch(&self) -> Result<RecordBatch, TableError> {
        match (&self.superseded, &self.deletions) {
            (Some(superseded), Some(deletions)) => {
                self.batch_without(Some(&(superseded.as_ref() - deletions.as_ref())))
            }
            _ => self.live_batch(),
        }
    }

    fn batch_without(&self, rows: Option<&RowSet>) -> Result<RecordBatch, TableError> {
        let Some(rows) = rows else { return Ok(self.batch.clone()) };
        let is_live = (0..self.batch.num_rows() as u64).map(|row| Some(!rows.contains(row)));
        let is_live: BooleanArray = is_live.collect();
        filter_record_batch(&self.batch, &is_live).map_err(TableError::arrow("leaving out superseded rows"))
    }
}

/// Bytes of Arrow memory of the rows themselves; arrays that share an allocation are counted once.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(array_bytes).sum()
}

/// [`batch_bytes`] of one column.
pub(crate) fn array_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// Bytes that some rows of a column would take in an array of their own, without its marks of NULLs.
pub(crate) fn bytes_between(array: &dyn Array, rows: Range<usize>) -> usize {
    let between = |offsets: &[i32]| (offsets[rows.start] as usize)..(offsets[rows.end] as usize);
    let offsets_bytes = rows.len() * size_of::<i32>();
    match array.data_type() {
        DataType::Utf8 => offsets_bytes + between(array.as_string::<i32>().value_offsets()).len(),
        DataType::Binary => offsets_bytes + between(array.as_binary::<i32>().value_offsets()).len(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            offsets_bytes + bytes_between(list.values(), between(list.value_offsets()))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            offsets_bytes + bytes_between(map.entries(), between(map.value_offsets()))
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| bytes_between(column, rows.clone())).sum()
        }
        DataType::FixedSizeBinary(width) => rows.len() * usize::try_from(*width).unwrap_or_default(),
        other => rows.len() * other.primitive_width().unwrap_or(1),
    }
}

/// Appends `part`, which is settled or not like all parts after `frozen`, merging it with small preceding parts at or after
/// `frozen`.
pub(crate) fn append(parts: &mut Vec<Arc<MemPart>>, frozen: usize, part: MemPart) -> Result<(), TableError> {
    let first = first_to_merge(&parts[frozen..], &part) + frozen;
    let part = if first == parts.len() { part } else { merge(&parts[first..], part)? };
    parts.truncate(first);
    parts.push(Arc::new(part));
    Ok(())
}

/// Where merging starts: as in a binary counter, a part is merged into the following ones if it is not larger, so each row is
/// copied at most log2 of [`MERGE_ROWS`] times.
fn first_to_merge(parts: &[Arc<MemPart>], part: &MemPart) -> usize {
    let (mut rows, mut bytes) = (part.batch.num_rows(), part.bytes);
    let mut first = parts.len();
    while let Some(before) = first.checked_sub(1).map(|index| &parts[index]) {
        let merged = (rows + before.batch.num_rows(), bytes + before.bytes);
        if before.batch.num_rows() > rows || merged.0 > MERGE_ROWS || merged.1 > MERGE_BYTES {
            break;
        }
        (rows, bytes) = merged;
        first -= 1;
    }
    first
}

fn merge(before: &[Arc<MemPart>], last: MemPart) -> Result<MemPart, TableError> {
    assert!(
        before.iter().all(|part| part.is_settled == last.is_settled),
        "settled parts and others are not put together"
    );
    let batches = before.iter().map(|part| &part.batch).chain([&last.batch]);
    let batch = concat_batches(last.batch.schema_ref(), batches)
        .map_err(TableError::arrow("merging small parts of a memtable"))?;
    Ok(MemPart {
        version: last.version,
        bytes: batch_bytes(&batch),
        batch,
        lsn: before.iter().map(|part| part.lsn).fold(last.lsn, Lsn::min),
        since: before.iter().map(|part| part.since).fold(last.since, Instant::min),
        first_row: before.first().map_or(last.first_row, |part| part.first_row),
        superseded: joined(before, &last, |part| part.superseded.as_ref()),
        deletions: joined(before, &last, |part| part.deletions.as_ref()),
        is_settled: last.is_settled,
    })
}

/// Concatenates rows of parts.
fn joined(
    before: &[Arc<MemPart>],
    last: &MemPart,
    rows_of: impl Fn(&MemPart) -> Option<&Arc<RowSet>>,
) -> Option<Arc<RowSet>> {
    let mut all = RowSet::new();
    let mut first = 0;
    for part in before.iter().map(AsRef::as_ref).chain([last]) {
        all.extend(rows_of(part).into_iter().flat_map(|rows| rows.iter()).map(|row| first + row));
        first += part.batch.num_rows() as u64;
    }
    (!all.is_empty()).then(|| Arc::new(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};

    fn part(values: Range<i64>) -> MemPart {
        let version = Version(values.end as u64);
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
        MemPart {
            version,
            bytes: batch_bytes(&batch),
            batch,
            lsn: Lsn(version.0),
            since: Instant::now(),
            first_row: 0,
            superseded: None,
            deletions: None,
            is_settled: true,
        }
    }

    fn values(parts: &[Arc<MemPart>]) -> Vec<i64> {
        let column = |part: &Arc<MemPart>| {
            let array = part.batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
            array.values().to_vec()
        };
        parts.iter().flat_map(column).collect()
    }

    #[test]
    fn many_small_publications_keep_their_order_in_few_parts() {
        let mut parts = Vec::new();
        let mut longest = 0;
        for value in 0..20_000 {
            append(&mut parts, 0, part(value..value + 1)).unwrap();
            longest = longest.max(parts.len());
        }
        assert!(longest <= 20_000 / MERGE_ROWS + 13, "{longest} parts");
        assert_eq!(values(&parts), (0..20_000).collect::<Vec<_>>());
        assert_eq!(parts[0].lsn, Lsn(1));
        assert_eq!(parts[0].version, Version(MERGE_ROWS as u64));
    }

    #[test]
    fn frozen_parts_are_never_merged() {
        let mut parts = Vec::new();
        append(&mut parts, 0, part(0..1)).unwrap();
        append(&mut parts, 1, part(1..2)).unwrap();
        append(&mut parts, 1, part(2..3)).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].batch.num_rows(), 1);
    }

    #[test]
    fn large_parts_stay_as_they_are() {
        let mut parts = Vec::new();
        append(&mut parts, 0, part(0..5000)).unwrap();
        append(&mut parts, 0, part(5000..10_000)).unwrap();
        append(&mut parts, 0, part(10_000..10_001)).unwrap();
        assert_eq!(parts.len(), 3);
    }
}

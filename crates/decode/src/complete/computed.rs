//! Values that expressions compute: those of generated columns.
//!
//! A decoded row has NULL there. Before any further step the values are computed, converted like fields of the load, and
//! inserted, so that the log and everything after it see ordinary rows. A row whose value can't be computed, or is illegal for
//! its column, is rejected or gets NULL, by the load's rules for fields; only then it is known which rows have a partition.
//!
//! Not its business: the expressions themselves.

use crate::blocks::batch_block::batch_to_block;
use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::blocks::columns::blocks_to_batches;
use crate::cells::array_cells::ArrayCells;
use crate::cells::reject::{Reject, RejectCode};
use crate::evolve::recast::gathered;
use crate::rows::loader::{Decoded, Progress};
use crate::rows::pieces::Pieces;
use crate::rows::target::{Strictness, Target, TargetColumn};
use crate::rows::whole::{self, Field, Rows, whole_values};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{concat, filter_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Computes the values of the column at this place for all rows of a batch, which has the table's columns. Those of columns that are
/// computed later are NULL.
pub type Compute<'a> = dyn Fn(usize, &RecordBatch) -> Result<ArrayRef, SqlError> + 'a;

/// The rows with all values. `target` is [`Target::computed`] of the one that the rows were decoded for, `now_micros` the wall-clock time
/// of the load.
///
/// # Errors
/// The values that are computed are of a type that the column can't have.
pub fn complete(
    blocks: &[Block],
    target: &Target,
    rules: Strictness,
    now_micros: i64,
    compute: &Compute<'_>,
) -> Result<Decoded, SqlError> {
    let decoded = target.schema().as_decoded();
    let schema = decoded.as_ref().unwrap_or_else(|| target.schema());
    let mut load = Completion {
        target,
        rules,
        now_micros,
        compute,
        arrow: schema.arrow(),
        progress: Progress::default(),
    };
    for batch in blocks_to_batches(schema, blocks)? {
        load.add(&batch)?;
    }
    Ok(load.progress.decoded)
}

struct Completion<'a> {
    target: &'a Target,
    rules: Strictness,
    now_micros: i64,
    compute: &'a Compute<'a>,
    /// The schema of incomplete rows.
    arrow: SchemaRef,
    progress: Progress,
}

/// Why rows are rejected, by their places.
type Faults = BTreeMap<usize, Flaw>;

/// Why a row is rejected.
struct Flaw {
    code: RejectCode,
    column: String,
    reason: String,
}

impl Completion<'_> {
    fn add(&mut self, decoded: &RecordBatch) -> Result<(), SqlError> {
        let schema = self.target.schema();
        let rows = decoded.num_rows();
        let mut columns = decoded.columns().to_vec();
        let mut faults = Faults::new();
        for (place, _, _) in schema.generated() {
            let batch = self.batch(columns.clone(), rows)?;
            columns[place] = self.values(place, &batch, &mut faults)?;
        }
        let mut batch = self.batch(columns, rows)?;
        if !faults.is_empty() {
            self.reject(decoded, &faults)?;
            let is_kept: BooleanArray = (0..rows).map(|row| Some(!faults.contains_key(&row))).collect();
            batch = filter_record_batch(&batch, &is_kept).map_err(|error| unreadable(&error))?;
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if self.target.partitions().is_none_or(|check| check.takes_all(&batch, schema)) {
            let counts = &mut self.progress.decoded.counts;
            counts.total += batch.num_rows() as u64;
            counts.loaded += batch.num_rows() as u64;
            let mut pieces = Pieces::new(batch);
            while let Some(piece) = pieces.next()? {
                self.progress.decoded.blocks.push(batch_to_block(&piece, schema)?);
            }
            return Ok(());
        }
        // Rows without a partition are rejected one by one.
        let fields: Vec<Field> =
            batch.columns().iter().map(|array| Field::Array(Arc::clone(array))).collect();
        let rows = Rows { fields: &fields, count: batch.num_rows(), first_row: None };
        let mut builder = BlockBuilder::new(schema);
        whole::load(&rows, self.target, self.rules, self.now_micros, &mut builder, &mut self.progress)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, SqlError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns, &options);
        batch.map_err(|error| unreadable(&error))
    }

    /// The values of the column at `place`, NULL in rows with faults.
    fn values(&self, place: usize, batch: &RecordBatch, faults: &mut Faults) -> Result<ArrayRef, SqlError> {
        let Some(column) = self.target.column_of(place) else { return Ok(Arc::clone(batch.column(place))) };
        let mut failed = BTreeMap::new();
        let array = match (self.compute)(place, batch) {
            Ok(array) => array,
            Err(error) => self.in_pieces(place, batch, error, &mut failed)?,
        };
        if column.data_type.is_state() && !matches!(array.data_type(), DataType::Binary | DataType::Null) {
            return Err(self.target.not_a_state(column));
        }
        if failed.is_empty()
            && let Some(whole) = whole_values(&array, column)
        {
            return Ok(whole);
        }
        self.converted(column, &array, &failed, faults)
    }

    /// Computes the values piece by piece: an error concerns a whole batch, and bisection finds its rows.
    fn in_pieces(
        &self,
        place: usize,
        batch: &RecordBatch,
        error: SqlError,
        failed: &mut BTreeMap<usize, String>,
    ) -> Result<ArrayRef, SqlError> {
        let mut pieces: Vec<(usize, Option<ArrayRef>)> = Vec::new();
        // The next one is the last.
        let mut rest = vec![(0, batch.num_rows(), Some(error))];
        while let Some((first, rows, error)) = rest.pop() {
            let error = match error {
                Some(error) => error,
                None => match (self.compute)(place, &batch.slice(first, rows)) {
                    Ok(array) => {
                        pieces.push((rows, Some(array)));
                        continue;
                    }
                    Err(error) => error,
                },
            };
            if rows <= 1 {
                failed.insert(first, error.detail_text().to_owned());
                pieces.push((rows, None));
                continue;
            }
            let half = rows / 2;
            rest.push((first + half, rows - half, None));
            rest.push((first, half, None));
        }
        let known =
            pieces.iter().find_map(|(_, array)| array.as_ref().map(|array| array.data_type().clone()));
        let data_type = known.unwrap_or(DataType::Null);
        let arrays: Vec<ArrayRef> = pieces
            .into_iter()
            .map(|(rows, array)| array.unwrap_or_else(|| new_null_array(&data_type, rows)))
            .collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        concat(&arrays).map_err(|error| unreadable(&error))
    }

    /// Converts the values to those of the column, one by one.
    fn converted(
        &self,
        column: &TargetColumn,
        array: &ArrayRef,
        failed: &BTreeMap<usize, String>,
        faults: &mut Faults,
    ) -> Result<ArrayRef, SqlError> {
        let def = &self.target.schema().columns[column.index];
        let cells = ArrayCells::new(array, self.rules.utc_offset_seconds);
        let cells = cells.map_err(|error| {
            SqlError::detail(ErrorCode::Unknown, format!("value for column '{}': {error}", def.name))
        })?;
        gathered(array.len(), def, |row, buffer| {
            if let Some(text) = failed.get(&row)
                && (self.rules.strict || !column.nullable)
            {
                faults.entry(row).or_insert_with(|| Flaw {
                    code: RejectCode::NotComputed,
                    column: def.name.clone(),
                    reason: format!("column_name[{}], the value can't be computed: {text}", def.name),
                });
            }
            // It has no value any more.
            if faults.contains_key(&row) {
                buffer.push_null();
                return Ok(());
            }
            let cell = cells.cell(row);
            if let Err(fault) = column.push(buffer, cell, self.rules) {
                let reason = column.reason(&def.name, fault, &cell, self.rules);
                faults.insert(row, Flaw { code: fault.into(), column: def.name.clone(), reason });
                buffer.push_null();
            }
            Ok(())
        })
    }

    /// Counts rows with faults, and stores the reasons with the rows' given values.
    fn reject(&mut self, decoded: &RecordBatch, faults: &Faults) -> Result<(), SqlError> {
        let schema = self.target.schema();
        let given = schema.columns.iter().zip(decoded.columns());
        let given = given.filter(|(column, _)| column.hidden.is_none() && column.generated.is_none());
        let cells = given
            .map(|(_, array)| ArrayCells::new(array, 0))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(&error))?;
        let decoded = &mut self.progress.decoded;
        decoded.counts.total += faults.len() as u64;
        for (row, flaw) in faults {
            decoded.count_reject(|_| {
                let mut values = String::new();
                whole::push_values(&mut values, *row, &cells);
                let values = values.trim_start().as_bytes();
                let rejected = Reject::of_bytes(flaw.code, flaw.reason.as_str(), values);
                Reject { column: Some(flaw.column.clone()), ..rejected }
            });
        }
        Ok(())
    }
}

impl Decoded {
    /// Takes the rows into which [`complete`] turned these.
    pub fn become_complete(&mut self, complete: Self) {
        self.blocks = complete.blocks;
        self.counts.loaded = complete.counts.loaded;
        self.counts.filtered += complete.counts.filtered;
        // Their places among all rows are not known any more.
        Reject::append(&mut self.rejects, 0, complete.rejects.into_iter().map(Reject::unnumbered));
    }
}

fn unreadable(error: &ArrowError) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, format!("rows with computed values: {error}"))
}

#[cfg(test)]
mod tests;

//! Values that the server generates: those of an AUTO_INCREMENT column in rows without one.
//!
//! A decoded row has NULL there, whether it omitted the column or said NULL. Before any further step the server reserves as many
//! values as are missing and inserts them, so that the log and everything after it see ordinary rows.
//!
//! Not its business: which values there are.

use crate::blocks::batch_block::batch_to_block;
use crate::blocks::block::Block;
use crate::blocks::columns::blocks_to_batches;
use crate::blocks::error::BlockError;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use std::sync::Arc;
use tributary_types::TableSchema;

/// Decoded rows some of which lack a value in a column that the server fills.
#[derive(Debug)]
pub struct Unfilled {
    batches: Vec<RecordBatch>,
    /// The place of the column.
    column: usize,
    count: u64,
}

impl Unfilled {
    /// The rows of `blocks` if values are missing. `decoded` is [`TableSchema::as_decoded`] of the blocks' schema, `column` the place of
    /// the column, which is INT or BIGINT.
    ///
    /// # Errors
    /// [`blocks_to_batches`].
    pub fn of(decoded: &TableSchema, blocks: &[Block], column: usize) -> Result<Option<Self>, BlockError> {
        let batches = blocks_to_batches(decoded, blocks)?;
        let count = batches.iter().map(|batch| batch.column(column).null_count() as u64).sum();
        Ok((count > 0).then_some(Self { batches, column, count }))
    }

    /// How many values are missing.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The rows with the values from `first` on, ascending in the order of the rows, as blocks of `schema`.
    ///
    /// # Errors
    /// [`batch_to_block`], or a value that the column's type does not have.
    pub fn fill(self, schema: &Arc<TableSchema>, first: i64) -> Result<Vec<Block>, BlockError> {
        let mut values = first..;
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        let mut blocks = Vec::with_capacity(self.batches.len());
        for batch in self.batches {
            let column = batch.column(self.column);
            let given = cast(column, &ArrowType::Int64)?;
            let given = given.as_primitive::<Int64Type>().iter();
            let filled: Int64Array = given.map(|value| value.or_else(|| values.next())).collect();
            let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
            columns[self.column] = cast_with_options(&filled, column.data_type(), &exact)?;
            blocks.push(batch_to_block(&RecordBatch::try_new(batch.schema(), columns)?, schema)?);
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::builder::BlockBuilder;
    use crate::formats::values::{ValuesOutcome, decode_values};
    use crate::rows::loader::InsertOptions;
    use crate::rows::target::Target;
    use crate::testing::{column, schema};
    use arrow::datatypes::Int32Type;
    use tributary_types::{ColumnDef, DataType, TableDef, TableId};

    fn with_increment() -> Arc<TableSchema> {
        let id = ColumnDef { auto_increment: Some(1), ..column(0, "id", DataType::BigInt).key().not_null() };
        schema(vec![id, column(1, "name", DataType::String)])
    }

    fn decoded(schema: &Arc<TableSchema>, columns: Option<&[&str]>, values: &str) -> Vec<Block> {
        let table = Arc::new(TableDef::new(TableId(1), "d", "t", (**schema).clone()));
        let names: Option<Vec<String>> =
            columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let target = Target::new(&table, names.as_deref()).unwrap();
        let mut builder = BlockBuilder::new(target.schema());
        match decode_values(values.as_bytes(), &target, &InsertOptions::default(), &mut builder).unwrap() {
            ValuesOutcome::Rows(rows) => rows.blocks,
            ValuesOutcome::General => panic!("{values}"),
        }
    }

    fn ids(schema: &TableSchema, blocks: &[Block]) -> Vec<i64> {
        let batches = blocks_to_batches(schema, blocks).unwrap();
        let of_batch = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        batches.iter().flat_map(of_batch).collect()
    }

    #[test]
    fn rows_without_a_value_get_one_and_others_keep_theirs() {
        let schema = with_increment();
        let loose = schema.as_decoded().unwrap();
        let blocks = decoded(&schema, None, "(7,'a'),(NULL,'b'),(9,NULL),(NULL,'d')");
        let unfilled = Unfilled::of(&loose, &blocks, 0).unwrap().unwrap();
        assert_eq!(unfilled.count(), 2);
        assert_eq!(ids(&schema, &unfilled.fill(&schema, 40).unwrap()), [7, 40, 9, 41]);
    }

    #[test]
    fn a_load_that_omits_the_column_has_values_for_all_rows_whatever_the_form_of_its_blocks() {
        let schema = with_increment();
        let loose = schema.as_decoded().unwrap();
        for rows in [1, 3, 9000] {
            let values = vec!["('x')"; rows].join(",");
            let mut blocks = decoded(&schema, Some(&["name"]), &values);
            blocks.extend(decoded(&schema, Some(&["name"]), "('y')"));
            let unfilled = Unfilled::of(&loose, &blocks, 0).unwrap().unwrap();
            assert_eq!(unfilled.count(), rows as u64 + 1);
            let filled = ids(&schema, &unfilled.fill(&schema, i64::MAX - 10_000).unwrap());
            assert_eq!(filled, (i64::MAX - 10_000..).take(rows + 1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_of_an_int_end_with_it() {
        let id = ColumnDef { auto_increment: Some(1), ..column(0, "id", DataType::Int).key().not_null() };
        let schema = schema(vec![id, column(1, "name", DataType::String)]);
        let loose = schema.as_decoded().unwrap();
        let unfilled = || {
            let blocks = decoded(&schema, None, "(NULL,'a'),(7,'b'),(NULL,'c')");
            Unfilled::of(&loose, &blocks, 0).unwrap().unwrap()
        };
        let first = i64::from(i32::MAX) - 1;
        let blocks = unfilled().fill(&schema, first).unwrap();
        let batches = blocks_to_batches(&schema, &blocks).unwrap();
        let ids = batches[0].column(0).as_primitive::<Int32Type>();
        assert_eq!(ids.values().to_vec(), [i32::MAX - 1, 7, i32::MAX]);
        assert!(unfilled().fill(&schema, first + 1).is_err());
    }

    #[test]
    fn a_load_that_gives_all_values_is_left_as_it_is() {
        let schema = with_increment();
        let blocks = decoded(&schema, None, "(7,'a'),(7,'b')");
        assert!(Unfilled::of(&schema.as_decoded().unwrap(), &blocks, 0).unwrap().is_none());
    }
}

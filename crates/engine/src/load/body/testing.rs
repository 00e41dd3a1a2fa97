//! Readers for tests of bodies.

use super::reader::{Mapping, RowReader};
use super::time::LoadTime;
use crate::load::partial_update::Updates;
use crate::testing::TestEngine;
use std::sync::Arc;
use tributary_decode::{BodyFormat, FieldNames};
use tributary_table::Table;
use tributary_types::PartitionNames;

/// A reader of whole rows, whose fields are the table's columns.
pub(super) fn reader(test: &TestEngine, table: &Arc<Table>, format: &BodyFormat) -> RowReader {
    let mapping = Mapping {
        columns: None,
        where_expr: None,
        source_where: None,
        deletes: false,
        updates: Updates::Whole,
        unnamed_fields: FieldNames::Numbered,
        partitions: &PartitionNames::Any,
    };
    let time = LoadTime::of(&test.engine.loads, Some("UTC")).expect("a zone");
    RowReader::new(&test.engine.loads, &table.def(), &mapping, format, true, time)
        .expect("its columns are known")
}

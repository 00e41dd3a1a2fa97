//! The tables that rows are decoded for.

use std::sync::Arc;
use tributary_types::{
    ColumnDef, DataType, DefaultValue, KeyModel, SchemaVersion, TableDef, TableId, TableSchema,
};

fn column(id: usize, data_type: DataType) -> ColumnDef {
    ColumnDef::new(id as u32, &format!("c{id}"), data_type)
}

/// A table with these columns.
pub(crate) fn of_columns(columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(3), columns);
    Arc::new(TableDef {
        keys: KeyModel::Duplicate { declared: false },
        ..TableDef::new(TableId(7), "db", "t", schema)
    })
}

/// A table of nullable columns of these types.
pub(crate) fn of_types(types: &[DataType]) -> Arc<TableDef> {
    of_columns(types.iter().enumerate().map(|(id, &data_type)| column(id, data_type)).collect())
}

/// A table of nullable STRING columns.
pub(crate) fn of_strings(count: usize) -> Arc<TableDef> {
    of_types(&vec![DataType::String; count])
}

/// One of a few tables of different shapes.
pub(crate) fn pick(choice: u8) -> Arc<TableDef> {
    match choice % 6 {
        0 => of_types(&[DataType::Int, DataType::String]),
        1 => of_strings(1),
        2 => of_types(&DataType::EXAMPLES),
        3 => {
            of_types(&[DataType::LargeInt, DataType::Decimal { precision: 38, scale: 10 }, DataType::Double])
        }
        4 => of_types(&[DataType::DateTime { scale: 6 }, DataType::Date, DataType::Json]),
        _ => {
            let first = column(0, DataType::Varchar { bytes: 5 }).not_null();
            let second = column(1, DataType::BigInt).with_default(DefaultValue::Literal("-7".into()));
            of_columns(vec![first, second])
        }
    }
}

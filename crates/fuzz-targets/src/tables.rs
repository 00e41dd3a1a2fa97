//! The tables that rows are decoded for.

use std::sync::Arc;
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{
    ColumnDef, ColumnId, DataType, DbId, DefaultValue, SchemaVersion, TableDef, TableId, TableProperties,
    TableSchema,
};

/// One column of each type.
const TYPES: [DataType; 15] = [
    DataType::Boolean,
    DataType::TinyInt,
    DataType::SmallInt,
    DataType::Int,
    DataType::BigInt,
    DataType::LargeInt,
    DataType::Float,
    DataType::Double,
    DataType::Decimal { precision: 10, scale: 2 },
    DataType::Date,
    DataType::DateTime { scale: 3 },
    DataType::Char { bytes: 8 },
    DataType::Varchar { bytes: 16 },
    DataType::String,
    DataType::Json,
];

fn column(id: usize, data_type: DataType) -> ColumnDef {
    ColumnDef {
        id: ColumnId(id as u32),
        name: format!("c{id}"),
        physical_name: format!("c{id}"),
        data_type,
        nullable: true,
        is_key: false,
        default: None,
        comment: String::new(),
    }
}

/// A table with these columns.
pub(crate) fn of_columns(columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let next_column_id = ColumnId(columns.len() as u32);
    Arc::new(TableDef {
        id: TableId(7),
        db_id: DbId(1),
        db: "db".into(),
        name: "t".into(),
        schema: Arc::new(TableSchema { version: SchemaVersion(3), columns, next_column_id }),
        has_key_clause: false,
        distribution: Distribution::Random { buckets: Buckets::Auto },
        properties: TableProperties::default(),
        comment: String::new(),
        location: "db/t".into(),
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
        2 => of_types(&TYPES),
        3 => {
            of_types(&[DataType::LargeInt, DataType::Decimal { precision: 38, scale: 10 }, DataType::Double])
        }
        4 => of_types(&[DataType::DateTime { scale: 6 }, DataType::Date, DataType::Json]),
        _ => {
            let mut first = column(0, DataType::Varchar { bytes: 5 });
            first.nullable = false;
            let mut second = column(1, DataType::BigInt);
            second.default = Some(DefaultValue::Literal("-7".into()));
            of_columns(vec![first, second])
        }
    }
}

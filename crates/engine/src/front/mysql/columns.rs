//! The columns of a result as the protocol announces them.

use tributary_mysql::Column;
use tributary_query::ResultColumn;

pub(crate) fn columns_of(columns: &[ResultColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| {
            let mut protocol = match column.declared {
                Some(declared) => Column::new(&column.name, declared),
                None if column.is_clock => Column::clock(&column.name, column.clock_digits),
                None => Column::from_arrow(&column.name, &column.data_type),
            };
            if let (Some(database), Some(table)) = (&column.database, &column.table) {
                protocol = protocol.in_table(database, table);
            }
            if let Some(alias) = &column.alias {
                protocol.table.clone_from(alias);
            }
            if let Some(original) = &column.original_name {
                protocol.org_name.clone_from(original);
            }
            if column.is_key {
                protocol = protocol.primary_key();
            }
            if column.nullable { protocol } else { protocol.not_null() }
        })
        .collect()
}

use super::*;
use crate::testing::{column, def_of, rows, text_rows, two_columns, with_default};
use tributary_types::DataType;

/// 2024-02-29 23:59:59.987654
const NOW_MICROS: i64 = 1_709_251_199_987_654;

fn adapted(columns: Vec<ColumnDef>) -> Result<RecordBatch, TableError> {
    let to = def_of(2, columns);
    adapt(&rows([1, 2]), &two_columns().schema, &to.schema, &to.schema.arrow(), NOW_MICROS)
}

#[test]
fn columns_are_matched_by_id_in_the_new_order() {
    let mut columns = two_columns().schema.columns.clone();
    columns.swap(0, 1);
    columns[0].name = "title".to_owned();
    let batch = adapted(columns).unwrap();
    assert_eq!(batch.schema().field(0).name(), "title");
    assert_eq!(text_rows(&batch), ["n1|1", "n2|2"]);
}

#[test]
fn an_added_column_has_its_default_in_every_row() {
    let defaults = [
        (DataType::Boolean, "1", "true"),
        (DataType::LargeInt, "12345678901234567890123", "12345678901234567890123"),
        (DataType::Decimal { precision: 9, scale: 2 }, "1.5", "1.50"),
        (DataType::Date, "2024-01-31", "2024-01-31"),
        (DataType::DateTime { scale: 0 }, "2024-01-31 01:02:03", "2024-01-31T01:02:03"),
        (DataType::Varchar { bytes: 10 }, "", ""),
        (DataType::Double, "-0.5", "-0.5"),
    ];
    for (data_type, default, shown) in defaults {
        let batch = adapted(vec![with_default(column(3, "c", data_type, true), default)]).unwrap();
        assert_eq!(text_rows(&batch), [shown, shown], "{data_type}");
    }
}

#[test]
fn the_current_time_is_cut_to_the_defaults_digits() {
    let mut at = column(3, "at", DataType::DateTime { scale: 6 }, true);
    let shown = |column: &ColumnDef| text_rows(&adapted(vec![column.clone()]).unwrap())[0].clone();
    for (scale, text) in
        [(0, "2024-02-29T23:59:59"), (3, "2024-02-29T23:59:59.987"), (6, "2024-02-29T23:59:59.987654")]
    {
        at.default = Some(DefaultValue::CurrentTimestamp { scale });
        assert_eq!(shown(&at), text);
    }
    at.data_type = DataType::Date;
    at.default = Some(DefaultValue::CurrentDate);
    assert_eq!(shown(&at), "2024-02-29");
}

#[test]
fn a_null_never_enters_a_column_that_refuses_it() {
    let error = adapted(vec![column(3, "c", DataType::Int, true)]).unwrap_err();
    assert!(error.to_string().contains("schema version 2"), "{error}");
}

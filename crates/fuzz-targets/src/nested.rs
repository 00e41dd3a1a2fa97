//! The texts of arrays, maps and structs: as fields of CSV, as values of JSON, and against `serde_json`.
//!
//! With `serde_json`: an array of arrays of strings and nulls without blanks between is the same value there.

use crate::rows;
use crate::tables;
use arrow::array::{Array, AsArray, RecordBatch};
use serde_json::Value;
use std::sync::Arc;
use tributary_decode::{
    BodyDecoder, CsvDecoder, CsvFormat, Decoded, JsonDecoder, JsonFormat, LoadRules, Target,
};
use tributary_types::{DataType, Nested, NestedType, StructField, TableDef};

/// A byte chooses the type and the rules, the others are a text.
pub fn nested(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else { return };
    let data_type = type_of(choice);
    let table = tables::of_types(&[data_type]);
    let rules = LoadRules { strict: choice & 0x80 != 0, ..LoadRules::default() };
    let Ok(text) = std::str::from_utf8(body) else { return };
    let of_csv = of_csv(&table, text, rules);
    let batches = rows::check_decoded(&table, &of_csv);
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let of_json = of_json(&table, &format!("{{\"c0\":{text}}}"), rules);
    rows::check_decoded(&table, &of_json);
    if data_type == type_of(1) && !text.contains(char::is_whitespace) {
        compare(&value, &batches);
        rows::assert_same(&table, &of_csv_without_reasons(of_csv), &of_csv_without_reasons(of_json));
    }
}

fn type_of(choice: u8) -> DataType {
    let field = |name: &str, data_type| StructField { name: name.to_owned(), data_type };
    let pair = || {
        DataType::Nested(Nested::new(NestedType::Struct(vec![
            field("f", DataType::DateTime { scale: 3 }),
            field("g", DataType::array(DataType::Varchar { bytes: 3 })),
        ])))
    };
    match choice % 6 {
        0 => DataType::array(DataType::Int),
        1 => DataType::array(DataType::array(DataType::String)),
        2 => DataType::map(DataType::Varchar { bytes: 4 }, DataType::Decimal { precision: 5, scale: 2 }),
        3 => pair(),
        4 => DataType::map(DataType::Int, pair()),
        _ => DataType::array(DataType::Json),
    }
}

fn of_csv(table: &Arc<TableDef>, text: &str, rules: LoadRules) -> Decoded {
    let target = Target::new(table, None).expect("all columns");
    // Neither is in a text.
    let format = CsvFormat {
        column_separator: b"\xff\xfe".to_vec(),
        line_delimiter: b"\xff\xfd".to_vec(),
        ..CsvFormat::default()
    };
    let mut decoder = CsvDecoder::new(target, format, rules).expect("a legal format");
    decoder.push(text.as_bytes()).and_then(|()| decoder.finish()).expect("no text ends a load");
    decoder.into_decoded()
}

fn of_json(table: &Arc<TableDef>, document: &str, rules: LoadRules) -> Decoded {
    let target = Target::new(table, None).expect("all columns");
    let format = JsonFormat { read_by_line: false, ..JsonFormat::default() };
    let mut decoder = JsonDecoder::new(target, &format, rules).expect("a legal format");
    // Some documents are deeper than ours may be.
    let _ = decoder.push(document.as_bytes()).and_then(|()| decoder.finish());
    decoder.into_decoded()
}

fn of_csv_without_reasons(decoded: Decoded) -> Decoded {
    Decoded { rejects: Vec::new(), ..decoded }
}

/// The array of arrays that `value` is, if it is one.
fn strings(value: &Value) -> Option<Vec<Option<Vec<Option<String>>>>> {
    let item = |item: &Value| match item {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        _ => None,
    };
    let list = |list: &Value| match list {
        Value::Null => Some(None),
        Value::Array(items) => items.iter().map(item).collect::<Option<Vec<_>>>().map(Some),
        _ => None,
    };
    value.as_array()?.iter().map(list).collect()
}

fn compare(value: &Value, batches: &[RecordBatch]) {
    let (Some(expected), Some(batch)) = (strings(value), batches.first()) else { return };
    let list = batch.column(0).as_list::<i32>().value(0);
    let items = |row: usize| {
        let items = list.as_list::<i32>().value(row);
        items.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
    };
    let found: Vec<_> = (0..list.len()).map(|row| list.is_valid(row).then(|| items(row))).collect();
    assert_eq!(found, expected);
}

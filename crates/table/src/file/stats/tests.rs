use super::*;
use crate::testing::{column, def_of};
use std::sync::Arc;
use tributary_types::TableDef;

fn one(data_type: DataType) -> Arc<TableDef> {
    def_of(1, vec![column(1, "c", data_type, false)])
}

fn through_json(data_type: DataType, min: &str, max: &str) -> ColumnStats {
    let def = one(data_type);
    let stats = ColumnStats { min: Some(min.to_owned()), max: Some(max.to_owned()), null_count: Some(2) };
    let stats = FileStats { columns: BTreeMap::from([("c".to_owned(), stats)]) };
    let json = stats.to_delta_json(10, true, &def.schema);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["numRecords"], 10);
    FileStats::from_delta_json(&json, &def.schema).columns["c"].clone()
}

#[test]
fn bounds_survive_deltas_json() {
    let cases = [
        (DataType::Int, "-5", "7"),
        (DataType::Date, "2024-01-01", "2024-12-31"),
        (DataType::DateTime { scale: 6 }, "2024-01-01T00:00:00.000001", "2024-01-01T00:00:00.123456"),
        (DataType::Varchar { bytes: 20 }, "a \"quoted\"", "z\u{10ffff}"),
        (DataType::Decimal { precision: 9, scale: 2 }, "-0.05", "123.40"),
        (DataType::LargeInt, "-5", "18446744073709551615"),
    ];
    for (data_type, min, max) in cases {
        let stats = through_json(data_type, min, max);
        assert_eq!((stats.min.as_deref(), stats.max.as_deref()), (Some(min), Some(max)), "{data_type}");
        assert_eq!(stats.null_count, Some(2));
    }
}

#[test]
fn a_decimal_that_json_would_round_has_no_bound_after_reading() {
    let nines = "9".repeat(38);
    assert_eq!(through_json(DataType::LargeInt, "0", &nines).max, None);
    let data_type = DataType::Decimal { precision: 30, scale: 10 };
    assert_eq!(through_json(data_type, "1.5000000000", "12345678901234567890.5000000000").max, None);
}

#[test]
fn a_time_in_whole_milliseconds_bounds_the_whole_millisecond() {
    let data_type = DataType::DateTime { scale: 6 };
    assert_eq!(widen_time(data_type, "2024-01-01T00:00:00".into()), "2024-01-01T00:00:00.000999");
    assert_eq!(widen_time(data_type, "2024-01-01T00:00:00.5Z".into()), "2024-01-01T00:00:00.500999");
    assert_eq!(widen_time(data_type, "2024-01-01T00:00:00.123456".into()), "2024-01-01T00:00:00.123456");
}

#[test]
fn long_text_is_cut_so_that_the_bounds_still_hold() {
    let text = "x".repeat(40);
    let data_type = DataType::String;
    let (min, max) =
        (lower_bound(data_type, text.clone()).unwrap(), upper_bound(data_type, text.clone()).unwrap());
    assert_eq!(min, "x".repeat(32));
    assert!(min <= text && text <= max, "{max}");
    let highest = char::MAX.to_string().repeat(40);
    assert_eq!(upper_bound(data_type, highest), None);
}

#[test]
fn an_infinity_is_no_bound() {
    assert_eq!(upper_bound(DataType::Double, "inf".into()), None);
    assert_eq!(lower_bound(DataType::Float, "-inf".into()), None);
    assert_eq!(upper_bound(DataType::Double, "1.5".into()), Some("1.5".into()));
}

#[test]
fn garbage_in_the_log_bounds_nothing() {
    let def = one(DataType::Int);
    assert_eq!(FileStats::from_delta_json("not json", &def.schema), FileStats::default());
    let odd = FileStats::from_delta_json(r#"{"minValues":{"c":{}},"maxValues":5}"#, &def.schema);
    assert_eq!(odd.columns["c"], ColumnStats::default());
}

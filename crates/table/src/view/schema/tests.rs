use super::*;
use crate::testing::{column, def_of, two_columns};

fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn types_have_the_names_that_delta_gives_them() {
    let types = [
        (DataType::TinyInt, "\"byte\""),
        (DataType::SmallInt, "\"short\""),
        (DataType::Int, "\"integer\""),
        (DataType::BigInt, "\"long\""),
        (DataType::LargeInt, "\"decimal(38,0)\""),
        (DataType::Decimal { precision: 9, scale: 2 }, "\"decimal(9,2)\""),
        (DataType::DateTime { scale: 6 }, "\"timestamp_ntz\""),
        (DataType::Json, "\"string\""),
    ];
    for (data_type, name) in types {
        assert_eq!(text(&delta_type(data_type).unwrap()), name);
    }
}

#[test]
fn a_plain_table_has_the_oldest_protocol_and_no_column_mapping() {
    let metadata = metadata_for(&two_columns(), None, false).unwrap();
    let protocol = protocol_for(&metadata, None).unwrap();
    assert_eq!(text(&protocol), r#"{"minReaderVersion":1,"minWriterVersion":2}"#);
    let schema = text(&metadata.parse_schema().unwrap());
    assert!(schema.contains(r#""name":"id","type":"long","nullable":false"#), "{schema}");
    assert!(schema.contains(r#""name":"name","type":"string","nullable":true"#), "{schema}");
    assert!(!metadata.configuration().contains_key(MAPPING_MODE_KEY));
}

#[test]
fn the_same_definition_gives_the_same_metadata() {
    let metadata = metadata_for(&two_columns(), None, false).unwrap();
    let again = metadata_for(&two_columns(), Some(&metadata), false).unwrap();
    assert!(same_metadata(&metadata, &again));
    assert_eq!(metadata.id(), again.id());
    let other = def_of(2, two_columns().schema.columns.clone());
    assert!(!same_metadata(&metadata, &metadata_for(&other, Some(&metadata), false).unwrap()));
}

#[test]
fn a_protocol_never_loses_a_feature() {
    let mut columns = two_columns().schema.columns.clone();
    columns.push(column(3, "at", DataType::DateTime { scale: 0 }, false));
    let with_time = metadata_for(&def_of(2, columns.clone()), None, false).unwrap();
    let protocol = protocol_for(&with_time, None).unwrap();
    columns.pop();
    let without = metadata_for(&def_of(3, columns), Some(&with_time), false).unwrap();
    let later = text(&protocol_for(&without, Some(&protocol)).unwrap());
    assert!(later.contains("timestampNtz") && later.contains("columnMapping"), "{later}");
}

#[test]
fn a_mapped_tables_writer_features_survive_the_step_to_named_features() {
    let mut columns = two_columns().schema.columns.clone();
    columns[1].name = "title".to_owned();
    let mapped = metadata_for(&def_of(2, columns.clone()), None, false).unwrap();
    let of_another_writer = r#"{"minReaderVersion":2,"minWriterVersion":5}"#;
    let protocol: Protocol = serde_json::from_str(of_another_writer).unwrap();
    columns.push(column(3, "at", DataType::DateTime { scale: 0 }, false));
    let later = metadata_for(&def_of(3, columns), Some(&mapped), false).unwrap();
    let later = text(&protocol_for(&later, Some(&protocol)).unwrap());
    for feature in ["columnMapping", "timestampNtz", "checkConstraints", "generatedColumns", "invariants"] {
        assert!(later.contains(feature), "{feature} in {later}");
    }
}

#[test]
fn data_files_carry_physical_names_and_field_ids() {
    let mut columns = two_columns().schema.columns.clone();
    columns[1].name = "title".to_owned();
    let physical = physical_arrow(&def_of(2, columns).schema);
    assert_eq!(physical.field(1).name(), "name");
    assert_eq!(physical.field(1).metadata()[PARQUET_FIELD_ID_META_KEY], "2");
}

#[test]
fn a_renamed_column_makes_readers_need_column_mapping_by_name() {
    let mut columns = two_columns().schema.columns.clone();
    columns[1].name = "title".to_owned();
    let metadata = metadata_for(&def_of(2, columns), None, false).unwrap();
    let protocol = text(&protocol_for(&metadata, None).unwrap());
    assert!(protocol.contains(r#""minReaderVersion":3,"minWriterVersion":7"#), "{protocol}");
    assert!(protocol.contains(r#""readerFeatures":["columnMapping"]"#), "{protocol}");
}

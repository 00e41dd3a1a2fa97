use super::*;
use crate::testing::two_columns;
use serde_json::Value;
use std::sync::Arc;

fn file() -> DataFile {
    let stats = |min: &str, max: &str| ColumnStats {
        min: Some(min.to_owned()),
        max: Some(max.to_owned()),
        null_count: Some(0),
    };
    let columns = [("id".to_owned(), stats("1", "40")), ("name".to_owned(), stats("n1", "n9"))];
    DataFile {
        format: FileFormat,
        path: "part-1732285791123-6f1c0c5e-7a44-4f0a-9d5e-1f0f3b6a2c11.zstd.parquet".to_owned(),
        size_bytes: 4711,
        rows: 40,
        schema_version: SchemaVersion(3),
        columns_below: ColumnId(3),
        stats: FileStats { columns: columns.into() },
        modification_time_ms: 1_732_285_791_123,
        version: Version(17),
        partition: None,
    }
}

#[test]
fn a_data_file_in_a_commit_record_is_written_as_it_always_was() {
    let golden: Value = serde_json::from_str(include_str!("../../testdata/data-file-2.json")).unwrap();
    assert_eq!(serde_json::to_value(file()).unwrap(), golden);
    assert_eq!(serde_json::from_value::<DataFile>(golden).unwrap(), file());
}

#[test]
fn a_data_file_of_the_first_format_is_read() {
    let read: DataFile = serde_json::from_str(include_str!("../../testdata/data-file-1.json")).unwrap();
    assert_eq!(read, DataFile { version: Version(0), ..file() });
}

#[test]
fn a_data_file_of_a_future_format_or_without_a_path_is_refused() {
    let mut json: Value = serde_json::to_value(file()).unwrap();
    json["format"] = 3.into();
    let error = serde_json::from_value::<DataFile>(json.clone()).unwrap_err().to_string();
    assert!(error.contains("has format 3; known are 1 to 2"), "{error}");
    json["format"] = 2.into();
    json.as_object_mut().unwrap().remove("path");
    let error = serde_json::from_value::<DataFile>(json).unwrap_err().to_string();
    assert!(error.contains("missing field `path`"), "{error}");
}

#[test]
fn an_add_action_is_written_as_it_always_was() {
    let golden: Value = serde_json::from_str(include_str!("../../testdata/add.json")).unwrap();
    let live = LiveFile::from(file());
    let mut add = serde_json::to_value(live.to_add(&two_columns().schema, true)).unwrap();
    // JSON in JSON, where the order of the keys means nothing.
    let stats = add["stats"].as_str().map(|text| serde_json::from_str::<Value>(text).unwrap());
    add["stats"] = stats.unwrap();
    assert_eq!(add, golden);
}

#[test]
fn tags_of_a_file_are_read_back_and_others_are_none() {
    let tags = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())));
        Some(pairs.collect::<std::collections::HashMap<_, _>>())
    };
    let version =
        |tags: Option<std::collections::HashMap<_, _>>| Tags::read(tags.as_ref()).map(|tags| tags.version);
    assert_eq!(version(Some(format::tags(&file()))), Ok(Version(17)));
    assert_eq!(version(None), Ok(Version(0)));
    assert_eq!(version(tags(&[("INSERTION_TIME", "5")])), Ok(Version(0)));
    let error = version(tags(&[("tributary.format", "3"), ("tributary.version", "1")])).unwrap_err();
    assert!(error.contains("format 3"), "{error}");
    let error = version(tags(&[("tributary.version", "x")])).unwrap_err();
    assert!(error.contains("tributary.version = 'x'"), "{error}");
}

#[test]
fn a_live_file_counts_the_rows_that_are_left_and_differs_by_its_deletes() {
    let whole = LiveFile::from(file());
    assert_eq!(whole.live_rows(), 40);
    let deletes = |id: &str| Some(Arc::new(deletes::tests::deletes(id, 3..18)));
    let fewer = LiveFile { deletes: deletes("u1"), ..whole.clone() };
    assert_eq!((fewer.live_rows(), fewer.deleted_rows(), fewer.file.rows), (25, 15, 40));
    assert!(!whole.is_same(&fewer));
    assert!(!fewer.is_same(&LiveFile { deletes: deletes("u2"), ..whole.clone() }));
    assert!(fewer.is_same(&fewer.clone()));
}

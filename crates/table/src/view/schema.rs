//! A table's columns in the terms of Parquet and of Delta Lake.
//!
//! Data files name a column by its physical name, which never changes; the Delta schema names it
//! as users do and, once the two differ or a column was dropped, maps one to the other (column
//! mapping, mode `name`). A protocol only ever grows.

mod nested_ids;

use crate::ambient::{new_uuid, now_ms};
use crate::error::TableError;
use crate::options::Retention;
use arrow::datatypes::{Field, Schema, SchemaRef};
use deltalake_core::kernel::{
    ArrayType, DataType as DeltaType, MapType, Metadata, MetadataValue, Protocol, StructField, StructType,
};
use nested_ids::{FieldPath, NestedIds};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tributary_types::{ColumnDef, ColumnId, DataType, Nested, NestedType, TableDef, TableSchema};

/// Keys of ours in a Delta table's configuration.
pub(crate) const TABLE_ID_KEY: &str = "tributary.tableId";
pub(crate) const SCHEMA_VERSION_KEY: &str = "tributary.schemaVersion";
pub(crate) const NEXT_COLUMN_ID_KEY: &str = "tributary.nextColumnId";
const DROPPED_COLUMNS_KEY: &str = "tributary.droppedColumns";

/// The number of the last heavy schema change.
const CHANGE_KEY: &str = "tributary.schemaChange";

/// A column's id in the Delta schema's field metadata.
const COLUMN_ID: &str = "tributary.columnId";

/// Field ids in column `c` start at `c * NESTED_IDS`.
const NESTED_IDS: i64 = 100_000;

/// Stands for the id of a column that another writer added.
const UNKNOWN_ID: u32 = u32::MAX;

const MAPPING_MODE_KEY: &str = "delta.columnMapping.mode";
const MAPPING_MAX_ID_KEY: &str = "delta.columnMapping.maxColumnId";
const DELETES_KEY: &str = "delta.enableDeletionVectors";

/// Delta's properties of what is retained. Checkpoints leave out removed files that are older, as do other engines that clean up.
const REMOVED_FILES_KEY: &str = "delta.deletedFileRetentionDuration";
const LOG_KEY: &str = "delta.logRetentionDuration";

/// Delta's property of what another engine's statement conflicts with: with `WriteSerializable` it may precede an append that it did not
/// read (docs/adr/0127-engines-precede-appends.md). Who has set it keeps it.
const ISOLATION_KEY: &str = "delta.isolationLevel";
const ISOLATION: &str = "WriteSerializable";

const MAPPING_ID: &str = "delta.columnMapping.id";
const MAPPING_NAME: &str = "delta.columnMapping.physicalName";

const FEATURE_NTZ: &str = "timestampNtz";
const FEATURE_MAPPING: &str = "columnMapping";
const FEATURE_DELETES: &str = "deletionVectors";
/// The features implied by writer version 2, which a table with named features must list.
const LEGACY_WRITER_FEATURES: [&str; 2] = ["appendOnly", "invariants"];
/// The additional features of writer version 5.
const MAPPED_WRITER_FEATURES: [&str; 3] = ["checkConstraints", "changeDataFeed", "generatedColumns"];

/// The Arrow schema of data files: physical names, and column ids as Parquet field ids.
#[must_use]
pub fn physical_arrow(schema: &TableSchema) -> SchemaRef {
    let field = |column: &ColumnDef| {
        Field::new(&column.physical_name, column.data_type.to_stored_arrow(), column.nullable)
            .with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), column.id.to_string())]))
    };
    Arc::new(Schema::new(schema.columns.iter().map(field).collect::<Vec<_>>()))
}

fn delta_type(data_type: DataType) -> Result<DeltaType, TableError> {
    let decimal = |precision, scale| {
        DeltaType::decimal(precision, scale).map_err(|error| {
            TableError::delta(format!("describing a DECIMAL({precision},{scale})"))(error.into())
        })
    };
    Ok(match data_type {
        DataType::Boolean => DeltaType::BOOLEAN,
        DataType::TinyInt => DeltaType::BYTE,
        DataType::SmallInt => DeltaType::SHORT,
        DataType::Int => DeltaType::INTEGER,
        DataType::BigInt | DataType::Ipv4 => DeltaType::LONG,
        DataType::Ipv6 => DeltaType::BINARY,
        DataType::LargeInt => decimal(tributary_types::data_type::LARGEINT_DIGITS_MAX, 0)?,
        DataType::Float => DeltaType::FLOAT,
        DataType::Double => DeltaType::DOUBLE,
        DataType::Decimal { precision, scale } => decimal(precision, scale)?,
        DataType::Date => DeltaType::DATE,
        DataType::DateTime { .. } => DeltaType::TIMESTAMP_NTZ,
        DataType::Time { .. }
        | DataType::Char { .. }
        | DataType::Varchar { .. }
        | DataType::String
        | DataType::Json
        | DataType::Variant => DeltaType::STRING,
        DataType::Nested(nested) => return delta_nested(nested, &mut None, &mut FieldPath::new()),
        DataType::Varbinary { .. } | DataType::Bitmap | DataType::Hll => DeltaType::BINARY,
    })
}

/// A type whose values consist of values; parts may be NULL. With column mapping fields of a STRUCT have ids, too. `path` is where the
/// type is in its column.
fn delta_nested(
    nested: Nested,
    ids: &mut Option<NestedIds>,
    path: &mut FieldPath,
) -> Result<DeltaType, TableError> {
    let mut part = |name: &str, data_type: DataType| match data_type {
        DataType::Nested(nested) => {
            path.push(name.to_owned());
            let part = delta_nested(nested, ids, path);
            path.pop();
            part
        }
        plain => delta_type(plain),
    };
    Ok(match nested.kept() {
        NestedType::Array(item) => ArrayType::new(part("element", *item)?, true).into(),
        NestedType::Map(key, value) => MapType::new(part("key", *key)?, part("value", *value)?, true).into(),
        NestedType::Struct(fields) => {
            let mut described = Vec::with_capacity(fields.len());
            for field in fields {
                described.push((&field.name, part(&field.name, field.data_type)?));
            }
            let field = |(name, data_type): (&String, DeltaType)| {
                let field = StructField::new(name, data_type, true);
                let Some(ids) = ids else { return field };
                path.push(name.clone());
                let id = ids.id(path);
                path.pop();
                field.with_metadata([
                    (MAPPING_ID, MetadataValue::Number(id)),
                    (MAPPING_NAME, MetadataValue::String(name.clone())),
                ])
            };
            let fields: Vec<StructField> = described.into_iter().map(field).collect();
            StructType::try_new(fields)
                .map_err(|error| TableError::delta("describing a STRUCT to Delta Lake")(error.into()))?
                .into()
        }
    })
}

fn delta_schema(
    schema: &TableSchema,
    mapped: bool,
    logged: Option<&LoggedColumns>,
) -> Result<StructType, TableError> {
    let mut fields = Vec::with_capacity(schema.visible_count());
    // Rows that hidden columns delete are deleted for other readers, too: they need not know of them.
    for column in schema.visible() {
        let id = MetadataValue::Number(i64::from(column.id.0));
        let mut metadata = vec![(COLUMN_ID, id.clone())];
        if mapped {
            metadata.push((MAPPING_ID, id));
            metadata.push((MAPPING_NAME, MetadataValue::String(column.physical_name.clone())));
        }
        let data_type = match column.data_type {
            DataType::Nested(nested) => {
                let described = logged.and_then(|logged| logged.nested.get(&column.id.0));
                let mut ids = mapped.then(|| NestedIds::new(column.id, described));
                delta_nested(nested, &mut ids, &mut FieldPath::new())?
            }
            data_type => delta_type(data_type)?,
        };
        let field = StructField::new(&column.name, data_type, column.nullable);
        fields.push(field.with_metadata(metadata));
    }
    StructType::try_new(fields)
        .map_err(|error| TableError::delta("describing a table's columns to Delta Lake")(error.into()))
}

/// The columns in the log's metadata.
struct LoggedColumns {
    /// Physical names of the columns that the log's schema has, with their column ids.
    live: BTreeMap<String, u32>,
    /// Physical names of dropped columns, which data files may still hold, with their column ids.
    dropped: BTreeMap<String, u32>,
    /// The types of live columns whose values consist of values, by column ids.
    nested: HashMap<u32, DeltaType>,
    mapped: bool,
}

impl LoggedColumns {
    fn read(metadata: &Metadata) -> Result<Self, TableError> {
        let schema = metadata
            .parse_schema()
            .map_err(|error| TableError::delta("reading the schema of a Delta log")(error.into()))?;
        let physical = |field: &StructField| {
            let name = match field.metadata().get(MAPPING_NAME) {
                Some(MetadataValue::String(name)) => name.clone(),
                _ => field.name().to_owned(),
            };
            let id = match field.metadata().get(COLUMN_ID) {
                Some(MetadataValue::Number(id)) => u32::try_from(*id).unwrap_or(UNKNOWN_ID),
                _ => UNKNOWN_ID,
            };
            (name, id)
        };
        let is_nested = |of: &DeltaType| !matches!(of, DeltaType::Primitive(_));
        let nested = schema.fields().filter(|field| is_nested(field.data_type()));
        let nested = nested.map(|field| (physical(field).1, field.data_type().clone())).collect();
        let config = metadata.configuration();
        let dropped = match config.get(DROPPED_COLUMNS_KEY) {
            Some(text) => serde_json::from_str(text)
                .map_err(TableError::json(format!("reading the table property {DROPPED_COLUMNS_KEY}")))?,
            None => BTreeMap::new(),
        };
        Ok(Self {
            live: schema.fields().map(physical).collect(),
            dropped,
            nested,
            mapped: config.get(MAPPING_MODE_KEY).is_some_and(|mode| mode != "none"),
        })
    }
}

fn names_differ(column: &ColumnDef) -> bool {
    column.name != column.physical_name
        || column.name.contains([' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '='])
}

/// The metadata that a log with `existing` should have for `def`, and for files with deleted rows if there are some.
///
/// # Errors
/// [`TableError::PhysicalNameReused`] when a new column takes a dropped one's place in data files.
pub(crate) fn metadata_for(
    def: &TableDef,
    existing: Option<&Metadata>,
    has_deletes: bool,
) -> Result<Metadata, TableError> {
    let logged = existing.map(LoggedColumns::read).transpose()?;
    let dropped = dropped_columns(def, logged.as_ref())?;
    let mapped = logged.as_ref().is_some_and(|logged| logged.mapped)
        || !dropped.is_empty()
        || def.schema.columns.iter().any(names_differ);
    let schema = delta_schema(&def.schema, mapped, logged.as_ref())?;
    let mut config: BTreeMap<String, String> = existing
        .map(|metadata| metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect())
        .unwrap_or_default();
    let next_id = def.schema.next_column_id;
    config.insert(TABLE_ID_KEY.to_owned(), def.id.to_string());
    config.insert(SCHEMA_VERSION_KEY.to_owned(), def.schema.version.to_string());
    config.insert(NEXT_COLUMN_ID_KEY.to_owned(), next_id.to_string());
    if !dropped.is_empty() {
        config.insert(DROPPED_COLUMNS_KEY.to_owned(), json!(dropped).to_string());
    }
    if mapped {
        config.insert(MAPPING_MODE_KEY.to_owned(), "name".to_owned());
        config.insert(MAPPING_MAX_ID_KEY.to_owned(), max_mapping_id(def).to_string());
    }
    if has_deletes {
        config.insert(DELETES_KEY.to_owned(), "true".to_owned());
    }
    let created = existing.map_or_else(|| Some(now_ms()), Metadata::created_time);
    let id = existing.map_or_else(|| new_uuid().to_string(), |metadata| metadata.id().to_owned());
    let schema_string = serde_json::to_string(&schema).map_err(TableError::json("writing a Delta schema"))?;
    serde_json::from_value(json!({
        "id": id,
        "name": def.name,
        "description": (!def.comment.is_empty()).then_some(&def.comment),
        "format": { "provider": "parquet", "options": {} },
        "schemaString": schema_string,
        "partitionColumns": [],
        "configuration": config,
        "createdTime": created,
    }))
    .map_err(TableError::json("writing Delta metadata"))
}

/// The greatest id of the column mapping, including fields within columns.
fn max_mapping_id(def: &TableDef) -> i64 {
    let has_nested = def.schema.columns.iter().any(|column| column.data_type.is_nested());
    let own = i64::from(max_column_id(def));
    if has_nested { (own + 2) * NESTED_IDS } else { own }
}

/// The metadata of the entry that makes the schema change.
pub(crate) fn with_change(metadata: Metadata, change: Option<u64>) -> Result<Metadata, TableError> {
    let Some(change) = change else { return Ok(metadata) };
    let failed = || TableError::json("writing Delta metadata");
    let mut value = serde_json::to_value(&metadata).map_err(failed())?;
    value["configuration"][CHANGE_KEY] = json!(change.to_string());
    serde_json::from_value(value).map_err(failed())
}

/// The metadata with the properties of what is retained, and of isolation. `None`: it has them already.
pub(crate) fn with_settings(
    metadata: &Metadata,
    retention: Retention,
) -> Result<Option<Metadata>, TableError> {
    let interval = |ms: u64| format!("interval {} seconds", ms.div_ceil(1000));
    let config = metadata.configuration();
    let isolation = config.get(ISOLATION_KEY).cloned().unwrap_or_else(|| ISOLATION.to_owned());
    let wanted = [
        (REMOVED_FILES_KEY, interval(retention.removed_files_ms)),
        (LOG_KEY, interval(retention.log_ms)),
        (ISOLATION_KEY, isolation),
    ];
    if wanted.iter().all(|(key, value)| config.get(*key) == Some(value)) {
        return Ok(None);
    }
    let failed = || TableError::json("writing Delta metadata");
    let mut changed = serde_json::to_value(metadata).map_err(failed())?;
    for (key, value) in wanted {
        changed["configuration"][key] = json!(value);
    }
    serde_json::from_value(changed).map(Some).map_err(failed())
}

/// Whether a protocol has only features that this module writes.
pub(crate) fn has_only_known_features(protocol: &Protocol) -> bool {
    let Ok(protocol) = serde_json::to_value(protocol) else { return false };
    let number = |key: &str| protocol.get(key).and_then(Value::as_u64).unwrap_or(u64::MAX);
    let named = [FEATURE_NTZ, FEATURE_MAPPING, FEATURE_DELETES];
    let is_known = |name: &Value| {
        let all = named.iter().chain(&LEGACY_WRITER_FEATURES).chain(&MAPPED_WRITER_FEATURES);
        name.as_str().is_some_and(|name| all.into_iter().any(|known| *known == name))
    };
    let has_known = |key: &str| {
        protocol.get(key).and_then(Value::as_array).is_none_or(|names| names.iter().all(is_known))
    };
    number("minReaderVersion") <= 3
        && number("minWriterVersion") <= 7
        && has_known("readerFeatures")
        && has_known("writerFeatures")
}

/// The number of the last heavy schema change that the log has.
pub(crate) fn last_change(metadata: &Metadata) -> Option<u64> {
    metadata.configuration().get(CHANGE_KEY)?.parse().ok()
}

fn max_column_id(def: &TableDef) -> u32 {
    let used = def.schema.columns.iter().map(|column| column.id.0).max().unwrap_or(0);
    used.max(def.schema.next_column_id.0.saturating_sub(1))
}

fn dropped_columns(
    def: &TableDef,
    logged: Option<&LoggedColumns>,
) -> Result<BTreeMap<String, u32>, TableError> {
    let Some(logged) = logged else { return Ok(BTreeMap::new()) };
    let mut dropped = logged.dropped.clone();
    let wanted: HashMap<&str, ColumnId> =
        def.schema.columns.iter().map(|column| (column.physical_name.as_str(), column.id)).collect();
    for (name, id) in &wanted {
        match dropped.get(*name) {
            Some(old) if *old != id.0 => {
                return Err(TableError::PhysicalNameReused {
                    table: def.name.clone(),
                    physical_name: (*name).to_owned(),
                });
            }
            Some(_) => drop(dropped.remove(*name)),
            None => {}
        }
    }
    let gone = logged.live.iter().filter(|(name, _)| !wanted.contains_key(name.as_str()));
    dropped.extend(gone.map(|(name, id)| (name.clone(), *id)));
    Ok(dropped)
}

/// Whether two metadata actions say the same.
pub(crate) fn same_metadata(left: &Metadata, right: &Metadata) -> bool {
    let schema = |metadata: &Metadata| metadata.parse_schema().ok();
    left.name() == right.name()
        && left.description() == right.description()
        && left.configuration() == right.configuration()
        && schema(left) == schema(right)
}

/// The weakest protocol that allows what `metadata` needs and all that `existing` allows.
///
/// Column mapping is a named feature although reader version 2 would do: readers that do not know
/// it refuse the name, while some take version 2 for granted and read a renamed column as NULL.
pub(crate) fn protocol_for(metadata: &Metadata, existing: Option<&Protocol>) -> Result<Protocol, TableError> {
    let schema = metadata
        .parse_schema()
        .map_err(|error| TableError::delta("reading the schema of a Delta log")(error.into()))?;
    let has_ntz = schema.fields().any(|field| has_ntz(field.data_type()));
    let config = metadata.configuration();
    let mapped = config.get(MAPPING_MODE_KEY).is_some_and(|mode| mode != "none");
    let has_deletes = config.get(DELETES_KEY).is_some_and(|enabled| enabled == "true");
    let wanted = [(has_ntz, FEATURE_NTZ), (mapped, FEATURE_MAPPING), (has_deletes, FEATURE_DELETES)];
    let wanted: Vec<&str> =
        wanted.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, name)| *name).collect();
    let old = match existing {
        Some(protocol) => {
            serde_json::to_value(protocol).map_err(TableError::json("reading a Delta protocol"))?
        }
        None => json!({"minReaderVersion": 1, "minWriterVersion": 2}),
    };
    let number = |key: &str| old.get(key).and_then(Value::as_u64).unwrap_or(1);
    let (reader, writer) = (number("minReaderVersion"), number("minWriterVersion"));
    let value = if !wanted.is_empty() || reader >= 3 || writer >= 7 {
        named_features(&old, reader, writer, &wanted)
    } else {
        json!({"minReaderVersion": reader, "minWriterVersion": writer})
    };
    serde_json::from_value(value).map_err(TableError::json("writing a Delta protocol"))
}

fn has_ntz(data_type: &DeltaType) -> bool {
    match data_type {
        DeltaType::Array(array) => has_ntz(array.element_type()),
        DeltaType::Map(map) => has_ntz(map.key_type()) || has_ntz(map.value_type()),
        DeltaType::Struct(fields) => fields.fields().any(|field| has_ntz(field.data_type())),
        plain => *plain == DeltaType::TIMESTAMP_NTZ,
    }
}

fn named_features(old: &Value, reader: u64, writer: u64, wanted: &[&str]) -> Value {
    let listed = |key: &str| -> BTreeSet<String> {
        let names = old.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut readers = listed("readerFeatures");
    let mut writers = listed("writerFeatures");
    let mut both = |name: &str| {
        readers.insert(name.to_owned());
        writers.insert(name.to_owned());
    };
    wanted.iter().copied().for_each(&mut both);
    if reader == 2 {
        both(FEATURE_MAPPING);
    }
    if writer < 7 {
        writers.extend(LEGACY_WRITER_FEATURES.map(str::to_owned));
    }
    if (5..7).contains(&writer) {
        writers.extend(MAPPED_WRITER_FEATURES.map(str::to_owned));
    }
    json!({
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": readers,
        "writerFeatures": writers,
    })
}

#[cfg(test)]
mod tests;

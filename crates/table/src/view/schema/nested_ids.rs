//! Ids of the fields within columns, required by Delta's column mapping.
//!
//! Invariant: a field keeps its id as long as its column exists, whatever fields are added beside it.

use super::{MAPPING_ID, NESTED_IDS};
use deltalake_core::kernel::{DataType, MetadataValue, StructField, StructType};
use std::collections::HashMap;
use tributary_types::ColumnId;

/// The path of a field in its column: the names of the enclosing fields and its own, with `element`, `key` and `value` for the
/// parts of others.
pub(super) type FieldPath = Vec<String>;

/// The ids of a column's fields.
#[derive(Debug, Default)]
pub(super) struct NestedIds {
    logged: HashMap<FieldPath, i64>,
    last: i64,
}

impl NestedIds {
    /// The ids of that column's fields, some of which the log's description of the column has.
    pub(super) fn new(column: ColumnId, logged: Option<&DataType>) -> Self {
        let mut ids = Self { logged: HashMap::new(), last: (i64::from(column.0) + 1) * NESTED_IDS };
        if let Some(logged) = logged {
            ids.gather(logged, &mut Vec::new());
        }
        ids
    }

    /// The id of the field there: the one that it has, or a new one.
    pub(super) fn id(&mut self, path: &FieldPath) -> i64 {
        if let Some(id) = self.logged.get(path) {
            return *id;
        }
        self.last += 1;
        self.last
    }

    fn gather(&mut self, of: &DataType, path: &mut FieldPath) {
        let mut within = |name: &str, part: &DataType| {
            path.push(name.to_owned());
            self.gather(part, path);
            path.pop();
        };
        match of {
            DataType::Array(array) => within("element", array.element_type()),
            DataType::Map(map) => {
                within("key", map.key_type());
                within("value", map.value_type());
            }
            DataType::Struct(fields) => self.gather_fields(fields, path),
            _ => {}
        }
    }

    fn gather_fields(&mut self, fields: &StructType, path: &mut FieldPath) {
        for field in fields.fields() {
            path.push(field.name().to_owned());
            if let Some(id) = mapping_id(field) {
                self.logged.insert(path.clone(), id);
                self.last = self.last.max(id);
            }
            self.gather(field.data_type(), path);
            path.pop();
        }
    }
}

fn mapping_id(field: &StructField) -> Option<i64> {
    match field.metadata().get(MAPPING_ID) {
        Some(MetadataValue::Number(id)) => Some(*id),
        _ => None,
    }
}

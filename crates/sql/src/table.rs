//! The meaning of CREATE TABLE, ALTER TABLE and SHOW CREATE TABLE: statements ↔ [`TableDef`].
//!
//! Invariant: a definition that leaves this module obeys Doris's rules for tables with such keys (key
//! columns first, key types, unique names, defaults that fit), and printing it with
//! [`show_create_table`] and parsing that again gives the same table.

mod aggregate;
mod alter;
mod auto_increment;
mod create_as;
mod default_value;
mod deletion;
mod generated;
mod heavy;
mod index;
mod keys;
mod nested_change;
mod partitions;
pub mod properties;
mod rollup;
mod sequence;
mod show_create;

#[cfg(test)]
mod tests;

pub use alter::{apply_alter, apply_alters};
pub use create_as::{QueryColumn, like};
pub use deletion::check_deletion_by_keys;
pub use generated::disallowed as disallowed_in_generated;
pub use heavy::is_heavy;
pub use index::properties as index_properties;
pub use partitions::dynamic::{
    DynamicFacts, Scheduled, dynamic_facts, dynamic_time_zone, scheduled, without_dynamic_partitions,
};
pub use partitions::{
    Replacement, add_temporary, beside, named_partitions, replacement, with_recovered, without_partition,
};
pub(crate) use show_create::{escaped, quoted};
pub use show_create::{show_create_database, show_create_table, show_create_table_of_mysql};

use crate::ast::{ColumnSpec, CreateTable};
use crate::names;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{
    Aggregation, ColumnDef, ColumnId, DataType, DbId, DefaultValue, ErrorCode, KeyModel, SchemaVersion,
    SqlError, TableDef, TableId, TableProperties, TableRole, TableSchema,
};

/// The first column's id; later ids follow and are never reused in a table.
pub const FIRST_COLUMN_ID: ColumnId = ColumnId(1);

impl CreateTable {
    /// The table that the statement describes. `db` is the database it is created in. Its files
    /// will be at `tables/<db>/<table>-<id>`, which is never used again.
    ///
    /// # Errors
    /// Doris's rules that the statement breaks: names (1103, 1166), duplicate columns (1060), keys,
    /// types, defaults, distribution and properties (1105).
    pub fn to_def(&self, db: &str, db_id: DbId, id: TableId) -> Result<TableDef, SqlError> {
        names::check_table(&self.table.table)?;
        let mut columns = self
            .columns
            .iter()
            .zip(FIRST_COLUMN_ID.0..)
            .map(|(spec, id)| column_def(spec, ColumnId(id)))
            .collect::<Result<Vec<_>, _>>()?;
        check_unique(&columns)?;
        let mut settings = properties::of_create(&self.properties, &columns)?;
        let keys = keys::mark(self, &settings, &mut columns)?;
        if keys.is_unique() {
            let merge_on_write = settings.others.entry(properties::MERGE_ON_WRITE.to_owned());
            merge_on_write.or_insert_with(|| "true".to_owned());
        }
        if keys.is_aggregate() && settings.others.get("store_row_column").is_some_and(|value| value == "true")
        {
            return Err(refused("Aggregate table can't support row column now"));
        }
        check_on_update(keys, merges_on_write(&settings), &columns)?;
        auto_increment::check(keys, &columns)?;
        generated::settle(keys, &self.columns, &mut columns)?;
        let distribution = distribution(self.distribution.as_ref(), &columns)?;
        let distribution =
            if keys.keeps_all_rows() { distribution } else { by_keys(distribution, self, keys, &columns)? };
        let partitioning = partitions::of_create(self.partition_by.as_ref(), keys, &columns)?;
        let indexes = index::of_create(&self.indexes, keys, &columns)?;
        let sequence = sequence::add_hidden(keys, &mut settings.others, &mut columns)?;
        if sequence.is_some() && settings.copies_on_write() {
            return Err(refused(
                "\"delta.enableDeletionVectors\" = \"false\" does not go with a sequence: rows that delete stay in data files, \
                 against later ones of a smaller sequence, and only a deletion vector can cover them. Leave one of both out",
            ));
        }
        let next_column_id = ColumnId(FIRST_COLUMN_ID.0 + columns.len() as u32);
        let name = self.table.table.clone();
        let mut def = TableDef {
            id,
            db_id,
            db: db.to_owned(),
            schema: Arc::new(TableSchema {
                next_column_id,
                sequence,
                ..TableSchema::new(SchemaVersion(1), columns)
            }),
            keys,
            partitioning,
            drop_mark: None,
            distribution,
            properties: settings,
            comment: self.comment.clone(),
            indexes,
            rollups: Vec::new(),
            role: TableRole::Own,
            location: location(db, &name, id),
            name,
        };
        rollup::of_create(&mut def, &self.rollups)?;
        partitions::dynamic::settle(&mut def)?;
        Ok(def)
    }
}

/// The path of a table's files relative to the storage root; never reused.
fn location(db: &str, name: &str, id: TableId) -> String {
    format!("tables/{db}/{name}-{id}")
}

/// A column of its own, with a name and default that are good.
fn column_def(spec: &ColumnSpec, id: ColumnId) -> Result<ColumnDef, SqlError> {
    names::check_column(&spec.name)?;
    generated::check_column(spec)?;
    if spec.data_type == DataType::Variant && spec.name.contains('.') {
        return Err(refused(format!(
            "Disable to create table of `VARIANT` type column named with a `.` character: {}",
            spec.name
        )));
    }
    let nullable = spec.nullable.unwrap_or(!spec.data_type.is_state());
    if spec.data_type.is_state() {
        check_state(spec)?;
    } else if let Some(default) = &spec.default {
        default_value::check(&spec.name, spec.data_type, nullable, default)?;
    }
    Ok(ColumnDef {
        id,
        name: spec.name.clone(),
        physical_name: spec.name.clone(),
        data_type: spec.data_type,
        nullable,
        is_key: spec.is_key,
        default: spec.default.clone(),
        filled: None,
        comment: spec.comment.clone().unwrap_or_default(),
        hidden: None,
        aggregation: spec.aggregation,
        on_update: on_update(spec)?,
        auto_increment: auto_increment::of_column(spec, nullable)?,
        // Its references are known only once all columns are.
        generated: None,
    })
}

/// The rules of columns whose values are states.
fn check_state(spec: &ColumnSpec) -> Result<(), SqlError> {
    let name = &spec.name;
    if spec.nullable == Some(true) {
        return Err(refused(format!("complex type column must be not nullable, column:{name}")));
    }
    let is_empty =
        |default: &DefaultValue| matches!(default, DefaultValue::Literal(name) if name == "BITMAP_EMPTY");
    match &spec.default {
        Some(_) if spec.data_type == DataType::Hll => {
            Err(refused(format!("Hll type column can not set default value (column '{name}')")))
        }
        Some(default) if !is_empty(default) => Err(refused(format!(
            "Bitmap type column default value only support BITMAP_EMPTY (column '{name}')"
        ))),
        _ => Ok(()),
    }
}

/// Whether the column has `ON UPDATE`, which is the time that it has by default.
fn on_update(spec: &ColumnSpec) -> Result<bool, SqlError> {
    let Some(scale) = spec.on_update else { return Ok(false) };
    if spec.default != Some(DefaultValue::CurrentTimestamp { scale }) {
        return Err(refused(format!(
            "column '{}': ON UPDATE CURRENT_TIMESTAMP needs the same DEFAULT CURRENT_TIMESTAMP",
            spec.name
        )));
    }
    Ok(true)
}

/// Whether rows of a table with UNIQUE KEY can be updated in part.
fn merges_on_write(properties: &TableProperties) -> bool {
    let merges = properties.others.get(properties::MERGE_ON_WRITE);
    merges.is_none_or(|value| !value.eq_ignore_ascii_case("false"))
}

/// Rows of other tables are not updated.
fn check_on_update(keys: KeyModel, merges_on_write: bool, columns: &[ColumnDef]) -> Result<(), SqlError> {
    if columns.iter().any(|column| column.on_update) && !(keys.is_unique() && merges_on_write) {
        return Err(refused(
            "'ON UPDATE CURRENT_TIMESTAMP' is only supportted in unique table with merge-on-write enabled.",
        ));
    }
    match columns.iter().find(|column| column.on_update && column.is_key) {
        Some(column) => Err(refused(format!(
            "column '{}': a key column stays as it is, ON UPDATE is for value columns",
            column.name
        ))),
        None => Ok(()),
    }
}

fn check_unique(columns: &[ColumnDef]) -> Result<(), SqlError> {
    let mut seen = HashSet::new();
    match columns.iter().find(|column| !seen.insert(column.name.to_lowercase())) {
        Some(column) => Err(duplicate_column(&column.name)),
        None => Ok(()),
    }
}

fn duplicate_column(name: &str) -> SqlError {
    SqlError::new(ErrorCode::DuplicateColumn, format!("Duplicate column name '{name}'"))
}

fn refused(message: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, message)
}

/// The column called `name` in any case.
fn find<'c>(columns: &'c [ColumnDef], name: &str) -> Option<&'c ColumnDef> {
    columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
}

/// The distribution as stated, with columns in their declared case.
fn distribution(written: Option<&Distribution>, columns: &[ColumnDef]) -> Result<Distribution, SqlError> {
    let (names, buckets) = match written {
        None => return Ok(Distribution::Random { buckets: Buckets::Auto }),
        Some(random @ Distribution::Random { .. }) => return Ok(random.clone()),
        Some(Distribution::Hash { columns, buckets }) => (columns, *buckets),
    };
    let mut hashed: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = find(columns, name) else {
            return Err(refused(format!("Distribution column({name}) doesn't exist.")));
        };
        let is_hashed = !matches!(
            column.data_type,
            DataType::Float
                | DataType::Double
                | DataType::Time { .. }
                | DataType::Json
                | DataType::Variant
                | DataType::Nested(_)
        );
        let is_long = column.data_type.is_bytes() && !column.data_type.may_be_key();
        if !is_hashed || is_long || column.data_type.is_state() {
            return Err(refused(format!(
                "column '{name}' of type {} cannot be a distribution column: choose another or RANDOM",
                column.data_type.base_name()
            )));
        }
        if hashed.contains(&column.name) {
            return Err(refused(format!("Duplicated distribution column {name}")));
        }
        hashed.push(column.name.clone());
    }
    Ok(Distribution::Hash { columns: hashed, buckets })
}

/// The distribution of a table with one row for each key, which is by some of its keys.
fn by_keys(
    distribution: Distribution,
    create: &CreateTable,
    model: KeyModel,
    columns: &[ColumnDef],
) -> Result<Distribution, SqlError> {
    let is_key = |name: &String| find(columns, name).is_some_and(|column| column.is_key);
    match distribution {
        Distribution::Random { buckets } if create.distribution.is_none() => {
            let keys = columns.iter().filter(|column| column.is_key).map(|column| column.name.clone());
            Ok(Distribution::Hash { columns: keys.collect(), buckets })
        }
        Distribution::Random { .. } if model.is_unique() => {
            Err(refused("Should not be distributed by random when keys type is unique"))
        }
        Distribution::Random { .. } => {
            let replaces = |column: &&ColumnDef| column.aggregation.is_some_and(Aggregation::replaces);
            match columns.iter().find(replaces) {
                // Doris's text, without a blank before `and`.
                Some(column) => Err(refused(format!(
                    "Should not be distributed by random when keys type is aggand column is in replace, [{}] is invalid",
                    column.name
                ))),
                None => Ok(distribution),
            }
        }
        Distribution::Hash { columns: names, buckets } => match names.iter().find(|name| !is_key(name)) {
            Some(name) => Err(refused(format!("Distribution column[{name}] is not key column"))),
            None => Ok(Distribution::Hash { columns: names, buckets }),
        },
    }
}

/// Whether a new row may leave the column out.
fn can_be_omitted(column: &ColumnDef) -> bool {
    match &column.default {
        // Without a value it is empty, or the server gives one.
        _ if column.data_type.is_state() || column.is_filled() => true,
        Some(DefaultValue::Null) | None => column.nullable,
        Some(_) => true,
    }
}

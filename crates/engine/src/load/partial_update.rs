//! Loads that update some columns of tables with UNIQUE KEY: which loads do, and which rows they may bring. And loads that may bring
//! rows of new keys only.
//!
//! A row says in a hidden column which columns it gives, and the table completes it when it settles its rows. A table gets that
//! column with its first partial update. The rules and texts are Doris's. Not the business of this module: decoding
//! ([`Target::partial`]), and completing rows.

use crate::ddl::tables::table_error;
use crate::load::Loads;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::sync::{Arc, OnceLock};
use tributary_decode::{Target, blocks_to_batches};
use tributary_ingest::LoadRows;
use tributary_table::{DataFile, Table};
use tributary_types::{
    ColumnDef, DefaultValue, ErrorCode, FLEXIBLE_UPDATES, HiddenColumn, SqlError, TableDef, TableSchema,
};

/// Requirements on the keys of a partial update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownKeys {
    /// All keys must be there.
    rejects_new: bool,
    /// The rows come from an UPDATE, which has read them.
    are_updated: bool,
    /// Columns, by their indexes in the schema, for which rows with new keys have no value. The keys of rows that do not give
    /// them must exist.
    unfilled: Vec<usize>,
    is_flexible: bool,
    /// No key may be there, nor twice among the rows.
    rejects_known: bool,
    /// Gets the number of new keys.
    new_keys: Option<Arc<OnceLock<u64>>>,
}

impl KnownKeys {
    /// The requirements of a target's rows. `None` if any keys will do.
    pub fn of(target: &Target, rejects_new: bool) -> Option<Box<Self>> {
        let (unfilled, is_flexible) = (target.unfilled().to_vec(), target.is_flexible());
        let is_needed = target.is_partial() && (rejects_new || !unfilled.is_empty());
        is_needed.then(|| Box::new(Self { rejects_new, unfilled, is_flexible, ..Self::default() }))
    }

    /// For an INSERT IGNORE: any keys will do, and the new ones are counted.
    pub fn counted(new_keys: &Arc<OnceLock<u64>>) -> Self {
        Self { new_keys: Some(Arc::clone(new_keys)), ..Self::default() }
    }

    /// For an INSERT that replaces no rows.
    pub fn new_ones() -> Self {
        Self { rejects_known: true, ..Self::default() }
    }

    /// For an UPDATE: its rows must still exist.
    pub fn of_update() -> Self {
        Self { rejects_new: true, are_updated: true, ..Self::default() }
    }

    /// The requirements of rows that give some columns of the table, not all the same ones.
    pub fn of_table(def: &TableDef) -> Option<Box<Self>> {
        let is_unfilled = |column: &ColumnDef| {
            let has_default = !matches!(column.default, None | Some(DefaultValue::Null));
            !(column.is_key || column.takes_null() || has_default)
        };
        let columns = def.schema.columns.iter().enumerate();
        let unfilled: Vec<usize> =
            columns.filter(|(_, column)| is_unfilled(column)).map(|(index, _)| index).collect();
        (!unfilled.is_empty()).then(|| Box::new(Self { unfilled, ..Self::default() }))
    }

    /// Combines the requirements of both.
    pub fn and(mut self, other: Self) -> Self {
        self.unfilled.extend(other.unfilled);
        self.unfilled.sort_unstable();
        self.unfilled.dedup();
        let new_keys = self.new_keys.take().or(other.new_keys);
        Self {
            rejects_new: self.rejects_new || other.rejects_new,
            rejects_known: self.rejects_known || other.rejects_known,
            new_keys,
            ..self
        }
    }

    /// Whether there are no requirements, and new keys are counted.
    pub const fn only_counts(&self) -> bool {
        self.new_keys.is_some() && !self.rejects_new && !self.rejects_known && self.unfilled.is_empty()
    }

    /// Counts the new keys of rows, if that is asked for.
    ///
    /// # Errors
    /// Keys of the table can't be read.
    async fn count(
        &self,
        table: &Table,
        schema: &Arc<TableSchema>,
        batches: &[RecordBatch],
        files: &[DataFile],
    ) -> Result<(), SqlError> {
        let Some(new_keys) = &self.new_keys else { return Ok(()) };
        let count = table.count_new_keys(schema, batches, files).await.map_err(table_error)?;
        // Rows are counted once, right before their commit.
        let _ = new_keys.set(count);
        Ok(())
    }

    /// Checks rows that are about to be committed.
    ///
    /// # Errors
    /// A key that no row of the table has, or one that a row has, as is required.
    pub async fn check(&self, table: &Table, rows: &LoadRows) -> Result<(), SqlError> {
        let batches =
            blocks_to_batches(&rows.schema, &rows.blocks).map_err(|error| refused(error.to_string()))?;
        self.check_batches(table, &rows.schema, &batches, rows.files()).await
    }

    /// [`KnownKeys::check`] of rows that are columns already.
    ///
    /// # Errors
    /// As [`KnownKeys::check`].
    pub async fn check_batches(
        &self,
        table: &Table,
        schema: &Arc<TableSchema>,
        batches: &[RecordBatch],
        files: &[DataFile],
    ) -> Result<(), SqlError> {
        self.count(table, schema, batches, files).await?;
        if self.rejects_known
            && let Some(key) = table.first_known_key(schema, batches, files).await.map_err(table_error)?
        {
            // MySQL's text, which clients take apart.
            let key = key.iter().map(shown).collect::<Vec<_>>().join("-");
            let text = format!("Duplicate entry '{key}' for key 'PRIMARY'");
            return Err(SqlError::new(ErrorCode::DuplicateEntry, text));
        }
        if self.rejects_new {
            let new = table.first_new_key(schema, batches, files, None).await;
            if let Some(key) = new.map_err(table_error)? {
                let key = key.iter().map(shown).collect::<Vec<_>>().join(", ");
                if self.are_updated {
                    return Err(refused(format!(
                        "the row with key=[{key}] was deleted while the UPDATE ran; no row is changed, run it again"
                    )));
                }
                return Err(refused(format!(
                    "tablet error: [E-7003]Can't append new rows in partial update when partial_update_new_key_behavior is \
                     ERROR. Row with key=[{key}] is not in table."
                )));
            }
            return Ok(());
        }
        let kind = if self.is_flexible { "flexible partial update" } else { "partial update" };
        for &column in &self.unfilled {
            let new = table.first_new_key(schema, batches, files, Some(column)).await;
            if new.map_err(table_error)?.is_some() {
                let name = &schema.columns[column].name;
                return Err(refused(format!(
                    "the unmentioned column `{name}` should have default value or be nullable for newly inserted rows in \
                     non-strict mode {kind}"
                )));
            }
        }
        Ok(())
    }
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

fn shown(value: &ArrayRef) -> String {
    let options = FormatOptions::new().with_null("NULL");
    let text = ArrayFormatter::try_new(value.as_ref(), &options).map(|format| format.value(0).to_string());
    text.unwrap_or_default()
}

/// Whether rows of the table can be updated in part: in one of UNIQUE KEY whose rows are merged when they are written.
pub(crate) fn is_possible(def: &TableDef) -> bool {
    let is_read = def.properties.others.get("enable_unique_key_merge_on_write");
    def.keys.is_unique() && is_read.is_none_or(|value| !value.eq_ignore_ascii_case("false"))
}

/// Whether a table with UNIQUE KEY has the column that partial updates need.
pub(crate) fn is_ready_to_update(def: &TableDef) -> bool {
    def.schema.index_of_hidden(HiddenColumn::Given).is_some()
}

/// Checks that the table can be updated in part.
///
/// # Errors
/// It can't.
pub(crate) fn check_possible(def: &TableDef) -> Result<(), SqlError> {
    if is_possible(def) {
        return Ok(());
    }
    let text = "Only unique key merge on write support partial update";
    Err(SqlError::detail(ErrorCode::Unknown, text))
}

/// Checks that each row of the table can be updated in columns of its own.
///
/// # Errors
/// It can't.
pub(crate) fn check_flexible(def: &TableDef) -> Result<(), SqlError> {
    check_possible(def)?;
    let name = &def.name;
    if def.schema.generated().next().is_some() {
        return Err(refused(format!(
            "Flexible partial update can only support table without generated columns. But table {name} has some"
        )));
    }
    if !def.properties.light_schema_change {
        return Err(refused(format!(
            "Flexible partial update can only support table with light_schema_change enabled. But table {name}'s property \
             light_schema_change is false"
        )));
    }
    if def.properties.others.get(FLEXIBLE_UPDATES).is_none_or(|value| value != "true") {
        return Err(refused(format!(
            "Flexible partial update can only support table with skip bitmap hidden column. But table {name} doesn't have it. \
             You can use `ALTER TABLE {name} ENABLE FEATURE \"UPDATE_FLEXIBLE_COLUMNS\";` to add it to the table."
        )));
    }
    Ok(())
}

/// Checks the columns that a load names itself.
///
/// # Errors
/// A hidden one that it must not give.
pub(crate) fn check_named<'a>(
    def: &TableDef,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<(), SqlError> {
    let is_refused = |name: &&str| {
        let index = def.schema.index_of(name);
        let hidden = index.and_then(|index| def.schema.columns[index].hidden);
        hidden.is_some_and(|hidden| hidden != HiddenColumn::DeleteSign)
    };
    let Some(name) = names.find(is_refused) else { return Ok(()) };
    Err(SqlError::detail(
        ErrorCode::Unknown,
        format!("Partial update should not include invisible column except delete sign column: {name}"),
    ))
}

/// The columns that the rows of a load give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// All.
    Whole,
    /// The columns that the load names.
    Named,
    /// The columns that each row has.
    OfRows,
    /// None: rows that exist stay.
    OfNewRows,
}

impl Loads {
    /// Gives the table the column that partial updates need, if it does not have it.
    ///
    /// # Errors
    /// The table can't be updated in part, or the catalog can't be written.
    pub(crate) async fn ready_for_partial(&self, table: &Arc<Table>) -> Result<(), SqlError> {
        check_possible(&table.def())?;
        self.ready_to_update(table).await
    }

    /// Like [`Loads::ready_for_partial`], for UPDATE: any table with UNIQUE KEY can complete its rows.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub(crate) async fn ready_to_update(&self, table: &Arc<Table>) -> Result<(), SqlError> {
        if table.with_def(is_ready_to_update) {
            return Ok(());
        }
        let turn = self.ddl.wait_for_turn(&table.def()).await;
        if table.with_def(is_ready_to_update) {
            return Ok(());
        }
        let def = table.def();
        let schema = Arc::new(def.schema.with_given());
        self.ddl.change_columns(&turn, Arc::clone(table), TableDef { schema, ..(*def).clone() }).await
    }
}

//! `INSERT … ON DUPLICATE KEY UPDATE`: a load of whole rows, or of some columns, into a table with UNIQUE KEY.
//!
//! In such a table a row replaces the one of its key, and a partial update keeps the other columns. Both are what the clause asks for if
//! it gives each inserted column its new value. If it gives some, rows are loaded whole, and say which of their columns a row that exists
//! takes. Values that depend on that row are computed before ([`crate::session::rows::computed_upsert`]).

use crate::load::partial_update;
use tributary_types::{ColumnDef, ErrorCode, SqlError, TableDef};

/// The rows that an upsert loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upsert {
    /// Rows as they are: there is no key, or they have all columns.
    Whole,
    /// Rows with some columns; existing ones keep the others.
    Partial,
    /// Whole rows, of which existing ones take the updated columns.
    Updating,
}

/// Whether a clause with expressions has to read rows that exist: the new rows may have their keys.
pub(super) fn reads_rows(def: &TableDef, named: Option<&[String]>) -> bool {
    let is_named = |column: &ColumnDef| {
        named.is_none_or(|names| names.iter().any(|name| name.eq_ignore_ascii_case(&column.name)))
    };
    let is_given = |column: &ColumnDef| column.is_key && column.auto_increment.is_some();
    def.keys.is_unique() && !def.schema.visible().any(|column| is_given(column) && !is_named(column))
}

/// How the clause is carried out, which updates these columns of the `named` ones (`None`: all).
///
/// # Errors
/// It can't be, in a way that does not depend on which rows exist.
pub(super) fn upsert(
    def: &TableDef,
    named: Option<&[String]>,
    updated: &[String],
) -> Result<Upsert, SqlError> {
    if def.keys.keeps_all_rows() {
        return Ok(Upsert::Whole);
    }
    if !def.keys.is_unique() {
        return Err(refused(
            "the table has an AGGREGATE KEY, whose columns say how rows are merged: leave the clause out",
        ));
    }
    let has = |names: &[String], name: &str| names.iter().any(|one| one.eq_ignore_ascii_case(name));
    let all: Vec<String> = def.schema.visible().map(|column| column.name.clone()).collect();
    let inserted = named.unwrap_or(&all);
    if let Some(unknown) = updated.iter().find(|name| !has(inserted, name)) {
        return Err(refused(&format!(
            "column '{unknown}' has no new value: name it among the inserted columns"
        )));
    }
    // A row whose key the server gives is none that exists.
    let is_given = |column: &ColumnDef| column.is_key && column.auto_increment.is_some();
    if def.schema.visible().any(|column| is_given(column) && !has(inserted, &column.name)) {
        return Ok(Upsert::Whole);
    }
    let (mut lacks_columns, mut keeps_columns) = (false, false);
    for column in def.schema.visible() {
        let (is_inserted, is_updated) = (has(inserted, &column.name), has(updated, &column.name));
        match (column.is_key, is_inserted) {
            (true, false) => {
                return Err(refused(&format!(
                    "column '{}' is of the key, which alone says whether a row exists: insert it, too",
                    column.name
                )));
            }
            (false, true) if !is_updated => keeps_columns = true,
            (false, false) if column.generated.is_none() => lacks_columns = true,
            _ => {}
        }
    }
    if keeps_columns {
        return check_updating(def, |column| has(updated, &column.name)).map(|()| Upsert::Updating);
    }
    if !lacks_columns {
        return Ok(Upsert::Whole);
    }
    if !partial_update::is_possible(def) {
        return Err(refused(
            "the table has no merge-on-write, so that a row can't be changed in part: insert all columns",
        ));
    }
    Ok(Upsert::Partial)
}

/// Refuses tables in which the other columns of a row do not stay if some are updated.
fn check_updating(def: &TableDef, is_updated: impl Fn(&ColumnDef) -> bool) -> Result<(), SqlError> {
    if def.schema.sequence.is_some() {
        return Err(refused(
            "the table has a sequence, which says which row of a key stays: update all columns",
        ));
    }
    let columns = || def.schema.visible().filter(|column| !column.is_key && !is_updated(column));
    let is_source = |column: &ColumnDef| !def.schema.computed_from(column.id).is_empty();
    if let Some(column) = columns().find(|column| is_source(column)) {
        return Err(refused(&format!(
            "generated columns are computed from column '{}': update it, too",
            column.name
        )));
    }
    if let Some(column) = columns().find(|column| column.on_update) {
        return Err(refused(&format!(
            "column '{}' has the time of each update: update it, or do not insert it",
            column.name
        )));
    }
    Ok(())
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, format!("ON DUPLICATE KEY UPDATE is not possible here: {text}"))
}

//! Tables, schemas, views, accounts and roles as text: their stored form.
//!
//! Each is a JSON object with the number of its format. Two rules keep everything that was ever written readable. An added field
//! has a default and leaves the format unchanged. Anything else (a field that changes its name or meaning, a new case that an
//! earlier program would misread) raises [`FORMAT`], gets a step in [`upgraded`] and a golden file; a program refuses formats
//! above its own by their number.

#[cfg(test)]
mod tests;

use crate::users::{Account, Role};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};
use tributary_types::{TableDef, TableRole, TableSchema, ViewDef};

/// The format that is written.
///
/// | format | news |
/// | --- | --- |
/// | 1 | has no number; a table says `has_key_clause` |
/// | 2 | a table says `keys` instead, and `partitioning` |
const FORMAT: u64 = 2;

/// The text of a table.
pub(crate) fn of_table(def: &TableDef) -> serde_json::Result<String> {
    written(def)
}

/// The text of a schema.
pub(crate) fn of_schema(schema: &TableSchema) -> serde_json::Result<String> {
    written(schema)
}

/// The text of a view.
pub(crate) fn of_view(def: &ViewDef) -> serde_json::Result<String> {
    written(def)
}

/// The text of a user's account.
pub(crate) fn of_account(account: &Account) -> serde_json::Result<String> {
    written(account)
}

/// The text of a role.
pub(crate) fn of_role(role: &Role) -> serde_json::Result<String> {
    written(role)
}

/// Reads a user's account.
pub(crate) fn account(text: &str) -> serde_json::Result<Account> {
    read(text)
}

/// Reads a role.
pub(crate) fn role(text: &str) -> serde_json::Result<Role> {
    read(text)
}

/// Reads a view.
pub(crate) fn view(text: &str) -> serde_json::Result<ViewDef> {
    read(text)
}

/// Reads a table of this or any earlier format. In one that was written before tables had roles, the name implies the role.
pub(crate) fn table(text: &str) -> serde_json::Result<TableDef> {
    let mut def: TableDef = read(text)?;
    if def.role.is_own() {
        def.role = TableRole::of_name(&def.name);
    }
    Ok(def)
}

/// Reads a schema of this or any earlier format.
pub(crate) fn schema(text: &str) -> serde_json::Result<TableSchema> {
    read(text)
}

fn written<T: Serialize>(value: &T) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Written<'v, T> {
        format: u64,
        #[serde(flatten)]
        value: &'v T,
    }
    serde_json::to_string(&Written { format: FORMAT, value })
}

fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut fields: Map<String, Value> = serde_json::from_str(text)?;
    let format = match fields.remove("format") {
        None => 1,
        Some(format) => serde_json::from_value(format)?,
    };
    if format > FORMAT {
        return Err(Error::custom(format_args!(
            "it has format {format}, but this program knows formats up to {FORMAT}: use the newer program that wrote it"
        )));
    }
    serde_json::from_value(Value::Object(upgraded(fields, format)))
}

/// Brings the fields from an earlier format to [`FORMAT`].
fn upgraded(mut fields: Map<String, Value>, format: u64) -> Map<String, Value> {
    if format < 2
        && let Some(declared) = fields.remove("has_key_clause")
    {
        fields.insert("keys".to_owned(), serde_json::json!({ "Duplicate": { "declared": declared } }));
    }
    fields
}

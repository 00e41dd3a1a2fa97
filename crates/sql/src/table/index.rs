//! Indexes of a definition: what Doris lets a table declare, and how it is printed.
//!
//! They only promise speed, so they are checked and stored, and do nothing.

use super::show_create::{escaped, quoted};
use super::{find, refused};
use crate::ast::IndexSpec;
use crate::names;
use tributary_types::{ColumnDef, DataType, IndexDef, IndexKind, KeyModel, SqlError, TableDef, TableSchema};

/// Properties of an inverted index.
const OF_INVERTED: [&str; 15] = [
    "parser",
    "parser_mode",
    "support_phrase",
    "char_filter_type",
    "char_filter_pattern",
    "char_filter_replacement",
    "ignore_above",
    "lower_case",
    "stopwords",
    "dict_compression",
    "built_in_analyzer",
    "analyzer",
    "normalizer",
    "field_pattern",
    "match_type",
];
/// Properties of an n-gram index, all required.
const OF_NGRAM_BF: [&str; 2] = ["gram_size", "bf_size"];

/// The indexes of a new table.
pub(super) fn of_create(
    written: &[IndexSpec],
    keys: KeyModel,
    columns: &[ColumnDef],
) -> Result<Vec<IndexDef>, SqlError> {
    let mut indexes = Vec::with_capacity(written.len());
    for spec in written {
        let index = new(spec, keys, columns, &indexes)?;
        indexes.extend(index);
    }
    Ok(indexes)
}

/// `ADD INDEX`.
pub(super) fn add(def: &mut TableDef, spec: &IndexSpec) -> Result<(), SqlError> {
    if spec.if_not_exists && is_there(&def.indexes, &spec.name) {
        return Ok(());
    }
    let index = new(spec, def.keys, &def.schema.columns, &def.indexes)?;
    def.indexes.extend(index);
    Ok(())
}

/// `DROP INDEX`.
pub(super) fn drop(def: &mut TableDef, name: &str, if_exists: bool) -> Result<(), SqlError> {
    if !if_exists && !is_there(&def.indexes, name) {
        return Err(refused(format!("index {name} does not exist")));
    }
    def.indexes.retain(|index| !index.name.eq_ignore_ascii_case(name));
    Ok(())
}

/// `RENAME INDEX`, if there is one of that name.
pub(super) fn rename(def: &mut TableDef, from: &str, to: &str) -> Result<(), SqlError> {
    names::check_column(to)?;
    let Some(place) = def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(from)) else {
        return Ok(());
    };
    if !from.eq_ignore_ascii_case(to) && is_there(&def.indexes, to) {
        return Err(refused(format!("index `{to}` already exist.")));
    }
    to.clone_into(&mut def.indexes[place].name);
    Ok(())
}

/// The line of SHOW CREATE TABLE as MySQL's clients read it.
pub(super) fn line_of_mysql(index: &IndexDef, schema: &TableSchema) -> String {
    let is_plain =
        index.kind == IndexKind::Inverted && index.properties.is_empty() && index.comment.is_empty();
    let line = line(index, schema);
    match line.strip_prefix("  INDEX ").and_then(|rest| rest.strip_suffix(" USING INVERTED")) {
        Some(rest) if is_plain => format!("  KEY {rest}"),
        _ => line,
    }
}

/// The line of SHOW CREATE TABLE.
pub(super) fn line(index: &IndexDef, schema: &TableSchema) -> String {
    let is_of = |column: &&ColumnDef| index.columns.contains(&column.id);
    // In the order of the index.
    let mut columns: Vec<&ColumnDef> = schema.columns.iter().filter(is_of).collect();
    columns.sort_by_key(|column| index.columns.iter().position(|id| *id == column.id));
    let columns: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut line =
        format!("  INDEX {} ({}) USING {}", quoted(&index.name), columns.join(", "), index.kind.name());
    if !index.properties.is_empty() {
        line.push_str(&format!(" PROPERTIES({})", properties(&index.properties)));
    }
    if !index.comment.is_empty() {
        line.push_str(&format!(" COMMENT '{}'", escaped(&index.comment, '\'')));
    }
    line
}

/// `"key" = "value", …`, as SHOW INDEX has them, too.
#[must_use]
pub fn properties(of: &[(String, String)]) -> String {
    let pair =
        |(key, value): &(String, String)| format!("\"{}\" = \"{}\"", escaped(key, '"'), escaped(value, '"'));
    of.iter().map(pair).collect::<Vec<_>>().join(", ")
}

fn is_there(indexes: &[IndexDef], name: &str) -> bool {
    indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
}

/// A new index beside others; `None`: it is left out.
fn new(
    spec: &IndexSpec,
    keys: KeyModel,
    columns: &[ColumnDef],
    others: &[IndexDef],
) -> Result<Option<IndexDef>, SqlError> {
    let index = definition(spec, keys, columns).and_then(|index| {
        check_new(&index, others)?;
        Ok(index)
    });
    // MySQL refuses these, too.
    let is_wrong =
        is_there(others, &spec.name) || spec.columns.iter().any(|name| find(columns, name).is_none());
    match index {
        Err(_) if spec.may_be_left_out && !is_wrong => Ok(None),
        index => index.map(Some),
    }
}

fn definition(spec: &IndexSpec, keys: KeyModel, columns: &[ColumnDef]) -> Result<IndexDef, SqlError> {
    names::check_column(&spec.name)?;
    let kind = spec.kind;
    if spec.columns.len() != 1 {
        return Err(refused(format!("{} index can only apply to a single column.", kind.name())));
    }
    let mut ids = Vec::with_capacity(spec.columns.len());
    for name in &spec.columns {
        let Some(column) = find(columns, name) else {
            return Err(refused(format!(
                "{} column does not exist in table. invalid column: {name}",
                kind.name()
            )));
        };
        check_column(kind, keys, column)?;
        ids.push(column.id);
    }
    check_properties(spec)?;
    Ok(IndexDef {
        name: spec.name.clone(),
        columns: ids,
        kind,
        properties: spec.properties.clone(),
        comment: spec.comment.clone(),
    })
}

fn check_column(kind: IndexKind, keys: KeyModel, column: &ColumnDef) -> Result<(), SqlError> {
    let data_type = column.data_type;
    let is_text = matches!(data_type, DataType::Char { .. } | DataType::Varchar { .. } | DataType::String);
    let is_opaque = data_type.is_state() || data_type.is_bytes();
    let fits = match kind {
        IndexKind::NgramBf => is_text,
        // Among nested types, Doris allows one on an ARRAY of texts and the like, to search for elements.
        IndexKind::Inverted => data_type != DataType::Json && data_type.depth() < 2 && !is_opaque,
        IndexKind::Bitmap => {
            let has_parts = matches!(data_type, DataType::Json | DataType::Variant) || data_type.is_nested();
            !has_parts && !is_opaque
        }
    };
    if !fits {
        return Err(refused(format!(
            "{} is not supported in {} index. invalid column: {}",
            data_type.base_name(),
            kind.name(),
            column.name
        )));
    }
    if keys.is_aggregate() && !column.is_key {
        return Err(refused(format!(
            "{} index only used in columns of DUP_KEYS table or UNIQUE_KEYS table with merge_on_write enabled or key \
             columns of all kinds of tables. invalid column: {}",
            kind.name(),
            column.name
        )));
    }
    Ok(())
}

fn check_properties(spec: &IndexSpec) -> Result<(), SqlError> {
    let known: &[&str] = match spec.kind {
        IndexKind::Inverted => &OF_INVERTED,
        IndexKind::NgramBf => &OF_NGRAM_BF,
        IndexKind::Bitmap => &[],
    };
    if let Some((key, _)) = spec.properties.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        return Err(refused(format!(
            "Invalid {} index property: '{key}' of index {}; there is {}",
            spec.kind.name(),
            spec.name,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )));
    }
    if spec.kind != IndexKind::NgramBf {
        return Ok(());
    }
    for name in OF_NGRAM_BF {
        let value = spec.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if value.and_then(|value| value.parse::<u32>().ok()).is_none_or(|value| value == 0) {
            return Err(refused(format!(
                "NGRAM_BF index {} needs the property {name}, a whole number above 0, not '{}'",
                spec.name,
                value.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn check_new(index: &IndexDef, others: &[IndexDef]) -> Result<(), SqlError> {
    if is_there(others, &index.name) {
        return Err(refused(format!("index `{}` already exist.", index.name)));
    }
    if others.iter().any(|other| other.kind == index.kind && other.columns == index.columns) {
        return Err(refused(format!(
            "{} index for columns of index `{}` already exist.",
            index.kind.name(),
            index.name
        )));
    }
    Ok(())
}

//! `SHOW CREATE TABLE` and `SHOW CREATE DATABASE`.

use super::properties::{self, KEPT};
use std::fmt::Write;
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{ColumnDef, DefaultValue, GroupCommitMode, RejectPolicy, TableDef};

/// The statement that creates such a table, in Doris's layout (clients parse the column lines by their two blanks).
#[must_use]
pub fn show_create_table(def: &TableDef) -> String {
    let mut items: Vec<String> = def.schema.visible().map(column).collect();
    items.extend(def.indexes.iter().map(|index| super::index::line(index, &def.schema)));
    let mut text = format!("CREATE TABLE {} (\n{}\n) ENGINE=OLAP\n", quoted(&def.name), items.join(",\n"));
    let keys: Vec<&str> =
        def.schema.columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str()).collect();
    if !keys.is_empty() {
        push_line(&mut text, &format!("{}({})", def.keys.clause(), name_list(&keys)));
    }
    if !def.comment.is_empty() {
        push_line(&mut text, &format!("COMMENT '{}'", escaped(&def.comment, '\'')));
    }
    if let Some(partitions) = def.partitioning.partitions() {
        push_line(&mut text, &partitions.clause(&def.schema));
    }
    push_line(&mut text, &distribution(&def.distribution));
    if let Some(rollups) = super::rollup::clause(def) {
        push_line(&mut text, &rollups);
    }
    text.push_str("PROPERTIES (\n");
    text.push_str(&property_lines(def).join(",\n"));
    text.push_str("\n);");
    text
}

/// [`show_create_table`] with the key among the columns and all options on one line, as MySQL's clients read it. A compatible parse
/// reads it back.
#[must_use]
pub fn show_create_table_of_mysql(def: &TableDef) -> String {
    let mut items: Vec<String> = def.schema.visible().map(column_of_mysql).collect();
    let keys: Vec<&ColumnDef> = def.schema.columns.iter().filter(|column| column.is_key).collect();
    // A primary key has no NULL.
    let is_primary = def.keys.is_unique() && keys.iter().all(|column| !column.nullable);
    let keys: Vec<&str> = keys.into_iter().map(|column| column.name.as_str()).collect();
    if is_primary {
        items.push(format!("  PRIMARY KEY ({})", name_list(&keys)));
    }
    items.extend(def.indexes.iter().map(|index| super::index::line_of_mysql(index, &def.schema)));
    let mut options = vec!["ENGINE=OLAP".to_owned()];
    if !is_primary && !keys.is_empty() {
        options.push(format!("{}({})", def.keys.clause(), name_list(&keys)));
    }
    if !def.comment.is_empty() {
        options.push(format!("COMMENT='{}'", escaped(&def.comment, '\'')));
    }
    options.extend(def.partitioning.partitions().map(|partitions| partitions.clause(&def.schema)));
    options.push(distribution(&def.distribution));
    options.extend(super::rollup::clause(def));
    options.push(format!("PROPERTIES ({})", property_lines(def).join(", ")));
    format!("CREATE TABLE {} (\n{}\n) {}", quoted(&def.name), items.join(",\n"), options.join(" "))
}

/// A column with its default in single quotes, and AUTO_INCREMENT without the number that it begins with.
fn column_of_mysql(column: &ColumnDef) -> String {
    let nullable = if column.nullable { "" } else { " NOT NULL" };
    let has_parts_of_doris = column.aggregation.is_some()
        || column.generated.is_some()
        || column.data_type.is_state()
        || column.on_update
        || column.auto_increment.is_some_and(|start| start != 1);
    if has_parts_of_doris {
        return self::column(column);
    }
    let increment = if column.auto_increment.is_some() { " AUTO_INCREMENT" } else { "" };
    let default = match &column.default {
        None => String::new(),
        Some(DefaultValue::Literal(text)) => format!(" DEFAULT '{}'", escaped(text, '\'')),
        Some(other) => format!(" DEFAULT {}", default_value(other)),
    };
    let comment = match column.comment.as_str() {
        "" => String::new(),
        comment => format!(" COMMENT '{}'", escaped(comment, '\'')),
    };
    let data_type = column.data_type.blob_name().map_or_else(|| column.data_type.to_string(), str::to_owned);
    format!("  {} {data_type}{nullable}{increment}{default}{comment}", quoted(&column.name))
}

/// The statement that creates such a database.
#[must_use]
pub fn show_create_database(name: &str) -> String {
    format!("CREATE DATABASE {}", quoted(name))
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn column(column: &ColumnDef) -> String {
    let nullable = if column.nullable { "NULL" } else { "NOT NULL" };
    let aggregation = column.aggregation.map(|aggregation| format!(" {}", aggregation.name()));
    let (name, data_type) = (quoted(&column.name), column.data_type);
    let generated = column.generated.as_ref().map(|generated| {
        // A comment in it ends with the line.
        let has_comment = generated.expr.contains("--") || generated.expr.contains('#');
        format!(" AS ({}{})", generated.expr, if has_comment { "\n" } else { "" })
    });
    let (aggregation, generated) = (aggregation.unwrap_or_default(), generated.unwrap_or_default());
    let mut line = format!("  {name} {data_type}{aggregation}{generated} {nullable}");
    if let Some(start) = column.auto_increment {
        // Writing to a String cannot fail.
        let _ = write!(line, " AUTO_INCREMENT({start})");
    }
    if let Some(default) = &column.default {
        line.push_str(" DEFAULT ");
        match default {
            // The only one that it may have.
            DefaultValue::Literal(name) if column.data_type.is_state() => line.push_str(name),
            other => line.push_str(&default_value(other)),
        }
        if column.on_update {
            line.push_str(" ON UPDATE ");
            line.push_str(&default_value(default));
        }
    }
    if !column.comment.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(line, " COMMENT '{}'", escaped(&column.comment, '\''));
    }
    line
}

fn default_value(default: &DefaultValue) -> String {
    match default {
        DefaultValue::Null => "NULL".to_owned(),
        DefaultValue::Literal(text) => format!("\"{}\"", escaped(text, '"')),
        DefaultValue::CurrentTimestamp { scale: 0 } => "CURRENT_TIMESTAMP".to_owned(),
        DefaultValue::CurrentTimestamp { scale } => format!("CURRENT_TIMESTAMP({scale})"),
        DefaultValue::CurrentDate => "CURRENT_DATE".to_owned(),
    }
}

fn distribution(distribution: &Distribution) -> String {
    let (how, buckets) = match distribution {
        Distribution::Hash { columns, buckets } => {
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            (format!("HASH({})", name_list(&names)), buckets)
        }
        Distribution::Random { buckets } => ("RANDOM".to_owned(), buckets),
    };
    match buckets {
        Buckets::Count(count) => format!("DISTRIBUTED BY {how} BUCKETS {count}"),
        Buckets::Auto => format!("DISTRIBUTED BY {how} BUCKETS AUTO"),
    }
}

/// Doris's order: first the given properties, then those of Group Commit.
fn property_lines(def: &TableDef) -> Vec<String> {
    let own = &def.properties;
    let line = |key: &str, value: &str| format!("\"{}\" = \"{}\"", escaped(key, '"'), escaped(value, '"'));
    let shown = KEPT.iter().filter(|key| **key != properties::COLUMNS_MOVED);
    let known = shown.filter_map(|key| own.others.get(*key).map(|value| line(key, value)));
    let rest = own
        .others
        .iter()
        .filter(|(key, _)| !KEPT.contains(&key.as_str()))
        .map(|(key, value)| line(key, value));
    let mut lines: Vec<String> = known.chain(rest).collect();
    lines.push(line(properties::LIGHT_SCHEMA_CHANGE, if own.light_schema_change { "true" } else { "false" }));
    lines.push(line(properties::GROUP_COMMIT_INTERVAL_MS, &own.group_commit_interval_ms.to_string()));
    lines.push(line(properties::GROUP_COMMIT_DATA_BYTES, &own.group_commit_data_bytes.to_string()));
    if own.group_commit_mode != GroupCommitMode::Off {
        lines.push(line(properties::GROUP_COMMIT_MODE, own.group_commit_mode.as_str()));
    }
    for (key, limit) in [
        (properties::MAX_CONCURRENT_LOADS, own.max_concurrent_loads),
        (properties::MAX_LOAD_ROWS_PER_SECOND, own.max_load_rows_per_second),
        (properties::MAX_LOAD_BYTES_PER_SECOND, own.max_load_bytes_per_second),
    ] {
        lines.extend(limit.map(|limit| line(key, &limit.to_string())));
    }
    if own.rejected_rows != RejectPolicy::Fail {
        lines.push(line(properties::REJECTED_ROWS, own.rejected_rows.as_str()));
    }
    lines
}

fn name_list(names: &[&str]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The text between such quotes.
pub(crate) fn escaped(text: &str, quote: char) -> String {
    let mut escaped = String::with_capacity(text.len());
    for ch in text.chars() {
        if ch == quote || ch == '\\' {
            escaped.push('\\');
        }
        escaped.push(ch);
    }
    escaped
}

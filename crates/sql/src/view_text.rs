//! The text of a view's query, as stored and shown.
//!
//! Invariant: a stored text means the same in every session, because it names each table with its database.

use crate::ast::SelectQuery;
use crate::file_calls::FileFunction;
use crate::visit::walk_query;
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, TableFactor, Value, ValueWithSpan, Visitor,
};
use sqlparser::tokenizer::Location;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use tributary_types::{ErrorCode, SqlError, ViewDef};

/// The query's text with `db` before each table that is named without one. `query` is a text of its own.
///
/// # Errors
/// [`ErrorCode::ViewVariable`] for parameters and session variables, [`ErrorCode::NotSupported`] for table functions, and
/// [`ErrorCode::NoDbSelected`] if a name needs a database and none is selected.
pub fn with_databases(query: &SelectQuery, db: Option<&str>) -> Result<String, SqlError> {
    let mut find = FindTables::default();
    if let ControlFlow::Break(error) = walk_query(&query.ast, &mut find) {
        return Err(error);
    }
    if find.bare.is_empty() {
        return Ok(query.text.clone());
    }
    let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
    let mut offsets: Vec<usize> =
        find.bare.into_iter().map(|place| crate::cursor::offset_of(&query.text, place)).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut text = query.text.clone();
    for offset in offsets.into_iter().rev() {
        text.insert_str(offset, &format!("`{db}`."));
    }
    Ok(text)
}

/// Finds tables that are named without a database.
#[derive(Default)]
struct FindTables {
    ctes: HashSet<String>,
    bare: Vec<Location>,
}

/// Whether a table function has rows that come neither from tables nor from its arguments.
fn reads_more_than_tables(name: &ObjectName) -> bool {
    let name = name.0.last().and_then(ObjectNamePart::as_ident).map_or("", |name| &name.value);
    let others = ["http_stream", "backends", "frontends", "jobs", "tasks"];
    !matches!(FileFunction::named(name), Ok(None))
        || others.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn variable() -> ControlFlow<SqlError> {
    ControlFlow::Break(SqlError::new(
        ErrorCode::ViewVariable,
        "View's SELECT contains a variable or parameter",
    ))
}

impl Visitor for FindTables {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.ctes.extend(ctes.map(|cte| cte.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        match factor {
            TableFactor::Table { args: Some(_), name, .. } | TableFactor::Function { name, .. } => {
                if !reads_more_than_tables(name) {
                    return ControlFlow::Continue(());
                }
                let text = format!("a view can't read the table function {name}: load its rows into a table");
                ControlFlow::Break(SqlError::detail(ErrorCode::NotSupported, text))
            }
            TableFactor::Table { name, .. } => {
                if let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
                    && !self.ctes.contains(&table.value)
                    && !table.value.eq_ignore_ascii_case("dual")
                {
                    self.bare.push(table.span.start);
                }
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        let first: Option<&Ident> = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.first(),
            _ => None,
        };
        let is_variable = |name: &&Ident| name.quote_style.is_none() && name.value.starts_with('@');
        if first.filter(is_variable).is_some_and(|name| !name.value.starts_with("@@")) {
            return variable();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<SqlError> {
        match value.value {
            Value::Placeholder(_) => variable(),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The statement that creates such a view.
#[must_use]
pub fn show_create_view(view: &ViewDef) -> String {
    use crate::table::{escaped, quoted};
    let mut text = format!("CREATE VIEW {}", quoted(&view.name));
    // Writing to a String cannot fail.
    let comment = |comment: &str| match comment {
        "" => String::new(),
        comment => format!(" COMMENT '{}'", escaped(comment, '\'')),
    };
    if view.names_columns {
        let columns = view.columns.iter().map(|column| quoted(&column.name) + &comment(&column.comment));
        let _ = write!(text, " ({})", columns.collect::<Vec<_>>().join(", "));
    }
    text.push_str(&comment(&view.comment));
    let _ = write!(text, " AS {}", view.query);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    fn full(text: &str) -> Result<String, SqlError> {
        with_databases(&parse_query(text).expect(text), Some("d"))
    }

    #[test]
    fn tables_get_their_database_and_nothing_else_changes() {
        for (text, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT t.a FROM t", "SELECT t.a FROM `d`.t"),
            (
                "select * from  `t`  x, e.u\n join é on true",
                "select * from  `d`.`t`  x, e.u\n join `d`.é on true",
            ),
            (
                "SELECT 'é', 1 FROM t WHERE a IN (SELECT b FROM u)",
                "SELECT 'é', 1 FROM `d`.t WHERE a IN (SELECT b FROM `d`.u)",
            ),
            (
                "WITH w AS (SELECT * FROM t) SELECT * FROM w, internal.e.u",
                "WITH w AS (SELECT * FROM `d`.t) SELECT * FROM w, internal.e.u",
            ),
            ("SELECT 1 FROM dual", "SELECT 1 FROM dual"),
            (
                "SELECT /* t */ a FROM (SELECT * FROM t) t -- t",
                "SELECT /* t */ a FROM (SELECT * FROM `d`.t) t -- t",
            ),
        ] {
            let found = full(text).expect(text);
            assert_eq!(found, expected);
            let again = with_databases(&parse_query(&found).expect(text), Some("other")).expect(text);
            assert_eq!(again, expected, "it is full already");
        }
    }

    #[test]
    fn what_only_a_session_or_a_statement_has_is_refused() {
        for text in ["SELECT @x", "SELECT * FROM t WHERE a = ?", "SELECT 1 LIMIT ?"] {
            assert_eq!(full(text).unwrap_err().code.number(), 1351, "{text}");
        }
        full("SELECT @@version").expect("a variable of the server");
        let error = full("SELECT * FROM local('file_path' = 'x')").unwrap_err();
        assert!(error.detail_text().starts_with("a view can't read the table function local"), "{error}");
        assert!(full("SELECT * FROM backends()").is_err());
        let text = "SELECT c FROM `d`.t LATERAL VIEW explode(a) x AS c, numbers(\"number\" = \"3\") n";
        assert_eq!(full(&text.replace("`d`.", "")).expect("it has rows of its arguments"), text);
        let query = parse_query("SELECT * FROM t").expect("a query");
        assert_eq!(with_databases(&query, None).unwrap_err().code.number(), 1046);
    }
}

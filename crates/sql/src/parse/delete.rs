//! `DELETE`.
//!
//! The rows to delete become a query over a table function, so that conditions are what they are elsewhere.

use crate::ast::{Delete, FILE_COLUMN, ROW_COLUMN, ROWS_FUNCTION, SelectQuery, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{insert, parse_query, unsupported};
use sqlparser::ast::{Expr, Ident, ObjectName, SetExpr, TableFactor, TableWithJoins};

pub(crate) fn delete(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("DELETE")?;
    if let Some(word) = cursor.eat_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
        return Err(unsupported::refuse(&format!("DELETE {word}"), "use DELETE FROM"));
    }
    if !cursor.eat("FROM") {
        let remedy = "use DELETE FROM t USING other_table WHERE …";
        return Err(unsupported::refuse("DELETE of tables named before FROM", remedy));
    }
    let table = cursor.name()?;
    let is_named = cursor.eat("AS");
    let alias =
        match cursor.is_any(&["PARTITION", "PARTITIONS", "TEMPORARY", "USING", "WHERE", "ORDER", "LIMIT"]) {
            false if is_named || cursor.word().is_some() => cursor.identifier("an alias")?,
            _ if is_named => return Err(cursor.expected("an alias")),
            _ => table.table.clone(),
        };
    let partitions = insert::partitions(cursor)?;
    let using = if cursor.eat("USING") { cursor.relations()? } else { Vec::new() };
    let condition = if cursor.eat("WHERE") { Some(cursor.expr()?) } else { None };
    if let Some(word) = cursor.eat_any(&["ORDER", "LIMIT"]) {
        let remedy = "name the rows in WHERE, for instance by a subquery";
        return Err(unsupported::refuse(&format!("DELETE with {word}"), remedy));
    }
    let text = condition.as_ref().map(ToString::to_string);
    let rows = rows_of(&alias, using, condition)?;
    Ok(Statement::Delete(Box::new(Delete { table, partitions, condition: text, rows })))
}

/// `SELECT file, row FROM rows() AS alias, using… WHERE condition`.
fn rows_of(alias: &str, using: Vec<TableWithJoins>, condition: Option<Expr>) -> Parsed<SelectQuery> {
    let template = format!("SELECT `{FILE_COLUMN}`, `{ROW_COLUMN}` FROM rows() AS t");
    let SelectQuery { mut ast, .. } = parse_query(&template)?;
    if let SetExpr::Select(select) = ast.body.as_mut() {
        if let Some(TableFactor::Table { name, alias: Some(named), .. }) =
            select.from.first_mut().map(|table| &mut table.relation)
        {
            // With a name that no text can have.
            *name = ObjectName::from(vec![Ident::new(ROWS_FUNCTION)]);
            named.name = Ident::with_quote('`', alias);
        }
        select.from.extend(using);
        select.selection = condition;
    }
    Ok(SelectQuery { ast, text: String::new() })
}

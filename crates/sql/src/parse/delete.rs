//! `DELETE`.
//!
//! The rows to delete become a query, so that conditions have the same meaning as elsewhere.

use crate::ast::{Delete, Statement, TargetRows};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{parse_query, partition, unsupported};
use sqlparser::ast::{BinaryOperator, Expr, TableWithJoins, Value};
use sqlparser::tokenizer::Token;

pub(crate) fn delete(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("DELETE")?;
    // There are no locks of tables that others would be let through, and no indexes to merge.
    while cursor.eat_any(&["LOW_PRIORITY", "QUICK"]).is_some() {}
    if cursor.eat("IGNORE") {
        return Err(unsupported::refuse("DELETE IGNORE", "use DELETE FROM"));
    }
    let several = || {
        let remedy = "use DELETE FROM t USING other_table WHERE …";
        unsupported::refuse("DELETE of tables named before FROM", remedy)
    };
    // `DELETE a FROM t AS a WHERE …`, as Hibernate writes it.
    let target = if cursor.is("FROM") { None } else { Some(cursor.name()?) };
    if !cursor.eat("FROM") {
        return Err(several());
    }
    let table = cursor.name()?;
    let is_named = cursor.eat("AS");
    let alias =
        match cursor.is_any(&["PARTITION", "PARTITIONS", "TEMPORARY", "USING", "WHERE", "ORDER", "LIMIT"])
            || cursor.is_any(&JOINS)
        {
            false if is_named || cursor.word().is_some() => cursor.identifier("an alias")?,
            _ if is_named => return Err(cursor.expected("an alias")),
            _ => table.table.clone(),
        };
    let is_joined = *cursor.peek() == Token::Comma || cursor.is_any(&JOINS);
    if target.as_ref().map_or(is_joined, |target| target.table != alias) {
        return Err(several());
    }
    let (mut using, joined) = joined(cursor, "DELETE")?;
    let partitions = partition::names(cursor)?;
    if cursor.eat("USING") {
        using.extend(cursor.relations()?);
    }
    let condition = if cursor.eat("WHERE") { Some(cursor.expr()?) } else { None };
    let mut condition = both(joined, condition);
    if condition.is_none() && cursor.is_compatible() {
        condition = Some(Expr::value(Value::Boolean(true)));
    }
    order_of_all(cursor, "DELETE")?;
    let text = condition.as_ref().map(ToString::to_string);
    let rows = rows_of(&alias, using, condition)?;
    Ok(Statement::Delete(Box::new(Delete { table, partitions, condition: text, rows })))
}

/// Words that begin a join.
pub(super) const JOINS: [&str; 7] = ["JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"];

/// `, u`, `JOIN u ON …`: the relations behind the table whose rows change, and the conditions of the joins.
pub(super) fn joined(cursor: &mut Cursor<'_>, verb: &str) -> Parsed<(Vec<TableWithJoins>, Option<Expr>)> {
    let (mut relations, mut condition) = (Vec::new(), None);
    loop {
        if cursor.eat_token(&Token::Comma) {
            relations.extend(cursor.relations()?);
            continue;
        }
        let is_inner = cursor.eat_any(&["INNER", "CROSS"]).is_some();
        if !is_inner && !cursor.is("JOIN") {
            break;
        }
        cursor.expect("JOIN")?;
        relations.extend(cursor.relations()?);
        if cursor.is("USING") {
            return Err(unsupported::refuse(&format!("{verb} with JOIN … USING"), "use JOIN … ON"));
        }
        if cursor.eat("ON") {
            condition = both(condition, Some(cursor.expr()?));
        }
    }
    if cursor.is_any(&JOINS) {
        let remedy = "use an inner join, or a condition with EXISTS";
        return Err(unsupported::refuse(&format!("{verb} with an outer join of its table"), remedy));
    }
    Ok((relations, condition))
}

/// The condition that both hold.
pub(super) fn both(one: Option<Expr>, other: Option<Expr>) -> Option<Expr> {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Expr::BinaryOp { left: nested(one), op: BinaryOperator::And, right: nested(other) })
        }
        (one, other) => one.or(other),
    }
}

/// `ORDER BY`, which means nothing for all rows of a statement. With a LIMIT it would.
pub(super) fn order_of_all(cursor: &mut Cursor<'_>, verb: &str) -> Parsed<()> {
    if cursor.eat_all("ORDER BY") {
        cursor.list(|cursor| {
            cursor.expr()?;
            cursor.eat_any(&["ASC", "DESC"]);
            Ok(())
        })?;
    }
    if cursor.is("LIMIT") {
        let remedy = "name the rows in WHERE, for instance by a subquery";
        return Err(unsupported::refuse(&format!("{verb} with LIMIT"), remedy));
    }
    Ok(())
}

/// The rows of the table for which the condition is true, joined with others.
pub(super) fn rows_of(
    alias: &str,
    others: Vec<TableWithJoins>,
    condition: Option<Expr>,
) -> Parsed<TargetRows> {
    Ok(TargetRows::new(parse_query("SELECT 1 FROM f() AS t")?, alias, others, condition))
}

//! Deletions in tables with AGGREGATE KEY: conditions on key columns only, in the forms that Doris accepts. The texts are
//! Doris's.

use super::refused;
use crate::ast::Delete;
use crate::visit::walk_expr;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, Visitor};
use std::ops::ControlFlow;
use tributary_types::{ErrorCode, SqlError, TableDef};

/// Values that IN may have, as in Doris (`max_allowed_in_element_num_of_delete`).
const IN_MAX: usize = 1024;

/// Checks that the rows which a statement deletes from a table with AGGREGATE KEY are named by their keys.
///
/// # Errors
/// Another condition, or none.
pub fn check_deletion_by_keys(def: &TableDef, delete: &Delete) -> Result<(), SqlError> {
    if delete.rows.has_others() {
        return Err(refused(format!(
            "DELETE with USING is for tables with UNIQUE KEY or DUPLICATE KEY, but Table[{}] is an Aggregate table",
            def.name
        )));
    }
    let Some(condition) = delete.rows.condition() else {
        return Err(refused("delete command must contain filter; TRUNCATE TABLE removes all rows"));
    };
    Check { def, alias: &delete.rows.alias }.condition(condition)
}

struct Check<'a> {
    def: &'a TableDef,
    alias: &'a str,
}

impl Check<'_> {
    fn condition(&self, expr: &Expr) -> Result<(), SqlError> {
        // Not by recursion: chains of AND may be long.
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            match expr {
                Expr::Nested(inner) => open.push(inner),
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => open.extend([&**right, &**left]),
                // Such a condition is always false: nothing is deleted.
                Expr::Value(value) if matches!(value.value, Value::Boolean(false) | Value::Null) => {}
                other => self.simple(other)?,
            }
        }
        Ok(())
    }

    fn simple(&self, expr: &Expr) -> Result<(), SqlError> {
        match expr {
            Expr::Nested(inner) => self.simple(inner),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.simple(expr),
            Expr::BinaryOp { left, op, right } if compares(op) => {
                let Some(column) = self.column(left)? else {
                    return Err(refused(format!(
                        "Left expr of binary predicate should be column name, predicate: {expr}, left expr type:{}",
                        kind(left)
                    )));
                };
                if !is_value(right) {
                    return Err(refused(format!(
                        "Right expr of binary predicate should be value, predicate: {expr}, right expr type:{}",
                        kind(right)
                    )));
                }
                self.key(&column)
            }
            Expr::Between { expr: of, low, high, .. } => {
                let Some(column) = self.column(of)? else { return Err(self.neither(expr)) };
                match [low, high].into_iter().find(|bound| !is_value(bound)) {
                    Some(bound) => Err(refused(format!(
                        "Right expr of binary predicate should be value, predicate: {expr}, right expr type:{}",
                        kind(bound)
                    ))),
                    None => self.key(&column),
                }
            }
            Expr::IsNull(of) | Expr::IsNotNull(of) => match self.column(of)? {
                Some(column) => self.key(&column),
                None => Err(refused(format!(
                    "Child expr of is_null predicate should be column name, predicate: {expr}"
                ))),
            },
            Expr::InList { expr: of, list, .. } => {
                let Some(column) = self.column(of)? else { return Err(self.neither(expr)) };
                if list.len() > IN_MAX {
                    return Err(refused(format!(
                        "Element num of in predicate should not be more than {IN_MAX}"
                    )));
                }
                match list.iter().find(|value| !is_value(value)) {
                    Some(value) => {
                        Err(refused(format!("Child of in predicate should be value, but get {value}")))
                    }
                    None => self.key(&column),
                }
            }
            other => Err(self.neither(other)),
        }
    }

    fn neither(&self, expr: &Expr) -> SqlError {
        refused(format!(
            "Where clause only supports compound predicate, binary predicate, is_null predicate or in predicate. \
             But we meet {expr}"
        ))
    }

    /// The name of the table's column that the expression is. `None`: it is something else.
    fn column(&self, expr: &Expr) -> Result<Option<String>, SqlError> {
        let name = match expr {
            Expr::Nested(inner) => return self.column(inner),
            Expr::Identifier(name) => &name.value,
            Expr::CompoundIdentifier(parts) => {
                let (name, before) = parts.split_last().expect("a name has parts");
                let is_table = match before {
                    [table] => table.value == self.alias,
                    [db, table] => db.value == self.def.db && table.value == self.alias,
                    _ => false,
                };
                if !is_table {
                    return Err(unknown(&expr.to_string()));
                }
                &name.value
            }
            _ => return Ok(None),
        };
        Ok(Some(name.clone()))
    }

    fn key(&self, name: &str) -> Result<(), SqlError> {
        let Some(index) = self.def.schema.index_of(name) else { return Err(unknown(name)) };
        if self.def.schema.columns[index].is_key {
            return Ok(());
        }
        Err(refused(format!(
            "delete predicate on value column only supports Unique table with merge-on-write enabled and Duplicate table, \
             but Table[{}] is an Aggregate table.",
            self.def.name
        )))
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::detail(ErrorCode::UnknownColumn, format!("Unknown column '{name}' in 'where clause'"))
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::Spaceship)
}

/// Whether the expression has neither columns nor queries, so that it is a value before rows are read.
fn is_value(expr: &Expr) -> bool {
    struct Find;
    impl Visitor for Find {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_read = matches!(
                expr,
                Expr::Identifier(_)
                    | Expr::CompoundIdentifier(_)
                    | Expr::Subquery(_)
                    | Expr::Exists { .. }
                    | Expr::InSubquery { .. }
            );
            if is_read { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    walk_expr(expr, &mut Find).is_continue()
}

/// Doris's name for the kind of expression, if it has one.
fn kind(expr: &Expr) -> &'static str {
    match expr {
        Expr::Value(_) => "Literal",
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => "SlotReference",
        Expr::Cast { .. } => "Cast",
        Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => "Arithmetic",
        Expr::Function(_) => "Function",
        Expr::Subquery(_) => "ScalarSubquery",
        _ => "Expression",
    }
}

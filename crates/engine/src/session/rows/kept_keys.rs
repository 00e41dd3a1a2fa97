//! UPDATEs that assign to a key the value that it has: `SET id = 1, name = 'x' WHERE id = 1`, as Connector/J writes them for a result
//! that it can update. Such an assignment changes no key, and is left out.
//!
//! Not the business of this module: other assignments of keys, which are refused ([`crate::session::rows::change`]).

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value, ValueWithSpan};
use sqlparser::tokenizer::Location;
use std::borrow::Cow;
use tributary_query::ScalarValue;
use tributary_sql::{Assigned, Update, placeholders};
use tributary_types::{ColumnDef, PartitionNames, TableDef};

/// The statement without assignments of keys that its condition demands of the rows anyway, and the parameters that are left.
pub(super) fn without_kept_keys<'a>(
    def: &TableDef,
    update: &'a Update,
    params: &'a [ScalarValue],
) -> (Cow<'a, Update>, Cow<'a, [ScalarValue]>) {
    let known = Known::new(update, params);
    let kept: Vec<bool> =
        update.assignments.iter().map(|(name, value)| known.has(def, name, value)).collect();
    // A statement that assigns nothing else is refused like others that assign keys.
    if kept.iter().all(|is_kept| *is_kept) || !kept.contains(&true) {
        return (Cow::Borrowed(update), Cow::Borrowed(params));
    }
    let (mut left, mut given) = (update.clone(), params.to_vec());
    let mut gone: Vec<usize> = Vec::new();
    let mut is_kept = kept.into_iter();
    left.assignments.retain(|(_, value)| {
        let stays = !is_kept.next().unwrap_or(false);
        gone.extend(known.param(value).filter(|_| !stays));
        stays
    });
    gone.sort_unstable();
    for index in gone.into_iter().rev().filter(|index| *index < params.len()) {
        given.remove(index);
    }
    (Cow::Owned(left), Cow::Owned(given))
}

/// The terms of a condition that are `a = b` or `a <=> b`, which hold for each row.
struct Known<'a> {
    alias: &'a str,
    equal: Vec<(&'a Expr, &'a Expr)>,
    /// The places of all `?` of the statement, in the order of its text.
    places: Vec<Location>,
    params: &'a [ScalarValue],
}

impl<'a> Known<'a> {
    fn new(update: &'a Update, params: &'a [ScalarValue]) -> Self {
        let (mut equal, mut rest) = (Vec::new(), Vec::from_iter(update.rows.condition()));
        while let Some(term) = rest.pop() {
            match term {
                Expr::Nested(inner) => rest.push(inner),
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => rest.extend([&**left, &**right]),
                Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::Spaceship, right } => {
                    equal.push((&**left, &**right));
                }
                _ => {}
            }
        }
        let assigned = update.assignments.iter().filter_map(|(_, value)| match value {
            Assigned::Expr(expr) => Some(Expr::clone(expr)),
            Assigned::Default => None,
        });
        let places = match params {
            [] => Vec::new(),
            _ => {
                let relation = vec![Ident::new("t"), Ident::new("t")];
                placeholders(&update.rows.select(relation, &PartitionNames::Any, assigned).ast)
            }
        };
        Self { alias: &update.rows.alias, equal, places, params }
    }

    /// Whether the assignment is of a key that has this value in each row.
    fn has(&self, def: &TableDef, name: &[String], value: &Assigned) -> bool {
        let Some((column, before)) = name.split_last() else { return false };
        let is_own = before.last().is_none_or(|table| table == self.alias);
        let key = def.schema.index_of(column).map(|index| &def.schema.columns[index]);
        let (Some(key), Assigned::Expr(value)) = (key.filter(|key| key.is_key && is_own), value) else {
            return false;
        };
        let is_of = |one: &Expr, other: &Expr| self.is_column(key, one) && self.is_same(other, value);
        self.is_column(key, value)
            || self.equal.iter().any(|(left, right)| is_of(left, right) || is_of(right, left))
    }

    fn is_column(&self, column: &ColumnDef, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_column(column, inner),
            Expr::Identifier(name) => name.value.eq_ignore_ascii_case(&column.name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, name] => {
                    table.value == self.alias && name.value.eq_ignore_ascii_case(&column.name)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether both are the same literal, or parameters of one value.
    fn is_same(&self, one: &Expr, other: &Expr) -> bool {
        match (one, other) {
            (Expr::Nested(one), other) => self.is_same(one, other),
            (one, Expr::Nested(other)) => self.is_same(one, other),
            (Expr::UnaryOp { op: UnaryOperator::Minus, expr: one }, Expr::UnaryOp { op, expr: other }) => {
                *op == UnaryOperator::Minus && self.is_same(one, other)
            }
            (Expr::Value(one), Expr::Value(other)) => match (self.value(one), self.value(other)) {
                (Some(one), Some(other)) => one == other,
                (None, None) => one.value == other.value,
                _ => false,
            },
            _ => false,
        }
    }

    /// The value of a `?`.
    fn value(&self, value: &ValueWithSpan) -> Option<&ScalarValue> {
        self.params.get(self.place(value)?)
    }

    fn place(&self, value: &ValueWithSpan) -> Option<usize> {
        let is_param = matches!(value.value, Value::Placeholder(_));
        self.places.iter().position(|place| is_param && *place == value.span.start)
    }

    /// The parameter that an assignment is.
    fn param(&self, value: &Assigned) -> Option<usize> {
        let Assigned::Expr(expr) = value else { return None };
        let mut expr: &Expr = expr;
        while let Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } = expr {
            expr = inner;
        }
        match expr {
            Expr::Value(value) => self.place(value),
            _ => None,
        }
    }
}

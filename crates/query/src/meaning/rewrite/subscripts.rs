//! Subscripts and fields: `a[2]`, `a[from:length]`, `t.m['k']`, `s.f`.

use super::ast;
use sqlparser::ast::{AccessExpr, Expr, Ident, Subscript};
use tributary_types::{ErrorCode, SqlError};

/// Makes one name of a qualified column that has subscripts or fields behind it: the parser takes the `v` of `t.v[1]` for a
/// field of a column `t`. `is_relation` knows the tables that can be named here.
pub(super) fn qualify(expr: &mut Expr, is_relation: &dyn Fn(&str) -> bool) {
    if let Expr::CompoundIdentifier(names) = expr {
        // A field of a qualified column, without subscripts. `database.t.column` is none.
        if let [table, second, _, ..] = names.as_slice()
            && is_relation(&table.value)
            && !is_relation(&second.value)
        {
            let mut names = std::mem::take(names);
            let fields = names.split_off(2).into_iter();
            let access_chain = fields.map(|field| AccessExpr::Dot(Expr::Identifier(field))).collect();
            let root = Box::new(Expr::CompoundIdentifier(names));
            *expr = Expr::CompoundFieldAccess { root, access_chain };
        }
        return;
    }
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    let Expr::Identifier(first) = &**root else { return };
    let names = access_chain.iter().map_while(|access| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<Ident> = std::iter::once(first.clone()).chain(names).collect();
    // `t.column`, `database.t.column` or `internal.database.t.column`.
    let parts = match names.as_slice() {
        [table, _, ..] if is_relation(&table.value) => 2,
        [_, table, _, ..] if is_relation(&table.value) => 3,
        [catalog, _, table, _, ..]
            if catalog.value.eq_ignore_ascii_case("internal") && is_relation(&table.value) =>
        {
            4
        }
        _ => return,
    };
    access_chain.drain(..parts - 1);
    let column = Expr::CompoundIdentifier(names.into_iter().take(parts).collect());
    *expr = match access_chain.is_empty() {
        true => column,
        false => {
            Expr::CompoundFieldAccess { root: Box::new(column), access_chain: std::mem::take(access_chain) }
        }
    };
}

/// `a[2]` as it is, `a[from:length]` as Doris's `array_slice(a, from, length)`, `a[2].field` as `struct_element(a[2], 'field')`.
pub(super) fn written_out(root: Expr, chain: Vec<AccessExpr>) -> Result<Expr, SqlError> {
    let with = |root: Expr, access_chain: Vec<AccessExpr>| {
        if access_chain.is_empty() {
            root
        } else {
            Expr::CompoundFieldAccess { root: Box::new(root), access_chain }
        }
    };
    let (mut value, mut plain) = (root, Vec::new());
    for access in chain {
        match access {
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                let mut args = vec![with(value, std::mem::take(&mut plain))];
                args.push(lower_bound.unwrap_or_else(|| ast::number(1)));
                args.extend(upper_bound);
                value = ast::call("array_slice", args);
            }
            AccessExpr::Subscript(Subscript::Slice { .. }) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "a part of an array is a[from:length]",
                ));
            }
            AccessExpr::Dot(Expr::Identifier(field)) => {
                // Names of fields are in lower case.
                let of = with(value, std::mem::take(&mut plain));
                value = ast::call("get_field", vec![of, ast::text(field.value.to_lowercase())]);
            }
            other => plain.push(other),
        }
    }
    Ok(with(value, plain))
}

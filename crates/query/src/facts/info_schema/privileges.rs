//! The tables of `information_schema` that list rights, by the names that MySQL has for them.
//!
//! Source of the columns: MySQL's manual. Rights that MySQL lacks have Doris's names.

use super::catalog::CATALOG;
use crate::model::{Cell, Grid};
use crate::namespace::Namespace;
use tributary_types::privilege::{GrantScope, Right, Rights};

/// Adds the rows of the table called `name`.
pub(super) fn fill(name: &str, grid: &mut Grid, namespace: &dyn Namespace) {
    for (grantee, grants) in namespace.grants() {
        if name == "user_privileges" && grants.on(&GrantScope::Global).is_empty() {
            // As MySQL says that a user may connect.
            grid.push(vec![grantee.as_str().into(), CATALOG.into(), "USAGE".into(), "NO".into()]);
        }
        for (scope, rights) in grants.iter() {
            let of: Vec<&str> = match (name, scope) {
                ("user_privileges", GrantScope::Global) => Vec::new(),
                ("schema_privileges", GrantScope::Database(db)) => vec![db],
                ("table_privileges", GrantScope::Table { db, table }) => vec![db, table],
                ("column_privileges", GrantScope::Column { db, table, column }) => vec![db, table, column],
                _ => continue,
            };
            push(grid, &grantee, &of, rights);
        }
    }
}

/// A row for each right but GRANT, which makes the others grantable, unless it is the only one.
fn push(grid: &mut Grid, grantee: &str, of: &[&str], rights: Rights) {
    let is_grantable = if rights.has(Right::Grant) { "YES" } else { "NO" };
    let is_only = rights == Rights::of(&[Right::Grant]);
    for right in rights.iter().filter(|right| *right != Right::Grant || is_only) {
        let mut row: Vec<Cell> = vec![grantee.into(), CATALOG.into()];
        row.extend(of.iter().map(|part| Cell::from(*part)));
        row.extend([mysql_name(right).into(), is_grantable.into()]);
        grid.push(row);
    }
}

const fn mysql_name(right: Right) -> &'static str {
    match right {
        Right::Load => "INSERT",
        Right::ShowView => "SHOW VIEW",
        Right::Grant => "USAGE",
        other => other.name(),
    }
}

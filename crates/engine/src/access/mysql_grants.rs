//! Grants as MySQL prints them and its tools read them: a GRANT statement for each object.
//!
//! Not here: rights that MySQL does not have, as those on nodes and resources, which SHOW GRANTS of Doris lists.

use std::collections::BTreeMap;
use tributary_catalog::User;
use tributary_query::Grid;
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};

/// The rights of MySQL that a right here gives.
const WORDS: [(Right, &str); 6] = [
    (Right::Select, "SELECT"),
    (Right::Load, "INSERT, UPDATE, DELETE"),
    (Right::Create, "CREATE"),
    (Right::Drop, "DROP"),
    (Right::Alter, "ALTER"),
    (Right::ShowView, "SHOW VIEW"),
];

/// The statements that would give a user its rights. The first is of all objects, and of `USAGE` if it gives nothing.
pub(super) fn grid(user: &User, grants: &Grants) -> Grid {
    let to = format!("{}@{}", quoted(&user.name), quoted(&user.host));
    let global = grants.on(&GrantScope::Global);
    let mut statements = vec![statement(global, "*.*", &to)];
    let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (scope, rights) in grants.iter() {
        let on = match scope {
            GrantScope::Global | GrantScope::Resource(_) => continue,
            GrantScope::Database(db) => format!("{}.*", quoted(db)),
            GrantScope::Table { db, table } => format!("{}.{}", quoted(db), quoted(table)),
            GrantScope::Column { db, table, column } => {
                columns.entry(format!("{}.{}", quoted(db), quoted(table))).or_default().push(quoted(column));
                continue;
            }
        };
        statements.push(statement(rights, &on, &to));
    }
    let of_columns =
        |(on, names): (String, Vec<String>)| format!("GRANT SELECT ({}) ON {on} TO {to}", names.join(", "));
    statements.extend(columns.into_iter().map(of_columns));
    let title = format!("Grants for {}@{}", user.name, user.host);
    let mut grid = Grid::new(&[&title]);
    statements.into_iter().for_each(|statement| grid.push(vec![statement.into()]));
    grid
}

fn statement(rights: Rights, on: &str, to: &str) -> String {
    let is_all = rights.has(Right::Admin);
    let words: Vec<&str> =
        WORDS.iter().filter(|(right, _)| rights.has(*right)).map(|(_, words)| *words).collect();
    let words = match (is_all, words.is_empty()) {
        (true, _) => "ALL PRIVILEGES".to_owned(),
        (false, true) => "USAGE".to_owned(),
        (false, false) => words.join(", "),
    };
    let option = if is_all || rights.has(Right::Grant) { " WITH GRANT OPTION" } else { "" };
    format!("GRANT {words} ON {on} TO {to}{option}")
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

//! GRANT and REVOKE, and roles.
//!
//! Source of the grammar: Doris's manual. Its names of privileges (`SELECT_PRIV`) may be written without their suffix.

use crate::ast::{GrantStatement, RoleStatement, Statement, UserName};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{unsupported, user};
use sqlparser::tokenizer::Token;
use tributary_types::privilege::{GrantScope, Grantee, Grants, Right, Rights};
use tributary_types::{ErrorCode, SqlError};

/// Objects on which Doris grants, and Tributary has none of.
const OTHER_OBJECTS: [&str; 5] = ["WORKLOAD GROUP", "COMPUTE GROUP", "STORAGE VAULT", "CLUSTER", "STAGE"];
/// The resource that stands for all.
const ALL_RESOURCES: &str = "%";

/// After `CREATE ROLE`.
pub(crate) fn create_role(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = role_name(cursor)?;
    let comment = user::comment(cursor)?;
    Ok(Statement::Role(RoleStatement::Create { name, if_not_exists, comment }))
}

/// After `ALTER ROLE`.
pub(crate) fn alter_role(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let name = role_name(cursor)?;
    if !cursor.is("COMMENT") {
        return Err(cursor.expected("COMMENT"));
    }
    Ok(Statement::Role(RoleStatement::Alter { name, comment: user::comment(cursor)? }))
}

/// After `DROP ROLE`.
pub(crate) fn drop_role(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    Ok(Statement::Role(RoleStatement::Drop { name: role_name(cursor)?, if_exists }))
}

/// `r` or `'r'`.
pub(crate) fn role_name(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let name = cursor.identifier_or_string("a role name")?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !name.starts_with(|ch: char| ch.is_ascii_alphabetic()) || !name.bytes().all(legal) || name.len() > 64 {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("invalid role name: '{name}'. Role name regex is '^[a-zA-Z][a-zA-Z0-9.-_]{{0,63}}$'"),
        ));
    }
    Ok(name)
}

pub(crate) fn grant(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    Ok(Statement::Grant(Box::new(statement(cursor, "TO")?)))
}

pub(crate) fn revoke(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    Ok(Statement::Revoke(Box::new(statement(cursor, "FROM")?)))
}

fn statement(cursor: &mut Cursor<'_>, preposition: &str) -> Parsed<GrantStatement> {
    cursor.advance();
    let names = cursor.list(named)?;
    if cursor.eat("ON") {
        let scope = scope(cursor)?;
        let mut grants = Grants::default();
        add_rights(&mut grants, names, &scope)?;
        cursor.expect(preposition)?;
        return Ok(GrantStatement::Rights { scope, grants, grantee: grantee(cursor)? });
    }
    let roles = roles(names)?;
    cursor.expect(preposition)?;
    if cursor.is("ROLE") {
        return Err(unsupported::refuse("a role of a role", "grant the role to users"));
    }
    Ok(GrantStatement::Roles { roles, user: user::user_name(cursor)? })
}

/// `LOAD, SELECT ON d.t`, which is added to `grants`.
///
/// # Errors
/// A syntax error, or there are no such rights on the object.
pub(crate) fn rights_on(cursor: &mut Cursor<'_>, grants: &mut Grants) -> Parsed<()> {
    let names = cursor.list(named)?;
    cursor.expect("ON")?;
    let scope = scope(cursor)?;
    let mut added = Grants::default();
    add_rights(&mut added, names, &scope)?;
    for (scope, rights) in added.iter() {
        let wrong = rights.without(scope.grantable());
        if !wrong.is_empty() {
            let text = format!("there are no such rights on {scope}: {wrong}");
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
    }
    grants.extend(&added);
    Ok(())
}

fn grantee(cursor: &mut Cursor<'_>) -> Parsed<Grantee> {
    if cursor.eat("ROLE") {
        return role_name(cursor).map(Grantee::Role);
    }
    let UserName { name, host } = user::user_name(cursor)?;
    Ok(Grantee::User { name, host })
}

/// A privilege or a role, as it is written.
struct Named {
    name: String,
    /// `SELECT_PRIV(a, b)`
    columns: Vec<String>,
}

fn named(cursor: &mut Cursor<'_>) -> Parsed<Named> {
    let name = cursor.identifier_or_string("a privilege or a role")?;
    if name.eq_ignore_ascii_case("ALL") {
        cursor.eat("PRIVILEGES");
    }
    let columns = match cursor.peek() {
        Token::LParen => cursor.parenthesized(|cursor| cursor.identifier("a column"))?,
        _ => Vec::new(),
    };
    Ok(Named { name, columns })
}

/// Adds the named rights on an object. Whether they can be granted on it is checked where they are granted.
fn add_rights(grants: &mut Grants, names: Vec<Named>, on: &GrantScope) -> Parsed<()> {
    for Named { name, columns } in names {
        let rights = match name.to_ascii_uppercase().as_str() {
            "ALL" | "READ_WRITE" => match on {
                GrantScope::Resource(_) => Rights::of(&[Right::Usage]),
                _ => Rights::READ_WRITE,
            },
            "READ_ONLY" => Rights::of(&[Right::Select]),
            _ => Rights::of(&[Right::parse(&name).ok_or_else(|| unknown_privilege(&name))?]),
        };
        if columns.is_empty() {
            grants.grant(on.clone(), rights);
            continue;
        }
        let GrantScope::Table { db, table } = on else {
            let text = format!("columns belong to a table: GRANT {name}(…) ON db.table, not on {on}");
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        };
        if rights != Rights::of(&[Right::Select]) {
            return Err(unsupported::refuse(
                &format!("{name} on columns"),
                "only SELECT_PRIV can be granted on columns",
            ));
        }
        for column in columns {
            // Columns are compared without case, as in statements.
            let column = column.to_lowercase();
            grants.grant(GrantScope::Column { db: db.clone(), table: table.clone(), column }, rights);
        }
    }
    Ok(())
}

fn unknown_privilege(name: &str) -> SqlError {
    let known = Right::ALL.map(|right| format!("{}_PRIV", right.name())).join(", ");
    SqlError::detail(
        ErrorCode::Unknown,
        format!("Unknown privilege type: {name}; use {known}, ALL, READ_WRITE or READ_ONLY"),
    )
}

fn roles(names: Vec<Named>) -> Parsed<Vec<String>> {
    let name = |named: Named| match named.columns.is_empty() {
        true => Ok(named.name),
        false => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("the role '{}' has no columns; a privilege is granted ON something", named.name),
        )),
    };
    names.into_iter().map(name).collect()
}

/// After `ON`: `*.*`, `db.*`, `db.t`, each with a catalog before it or not, or `RESOURCE r`.
fn scope(cursor: &mut Cursor<'_>) -> Parsed<GrantScope> {
    if let Some(object) = OTHER_OBJECTS.into_iter().find(|words| cursor.eat_all(words)) {
        return Err(unsupported::refuse(&format!("a privilege on a {object}"), "there are none"));
    }
    if cursor.eat("RESOURCE") {
        let name = match cursor.eat_token(&Token::Mul) {
            true => ALL_RESOURCES.to_owned(),
            false => cursor.identifier_or_string("a resource")?,
        };
        return Ok(GrantScope::Resource(if name == "*" {
            ALL_RESOURCES.to_owned()
        } else {
            name.to_ascii_lowercase()
        }));
    }
    let mut parts = vec![part(cursor)?];
    while parts.len() < 3 && cursor.eat_token(&Token::Period) {
        parts.push(part(cursor)?);
    }
    if parts.len() == 3
        && let Some(catalog) = parts.remove(0)
        && !catalog.eq_ignore_ascii_case("internal")
    {
        return Err(SqlError::detail(ErrorCode::Unknown, format!("Unknown catalog '{catalog}'")));
    }
    match <[_; 2]>::try_from(parts) {
        Ok([None, None]) => Ok(GrantScope::Global),
        Ok([Some(db), None]) => Ok(GrantScope::Database(db)),
        Ok([Some(db), Some(table)]) => Ok(GrantScope::Table { db, table }),
        Ok([None, Some(table)]) => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "a privilege on the table '{table}' of all databases can not be granted; name one database"
            ),
        )),
        Err(_) => Err(cursor.expected("'.' and a table or '*'")),
    }
}

/// A name; `None` is `*`.
fn part(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if cursor.eat_token(&Token::Mul) {
        return Ok(None);
    }
    cursor.identifier("a name or '*'").map(Some)
}

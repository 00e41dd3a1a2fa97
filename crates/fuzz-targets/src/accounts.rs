//! Statements about users, roles, grants and tokens.
//!
//! Whatever the text, the parser answers. A statement that is accepted and printed again is the same: nothing in a quoted name ends
//! it, so a grant on one object is never read as one on another. And no form of it that is meant for people has its password.

use tributary_sql::{GrantStatement, Statement, TokenStatement, parse};
use tributary_types::NewPassword;
use tributary_types::privilege::{GrantScope, Grantee, Grants};

/// The shortest password that is looked for: shorter ones are in other words.
const PASSWORD_BYTES_MIN: usize = 8;

/// The first byte chooses the beginning of the statement.
pub fn accounts(data: &[u8]) {
    const BEGINNINGS: [&str; 8] = [
        "",
        "GRANT ",
        "REVOKE ",
        "CREATE USER ",
        "ALTER USER ",
        "CREATE TOKEN ",
        "SET PASSWORD ",
        "CREATE ROLE ",
    ];
    let Some((&choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let sql = format!("{}{text}", BEGINNINGS[usize::from(choice) % BEGINNINGS.len()]);
    match parse(&sql) {
        Ok(statement) => check(&statement),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn check(statement: &Statement) {
    let printed = match statement {
        Statement::Grant(grant) => granted("GRANT", "TO", grant),
        Statement::Revoke(grant) => granted("REVOKE", "FROM", grant),
        Statement::Token(token) => token_printed(token),
        Statement::CreateUser { password: Some(password), .. }
        | Statement::AlterUser { password: Some(password), .. } => {
            hides(statement, password);
            return;
        }
        _ => return,
    };
    match parse(&printed) {
        Ok(again) => assert_eq!(again, *statement, "{printed}"),
        Err(error) => panic!("{printed}: {error}"),
    }
}

fn hides(statement: &Statement, password: &NewPassword) {
    if let NewPassword::Clear { text, .. } = password {
        let text = text.reveal();
        let shown = format!("{statement:?}");
        // Names may be the same.
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert!(text.len() < PASSWORD_BYTES_MIN || is_name || !shown.contains(text), "{shown}");
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

fn scope(scope: &GrantScope) -> String {
    match scope {
        GrantScope::Global => "*.*".to_owned(),
        GrantScope::Database(db) => format!("{}.*", quoted(db)),
        GrantScope::Table { db, table } | GrantScope::Column { db, table, .. } => {
            format!("{}.{}", quoted(db), quoted(table))
        }
        GrantScope::Resource(name) => format!("RESOURCE {}", text(name)),
    }
}

/// `SELECT_PRIV(a), LOAD_PRIV`, of grants on one object and its columns.
fn rights(grants: &Grants) -> String {
    let listed = grants.iter().flat_map(|(scope, rights)| {
        let column = match scope {
            GrantScope::Column { column, .. } => format!("({})", quoted(column)),
            _ => String::new(),
        };
        rights.iter().map(move |right| format!("{}_PRIV{column}", right.name())).collect::<Vec<_>>()
    });
    listed.collect::<Vec<_>>().join(", ")
}

fn granted(verb: &str, preposition: &str, grant: &GrantStatement) -> String {
    let user = |name: &str, host: &str| format!("{}@{}", text(name), text(host));
    match grant {
        GrantStatement::Rights { scope: on, grants, grantee } => {
            let grantee = match grantee {
                Grantee::User { name, host } => user(name, host),
                Grantee::Role(role) => format!("ROLE {}", text(role)),
            };
            format!("{verb} {} ON {} {preposition} {grantee}", rights(grants), scope(on))
        }
        GrantStatement::Roles { roles, user: of } => {
            let roles: Vec<String> = roles.iter().map(|role| text(role)).collect();
            format!("{verb} {} {preposition} {}", roles.join(", "), user(&of.name, &of.host))
        }
    }
}

fn token_printed(token: &TokenStatement) -> String {
    let owner = |user: &Option<tributary_sql::UserName>| match user {
        Some(user) => format!(" FOR {}@{}", text(&user.name), text(&user.host)),
        None => String::new(),
    };
    match token {
        TokenStatement::Create { name, user, limit, lifetime_s, comment } => {
            let mut sql = format!("CREATE TOKEN {}{}", text(name), owner(user));
            if let Some(limit) = limit {
                let each = limit.iter().map(|(on, rights_on)| {
                    format!("{} ON {}", rights(&Grants::of(on.clone(), rights_on)), scope(on))
                });
                sql += &format!(" LIMITED TO {}", each.collect::<Vec<_>>().join(", "));
            }
            if let Some(seconds) = lifetime_s {
                // More seconds than a number of the statement can say were hours or days.
                sql += &match *seconds {
                    seconds if u32::try_from(seconds).is_ok() => format!(" EXPIRES IN {seconds} SECOND"),
                    seconds if seconds % 86_400 == 0 => format!(" EXPIRES IN {} DAY", seconds / 86_400),
                    seconds => format!(" EXPIRES IN {} HOUR", seconds / 3600),
                };
            }
            sql + &format!(" COMMENT {}", text(comment))
        }
        TokenStatement::Drop { name, user, if_exists } => {
            let if_exists = if *if_exists { "IF EXISTS " } else { "" };
            format!("DROP TOKEN {if_exists}{}{}", text(name), owner(user))
        }
    }
}

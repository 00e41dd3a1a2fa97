//! Users, their passwords, and KILL.

use crate::ast::{Kill, Statement, UserName};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{grant, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::{
    AuthPlugin, ErrorCode, LockTime, NewPassword, PASSWORD_HISTORY_MAX, PasswordExpiry, PasswordHash,
    PolicyChange, Secret, SqlError, TlsRequirement,
};

/// The host of a user that is named without one.
const ANY_HOST: &str = "%";

/// After `CREATE USER`.
pub(crate) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let user = user_name(cursor)?;
    let password = identified(cursor)?;
    let role = match cursor.eat_all("DEFAULT ROLE") {
        true => Some(grant::role_name(cursor)?),
        false => None,
    };
    let require = require(cursor)?;
    let policy = policy(cursor)?;
    let comment = comment(cursor)?;
    refuse_options(cursor)?;
    Ok(Statement::CreateUser { user, if_not_exists, password, role, require, policy, comment })
}

/// After `ALTER USER`.
pub(crate) fn alter(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    let user = user_name(cursor)?;
    let password = identified(cursor)?;
    let require = require(cursor)?;
    let policy = policy(cursor)?;
    let unlocks = cursor.eat("ACCOUNT_UNLOCK");
    refuse_options(cursor)?;
    Ok(Statement::AlterUser { user, if_exists, password, require, policy, unlocks })
}

/// After `DROP USER`.
pub(crate) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    Ok(Statement::DropUser { user: user_name(cursor)?, if_exists })
}

/// `u`, `'u'`, `u@h`, `'u'@'h'`, `'u'@h`. The tokenizer takes `@` for a letter in and before words.
pub(crate) fn user_name(cursor: &mut Cursor<'_>) -> Parsed<UserName> {
    let is_bare = cursor.word().is_some();
    let name = cursor.identifier_or_string("a user name")?;
    if is_bare && let Some((name, host)) = name.split_once('@') {
        let host = if host.is_empty() { self::host(cursor)? } else { dotted(cursor, host.to_owned())? };
        return checked(name.to_owned(), host);
    }
    if cursor.eat_token(&Token::AtSign) {
        return checked(name, host(cursor)?);
    }
    match cursor.word().and_then(|word| word.strip_prefix('@')).map(str::to_owned) {
        None => checked(name, ANY_HOST.to_owned()),
        Some(after) => {
            cursor.advance();
            let host = if after.is_empty() { host(cursor)? } else { dotted(cursor, after)? };
            checked(name, host)
        }
    }
}

/// A host after `@`.
fn host(cursor: &mut Cursor<'_>) -> Parsed<String> {
    if *cursor.peek() == Token::LBracket {
        return Err(unsupported::refuse("a user's domain in brackets", "use a host or '%'"));
    }
    match cursor.word() {
        Some(_) => {
            let first = cursor.identifier("a host")?;
            dotted(cursor, first)
        }
        None => cursor.identifier_or_string("a host"),
    }
}

/// The rest of an unquoted host such as `example.org`.
fn dotted(cursor: &mut Cursor<'_>, mut host: String) -> Parsed<String> {
    while cursor.eat_token(&Token::Period) {
        host = format!("{host}.{}", cursor.identifier("the rest of a host")?);
    }
    Ok(host)
}

fn checked(name: String, host: String) -> Parsed<UserName> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !name.starts_with(|ch: char| ch.is_ascii_alphabetic()) || !name.bytes().all(legal) || name.len() > 64 {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("invalid user name: '{name}'. User name regex is '^[a-zA-Z][a-zA-Z0-9.-_]{{0,63}}$'"),
        ));
    }
    Ok(UserName { name, host })
}

/// `IDENTIFIED [WITH plugin] BY [PASSWORD] '…'`, `IDENTIFIED WITH mysql_native_password AS '*HASH'`
fn identified(cursor: &mut Cursor<'_>) -> Parsed<Option<NewPassword>> {
    if !cursor.eat("IDENTIFIED") {
        return Ok(None);
    }
    let plugin = if cursor.eat("WITH") { Some(plugin(cursor)?) } else { None };
    let is_native = plugin.is_none_or(|plugin| plugin == AuthPlugin::Native);
    let is_hash = if cursor.eat("AS") {
        true
    } else {
        cursor.expect("BY")?;
        cursor.eat("PASSWORD")
    };
    match is_hash {
        true if is_native => {
            hash(&cursor.string("a password hash")?).map(|hash| Some(NewPassword::Hash(hash)))
        }
        true => Err(unsupported::refuse(
            "a hash for caching_sha2_password",
            "give the password itself, BY '…', or a hash of mysql_native_password",
        )),
        false => clear(cursor, plugin).map(Some),
    }
}

fn plugin(cursor: &mut Cursor<'_>) -> Parsed<AuthPlugin> {
    let name = cursor.identifier_or_string("an authentication plugin")?;
    AuthPlugin::named(&name).ok_or_else(|| {
        let names = AuthPlugin::ALL.map(AuthPlugin::name).join(" or ");
        unsupported::refuse(&format!("the authentication plugin '{name}'"), &format!("use {names}"))
    })
}

fn clear(cursor: &mut Cursor<'_>, plugin: Option<AuthPlugin>) -> Parsed<NewPassword> {
    Ok(NewPassword::Clear { text: Secret::new(cursor.string("a password")?), plugin })
}

/// `REQUIRE { NONE | SSL | X509 }`
fn require(cursor: &mut Cursor<'_>) -> Parsed<Option<TlsRequirement>> {
    if !cursor.eat("REQUIRE") {
        return Ok(None);
    }
    match cursor.eat_any(&["NONE", "SSL", "X509", "CIPHER", "ISSUER", "SUBJECT", "SAN"]) {
        Some("NONE") => Ok(Some(TlsRequirement::None)),
        Some("SSL") => Ok(Some(TlsRequirement::Ssl)),
        Some("X509") => Ok(Some(TlsRequirement::X509)),
        Some(part) => Err(unsupported::refuse(&format!("REQUIRE {part}"), "use REQUIRE SSL or REQUIRE X509")),
        None => Err(cursor.expected("NONE, SSL or X509")),
    }
}

/// After `SET PASSWORD [FOR u] =`: `PASSWORD('…')` or `'*HASH'`.
pub(crate) fn password(cursor: &mut Cursor<'_>) -> Parsed<NewPassword> {
    if !cursor.eat("PASSWORD") {
        return hash(&cursor.string("PASSWORD('…') or a password hash")?).map(NewPassword::Hash);
    }
    cursor.expect_token(&Token::LParen)?;
    let password = clear(cursor, None)?;
    cursor.expect_token(&Token::RParen)?;
    Ok(password)
}

/// `*` and 40 hexadecimal digits; an empty text is the empty password.
fn hash(text: &str) -> Parsed<PasswordHash> {
    PasswordHash::parse(text).ok_or_else(|| {
        SqlError::detail(
            ErrorCode::Unknown,
            "a password hash is '*' and 40 hexadecimal digits: for a password in plain text write PASSWORD('…')",
        )
    })
}

/// `COMMENT '…'`, empty without it.
pub(crate) fn comment(cursor: &mut Cursor<'_>) -> Parsed<String> {
    if cursor.eat("COMMENT") { cursor.string("a comment in quotes") } else { Ok(String::new()) }
}

/// The rules for passwords, in any order.
fn policy(cursor: &mut Cursor<'_>) -> Parsed<PolicyChange> {
    const RULES: [&str; 4] =
        ["PASSWORD_HISTORY", "PASSWORD_EXPIRE", "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"];
    let mut policy = PolicyChange::default();
    while let Some(rule) = cursor.eat_any(&RULES) {
        match rule {
            "PASSWORD_HISTORY" if cursor.eat("DEFAULT") => policy.history = Some(None),
            "PASSWORD_HISTORY" => policy.history = Some(Some(history(cursor)?)),
            "PASSWORD_EXPIRE" => policy.expiry = Some(expiry(cursor)?),
            "FAILED_LOGIN_ATTEMPTS" => {
                policy.failed_logins = Some(cursor.number("a number of failed logins")?);
            }
            _ if cursor.eat("UNBOUNDED") => policy.lock = Some(LockTime::Unbounded),
            _ => policy.lock = Some(LockTime::Seconds(duration(cursor)?)),
        }
    }
    Ok(policy)
}

fn history(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let count: u32 = cursor.number("a number of passwords, or DEFAULT")?;
    if count <= PASSWORD_HISTORY_MAX {
        return Ok(count);
    }
    let text = format!(
        "PASSWORD_HISTORY {count} is out of range: at most {PASSWORD_HISTORY_MAX} passwords are remembered"
    );
    Err(SqlError::detail(ErrorCode::Unknown, text))
}

/// After `PASSWORD_EXPIRE`.
fn expiry(cursor: &mut Cursor<'_>) -> Parsed<PasswordExpiry> {
    match cursor.eat_any(&["DEFAULT", "NEVER", "INTERVAL"]) {
        Some("DEFAULT") => Ok(PasswordExpiry::Default),
        Some("NEVER") => Ok(PasswordExpiry::Never),
        Some(_) => match duration(cursor)? {
            0 => Err(SqlError::detail(
                ErrorCode::Unknown,
                "PASSWORD_EXPIRE needs an interval above 0, or NEVER",
            )),
            seconds => Ok(PasswordExpiry::Seconds(seconds)),
        },
        None => Err(cursor.expected("DEFAULT, NEVER or INTERVAL")),
    }
}

/// `n DAY`, `n HOUR` or `n SECOND`, in seconds.
pub(crate) fn duration(cursor: &mut Cursor<'_>) -> Parsed<u64> {
    let count: u32 = cursor.number("a number of days, hours or seconds")?;
    let unit = match cursor.eat_any(&["DAY", "HOUR", "SECOND"]) {
        Some("DAY") => 86_400,
        Some("HOUR") => 3600,
        Some(_) => 1,
        None => return Err(cursor.expected("DAY, HOUR or SECOND")),
    };
    Ok(u64::from(count) * unit)
}

/// The options that Doris or MySQL has and that are not supported here.
fn refuse_options(cursor: &mut Cursor<'_>) -> Parsed<()> {
    const OPTIONS: [&str; 5] = ["DEFAULT", "PASSWORD_REUSE", "ACCOUNT_UNLOCK", "ACCOUNT_LOCK", "COMMENT"];
    match cursor.eat_any(&OPTIONS) {
        Some(option) => Err(unsupported::refuse(&format!("the user option {option}"), "leave it out")),
        None => Ok(()),
    }
}

pub(crate) fn kill(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let kill = if cursor.eat("QUERY") {
        match cursor.peek() {
            Token::Number(..) => Kill::Query(cursor.number("a connection id")?),
            _ => Kill::QueryId(cursor.string("a connection id or a query id in quotes")?),
        }
    } else {
        cursor.eat("CONNECTION");
        Kill::Connection(cursor.number("a connection id")?)
    };
    Ok(Statement::Kill(kill))
}

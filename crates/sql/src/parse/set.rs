//! `SET`, in MySQL's many forms.

use crate::ast::{Scope, SetItem, SetProperty, SetValue, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{unsupported, user};
use sqlparser::tokenizer::Token;
use tributary_types::Sealed;

pub(crate) fn set(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.is("PROPERTY") && !is_assignment(cursor.peek_nth(1)) {
        return property(cursor);
    }
    cursor.list(item).map(Statement::Set)
}

/// `UNSET [GLOBAL | SESSION] VARIABLE {name | ALL}`
pub(crate) fn unset(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let scope = scope_word(cursor).unwrap_or_default();
    cursor.expect("VARIABLE")?;
    let item = match cursor.eat("ALL") {
        true => SetItem::AllVariables { scope },
        false => {
            let name = cursor.identifier("a variable or ALL")?.to_lowercase();
            SetItem::Variable { scope, name, value: SetValue::Default }
        }
    };
    Ok(Statement::Set(vec![item]))
}

/// `PROPERTY [FOR u] 'name' = 'value', …`
fn property(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let user = match cursor.eat("FOR") {
        true => Some(user::user_name(cursor)?),
        false => None,
    };
    let properties = cursor.list(|cursor| {
        let name = cursor.identifier_or_string("a user property")?;
        cursor.expect_token(&Token::Eq)?;
        Ok((name, property_value(cursor)?))
    })?;
    Ok(Statement::SetProperty(Box::new(SetProperty { user, properties })))
}

/// A value in quotes, or a number.
fn property_value(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let sign = if cursor.eat_token(&Token::Minus) { "-" } else { "" };
    if let Token::Number(digits, _) = cursor.peek() {
        let value = format!("{sign}{digits}");
        cursor.advance();
        return Ok(value);
    }
    match sign {
        "" => cursor.string("a value in quotes"),
        _ => Err(cursor.expected("a number")),
    }
}

fn item(cursor: &mut Cursor<'_>) -> Parsed<SetItem> {
    if cursor.is_any(&["ROLE", "PERSIST", "PERSIST_ONLY"]) && !is_assignment(cursor.peek_nth(1)) {
        let what = cursor.word().unwrap_or_default().to_ascii_uppercase();
        return Err(unsupported::refuse(&format!("SET {what}"), ""));
    }
    if cursor.is("PASSWORD") && (is_assignment(cursor.peek_nth(1)) || cursor.is_nth(1, "FOR")) {
        return password(cursor);
    }
    if cursor.is("NAMES") && !is_assignment(cursor.peek_nth(1)) {
        return names(cursor);
    }
    if cursor.eat_all("CHARACTER SET")
        || (cursor.is("CHARSET") && !is_assignment(cursor.peek_nth(1)) && cursor.eat("CHARSET"))
    {
        return charset(cursor).map(|charset| SetItem::CharacterSet { charset });
    }
    let scope = scope(cursor);
    if cursor.is("TRANSACTION") && !is_assignment(cursor.peek_nth(1)) {
        return transaction(cursor, scope);
    }
    assignment(cursor, scope)
}

/// `GLOBAL`, `SESSION`, `LOCAL` before a variable (and not a variable of that name).
fn scope(cursor: &mut Cursor<'_>) -> Option<Scope> {
    if is_assignment(cursor.peek_nth(1)) {
        return None;
    }
    scope_word(cursor)
}

/// Takes `GLOBAL`, `SESSION` or `LOCAL`.
pub(crate) fn scope_word(cursor: &mut Cursor<'_>) -> Option<Scope> {
    match cursor.eat_any(&["GLOBAL", "SESSION", "LOCAL"])? {
        "GLOBAL" => Some(Scope::Global),
        _ => Some(Scope::Session),
    }
}

fn is_assignment(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Assignment)
}

fn assignment(cursor: &mut Cursor<'_>, scope: Option<Scope>) -> Parsed<SetItem> {
    if let Some(user_variable) = cursor.word().and_then(user_variable) {
        cursor.advance();
        let value = assigned_value(cursor)?;
        return Ok(SetItem::UserVariable { name: user_variable, value });
    }
    let (scope, name) = match system_variable(cursor)? {
        Some(variable) => variable,
        None => (scope.unwrap_or_default(), cursor.identifier("a variable")?.to_lowercase()),
    };
    Ok(SetItem::Variable { scope, name, value: assigned_value(cursor)? })
}

fn assigned_value(cursor: &mut Cursor<'_>) -> Parsed<SetValue> {
    if !is_assignment(cursor.peek()) {
        return Err(cursor.expected("'='"));
    }
    cursor.advance();
    value(cursor)
}

/// The name in `@name`, in lower case.
pub(super) fn user_variable(word: &str) -> Option<String> {
    word.strip_prefix('@').filter(|name| !name.is_empty() && !name.starts_with('@')).map(str::to_lowercase)
}

/// `@@[session.|local.|global.]name`, if that is next.
fn system_variable(cursor: &mut Cursor<'_>) -> Parsed<Option<(Scope, String)>> {
    let Some(first) = cursor.word().and_then(|word| word.strip_prefix("@@")).map(str::to_lowercase) else {
        return Ok(None);
    };
    cursor.advance();
    let scope = match first.as_str() {
        "session" | "local" => Scope::Session,
        "global" => Scope::Global,
        _ => return Ok(Some((Scope::Session, first))),
    };
    cursor.expect_token(&Token::Period)?;
    Ok(Some((scope, cursor.identifier("a variable")?.to_lowercase())))
}

fn value(cursor: &mut Cursor<'_>) -> Parsed<SetValue> {
    if let Some(simple) = simple_value(cursor) {
        return Ok(simple);
    }
    if cursor.word().is_some_and(|word| word.starts_with("@@")) && ends_variable(cursor) {
        return match system_variable(cursor)? {
            Some((scope, name)) => Ok(SetValue::Variable { scope, name }),
            None => Err(cursor.expected("a value")),
        };
    }
    cursor.expr().map(|expr| SetValue::Expr(Sealed::new(expr)))
}

/// Whether nothing follows the `@@x` or `@@scope.x` that is next.
fn ends_variable(cursor: &Cursor<'_>) -> bool {
    ends(cursor.peek_nth(1)) || (*cursor.peek_nth(1) == Token::Period && ends(cursor.peek_nth(3)))
}

fn ends(token: &Token) -> bool {
    matches!(token, Token::Comma | Token::SemiColon | Token::EOF)
}

/// A single token that is the whole value.
fn simple_value(cursor: &mut Cursor<'_>) -> Option<SetValue> {
    let signed = match cursor.peek() {
        Token::Minus => Some("-"),
        Token::Plus => Some(""),
        _ => None,
    };
    if let (Some(sign), Token::Number(digits, _)) = (signed, cursor.peek_nth(1)) {
        let number = SetValue::Number(format!("{sign}{digits}"));
        return take_if_last(cursor, 2, number);
    }
    let value = match cursor.peek() {
        Token::Number(digits, _) => SetValue::Number(digits.clone()),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => SetValue::Text(text.clone()),
        Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@') => return None,
        Token::Word(word) => match word.value.to_ascii_uppercase().as_str() {
            "DEFAULT" => SetValue::Default,
            "NULL" => SetValue::Null,
            _ => SetValue::Text(word.value.clone()),
        },
        _ => return None,
    };
    take_if_last(cursor, 1, value)
}

fn take_if_last(cursor: &mut Cursor<'_>, tokens: usize, value: SetValue) -> Option<SetValue> {
    if !ends(cursor.peek_nth(tokens)) {
        return None;
    }
    (0..tokens).for_each(|_| cursor.advance());
    Some(value)
}

fn names(cursor: &mut Cursor<'_>) -> Parsed<SetItem> {
    cursor.advance();
    let charset = charset(cursor)?;
    let collation = match cursor.eat("COLLATE") {
        true => Some(cursor.identifier_or_string("a collation")?),
        false => None,
    };
    Ok(SetItem::Names { charset, collation })
}

fn charset(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if cursor.eat("DEFAULT") {
        return Ok(None);
    }
    cursor.identifier_or_string("a character set").map(Some)
}

fn transaction(cursor: &mut Cursor<'_>, scope: Option<Scope>) -> Parsed<SetItem> {
    const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    cursor.advance();
    let (mut isolation, mut read_only) = (None, None);
    loop {
        if cursor.eat_all("ISOLATION LEVEL") {
            let level = LEVELS.into_iter().find(|level| cursor.eat_all(level));
            isolation = Some(level.ok_or_else(|| cursor.expected("an isolation level"))?.to_owned());
        } else if cursor.eat_all("READ ONLY") {
            read_only = Some(true);
        } else if cursor.eat_all("READ WRITE") {
            read_only = Some(false);
        } else {
            return Err(cursor.expected("ISOLATION LEVEL, READ ONLY or READ WRITE"));
        }
        if !(*cursor.peek() == Token::Comma && (cursor.is_nth(1, "READ") || cursor.is_nth(1, "ISOLATION"))) {
            return Ok(SetItem::Transaction { scope, isolation, read_only });
        }
        cursor.advance();
    }
}

fn password(cursor: &mut Cursor<'_>) -> Parsed<SetItem> {
    cursor.advance();
    let user = match cursor.eat("FOR") {
        true => Some(user::user_name(cursor)?),
        false => None,
    };
    cursor.expect_token(&Token::Eq)?;
    Ok(SetItem::Password { user, password: user::password(cursor)? })
}

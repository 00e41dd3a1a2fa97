//! Tokens of users, a grammar of our own: `CREATE TOKEN t [FOR u] [LIMITED TO LOAD ON d.t, SELECT ON d.*] [EXPIRES IN 90 DAY | NEVER]
//! [COMMENT '…']`, `DROP TOKEN [IF EXISTS] t [FOR u]`.

use crate::ast::{Statement, TokenStatement, UserName};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{grant, user};
use sqlparser::tokenizer::Token;
use tributary_types::privilege::Grants;
use tributary_types::{ErrorCode, SqlError};

/// After `CREATE TOKEN`.
pub(crate) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let name = name(cursor)?;
    let user = owner(cursor)?;
    let mut limit = None;
    if cursor.eat_all("LIMITED TO") {
        let mut grants = Grants::default();
        loop {
            grant::rights_on(cursor, &mut grants)?;
            if !cursor.eat_token(&Token::Comma) {
                break;
            }
        }
        limit = Some(grants);
    }
    let mut lifetime_s = None;
    if cursor.eat("EXPIRES") && !cursor.eat("NEVER") {
        cursor.expect("IN")?;
        lifetime_s = Some(user::duration(cursor)?);
    }
    let comment = user::comment(cursor)?;
    Ok(Statement::Token(Box::new(TokenStatement::Create { name, user, limit, lifetime_s, comment })))
}

/// After `DROP TOKEN`.
pub(crate) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    let name = name(cursor)?;
    Ok(Statement::Token(Box::new(TokenStatement::Drop { name, user: owner(cursor)?, if_exists })))
}

/// `FOR u`; `None`: the user who asks.
fn owner(cursor: &mut Cursor<'_>) -> Parsed<Option<UserName>> {
    if cursor.eat("FOR") { user::user_name(cursor).map(Some) } else { Ok(None) }
}

fn name(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let name = cursor.identifier_or_string("the name of a token")?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.is_empty() || !name.bytes().all(legal) || name.len() > 64 {
        let text =
            format!("invalid name of a token: '{name}'. It has 1 to 64 letters, digits, '.', '-' and '_'");
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    }
    Ok(name)
}

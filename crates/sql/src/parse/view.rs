//! CREATE, ALTER and DROP VIEW.
//!
//! Not the business of this module: the tables that a view's query reads, and how it is stored ([`crate::view_text`]).

use crate::ast::{Name, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::names;
use crate::parse::query;
use sqlparser::tokenizer::Token;
use tributary_types::{ErrorCode, SqlError};

/// A statement about views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewStatement {
    Create(CreateView),
    /// `ALTER VIEW v [(columns)] [COMMENT 'x'] AS query`
    Alter {
        view: Name,
        body: ViewBody,
    },
    /// `ALTER VIEW v MODIFY COMMENT 'x'`
    Comment {
        view: Name,
        comment: String,
    },
    Drop {
        view: Name,
        if_exists: bool,
    },
}

/// `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateView {
    pub view: Name,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub body: ViewBody,
}

/// A view's definition, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewBody {
    /// Names and comments of the columns; `None`: the query's.
    pub columns: Option<Vec<(String, String)>>,
    pub comment: Option<String>,
    /// The text of the query.
    pub query: String,
}

impl ViewStatement {
    /// The view that it is about.
    #[must_use]
    pub const fn view(&self) -> &Name {
        match self {
            Self::Create(CreateView { view, .. })
            | Self::Alter { view, .. }
            | Self::Comment { view, .. }
            | Self::Drop { view, .. } => view,
        }
    }
}

/// Whether a view follows CREATE.
pub(crate) fn begins(cursor: &Cursor<'_>) -> bool {
    let at = if cursor.is("OR") && cursor.is_nth(1, "REPLACE") { 2 } else { 0 };
    let is = |word| if at == 0 { cursor.is(word) } else { cursor.is_nth(at, word) };
    is("VIEW") || is("ALGORITHM") || is("DEFINER") || is("SQL")
}

/// `ALGORITHM = UNDEFINED DEFINER = u@h SQL SECURITY DEFINER`, as MySQL's dumps write them. A view is read with the rights of its reader.
fn skip_options(cursor: &mut Cursor<'_>) -> Parsed<()> {
    loop {
        if cursor.eat("ALGORITHM") {
            cursor.expect_token(&Token::Eq)?;
            if cursor.eat_any(&["UNDEFINED", "MERGE", "TEMPTABLE"]).is_none() {
                return Err(cursor.expected("UNDEFINED, MERGE or TEMPTABLE"));
            }
        } else if cursor.eat("DEFINER") {
            cursor.expect_token(&Token::Eq)?;
            while !cursor.at_end() && !cursor.is_any(&["SQL", "VIEW"]) {
                cursor.advance();
            }
        } else if cursor.eat_all("SQL SECURITY") {
            if cursor.eat_any(&["DEFINER", "INVOKER"]).is_none() {
                return Err(cursor.expected("DEFINER or INVOKER"));
            }
        } else {
            return Ok(());
        }
    }
}

/// After CREATE.
pub(crate) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let or_replace = cursor.eat_all("OR REPLACE");
    skip_options(cursor)?;
    cursor.expect("VIEW")?;
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    if or_replace && if_not_exists {
        let text = "[OR REPLACE] and [IF NOT EXISTS] cannot used at the same time";
        return Err(SqlError::detail(ErrorCode::Syntax, text));
    }
    let view = cursor.name()?;
    names::check_table(&view.table)?;
    let create = CreateView { view, or_replace, if_not_exists, body: body(cursor)? };
    Ok(statement(ViewStatement::Create(create)))
}

/// After ALTER VIEW.
pub(crate) fn alter(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let view = cursor.name()?;
    if cursor.eat_all("MODIFY COMMENT") {
        let comment = cursor.string("a comment in quotes")?;
        return Ok(statement(ViewStatement::Comment { view, comment }));
    }
    Ok(statement(ViewStatement::Alter { view, body: body(cursor)? }))
}

/// After DROP VIEW.
pub(crate) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    let view = cursor.name()?;
    // As in MySQL, these words change nothing.
    cursor.eat_any(&["CASCADE", "RESTRICT"]);
    Ok(statement(ViewStatement::Drop { view, if_exists }))
}

fn statement(view: ViewStatement) -> Statement {
    Statement::View(Box::new(view))
}

/// `[(c [COMMENT 'x'], …)] [COMMENT 'x'] AS query`
fn body(cursor: &mut Cursor<'_>) -> Parsed<ViewBody> {
    let columns = if *cursor.peek() == Token::LParen { Some(cursor.parenthesized(column)?) } else { None };
    let comment = match cursor.eat("COMMENT") {
        true => Some(cursor.string("a comment in quotes")?),
        false => None,
    };
    cursor.expect("AS")?;
    let begin = cursor.offset();
    query::select(cursor)?;
    let text = cursor.sql()[begin..cursor.offset()].trim_end_matches([' ', '\t', '\r', '\n', ';']);
    Ok(ViewBody { columns, comment, query: text.to_owned() })
}

fn column(cursor: &mut Cursor<'_>) -> Parsed<(String, String)> {
    let name = cursor.identifier("a column name")?;
    let comment = match cursor.eat("COMMENT") {
        true => cursor.string("a comment in quotes")?,
        false => String::new(),
    };
    Ok((name, comment))
}

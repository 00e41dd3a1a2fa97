//! `PREPARE`, `EXECUTE` and `DEALLOCATE PREPARE`: prepared statements by their names.

use crate::ast::{PreparedText, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::set::user_variable;
use sqlparser::tokenizer::Token;

/// `PREPARE name FROM 'text'` or `FROM @variable`.
pub(crate) fn prepare(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("PREPARE")?;
    let name = name(cursor)?;
    cursor.expect("FROM")?;
    let text = match cursor.word().and_then(user_variable) {
        Some(variable) => {
            cursor.advance();
            PreparedText::Variable(variable)
        }
        None => PreparedText::Written(cursor.string("a statement in quotes, or a user variable")?),
    };
    Ok(Statement::Prepare { name, text })
}

/// `EXECUTE name [USING @variable, …]`
pub(crate) fn execute(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("EXECUTE")?;
    let name = name(cursor)?;
    let mut variables = Vec::new();
    if cursor.eat("USING") {
        loop {
            let variable = cursor.word().and_then(user_variable);
            variables.push(variable.ok_or_else(|| cursor.expected("a user variable"))?);
            cursor.advance();
            if !cursor.eat_token(&Token::Comma) {
                break;
            }
        }
    }
    Ok(Statement::Execute { name, variables })
}

/// `{DEALLOCATE | DROP} PREPARE name`, behind the first word.
pub(crate) fn deallocate(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("PREPARE")?;
    Ok(Statement::Deallocate { name: name(cursor)? })
}

/// Names are compared without regard to case.
fn name(cursor: &mut Cursor<'_>) -> Parsed<String> {
    Ok(cursor.identifier("the name of a statement")?.to_lowercase())
}

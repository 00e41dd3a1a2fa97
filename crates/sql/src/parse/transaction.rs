//! BEGIN, COMMIT, ROLLBACK, SAVEPOINT and SYNC.

use crate::ast::{SavepointVerb, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::unsupported;
use sqlparser::tokenizer::Token;

/// `SYNC`, or `SYNC '<receipt>'`, a transaction's id.
fn sync(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    const RECEIPT: &str = "a receipt, which is the transaction id in the answer to a load";
    let receipt = match cursor.peek() {
        _ if cursor.at_end() => None,
        Token::Number(..) => Some(cursor.number(RECEIPT)?),
        _ => {
            let expected = cursor.expected(RECEIPT);
            Some(cursor.string(RECEIPT)?.parse().map_err(|_| expected)?)
        }
    };
    Ok(Statement::Sync { receipt })
}

pub(crate) fn transaction(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.eat("BEGIN") {
        cursor.eat("WORK");
        return begin(cursor);
    }
    if cursor.eat("START") {
        cursor.expect("TRANSACTION")?;
        return begin(cursor);
    }
    if cursor.eat("SYNC") {
        return sync(cursor);
    }
    if cursor.eat("COMMIT") {
        end_words(cursor)?;
        return Ok(Statement::Commit);
    }
    if cursor.eat("SAVEPOINT") {
        return savepoint(cursor, SavepointVerb::Set);
    }
    if cursor.eat_all("RELEASE SAVEPOINT") {
        return savepoint(cursor, SavepointVerb::Release);
    }
    cursor.expect("ROLLBACK")?;
    cursor.eat("WORK");
    if cursor.eat("TO") {
        cursor.eat("SAVEPOINT");
        return savepoint(cursor, SavepointVerb::RollBackTo);
    }
    end_words(cursor)?;
    Ok(Statement::Rollback)
}

fn savepoint(cursor: &mut Cursor<'_>, verb: SavepointVerb) -> Parsed<Statement> {
    Ok(Statement::Savepoint { verb, name: cursor.identifier("the name of a savepoint")? })
}

fn begin(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.eat_all("WITH LABEL") {
        let label = Some(cursor.identifier_or_string("a label")?);
        return Ok(Statement::Begin { label, only_reads: None });
    }
    // As in MySQL; but for its access mode, all transactions are alike.
    let mut only_reads = None;
    loop {
        if cursor.eat_all("READ ONLY") {
            only_reads = Some(true);
        } else if cursor.eat_all("READ WRITE") {
            only_reads = Some(false);
        } else if !cursor.eat_all("WITH CONSISTENT SNAPSHOT") {
            return Ok(Statement::Begin { label: None, only_reads });
        }
        cursor.eat_token(&sqlparser::tokenizer::Token::Comma);
    }
}

/// `[WORK] [AND NO CHAIN] [NO RELEASE]`
fn end_words(cursor: &mut Cursor<'_>) -> Parsed<()> {
    cursor.eat("WORK");
    cursor.eat_all("AND NO CHAIN");
    cursor.eat_all("NO RELEASE");
    if cursor.is("AND") || cursor.is("RELEASE") {
        return Err(unsupported::refuse("COMMIT or ROLLBACK with CHAIN or RELEASE", "use it without"));
    }
    Ok(())
}

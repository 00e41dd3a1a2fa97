//! `VERIFY …`.

use crate::ast::{Name, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;

/// `VERIFY [TABLE t, …] [FULL]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// Empty: all.
    pub tables: Vec<Name>,
    /// Whether all pages of data files are read, and keys compared.
    pub full: bool,
}

pub(crate) fn verify(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let tables =
        if cursor.eat("TABLE") || cursor.eat("TABLES") { cursor.list(Cursor::name)? } else { Vec::new() };
    let full = cursor.eat("FULL");
    Ok(Statement::Verify(Verify { tables, full }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn all_tables_or_some_are_verified() {
        let read = |sql: &str| match parse(sql).expect(sql) {
            Statement::Verify(Verify { tables, full }) => {
                (tables.iter().map(|name| name.table.clone()).collect::<Vec<_>>().join(","), full)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(read("VERIFY"), (String::new(), false));
        assert_eq!(read("verify full"), (String::new(), true));
        assert_eq!(read("VERIFY TABLE d.t, `full` FULL"), ("t,full".to_owned(), true));
        parse("VERIFY t").expect_err("the word TABLE is missing");
    }
}

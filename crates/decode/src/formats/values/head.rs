//! The head of an INSERT: everything before its rows.

use super::Scanner;
use std::borrow::Cow;

/// `INSERT INTO [db.]table [(columns)] VALUES (`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertHead<'a> {
    pub db: Option<Cow<'a, str>>,
    pub table: Cow<'a, str>,
    pub columns: Option<Vec<String>>,
    /// The byte after the word VALUES.
    pub values_offset: usize,
}

/// Recognises the hot shape of INSERT. `None` for every other statement (a label, partitions, a
/// query, OVERWRITE, a catalog other than `internal`, a comment that MySQL executes): those are for
/// the general parser, which also words the errors. Never fails, never allocates for other
/// statements.
#[must_use]
pub fn scan_insert_head(sql: &[u8]) -> Option<InsertHead<'_>> {
    let mut scanner = Scanner::new(sql);
    scanner.keyword("INSERT")?;
    scanner.keyword("INTO")?;
    let (db, table) = table_name(&mut scanner)?;
    let columns = match scanner.take_byte(b'(') {
        Some(()) => Some(column_list(&mut scanner)?),
        None => None,
    };
    scanner.keyword("VALUES")?;
    let values_offset = scanner.at();
    // `decode_values` would take another VALUES.
    scanner.take_byte(b'(')?;
    Some(InsertHead { db, table, columns, values_offset })
}

/// `t`, `db.t` or `internal.db.t`.
fn table_name<'a>(scanner: &mut Scanner<'a>) -> Option<(Option<Cow<'a, str>>, Cow<'a, str>)> {
    let first = scanner.identifier()?;
    if scanner.take_byte(b'.').is_none() {
        return Some((None, first));
    }
    let second = scanner.identifier()?;
    if scanner.take_byte(b'.').is_none() {
        return Some((Some(first), second));
    }
    let third = scanner.identifier()?;
    (first == "internal").then_some((Some(second), third))
}

/// The names behind the `(`, up to and including the `)`.
fn column_list(scanner: &mut Scanner<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    loop {
        names.push(scanner.identifier()?.into_owned());
        if scanner.take_byte(b',').is_none() {
            scanner.take_byte(b')')?;
            return Some(names);
        }
    }
}

//! INSERT … VALUES: the scanner against the general parser.
//!
//! Whatever the scanner takes, the general parser must take too, with the same table, columns, and
//! values: its literals are written again in the plainest form and decoded again, which must give the
//! same blocks. Whatever the scanner refuses must be wrong for the general parser too (which knows no
//! table: a row with another number of values than the table has columns is all that it may take).
//! What the scanner leaves to the general parser is the general parser's.

use crate::literals;
use crate::rows;
use crate::tables;
use tributary_decode::{
    BlockBuilder, InsertHead, InsertOptions, Target, ValuesOutcome, decode_values, scan_insert_head,
};
use tributary_sql::{Insert, InsertSource, Statement};

/// The first byte chooses the table and the strictness, the others are the statement.
pub fn values(data: &[u8]) {
    let Some((&choice, sql)) = data.split_first() else { return };
    let table = tables::pick(choice);
    let options = InsertOptions { strict: choice & 0x80 == 0, ..InsertOptions::default() };
    let Ok(target) = Target::new(&table, None) else { return };
    let mut builder = BlockBuilder::new(&table.schema);
    let Some(head) = scan_insert_head(sql) else {
        // Rows without a head must be harmless, too: prepared statements have such.
        let _ = decode_values(sql, &target, &options, &mut builder);
        return;
    };
    assert!(head.values_offset <= sql.len());
    let rows_text = &sql[head.values_offset..];
    let outcome = decode_values(rows_text, &target, &options, &mut builder);
    let Ok(text) = std::str::from_utf8(sql) else {
        let is_text = std::str::from_utf8(rows_text).is_ok();
        assert!(is_text || outcome.is_err(), "rows that are not UTF-8 were taken");
        return;
    };
    let general = general_insert(text);
    match outcome {
        Ok(ValuesOutcome::General) => {}
        Ok(ValuesOutcome::Rows(decoded)) => {
            rows::check_decoded(&table, &decoded);
            let insert = general.unwrap_or_else(|error| panic!("only the scanner takes it: {error}"));
            check_head(&head, &insert);
            let rewritten = plainest(&insert).expect("the scanner took more than literals");
            let again = decode_values(rewritten.as_bytes(), &target, &options, &mut builder);
            let Ok(ValuesOutcome::Rows(again)) = again else { panic!("not taken again: {rewritten}") };
            rows::assert_same(&table, &decoded, &again);
        }
        Err(error) => {
            let Ok(insert) = general else { return };
            let InsertSource::Values(rows) = &insert.source else { panic!("no VALUES: {error}") };
            let fields = target.field_count();
            assert!(rows.iter().any(|row| row.len() != fields), "only the scanner refuses it: {error}");
        }
    }
}

fn general_insert(sql: &str) -> Result<Box<Insert>, String> {
    match tributary_sql::parse(sql) {
        Ok(Statement::Insert(insert)) => Ok(insert),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn check_head(head: &InsertHead<'_>, insert: &Insert) {
    assert_eq!((head.db.as_deref(), &*head.table), (insert.table.db.as_deref(), &*insert.table.table));
    assert_eq!(head.columns, insert.columns);
    assert!(insert.label.is_none() && insert.partitions.is_any() && !insert.overwrite);
}

fn plainest(insert: &Insert) -> Option<String> {
    match &insert.source {
        InsertSource::Values(rows) => literals::values_list(rows),
        InsertSource::Query(_) => None,
    }
}

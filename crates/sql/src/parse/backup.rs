//! `BACKUP SERVER …`.

use crate::ast::Statement;
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{HiddenProperties, ddl, unsupported};
use std::num::NonZero;

/// `BACKUP SERVER [AS name] [TO "file:///…" | TO "s3://…"] [KEEP n] [PROPERTIES (…)]`
#[derive(Clone, Debug, PartialEq)]
pub struct Backup {
    /// By default the time.
    pub name: Option<String>,
    /// The place of the repository, with its scheme. By default the server's setting.
    pub place: Option<String>,
    /// The newest backups of this server that stay; `None`: all.
    pub keep: Option<NonZero<usize>>,
    /// The properties of the connection to the store.
    pub properties: HiddenProperties,
}

pub(crate) fn backup(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if !cursor.eat("SERVER") {
        return Err(unsupported::refuse(
            "BACKUP of single tables",
            "copy the whole server by BACKUP SERVER [AS name] [TO 's3://bucket/path']",
        ));
    }
    let name = if cursor.eat("AS") { Some(cursor.string("the backup's name, in quotes")?) } else { None };
    let place =
        if cursor.eat("TO") { Some(cursor.string("the place of the backups, in quotes")?) } else { None };
    let keep = if cursor.eat("KEEP") {
        Some(cursor.number("the number of backups that stay, at least 1")?)
    } else {
        None
    };
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    Ok(Statement::Backup(Box::new(Backup { name, place, keep, properties: HiddenProperties(properties) })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn read(sql: &str) -> Backup {
        let Statement::Backup(backup) = parse(sql).expect(sql) else { panic!("{sql}") };
        *backup
    }

    #[test]
    fn a_backup_has_a_name_a_place_and_hidden_properties() {
        let plain = read("backup server");
        assert_eq!((plain.name, plain.place), (None, None));
        assert_eq!((plain.keep, read("BACKUP SERVER KEEP 7").keep), (None, NonZero::new(7)));
        parse("BACKUP SERVER KEEP 0").expect_err("the one that is taken would go");
        let full = read(
            "BACKUP SERVER AS 'monday' TO 's3://b/p' KEEP 3 PROPERTIES ('s3.access_key' = 'k', 's3.secret_key' = 'hidden')",
        );
        assert_eq!((full.name.as_deref(), full.place.as_deref()), (Some("monday"), Some("s3://b/p")));
        assert!(!format!("{full:?}").contains("hidden"), "{full:?}");
    }

    #[test]
    fn a_backup_of_one_table_names_the_way_out() {
        let error = parse("BACKUP SNAPSHOT d.label TO repo ON (t)").expect_err("refused");
        assert!(error.to_string().contains("BACKUP SERVER"), "{error}");
        parse("BACKUP SERVER AS").expect_err("no name");
    }
}

//! `EXPORT TABLE … TO …`.

use crate::ast::{Name, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{HiddenProperties, HiddenText, ddl, partition, unsupported};
use tributary_types::PartitionNames;

/// `EXPORT TABLE [db.]t [PARTITION (p, …)] [WHERE …] TO "…" PROPERTIES (…) WITH S3 (…)`
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    pub table: Name,
    pub partitions: PartitionNames,
    /// A condition, as it is written.
    pub filter: Option<String>,
    /// The prefix of the files' names, with its scheme.
    pub path: String,
    pub properties: HiddenProperties,
    /// The properties of the connection to the store.
    pub place: HiddenProperties,
    /// The statement, to be read again when the server has started again. It has keys in it.
    pub text: HiddenText,
}

pub(crate) fn export(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    cursor.expect("TABLE")?;
    let table = cursor.name()?;
    let partitions = partition::names(cursor)?;
    let filter = if cursor.eat("WHERE") { Some(cursor.expression_text()?) } else { None };
    cursor.expect("TO")?;
    let path = cursor.string("what the files' names begin with, in quotes")?;
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let place = if cursor.eat("WITH") { place(cursor)? } else { Vec::new() };
    Ok(Statement::Export(Box::new(Export {
        table,
        partitions,
        filter,
        path,
        properties: HiddenProperties(properties),
        place: HiddenProperties(place),
        text: HiddenText(cursor.sql().to_owned()),
    })))
}

fn place(cursor: &mut Cursor<'_>) -> Parsed<Vec<(String, String)>> {
    if cursor.eat("S3") {
        return ddl::properties(cursor);
    }
    if cursor.eat("HDFS") {
        return Err(refuse(
            "WITH HDFS",
            "write to a store that has S3's protocol, or to file:///directory/name_",
        ));
    }
    if cursor.eat("BROKER") {
        return Err(refuse("WITH BROKER", "there are no brokers; use WITH S3"));
    }
    Err(cursor.expected("S3"))
}

fn refuse(what: &str, instead: &str) -> tributary_types::SqlError {
    unsupported::refuse(&format!("EXPORT … {what}"), instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Show, ShowFilter};
    use crate::parse;

    #[test]
    fn an_export_has_every_clause() {
        let sql = r#"EXPORT TABLE db.t PARTITION (p1, p2) WHERE a > 1 AND b = 'x' TO "s3://b/p_"
            PROPERTIES ("label" = "l", "format" = "parquet") WITH S3 ("s3.secret_key" = "hush")"#;
        let Statement::Export(export) = parse(sql).expect(sql) else { panic!("{sql}") };
        assert_eq!((export.table.db.as_deref(), export.table.table.as_str()), (Some("db"), "t"));
        assert_eq!(export.partitions, PartitionNames::Named(vec!["p1".into(), "p2".into()]));
        assert_eq!(export.filter.as_deref(), Some("a > 1 AND b = 'x'"));
        assert_eq!(
            (export.path.as_str(), export.properties.0.len(), export.text.0.as_str()),
            ("s3://b/p_", 2, sql)
        );
        assert!(!format!("{export:?}").contains("hush"));
        assert!(parse("EXPORT TABLE t TO 'file:///d/p_'").is_ok());
        for (sql, text) in [
            ("EXPORT TABLE t TO 's3://b/p_' WITH HDFS ('a' = 'b')", "EXPORT … WITH HDFS is not supported"),
            (
                "EXPORT TABLE t TO 's3://b/p_' WITH BROKER 'b' ('a' = 'b')",
                "EXPORT … WITH BROKER is not supported",
            ),
            ("EXPORT TABLE t", "TO"),
            ("EXPORT DATABASE d", "TABLE"),
        ] {
            let error = parse(sql).unwrap_err().to_string();
            assert!(error.contains(text), "{sql}: {error}");
        }
    }

    #[test]
    fn exports_are_shown_by_their_id_too() {
        let Statement::Show(show) =
            parse("SHOW EXPORT FROM d WHERE ID = 5 ORDER BY JobId DESC LIMIT 3").expect("legal")
        else {
            panic!("no SHOW")
        };
        let Show::Export { db: Some(db), tail } = *show else { panic!("{show:?}") };
        let Some(ShowFilter::Where(filter)) = tail.filter else { panic!("{tail:?}") };
        assert_eq!((db.as_str(), filter.to_string().as_str(), tail.limit), ("d", "JobId = 5", Some(3)));
    }
}

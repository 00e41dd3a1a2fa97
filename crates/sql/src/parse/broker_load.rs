//! `LOAD LABEL …`, Doris's Broker Load, and `CANCEL LOAD`.

use crate::ast::{Expr, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::file_calls::{FileCall, FileFunction};
use crate::parse::{ddl, partition, unsupported};
use sqlparser::ast::{BinaryOperator, Value};
use sqlparser::tokenizer::Token;
use std::collections::BTreeMap;
use tributary_types::{ErrorCode, PartitionNames, Sealed, SqlError};

/// `LOAD LABEL [db.]label (DATA INFILE …) WITH … PROPERTIES …`
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerLoad {
    pub db: Option<String>,
    pub label: String,
    pub parts: Vec<DataInfile>,
    /// The location of the files: a function and its properties, without the names of files.
    pub place: FileCall,
    pub properties: Vec<(String, String)>,
    pub comment: String,
    /// The statement, to be read again when the server has started again. It has keys in it.
    pub text: HiddenText,
}

/// A text that may have keys in it: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl std::fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// `DATA INFILE ("uri", …) INTO TABLE t …`
#[derive(Clone, Debug, PartialEq)]
pub struct DataInfile {
    pub files: Vec<String>,
    pub table: String,
    /// Rows of other partitions are rejected.
    pub partitions: PartitionNames,
    /// Properties of the format, by Doris's names.
    pub format: Vec<(String, String)>,
    /// The names of the files' fields; `None`: the table's columns.
    pub columns: Option<Vec<String>>,
    /// Columns and their expressions.
    pub set: Sealed<Vec<(String, Expr)>>,
    /// A condition on the files' fields.
    pub preceding_filter: Option<Sealed<Expr>>,
    /// A condition on the columns.
    pub filter: Option<Sealed<Expr>>,
    pub rows: RowsOf,
    /// Columns whose values are in the files' paths, as `name=value`.
    pub path_columns: Vec<String>,
    /// `ORDER BY`: the column with the rows' sequence.
    pub sequence: Option<String>,
    /// `NEGATIVE`: the rows subtract from sums what an earlier load added.
    pub negative: bool,
}

/// The effect of rows of a load into a table with unique keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowsOf {
    /// They are appended, or replace the rows with their keys.
    #[default]
    Append,
    /// They delete the rows of their keys.
    Delete,
    /// Rows for which a condition, given as text, is true delete the rows with their keys.
    Merge { delete_on: String },
}

/// The jobs that `CANCEL LOAD` or `CANCEL EXPORT` selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsBy {
    Label(String),
    LabelLike(String),
    State(String),
}

pub(crate) fn load(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    cursor.expect("LABEL")?;
    let name = cursor.name()?;
    let parts = cursor.parenthesized(part)?;
    cursor.expect("WITH")?;
    let place = place(cursor)?;
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let comment = if cursor.eat("COMMENT") { cursor.string("a comment in quotes")? } else { String::new() };
    Ok(Statement::BrokerLoad(Box::new(BrokerLoad {
        db: name.db,
        label: name.table,
        parts,
        place,
        properties,
        comment,
        text: HiddenText(cursor.sql().to_owned()),
    })))
}

fn part(cursor: &mut Cursor<'_>) -> Parsed<DataInfile> {
    let word = cursor.eat_any(&["APPEND", "MERGE", "DELETE"]);
    if !cursor.eat_all("DATA INFILE") {
        if cursor.eat_all("DATA FROM TABLE") {
            return Err(refuse("DATA FROM TABLE", "use INSERT INTO … SELECT"));
        }
        return Err(cursor.expected("DATA INFILE"));
    }
    let files = cursor.parenthesized(|cursor| cursor.string("the name of files in quotes"))?;
    let negative = cursor.eat("NEGATIVE");
    cursor.expect("INTO")?;
    cursor.expect("TABLE")?;
    let table = cursor.identifier("a table of the label's database")?;
    let partitions = partition::names(cursor)?;
    let mut part = DataInfile {
        files,
        table,
        partitions,
        format: Vec::new(),
        columns: None,
        set: Sealed::new(Vec::new()),
        preceding_filter: None,
        filter: None,
        rows: RowsOf::Append,
        path_columns: Vec::new(),
        sequence: None,
        negative,
    };
    format(cursor, &mut part)?;
    if *cursor.peek() == Token::LParen {
        part.columns = Some(cursor.parenthesized(|cursor| cursor.identifier("a column"))?);
    }
    if cursor.eat_all("COLUMNS FROM PATH") {
        cursor.expect("AS")?;
        part.path_columns = cursor.parenthesized(|cursor| cursor.identifier("a column"))?;
    }
    if cursor.eat_all("PRECEDING FILTER") {
        part.preceding_filter = Some(Sealed::new(cursor.expr()?));
    }
    if cursor.eat("SET") {
        part.set = Sealed::new(cursor.parenthesized(assignment)?);
    }
    if cursor.eat("WHERE") {
        part.filter = Some(Sealed::new(cursor.expr()?));
    }
    let delete_on = if cursor.eat_all("DELETE ON") { Some(cursor.expression_text()?) } else { None };
    part.rows = rows(word, delete_on)?;
    if cursor.eat_all("ORDER BY") {
        part.sequence = Some(cursor.identifier("the sequence column")?);
    }
    if cursor.eat("PROPERTIES") {
        part.format.extend(ddl::properties(cursor)?);
    }
    Ok(part)
}

fn rows(word: Option<&str>, delete_on: Option<String>) -> Parsed<RowsOf> {
    let wrong = |text: &str| Err(SqlError::detail(ErrorCode::Unknown, text));
    match (word, delete_on) {
        (Some("MERGE"), Some(delete_on)) => Ok(RowsOf::Merge { delete_on }),
        (Some("MERGE"), None) => wrong("Excepted DELETE ON clause when merge type is MERGE."),
        (_, Some(_)) => wrong("Not support DELETE ON clause when merge type is not MERGE."),
        (Some("DELETE"), None) => Ok(RowsOf::Delete),
        (_, None) => Ok(RowsOf::Append),
    }
}

/// How the files are written.
fn format(cursor: &mut Cursor<'_>, part: &mut DataInfile) -> Parsed<()> {
    loop {
        let name = if cursor.eat_all("COLUMNS TERMINATED BY") || cursor.eat_all("FIELDS TERMINATED BY") {
            "column_separator"
        } else if cursor.eat_all("LINES TERMINATED BY") {
            "line_delimiter"
        } else if cursor.eat_all("FORMAT AS") {
            "format"
        } else if cursor.eat_all("COMPRESS_TYPE AS") {
            "compress_type"
        } else {
            return Ok(());
        };
        let text = cursor.identifier_or_string("a text in quotes")?;
        part.format.push((name.to_owned(), text));
    }
}

/// `column = expression`
fn assignment(cursor: &mut Cursor<'_>) -> Parsed<(String, Expr)> {
    let column = cursor.identifier("a column")?;
    cursor.expect_token(&Token::Eq)?;
    Ok((column, cursor.expr()?))
}

fn place(cursor: &mut Cursor<'_>) -> Parsed<FileCall> {
    let function = if cursor.eat("S3") {
        FileFunction::S3
    } else if cursor.eat("LOCAL") {
        FileFunction::Local
    } else if cursor.eat("HDFS") {
        return Err(refuse(
            "WITH HDFS",
            "copy the files to a store that S3 reads, or read them by HTTP() from WebHDFS",
        ));
    } else if cursor.eat("BROKER") {
        return Err(refuse("WITH BROKER", "there are no brokers; use WITH S3"));
    } else {
        return Err(cursor.expected("S3 or LOCAL"));
    };
    let properties = match *cursor.peek() == Token::LParen {
        true => ddl::properties(cursor)?,
        false => Vec::new(),
    };
    let lower = |(name, text): (String, String)| (name.to_ascii_lowercase(), text);
    let properties: BTreeMap<String, String> = properties.into_iter().map(lower).collect();
    Ok(FileCall { function, properties })
}

fn refuse(what: &str, instead: &str) -> SqlError {
    unsupported::refuse(&format!("LOAD LABEL … {what}"), instead)
}

/// `CANCEL LOAD [FROM db] WHERE LABEL = "l"`, and the same of EXPORT.
pub(crate) fn cancel(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.eat("LOAD") {
        let (db, by) = jobs_by(cursor)?;
        return Ok(Statement::CancelLoad { db, by });
    }
    if cursor.eat("EXPORT") {
        let (db, by) = jobs_by(cursor)?;
        return Ok(Statement::CancelExport { db, by });
    }
    if cursor.eat_all("ALTER TABLE") {
        return cancel_alter(cursor);
    }
    if cursor.eat("DECOMMISSION") {
        return super::ddl::decommission(cursor, true);
    }
    Err(unsupported::statement("CANCEL").unwrap_or_else(|| cursor.expected("LOAD or EXPORT")))
}

/// `CANCEL ALTER TABLE COLUMN|ROLLUP|MATERIALIZED VIEW FROM [db.]t [(id, …)]`
fn cancel_alter(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let is_rollup = cursor.eat("ROLLUP") || cursor.eat_all("MATERIALIZED VIEW");
    if !is_rollup && !cursor.eat("COLUMN") {
        return Err(cursor.expected("COLUMN or ROLLUP"));
    }
    cursor.expect("FROM")?;
    let table = cursor.name()?;
    if is_rollup && *cursor.peek() == Token::LParen {
        cursor.parenthesized(|cursor| cursor.number::<u64>("the id of a job"))?;
    }
    Ok(Statement::CancelAlter { table, is_rollup })
}

/// `CLEAN LABEL [l] FROM db`
pub(crate) fn clean_label(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if !cursor.eat("LABEL") {
        return Err(unsupported::statement("CLEAN").unwrap_or_else(|| cursor.expected("LABEL")));
    }
    let is_all = cursor.at_end() || *cursor.peek() == Token::SemiColon || cursor.is_any(&["FROM", "IN"]);
    let label = match is_all {
        true => None,
        false => Some(cursor.identifier_or_string("a label")?),
    };
    let db = if cursor.eat_any(&["FROM", "IN"]).is_some() { Some(cursor.database()?) } else { None };
    Ok(Statement::CleanLabel { db, label })
}

/// `[FROM db] WHERE LABEL = "l"`
fn jobs_by(cursor: &mut Cursor<'_>) -> Parsed<(Option<String>, JobsBy)> {
    let db = if cursor.eat_any(&["FROM", "IN"]).is_some() { Some(cursor.database()?) } else { None };
    cursor.expect("WHERE")?;
    let wrong = cursor.expected("LABEL = \"…\", LABEL LIKE \"…\" or STATE = \"…\"");
    let text = |expr: Expr| match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let column = |expr: Expr| match expr {
        Expr::Identifier(name) => Some(name.value.to_ascii_lowercase()),
        _ => None,
    };
    let (name, is_like, text) = match cursor.expr()? {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => (column(*left), false, text(*right)),
        Expr::Like { negated: false, expr, pattern, escape_char: None, .. } => {
            (column(*expr), true, text(*pattern))
        }
        _ => return Err(wrong),
    };
    let by = match (name.as_deref(), is_like, text) {
        (Some("label"), false, Some(label)) => JobsBy::Label(label),
        (Some("label"), true, Some(pattern)) => JobsBy::LabelLike(pattern),
        (Some("state"), false, Some(state)) => JobsBy::State(state),
        _ => return Err(wrong),
    };
    Ok((db, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn parsed(sql: &str) -> BrokerLoad {
        match parse(sql).expect(sql) {
            Statement::BrokerLoad(load) => *load,
            other => panic!("{sql}\nis {other:?}"),
        }
    }

    #[test]
    fn a_broker_load_has_every_clause() {
        let sql = r#"LOAD LABEL db.l (
                DATA INFILE("s3://b/a*", "s3://b/c") INTO TABLE `t` COLUMNS TERMINATED BY "," LINES TERMINATED BY "\n"
                FORMAT AS "csv" COMPRESS_TYPE AS "gz" (a, `b`, tmp) PRECEDING FILTER tmp > 0 SET (c = tmp + 1, d = now())
                WHERE c > 2 PROPERTIES ("skip_lines" = "1"),
                APPEND DATA INFILE("s3://b/x.parquet") INTO TABLE u
            ) WITH S3 ("AWS_ENDPOINT" = "h:1", "s3.secret_key" = "hush") PROPERTIES ("timeout" = "100") COMMENT "for you""#;
        let load = parsed(sql);
        assert_eq!(
            (load.db.as_deref(), load.label.as_str(), load.comment.as_str()),
            (Some("db"), "l", "for you")
        );
        assert_eq!(load.place.properties["aws_endpoint"], "h:1");
        assert_eq!(load.properties, [("timeout".to_owned(), "100".to_owned())]);
        let part = &load.parts[0];
        assert_eq!((part.files.len(), part.table.as_str(), load.parts[1].table.as_str()), (2, "t", "u"));
        let format: Vec<_> = part.format.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(
            format,
            ["column_separator=,", "line_delimiter=\n", "format=csv", "compress_type=gz", "skip_lines=1"]
        );
        assert_eq!(part.columns.as_deref().map(|columns| columns.join(" ")).as_deref(), Some("a b tmp"));
        assert_eq!(part.set.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c", "d"]);
        assert!(part.filter.is_some() && part.preceding_filter.is_some());
        assert!(!format!("{:?}", load.place).contains("hush"));
    }

    #[test]
    fn rows_may_delete_have_a_sequence_and_values_of_paths() {
        let part = |text: &str| parsed(&format!("LOAD LABEL l ({text}) WITH S3")).parts.remove(0);
        let merge = part(
            r#"MERGE DATA INFILE("s3://b/d=*/a") INTO TABLE t (a, b) COLUMNS FROM PATH AS (d, `e`) SET (c = d) DELETE ON b > 1 AND d = 'x' ORDER BY b"#,
        );
        assert_eq!(merge.rows, RowsOf::Merge { delete_on: "b > 1 AND d = 'x'".to_owned() });
        assert_eq!((merge.path_columns.join(" ").as_str(), merge.sequence.as_deref()), ("d e", Some("b")));
        assert_eq!(part(r#"DELETE DATA INFILE("s3://b/a") INTO TABLE t"#).rows, RowsOf::Delete);
        assert_eq!(part(r#"APPEND DATA INFILE("s3://b/a") INTO TABLE t"#).rows, RowsOf::Append);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let refused = |part: &str, place: &str| {
            parse(&format!("LOAD LABEL l ({part}) WITH {place}")).unwrap_err().to_string()
        };
        let plain = r#"DATA INFILE("s3://b/a") INTO TABLE t"#;
        for (part, place, text) in [
            (plain.to_owned(), r#"HDFS ("a" = "b")"#, "WITH HDFS is not supported"),
            (plain.to_owned(), r#"BROKER "b" ("a" = "b")"#, "WITH BROKER is not supported"),
            (format!("MERGE {plain}"), "S3", "Excepted DELETE ON clause when merge type is MERGE."),
            (
                format!("DELETE {plain} DELETE ON a = 1"),
                "S3",
                "Not support DELETE ON clause when merge type is not MERGE.",
            ),
            (format!("{plain} NEGATIVE"), "S3", "syntax error"),
            (plain.to_owned(), "X", "expected S3 or LOCAL"),
        ] {
            let error = refused(&part, place);
            assert!(error.contains(text), "{part} {place}: {error}");
        }
    }

    #[test]
    fn loads_are_cancelled_by_label_or_state() {
        let by = |rest: &str| match parse(&format!("CANCEL LOAD {rest}")).expect(rest) {
            Statement::CancelLoad { db, by } => (db, by),
            other => panic!("{other:?}"),
        };
        assert_eq!(by(r#"FROM d WHERE LABEL = "l""#), (Some("d".to_owned()), JobsBy::Label("l".to_owned())));
        assert_eq!(by("WHERE label LIKE '%x%'"), (None, JobsBy::LabelLike("%x%".to_owned())));
        assert_eq!(by("WHERE STATE = 'PENDING'"), (None, JobsBy::State("PENDING".to_owned())));
        let clean = |db: Option<&str>, label: Option<&str>| Statement::CleanLabel {
            db: db.map(str::to_owned),
            label: label.map(str::to_owned),
        };
        assert_eq!(parse("CLEAN LABEL l FROM d").unwrap(), clean(Some("d"), Some("l")));
        assert_eq!(parse("CLEAN LABEL 'a-b' FROM d;").unwrap(), clean(Some("d"), Some("a-b")));
        assert_eq!(parse("CLEAN LABEL FROM d").unwrap(), clean(Some("d"), None));
        assert_eq!(parse("CLEAN LABEL").unwrap(), clean(None, None));
        for wrong in [
            "CANCEL LOAD",
            "CLEAN",
            "CLEAN LABEL l x",
            "CANCEL LOAD WHERE a = 'b'",
            "CANCEL LOAD WHERE LABEL > 'b'",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

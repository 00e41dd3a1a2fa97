//! DDL of MySQL that Doris does not have, mapped to what comes nearest.
//!
//! Each mapping is recorded at the cursor ([`Mapped`]). A strict parse refuses the first of them by name; a compatible one applies
//! them all and says what was done. Nothing that changes which rows a table can hold is left out silently.

use crate::ast::{AlterOp, ColumnSpec, CreateTable, IndexSpec, Name, Statement, WithoutEffect};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{types, unsupported};
use crate::table::properties::COLUMNS_MOVED;
use sqlparser::tokenizer::Token;
use tributary_types::data_type::{VARBINARY_BYTES_MAX, VARCHAR_BYTES_MAX};
use tributary_types::{DataType, DefaultValue, ErrorCode, IndexKind, KeyModel, SqlError};

/// With this property, a table without a key clause has no key columns.
const WITHOUT_KEYS: &str = "enable_duplicate_without_keys_by_default";

/// The longest values of MySQL's smaller types of bytes.
const TINYBLOB_BYTES: u32 = 255;
const BLOB_BYTES: u32 = 65_535;

/// A part of a statement that only MySQL has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The part, as the refusal names it.
    pub what: String,
    /// The remedy of the refusal.
    pub instead: String,
    /// The replacement, as a sentence.
    pub note: String,
}

impl Mapped {
    /// The refusal of a strict parse.
    pub(crate) fn refusal(&self) -> SqlError {
        unsupported::refuse(&self.what, &self.instead)
    }
}

/// Keys that are written among the columns.
#[derive(Debug, Default)]
pub(crate) struct WrittenKeys {
    primary: Option<Vec<String>>,
    unique: Vec<Vec<String>>,
    /// Indexes that are kept by their names.
    pub(crate) indexes: Vec<IndexSpec>,
}

/// Leaves a part out.
fn leave_out(cursor: &mut Cursor<'_>, what: &str, instead: &str, because: &str) -> Parsed<()> {
    cursor.map(Mapped {
        what: what.to_owned(),
        instead: instead.to_owned(),
        note: format!("{what} is left out: {because}"),
    })
}

const AFTER_COLUMNS: &str = "leave it out: the table's key is written after the columns";
const NOT_CHECKED: &str = "it is not checked";
const PRUNED: &str = "rows are found by the table's key and by statistics of data files";

/// An item of the column list that is no column: PRIMARY KEY, UNIQUE, KEY, CONSTRAINT, FOREIGN KEY, CHECK. `false` if a column is next.
pub(crate) fn table_item(cursor: &mut Cursor<'_>, keys: &mut WrittenKeys) -> Parsed<bool> {
    let is_key_of = |n: usize| {
        // KEY name (…) and KEY (…), but not a column that is called `key`.
        let ends = |token: &Token| *token == Token::LParen;
        ends(cursor.peek_nth(n)) || ends(cursor.peek_nth(n + 1)) || cursor.is_nth(n + 1, "USING")
    };
    let is_item = match cursor.word().map(str::to_ascii_uppercase).as_deref() {
        Some("KEY" | "INDEX") => is_key_of(1),
        Some("FULLTEXT" | "SPATIAL") => cursor.is_nth(1, "KEY") || cursor.is_nth(1, "INDEX"),
        Some("PRIMARY" | "FOREIGN") => cursor.is_nth(1, "KEY"),
        Some("UNIQUE") => {
            *cursor.peek_nth(1) == Token::LParen
                || cursor.is_nth(1, "KEY")
                || cursor.is_nth(1, "INDEX")
                || is_key_of(1)
        }
        Some("CHECK") => *cursor.peek_nth(1) == Token::LParen,
        Some("CONSTRAINT") => true,
        _ => false,
    };
    if !is_item {
        return Ok(false);
    }
    if cursor.eat("CONSTRAINT") && !cursor.is_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
        cursor.identifier("a constraint's name")?;
    }
    match cursor.eat_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "KEY", "INDEX"]) {
        Some("PRIMARY") => {
            cursor.expect("KEY")?;
            using(cursor)?;
            let columns = key_parts(cursor)?;
            key_options(cursor)?;
            keys.set_primary(cursor, columns)?;
        }
        Some("UNIQUE") => {
            cursor.eat_any(&["KEY", "INDEX"]);
            let columns = named_key_parts(cursor)?;
            key_options(cursor)?;
            keys.add_unique(cursor, columns)?;
        }
        Some("FOREIGN") => {
            cursor.expect("KEY")?;
            named_key_parts(cursor)?;
            references(cursor)?;
            leave_out(cursor, "a constraint among the columns", AFTER_COLUMNS, NOT_CHECKED)?;
        }
        Some("CHECK") => {
            check(cursor)?;
            leave_out(cursor, "a constraint among the columns", AFTER_COLUMNS, NOT_CHECKED)?;
        }
        Some(word) => {
            let is_of_a_kind = matches!(word, "FULLTEXT" | "SPATIAL");
            if is_of_a_kind {
                cursor.eat_any(&["KEY", "INDEX"]);
            }
            let name = key_name(cursor)?;
            let is_kept = is_plain(cursor) && !is_of_a_kind;
            let columns = key_parts(cursor)?;
            key_options(cursor)?;
            match name.filter(|_| is_kept && columns.len() == 1) {
                Some(name) => keys.keep_index(cursor, name, columns)?,
                None => leave_out(cursor, "a KEY among the columns", AFTER_COLUMNS, PRUNED)?,
            }
        }
        None => return Err(cursor.expected("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK")),
    }
    Ok(true)
}

/// `[name] [USING kind] (column[(length)] [ASC|DESC], …)`
fn named_key_parts(cursor: &mut Cursor<'_>) -> Parsed<Vec<String>> {
    key_name(cursor)?;
    key_parts(cursor)
}

/// `[name] [USING kind]`
fn key_name(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    let is_named = *cursor.peek() != Token::LParen && !cursor.is("USING");
    let name = if is_named { Some(cursor.identifier("the name of a key")?) } else { None };
    using(cursor)?;
    Ok(name)
}

/// Whether `(column, …)`, which is next, has whole columns in ascending order.
fn is_plain(cursor: &Cursor<'_>) -> bool {
    for n in 1.. {
        match cursor.peek_nth(n) {
            Token::RParen | Token::EOF => break,
            Token::LParen => return false,
            _ if cursor.is_nth(n, "DESC") => return false,
            _ => {}
        }
    }
    true
}

fn key_parts(cursor: &mut Cursor<'_>) -> Parsed<Vec<String>> {
    cursor.parenthesized(|cursor| {
        let name = cursor.identifier("a key column")?;
        if cursor.eat_token(&Token::LParen) {
            cursor.number::<u32>("a number of characters")?;
            cursor.expect_token(&Token::RParen)?;
        }
        cursor.eat_any(&["ASC", "DESC"]);
        Ok(name)
    })
}

fn using(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.eat("USING") {
        cursor.identifier("a kind of index")?;
    }
    Ok(())
}

/// `[USING kind] [COMMENT '…'] [KEY_BLOCK_SIZE n] [VISIBLE|INVISIBLE]`
fn key_options(cursor: &mut Cursor<'_>) -> Parsed<()> {
    loop {
        using(cursor)?;
        if cursor.eat("COMMENT") {
            cursor.string("a comment in quotes")?;
        } else if cursor.eat("KEY_BLOCK_SIZE") {
            cursor.eat_token(&Token::Eq);
            cursor.number::<u32>("a size")?;
        } else if cursor.eat_any(&["VISIBLE", "INVISIBLE"]).is_none() {
            return Ok(());
        }
    }
}

/// `REFERENCES t (…) [MATCH …] [ON DELETE …] [ON UPDATE …]`
fn references(cursor: &mut Cursor<'_>) -> Parsed<()> {
    cursor.expect("REFERENCES")?;
    cursor.name()?;
    if *cursor.peek() == Token::LParen {
        key_parts(cursor)?;
    }
    loop {
        if cursor.eat("MATCH") {
            cursor.identifier("FULL, PARTIAL or SIMPLE")?;
        } else if cursor.eat_all("ON DELETE") || cursor.eat_all("ON UPDATE") {
            let actions = ["CASCADE", "RESTRICT", "SET NULL", "SET DEFAULT", "NO ACTION"];
            if !actions.iter().any(|action| cursor.eat_all(action)) {
                return Err(cursor.expected("CASCADE, RESTRICT, SET NULL, SET DEFAULT or NO ACTION"));
            }
        } else {
            cursor.eat_any(&["DEFERRABLE"]);
            if !cursor.eat_all("INITIALLY DEFERRED") && !cursor.eat_all("INITIALLY IMMEDIATE") {
                return Ok(());
            }
        }
    }
}

/// `(expression) [[NOT] ENFORCED]`
fn check(cursor: &mut Cursor<'_>) -> Parsed<()> {
    cursor.expect_token(&Token::LParen)?;
    cursor.expr()?;
    cursor.expect_token(&Token::RParen)?;
    let _ = cursor.eat_all("NOT ENFORCED") || cursor.eat("ENFORCED");
    Ok(())
}

impl WrittenKeys {
    pub(crate) fn set_primary(&mut self, cursor: &mut Cursor<'_>, columns: Vec<String>) -> Parsed<()> {
        if self.primary.is_some() {
            return Err(SqlError::new(ErrorCode::MultiplePrimaryKey, "Multiple primary key defined"));
        }
        cursor.map(Mapped {
            what: "PRIMARY KEY among the columns".to_owned(),
            instead: AFTER_COLUMNS.to_owned(),
            note: format!(
                "PRIMARY KEY ({}) is UNIQUE KEY: a row replaces the one of its key",
                columns.join(", ")
            ),
        })?;
        self.primary = Some(columns);
        Ok(())
    }

    fn add_unique(&mut self, cursor: &mut Cursor<'_>, columns: Vec<String>) -> Parsed<()> {
        cursor.map(Mapped {
            what: "UNIQUE KEY among the columns".to_owned(),
            instead: AFTER_COLUMNS.to_owned(),
            note: format!("UNIQUE ({}) is not checked: a table has one key", columns.join(", ")),
        })?;
        self.unique.push(columns);
        Ok(())
    }

    fn keep_index(&mut self, cursor: &mut Cursor<'_>, name: String, columns: Vec<String>) -> Parsed<()> {
        cursor.map(Mapped {
            what: "a KEY among the columns".to_owned(),
            instead: AFTER_COLUMNS.to_owned(),
            note: format!("KEY {name} is kept by its name and does nothing: {PRUNED}"),
        })?;
        self.indexes.push(IndexSpec { may_be_left_out: true, ..kept_index(name, false, columns) });
        Ok(())
    }

    /// Refuses a key where a table gets no key.
    pub(crate) fn expect_none(&self) -> Parsed<()> {
        match &self.primary {
            None => Ok(()),
            Some(columns) => Err(unsupported::refuse(
                &format!("PRIMARY KEY ({}) of an existing table", columns.join(", ")),
                "the key of a table is declared by CREATE TABLE",
            )),
        }
    }

    /// Gives the table the key that was written among its columns, which become the first ones: rows are sorted by them.
    ///
    /// # Errors
    /// Another key was written, too, or a column does not exist.
    pub(crate) fn settle(self, cursor: &mut Cursor<'_>, create: &mut CreateTable) -> Parsed<()> {
        let Some(mut key) = self.primary else { return Ok(()) };
        if create.keys.is_some() {
            return Err(SqlError::new(ErrorCode::MultiplePrimaryKey, "Multiple primary key defined"));
        }
        let place = |name: &str| {
            create.columns.iter().position(|column: &ColumnSpec| column.name.eq_ignore_ascii_case(name))
        };
        for name in &key {
            if place(name).is_none() {
                let text = format!("Key column '{name}' doesn't exist in table");
                return Err(SqlError::new(ErrorCode::KeyColumnMissing, text));
            }
        }
        key.sort_by_key(|name| place(name));
        if (0..key.len()).any(|index| place(&key[index]) != Some(index)) {
            let names = key.join(", ");
            cursor.map(Mapped {
                what: format!("PRIMARY KEY ({names}), which is not of the first columns,"),
                instead: "write the columns of the key first".to_owned(),
                note: format!(
                    "the columns of the key ({names}) are the first of the table; an INSERT has to name its columns"
                ),
            })?;
            let is_key = |column: &ColumnSpec| key.iter().any(|name| column.name.eq_ignore_ascii_case(name));
            create.columns.sort_by_key(|column| !is_key(column));
            create.properties.push((COLUMNS_MOVED.to_owned(), "true".to_owned()));
        }
        for column in &mut create.columns[..key.len()] {
            column.nullable = Some(false);
        }
        create.model = KeyModel::Unique;
        create.keys = Some(key);
        Ok(())
    }
}

/// An option of a column that only MySQL has; `false` if none is next.
pub(crate) fn column_option(cursor: &mut Cursor<'_>, column: &str, keys: &mut WrittenKeys) -> Parsed<bool> {
    let what = |what: &str| format!("column '{column}': {what}");
    if cursor.is("CONSTRAINT") {
        cursor.advance();
        if !cursor.is_any(&["CHECK", "PRIMARY", "UNIQUE", "REFERENCES"]) {
            cursor.identifier("a constraint's name")?;
        }
    }
    if cursor.eat("PRIMARY") {
        cursor.eat("KEY");
        cursor.map(Mapped {
            what: what("PRIMARY KEY or UNIQUE on a column"),
            instead: "use UNIQUE KEY(…) after the columns".to_owned(),
            note: String::new(),
        })?;
        keys.set_primary(cursor, vec![column.to_owned()])?;
    } else if cursor.eat("UNIQUE") {
        cursor.eat("KEY");
        cursor.map(Mapped {
            what: what("PRIMARY KEY or UNIQUE on a column"),
            instead: "use UNIQUE KEY(…) after the columns".to_owned(),
            note: String::new(),
        })?;
        keys.add_unique(cursor, vec![column.to_owned()])?;
    } else if cursor.eat_all("CHARACTER SET") || cursor.eat_any(&["CHARSET", "COLLATE"]).is_some() {
        let name = cursor.identifier_or_string("a character set or a collation")?;
        cursor.map(Mapped {
            what: what("a column's character set or collation"),
            instead: "all text is UTF-8".to_owned(),
            note: format!(
                "column '{column}': {name} is left out: all text is UTF-8 and compared by its bytes"
            ),
        })?;
    } else if cursor.is("REFERENCES") {
        references(cursor)?;
        leave_out(cursor, &what("a constraint"), "leave it out", NOT_CHECKED)?;
    } else if cursor.eat("CHECK") {
        check(cursor)?;
        leave_out(cursor, &what("a constraint"), "leave it out", NOT_CHECKED)?;
    } else if cursor.is_any(&["VISIBLE", "INVISIBLE"]) {
        cursor.advance();
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A table option behind the columns, such as `ENGINE=InnoDB`; `false` if none is next.
pub(crate) fn table_option(cursor: &mut Cursor<'_>) -> Parsed<bool> {
    const NUMBERS_AND_WORDS: [&str; 15] = [
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "COMPRESSION",
        "DELAY_KEY_WRITE",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PAGE_CHECKSUM",
        "ROW_FORMAT",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
    ];
    let at = usize::from(cursor.is("DEFAULT"));
    let is_charset = ["CHARACTER", "CHARSET", "COLLATE"].iter().any(|word| cursor.is_nth(at, word));
    if is_charset {
        cursor.eat("DEFAULT");
        let _ = cursor.eat_all("CHARACTER SET") || cursor.eat_any(&["CHARSET", "COLLATE"]).is_some();
        cursor.eat_token(&Token::Eq);
        cursor.identifier_or_string("a character set or a collation")?;
        leave_out(
            cursor,
            "a table's character set or collation",
            "leave it out: all text is UTF-8",
            "all text is UTF-8",
        )?;
        return Ok(true);
    }
    let Some(name) = cursor.eat_any(&NUMBERS_AND_WORDS) else { return Ok(false) };
    cursor.eat_token(&Token::Eq);
    if matches!(cursor.peek(), Token::Number(..)) {
        cursor.number::<u64>("a number")?;
    } else {
        cursor.identifier_or_string("a value")?;
    }
    leave_out(cursor, &format!("the table option {name}"), "leave it out", "it changes nothing here")?;
    Ok(true)
}

/// `ENGINE=name` of another engine.
pub(crate) fn engine(cursor: &mut Cursor<'_>, engine: &str) -> Parsed<()> {
    leave_out(cursor, &format!("ENGINE={engine}"), "use ENGINE=OLAP", "all tables are of one engine")
}

/// A type that only MySQL has; `None` if none is next.
pub(crate) fn data_type(cursor: &mut Cursor<'_>, column: &str, word: &str) -> Parsed<Option<DataType>> {
    let advance = |cursor: &mut Cursor<'_>, words: usize| (0..words).for_each(|_| cursor.advance());
    let (data_type, instead) = match word {
        "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" => {
            cursor.advance();
            (DataType::String, "STRING")
        }
        "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" => {
            cursor.advance();
            // The length only chooses among MySQL's kinds.
            length(cursor)?;
            (DataType::Varbinary { bytes: blob_bytes(word) }, "VARBINARY")
        }
        "BINARY" => {
            cursor.advance();
            let bytes = length(cursor)?.unwrap_or(1);
            (types::varbinary_of(column, bytes)?, "VARBINARY")
        }
        "ENUM" | "SET" => {
            cursor.advance();
            let values = cursor.parenthesized(|cursor| cursor.string("a value in quotes"))?;
            let longest = match word {
                "ENUM" => values.iter().map(String::len).max().unwrap_or(1),
                _ => values.iter().map(|value| value.len() + 1).sum(),
            };
            let bytes = u32::try_from(longest).unwrap_or(VARCHAR_BYTES_MAX).clamp(1, VARCHAR_BYTES_MAX);
            (DataType::Varchar { bytes }, if word == "SET" { "VARCHAR or JSON" } else { "VARCHAR" })
        }
        "TIMESTAMP" => {
            cursor.advance();
            (DataType::DateTime { scale: types::datetime_scale(cursor, column)? }, "DATETIME")
        }
        "TIME" => {
            cursor.advance();
            (DataType::Time { scale: types::time_scale(cursor, column)? }, "VARCHAR(16) or DATETIME")
        }
        "YEAR" => {
            cursor.advance();
            length(cursor)?;
            (DataType::SmallInt, "SMALLINT")
        }
        "MEDIUMINT" => {
            cursor.advance();
            length(cursor)?;
            (DataType::Int, "INT")
        }
        "BIT" => {
            cursor.advance();
            let data_type =
                if length(cursor)?.unwrap_or(1) == 1 { DataType::Boolean } else { DataType::BigInt };
            (data_type, "BOOLEAN or BIGINT")
        }
        "REAL" | "FLOAT4" if word == "FLOAT4" || cursor.real_is_float() => {
            cursor.advance();
            (DataType::Float, "FLOAT")
        }
        "REAL" | "FLOAT8" => {
            cursor.advance();
            (DataType::Double, "DOUBLE")
        }
        "INT1" | "INT2" | "INT3" | "INT4" | "INT8" | "MIDDLEINT" => {
            cursor.advance();
            length(cursor)?;
            match word {
                "INT1" => (DataType::TinyInt, "TINYINT"),
                "INT2" => (DataType::SmallInt, "SMALLINT"),
                "INT8" => (DataType::BigInt, "BIGINT"),
                _ => (DataType::Int, "INT"),
            }
        }
        "FIXED" | "DEC" => {
            cursor.advance();
            (types::decimal(cursor, column)?, "DECIMAL")
        }
        "UUID" => {
            cursor.advance();
            (DataType::Char { bytes: 36 }, "CHAR(36)")
        }
        "NCHAR" | "NVARCHAR" | "CHARACTER" | "NATIONAL" | "LONG" => {
            let varies = word == "NVARCHAR"
                || word == "LONG"
                || ["VARYING", "VARCHAR"].iter().any(|word| cursor.is_nth(1, word) || cursor.is_nth(2, word));
            advance(cursor, 1);
            while cursor.eat_any(&["VARYING", "VARCHAR", "CHAR", "CHARACTER"]).is_some() {}
            let bytes = length(cursor)?;
            match (varies, bytes) {
                (true, None) => (DataType::String, "STRING"),
                (true, Some(bytes)) => (types::varchar_of(column, bytes)?, "VARCHAR"),
                (false, bytes) => (types::char_of(column, bytes.unwrap_or(1))?, "CHAR"),
            }
        }
        _ => return Ok(None),
    };
    while cursor.eat_any(&["UNSIGNED", "ZEROFILL", "SIGNED"]).is_some() {}
    cursor.map(Mapped {
        what: format!("column '{column}': the type {word}"),
        instead: format!("use {instead}"),
        note: format!("column '{column}': {word} is {data_type}"),
    })?;
    Ok(Some(data_type))
}

const fn blob_bytes(word: &str) -> u32 {
    match word.as_bytes() {
        b"TINYBLOB" => TINYBLOB_BYTES,
        b"BLOB" => BLOB_BYTES,
        _ => VARBINARY_BYTES_MAX,
    }
}

/// UNSIGNED and ZEROFILL: the next wider type.
pub(crate) fn unsigned(
    cursor: &mut Cursor<'_>,
    column: &str,
    data_type: DataType,
    instead: &str,
) -> Parsed<DataType> {
    let mut is_unsigned = false;
    while let Some(word) = cursor.eat_any(&["UNSIGNED", "ZEROFILL", "SIGNED"]) {
        is_unsigned |= word != "SIGNED";
    }
    if !is_unsigned {
        return Ok(data_type);
    }
    let wider = match data_type {
        DataType::TinyInt => DataType::SmallInt,
        DataType::SmallInt => DataType::Int,
        DataType::Int => DataType::BigInt,
        DataType::BigInt => DataType::LargeInt,
        other => other,
    };
    cursor.map(Mapped {
        what: format!("column '{column}': {} UNSIGNED", data_type.base_name()),
        instead: format!("there are no unsigned types, use {instead}"),
        note: format!("column '{column}': {} UNSIGNED is {}", data_type.base_name(), wider),
    })?;
    Ok(wider)
}

/// `FLOAT(p)`, `FLOAT(m, d)` and `DOUBLE(m, d)`, behind the word: of more than 24 bits, FLOAT is DOUBLE.
pub(crate) fn float_digits(cursor: &mut Cursor<'_>, column: &str, data_type: DataType) -> Parsed<DataType> {
    if data_type == DataType::Double && cursor.eat("PRECISION") {
        return Ok(data_type);
    }
    if *cursor.peek() != Token::LParen {
        return Ok(data_type);
    }
    cursor.advance();
    let bits: u32 = cursor.number("a number of bits")?;
    let has_digits = cursor.eat_token(&Token::Comma);
    if has_digits {
        cursor.number::<u32>("a number of digits")?;
    }
    cursor.expect_token(&Token::RParen)?;
    let wide = if !has_digits && bits > 24 { DataType::Double } else { data_type };
    cursor.map(Mapped {
        what: format!("column '{column}': {} with a number of digits", data_type.base_name()),
        instead: "leave the number out".to_owned(),
        note: format!("column '{column}': {}({bits}…) is {}", data_type.base_name(), wide),
    })?;
    Ok(wide)
}

/// An optional `(n)`.
fn length(cursor: &mut Cursor<'_>) -> Parsed<Option<u32>> {
    types::argument(cursor)
}

/// Completes a column of a compatible parse: `AUTO_INCREMENT` is of INT or BIGINT and NOT NULL, and the default of a number is one. A
/// server leaves values out when it starts, so that those of shorter types would soon be used up.
pub(crate) fn complete(cursor: &mut Cursor<'_>, column: &mut ColumnSpec) -> Parsed<()> {
    if let Some(DefaultValue::Literal(text)) = &mut column.default
        && column.data_type.is_integer()
    {
        match text.as_str() {
            "false" => *text = "0".to_owned(),
            "true" => *text = "1".to_owned(),
            _ => {}
        }
    }
    if column.auto_increment.is_none() {
        return Ok(());
    }
    column.nullable = Some(false);
    let is_taken = matches!(column.data_type, DataType::Int | DataType::BigInt);
    column.is_of_mysql = column.data_type == DataType::Int;
    if !is_taken && column.data_type.is_integer() {
        cursor.map(Mapped {
            what: format!("column '{}': AUTO_INCREMENT of {}", column.name, column.data_type),
            instead: "use BIGINT".to_owned(),
            note: format!(
                "column '{}': {} is BIGINT, because it is AUTO_INCREMENT",
                column.name, column.data_type
            ),
        })?;
        column.data_type = DataType::BigInt;
    }
    Ok(())
}

/// Gives a table without a key clause no key columns, so that its first column may be of any type, as in MySQL.
pub(crate) fn without_derived_keys(create: &mut CreateTable) {
    let is_marked = create.columns.iter().any(|column| column.is_key);
    let is_derived =
        create.keys.is_none() && matches!(create.model, KeyModel::Duplicate { .. }) && !is_marked;
    if is_derived && !create.properties.iter().any(|(name, _)| name == WITHOUT_KEYS) {
        create.properties.push((WITHOUT_KEYS.to_owned(), "true".to_owned()));
    }
}

/// Whether `INDEX name (…)`, which is next, is not one of Doris's: it has no `USING` with a kind of Doris's.
pub(crate) fn is_index_of_mysql(cursor: &Cursor<'_>) -> bool {
    let mut depth = 0;
    for n in 1.. {
        match cursor.peek_nth(n) {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => {
                let is_of_doris = |kind: &IndexKind| cursor.is_nth(n + 2, kind.name());
                return !(cursor.is_nth(n + 1, "USING") && IndexKind::ALL.iter().any(is_of_doris));
            }
            Token::RParen => depth -= 1,
            Token::EOF => break,
            _ => {}
        }
    }
    true
}

/// `UNIQUE INDEX name ON t (…)`, behind CREATE: it is left out.
pub(crate) fn create_index_of_a_kind(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let kind = cursor.word().unwrap_or_default().to_ascii_uppercase();
    cursor.advance();
    cursor.advance();
    let because = if kind == "UNIQUE" { NOT_CHECKED } else { PRUNED };
    if !cursor.is_compatible() {
        return Err(unsupported::refuse(
            &format!("CREATE {kind} INDEX"),
            "the key of a table is declared by CREATE TABLE",
        ));
    }
    let WrittenIndex { name, .. } = written_index(cursor)?;
    leave_out(cursor, &format!("{kind} INDEX {name}"), "", because)?;
    Ok(Statement::WithoutEffect(WithoutEffect::LeftOut))
}

/// `name ON t (…)`, behind CREATE INDEX: an index of one column is kept by its name, others are left out.
pub(crate) fn create_index(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let WrittenIndex { name, if_not_exists, table, columns, is_plain } = written_index(cursor)?;
    if columns.len() > 1 || !is_plain {
        leave_out(cursor, &format!("INDEX {name}"), "", PRUNED)?;
        return Ok(Statement::WithoutEffect(WithoutEffect::LeftOut));
    }
    let index = kept_index(name, if_not_exists, columns);
    Ok(Statement::AlterTable { table, ops: vec![AlterOp::AddIndex(index)] })
}

/// An index that is kept by its name.
fn kept_index(name: String, if_not_exists: bool, columns: Vec<String>) -> IndexSpec {
    IndexSpec {
        name,
        if_not_exists,
        may_be_left_out: false,
        columns,
        kind: IndexKind::Inverted,
        properties: Vec::new(),
        comment: String::new(),
    }
}

/// An index as CREATE INDEX of MySQL has it.
struct WrittenIndex {
    name: String,
    if_not_exists: bool,
    table: Name,
    columns: Vec<String>,
    /// It has whole columns, in ascending order.
    is_plain: bool,
}

/// `[IF NOT EXISTS] name [USING kind] ON t (column [(n)] [ASC | DESC], …) [options]`
fn written_index(cursor: &mut Cursor<'_>) -> Parsed<WrittenIndex> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = cursor.identifier("an index name")?;
    using(cursor)?;
    cursor.expect("ON")?;
    let table = cursor.name()?;
    let is_plain = is_plain(cursor);
    let columns = key_parts(cursor)?;
    key_options(cursor)?;
    while cursor.is_any(&["ALGORITHM", "LOCK"]) {
        cursor.advance();
        cursor.eat_token(&Token::Eq);
        cursor.identifier("a value")?;
    }
    Ok(WrittenIndex { name, if_not_exists, table, columns, is_plain })
}

/// Whether an index that is dropped may be missing: with a note, as it may be one that was left out.
pub(crate) fn may_lack_index(cursor: &mut Cursor<'_>, name: &str) -> Parsed<bool> {
    if !cursor.is_compatible() {
        return Ok(false);
    }
    cursor.map(Mapped {
        what: String::new(),
        instead: String::new(),
        note: format!(
            "INDEX {name} is dropped if the table has it: others were left out when they were created"
        ),
    })?;
    Ok(true)
}

/// `INDEX a TO b`, behind RENAME.
pub(crate) fn rename_index(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    cursor.advance();
    let from = cursor.identifier("an index name")?;
    cursor.expect("TO")?;
    let to = cursor.identifier("the index's new name")?;
    cursor.map(Mapped {
        what: "RENAME INDEX".to_owned(),
        instead: "drop it, and add it by its new name".to_owned(),
        note: format!(
            "INDEX {from} is renamed if the table has it: others were left out when they were created"
        ),
    })?;
    Ok(AlterOp::RenameIndex { from, to })
}

/// A clause of ALTER TABLE that only MySQL has; `None` if none is next.
pub(crate) fn alter(cursor: &mut Cursor<'_>) -> Parsed<Option<Vec<AlterOp>>> {
    let left_out = Ok(Some(Vec::new()));
    if cursor.eat("ENGINE") {
        cursor.eat_token(&Token::Eq);
        let name = cursor.identifier_or_string("an engine")?;
        self::engine(cursor, &name)?;
        return left_out;
    }
    if cursor.eat_all("CONVERT TO") {
        if !cursor.eat_all("CHARACTER SET") {
            cursor.expect("CHARSET")?;
        }
        cursor.identifier_or_string("a character set")?;
        if cursor.eat("COLLATE") {
            cursor.identifier_or_string("a collation")?;
        }
        leave_out(
            cursor,
            "CONVERT TO CHARACTER SET",
            "leave it out: all text is UTF-8",
            "all text is UTF-8",
        )?;
        return left_out;
    }
    if cursor.is("ADD") && is_key_clause(cursor, 1) {
        let is_primary = cursor.is_nth(1, "PRIMARY")
            || (cursor.is_nth(1, "CONSTRAINT")
                && (cursor.is_nth(2, "PRIMARY") || cursor.is_nth(3, "PRIMARY")));
        if is_primary {
            return Err(unsupported::refuse(
                "ALTER TABLE … ADD PRIMARY KEY",
                "the key of a table is declared by CREATE TABLE",
            ));
        }
        cursor.advance();
        if !cursor.is_compatible() {
            let word = cursor.word().unwrap_or_default().to_ascii_uppercase();
            return Err(unsupported::refuse(&format!("ALTER TABLE … ADD {word}"), ""));
        }
        let mut keys = WrittenKeys::default();
        table_item(cursor, &mut keys)?;
        return Ok(Some(keys.indexes.into_iter().map(AlterOp::AddIndex).collect()));
    }
    if cursor.is("DROP")
        && ["PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "KEY"].iter().any(|word| cursor.is_nth(1, word))
    {
        let word = match cursor.peek_nth(1) {
            Token::Word(word) => word.value.to_ascii_uppercase(),
            _ => String::new(),
        };
        if word == "PRIMARY" {
            return Err(unsupported::refuse(
                "ALTER TABLE … DROP PRIMARY KEY",
                "create the table again and copy its rows",
            ));
        }
        if !cursor.is_compatible() {
            return Err(unsupported::refuse(&format!("ALTER TABLE … DROP {word}"), ""));
        }
        cursor.advance();
        cursor.advance();
        cursor.eat("KEY");
        cursor.eat_all("IF EXISTS");
        let name = cursor.identifier("a name")?;
        if word == "KEY" {
            let if_exists = may_lack_index(cursor, &name)?;
            return Ok(Some(vec![AlterOp::DropIndex { name, if_exists }]));
        }
        leave_out(cursor, &format!("DROP {word} {name}"), "leave it out", "there is none")?;
        return left_out;
    }
    if ["LOCK", "ALGORITHM"].iter().any(|word| cursor.is(word) && *cursor.peek_nth(1) == Token::Eq) {
        cursor.advance();
        cursor.advance();
        cursor.identifier("a value")?;
        leave_out(cursor, "ALGORITHM or LOCK of ALTER TABLE", "leave it out", "loads go on either way")?;
        return left_out;
    }
    match table_option(cursor)? {
        true => left_out,
        false => Ok(None),
    }
}

/// Whether the word at `n` begins a key or a constraint, and not a column.
fn is_key_clause(cursor: &Cursor<'_>, n: usize) -> bool {
    let is = |word: &str| cursor.is_nth(n, word);
    is("PRIMARY")
        || is("FOREIGN")
        || is("CONSTRAINT")
        || is("CHECK")
        || is("UNIQUE")
        || is("FULLTEXT")
        || is("SPATIAL")
        || is("KEY")
        || (is("INDEX") && cursor.is_compatible() && is_index_of_mysql(cursor))
}

//! Legal names of databases, tables and columns.

use tributary_types::{ErrorCode, PartitionNames, SqlError};

/// The longest name of a database or table, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// The longest name of a column, in characters.
pub const COLUMN_NAME_CHARS_MAX: usize = 256;

const TABLE_REGEX: &str = "^[a-zA-Z_][a-zA-Z0-9-_]{0,63}$";
const COLUMN_REGEX: &str = r"^[_@a-zA-Z0-9\p{L}][.a-zA-Z0-9_+\-/?@#$%^&*:\p{L}]{0,255}$";
/// Prefixes that are reserved for columns made by the server.
const RESERVED_COLUMN_PREFIXES: [&str; 3] = ["__doris_", "mv_", "mva_"];

/// Checks a new database's name.
///
/// # Errors
/// [`ErrorCode::WrongDbName`] with MySQL's text.
pub fn check_database(name: &str) -> Result<(), SqlError> {
    if is_plain(name, |first| first.is_ascii_alphabetic()) {
        return Ok(());
    }
    Err(SqlError::new(ErrorCode::WrongDbName, format!("Incorrect database name '{name}'")))
}

/// Checks a new table's name.
///
/// # Errors
/// [`ErrorCode::WrongTableName`] with Doris's text, which shows the rule.
pub fn check_table(name: &str) -> Result<(), SqlError> {
    if is_plain(name, |first| first.is_ascii_alphabetic() || first == b'_') {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorCode::WrongTableName,
        format!("Incorrect table name '{name}'. Table name regex is '{TABLE_REGEX}'"),
    ))
}

/// Checks a new column's name. Blanks, commas and brackets are refused (Doris takes some of them)
/// because readers of Delta tables do not.
///
/// # Errors
/// [`ErrorCode::WrongColumnName`] with Doris's text, which shows the rule.
pub fn check_column(name: &str) -> Result<(), SqlError> {
    let letter_or_digit = |ch: char| ch.is_ascii_digit() || ch.is_alphabetic();
    let starts_well = name.starts_with(|ch: char| letter_or_digit(ch) || ch == '_' || ch == '@');
    let goes_well = name.chars().all(|ch| letter_or_digit(ch) || "_@.+-/?#$%^&*:".contains(ch));
    if !starts_well || !goes_well || name.chars().count() > COLUMN_NAME_CHARS_MAX {
        return Err(SqlError::new(
            ErrorCode::WrongColumnName,
            format!("Incorrect column name '{name}'. Column regex is '{COLUMN_REGEX}'"),
        ));
    }
    let lower = name.to_lowercase();
    if lower.starts_with(RESERVED_COLUMN_PREFIXES[0]) {
        return Err(SqlError::detail(
            ErrorCode::WrongColumnName,
            format!("Disable to create table column with name start with __DORIS_: {}", name.to_uppercase()),
        ));
    }
    match RESERVED_COLUMN_PREFIXES.iter().find(|prefix| lower.starts_with(*prefix)) {
        Some(prefix) => Err(SqlError::new(
            ErrorCode::WrongColumnName,
            format!(
                "Incorrect column name '{name}': names that begin with '{prefix}' are reserved, choose another"
            ),
        )),
        None => Ok(()),
    }
}

fn is_plain(name: &str, may_begin: impl Fn(u8) -> bool) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    name.len() <= NAME_BYTES_MAX && name.bytes().next().is_some_and(may_begin) && name.bytes().all(legal)
}

/// Separates a table's name from the partitions that a query reads of it, and these from each other; no name contains it.
const MARK: char = '\u{1}';

/// The first of the names that the parser has for `TEMPORARY PARTITION (p, …)`; no partition is called so.
pub const TEMPORARY: &str = "\u{2}";

/// The first of the names that the parser has for `TABLET(n, …)`; no partition is called so.
pub const TABLETS: &str = "\u{3}";

/// The numbers of the tablets that a query names in the place of partitions.
#[must_use]
pub fn tablets(partitions: &PartitionNames) -> Option<&[String]> {
    let (mark, numbers) = partitions.named().split_first()?;
    (mark == TABLETS).then_some(numbers)
}

/// The table called `table` with some of its partitions only, as the planner of queries names it. If the first is
/// [`TEMPORARY`], the others are temporary ones.
#[must_use]
pub fn with_partitions<'p>(table: &str, partitions: impl IntoIterator<Item = &'p str>) -> String {
    let mut name = table.to_owned();
    for partition in partitions {
        name.push(MARK);
        name.push_str(partition);
    }
    name
}

/// Undoes [`with_partitions`].
#[must_use]
pub fn without_partitions(name: &str) -> (&str, PartitionNames) {
    let mut parts = name.split(MARK);
    let table = parts.next().unwrap_or_default();
    let mut partitions: Vec<String> = parts.map(str::to_owned).collect();
    let names = match partitions.first().map(String::as_str) {
        None => PartitionNames::Any,
        Some(TEMPORARY) => PartitionNames::Temporary(partitions.split_off(1)),
        Some(_) => PartitionNames::Named(partitions),
    };
    (table, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_name_begins_with_a_letter_and_has_at_most_64_bytes() {
        for good in ["d", "a-b_1", &"d".repeat(64)] {
            check_database(good).unwrap();
        }
        for bad in ["", "1d", "_d", "a b", "a.b", "dé", "../d", &"d".repeat(65)] {
            assert_eq!(check_database(bad).unwrap_err().code.number(), 1102, "{bad}");
        }
    }

    #[test]
    fn a_wrong_table_name_is_answered_with_the_rule() {
        check_table("_t").unwrap();
        let error = check_table("t$").unwrap_err();
        assert_eq!(error.code.number(), 1103);
        assert_eq!(
            error.message,
            "Incorrect table name 't$'. Table name regex is '^[a-zA-Z_][a-zA-Z0-9-_]{0,63}$'"
        );
    }

    #[test]
    fn a_column_name_may_hold_letters_of_any_language_and_no_blanks_or_commas() {
        for good in ["c", "1c", "_c", "@c", "名前", "a.b", "a-b", "a#b$%"] {
            check_column(good).unwrap();
        }
        for bad in
            ["", ".c", "a b", "a,b", "a(b)", "a=b", "a;b", "__DORIS_DELETE_SIGN__", "mv_x", &"c".repeat(257)]
        {
            assert_eq!(check_column(bad).unwrap_err().code.number(), 1166, "{bad}");
        }
    }
}

//! `RECOVER …`, `DROP CATALOG RECYCLE BIN …`.

use crate::ast::{Name, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use sqlparser::tokenizer::Token;
use tributary_types::{ErrorCode, SqlError};

/// The dropped object to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recover {
    Database(Recovered<String>),
    Table(Recovered<Name>),
    Partition { partition: Recovered<String>, table: Name },
}

/// One object that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered<N> {
    pub name: N,
    /// `None`: the one that was dropped last.
    pub id: Option<u64>,
    /// `AS new_name`
    pub new_name: Option<String>,
}

/// The object to delete from the recycle bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecycledId {
    /// With its tables and partitions.
    Database(u64),
    /// With its partitions.
    Table(u64),
    Partition {
        /// Partitions of several tables may have the same id.
        table: Option<u64>,
        id: u64,
    },
}

/// `RECOVER DATABASE|TABLE|PARTITION name [id] [AS new_name] [FROM table]`
pub(super) fn recover(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let recover = match cursor.eat_any(&["DATABASE", "SCHEMA", "TABLE", "PARTITION"]) {
        Some("TABLE") => Recover::Table(recovered(cursor, Cursor::name)?),
        Some("PARTITION") => {
            let partition = recovered(cursor, |cursor| cursor.identifier_or_string("a partition name"))?;
            cursor.expect("FROM")?;
            Recover::Partition { partition, table: cursor.name()? }
        }
        Some(_) => Recover::Database(recovered(cursor, Cursor::database)?),
        None => return Err(cursor.expected("DATABASE, TABLE or PARTITION")),
    };
    Ok(Statement::Recover(recover))
}

fn recovered<'a, N>(
    cursor: &mut Cursor<'a>,
    name: impl FnOnce(&mut Cursor<'a>) -> Parsed<N>,
) -> Parsed<Recovered<N>> {
    let name = name(cursor)?;
    let id = match cursor.peek() {
        Token::Number(..) => Some(cursor.number("an id")?),
        _ => None,
    };
    let new_name = if cursor.eat("AS") { Some(cursor.identifier("a new name")?) } else { None };
    Ok(Recovered { name, id, new_name })
}

/// `DROP CATALOG RECYCLE BIN WHERE 'DbId'|'TableId'|'PartitionId' = id`; ours: `'TableId' = id AND 'PartitionId' = id`.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("WHERE")?;
    let first = condition(cursor)?;
    let id = match (first, cursor.eat("AND")) {
        (RecycledId::Table(table), true) => match condition(cursor)? {
            RecycledId::Partition { id, .. } => RecycledId::Partition { table: Some(table), id },
            _ => return Err(cursor.expected("'PartitionId' = id")),
        },
        (_, true) => return Err(cursor.expected("the end of the condition")),
        (alone, false) => alone,
    };
    Ok(Statement::DropRecycled(id))
}

fn condition(cursor: &mut Cursor<'_>) -> Parsed<RecycledId> {
    let kind = cursor.identifier_or_string("'DbId', 'TableId' or 'PartitionId'")?;
    cursor.expect_token(&Token::Eq)?;
    let id = cursor.number("an id")?;
    match kind.to_ascii_lowercase().as_str() {
        "dbid" => Ok(RecycledId::Database(id)),
        "tableid" => Ok(RecycledId::Table(id)),
        "partitionid" => Ok(RecycledId::Partition { table: None, id }),
        _ => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("Invalid type: {kind}, allowed values: 'DbId', 'TableId', 'PartitionId'"),
        )),
    }
}

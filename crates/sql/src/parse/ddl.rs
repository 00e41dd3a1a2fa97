//! CREATE, DROP, ALTER and TRUNCATE: databases and tables; views and users have modules of their own.

use crate::ast::{
    AlterOp, ColumnSpec, CreateTable, IndexSpec, Position, ReplacePartitions, Statement, WithoutEffect,
};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::names;
use crate::parse::compat::{Mapped, WrittenKeys};
use crate::parse::partition::PartitionItem;
use crate::parse::{
    compat, create_as, default_value, grant, index, mysql, partition, prepared, recycle, rollup,
    routine_load, schedule, token, types, unsupported, user, view,
};
use sqlparser::tokenizer::Token;
use tributary_types::table::{Buckets, Distribution};
use tributary_types::{ErrorCode, KeyModel, PartitionNames, SqlError};

/// Doris's default for `DISTRIBUTED BY …` without BUCKETS.
const BUCKETS_DEFAULT: u32 = 10;

pub(crate) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.eat_any(&["DATABASE", "SCHEMA"]).is_some() {
        return create_database(cursor);
    }
    if cursor.eat("TABLE") {
        return create_table(cursor, false);
    }
    if cursor.eat_all("TEMPORARY TABLE") {
        return create_table(cursor, true);
    }
    if view::begins(cursor) {
        return view::create(cursor);
    }
    if cursor.eat("USER") {
        return user::create(cursor);
    }
    if cursor.eat("ROLE") {
        return grant::create_role(cursor);
    }
    if cursor.eat("TOKEN") {
        return token::create(cursor);
    }
    if cursor.eat("INDEX") {
        return index::create(cursor);
    }
    if ["UNIQUE", "FULLTEXT", "SPATIAL"].iter().any(|word| cursor.is(word)) && cursor.is_nth(1, "INDEX") {
        return compat::create_index_of_a_kind(cursor);
    }
    if cursor.eat_all("ROUTINE LOAD") {
        return routine_load::create(cursor);
    }
    if cursor.eat("JOB") {
        return schedule::create(cursor);
    }
    Err(unsupported_object(cursor, "CREATE"))
}

/// The error for CREATE, DROP or ALTER of anything else.
fn unsupported_object(cursor: &Cursor<'_>, verb: &str) -> SqlError {
    match cursor.word().map(str::to_ascii_uppercase) {
        Some(word) if word == "MATERIALIZED" => unsupported::refuse(
            &format!("{verb} MATERIALIZED VIEW"),
            "a query reads the tables that it names and no result that was kept of them. Use a view; for sums and the like an \
             AGGREGATE KEY table; for a result that is computed again and again \
             CREATE JOB … ON SCHEDULE EVERY … DO INSERT OVERWRITE TABLE … SELECT",
        ),
        Some(word) => unsupported::refuse(&format!("{verb} {word}"), ""),
        None => cursor.expected("DATABASE, TABLE or USER"),
    }
}

fn create_database(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = cursor.database()?;
    names::check_database(&name)?;
    if cursor.eat("PROPERTIES") {
        properties(cursor)?;
    }
    // mysqldump and tools write these; all text is UTF-8.
    while cursor.eat_any(&["DEFAULT", "CHARACTER", "SET", "CHARSET", "COLLATE"]).is_some() {
        cursor.eat_any(&["CHARACTER", "CHARSET", "COLLATE"]);
        cursor.eat("SET");
        cursor.eat_token(&Token::Eq);
        cursor.identifier_or_string("a character set or collation")?;
    }
    Ok(Statement::CreateDatabase { name, if_not_exists })
}

fn create_table(cursor: &mut Cursor<'_>, is_temporary: bool) -> Parsed<Statement> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let table = cursor.name()?;
    if cursor.eat("LIKE") {
        return create_as::like(cursor, table, if_not_exists, is_temporary);
    }
    let names = create_as::names(cursor)?;
    let has_columns = names.is_none() && *cursor.peek() == Token::LParen && !create_as::begins(cursor);
    let mut keys = WrittenKeys::default();
    let (columns, mut indexes) =
        if has_columns { table_items(cursor, &mut keys)? } else { (Vec::new(), Vec::new()) };
    indexes.append(&mut keys.indexes);
    let mut create = CreateTable {
        table,
        if_not_exists,
        is_temporary,
        columns,
        indexes,
        rollups: Vec::new(),
        keys: None,
        model: KeyModel::Duplicate { declared: true },
        comment: String::new(),
        partition_by: None,
        distribution: None,
        properties: Vec::new(),
    };
    while clause(cursor, &mut create)? {}
    keys.settle(cursor, &mut create)?;
    if create_as::begins(cursor) {
        if has_columns {
            cursor.map(Mapped {
                what: "CREATE TABLE … AS SELECT with types of columns".to_owned(),
                instead: "write the names of the columns alone, they have the types of the query".to_owned(),
                note: String::new(),
            })?;
            compat::without_derived_keys(&mut create);
        }
        return create_as::query(cursor, create, names);
    }
    if !has_columns {
        return Err(cursor.expected("columns with their types, LIKE or AS SELECT"));
    }
    let has_aggregations = create.columns.iter().any(|column| column.aggregation.is_some());
    if create.keys.is_none() && has_aggregations {
        create.model = KeyModel::Aggregate;
    }
    if cursor.is_compatible() {
        compat::without_derived_keys(&mut create);
    }
    Ok(Statement::CreateTable(Box::new(create)))
}

/// `(column, …, INDEX …)`; a comma before the `)` is fine, as in many of Doris's examples.
fn table_items(cursor: &mut Cursor<'_>, keys: &mut WrittenKeys) -> Parsed<(Vec<ColumnSpec>, Vec<IndexSpec>)> {
    cursor.expect_token(&Token::LParen)?;
    let (mut columns, mut indexes) = (Vec::new(), Vec::new());
    loop {
        if index::begins(cursor) && !(cursor.is_compatible() && compat::is_index_of_mysql(cursor)) {
            cursor.advance();
            indexes.push(index::definition(cursor)?);
        } else if !compat::table_item(cursor, keys)? {
            columns.push(types::keyed_column(cursor, keys)?);
        }
        let more = cursor.eat_token(&Token::Comma);
        if cursor.eat_token(&Token::RParen) {
            return Ok((columns, indexes));
        }
        if !more {
            return Err(cursor.expected("',' or ')'"));
        }
    }
}

/// Parses one clause after the columns. `false` if there is none.
fn clause(cursor: &mut Cursor<'_>, create: &mut CreateTable) -> Parsed<bool> {
    if cursor.eat("ENGINE") {
        engine(cursor)?;
    } else if let Some(model) = cursor.eat_any(&["DUPLICATE", "UNIQUE", "AGGREGATE"]) {
        cursor.expect("KEY")?;
        create.model = match model {
            "UNIQUE" => KeyModel::Unique,
            "AGGREGATE" => KeyModel::Aggregate,
            _ => KeyModel::Duplicate { declared: true },
        };
        create.keys = Some(cursor.parenthesized(|cursor| cursor.identifier("a key column"))?);
    } else if cursor.eat("COMMENT") {
        cursor.eat_token(&Token::Eq);
        create.comment = cursor.string("a comment in quotes")?;
    } else if partition::begins(cursor) {
        create.partition_by = Some(partition::by(cursor)?);
    } else if cursor.eat_all("DISTRIBUTED BY") {
        create.distribution = Some(distribution(cursor)?);
    } else if cursor.eat("ROLLUP") {
        create.rollups = rollup::clause(cursor)?;
    } else if cursor.eat("PROPERTIES") {
        create.properties = properties(cursor)?;
    } else if !compat::table_option(cursor)? {
        if cursor.is_compatible() && cursor.eat_token(&Token::Comma) {
            return Ok(true);
        }
        refuse_clause(cursor)?;
        return Ok(false);
    }
    Ok(true)
}

fn refuse_clause(cursor: &Cursor<'_>) -> Parsed<()> {
    let (what, remedy) = match cursor.word().map(str::to_ascii_uppercase).as_deref() {
        Some("PRIMARY") => ("PRIMARY KEY", "use UNIQUE KEY"),
        Some("ORDER" | "CLUSTER") => {
            ("ORDER BY or CLUSTER BY in CREATE TABLE", "rows are sorted by the key columns")
        }
        Some("BROKER") => ("BROKER", "leave it out"),
        _ => return Ok(()),
    };
    Err(unsupported::refuse(what, remedy))
}

fn engine(cursor: &mut Cursor<'_>) -> Parsed<()> {
    cursor.eat_token(&Token::Eq);
    let engine = cursor.identifier_or_string("an engine")?;
    match engine.eq_ignore_ascii_case("olap") {
        true => Ok(()),
        false => compat::engine(cursor, &engine),
    }
}

fn distribution(cursor: &mut Cursor<'_>) -> Parsed<Distribution> {
    if cursor.eat("HASH") {
        let columns = cursor.parenthesized(|cursor| cursor.identifier("a column name"))?;
        return Ok(Distribution::Hash { columns, buckets: buckets(cursor)? });
    }
    cursor.expect("RANDOM").map_err(|_| cursor.expected("HASH or RANDOM"))?;
    Ok(Distribution::Random { buckets: buckets(cursor)? })
}

fn buckets(cursor: &mut Cursor<'_>) -> Parsed<Buckets> {
    if !cursor.eat("BUCKETS") {
        return Ok(Buckets::Count(BUCKETS_DEFAULT));
    }
    if cursor.eat("AUTO") {
        return Ok(Buckets::Auto);
    }
    match cursor.number("a number of buckets or AUTO")? {
        0 => Err(SqlError::detail(
            ErrorCode::Unknown,
            "Buckets number of distribution should be greater than zero.",
        )),
        count => Ok(Buckets::Count(count)),
    }
}

/// `("key" = "value", …)`
pub(super) fn properties(cursor: &mut Cursor<'_>) -> Parsed<Vec<(String, String)>> {
    cursor.parenthesized(|cursor| {
        let key = cursor.identifier_or_string("a property's name in quotes")?;
        cursor.expect_token(&Token::Eq)?;
        Ok((key, property_value(cursor)?))
    })
}

fn property_value(cursor: &mut Cursor<'_>) -> Parsed<String> {
    if let Token::Number(digits, _) = cursor.peek() {
        let digits = digits.clone();
        cursor.advance();
        return Ok(digits);
    }
    cursor.identifier_or_string("a property's value in quotes")
}

pub(crate) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.is("PREPARE") {
        return prepared::deallocate(cursor);
    }
    if cursor.eat("USER") {
        return user::drop(cursor);
    }
    if cursor.eat("ROLE") {
        return grant::drop_role(cursor);
    }
    if cursor.eat("TOKEN") {
        return token::drop(cursor);
    }
    if cursor.eat("VIEW") {
        return view::drop(cursor);
    }
    if cursor.eat("JOB") {
        return schedule::drop(cursor);
    }
    if cursor.eat("INDEX") {
        return index::drop(cursor);
    }
    if cursor.eat_all("CATALOG RECYCLE BIN") {
        return recycle::drop(cursor);
    }
    let is_temporary = (cursor.is_nth(1, "TABLE") || cursor.is_nth(1, "TABLES")) && cursor.eat("TEMPORARY");
    let is_table = cursor.eat_any(&["TABLE", "TABLES"]).is_some();
    if !is_table && cursor.eat_any(&["DATABASE", "SCHEMA"]).is_none() {
        return Err(unsupported_object(cursor, "DROP"));
    }
    let if_exists = cursor.eat_all("IF EXISTS");
    if is_table {
        let mut tables = cursor.list(Cursor::name)?;
        let force = cursor.eat("FORCE");
        // As in MySQL, these words change nothing.
        cursor.eat_any(&["CASCADE", "RESTRICT"]);
        return Ok(match tables.len() {
            1 if !is_temporary => Statement::DropTable { table: tables.remove(0), if_exists, force },
            _ => Statement::DropTables { tables, if_exists, force, only_temporary: is_temporary },
        });
    }
    Ok(Statement::DropDatabase { name: cursor.database()?, if_exists, force: cursor.eat("FORCE") })
}

pub(crate) fn truncate(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    cursor.eat("TABLE");
    let table = cursor.name()?;
    let partitions = partition::names(cursor)?;
    Ok(Statement::TruncateTable { table, partitions, force: cursor.eat("FORCE") })
}

pub(crate) fn alter(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.eat("USER") {
        return user::alter(cursor);
    }
    if cursor.eat("ROLE") {
        return grant::alter_role(cursor);
    }
    if cursor.eat_all("INSTANCE RELOAD TLS") {
        return Ok(Statement::ReloadTls);
    }
    if cursor.is("SYSTEM") && cursor.is_nth(1, "DECOMMISSION") {
        cursor.advance();
        cursor.advance();
        return decommission(cursor, false);
    }
    if cursor.eat_all("ROUTINE LOAD") {
        return routine_load::alter(cursor);
    }
    if cursor.eat("VIEW") {
        return view::alter(cursor);
    }
    if cursor.eat_any(&["DATABASE", "SCHEMA"]).is_some() {
        return mysql::alter_database(cursor);
    }
    if !cursor.eat("TABLE") {
        return Err(unsupported_object(cursor, "ALTER"));
    }
    let table = cursor.name()?;
    let ops: Vec<AlterOp> = cursor.list(alter_ops)?.into_iter().flatten().collect();
    Ok(match ops.is_empty() {
        true => Statement::WithoutEffect(WithoutEffect::LeftOut),
        false => Statement::AlterTable { table, ops },
    })
}

/// `BACKEND 'host:port', …` of DECOMMISSION, and of its cancellation.
pub(crate) fn decommission(cursor: &mut Cursor<'_>, cancels: bool) -> Parsed<Statement> {
    cursor.expect("BACKEND")?;
    let backends = cursor.list(|cursor| cursor.string("'host:port' or the id of a backend"))?;
    Ok(Statement::Decommission { backends, cancels })
}

/// One clause, which may mean several changes, or none in a compatible parse.
fn alter_ops(cursor: &mut Cursor<'_>) -> Parsed<Vec<AlterOp>> {
    if cursor.eat("CHANGE") {
        return change(cursor);
    }
    // Dumps write them around their INSERTs. There are no indexes that slow these down.
    if cursor.eat_all("DISABLE KEYS") || cursor.eat_all("ENABLE KEYS") {
        return Ok(Vec::new());
    }
    if cursor.eat("COMMENT") {
        cursor.eat_token(&Token::Eq);
        let comment = cursor.string("a comment in quotes")?;
        return Ok(vec![AlterOp::ModifyComment { comment }]);
    }
    match compat::alter(cursor)? {
        Some(ops) => Ok(ops),
        None => Ok(vec![alter_op(cursor)?]),
    }
}

/// `[COLUMN] old new type …`, behind CHANGE: a new name, a new definition, or both.
fn change(cursor: &mut Cursor<'_>) -> Parsed<Vec<AlterOp>> {
    cursor.eat("COLUMN");
    let from = cursor.identifier("a column name")?;
    let column = types::column(cursor)?;
    let position = position(cursor)?;
    Ok(vec![AlterOp::ChangeColumn { from, column, position }])
}

fn alter_op(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.is_any(&["ENABLE"]) && cursor.is_nth(1, "FEATURE") {
        return enable_feature(cursor);
    }
    if cursor.eat_all("ORDER BY") {
        let columns = cursor.parenthesized(|cursor| cursor.identifier("a column name"))?;
        refuse_rollup(cursor)?;
        return Ok(AlterOp::OrderBy { columns });
    }
    if cursor.eat("ALTER") {
        return column_default(cursor);
    }
    match cursor.eat_any(&["SET", "ADD", "DROP", "RENAME", "REPLACE", "MODIFY"]) {
        Some("SET") => properties(cursor).map(AlterOp::SetProperties),
        Some("ADD") => add(cursor),
        Some("DROP") => drop_column(cursor),
        Some("RENAME") => rename(cursor),
        Some("REPLACE") => replace_partitions(cursor),
        Some(_) => modify(cursor),
        None => match cursor.word().map(str::to_ascii_uppercase) {
            Some(word) => Err(unsupported::refuse(&format!("ALTER TABLE … {word}"), "")),
            None => Err(cursor.expected("SET, ADD, DROP, RENAME, REPLACE, MODIFY or ORDER BY")),
        },
    }
}

/// `[COLUMN] c SET DEFAULT value` or `[COLUMN] c DROP DEFAULT`, behind ALTER.
fn column_default(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.is_any(&["INDEX", "CHECK", "CONSTRAINT"]) && matches!(cursor.peek_nth(1), Token::Word(_)) {
        let what = cursor.word().unwrap_or_default().to_ascii_uppercase();
        return Err(unsupported::refuse(&format!("ALTER TABLE … ALTER {what}"), ""));
    }
    cursor.eat("COLUMN");
    let name = cursor.identifier("a column name")?;
    if cursor.eat_all("DROP DEFAULT") {
        return Ok(AlterOp::ColumnDefault { name, default: None });
    }
    if !cursor.eat_all("SET DEFAULT") {
        return Err(cursor.expected("SET DEFAULT or DROP DEFAULT"));
    }
    let default = Some(default_value::default_value(cursor)?);
    Ok(AlterOp::ColumnDefault { name, default })
}

/// `ENABLE FEATURE "…" [WITH PROPERTIES (…)]`. The properties are those of a sequence, which can't be added later.
fn enable_feature(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    cursor.expect("ENABLE")?;
    cursor.expect("FEATURE")?;
    let name = cursor.string("a feature in quotes")?.to_ascii_uppercase();
    if cursor.eat("WITH") {
        cursor.expect("PROPERTIES")?;
        let given = properties(cursor)?;
        if name != "SEQUENCE_LOAD"
            && let Some((key, _)) = given.first()
        {
            return Err(unsupported::refuse(
                &format!("the property {key} of the feature {name}"),
                "leave it out",
            ));
        }
    }
    Ok(AlterOp::EnableFeature { name })
}

fn add(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.eat("INDEX") {
        return index::definition(cursor).map(AlterOp::AddIndex);
    }
    if is_rollup(cursor) {
        cursor.advance();
        return rollup::add(cursor);
    }
    let is_temporary = is_temporary_partition(cursor) && cursor.eat("TEMPORARY");
    if let Some(word) = cursor.eat_any(&["PARTITIONS", "PARTITION"]) {
        let (item, if_not_exists) = match word {
            "PARTITIONS" => (partition::steps(cursor)?, false),
            _ => added_partition(cursor)?,
        };
        return Ok(match is_temporary {
            true => AlterOp::AddTemporaryPartitions { item, if_not_exists },
            false => AlterOp::AddPartitions { item, if_not_exists },
        });
    }
    expect_column(cursor, "ADD")?;
    if *cursor.peek() == Token::LParen {
        let mut keys = WrittenKeys::default();
        let items = table_items(cursor, &mut keys)?;
        keys.expect_none()?;
        return match items {
            (columns, indexes) if indexes.is_empty() && keys.indexes.is_empty() => {
                Ok(AlterOp::AddColumns(columns))
            }
            _ => Err(unsupported::refuse("an INDEX among the columns of ADD COLUMN", "use ADD INDEX")),
        };
    }
    let column = types::column(cursor)?;
    let position = position(cursor)?;
    refuse_rollup(cursor)?;
    Ok(AlterOp::AddColumn { column, position })
}

/// After `ADD PARTITION`. Buckets of a partition are its own in Doris and nothing here.
fn added_partition(cursor: &mut Cursor<'_>) -> Parsed<(PartitionItem, bool)> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = cursor.identifier_or_string("a partition name")?;
    let mut item = partition::one(cursor, name)?;
    if cursor.eat_all("DISTRIBUTED BY")
        && let PartitionItem::One { distribution: own, .. } = &mut item
    {
        *own = Some(distribution(cursor)?);
    }
    Ok((item, if_not_exists))
}

/// Whether `TEMPORARY PARTITION` is next.
fn is_temporary_partition(cursor: &Cursor<'_>) -> bool {
    cursor.is("TEMPORARY") && (cursor.is_nth(1, "PARTITION") || cursor.is_nth(1, "PARTITIONS"))
}

/// After `REPLACE`: `PARTITION (p, …) WITH TEMPORARY PARTITION (tp, …) [FORCE] [PROPERTIES (…)]`
fn replace_partitions(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    let only = || refused("Only support replace partitions with temp partitions");
    if cursor.eat_all("WITH TABLE") {
        let with = cursor.identifier("the name of the other table")?;
        let properties = if cursor.eat("PROPERTIES") { properties(cursor)? } else { Vec::new() };
        return Ok(AlterOp::ReplaceTable { with, properties });
    }
    let PartitionNames::Named(names) = partition::names(cursor)? else { return Err(only()) };
    cursor.expect("WITH")?;
    let PartitionNames::Temporary(with) = partition::names(cursor)? else { return Err(only()) };
    // The replaced partitions are deleted either way.
    cursor.eat("FORCE");
    let properties = if cursor.eat("PROPERTIES") { properties(cursor)? } else { Vec::new() };
    Ok(AlterOp::ReplacePartitions(ReplacePartitions { names, with, properties }))
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

/// Takes COLUMN. It may be left out before a name, but not before what else can be altered.
fn expect_column(cursor: &mut Cursor<'_>, verb: &str) -> Parsed<()> {
    const OTHERS: [&str; 11] = [
        "KEY",
        "PARTITION",
        "PARTITIONS",
        "TEMPORARY",
        "ROLLUP",
        "CONSTRAINT",
        "PRIMARY",
        "UNIQUE",
        "FOREIGN",
        "GENERATED",
        "DISTRIBUTION",
    ];
    match cursor.eat("COLUMN") {
        true => Ok(()),
        false if cursor.is_any(&OTHERS) => {
            let what = cursor.word().unwrap_or_default().to_ascii_uppercase();
            Err(unsupported::refuse(&format!("ALTER TABLE … {verb} {what}"), ""))
        }
        false => Ok(()),
    }
}

fn position(cursor: &mut Cursor<'_>) -> Parsed<Option<Position>> {
    if cursor.eat("FIRST") {
        return Ok(Some(Position::First));
    }
    if cursor.eat("AFTER") {
        return cursor.identifier("a column name").map(|name| Some(Position::After(name)));
    }
    Ok(None)
}

/// Whether a rollup is meant, and not a column that is called so and has a type.
fn is_rollup(cursor: &Cursor<'_>) -> bool {
    let ends = |token: &Token| matches!(token, Token::LParen | Token::Comma | Token::SemiColon | Token::EOF);
    cursor.is("ROLLUP") && matches!(cursor.peek_nth(1), Token::Word(_)) && ends(cursor.peek_nth(2))
}

fn refuse_rollup(cursor: &Cursor<'_>) -> Parsed<()> {
    if cursor.is_any(&["TO", "FROM", "IN"]) {
        return Err(unsupported::refuse(
            "ALTER TABLE of a ROLLUP",
            "the columns of a rollup are what ADD ROLLUP says: drop it and add it again",
        ));
    }
    Ok(())
}

fn drop_column(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.eat("INDEX") {
        let if_exists = cursor.eat_all("IF EXISTS");
        let name = cursor.identifier("an index name")?;
        let if_exists = compat::may_lack_index(cursor, &name)? || if_exists;
        return Ok(AlterOp::DropIndex { name, if_exists });
    }
    if is_rollup(cursor) {
        cursor.advance();
        return rollup::drop(cursor);
    }
    let is_temporary = is_temporary_partition(cursor) && cursor.eat("TEMPORARY");
    if cursor.eat("PARTITION") {
        let if_exists = cursor.eat_all("IF EXISTS");
        let name = cursor.identifier_or_string("a partition name")?;
        let force = cursor.eat("FORCE");
        return Ok(match is_temporary {
            true => AlterOp::DropTemporaryPartition { name, if_exists },
            false => AlterOp::DropPartition { name, if_exists, force },
        });
    }
    expect_column(cursor, "DROP")?;
    let name = cursor.identifier("a column name")?;
    refuse_rollup(cursor)?;
    Ok(AlterOp::DropColumn { name })
}

fn rename(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.eat("COLUMN") {
        let from = cursor.identifier("a column name")?;
        cursor.eat("TO");
        return Ok(AlterOp::RenameColumn { from, to: cursor.identifier("the column's new name")? });
    }
    if cursor.is("PARTITION") && matches!(cursor.peek_nth(1), Token::Word(_)) {
        cursor.advance();
        let from = cursor.identifier_or_string("a partition name")?;
        cursor.eat("TO");
        return Ok(AlterOp::RenamePartition {
            from,
            to: cursor.identifier_or_string("the partition's new name")?,
        });
    }
    if cursor.is("ROLLUP") && matches!(cursor.peek_nth(1), Token::Word(_)) {
        cursor.advance();
        let from = cursor.identifier("a rollup name")?;
        cursor.eat("TO");
        return Ok(AlterOp::RenameRollup { from, to: cursor.identifier("the rollup's new name")? });
    }
    if cursor.is_any(&["INDEX", "KEY"]) && cursor.is_nth(2, "TO") {
        return compat::rename_index(cursor);
    }
    cursor.eat_any(&["TO", "AS"]);
    Ok(AlterOp::RenameTable { to: cursor.identifier("the table's new name")? })
}

/// After `MODIFY PARTITION`.
fn modify_partitions(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    let one = |cursor: &mut Cursor<'_>| match cursor.eat_token(&Token::Mul) {
        true => Ok(None),
        false => cursor.identifier_or_string("a partition name").map(Some),
    };
    let names = match cursor.peek() {
        Token::LParen => cursor.parenthesized(one)?,
        _ => vec![one(cursor)?],
    };
    cursor.expect("SET")?;
    let names = names.into_iter().flatten().collect();
    Ok(AlterOp::ModifyPartitions { names, properties: properties(cursor)? })
}

fn modify(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    if cursor.eat("COMMENT") {
        return cursor.string("a comment in quotes").map(|comment| AlterOp::ModifyComment { comment });
    }
    if cursor.eat("PARTITION") {
        return modify_partitions(cursor);
    }
    expect_column(cursor, "MODIFY")?;
    if cursor.is_nth(1, "COMMENT") {
        let name = cursor.identifier("a column name")?;
        cursor.advance();
        return Ok(AlterOp::ModifyColumnComment { name, comment: cursor.string("a comment in quotes")? });
    }
    let column = types::column(cursor)?;
    let position = position(cursor)?;
    refuse_rollup(cursor)?;
    if cursor.is_compatible() {
        // In MySQL, a column may already be as the clause says.
        return Ok(AlterOp::ChangeColumn { from: column.name.clone(), column, position });
    }
    Ok(AlterOp::ModifyColumn { column, position })
}

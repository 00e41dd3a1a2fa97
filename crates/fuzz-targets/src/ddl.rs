//! Statements, above all CREATE and ALTER TABLE.
//!
//! Whatever the text, the parser answers: no panic, no overflow of a stack of
//! [`tributary_sql::STACK_BYTES`], and an error says something. A table that is accepted must be the same
//! when `SHOW CREATE TABLE` is run again, also after ALTER, and every default must be one that
//! loads can fill in.

use tributary_decode::{Target, check_literal};
use tributary_sql::{
    CreateTable, Expr, Statement, apply_alter, parse, parse_expression, parse_query, show_create_table, split,
};
use tributary_types::{
    ColumnId, DbId, DefaultValue, KeyModel, Partitioning, Partitions, TableDef, TableId, TableSchema,
};

/// The table that ALTER TABLE is tried on.
const BASE: &str = "CREATE TABLE t (k INT NOT NULL COMMENT 'key', v VARCHAR(50) NULL DEFAULT 'x', \
     at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), d DECIMAL(10, 2), s STRING) DUPLICATE KEY(k) COMMENT 'text' \
     DISTRIBUTED BY HASH(k) BUCKETS 10 PROPERTIES (\"group_commit_interval_ms\" = \"2000\")";

/// Others, with partitions and generated columns.
const OTHERS: [&str; 4] = [
    "CREATE TABLE t (k INT NOT NULL, g DATE AS (date(at)) NOT NULL, at DATETIME, v VARCHAR(9), h STRING AS (concat(`v`, g)), s INT) \
     DUPLICATE KEY(k) AUTO PARTITION BY RANGE(date_trunc(g, 'day')) () DISTRIBUTED BY HASH(k) BUCKETS 1",
    "CREATE TABLE t (k INT NOT NULL, d DATE) DUPLICATE KEY(k) PARTITION BY RANGE(d) (PARTITION p1 VALUES [('2023-01-01'), ('2024-01-01')), \
     FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) DISTRIBUTED BY HASH(k) BUCKETS 1",
    "CREATE TABLE t (k INT NOT NULL, at DATETIME) DUPLICATE KEY(k) PARTITION BY RANGE(at) () DISTRIBUTED BY HASH(k) BUCKETS 1 \
     PROPERTIES (\"dynamic_partition.time_unit\" = \"DAY\", \"dynamic_partition.end\" = \"3\", \"dynamic_partition.prefix\" = \"p\")",
    "CREATE TABLE t (c VARCHAR(20), k INT) DUPLICATE KEY(c) PARTITION BY LIST(c, k) (PARTITION p1 VALUES IN (('a', '1'), (NULL, '-5')), \
     PARTITION rest) DISTRIBUTED BY HASH(c) BUCKETS 1",
];

/// The bytes are a text of statements.
pub fn ddl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    one(text);
    let pieces = split(text);
    for piece in &pieces {
        assert!(!piece.trim().is_empty(), "an empty statement");
    }
    if pieces.len() > 1 {
        pieces.iter().take(8).for_each(|piece| one(piece));
    }
    walk_expression(parse_expression(text));
    if let Ok(query) = parse_query(text) {
        assert!(!query.ast.to_string().is_empty());
    }
}

fn walk_expression(expr: Result<Expr, tributary_types::SqlError>) {
    match expr {
        Ok(expr) => assert!(!expr.clone().to_string().is_empty()),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn one(text: &str) {
    match parse(text) {
        Ok(Statement::CreateTable(create)) => created(&create),
        Ok(Statement::AlterTable { ops, .. }) => {
            for base in OTHERS.iter().chain([&BASE]) {
                let Ok(Statement::CreateTable(base)) = parse(base) else { panic!("the base table is legal") };
                let mut def = definition(&base).expect("the base table is legal");
                for op in &ops {
                    if let Ok(altered) = apply_alter(&def, op) {
                        check_definition(&altered);
                        def = altered;
                    }
                }
            }
        }
        Ok(statement) => assert_eq!(statement.clone(), statement),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn definition(create: &CreateTable) -> Result<TableDef, tributary_types::SqlError> {
    create.to_def("db", DbId(1), TableId(7))
}

fn created(create: &CreateTable) {
    match definition(create) {
        Ok(def) => check_definition(&def),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn check_definition(def: &TableDef) {
    for column in &def.schema.columns {
        if let Some(DefaultValue::Literal(text)) = &column.default {
            let checked = check_literal(text, column.data_type);
            assert_eq!(checked, Ok(()), "a default that loads cannot fill in, of {}", column.data_type);
        }
    }
    Target::new(&def.clone().into(), None).expect("all columns can be loaded");
    let shown = show_create_table(def);
    let again = match parse(&shown) {
        Ok(Statement::CreateTable(again)) => definition(&again),
        other => panic!("not a table again: {other:?}: {shown}"),
    };
    let again = again.unwrap_or_else(|error| panic!("not legal again: {error}: {shown}"));
    assert_eq!(comparable(&again), comparable(def), "{shown}");
}

/// The definition without the parts that a statement does not contain: ids, versions, old names.
fn comparable(def: &TableDef) -> TableDef {
    let mut columns = def.schema.columns.clone();
    for (column, id) in columns.iter_mut().zip(1..) {
        column.id = tributary_types::ColumnId(id);
        column.physical_name.clone_from(&column.name);
    }
    let new_id = |id: ColumnId| {
        let place = def.schema.index_of_id(id).expect("what is referred to is there");
        ColumnId(place as u32 + 1)
    };
    for generated in columns.iter_mut().filter_map(|column| column.generated.as_mut()) {
        generated.columns.iter_mut().for_each(|id| *id = new_id(*id));
    }
    let mut indexes = def.indexes.clone();
    for id in indexes.iter_mut().flat_map(|index| &mut index.columns) {
        *id = new_id(*id);
    }
    let schema = TableSchema {
        next_column_id: tributary_types::ColumnId(columns.len() as u32 + 1),
        ..TableSchema::new(tributary_types::SchemaVersion(1), columns)
    };
    let location = String::new();
    // Derived keys are printed as a clause.
    let keys = match def.keys {
        KeyModel::Duplicate { .. } => KeyModel::Duplicate { declared: true },
        others => others,
    };
    TableDef {
        schema: schema.into(),
        location,
        keys,
        indexes,
        partitioning: comparable_parts(def),
        ..def.clone()
    }
}

/// The partitions with the ids that they get when they are made in their order, and without properties, which are not shown.
fn comparable_parts(def: &TableDef) -> Partitioning {
    let Some(partitions) = def.partitioning.partitions() else { return Partitioning::None };
    let mut names = std::collections::HashSet::new();
    // The columns' places, as they are numbered above.
    let places = partitions.columns.iter().filter_map(|id| def.schema.index_of_id(*id));
    let columns = places.map(|place| ColumnId(place as u32 + 1)).collect();
    let mut again = Partitions::new(partitions.method, columns);
    again.auto = partitions.auto;
    for partition in &partitions.list {
        assert!(names.insert(partition.name.to_lowercase()), "two partitions are called {}", partition.name);
        again.add(&partition.name, partition.rows.clone(), std::collections::BTreeMap::new());
    }
    Partitioning::By(again.into())
}

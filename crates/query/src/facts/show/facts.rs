//! Rows and texts that SHOW and `information_schema` share.

use crate::model::Cell;
use crate::model::SessionView;
use crate::namespace::Namespace;
use tributary_table::{PartitionFacts, Snapshot, Table};
use tributary_types::table::Buckets;
use tributary_types::{Distribution, Partition, RollupDef, TableDef};

/// Bytes of a table's data files and memtable.
#[must_use]
pub fn table_bytes(snapshot: &Snapshot) -> u64 {
    snapshot.files.iter().map(tributary_table::LiveFile::size_bytes).sum::<u64>() + snapshot.memtable_bytes()
}

/// A table's comment, after what operators should know about it: MySQL tells in this place that a table is damaged.
#[must_use]
pub fn comment(table: &Table) -> String {
    let comment = &table.def().comment;
    match table.trouble() {
        Some(trouble) if comment.is_empty() => trouble,
        Some(trouble) => format!("{trouble}; {comment}"),
        None => comment.clone(),
    }
}

/// A partition of a table as SHOW PARTITIONS has it.
pub struct ShownPartition {
    pub id: u64,
    pub name: String,
    /// The columns that decide; empty in a table without partitions.
    pub key: String,
    pub range: String,
    pub facts: PartitionFacts,
}

/// The partitions of a table; one with the table's own name if it is not partitioned.
#[must_use]
pub fn partitions(snapshot: &Snapshot) -> Vec<ShownPartition> {
    let def = &snapshot.def;
    let Some(partitions) = def.partitioning.partitions() else {
        let (rows, bytes) = (snapshot.rows(), table_bytes(snapshot));
        return vec![ShownPartition {
            id: def.id.0,
            name: def.name.clone(),
            key: String::new(),
            range: String::new(),
            facts: PartitionFacts { rows, bytes, version: snapshot.version },
        }];
    };
    let columns = partitions.columns_of(&def.schema);
    let key = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let shown = |(partition, facts): (&Partition, PartitionFacts)| ShownPartition {
        id: partition.id.0,
        name: partition.name.clone(),
        key: key.clone(),
        range: partition.range_text(&columns),
        facts,
    };
    partitions.list.iter().zip(snapshot.partition_facts()).map(shown).collect()
}

/// Numbers and names of the partitions that [`partitions`] has.
#[must_use]
pub fn partition_names(def: &TableDef) -> Vec<(u64, String)> {
    match def.partitioning.partitions() {
        Some(partitions) => {
            partitions.list.iter().map(|partition| (partition.id.0, partition.name.clone())).collect()
        }
        None => vec![(def.id.0, def.name.clone())],
    }
}

/// Rollups are numbered by their table and, within it, by their numbers, disjoint from light changes.
#[must_use]
pub fn rollup_id(def: &TableDef, rollup: &RollupDef) -> u64 {
    const ROLLUPS_BEGIN: u64 = 500_000;
    def.id.0 * 1_000_000 + ROLLUPS_BEGIN + u64::from(rollup.number)
}

/// A size as Doris shows it: `9.690 MB`, `0.000 `.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["", "KB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.3} {}", UNITS[unit])
}

/// `RANDOM` or the columns that rows are distributed by.
#[must_use]
pub fn distribution_key(def: &TableDef) -> String {
    match &def.distribution {
        Distribution::Hash { columns, .. } => columns.join(", "),
        Distribution::Random { .. } => "RANDOM".to_owned(),
    }
}

#[must_use]
pub const fn distribution_kind(def: &TableDef) -> &'static str {
    match &def.distribution {
        Distribution::Hash { .. } => "HASH",
        Distribution::Random { .. } => "RANDOM",
    }
}

/// The number of buckets; AUTO is 1 on one node.
#[must_use]
pub const fn bucket_count(def: &TableDef) -> i64 {
    match &def.distribution {
        Distribution::Hash { buckets, .. } | Distribution::Random { buckets } => match buckets {
            Buckets::Count(count) => *count as i64,
            Buckets::Auto => 1,
        },
    }
}

/// The types of columns, and the bytes of a value in the memory of a Doris: clients tell the types by their names.
#[must_use]
pub fn data_types() -> Vec<Vec<Cell>> {
    const TYPES: [(&str, i64); 23] = [
        ("ARRAY", 32),
        ("BIGINT", 8),
        ("BITMAP", 16),
        ("BOOLEAN", 1),
        ("CHAR", 16),
        ("DATE", 16),
        ("DATETIME", 16),
        ("DECIMAL128", 16),
        ("DOUBLE", 8),
        ("FLOAT", 4),
        ("HLL", 16),
        ("INT", 4),
        ("IPV4", 4),
        ("IPV6", 16),
        ("JSON", 16),
        ("LARGEINT", 16),
        ("MAP", 24),
        ("SMALLINT", 2),
        ("STRING", 16),
        ("STRUCT", 24),
        ("TINYINT", 1),
        ("VARCHAR", 16),
        ("VARIANT", 24),
    ];
    TYPES.iter().map(|(name, bytes)| vec![(*name).into(), Cell::Int(*bytes)]).collect()
}

/// ENGINE, SUPPORT, COMMENT, TRANSACTIONS, XA, SAVEPOINTS.
#[must_use]
pub fn engines() -> Vec<Vec<Cell>> {
    vec![
        vec![
            "OLAP".into(),
            "YES".into(),
            "Default storage engine".into(),
            "NO".into(),
            "NO".into(),
            "NO".into(),
        ],
        vec![
            "Doris".into(),
            "DEFAULT".into(),
            "Tables on Delta Lake".into(),
            "YES".into(),
            "NO".into(),
            "NO".into(),
        ],
    ]
}

/// Name, default collation, description, bytes of a character.
#[must_use]
pub fn character_sets() -> Vec<Vec<Cell>> {
    let set = |name: &str, collation: &str| -> Vec<Cell> {
        vec![name.into(), collation.into(), "UTF-8 Unicode".into(), Cell::Int(4)]
    };
    vec![set("utf8mb4", "utf8mb4_0900_bin"), set("utf8", "utf8_general_ci")]
}

/// Name, character set, id, default, compiled, sort length.
#[must_use]
pub fn collations() -> Vec<Vec<Cell>> {
    let collation = |name: &str, set: &str, id: i64, default: &str| -> Vec<Cell> {
        vec![name.into(), set.into(), Cell::Int(id), default.into(), "Yes".into(), Cell::Int(1)]
    };
    vec![
        collation("utf8mb4_0900_bin", "utf8mb4", 309, "Yes"),
        collation("utf8mb4_general_ci", "utf8mb4", 45, ""),
        collation("utf8mb4_bin", "utf8mb4", 46, ""),
        collation("utf8_general_ci", "utf8", 33, "Yes"),
    ]
}

/// Connections: `CurrentConnected`, Id, User, Host, `LoginTime`, Catalog, Db, Command, Time, State,
/// `QueryId`, Info, FE.
#[must_use]
pub fn processes(namespace: &dyn Namespace, session: &SessionView) -> Vec<Vec<Cell>> {
    let node = namespace.server_facts().host;
    namespace
        .processes()
        .into_iter()
        .map(|process| {
            vec![
                if process.id == session.connection_id { "Yes" } else { "No" }.into(),
                Cell::Int(i64::from(process.id)),
                process.user.into(),
                process.host.into(),
                process.login_time.into(),
                "internal".into(),
                process.database.unwrap_or_default().into(),
                process.command.into(),
                process.seconds.into(),
                process.state.into(),
                process.query_id.into(),
                process.statement.into(),
                node.as_str().into(),
            ]
        })
        .collect()
}

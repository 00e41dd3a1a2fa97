//! Definitions of tables: columns, keys, distribution and properties.

use crate::data_type::DataType;
use crate::ids::{ColumnId, DbId, SchemaVersion, TableId};
use crate::mode::{GroupCommitMode, RejectPolicy};
use crate::partition::{DropMark, Partitioning, Partitions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A group commits this long after its first load unless the table says otherwise, in ms.
pub const GROUP_COMMIT_INTERVAL_MS_DEFAULT: u64 = 10_000;
/// A group commits at this many bytes unless the table says otherwise (64 MB, the manual's).
pub const GROUP_COMMIT_DATA_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// The property of a table whose rows may each update different columns.
pub const FLEXIBLE_UPDATES: &str = "enable_unique_key_skip_bitmap_column";

/// The property of a table, as Delta Lake calls it, that with `false` has no deletion vectors.
pub const DELETION_VECTORS: &str = "delta.enableDeletionVectors";

/// A table by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableRef {
    pub db: String,
    pub table: String,
}

impl fmt::Display for TableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.table)
    }
}

/// The value of a column that a load does not give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultValue {
    Null,
    /// Text that is converted to the column's type like a field of a load.
    Literal(String),
    /// The load's time, with `scale` digits of a second's fraction.
    CurrentTimestamp {
        scale: u8,
    },
    /// The load's date.
    CurrentDate,
}

/// A column that the server adds to those of the table's definition. Other readers of the data files do not see it, and users see
/// it only by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HiddenColumn {
    /// 1 in a row that deletes the row of its key, else 0.
    DeleteSign,
    /// Decides which row of a key wins, if no column of the table does.
    Sequence,
    /// The columns that a row of a partial update gives, as the text of [`GivenColumns`](crate::GivenColumns). NULL in a row
    /// that gives all. It means nothing any more once the row is settled.
    Given,
}

impl HiddenColumn {
    /// Doris's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeleteSign => "__DORIS_DELETE_SIGN__",
            Self::Sequence => "__DORIS_SEQUENCE_COL__",
            Self::Given => "__DORIS_SKIP_BITMAP_COL__",
        }
    }
}

/// How the values of a column are made into one where rows of equal keys become one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aggregation {
    Sum,
    Min,
    Max,
    /// The last one.
    Replace,
    /// The last one that is not NULL.
    ReplaceIfNotNull,
    /// All numbers of the sets.
    BitmapUnion,
    /// All values of the estimates.
    HllUnion,
}

impl Aggregation {
    pub const ALL: [Self; 7] = [
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Replace,
        Self::ReplaceIfNotNull,
        Self::BitmapUnion,
        Self::HllUnion,
    ];

    /// Doris's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "SUM",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Replace => "REPLACE",
            Self::ReplaceIfNotNull => "REPLACE_IF_NOT_NULL",
            Self::BitmapUnion => "BITMAP_UNION",
            Self::HllUnion => "HLL_UNION",
        }
    }

    /// Whether values of that type can be made into one.
    #[must_use]
    pub const fn takes(self, data_type: DataType) -> bool {
        match self {
            Self::Sum => matches!(
                data_type,
                DataType::TinyInt
                    | DataType::SmallInt
                    | DataType::Int
                    | DataType::BigInt
                    | DataType::LargeInt
                    | DataType::Float
                    | DataType::Double
                    | DataType::Decimal { .. }
            ),
            Self::Min | Self::Max => !matches!(
                data_type,
                DataType::Boolean
                    | DataType::Time { .. }
                    | DataType::Json
                    | DataType::Variant
                    | DataType::Ipv4
                    | DataType::Ipv6
                    | DataType::Nested(_)
                    | DataType::Varbinary { .. }
                    | DataType::Bitmap
                    | DataType::Hll
            ),
            Self::Replace | Self::ReplaceIfNotNull => !data_type.is_state(),
            Self::BitmapUnion => matches!(data_type, DataType::Bitmap),
            Self::HllUnion => matches!(data_type, DataType::Hll),
        }
    }

    /// Whether the last of several values stays.
    #[must_use]
    pub const fn replaces(self) -> bool {
        matches!(self, Self::Replace | Self::ReplaceIfNotNull)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDef {
    pub id: ColumnId,
    /// The name as declared; names are compared without regard to case.
    pub name: String,
    /// The column's name in data files; stays when the column is renamed.
    pub physical_name: String,
    pub data_type: DataType,
    pub nullable: bool,
    pub is_key: bool,
    /// `None`: a load that omits the column gets NULL if it is nullable, else is refused.
    #[serde(default)]
    pub default: Option<DefaultValue>,
    /// The value of rows from before the column was added, if it is not the default: that was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled: Option<DefaultValue>,
    #[serde(default)]
    pub comment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenColumn>,
    /// The aggregation of a value column in a table with AGGREGATE KEY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<Aggregation>,
    /// `ON UPDATE CURRENT_TIMESTAMP`: rows that are updated and do not give the column have its default, the time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_update: bool,
    /// `AUTO_INCREMENT`: rows without a value get one that no row was given before, from this one on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_increment: Option<i64>,
    /// `GENERATED ALWAYS AS (…)`: rows have the value of the expression, and loads do not give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Box<Generated>>,
}

/// The expression of a generated column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// The expression as it was written.
    pub expr: String,
    /// The columns that it refers to, each once.
    pub columns: Vec<ColumnId>,
}

impl ColumnDef {
    /// The hidden column, with this id; the sequence has a type of the table's own.
    #[must_use]
    pub fn hidden(id: u32, what: HiddenColumn, sequence_type: DataType) -> Self {
        let column = |data_type| Self { hidden: Some(what), ..Self::new(id, what.name(), data_type) };
        match what {
            HiddenColumn::DeleteSign => {
                column(DataType::TinyInt).not_null().with_default(DefaultValue::Literal("0".to_owned()))
            }
            HiddenColumn::Sequence => column(sequence_type),
            HiddenColumn::Given => column(DataType::String),
        }
    }

    /// A nullable value column without a default, called the same in data files.
    #[must_use]
    pub fn new(id: u32, name: &str, data_type: DataType) -> Self {
        Self {
            id: ColumnId(id),
            name: name.to_owned(),
            physical_name: name.to_owned(),
            data_type,
            nullable: true,
            is_key: false,
            default: None,
            filled: None,
            comment: String::new(),
            hidden: None,
            aggregation: None,
            on_update: false,
            auto_increment: None,
            generated: None,
        }
    }

    /// Whether the server generates values for rows of a load that come without one.
    #[must_use]
    pub const fn is_filled(&self) -> bool {
        self.auto_increment.is_some() || self.generated.is_some()
    }

    /// Whether a row of a load may have no value of the column.
    #[must_use]
    pub const fn takes_null(&self) -> bool {
        self.nullable || self.is_filled()
    }

    /// The column as a key column; it stays as nullable as it is.
    #[must_use]
    pub fn key(self) -> Self {
        Self { is_key: true, ..self }
    }

    /// The column as `NOT NULL`.
    #[must_use]
    pub fn not_null(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// The value column of a table with AGGREGATE KEY.
    #[must_use]
    pub fn aggregated(self, aggregation: Aggregation) -> Self {
        Self { aggregation: Some(aggregation), ..self }
    }

    /// The value of rows from before the column was added. `None`: NULL.
    #[must_use]
    pub const fn value_of_old_rows(&self) -> Option<&DefaultValue> {
        match &self.filled {
            Some(filled) => Some(filled),
            None => self.default.as_ref(),
        }
    }

    /// The column with a default.
    #[must_use]
    pub fn with_default(self, default: DefaultValue) -> Self {
        Self { default: Some(default), ..self }
    }
}

/// A rollup as it was declared. It is part of the definition and has no data of its own: it changes neither answers nor speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupDef {
    /// Tells it from the other rollups of the table.
    pub number: u32,
    pub name: String,
    /// Key columns first.
    pub columns: Vec<ColumnId>,
    /// How many of the columns are keys.
    pub keys: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<(String, String)>,
    /// When it was added, in milliseconds since 1970; `None`: with its table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at_ms: Option<i64>,
}

/// The kinds of Doris's indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexKind {
    Inverted,
    Bitmap,
    NgramBf,
}

impl IndexKind {
    pub const ALL: [Self; 3] = [Self::Inverted, Self::Bitmap, Self::NgramBf];

    /// Doris's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inverted => "INVERTED",
            Self::Bitmap => "BITMAP",
            Self::NgramBf => "NGRAM_BF",
        }
    }
}

/// An index as it was declared. It is part of the definition only: it changes neither answers nor speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    /// The name as declared; names are compared without regard to case.
    pub name: String,
    pub columns: Vec<ColumnId>,
    pub kind: IndexKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<(String, String)>,
    #[serde(default)]
    pub comment: String,
}

/// The columns of a table at one schema version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    pub version: SchemaVersion,
    /// Hidden columns are last.
    pub columns: Vec<ColumnDef>,
    /// The id that the next added column gets.
    pub next_column_id: ColumnId,
    /// The column whose greatest value decides which row of a key stays. `None`: the last row stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<ColumnId>,
}

impl TableSchema {
    /// A schema of these columns; the next column gets the id behind the greatest.
    #[must_use]
    pub fn new(version: SchemaVersion, columns: Vec<ColumnDef>) -> Self {
        let next_column_id = columns.iter().map(|column| column.id.next()).max().unwrap_or(ColumnId(0));
        Self { version, columns, next_column_id, sequence: None }
    }

    /// The columns of the table's definition.
    #[must_use]
    pub fn visible(&self) -> impl DoubleEndedIterator<Item = &ColumnDef> + Clone {
        self.columns.iter().filter(|column| column.hidden.is_none())
    }

    /// How many columns the table's definition has; they are the first.
    #[must_use]
    pub fn visible_count(&self) -> usize {
        self.visible().count()
    }

    /// The position of a hidden column.
    #[must_use]
    pub fn index_of_hidden(&self, what: HiddenColumn) -> Option<usize> {
        self.columns.iter().position(|column| column.hidden == Some(what))
    }

    /// The position of the column that decides which row of a key stays.
    #[must_use]
    pub fn sequence_index(&self) -> Option<usize> {
        self.index_of_id(self.sequence?)
    }

    /// The position of the column called `name` in any case.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The position of the column with that id.
    #[must_use]
    pub fn index_of_id(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// The Arrow schema of memtable batches: declared names, nullability as declared.
    #[must_use]
    pub fn arrow(&self) -> SchemaRef {
        Arc::new(Schema::new(
            self.columns
                .iter()
                .map(|column| Field::new(&column.name, column.data_type.to_arrow(), column.nullable))
                .collect::<Vec<_>>(),
        ))
    }

    /// The schema of decoded rows, in which values that the server generates may be missing. `None` if there are no such columns.
    #[must_use]
    pub fn as_decoded(&self) -> Option<Self> {
        if !self.columns.iter().any(ColumnDef::is_filled) {
            return None;
        }
        let mut decoded = self.clone();
        decoded.columns.iter_mut().for_each(|column| column.nullable |= column.is_filled());
        Some(decoded)
    }

    /// The columns whose values are computed, with their positions.
    pub fn generated(&self) -> impl Iterator<Item = (usize, &ColumnDef, &Generated)> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(index, column)| Some((index, column, column.generated.as_deref()?)))
    }

    /// The names of the columns that are computed from the column with that id.
    #[must_use]
    pub fn computed_from(&self, id: ColumnId) -> Vec<&str> {
        let refers = self.generated().filter(|(_, _, generated)| generated.columns.contains(&id));
        refers.map(|(_, column, _)| column.name.as_str()).collect()
    }

    /// The schema with the column that rows of partial updates need, as the next version; itself if it has it.
    #[must_use]
    pub fn with_given(&self) -> Self {
        if self.index_of_hidden(HiddenColumn::Given).is_some() {
            return self.clone();
        }
        let mut next = self.clone();
        let id = next.next_column_id;
        next.columns.push(ColumnDef::hidden(id.0, HiddenColumn::Given, DataType::String));
        next.next_column_id = id.next();
        next.version = next.version.next();
        next
    }

    /// The positions of the key columns, in order.
    #[must_use]
    pub fn key_indices(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&index| self.columns[index].is_key).collect()
    }
}

/// One change of a table's columns, which made a schema of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnChange {
    /// The schema that it made.
    pub version: SchemaVersion,
    /// Milliseconds since 1970; `None` if the table is older than this field.
    pub made_at_ms: Option<i64>,
}

/// `DISTRIBUTED BY`. Kept and shown; one node needs no buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    Hash { columns: Vec<String>, buckets: Buckets },
    Random { buckets: Buckets },
}

/// `BUCKETS n` or `BUCKETS AUTO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Buckets {
    Count(u32),
    Auto,
}

/// The treatment of rows with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyModel {
    /// All rows stay; the keys only sort them.
    Duplicate {
        /// `DUPLICATE KEY(…)` was written. Without it the keys were derived, as Doris does.
        declared: bool,
    },
    /// One row per key: the last one to arrive.
    Unique,
    /// One row for each key, which all rows of the key were folded into.
    Aggregate,
}

impl KeyModel {
    /// Doris's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "DUP_KEYS",
            Self::Unique => "UNIQUE_KEYS",
            Self::Aggregate => "AGG_KEYS",
        }
    }

    /// The first words of the clause that declares such a table.
    #[must_use]
    pub const fn clause(self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "DUPLICATE KEY",
            Self::Unique => "UNIQUE KEY",
            Self::Aggregate => "AGGREGATE KEY",
        }
    }

    /// Whether rows supersede earlier ones of the same key.
    #[must_use]
    pub const fn is_unique(self) -> bool {
        matches!(self, Self::Unique)
    }

    /// Whether rows of equal keys are folded into one.
    #[must_use]
    pub const fn is_aggregate(self) -> bool {
        matches!(self, Self::Aggregate)
    }

    /// Whether all rows stay as they are.
    #[must_use]
    pub const fn keeps_all_rows(self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// Properties with an effect, and the others, stored as they were given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableProperties {
    pub group_commit_interval_ms: u64,
    pub group_commit_data_bytes: u64,
    pub group_commit_mode: GroupCommitMode,
    /// `false` makes every load its own transaction (Doris: no Group Commit for such tables).
    pub light_schema_change: bool,
    /// Loads at a time; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_loads: Option<u64>,
    /// Rows that loads bring, per second; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_load_rows_per_second: Option<u64>,
    /// Bytes that loads bring, per second; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_load_bytes_per_second: Option<u64>,
    /// The treatment of loads with rows that can't be loaded, unless they say it themselves.
    #[serde(skip_serializing_if = "RejectPolicy::is_fail")]
    pub rejected_rows: RejectPolicy,
    /// Accepted for compatibility and printed back, without effect on one node.
    pub others: BTreeMap<String, String>,
}

impl TableProperties {
    /// Whether files with superseded or deleted rows are rewritten, for readers without support for deletion vectors.
    #[must_use]
    pub fn copies_on_write(&self) -> bool {
        self.others.get(DELETION_VECTORS).is_some_and(|value| value == "false")
    }
}

impl Default for TableProperties {
    fn default() -> Self {
        Self {
            group_commit_interval_ms: GROUP_COMMIT_INTERVAL_MS_DEFAULT,
            group_commit_data_bytes: GROUP_COMMIT_DATA_BYTES_DEFAULT,
            group_commit_mode: GroupCommitMode::Off,
            light_schema_change: true,
            max_concurrent_loads: None,
            max_load_rows_per_second: None,
            max_load_bytes_per_second: None,
            rejected_rows: RejectPolicy::Fail,
            others: BTreeMap::new(),
        }
    }
}

/// The role of a table, which determines whether statements can name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableRole {
    /// A table of its own, which statements name.
    #[default]
    Own,
    /// It contains the temporary partitions of that table. Statements can't name it.
    Beside(TableId),
    /// It gets its rows before it gets its name. Statements can't name it.
    Unfinished,
}

impl TableRole {
    /// The prefixes of the names of tables that statements can't name. No other name has a dot.
    const BESIDE: &str = "tributary.temporary.";
    const UNFINISHED: &str = "tributary.unfinished.";

    /// Whether statements can name the table.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Own)
    }

    /// The name of a table of this role, which no statement can give to a table; `None` for [`TableRole::Own`].
    #[must_use]
    pub fn name(self, table: TableId) -> Option<String> {
        match self {
            Self::Own => None,
            Self::Beside(of) => Some(format!("{}{of}", Self::BESIDE)),
            Self::Unfinished => Some(format!("{}{table}", Self::UNFINISHED)),
        }
    }

    /// The role of a table of that name, for definitions without roles.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let of = name.strip_prefix(Self::BESIDE).and_then(|id| id.parse().ok());
        match of {
            Some(id) => Self::Beside(TableId(id)),
            None if name.starts_with(Self::UNFINISHED) => Self::Unfinished,
            None => Self::Own,
        }
    }
}

/// A table as the catalog knows it.
///
/// The catalog stores it as JSON: an added field has a default (`#[serde(default)]`), so that the definitions of earlier versions
/// can still be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDef {
    pub id: TableId,
    pub db_id: DbId,
    pub db: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "is_own")]
    pub role: TableRole,
    pub schema: Arc<TableSchema>,
    pub keys: KeyModel,
    #[serde(default)]
    pub partitioning: Partitioning,
    /// The partitions that were dropped for good last, until it is known that the Delta log has lost their rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_mark: Option<Arc<DropMark>>,
    pub distribution: Distribution,
    #[serde(default)]
    pub properties: TableProperties,
    #[serde(default)]
    pub comment: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollups: Vec<RollupDef>,
    /// The path of the Delta table relative to the storage root, with `/` between parts.
    pub location: String,
}

fn is_own(role: &TableRole) -> bool {
    role.is_own()
}

impl TableDef {
    /// A table of these columns with everything else as `CREATE TABLE … DUPLICATE KEY(…)` leaves it.
    #[must_use]
    pub fn new(id: TableId, db: &str, name: &str, schema: TableSchema) -> Self {
        Self {
            id,
            db_id: DbId(1),
            db: db.to_owned(),
            name: name.to_owned(),
            role: TableRole::Own,
            schema: Arc::new(schema),
            keys: KeyModel::Duplicate { declared: true },
            partitioning: Partitioning::None,
            drop_mark: None,
            distribution: Distribution::Random { buckets: Buckets::Auto },
            properties: TableProperties::default(),
            comment: String::new(),
            indexes: Vec::new(),
            rollups: Vec::new(),
            location: format!("{db}/{name}-{id}"),
        }
    }

    /// The partitions before the last drop, if it may not be in the Delta log.
    #[must_use]
    pub fn partitions_before_drop(&self) -> Option<Partitions> {
        Some(self.drop_mark.as_ref()?.before(self.partitioning.partitions()?))
    }

    #[must_use]
    pub fn table_ref(&self) -> TableRef {
        TableRef { db: self.db.clone(), table: self.name.clone() }
    }
}

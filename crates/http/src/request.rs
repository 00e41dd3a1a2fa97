//! A client's request, with its header texts parsed.
//!
//! Not here: whether the table exists, whether an expression is legal, which mode is used.

use std::time::Duration;
use tributary_decode::{BodyFormat, Compression};
use tributary_types::{
    GroupCommitMode, Label, LoadName, PartitionNames, RejectPolicy, Requirement, TableRef, TraceParent, TxnId,
};

/// A load's timeout when the header `timeout` is absent.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);
/// The longest `timeout`, in seconds (three days).
pub const TIMEOUT_SECONDS_MAX: u64 = 259_200;

/// One entry of the header `columns`: a field of the body, or `name = expr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMapping {
    pub name: String,
    /// The expression's text over the other names; `None` for a field of the body.
    pub expr: Option<String>,
}

/// The effect of rows. All but [`MergeType::Append`] require a UNIQUE table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeType {
    #[default]
    Append,
    Delete,
    Merge,
}

/// The merge headers of a load into a table with unique keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeHeaders {
    pub merge_type: MergeType,
    /// The header `delete`: which rows delete the rows of their keys. There with [`MergeType::Merge`] alone.
    pub delete: Option<String>,
    /// `hidden_columns`: fields after those of the table's columns.
    pub hidden_columns: Vec<String>,
    /// `function_column.sequence_col`: the name of the sequence in the load.
    pub sequence_col: Option<String>,
    /// `negative`: the load subtracts from sums what an earlier one added.
    pub negative: bool,
}

/// Treatment of the columns that the rows of a load do not give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// They have their defaults.
    #[default]
    Upsert,
    /// They stay as they are; all rows give the same columns.
    Fixed,
    /// They stay as they are; each row gives the columns that its object has.
    Flexible,
}

/// The columns and rows that a load updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateHeaders {
    /// `unique_key_update_mode`, or `partial_columns`.
    pub mode: UpdateMode,
    /// `partial_update_new_key_behavior: ERROR`: a row whose key is not there fails a partial update.
    pub rejects_new_keys: bool,
}

/// Headers that were given and mean something only on tables of a kind. A service that has no such tables must
/// refuse the load and name the header, never load as if it were not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableHeaders {
    /// The first header that requires a table whose rows change: `negative`, …; with HTTP Stream also those of [`UpdateHeaders`]
    /// and [`MergeHeaders`].
    pub unique: Option<&'static str>,
    /// `partitions` or `temporary_partitions`.
    pub partitions: PartitionNames,
    /// `load_to_single_tablet`: means nothing on one node, and is only for tables with RANDOM distribution.
    pub to_single_tablet: bool,
}

/// A Stream Load: `PUT /api/{db}/{table}/_stream_load`.
#[derive(Clone, Debug)]
pub struct StreamLoadRequest {
    pub db: String,
    pub table: String,
    /// The authenticated user.
    pub user: String,
    pub label: Option<Label>,
    /// The headers by which a repetition of the load is known.
    pub name: Option<LoadName>,
    pub format: BodyFormat,
    /// How the body is packed on the wire, by `Content-Encoding` or `compress_type`.
    /// [`crate::LoadBody`] undoes it.
    pub compression: Compression,
    /// `None`: the table's columns in order.
    pub columns: Option<Vec<ColumnMapping>>,
    /// The header `where`, without the word WHERE.
    pub where_expr: Option<String>,
    /// 0 to 1.
    pub max_filter_ratio: f64,
    /// `None`: no header, the table's property decides.
    pub rejected_rows: Option<RejectPolicy>,
    pub strict_mode: bool,
    /// 1 s to [`TIMEOUT_SECONDS_MAX`], [`TIMEOUT_DEFAULT`] without a header.
    pub timeout: Duration,
    pub timezone: Option<String>,
    pub two_phase_commit: bool,
    /// `None`: no header, the table's property decides.
    pub group_commit: Option<GroupCommitMode>,
    /// The header `group_commit_require`.
    pub required: Option<Requirement>,
    pub update: UpdateHeaders,
    pub merge: MergeHeaders,
    pub table_headers: TableHeaders,
    /// Echoed in the answer.
    pub comment: String,
    /// `None` with chunked transfer encoding.
    pub content_length: Option<u64>,
    pub chunked: bool,
    /// The client's span that has caused it.
    pub trace_parent: Option<TraceParent>,
}

impl StreamLoadRequest {
    /// The table of the URL.
    #[must_use]
    pub fn table_ref(&self) -> TableRef {
        TableRef { db: self.db.clone(), table: self.table.clone() }
    }
}

/// An HTTP Stream: `PUT /api/_http_stream` with the statement in the header `sql`.
#[derive(Clone, Debug)]
pub struct HttpStreamRequest {
    /// `INSERT INTO … SELECT … FROM http_stream(…)`, not yet parsed.
    pub sql: String,
    /// The authenticated user.
    pub user: String,
    /// The header `label`; `WITH LABEL` in the statement is the service's to find.
    pub label: Option<Label>,
    /// As in [`StreamLoadRequest`].
    pub name: Option<LoadName>,
    pub max_filter_ratio: f64,
    /// As in [`StreamLoadRequest`].
    pub rejected_rows: Option<RejectPolicy>,
    pub strict_mode: bool,
    pub timeout: Duration,
    pub timezone: Option<String>,
    pub two_phase_commit: bool,
    pub group_commit: Option<GroupCommitMode>,
    /// As in [`StreamLoadRequest`].
    pub required: Option<Requirement>,
    pub partial_columns: bool,
    pub table_headers: TableHeaders,
    /// From `Content-Encoding` or `compress_type`. The statement's own `compress_type` is the
    /// service's to apply: [`crate::LoadBody::decompress`].
    pub compression: Compression,
    pub comment: String,
    pub content_length: Option<u64>,
    pub chunked: bool,
    /// As in [`StreamLoadRequest`].
    pub trace_parent: Option<TraceParent>,
}

/// The operation on a pre-committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhaseOp {
    Commit,
    Abort,
}

impl TwoPhaseOp {
    /// The word in the header `txn_operation` and in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }
}

/// Identifies a pre-committed transaction. At least one of both is given; if both are, both must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoPhaseTarget {
    pub txn_id: Option<TxnId>,
    pub label: Option<Label>,
}

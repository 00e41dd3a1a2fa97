//! Persisted data of a job: its definition and state in the catalog, and its position with the rows it loaded.
//!
//! Both are JSON that may gain fields with defaults; the number of the format is raised by anything that an older server must not
//! pass over.

use crate::background::record::Envelope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tributary_decode::Counts;
use tributary_http::{MergeHeaders, MergeType};
use tributary_ingest::Progress;
use tributary_ingest::progress::{Ahead, Parts};
use tributary_kafka::Offsets;
use tributary_sql::{Deletes, RoutineLoadClauses};
use tributary_types::{Attachment, DbId, PartitionNames, TableId};

/// The format that this server writes, and the newest that it reads.
const FORMAT: u32 = 3;
/// The format of a job of one table with rules that select its rows and their effect.
const FORMAT_OF_RULES: u32 = 2;
/// The format of a definition that older servers read correctly, too.
const FORMAT_OF_PLAIN: u32 = 1;

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum JobState {
    /// It is to run and has no connection yet.
    NeedSchedule,
    Running,
    Paused,
    Stopped,
    Cancelled,
}

impl JobState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeedSchedule => "NEED_SCHEDULE",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether the job will never run again.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Stopped | Self::Cancelled)
    }

    /// Whether the job should load.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::NeedSchedule | Self::Running)
    }
}

/// Why a job is in its state; the numbers are Doris's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reason {
    pub code: u32,
    pub text: String,
}

impl Reason {
    pub fn internal(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    pub fn paused_by(user: &str) -> Self {
        Self { code: 100, text: format!("User {user} pauses routine load job") }
    }

    pub fn stopped_by(user: &str) -> Self {
        Self { code: 101, text: format!("User {user} stop routine load job") }
    }

    pub fn too_many_errors() -> Self {
        let text = "current error rows is more than max error num or the filter ratio is more than the max";
        Self { code: 102, text: text.to_owned() }
    }

    /// Whether somebody wanted it.
    pub const fn is_by_user(&self) -> bool {
        matches!(self.code, 100 | 101)
    }

    /// As SHOW ROUTINE LOAD has it.
    pub fn shown(&self) -> String {
        format!("ErrorReason{{code=errCode = {}, msg='{}'}}", self.code, self.text)
    }
}

/// The clauses of the statement that made a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Clauses {
    pub column_separator: Option<String>,
    pub columns: Option<Vec<(String, Option<String>)>>,
    pub preceding_filter: Option<String>,
    pub filter: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<String>,
    /// All rows delete the rows of their keys.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deletes: bool,
    /// Rows for which this is true delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
}

impl Clauses {
    /// The oldest format in which all of them are known.
    fn format(&self) -> u32 {
        let is_append = !self.deletes && self.delete_on.is_none() && self.sequence.is_none();
        if is_append && self.partitions.is_empty() { FORMAT_OF_PLAIN } else { FORMAT_OF_RULES }
    }

    /// The effect of rows, as the headers of a Stream Load express it.
    pub fn merge(&self) -> MergeHeaders {
        let merge_type = match (self.deletes, &self.delete_on) {
            (true, _) => MergeType::Delete,
            (false, Some(_)) => MergeType::Merge,
            (false, None) => MergeType::Append,
        };
        MergeHeaders {
            merge_type,
            delete: self.delete_on.clone(),
            hidden_columns: Vec::new(),
            sequence_col: self.sequence.clone(),
            negative: false,
        }
    }

    /// Doris's word for what rows do.
    pub const fn merge_type(&self) -> &'static str {
        match (self.deletes, &self.delete_on) {
            (true, _) => "DELETE",
            (false, Some(_)) => "MERGE",
            (false, None) => "APPEND",
        }
    }

    /// The partitions that rows may be in.
    pub fn partitions(&self) -> PartitionNames {
        match &self.partitions[..] {
            [] => PartitionNames::Any,
            names => PartitionNames::Named(names.to_vec()),
        }
    }
}

impl From<RoutineLoadClauses> for Clauses {
    fn from(clauses: RoutineLoadClauses) -> Self {
        let (deletes, delete_on) = match clauses.deletes {
            None => (false, None),
            Some(Deletes::All) => (true, None),
            Some(Deletes::If(condition)) => (false, Some(condition)),
        };
        Self {
            column_separator: clauses.column_separator,
            columns: clauses.columns,
            preceding_filter: clauses.preceding_filter,
            filter: clauses.filter,
            partitions: clauses.partitions,
            deletes,
            delete_on,
            sequence: clauses.sequence,
        }
    }
}

/// A job's record in the catalog. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// The format of the record that it is in.
    pub format: u32,
    pub name: String,
    pub db: String,
    pub db_id: DbId,
    /// `None`: each message names its table of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableId>,
    /// Its creator and their host: the job loads with their privileges.
    pub user: String,
    pub host: String,
    #[serde(default)]
    pub comment: String,
    #[serde(default)]
    pub clauses: Clauses,
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    #[serde(default)]
    pub source: BTreeMap<String, String>,
    pub state: JobState,
    #[serde(default)]
    pub reason: Option<Reason>,
    pub created_at_ms: i64,
    #[serde(default)]
    pub paused_at_ms: Option<i64>,
    #[serde(default)]
    pub ended_at_ms: Option<i64>,
    /// Raised whenever a statement sets the position: positions of earlier generations are invalid then.
    #[serde(default)]
    pub generation: u64,
    /// The start of this generation.
    #[serde(default)]
    pub start: Offsets,
    /// Tables that are further at its start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Ahead>,
    /// The statistics at its start, if no load has stored any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
}

impl Definition {
    pub const KIND: &str = "routine_load";

    /// The oldest format in which a job with these clauses, of one table or of many, is read rightly.
    pub fn format_of(clauses: &Clauses, is_of_many: bool) -> u32 {
        if is_of_many { FORMAT } else { clauses.format() }
    }

    /// Whether each message names its table.
    pub const fn is_of_many(&self) -> bool {
        self.table.is_none()
    }

    /// Starts a generation: whatever positions say, the job continues here.
    pub fn begin_generation(&mut self, progress: Progress, statistics: Option<Statistics>) {
        let Parts { offsets, ahead } = progress.into();
        (self.start, self.ahead, self.statistics) = (offsets, ahead, statistics);
        self.generation += 1;
    }

    pub fn written(&self) -> String {
        Envelope::written(Self::KIND, self.format, self)
    }

    /// The newest format that is read.
    pub const FORMAT: u32 = FORMAT;
}

/// A job's statistics since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Statistics {
    pub received_bytes: u64,
    pub total_rows: u64,
    pub loaded_rows: u64,
    pub error_rows: u64,
    pub unselected_rows: u64,
    pub committed_tasks: u64,
    pub task_ms: u64,
}

impl Statistics {
    /// With rows, and the bytes that they were in.
    pub const fn plus(self, rows: Counts, bytes: u64) -> Self {
        Self {
            received_bytes: self.received_bytes + bytes,
            total_rows: self.total_rows + rows.total,
            loaded_rows: self.loaded_rows + rows.loaded,
            error_rows: self.error_rows + rows.filtered,
            unselected_rows: self.unselected_rows + rows.unselected,
            ..self
        }
    }

    /// With a task that is committed as a whole.
    pub const fn with_task(self, task_ms: u64) -> Self {
        Self { committed_tasks: self.committed_tasks + 1, task_ms: self.task_ms + task_ms, ..self }
    }
}

/// A job's position: becomes durable with the rows before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Position {
    pub generation: u64,
    pub offsets: Offsets,
    /// Tables that have more than that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Ahead>,
    pub statistics: Statistics,
}

impl Position {
    pub fn new(generation: u64, progress: Progress, statistics: Statistics) -> Self {
        let Parts { offsets, ahead } = progress.into();
        Self { generation, offsets, ahead, statistics }
    }

    /// # Errors
    /// It has too many partitions to be stored.
    pub fn written(&self) -> Result<Attachment, String> {
        let text = serde_json::to_vec(self).expect("a position is a plain struct of numbers");
        Attachment::new(&text).map_err(|error| error.to_string())
    }

    pub fn read(kept: &Attachment) -> Result<Self, String> {
        serde_json::from_slice(kept.bytes()).map_err(|error| error.to_string())
    }
}

/// The progress of the tables in the source since a statement last set the position.
pub(crate) fn progress(definition: &Definition, position: Option<&Position>) -> Progress {
    let mut parts = Parts { offsets: definition.start.clone(), ahead: definition.ahead.clone() };
    if let Some(position) = position.filter(|position| position.generation == definition.generation) {
        parts.offsets.extend(position.offsets.iter().map(|(partition, offset)| (*partition, *offset)));
        parts.ahead.clone_from(&position.ahead);
    }
    parts.into()
}

/// The job's statistics.
pub(crate) fn statistics(definition: &Definition, position: Option<&Position>) -> Statistics {
    let is_current = |position: &&Position| position.generation == definition.generation;
    let current = position.filter(is_current).map(|position| position.statistics);
    current.or(definition.statistics).or(position.map(|position| position.statistics)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::record::Unreadable;
    use tributary_catalog::JobRecord;
    use tributary_types::SourceId;

    fn definition() -> Definition {
        Definition {
            format: FORMAT_OF_PLAIN,
            name: "j".to_owned(),
            db: "d".to_owned(),
            db_id: DbId(1),
            table: Some(TableId(2)),
            user: "root".to_owned(),
            host: "127.0.0.1".to_owned(),
            comment: "why".to_owned(),
            clauses: Clauses {
                columns: Some(vec![("k".to_owned(), Some("a + 1".to_owned()))]),
                ..Clauses::default()
            },
            properties: [("format".to_owned(), "json".to_owned())].into(),
            source: [("kafka_topic".to_owned(), "t".to_owned())].into(),
            state: JobState::Paused,
            reason: Some(Reason::too_many_errors()),
            created_at_ms: 1_700_000_000_000,
            paused_at_ms: Some(1_700_000_000_001),
            ended_at_ms: None,
            generation: 3,
            start: [(0, 17), (1, 0)].into(),
            ahead: Vec::new(),
            statistics: None,
        }
    }

    fn read(text: &str) -> Result<Definition, Unreadable> {
        let id = SourceId(7);
        Envelope::read(&JobRecord { id, definition: text.to_owned() })?.body_of(id)
    }

    /// Definitions are as older servers wrote them, without an envelope.
    #[test]
    fn definitions_and_positions_are_written_and_read_as_the_golden_files_say() {
        let golden = include_str!("golden/definition-1.json").trim();
        assert_eq!(read(golden).unwrap(), definition());
        assert_eq!(read(&definition().written()).unwrap(), definition());
        let clauses = Clauses {
            partitions: vec!["p1".to_owned()],
            delete_on: Some("op = 'd'".to_owned()),
            sequence: Some("n".to_owned()),
            ..definition().clauses
        };
        let merging = Definition { format: clauses.format(), clauses, ..definition() };
        let golden_of_merging = include_str!("golden/definition-2.json").trim();
        assert_eq!(read(&merging.written()).unwrap(), merging);
        assert_eq!(read(golden_of_merging).unwrap(), merging);
        let ahead = vec![Ahead { tables: vec![TableId(7), TableId(9)], offsets: [(0, 19)].into() }];
        let clauses = Clauses::default();
        let of_many = Definition {
            format: Definition::format_of(&clauses, true),
            table: None,
            clauses,
            ahead: ahead.clone(),
            statistics: Some(Statistics { error_rows: 1, ..Statistics::default() }),
            ..definition()
        };
        let golden_of_many = include_str!("golden/definition-3.json").trim();
        assert_eq!(read(&of_many.written()).unwrap(), of_many);
        assert_eq!(read(golden_of_many).unwrap(), of_many);
        let position = Position {
            generation: 3,
            offsets: [(0, 20), (2, 5)].into(),
            ahead: Vec::new(),
            statistics: Statistics { total_rows: 8, loaded_rows: 7, error_rows: 1, ..Statistics::default() },
        };
        let golden = include_str!("golden/position-1.json").trim();
        assert_eq!(position.written().unwrap().bytes(), golden.as_bytes());
        let kept = Attachment::new(golden.as_bytes()).unwrap();
        assert_eq!(Position::read(&kept).unwrap(), position);
        assert_eq!(progress(&definition(), Some(&position)).offsets(), &[(0, 20), (1, 0), (2, 5)].into());
        let uneven = Position { ahead, offsets: [(0, 18)].into(), ..position.clone() };
        let golden = include_str!("golden/position-2.json").trim();
        assert_eq!(uneven.written().unwrap().bytes(), golden.as_bytes());
        assert_eq!(Position::read(&Attachment::new(golden.as_bytes()).unwrap()).unwrap(), uneven);
        let found = progress(&of_many, Some(&uneven));
        assert!(
            found.has(TableId(9), 0, 18) && !found.has(TableId(9), 0, 19) && !found.has(TableId(8), 0, 18)
        );
        assert_eq!(statistics(&of_many, Some(&uneven)).total_rows, 8);
        let before = Position { generation: 2, ..position };
        assert_eq!(progress(&definition(), Some(&before)).offsets(), &[(0, 17), (1, 0)].into());
        assert_eq!(statistics(&definition(), Some(&before)).total_rows, 8, "what was done stays done");
        assert_eq!(statistics(&of_many, Some(&before)), of_many.statistics.unwrap());
        assert!(progress(&of_many, Some(&before)).has(TableId(7), 0, 18));
    }
}

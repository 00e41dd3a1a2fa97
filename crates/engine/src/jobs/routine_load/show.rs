//! SHOW and `information_schema` of jobs, with Doris's columns.

use super::job::Job;
use super::kept::{Definition, JobState, Reason};
use super::properties::{self, Limits, wrong};
use crate::jobs::ServerJobs;
use crate::node::clock::date_time;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_kafka::Offsets;
use tributary_query::{Cell, Grid};
use tributary_sql::Show;
use tributary_types::{ErrorCode, Principal, SqlError, TableRef, TxnId};

const JOB_COLUMNS: [&str; 22] = [
    "Id",
    "Name",
    "CreateTime",
    "PauseTime",
    "EndTime",
    "DbName",
    "TableName",
    "IsMultiTable",
    "State",
    "DataSourceType",
    "CurrentTaskNum",
    "JobProperties",
    "DataSourceProperties",
    "CustomProperties",
    "Statistic",
    "Progress",
    "Lag",
    "ReasonOfStateChanged",
    "ErrorLogUrls",
    "OtherMsg",
    "User",
    "Comment",
];
const TASK_COLUMNS: [&str; 9] = [
    "TaskId",
    "TxnId",
    "TxnStatus",
    "JobId",
    "CreateTime",
    "ExecuteStartTime",
    "Timeout",
    "BeId",
    "DataSourceProperties",
];

impl ServerJobs {
    /// Answers the SHOW statements of jobs.
    ///
    /// # Errors
    /// No database selected, or no such job.
    pub(crate) fn show_jobs(
        &self,
        principal: &Principal,
        session_db: Option<&str>,
        show: &Show,
    ) -> Result<Grid, SqlError> {
        match show {
            Show::RoutineLoad { history, job: Some(name), .. } => {
                let TableRef { db, table: name } = name.resolve(session_db)?;
                let jobs = self.shown(principal, &db, *history);
                let named: Vec<_> = jobs.into_iter().filter(|job| job.kept().name == name).collect();
                if named.is_empty() {
                    return Err(wrong(format!(
                        "There is no running job named {name} in db {db}. Include history? {history}, you can try `show all \
                         routine load for job_name` if you want to list stopped and cancelled jobs"
                    )));
                }
                Ok(self.job_rows(&named))
            }
            Show::RoutineLoad { history, db, .. } => {
                let db = db.as_deref().or(session_db);
                let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
                Ok(self.job_rows(&self.shown(principal, db, *history)))
            }
            Show::RoutineLoadTask { job } => Ok(self.task_rows(&*self.job(principal, session_db, job)?)),
            Show::CreateRoutineLoad { job } => {
                let job = self.job(principal, session_db, job)?;
                let (kept, statement) = (job.kept(), self.create_statement(&job));
                Ok(Grid::new(&["JobId", "JobName", "CreateStmt"]).with_row(vec![
                    job.id.to_string().into(),
                    kept.name.as_str().into(),
                    statement.into(),
                ]))
            }
            _ => Err(wrong("internal error: this SHOW is not one of jobs")),
        }
    }

    fn shown(&self, principal: &Principal, db: &str, history: bool) -> Vec<Arc<Job>> {
        let jobs = self.routine.of_db(db).into_iter();
        jobs.filter(|job| history || !job.kept().state.is_final())
            .filter(|job| self.may_load(principal, job).is_ok())
            .collect()
    }

    /// The jobs of a database that the principal may see, for `information_schema`.
    pub(crate) fn routine_job_rows(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let row = |job: &Arc<Job>| {
            let (shown, kept) = (self.job_row(job), job.kept());
            let by_itself = kept.reason.as_ref().is_some_and(|reason| !reason.is_by_user());
            let column = |name: &str| {
                let at = JOB_COLUMNS.iter().position(|known| *known == name);
                at.map_or(Cell::Null, |at| shown[at].clone())
            };
            let mut row: Vec<Cell> = [
                "Id",
                "Name",
                "CreateTime",
                "PauseTime",
                "EndTime",
                "DbName",
                "TableName",
                "State",
                "CurrentTaskNum",
                "JobProperties",
                "DataSourceProperties",
                "CustomProperties",
                "Statistic",
                "Progress",
                "Lag",
                "ReasonOfStateChanged",
                "ErrorLogUrls",
                "User",
            ]
            .map(column)
            .into();
            row.push(job.now().aborted_tasks.into());
            row.push((kept.state == JobState::Paused && by_itself).to_string().into());
            row
        };
        self.shown(principal, db, true).iter().map(row).collect()
    }

    /// The jobs in the columns of `information_schema.jobs`.
    pub(in crate::jobs) fn routine_overview(&self, principal: &Principal, db: &str) -> Vec<Vec<Cell>> {
        let row = |job: &Arc<Job>| {
            let (kept, now) = (job.kept(), job.now());
            let reason = match kept.state {
                JobState::Paused | JobState::Cancelled => kept.reason.as_ref().map(Reason::shown),
                _ => None,
            };
            vec![
                job.id.0.into(),
                "ROUTINE_LOAD".into(),
                kept.db.as_str().into(),
                Some(self.table_name(&kept)).filter(|name| !name.is_empty()).into(),
                kept.name.as_str().into(),
                kept.state.name().into(),
                lag(now.progress.offsets(), &now.ends).to_string().into(),
                date_time(kept.created_at_ms).into(),
                kept.ended_at_ms.map(date_time).into(),
                kept.user.as_str().into(),
                reason.into(),
            ]
        };
        self.shown(principal, db, true).iter().map(row).collect()
    }

    fn job_rows(&self, jobs: &[Arc<Job>]) -> Grid {
        let mut grid = Grid::new(&JOB_COLUMNS);
        jobs.iter().for_each(|job| grid.push(self.job_row(job)));
        grid
    }

    fn job_row(&self, job: &Job) -> Vec<Cell> {
        let kept = job.kept();
        let time = |at: Option<i64>| Cell::from(at.map_or_else(|| "N/A".to_owned(), date_time));
        let table = self.table_name(&kept);
        let now = job.now();
        let reason = match kept.state {
            JobState::Paused | JobState::Cancelled => kept.reason.as_ref().map(Reason::shown),
            _ => None,
        };
        let urls: Vec<&str> = now.error_urls.iter().map(String::as_str).collect();
        vec![
            job.id.to_string().into(),
            kept.name.as_str().into(),
            time(Some(kept.created_at_ms)),
            time(kept.paused_at_ms),
            time(kept.ended_at_ms),
            kept.db.as_str().into(),
            table.into(),
            kept.is_of_many().to_string().into(),
            kept.state.name().into(),
            "KAFKA".into(),
            u8::from(now.task.is_some()).to_string().into(),
            job_properties(&kept).to_string().into(),
            source_properties(&kept, now.progress.offsets()).to_string().into(),
            json!(properties::custom(&kept.source)).to_string().into(),
            statistic(&now).to_string().into(),
            progress(now.progress.offsets()).to_string().into(),
            lag(now.progress.offsets(), &now.ends).to_string().into(),
            reason.unwrap_or_default().into(),
            urls.join(", ").into(),
            now.other_message.as_str().into(),
            kept.user.as_str().into(),
            kept.comment.as_str().into(),
        ]
    }

    /// The name of a job's table; empty if it has many.
    fn table_name(&self, kept: &Definition) -> String {
        let Some(table) = kept.table else { return String::new() };
        self.catalog.table_by_id(table).map_or_else(|| table.to_string(), |def| def.name.clone())
    }

    fn task_rows(&self, job: &Job) -> Grid {
        let mut grid = Grid::new(&TASK_COLUMNS);
        let kept = job.kept();
        let timeout = Limits::of(&kept.properties).map_or(0, |limits| limits.interval.as_secs());
        if let Some(task) = &job.now().task {
            let txns: Vec<Option<TxnId>> = match &task.txns[..] {
                [] => vec![None],
                txns => txns.iter().copied().map(Some).collect(),
            };
            for txn in txns {
                let status = txn.and_then(|txn| self.ingest.transactions().by_id(txn));
                grid.push(vec![
                    task.id.as_str().into(),
                    txn.map_or_else(|| "-1".to_owned(), |txn| txn.to_string()).into(),
                    status.map_or("UNKNOWN", |info| info.status.name()).into(),
                    job.id.to_string().into(),
                    date_time(task.created_at_ms).into(),
                    task.started_at_ms.map(date_time).unwrap_or_default().into(),
                    timeout.to_string().into(),
                    "0".into(),
                    json!(texts(&task.from)).to_string().into(),
                ]);
            }
        }
        grid
    }

    /// The statement that would recreate the job at its current position, without secrets.
    fn create_statement(&self, job: &Job) -> String {
        let kept = job.kept();
        let clauses = &kept.clauses;
        let mut rules = Vec::new();
        if let Some(separator) = &clauses.column_separator {
            rules.push(format!("COLUMNS TERMINATED BY \"{}\"", escaped(separator)));
        }
        if let Some(columns) = &clauses.columns {
            let column = |(name, value): &(String, Option<String>)| match value {
                Some(value) => format!("`{name}` = {value}"),
                None => format!("`{name}`"),
            };
            rules.push(format!("COLUMNS({})", columns.iter().map(column).collect::<Vec<_>>().join(", ")));
        }
        rules.extend(clauses.preceding_filter.iter().map(|filter| format!("PRECEDING FILTER {filter}")));
        rules.extend(clauses.filter.iter().map(|filter| format!("WHERE {filter}")));
        let quoted = |name: &String| format!("`{}`", name.replace('`', "``"));
        if !clauses.partitions.is_empty() {
            let names = clauses.partitions.iter().map(quoted).collect::<Vec<_>>().join(", ");
            rules.push(format!("PARTITION({names})"));
        }
        rules.extend(clauses.delete_on.iter().map(|condition| format!("DELETE ON {condition}")));
        rules.extend(clauses.sequence.iter().map(|name| format!("ORDER BY {}", quoted(name))));
        let mut source: BTreeMap<String, String> = kept.source.clone();
        for (name, value) in &mut source {
            if properties::is_secret(name) {
                "******".clone_into(value);
            }
        }
        let next = job.now().progress.offsets().clone();
        let joined = |texts: Vec<String>| texts.join(", ");
        source.insert("kafka_partitions".to_owned(), joined(next.keys().map(ToString::to_string).collect()));
        source.insert("kafka_offsets".to_owned(), joined(next.values().map(ToString::to_string).collect()));
        let list = |pairs: &BTreeMap<String, String>| {
            let pair =
                |(name, value): (&String, &String)| format!("\"{}\" = \"{}\"", escaped(name), escaped(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(",\n")
        };
        let rules = rules.join(",\n");
        let mut text = format!(
            "CREATE ROUTINE LOAD {}{}\nWITH {}\n",
            kept.name,
            if kept.is_of_many() { String::new() } else { format!(" ON {}", self.table_name(&kept)) },
            clauses.merge_type()
        );
        if !rules.is_empty() {
            text.push_str(&format!("{rules}\n"));
        }
        if !kept.properties.is_empty() {
            text.push_str(&format!("PROPERTIES\n(\n{}\n)\n", list(&kept.properties)));
        }
        text.push_str(&format!("FROM KAFKA\n(\n{}\n)", list(&source)));
        if !kept.comment.is_empty() {
            text.push_str(&format!("\nCOMMENT \"{}\"", escaped(&kept.comment)));
        }
        text.push(';');
        text
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
}

fn texts(offsets: &Offsets) -> BTreeMap<String, String> {
    offsets.iter().map(|(partition, offset)| (partition.to_string(), offset.to_string())).collect()
}

/// The last offset of each partition that was loaded.
fn progress(next: &Offsets) -> Value {
    let last = |offset: i64| if offset == 0 { "OFFSET_ZERO".to_owned() } else { (offset - 1).to_string() };
    json!(
        next.iter()
            .map(|(partition, offset)| (partition.to_string(), last(*offset)))
            .collect::<BTreeMap<_, _>>()
    )
}

/// How many messages each partition has that were not loaded yet, as far as its end is known.
fn lag(next: &Offsets, ends: &Offsets) -> Value {
    let behind = |(partition, next): (&i32, &i64)| {
        let end = ends.get(partition).copied().unwrap_or(*next);
        (partition.to_string(), (end - next).max(0))
    };
    json!(next.iter().map(behind).collect::<BTreeMap<_, _>>())
}

fn statistic(now: &super::job::Now) -> Value {
    let statistics = &now.statistics;
    let seconds = (statistics.task_ms / 1000).max(1);
    json!({
        "receivedBytes": statistics.received_bytes,
        "runningTxns": now.task.iter().flat_map(|task| task.txns.iter().map(|txn| txn.0)).collect::<Vec<_>>(),
        "errorRows": statistics.error_rows,
        "committedTaskNum": statistics.committed_tasks,
        "loadedRows": statistics.loaded_rows,
        "loadRowsRate": statistics.loaded_rows / seconds,
        "abortedTaskNum": now.aborted_tasks,
        "errorRowsAfterResumed": now.errors_after_resumed(),
        "totalRows": statistics.total_rows,
        "unselectedRows": statistics.unselected_rows,
        "receivedBytesRate": statistics.received_bytes / seconds,
        "taskExecuteTimeMs": statistics.task_ms,
    })
}

fn job_properties(kept: &Definition) -> Value {
    let Definition { clauses, properties, .. } = kept;
    let star = || "*".to_owned();
    let columns = clauses.columns.as_ref().map_or_else(star, |columns| {
        let column = |(name, value): &(String, Option<String>)| match value {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        };
        columns.iter().map(column).collect::<Vec<_>>().join(",")
    });
    let mut shown: BTreeMap<String, String> = [
        ("partitions", if clauses.partitions.is_empty() { star() } else { clauses.partitions.join(",") }),
        ("columnToColumnExpr", columns),
        ("precedingFilter", clauses.preceding_filter.clone().unwrap_or_else(star)),
        ("whereExpr", clauses.filter.clone().unwrap_or_else(star)),
        ("format", "csv".to_owned()),
        ("partial_columns", "false".to_owned()),
        ("max_error_number", "0".to_owned()),
        ("max_filter_ratio", "1.0".to_owned()),
        ("max_batch_interval", "10".to_owned()),
        ("max_batch_rows", "200000".to_owned()),
        ("max_batch_size", "104857600".to_owned()),
        ("current_concurrent_number", u8::from(kept.state == JobState::Running).to_string()),
        ("desired_concurrent_number", "5".to_owned()),
        ("strict_mode", "false".to_owned()),
        ("merge_type", clauses.merge_type().to_owned()),
        ("delete", clauses.delete_on.clone().unwrap_or_else(star)),
        ("sequence_col", clauses.sequence.clone().unwrap_or_else(star)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    if !properties.get("format").is_some_and(|format| format.eq_ignore_ascii_case("json")) {
        let separator = clauses.column_separator.clone().unwrap_or_else(|| "\t".to_owned());
        shown.insert("column_separator".to_owned(), separator);
        shown.insert("line_delimiter".to_owned(), "\n".to_owned());
    }
    shown.extend(properties.clone());
    json!(shown)
}

fn source_properties(kept: &Definition, next: &Offsets) -> Value {
    let text = |name: &str| kept.source.get(name).cloned().unwrap_or_default();
    let partitions: Vec<String> = next.keys().map(ToString::to_string).collect();
    json!({
        "topic": text("kafka_topic"),
        "currentKafkaPartitions": partitions.join(","),
        "brokerList": text("kafka_broker_list"),
    })
}

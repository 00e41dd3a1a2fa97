//! SHOWs of loads and of their transactions.

use crate::access::Privilege;
use crate::node::clock::date_time;
use crate::session::EngineSession;
use std::io::Read;
use tributary_ingest::TransactionInfo;
use tributary_query::{Cell, Grid};
use tributary_sql::{Name, TransactionBy, WarningsOf, without_secrets};
use tributary_types::pattern::like;
use tributary_types::{ErrorCode, SqlError, TxnId};

/// The longest log of reasons that is shown.
const REASONS_BYTES_MAX: u64 = 64 << 20;

impl EngineSession {
    /// The database that a statement means.
    pub(in crate::session) fn database_or<'a>(&'a self, named: Option<&'a str>) -> Result<&'a str, SqlError> {
        let db = named.or(self.database.as_deref());
        db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))
    }

    pub(in crate::session) async fn show_load_warnings(&mut self, of: &WarningsOf) -> Result<Grid, SqlError> {
        let (job, label, url) = match of {
            WarningsOf::Url(url) => (None, None, url.clone()),
            WarningsOf::Label { db, label } => {
                let db = self.database_or(db.as_deref())?;
                let id = self.engine.gate.database(&self.principal, Privilege::Show, db)?;
                self.engine.jobs.check_label(&self.principal, db, label)?;
                let url = self.engine.jobs.reasons_url(id, db, label).ok_or_else(|| {
                    wrong(format!(
                        "there are no reasons for rejected rows of label [{label}] in database [{db}]: no row of it was rejected, \
                         it is not known, or the server has started since"
                    ))
                })?;
                (self.engine.jobs.broker_load_of(db, label), Some(label.as_str()), url)
            }
        };
        let file = tributary_http::file_of_error_url(&url)
            .ok_or_else(|| wrong(format!("'{url}' is no ErrorURL of a load; take the whole address")))?;
        let log = std::sync::Arc::clone(&self.engine.loads.error_log);
        let read = tokio::task::spawn_blocking(move || {
            let Some(found) = log.open(&file)? else { return Ok(None) };
            let mut text = String::new();
            found.take(REASONS_BYTES_MAX).read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(Some(text))
        });
        let text = match read.await {
            Ok(Ok(Some(text))) => text,
            Ok(Ok(None)) => {
                return Err(wrong(format!(
                    "no error log has the address '{url}': it never was, or it is too old"
                )));
            }
            Ok(Err(error)) => return Err(wrong(format!("the error log '{url}' can't be read: {error}"))),
            Err(panic) => return Err(wrong(format!("internal error: {panic}"))),
        };
        let mut grid = Grid::new(&["JobId", "Label", "ErrorMsgDetail"]);
        let job = job.map_or_else(|| "-1".to_owned(), |job| job.id.to_string());
        for reason in reasons(&text) {
            grid.push(vec![job.as_str().into(), label.into(), reason.into()]);
        }
        Ok(grid)
    }

    pub(in crate::session) fn show_create_load(&self, label: &Name) -> Result<Grid, SqlError> {
        let db = self.database_or(label.db.as_deref())?;
        self.engine.gate.database(&self.principal, Privilege::Show, db)?;
        self.engine.jobs.check_label(&self.principal, db, &label.table)?;
        let job = self.engine.jobs.broker_load_of(db, &label.table);
        let job = job.ok_or_else(|| {
            wrong(format!("there is no job of LOAD LABEL [{}] in database [{db}]", label.table))
        })?;
        let statement = without_secrets(&job.record().statement).into_owned();
        Ok(Grid::new(&["Label", "CreateStmt"]).with_row(vec![label.table.as_str().into(), statement.into()]))
    }

    pub(in crate::session) fn show_transaction(
        &self,
        db: Option<&str>,
        by: &TransactionBy,
    ) -> Result<Grid, SqlError> {
        let name = self.database_or(db)?;
        let gate = &self.engine.gate;
        let db = gate.database(&self.principal, Privilege::Show, name)?;
        let is_shown = |info: &TransactionInfo| {
            gate.check_transaction(&self.principal, name, Some(&info.table_ref)).is_ok()
        };
        let transactions = self.engine.ingest.transactions();
        let found = match by {
            TransactionBy::Id(id) => {
                let found = transactions.by_id(TxnId(*id)).filter(|info| info.db == db && is_shown(info));
                vec![found.ok_or_else(|| wrong(format!("transaction with id {id} does not exist")))?]
            }
            TransactionBy::Label(label) => {
                let found = transactions.by_label(db, label).filter(is_shown);
                vec![found.ok_or_else(|| wrong(format!("transaction with label {label} does not exist")))?]
            }
            TransactionBy::LabelLike(pattern) => {
                let mut all = transactions.of_db(db);
                all.retain(|info| like(info.label.as_str(), pattern) && is_shown(info));
                all
            }
            TransactionBy::Status(status) => {
                let mut all = transactions.of_db(db);
                all.retain(|info| info.status.name() == status && is_shown(info));
                all
            }
        };
        let mut grid = Grid::new(&COLUMNS);
        found.iter().for_each(|info| grid.push(self.transaction_row(info)));
        Ok(grid)
    }

    fn transaction_row(&self, info: &TransactionInfo) -> Vec<Cell> {
        let time = |at: Option<i64>| Cell::from(at.map(date_time));
        vec![
            info.txn.to_string().into(),
            info.label.to_string().into(),
            format!("FE: {}", self.engine.options.host).into(),
            info.status.name().into(),
            info.kind.source_type().into(),
            time(Some(info.prepared_at_ms)),
            time(info.precommitted_at_ms),
            time(info.finished_at_ms),
            time(info.finished_at_ms),
            time(info.finished_at_ms),
            info.reason.clone().into(),
            "0".into(),
            "-1".into(),
            (self.variables.values().insert_timeout * 1000).to_string().into(),
            "".into(),
        ]
    }
}

const COLUMNS: [&str; 15] = [
    "TransactionId",
    "Label",
    "Coordinator",
    "TransactionStatus",
    "LoadJobSourceType",
    "PrepareTime",
    "PreCommitTime",
    "CommitTime",
    "PublishTime",
    "FinishTime",
    "Reason",
    "ErrorReplicasCount",
    "ListenerId",
    "TimeoutMs",
    "ErrMsg",
];

/// The reasons of a log, each from its first word on: the values of a row may span several lines.
fn reasons(log: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in log.lines() {
        match all.last_mut() {
            Some(last) if !line.starts_with("Reason: ") => {
                last.push('\n');
                last.push_str(line);
            }
            _ => all.push(line.to_owned()),
        }
    }
    all.iter_mut().for_each(|reason| reason.truncate(reason.trim_end().len()));
    all
}

fn wrong(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

//! Compares what was acknowledged, what queries see and what the Delta tables have.
//!
//! At one moment, at which no log writes, the tables' snapshots are taken. Then the logs up to there are read from the disk, and the
//! Delta logs and the ends of data files from the store. Whatever was acknowledged must be in one of them, and queries must see the
//! rows that a start would find there: no fewer and no more.
//!
//! Invariant: nothing is changed, and loads wait for microseconds. No log is released while the logs are read, and no data file is
//! deleted before the end.
//!
//! Not its business: what becomes of the verdicts.

use crate::error::IngestError;
use crate::ingest::Ingest;
use crate::maintenance::backup::Moment;
use crate::recovery::account::{LogAccount, LoggedTable};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tributary_table::{DeltaFacts, TableCut, TableError, TableStore};
use tributary_types::{TableId, TableRef, TransactionStatus, TxnId, Version, host};
use tributary_wal::{Cut, Disk};

/// The most time that reading the logs takes in a simulation, in µs.
const READING_US_MAX: u128 = 8_000;

/// A table as it was found at one moment.
#[derive(Clone, Debug)]
pub struct Verified {
    pub table: TableId,
    pub name: TableRef,
    /// The last version that queries saw.
    pub version: Version,
    /// Rows that queries saw. In a table with UNIQUE or AGGREGATE KEY, rows that are not settled yet count, too.
    pub visible_rows: u64,
    /// Committed rows of the logs that the Delta table did not have.
    pub logged_rows: u64,
    /// Acknowledged rows whose group had not committed.
    pub waiting_rows: u64,
    pub delta: DeltaFacts,
    /// Sentences about what is wrong. Empty: all is well.
    pub faults: Vec<String>,
}

impl Ingest {
    /// Compares logs, snapshots and Delta tables of the wanted tables. A table that is dropped meanwhile is left out.
    ///
    /// # Errors
    /// [`IngestError::ShuttingDown`], and errors that keep a log or a Delta table from being read. A damaged log is such an error; what
    /// is wrong with a table is not.
    pub async fn verify(
        &self,
        store: &TableStore,
        is_wanted: impl Fn(TableId) -> bool,
    ) -> Result<Vec<Verified>, IngestError> {
        let files = store.keep_files().await;
        let logs = self.keep_logs().await;
        let Moment { logs: cuts, mut tables } = self.moment(&logs, || ())?;
        tables.retain(|table| is_wanted(table.id));
        let persisted = tables.iter().map(|table| (table.id, table.persisted())).collect();
        let mut logged = self.account(cuts, persisted).await?;
        drop(logs);
        let mut verified = Vec::new();
        for table in tables {
            let delta = match store.verify(&table).await {
                Err(error) if self.has_table(table.id) && !is_damage(&error) => {
                    let table = table.def().table_ref();
                    return Err(IngestError::Table { table, reason: error.to_string() });
                }
                delta => delta,
            };
            let logged = logged.remove(&table.id).unwrap_or_default();
            let judged = self.judge(&table, delta, logged);
            // The transactions of a dropped table have failed.
            if self.has_table(table.id) {
                verified.push(judged);
            }
        }
        drop(files);
        Ok(verified)
    }

    /// Reads the logs up to their cuts.
    async fn account(
        &self,
        cuts: Vec<Cut>,
        persisted: HashMap<TableId, Version>,
    ) -> Result<HashMap<TableId, LoggedTable>, IngestError> {
        let Some(disk) = self.spaces.first().map(|space| Arc::clone(&space.disk)) else {
            return Ok(HashMap::new());
        };
        if host::is_simulated() {
            // Reading takes a while there, too.
            let while_reading = Duration::from_micros((host::random(|| 0) % READING_US_MAX) as u64);
            host::sleep(while_reading, || std::future::ready(())).await;
            return account(&cuts, &*disk, persisted);
        }
        tokio::task::spawn_blocking(move || account(&cuts, &*disk, persisted))
            .await
            .unwrap_or_else(|gone| Err(IngestError::Bug(format!("reading the logs: {gone}"))))
    }

    fn has_table(&self, id: TableId) -> bool {
        self.tables().iter().any(|table| table.id() == id)
    }

    fn judge(
        &self,
        table: &TableCut,
        delta: Result<DeltaFacts, TableError>,
        mut logged: LoggedTable,
    ) -> Verified {
        let def = table.def();
        let (version, visible) = (table.version(), table.rows());
        let mut faults = std::mem::take(&mut logged.faults);
        let persisted = delta.as_ref().map_or(table.persisted(), |delta| delta.persisted);
        let last = logged.last_version().max(Some(persisted)).unwrap_or_default();
        if last > version {
            faults.push(format!("version {last} is durable, and queries see version {version}"));
        }
        let delta = match delta {
            Ok(delta) => {
                faults.extend(delta.faults.iter().cloned());
                let durable = logged.rows_after(persisted, delta.rows);
                let durable = durable.filter(|_| !table.has_copies_on_the_way());
                let is_right = |&rows: &u64| rows == visible || rows > visible && !def.keys.keeps_all_rows();
                if let Some(rows) = durable.filter(|rows| !is_right(rows)) {
                    faults.push(format!(
                        "queries see {visible} rows at version {version}, and the Delta table and the log have {rows} at version {last}"
                    ));
                }
                delta
            }
            Err(error) => {
                faults.push(error.to_string());
                DeltaFacts::default()
            }
        };
        let lost = logged.waiting.iter().filter(|&(&txn, _)| !self.may_become_visible(txn));
        faults.extend(lost.map(|(txn, rows)| {
            format!(
                "{rows} acknowledged rows of transaction {txn} are in the log, and only the next start will commit them"
            )
        }));
        Verified {
            table: table.id,
            name: def.table_ref(),
            version,
            visible_rows: visible,
            logged_rows: logged.rows(persisted),
            waiting_rows: logged.waiting_rows(),
            delta,
            faults,
        }
    }

    /// Whether the transaction of a group is committed, or will be.
    fn may_become_visible(&self, txn: TxnId) -> bool {
        self.transactions().by_id(txn).is_some_and(|info| info.status != TransactionStatus::Aborted)
    }
}

fn account(
    cuts: &[Cut],
    disk: &dyn Disk,
    persisted: HashMap<TableId, Version>,
) -> Result<HashMap<TableId, LoggedTable>, IngestError> {
    let mut account = LogAccount::new(persisted);
    for cut in cuts {
        cut.read(disk, &mut |entry| account.add(&entry))
            .map_err(|error| IngestError::Recovery(error.to_string()))?;
    }
    Ok(account.finish())
}

/// Whether it is known what is wrong with the table: its Delta log can't be what its writer wrote.
fn is_damage(error: &TableError) -> bool {
    matches!(
        error,
        TableError::DamagedLog { .. }
            | TableError::DamagedVector { .. }
            | TableError::DamagedFile { .. }
            | TableError::NotFound { .. }
            | TableError::LocationTaken { .. }
    )
}

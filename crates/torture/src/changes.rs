//! A client that continuously changes the columns of a table: it adds one, widens its type and drops it again, by light and heavy
//! changes in turn, and adds fields to the STRUCTs of one. The promises to writers and readers of the table do not change.

use crate::load::{DATABASE, TABLES};
use crate::mysql::{Client, connect};
use crate::writers::{Gone, Round, Shared};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tributary_client::ClientError;

/// One of the tables that all writers load into.
const TABLE: &str = TABLES[1].0;
/// How long it is waited before a job is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(30);

/// The client's view of its column.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Columns that it has added, over all rounds.
    columns: Mutex<u64>,
    light: AtomicU64,
    heavy: AtomicU64,
}

impl Changes {
    /// Light and heavy changes that were carried out.
    pub fn counts(&self) -> (u64, u64) {
        (self.light.load(Ordering::Relaxed), self.heavy.load(Ordering::Relaxed))
    }

    /// Changes the table until the round is over.
    pub fn write(&self, shared: &Shared, round: &Round) {
        if let Err(Gone(reason)) = self.work(shared, round)
            && !round.is_killed.load(Ordering::SeqCst)
        {
            shared
                .violation(format!("a connection (columns of {TABLE}) broke while the server ran: {reason}"));
        }
    }

    fn work(&self, shared: &Shared, round: &Round) -> Result<(), Gone> {
        let mut columns = self.columns.lock();
        let mut server = connect(&round.doors, "columns", Some(DATABASE))?;
        settled(&mut server, round)?;
        // The remains of a killed change.
        for name in extra_columns(&mut server)? {
            self.change(shared, round, &mut server, &format!("DROP COLUMN {name}"), &self.light)?;
        }
        while !round.is_over.load(Ordering::Relaxed) {
            *columns += 1;
            let name = format!("extra{columns}");
            let steps = [
                (format!("ADD COLUMN {name} INT DEFAULT '7'"), &self.light),
                (format!("MODIFY COLUMN {name} BIGINT DEFAULT '7'"), &self.heavy),
                (format!("DROP COLUMN {name}"), &self.light),
                (format!("ADD COLUMN {name}s ARRAY<STRUCT<a:INT>>"), &self.light),
                (format!("MODIFY COLUMN {name}s ARRAY<STRUCT<a:INT, b:VARCHAR(3)>>"), &self.light),
                (
                    format!("MODIFY COLUMN {name}s ARRAY<STRUCT<a:INT, b:VARCHAR(9), c:MAP<INT, INT>>>"),
                    &self.light,
                ),
                (format!("DROP COLUMN {name}s"), &self.light),
            ];
            for (clause, count) in steps {
                self.change(shared, round, &mut server, &clause, count)?;
            }
        }
        Ok(())
    }

    fn change(
        &self,
        shared: &Shared,
        round: &Round,
        server: &mut Client,
        clause: &str,
        count: &AtomicU64,
    ) -> Result<(), Gone> {
        if round.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        match server.run(&format!("ALTER TABLE {TABLE} {clause}")) {
            Ok(_) => {
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(ClientError::Refused(error)) if !round.expects_refusals => {
                shared.violation(format!(
                    "{clause} of {TABLE}, which nothing is in the way of, was refused: {error}"
                ));
            }
            Err(ClientError::Refused(_)) => std::thread::sleep(crate::writers::AFTER_REFUSAL),
            Err(ClientError::Gone(error)) => return Err(error.into()),
        }
        settled(server, round)
    }
}

/// Waits until no job changes the table, or the round is over.
fn settled(server: &mut Client, round: &Round) -> Result<(), Gone> {
    while !round.is_over.load(Ordering::Relaxed) {
        let rows = server.rows("SHOW ALTER TABLE COLUMN")?.rows;
        let is_open = |state: &str| matches!(state, "PENDING" | "WAITING_TXN" | "RUNNING");
        if !rows.iter().flatten().flatten().any(|text| is_open(text)) {
            return Ok(());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn extra_columns(server: &mut Client) -> Result<Vec<String>, Gone> {
    let rows = server.rows(&format!("DESC {TABLE}"))?.rows;
    let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    Ok(names.filter(|name| name.starts_with("extra")).collect())
}

//! `VERIFY [TABLE t, …] [FULL]`.
//!
//! Not here: the comparison of logs, snapshots and Delta tables.

use super::EngineSession;
use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::verify::grid;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_ingest::Verified;
use tributary_sql::Verify;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef};

/// How often a table that changes while it is read is read again to have its rows counted.
const READ_MOST: usize = 3;

impl EngineSession {
    pub(super) async fn run_verify(&mut self, statement: &Verify) -> Result<Answer, SqlError> {
        let mut wanted = HashSet::new();
        for name in &statement.tables {
            wanted.insert(self.table(Privilege::Select, name.db.as_deref(), &name.table)?.id());
        }
        let all = wanted.is_empty();
        let process = Arc::clone(&self.process);
        let verifier = Arc::clone(&self.engine.verifier);
        let verified = verifier.verify((!all).then_some(wanted));
        let mut verified = Interrupt::by_kill(&process.stop).wait(verified).await??;
        if statement.full {
            for of_table in &mut verified {
                self.verify_pages(of_table).await?;
            }
        }
        verifier.note(&verified, all);
        Answer::grid(&grid(&verified))
    }

    /// Reads all rows of a table, which checks all pages, counts them, and looks for a key that is there twice.
    async fn verify_pages(&mut self, verified: &mut Verified) -> Result<(), SqlError> {
        let Some(table) = self.engine.gate.table_by_id(verified.table) else { return Ok(()) };
        let def = table.def();
        for fault in [self.misses_rows(&table, &def).await, self.has_key_twice(&def).await] {
            match fault {
                Ok(fault) => verified.faults.extend(fault),
                Err(error) if error.code == ErrorCode::QueryInterrupted => return Err(error),
                Err(error) => verified.faults.push(error.detail_text().to_owned()),
            }
        }
        Ok(())
    }

    /// Compares the rows that are read with the number that the table says. Nothing is said of a table that changes all the time.
    async fn misses_rows(&mut self, table: &Table, def: &TableDef) -> Result<Option<String>, SqlError> {
        for _ in 0..READ_MOST {
            let before = table.snapshot();
            let read = self.count_by_reading(&format!("SELECT * FROM {}", quoted(def))).await?;
            let is_same = table.snapshot().version == before.version;
            let said = before.rows();
            if !def.keys.keeps_all_rows() || is_same && read == said {
                return Ok(None);
            }
            if is_same {
                return Ok(Some(format!("{read} rows can be read, and the table has {said}")));
            }
        }
        Ok(None)
    }

    async fn has_key_twice(&mut self, def: &TableDef) -> Result<Option<String>, SqlError> {
        if def.keys.keeps_all_rows() {
            return Ok(None);
        }
        let keys = def.schema.columns.iter().filter(|column| column.is_key);
        let keys = keys.map(|column| format!("`{}`", column.name.replace('`', "``")));
        let keys = keys.collect::<Vec<_>>().join(", ");
        let text = format!("SELECT {keys} FROM {} GROUP BY {keys} HAVING COUNT(*) > 1", quoted(def));
        let twice = self.count_by_reading(&text).await?;
        Ok((twice > 0).then(|| format!("{twice} keys are there more than once")))
    }

    async fn count_by_reading(&mut self, query: &str) -> Result<u64, SqlError> {
        // With a limit of its own it is not cut off at the session's.
        let query = tributary_sql::parse_query(&format!("{query} LIMIT {}", i64::MAX))?;
        let mut answer = self.run_query(&query, &[]).await?;
        let mut count = 0;
        if let Answer::Rows(rows) = &mut answer {
            while let Some(batch) = rows.next().await? {
                count += batch.num_rows() as u64;
            }
        }
        Ok(count)
    }
}

fn quoted(def: &TableDef) -> String {
    let quoted = |text: &str| format!("`{}`", text.replace('`', "``"));
    let name = def.table_ref();
    format!("{}.{}", quoted(&name.db), quoted(&name.table))
}

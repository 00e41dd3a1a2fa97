//! Files of other engines in a table with partitions.
//!
//! A partition is emptied, dropped and queried by whole files. Another engine knows nothing of partitions, and its files have rows of
//! several: they are rewritten, divided, before a partition goes, and by the next compaction. What an engine commits while a cut or a
//! drop is on its way to the Delta log precedes it, and is divided before that is logged.
//!
//! Rows that have no partition stay in a file of none. Such files are remembered, so that they are not divided again and again.

use crate::error::TableError;
use crate::file::LiveFile;
use crate::log::{LogState, Strays};
use crate::table::Table;
use crate::table::change::light::Replacement;
use crate::table::rewrite::commit::has;
use crate::view::evolve::civil_now_micros;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::{PartitionId, Partitioning, TableDef, Version};

/// Commits of other engines that may make a division void in a row.
const ATTEMPTS_MAX: u32 = 16;

/// Files to divide.
struct Division {
    inputs: Vec<LiveFile>,
    def: Arc<TableDef>,
    next: PartitionId,
    /// The version that the Delta log has: cuts of later versions come after the files.
    version: Version,
}

impl Table {
    /// Takes in what other engines have committed, and rewrites their files so that each has rows of one partition. Flushes continue
    /// meanwhile. Does nothing in a table without partitions.
    ///
    /// # Errors
    /// [`TableError::Changing`], [`TableError::Raced`], errors of reading and writing: some files may not be divided.
    pub async fn divide(&self) -> Result<(), TableError> {
        for _ in 0..ATTEMPTS_MAX {
            if self.with_def(|def| def.partitioning.partitions().is_none()) {
                return Ok(());
            }
            let division = {
                let mut state = self.lock_log().await?;
                self.take_in_newest(&mut state).await?;
                if self.unflushed.lock().dropping.is_some() {
                    // Files are divided by partitions that the definition has.
                    Box::pin(self.flush_racing(&mut state, None)).await?;
                }
                self.undivided(&mut state).await?
            };
            let Some(division) = division else { return Ok(()) };
            if self.is_changing() {
                // Files that are converted already would be converted again.
                return Err(TableError::Changing { table: division.def.name.clone() });
            }
            let outputs = self.rewrite(&division.inputs, &division.def, civil_now_micros()).await?;
            let mut state = match self.lock_log().await {
                Ok(state) => state,
                Err(error) => {
                    self.discard_live(&outputs).await;
                    return Err(error);
                }
            };
            if !self.are_there(&state, &division) {
                self.discard_live(&outputs).await;
                continue;
            }
            self.log_division(&mut state, division, outputs).await?;
        }
        Err(self.outraced())
    }

    /// [`Table::divide`] of the files that are known, for the holder of the log.
    pub(in crate::table) async fn divide_locked(&self, state: &mut LogState) -> Result<(), TableError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(division) = self.undivided(state).await? else { return Ok(()) };
            let outputs = self.rewrite(&division.inputs, &division.def, civil_now_micros()).await?;
            self.log_division(state, division, outputs).await?;
        }
        Err(self.outraced())
    }

    /// Takes in what others have committed since, if there is anything. A store that does not say so hinders nothing: the entry of
    /// the change meets the entries of others, or is as much in doubt as it would be without this look.
    pub(in crate::table) async fn take_in_newest(&self, state: &mut LogState) -> Result<(), TableError> {
        match self.root.log.has_entry(state.version + 1).await {
            Ok(true) => self.take_in_others(state).await,
            Ok(false) => Ok(()),
            Err(error) => {
                tracing::warn!(table = %self.id, %error, "commits of other engines can't be looked for before a partition goes");
                Ok(())
            }
        }
    }

    /// Whether some files may have to be divided.
    pub(in crate::table) fn has_undivided(&self) -> bool {
        let snapshot = self.snapshot();
        let is_partitioned = snapshot.def.partitioning.partitions().is_some();
        is_partitioned && snapshot.files.iter().any(|live| live.file.partition.is_none())
    }

    fn outraced(&self) -> TableError {
        TableError::Raced { location: self.root.log.location().to_owned(), attempts: ATTEMPTS_MAX }
    }

    /// The files to divide, settled, as the log has them.
    async fn undivided(&self, state: &mut LogState) -> Result<Option<Division>, TableError> {
        if self.division_of(state).is_none() {
            return Ok(None);
        }
        self.settle_others(state).await?;
        if let Some(unique) = &self.unique {
            // Which of an engine's rows are superseded is found out by file.
            self.settle(&mut *unique.keys.lock().await).await?;
        }
        Ok(self.division_of(state))
    }

    fn division_of(&self, state: &LogState) -> Option<Division> {
        let dropping = self.unflushed.lock().dropping.clone();
        let snapshot = self.snapshot();
        let next = snapshot.def.partitioning.partitions()?.next_id;
        let is_stray =
            |live: &LiveFile| state.strays.next == Some(next) && state.strays.files.contains(live.path());
        let undivided = |live: &&LiveFile| live.file.partition.is_none() && !is_stray(live);
        let logged = |live: &LiveFile| state.live.get(live.path()).cloned();
        let inputs: Vec<_> = snapshot.files.iter().filter(undivided).filter_map(logged).collect();
        let def = match dropping {
            // The dropped ones get files of their own, which leave the log with them.
            Some(before) => Arc::new(TableDef {
                partitioning: Partitioning::By(before),
                ..TableDef::clone(&snapshot.def)
            }),
            None => Arc::clone(&snapshot.def),
        };
        (!inputs.is_empty()).then_some(Division { inputs, def, next, version: state.app_version })
    }

    /// Whether the log has the files still, and the table its definition.
    fn are_there(&self, state: &LogState, division: &Division) -> bool {
        let is_there = |file: &LiveFile| match &self.unique {
            // Rows that were superseded meanwhile are carried over.
            Some(_) => state.live.contains_key(file.path()),
            None => has(&state.live, file),
        };
        Arc::ptr_eq(&division.def, &self.def()) && division.inputs.iter().all(is_there)
    }

    /// Puts the divided files into the log and the snapshot, unless others have changed the inputs.
    async fn log_division(
        &self,
        state: &mut LogState,
        division: Division,
        outputs: Vec<LiveFile>,
    ) -> Result<(), TableError> {
        let Division { inputs, def, next, version } = division;
        let replacement = Replacement { inputs, outputs, version };
        let Some(replacement) = self.log_replacement(state, &def, replacement, "OPTIMIZE", false).await?
        else {
            return Ok(());
        };
        if state.strays.next != Some(next) {
            state.strays = Strays { next: Some(next), files: HashSet::new() };
        }
        let strays = replacement.outputs.iter().filter(|live| live.file.partition.is_none());
        state.strays.files.extend(strays.map(|live| live.path().to_owned()));
        tracing::info!(
            table = def.name,
            files = replacement.inputs.len(),
            "files of other engines are divided into partitions"
        );
        self.logged_already(replacement).arrived(state).await
    }
}

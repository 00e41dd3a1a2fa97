//! The rows that a transaction has inserted into one table, and the table as its statements see it: with these rows.
//!
//! Invariant: a statement that reads the table sees all rows of earlier statements, or fails. Not here: when a transaction begins
//! and ends.

use crate::ddl::tables::table_error;
use crate::load::lanes::Read;
use crate::load::partial_update::KnownKeys;
use crate::load::sink::{Mark, SinkError};
use crate::load::{Load, Loads};
use std::ops::Range;
use std::sync::Arc;
use tributary_decode::{Block, BlockError, Counts, Reject, blocks_to_batches};
use tributary_query::WrittenTable;
use tributary_table::{OwnRows, Table};
use tributary_types::{ErrorCode, SqlError, TxnId};

/// The rows of a transaction for one table.
pub(super) struct TransactionLoad {
    pub load: Load,
    pub txn: TxnId,
    /// The counts of its statements.
    pub read: Read,
    /// Requirements of statements on the keys of their rows, which are in these blocks.
    required: Vec<(Range<usize>, Box<KnownKeys>)>,
    /// The table with these rows.
    own: Option<OwnRows>,
    /// How many blocks `own` has.
    seen: usize,
    /// `own` is not the one by which all requirements were checked.
    is_to_check: bool,
}

/// A place among the rows of a transaction for one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadMark {
    /// `None`: later rows can't be told from earlier ones.
    rows: Option<(Mark, Counts, usize)>,
}

/// Why a statement's rows were not added.
pub(super) enum NotAdded {
    /// Nothing of the statement is left.
    Undone(SqlError),
    /// Some of its rows may share data files with those of earlier statements.
    Broken(SinkError),
}

impl TransactionLoad {
    pub fn new(load: Load) -> Self {
        // Explicit transactions share no group, so they have a transaction.
        let txn = load.transaction().map_or(TxnId(0), |(txn, _)| txn);
        Self {
            load,
            txn,
            read: Read::default(),
            required: Vec::new(),
            own: None,
            seen: 0,
            is_to_check: false,
        }
    }

    pub fn table(&self) -> &Arc<Table> {
        self.load.table()
    }

    /// The place behind the rows.
    pub fn mark(&self) -> LoadMark {
        let rows = self.load.mark().map(|mark| (mark, self.read.counts, self.read.rejects.len()));
        LoadMark { rows }
    }

    /// Gives up the rows behind a mark. `false`: that is not possible, and nothing has changed.
    pub fn back_to(&mut self, mark: LoadMark) -> bool {
        let Some((rows, counts, rejects)) = mark.rows else { return false };
        if !self.load.sink().back_to(rows) {
            return false;
        }
        self.read.counts = counts;
        self.read.rejects.truncate(rejects);
        let blocks = self.load.blocks().map_or(0, <[Block]>::len);
        self.required.retain(|(rows, _)| rows.end <= blocks);
        if self.seen > blocks {
            (self.own, self.seen) = (None, 0);
        }
        true
    }

    /// Adds the rows of a statement, whose keys must be as required.
    pub async fn add(
        &mut self,
        loads: &Loads,
        blocks: Vec<Block>,
        (counts, rejects): (Counts, Vec<Reject>),
        known_keys: Option<Box<KnownKeys>>,
    ) -> Result<(), NotAdded> {
        let before = self.mark();
        let first = self.load.blocks().map(<[Block]>::len);
        if first.is_none() && known_keys.as_ref().is_some_and(|keys| keys.only_counts()) {
            return Err(NotAdded::Undone(self.in_files()));
        }
        self.load.push(loads, blocks).await.map_err(NotAdded::Broken)?;
        match (known_keys, first, self.load.blocks().map(<[Block]>::len)) {
            (None, ..) => {}
            (Some(keys), Some(first), Some(end)) => {
                if let Err(error) = self.check(&keys, first..end).await {
                    self.back_to(before);
                    return Err(NotAdded::Undone(error));
                }
                if !keys.only_counts() {
                    self.required.push((first..end, keys));
                }
            }
            (Some(keys), ..) => self.load.must_find(Some(keys)),
        }
        self.read.add(counts, rejects);
        Ok(())
    }

    /// Checks the keys of a statement's rows against the table with the rows of earlier statements.
    async fn check(&mut self, keys: &KnownKeys, rows: Range<usize>) -> Result<(), SqlError> {
        let own = self.see(rows.start).await?;
        let schema = Arc::clone(self.load.schema());
        let blocks = self.load.blocks().unwrap_or_default();
        let batches = blocks_to_batches(&schema, &blocks[rows]).map_err(unreadable)?;
        keys.check_batches(&own, &schema, &batches, &[]).await
    }

    /// The table with the first blocks of the rows, which may be all.
    async fn see(&mut self, blocks: usize) -> Result<Arc<Table>, SqlError> {
        let table = Arc::clone(self.table());
        let is_usable = self.own.as_ref().is_some_and(|own| self.seen <= blocks && own.is_current(&table));
        if !is_usable {
            self.seen = 0;
            self.is_to_check |= !self.required.is_empty();
            self.own = Some(OwnRows::over(&table).await.map_err(table_error)?);
        }
        let (Some(own), Some(all)) = (&self.own, self.load.blocks()) else { return Err(self.in_files()) };
        if self.seen < blocks {
            let schema = self.load.schema();
            let batches = blocks_to_batches(schema, &all[self.seen..blocks]).map_err(unreadable)?;
            own.add(schema, batches).map_err(table_error)?;
            self.seen = blocks;
        }
        Ok(Arc::clone(own.table()))
    }

    /// The table with all rows, for the next statement.
    pub async fn refresh(&mut self) -> WrittenTable {
        let seen = match self.load.blocks().map(<[Block]>::len) {
            Some(blocks) => self.see(blocks).await,
            None => Err(self.in_files()),
        };
        WrittenTable { id: self.table().id(), seen }
    }

    /// Checks what the statements have required against the table as it is now, right before the commit.
    pub async fn check_again(&mut self) -> Result<(), SqlError> {
        let table = Arc::clone(self.table());
        let is_current = self.own.as_ref().is_some_and(|own| own.is_current(&table));
        if self.required.is_empty() || (is_current && !self.is_to_check) {
            return Ok(());
        }
        let required = std::mem::take(&mut self.required);
        if self.load.blocks().is_none() {
            // One check of all rows, which is stricter: a row that the transaction has inserted itself counts as missing.
            required.into_iter().for_each(|(_, keys)| self.load.must_find(Some(keys)));
            return Ok(());
        }
        (self.own, self.seen) = (None, 0);
        for (rows, keys) in required {
            self.check(&keys, rows).await?;
        }
        Ok(())
    }

    /// Whether keys have to be as required.
    pub fn requires_keys(&self) -> bool {
        !self.required.is_empty()
    }

    fn in_files(&self) -> SqlError {
        SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "the transaction has inserted so much into {} that its rows are in data files, and can't be read before COMMIT",
                self.table().def().table_ref()
            ),
        )
    }
}

fn unreadable(error: BlockError) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, error.to_string())
}

//! Labels and the states of transactions.
//!
//! A transaction goes PREPARE → (PRECOMMITTED) → VISIBLE, or ABORTED. A label chosen by a client is unique in its database until
//! its transaction is aborted or its record is purged; labels made here are random and are only looked up by people. COMMITTED
//! (durable, not yet visible) is skipped: the commit's fsync and the publication are one callback.
//!
//! A load may come from a source, like a topic, and name the position after it. The position of a source is that of its newest
//! visible transaction: it advances in the same step in which the rows become visible, and both are in the same entry of the log
//! (`docs/adr/0038-positions-of-sources.md`).

pub(crate) mod auto_increment;
mod labels;
pub(crate) mod prepared;
pub mod progress;
mod two_phase;

use crate::error::IngestError;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{
    Attachment, DbId, Label, SourceId, TableDef, TableId, TableRef, TransactionKind, TransactionStatus,
    TxnId, Version, host,
};

/// The most labels of finished transactions that stay used in a database. Beyond it the oldest is free again, as with Doris's
/// `label_num_threshold`, which is 2,000.
const LABELS_OF_DATABASE_MAX: usize = 100_000;
/// How many transactions are looked at under the lock, which each commit takes, at a time.
pub(crate) const SLICE: usize = 1000;
/// How many finished transactions without a client's label SHOW TRANSACTION remembers.
const FINISHED_REMEMBERED_MAX: usize = 10_000;

/// One transaction, as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionInfo {
    pub txn: TxnId,
    pub db: DbId,
    pub table: TableId,
    pub table_ref: TableRef,
    pub label: Label,
    /// The label was chosen by a client and stays unique after the transaction's end.
    pub label_is_kept: bool,
    pub kind: TransactionKind,
    pub status: TransactionStatus,
    pub prepared_at_ms: i64,
    pub precommitted_at_ms: Option<i64>,
    pub finished_at_ms: Option<i64>,
    /// Why it was aborted; empty otherwise.
    pub reason: String,
    pub loads: u32,
    pub rows: u64,
    pub bytes: u64,
    /// The version of the table that it made, once it is visible. 0: it was committed before the server started, and its rows had
    /// left the log by then.
    pub version: Version,
    /// The source of its load: then the attachment is the position in it after the load.
    pub source: Option<SourceId>,
    /// The bytes that its maker attached, see [`Reservation::attach`].
    pub attachment: Option<Attachment>,
}

impl TransactionInfo {
    /// A transaction in PREPARE.
    pub(crate) fn begun(txn: TxnId, new: NewTransaction) -> Self {
        Self {
            txn,
            db: new.db,
            table: new.table,
            table_ref: new.table_ref,
            label: new.label,
            label_is_kept: new.label_is_kept,
            kind: new.kind,
            status: TransactionStatus::Prepare,
            prepared_at_ms: new.now_ms,
            precommitted_at_ms: None,
            finished_at_ms: None,
            reason: String::new(),
            loads: 0,
            rows: 0,
            bytes: 0,
            version: Version(0),
            source: None,
            attachment: None,
        }
    }

    /// A two-phase load is durable and waits.
    pub(crate) fn precommit(&mut self, now_ms: i64, rows: u64, bytes: u64) {
        self.status = TransactionStatus::Precommitted;
        self.precommitted_at_ms = Some(now_ms);
        (self.loads, self.rows, self.bytes) = (1, rows, bytes);
    }

    /// Its rows are visible, since this version of the table.
    pub(crate) fn commit(&mut self, version: Version, now_ms: i64, (loads, rows, bytes): (u32, u64, u64)) {
        self.version = version;
        self.status = TransactionStatus::Visible;
        self.finished_at_ms = Some(now_ms);
        (self.loads, self.rows, self.bytes) = (loads, rows, bytes);
    }

    /// Marks it as aborted: nothing of it will ever be visible.
    pub(crate) fn abort(&mut self, now_ms: i64, reason: String) {
        self.status = TransactionStatus::Aborted;
        self.finished_at_ms = Some(now_ms);
        self.reason = reason;
    }
}

/// The progress of a source's loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    pub source: SourceId,
    /// The last load's transaction.
    pub txn: TxnId,
    /// The position that the load named.
    pub position: Attachment,
}

impl SourcePosition {
    /// The position of a visible transaction.
    fn of(info: &TransactionInfo) -> Option<Self> {
        let (source, position) = (info.source?, info.attachment.clone()?);
        (info.status == TransactionStatus::Visible).then_some(Self { source, txn: info.txn, position })
    }
}

/// A transaction of a two-phase load, by id, by label, or by both (which must agree).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TwoPhaseTarget {
    pub txn: Option<TxnId>,
    pub label: Option<Label>,
}

#[derive(Debug, Default)]
struct Book {
    by_id: BTreeMap<TxnId, TransactionInfo>,
    /// Labels in use: of running transactions, and retained ones of visible transactions.
    labels: HashMap<(DbId, Label), TxnId>,
    /// The newest transactions whose labels are free to use: made here, or of aborted loads.
    others: HashMap<(DbId, Label), TxnId>,
    /// Finished transactions without a retained label, oldest first.
    finished: VecDeque<TxnId>,
    /// Visible transactions with a retained label, by the time of their end, of each database.
    retained: BTreeMap<DbId, BTreeSet<(i64, TxnId)>>,
    /// Ends of transactions that the label store lacks: a retained label, or that it is free again.
    unrecorded: BTreeMap<TxnId, TransactionInfo>,
    positions: BTreeMap<SourceId, SourcePosition>,
    /// Sources whose positions the label store does not have yet.
    unrecorded_positions: BTreeSet<SourceId>,
}

/// All running transactions and the recently finished ones.
#[derive(Debug)]
pub struct Transactions {
    next: AtomicU64,
    labels_max: usize,
    book: Ranked<Book>,
}

impl Transactions {
    #[must_use]
    pub fn new(next: TxnId) -> Self {
        Self::with_labels_max(next, LABELS_OF_DATABASE_MAX)
    }

    fn with_labels_max(next: TxnId, labels_max: usize) -> Self {
        let book = Ranked::new(Rank::Transactions, Book::default());
        Self { next: AtomicU64::new(next.0.max(1)), labels_max, book }
    }

    /// The id that the next transaction gets.
    #[must_use]
    pub fn peek_next(&self) -> TxnId {
        TxnId(self.next.load(Ordering::Relaxed))
    }

    /// A new transaction in PREPARE.
    ///
    /// # Errors
    /// [`IngestError::LabelUsed`] if the label belongs to a transaction that is not aborted.
    pub fn begin(self: &Arc<Self>, new: NewTransaction) -> Result<Reservation, IngestError> {
        let kind = new.kind;
        let (txn, label) = self.start(new)?;
        Ok(Reservation { txn, label, kind, transactions: Arc::clone(self), client: None, open: true })
    }

    /// Like [`Transactions::begin`], for a group, which can't be left half done.
    pub(crate) fn begin_group(&self, new: NewTransaction) -> TxnId {
        let mut book = self.book.lock();
        self.insert(&mut book, new)
    }

    fn start(&self, new: NewTransaction) -> Result<(TxnId, Label), IngestError> {
        let mut book = self.book.lock();
        if let Some(&txn) = book.labels.get(&(new.db, new.label.clone())) {
            let status = book.by_id.get(&txn).map_or("VISIBLE", |info| info.status.name());
            return Err(IngestError::LabelUsed { label: new.label, txn, status });
        }
        let label = new.label.clone();
        let db = new.db;
        let kept = new.label_is_kept;
        let txn = self.insert(&mut book, new);
        if kept {
            book.labels.insert((db, label.clone()), txn);
        }
        Ok((txn, label))
    }

    fn insert(&self, book: &mut Book, new: NewTransaction) -> TxnId {
        let txn = TxnId(self.next.fetch_add(1, Ordering::Relaxed));
        if !new.label_is_kept {
            book.remember_label((new.db, new.label.clone()), txn);
        }
        book.by_id.insert(txn, TransactionInfo::begun(txn, new));
        txn
    }

    pub(crate) fn precommitted(&self, txn: TxnId, now_ms: i64, rows: u64, bytes: u64) {
        if let Some(info) = self.book.lock().by_id.get_mut(&txn) {
            info.precommit(now_ms, rows, bytes);
        }
    }

    /// The transaction has made this version of its table; the counts are its loads, rows and bytes.
    pub(crate) fn visible(&self, txn: TxnId, version: Version, now_ms: i64, counts: (u32, u64, u64)) {
        self.finish(txn, |info| info.commit(version, now_ms, counts));
    }

    pub(crate) fn aborted(&self, txn: TxnId, now_ms: i64, reason: String) {
        self.finish(txn, |info| info.abort(now_ms, reason));
    }

    fn finish(&self, txn: TxnId, end: impl FnOnce(&mut TransactionInfo)) {
        let mut book = self.book.lock();
        let Some(info) = book.by_id.get_mut(&txn) else { return };
        end(info);
        let info = info.clone();
        book.advance(&info, false);
        book.remember(info, false, self.labels_max);
    }

    /// Puts a transaction that recovery or the label store knows into the book.
    pub(crate) fn restore(&self, info: TransactionInfo, recorded: bool) {
        self.next.fetch_max(info.txn.0 + 1, Ordering::Relaxed);
        let mut book = self.book.lock();
        let key = (info.db, info.label.clone());
        if info.label_is_kept && info.status != TransactionStatus::Aborted {
            book.labels.insert(key, info.txn);
        } else {
            book.remember_label(key, info.txn);
        }
        // Both the store and the log may have it, with other times of its end.
        if let Some(before) = book.by_id.insert(info.txn, info.clone())
            && let Some(retained) = book.retained.get_mut(&before.db)
        {
            retained.remove(&(before.finished_at_ms.unwrap_or_default(), before.txn));
        }
        book.advance(&info, recorded);
        if info.status.is_final() {
            book.remember(info, recorded, self.labels_max);
        }
    }

    /// The transaction with that id, if it runs or is remembered.
    #[must_use]
    pub fn by_id(&self, txn: TxnId) -> Option<TransactionInfo> {
        self.book.lock().by_id.get(&txn).cloned()
    }

    /// The newest transaction with that label, if it runs or is remembered.
    #[must_use]
    pub fn by_label(&self, db: DbId, label: &str) -> Option<TransactionInfo> {
        let key = (db, Label::new(label).ok()?);
        let book = self.book.lock();
        let newest = book.labels.get(&key).max(book.others.get(&key))?;
        book.by_id.get(newest).cloned()
    }

    /// All remembered transactions of a database, newest first.
    #[must_use]
    pub fn of_db(&self, db: DbId) -> Vec<TransactionInfo> {
        self.matching(|info| info.db == db)
    }

    /// The remembered transactions for which it is true, newest first.
    #[must_use]
    pub fn matching(&self, is_wanted: impl Fn(&TransactionInfo) -> bool) -> Vec<TransactionInfo> {
        let (mut all, mut below) = (Vec::new(), None);
        loop {
            let book = self.book.lock();
            let range = match below {
                None => book.by_id.range(..),
                Some(below) => book.by_id.range(..below),
            };
            let mut seen = 0;
            for (txn, info) in range.rev().take(SLICE) {
                (seen, below) = (seen + 1, Some(*txn));
                all.extend(is_wanted(info).then(|| info.clone()));
            }
            if seen < SLICE {
                return all;
            }
        }
    }

    /// The finished transactions of a database whose labels are still in use: that of one label, or all.
    pub(crate) fn keeping_labels(&self, db: DbId, label: Option<&str>) -> Vec<TransactionInfo> {
        if let Some(label) = label {
            let book = self.book.lock();
            let used = Label::new(label).ok().and_then(|label| book.labels.get(&(db, label)));
            let info = used.and_then(|txn| book.by_id.get(txn));
            return info
                .filter(|info| info.status == TransactionStatus::Visible)
                .cloned()
                .into_iter()
                .collect();
        }
        let (mut all, mut above) = (Vec::new(), None);
        loop {
            let book = self.book.lock();
            let Some(retained) = book.retained.get(&db) else { return all };
            let range = match above {
                None => retained.range(..),
                Some(above) => retained.range((Bound::Excluded(above), Bound::Unbounded)),
            };
            let mut seen = 0;
            for of_label in range.take(SLICE) {
                (seen, above) = (seen + 1, Some(*of_label));
                all.extend(book.by_id.get(&of_label.1).cloned());
            }
            if seen < SLICE {
                return all;
            }
        }
    }

    /// The labels of these finished transactions may be used again.
    pub(crate) fn free_labels(&self, freed: &[TransactionInfo]) {
        let mut book = self.book.lock();
        for info in freed {
            book.unrecorded.remove(&info.txn);
            book.free_label(info.txn);
        }
    }

    /// The position of a source's loads: the attachment of the newest visible one.
    #[must_use]
    pub fn position(&self, source: SourceId) -> Option<Attachment> {
        self.book.lock().positions.get(&source).map(|known| known.position.clone())
    }

    /// Forgets a source without further loads.
    pub fn forget_source(&self, source: SourceId) {
        let mut book = self.book.lock();
        book.positions.remove(&source);
        book.unrecorded_positions.remove(&source);
    }

    /// Puts a position that the label store has into the book, unless the log had a newer one.
    pub(crate) fn restore_position(&self, stored: SourcePosition) {
        self.next.fetch_max(stored.txn.next().0, Ordering::Relaxed);
        self.book.lock().take_position(stored, true);
    }

    /// The positions that the label store does not have yet.
    pub(crate) fn unrecorded_positions(&self) -> Vec<SourcePosition> {
        let book = self.book.lock();
        book.unrecorded_positions.iter().filter_map(|source| book.positions.get(source).cloned()).collect()
    }

    /// The label store has these.
    pub(crate) fn recorded_positions(&self, stored: &[SourcePosition]) {
        let mut book = self.book.lock();
        for known in stored {
            if book.positions.get(&known.source).is_none_or(|newest| newest.txn == known.txn) {
                book.unrecorded_positions.remove(&known.source);
            }
        }
    }

    /// The transactions of whose end the label store does not know yet.
    pub(crate) fn unrecorded_ids(&self) -> Vec<TxnId> {
        self.book.lock().unrecorded.keys().copied().collect()
    }

    /// The information that the label store lacks about these transactions.
    pub(crate) fn unrecorded(&self, ids: &[TxnId]) -> Vec<TransactionInfo> {
        let book = self.book.lock();
        ids.iter().filter_map(|txn| book.unrecorded.get(txn).cloned()).collect()
    }

    /// The label store has these.
    pub(crate) fn recorded(&self, infos: &[TransactionInfo]) {
        let mut book = self.book.lock();
        for info in infos {
            // Its label may have been freed since.
            if book.unrecorded.get(&info.txn).is_some_and(|now| now.label_is_kept == info.label_is_kept) {
                book.unrecorded.remove(&info.txn);
            }
        }
    }

    /// Forgets retained labels that finished before `before_ms`; they may be used again.
    pub(crate) fn purge(&self, before_ms: i64) {
        loop {
            let mut book = self.book.lock();
            let is_old = |&&(at, _): &&(i64, TxnId)| at < before_ms;
            let old: Vec<(i64, TxnId)> = book
                .retained
                .values()
                .flat_map(|of_db| of_db.iter().take_while(is_old))
                .take(SLICE)
                .copied()
                .collect();
            for of_label in &old {
                if let Some(info) = book.by_id.remove(&of_label.1) {
                    book.forget_label(&info);
                    book.retained.entry(info.db).or_default().remove(of_label);
                }
            }
            if old.len() < SLICE {
                return;
            }
        }
    }
}

impl Book {
    /// Moves the position of the transaction's source, if it has one and is visible.
    fn advance(&mut self, info: &TransactionInfo, recorded: bool) {
        if let Some(position) = SourcePosition::of(info) {
            self.take_position(position, recorded);
        }
    }

    /// Takes a position unless a newer transaction has set one: loads of a source are committed one after another.
    fn take_position(&mut self, position: SourcePosition, recorded: bool) {
        let source = position.source;
        if self.positions.get(&source).is_some_and(|known| known.txn >= position.txn) {
            return;
        }
        self.positions.insert(source, position);
        if recorded {
            self.unrecorded_positions.remove(&source);
        } else {
            self.unrecorded_positions.insert(source);
        }
    }

    fn remember(&mut self, info: TransactionInfo, recorded: bool, labels_max: usize) {
        if info.status == TransactionStatus::Aborted {
            self.forget_label(&info);
            self.remember_label((info.db, info.label.clone()), info.txn);
        }
        if !info.label_is_kept || info.status != TransactionStatus::Visible {
            if !recorded {
                self.remember_some(info.txn);
            }
            return;
        }
        let (db, txn) = (info.db, info.txn);
        let retained = self.retained.entry(db).or_default();
        retained.insert((info.finished_at_ms.unwrap_or_default(), txn));
        let oldest = if retained.len() > labels_max { retained.first().copied() } else { None };
        if !recorded {
            self.unrecorded.insert(txn, info);
        }
        if let Some((_, oldest)) = oldest
            && let Some(freed) = self.free_label(oldest)
        {
            // The log may have its commit for a while: what the store says of a label is newer.
            self.unrecorded.insert(oldest, freed);
        }
    }

    /// The label of a visible transaction may be used again.
    fn free_label(&mut self, txn: TxnId) -> Option<TransactionInfo> {
        let known = self.by_id.get_mut(&txn)?;
        known.label_is_kept = false;
        let info = known.clone();
        if let Some(retained) = self.retained.get_mut(&info.db) {
            retained.remove(&(info.finished_at_ms.unwrap_or_default(), txn));
        }
        self.forget_label(&info);
        self.remember_label((info.db, info.label.clone()), txn);
        self.remember_some(txn);
        Some(info)
    }

    /// Remembers a finished transaction without a retained label, and forgets the oldest.
    fn remember_some(&mut self, txn: TxnId) {
        self.finished.push_back(txn);
        while self.finished.len() > FINISHED_REMEMBERED_MAX {
            let oldest = self.finished.pop_front();
            if let Some(info) = oldest.and_then(|oldest| self.by_id.remove(&oldest)) {
                self.forget_label(&info);
            }
        }
    }

    /// A label that may be used leads to this transaction, unless it leads to a newer one.
    fn remember_label(&mut self, key: (DbId, Label), txn: TxnId) {
        let newest = self.others.entry(key).or_insert(txn);
        *newest = txn.max(*newest);
    }

    /// The label does not lead to this transaction any more.
    fn forget_label(&mut self, info: &TransactionInfo) {
        let key = (info.db, info.label.clone());
        for labels in [&mut self.labels, &mut self.others] {
            if labels.get(&key) == Some(&info.txn) {
                labels.remove(&key);
            }
        }
    }
}

/// The initial data of a transaction.
#[derive(Clone, Debug)]
pub struct NewTransaction {
    pub db: DbId,
    pub table: TableId,
    pub table_ref: TableRef,
    pub label: Label,
    pub label_is_kept: bool,
    pub kind: TransactionKind,
    pub now_ms: i64,
}

impl NewTransaction {
    pub(crate) fn of_load(
        table: &TableDef,
        label: Label,
        label_is_kept: bool,
        kind: TransactionKind,
        now_ms: i64,
    ) -> Self {
        let table_ref = table.table_ref();
        Self { db: table.db_id, table: table.id, table_ref, label, label_is_kept, kind, now_ms }
    }

    pub(crate) fn of_group(table: &TableDef, label: Label, now_ms: i64) -> Self {
        Self::of_load(table, label, false, TransactionKind::Group, now_ms)
    }
}

/// A transaction of one load, aborted when it is dropped before it was committed or prepared.
#[derive(Debug)]
pub struct Reservation {
    txn: TxnId,
    label: Label,
    kind: TransactionKind,
    transactions: Arc<Transactions>,
    client: Option<String>,
    open: bool,
}

impl Reservation {
    /// Names the client of a two-phase load, for those who look for its owner.
    pub fn set_client(&mut self, client: String) {
        self.client = Some(client);
    }

    pub(crate) fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    #[must_use]
    pub const fn txn(&self) -> TxnId {
        self.txn
    }

    #[must_use]
    pub const fn label(&self) -> &Label {
        &self.label
    }

    #[must_use]
    pub const fn kind(&self) -> TransactionKind {
        self.kind
    }

    /// Names the source of the load, and the position after it: durable with the load's rows or not at all, and returned by
    /// [`Transactions::position`], even after a restart, until a later load of the source is committed. Loads of a source are
    /// begun and committed one after another.
    pub fn advance(&self, source: SourceId, position: Attachment) {
        if let Some(info) = self.transactions.book.lock().by_id.get_mut(&self.txn) {
            (info.source, info.attachment) = (Some(source), Some(position));
        }
    }

    /// Passes the transaction to the code that finishes it.
    pub(crate) fn hand_over(mut self) -> (TxnId, Label) {
        self.open = false;
        (self.txn, self.label.clone())
    }

    /// Ends the transaction with the reason that SHOW TRANSACTION will give.
    pub fn abort(mut self, reason: impl Into<String>) {
        self.open = false;
        self.transactions.aborted(self.txn, host::unix_ms(), reason.into());
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.open {
            let now_ms = host::unix_ms();
            self.transactions.aborted(self.txn, now_ms, "the load ended before it was committed".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(label: &str) -> NewTransaction {
        NewTransaction {
            db: DbId(1),
            table: TableId(1),
            table_ref: TableRef { db: "d".into(), table: "t".into() },
            label: Label::new(label).expect("legal"),
            label_is_kept: true,
            kind: TransactionKind::StreamLoad,
            now_ms: 0,
        }
    }

    #[test]
    fn a_label_is_refused_while_its_transaction_runs_and_after_it_is_visible() {
        let transactions = Arc::new(Transactions::new(TxnId(7)));
        let reservation = transactions.begin(new("a")).expect("free");
        assert_eq!(
            transactions.begin(new("a")).unwrap_err().to_string(),
            "Label [a] has already been used, relate to txn [7], status [PREPARE]."
        );
        let (txn, _) = reservation.hand_over();
        transactions.visible(txn, Version(1), 1, (1, 1, 1));
        assert_eq!(
            transactions.begin(new("a")).unwrap_err().to_string(),
            "Label [a] has already been used, relate to txn [7], status [VISIBLE]."
        );
        let unrecorded = transactions.unrecorded(&transactions.unrecorded_ids());
        assert_eq!(unrecorded.len(), 1);
        transactions.recorded(&unrecorded);
        assert_eq!(transactions.unrecorded_ids(), []);
    }

    #[test]
    fn a_label_is_free_again_when_its_transaction_was_aborted() {
        let transactions = Arc::new(Transactions::new(TxnId(1)));
        drop(transactions.begin(new("a")).expect("free"));
        let second = transactions.begin(new("a")).expect("free again");
        assert_eq!(second.txn(), TxnId(2));
        second.abort("because");
        assert_eq!(transactions.by_id(TxnId(2)).expect("remembered").reason, "because");
    }

    #[test]
    fn a_label_leads_to_its_newest_transaction_as_long_as_that_is_remembered() {
        let transactions = Arc::new(Transactions::new(TxnId(1)));
        let found = |label: &str| transactions.by_label(DbId(1), label).map(|info| (info.txn.0, info.status));
        drop(transactions.begin(new("a")).expect("free"));
        assert_eq!(found("a"), Some((1, TransactionStatus::Aborted)));
        let (txn, _) = transactions.begin(new("a")).expect("free again").hand_over();
        assert_eq!(found("a"), Some((2, TransactionStatus::Prepare)));
        transactions.visible(txn, Version(1), 10, (1, 1, 1));
        assert_eq!(found("a"), Some((2, TransactionStatus::Visible)));
        let group = transactions.begin_group(NewTransaction { label_is_kept: false, ..new("group") });
        assert_eq!(found("group"), Some((group.0, TransactionStatus::Prepare)));
        transactions.visible(group, Version(1), 10, (1, 1, 1));
        assert_eq!(found("group"), Some((group.0, TransactionStatus::Visible)));
        for number in 0..FINISHED_REMEMBERED_MAX {
            let label = Label::new(&format!("g{number}")).expect("legal");
            let txn = transactions.begin_group(NewTransaction { label, label_is_kept: false, ..new("g") });
            transactions.visible(txn, Version(1), 10, (1, 1, 1));
        }
        assert_eq!(found("group"), None, "the oldest are forgotten");
        assert_eq!(found("a"), Some((2, TransactionStatus::Visible)), "but no label that is in use");
        transactions.purge(11);
        assert_eq!(found("a"), None);
        assert_eq!((found("no label"), found("b")), (None, None));
    }

    #[test]
    fn the_same_label_may_be_used_in_another_database() {
        let transactions = Arc::new(Transactions::new(TxnId(1)));
        let _first = transactions.begin(new("a")).expect("free");
        transactions.begin(NewTransaction { db: DbId(2), ..new("a") }).expect("another database");
    }

    #[test]
    fn a_purged_label_is_free_again() {
        let transactions = Arc::new(Transactions::new(TxnId(1)));
        let (txn, _) = transactions.begin(new("a")).expect("free").hand_over();
        transactions.visible(txn, Version(1), 10, (1, 1, 1));
        transactions.purge(10);
        assert!(transactions.begin(new("a")).is_err());
        transactions.purge(11);
        transactions.begin(new("a")).expect("purged");
    }

    #[test]
    fn labels_are_bounded_and_the_oldest_is_free_again() {
        const LABELS: u64 = 100_000;
        const LABELS_MAX: u64 = 1000;
        let transactions = Arc::new(Transactions::with_labels_max(TxnId(1), LABELS_MAX as usize));
        let stored = std::sync::Mutex::new(BTreeMap::new());
        let store = || {
            for ids in transactions.unrecorded_ids().chunks(SLICE) {
                let some = transactions.unrecorded(ids);
                transactions.recorded(&some);
                let known = some.into_iter().map(|info| (info.txn, info.label_is_kept));
                stored.lock().expect("no panic").extend(known);
            }
        };
        for number in 0..LABELS {
            let (txn, _) = transactions.begin(new(&format!("l{number}"))).expect("free").hand_over();
            transactions.visible(txn, Version(1), number as i64, (1, 1, 1));
            if number % 10_000 == 0 {
                store();
            }
        }
        store();
        let used = transactions.keeping_labels(DbId(1), None);
        assert_eq!(used.len() as u64, LABELS_MAX);
        let in_memory = transactions.of_db(DbId(1)).len() as u64;
        assert!(in_memory <= LABELS_MAX + FINISHED_REMEMBERED_MAX as u64, "{in_memory} transactions");
        let kept = stored.lock().expect("no panic").values().filter(|is_kept| **is_kept).count() as u64;
        assert_eq!(kept, LABELS_MAX, "the store knows of the others that they are free");
        transactions.begin(new("l0")).expect("the oldest is free");
        transactions.begin(new(&format!("l{}", LABELS - LABELS_MAX - 1))).expect("it is free, too");
        assert!(transactions.begin(new(&format!("l{}", LABELS - LABELS_MAX))).is_err());
        assert!(transactions.begin(new(&format!("l{}", LABELS - 1))).is_err());
        transactions.purge((LABELS - 10) as i64);
        assert_eq!(transactions.keeping_labels(DbId(1), None).len(), 10);
        assert_eq!(transactions.keeping_labels(DbId(1), Some("l99999")).len(), 1);
        assert_eq!(transactions.keeping_labels(DbId(1), Some("l5")).len(), 0);
    }
}

//! A source whose messages are for several tables: the rules of each table's progress.
//!
//! A message has a partition and an offset, which determine the name of its table, as a message of a job without ON does. Each
//! table gets a load of the messages read at a time, and these are committed one after another. After a crash in between, some
//! tables have their messages and others do not: a table that gets them again has them twice, and one that is skipped never gets
//! them.

use crate::model::{Fate, LoadId, Violation};
use std::collections::{BTreeMap, BTreeSet};
use tributary_ingest::Progress;
use tributary_ingest::progress::Offsets;
use tributary_types::{Attachment, SourceId, TableId};

/// The source. Tables' ids, which are sources too, are small.
pub const SOURCE: SourceId = SourceId(1_000_000);
pub const PARTITIONS: i32 = 2;
/// The number of table names.
const NAMES: u64 = 3;

/// A partition and an offset.
pub type Message = (i32, i64);

/// The name of a message's table.
const fn name_in(message: Message) -> u64 {
    let (partition, offset) = message;
    (offset as u64 * 7 + partition as u64 * 5) / 3 % NAMES
}

/// The table of a message: the oldest one of that name.
#[must_use]
pub fn table_of(message: Message, tables: impl Iterator<Item = TableId>) -> Option<TableId> {
    tables.filter(|table| table.0 % NAMES == name_in(message)).min()
}

/// A progress as a job writes it.
///
/// # Panics
/// Never: the messages are few.
#[must_use]
pub fn written(progress: &Progress) -> Attachment {
    Attachment::new(&serde_json::to_vec(progress).expect("numbers")).expect("it is small")
}

/// The progress that the server returns.
#[must_use]
pub fn read(kept: Option<&Attachment>) -> Progress {
    let begin = || Progress::from_offsets((0..PARTITIONS).map(|partition| (partition, 0)).collect());
    kept.map_or_else(begin, |kept| serde_json::from_slice(kept.bytes()).expect("what a job wrote"))
}

/// The load of a table that has no answer yet.
#[derive(Clone, Debug)]
struct Running {
    load: LoadId,
    table: TableId,
    messages: BTreeSet<Message>,
    /// The progress of the tables after it.
    after: Progress,
}

/// The job of the source. It has one load under way at most.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// The contents of each table, by the loads that brought them.
    loaded: BTreeMap<TableId, BTreeSet<Message>>,
    /// The messages that each table was to get, present or not.
    meant: BTreeMap<TableId, BTreeSet<Message>>,
    /// How far messages were read.
    read: Offsets,
    running: Option<Running>,
    /// Whether somebody reads it.
    pub is_busy: bool,
}

impl Shares {
    /// Messages of these tables were read, up to here.
    pub fn are_read(&mut self, messages: &BTreeMap<TableId, BTreeSet<Message>>, to: &Offsets) {
        for (&table, messages) in messages {
            self.meant.entry(table).or_default().extend(messages);
        }
        for (&partition, &next) in to {
            let read = self.read.entry(partition).or_default();
            *read = next.max(*read);
        }
    }

    /// A load of a table's messages is about to be sent.
    pub fn begins(&mut self, load: LoadId, table: TableId, messages: BTreeSet<Message>, after: Progress) {
        self.running = Some(Running { load, table, messages, after });
    }

    /// The load was acknowledged, or refused as a whole.
    pub fn answered(&mut self, committed: bool) {
        if let Some(running) = self.running.take()
            && committed
        {
            self.loaded.entry(running.table).or_default().extend(running.messages);
        }
    }

    /// The table was dropped, and no promise about it is left.
    pub fn dropped(&mut self, table: TableId) {
        self.loaded.remove(&table);
        self.meant.remove(&table);
    }

    /// Checks how far the server says that tables are, while no load is under way.
    ///
    /// # Errors
    /// A table would get messages again, or never.
    pub fn is_at(&self, progress: &Progress) -> Result<(), Violation> {
        for (partition, next) in progress.offsets() {
            let read = self.read.get(partition).copied().unwrap_or_default();
            if *next > read {
                return Err(Violation(format!(
                    "partition {partition} of the shared source was read up to {read} and is at {next}: messages would be lost"
                )));
            }
        }
        let none = BTreeSet::new();
        for (&table, meant) in &self.meant {
            let loaded = self.loaded.get(&table).unwrap_or(&none);
            for &(partition, offset) in meant {
                let is_behind = progress.offsets().get(&partition).is_some_and(|next| offset < *next);
                let has = is_behind || progress.has(table, partition, offset);
                let what = match (has, loaded.contains(&(partition, offset))) {
                    (true, false) => "would be lost",
                    (false, true) => "would be loaded again",
                    _ => continue,
                };
                return Err(Violation(format!(
                    "message {partition}:{offset} of the shared source {what} in table {table}: {progress:?}"
                )));
            }
        }
        Ok(())
    }

    /// Checks the position after a recovery, and takes it as it is. `fate` is what became of a load.
    ///
    /// # Errors
    /// As [`Shares::is_at`].
    pub fn recovered(&mut self, found: &Progress, fate: impl Fn(LoadId) -> Fate) -> Result<(), Violation> {
        self.is_busy = false;
        if let Some(running) = self.running.take() {
            let is_there = match fate(running.load) {
                Fate::Visible | Fate::Promised => true,
                // Emptied tables can't be checked.
                Fate::Removed | Fate::Loose | Fate::Unknown | Fate::Running => *found == running.after,
                Fate::Never | Fate::Prepared | Fate::Committing | Fate::Aborting => false,
            };
            // A dropped table is not checked.
            if is_there && self.meant.contains_key(&running.table) {
                self.loaded.entry(running.table).or_default().extend(running.messages);
            }
        }
        self.is_at(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TableId = TableId(3);
    const B: TableId = TableId(4);

    /// Two messages of each table are read; A has its own, B's load became this, and the server says that.
    fn after(became: Fate, found: impl Fn(&Progress, &Progress) -> Progress) -> Result<(), Violation> {
        let mut shares = Shares::default();
        let of = |messages: [Message; 2]| BTreeSet::from(messages);
        let messages = BTreeMap::from([(A, of([(0, 0), (1, 0)])), (B, of([(0, 1), (1, 1)]))]);
        let to = Offsets::from([(0, 2), (1, 2)]);
        shares.are_read(&messages, &to);
        let first = read(None).after(A, &to, false);
        shares.begins(1, A, messages[&A].clone(), first.clone());
        shares.answered(true);
        assert_eq!(shares.is_at(&first), Ok(()));
        let last = first.after(B, &to, true);
        shares.begins(2, B, messages[&B].clone(), last.clone());
        shares.recovered(&found(&first, &last), |_| became)
    }

    #[test]
    fn each_table_has_what_the_position_says_that_it_has() {
        assert_eq!(after(Fate::Never, |first, _| first.clone()), Ok(()));
        assert_eq!(after(Fate::Visible, |_, last| last.clone()), Ok(()));
        assert_eq!(after(Fate::Removed, |_, last| last.clone()), Ok(()));
        let lost = after(Fate::Never, |_, last| last.clone()).unwrap_err().to_string();
        assert!(lost.contains("would be lost in table 4"), "{lost}");
        let doubled = after(Fate::Visible, |first, _| first.clone()).unwrap_err().to_string();
        assert!(doubled.contains("would be loaded again in table 4"), "{doubled}");
        let forgotten = after(Fate::Never, |_, _| read(None)).unwrap_err().to_string();
        assert!(
            forgotten.contains("0:0 of the shared source would be loaded again in table 3"),
            "{forgotten}"
        );
        let ahead = after(Fate::Visible, |_, _| Progress::from_offsets(Offsets::from([(0, 9)]))).unwrap_err();
        assert!(ahead.to_string().contains("read up to 2 and is at 9"), "{ahead}");
    }

    #[test]
    fn a_position_is_read_as_it_was_written_and_messages_are_for_all_names() {
        let progress = read(None).after(A, &Offsets::from([(0, 2)]), false);
        assert_eq!(read(Some(&written(&progress))), progress);
        let tables = || [TableId(6), A, B, TableId(5)].into_iter();
        let of: BTreeSet<_> = (0..20).map(|offset| table_of((0, offset), tables())).collect();
        assert_eq!(of, [Some(A), Some(B), Some(TableId(5))].into());
    }
}

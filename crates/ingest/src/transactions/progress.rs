//! How far a source was read whose messages are for several tables.
//!
//! Each batch that is read has a load for each table, and those are committed one after another, in the order of their
//! transactions. After a crash some of them exist. So the position that each names ([`crate::Reservation::advance`]) is the
//! complete state of the source: the offsets that every table has reached, and the tables that are further. A reader resumes at
//! the former, and skips the messages that their table has (`docs/adr/0038-positions-of-sources.md`).
//!
//! Invariant: a message is in its table if and only if it is before the common offset of its partition or before the table's own.
//!
//! Not its business: the format of messages, and how they name their table.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tributary_types::TableId;

/// The next offset of each partition.
pub type Offsets = BTreeMap<i32, i64>;

/// How far the tables of a source have its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct Progress {
    /// All tables have everything before.
    common: Offsets,
    /// Tables that are further, with the partitions in which they are.
    ahead: BTreeMap<TableId, Offsets>,
}

/// [`Progress`] as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub offsets: Offsets,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Ahead>,
}

/// Tables that are ahead of the others, as far as one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    pub tables: Vec<TableId>,
    pub offsets: Offsets,
}

impl From<Parts> for Progress {
    fn from(Parts { offsets, ahead }: Parts) -> Self {
        let of_tables = |Ahead { tables, offsets }: Ahead| {
            tables.into_iter().map(move |table| (table, offsets.clone())).collect::<Vec<_>>()
        };
        Self { common: offsets, ahead: ahead.into_iter().flat_map(of_tables).collect() }
    }
}

impl From<Progress> for Parts {
    fn from(progress: Progress) -> Self {
        // The tables of a batch are as far as one another, so there are few of these.
        let mut by_offsets: BTreeMap<Offsets, Vec<TableId>> = BTreeMap::new();
        for (table, offsets) in progress.ahead {
            by_offsets.entry(offsets).or_default().push(table);
        }
        let ahead = by_offsets.into_iter().map(|(offsets, tables)| Ahead { tables, offsets });
        Self { offsets: progress.common, ahead: ahead.collect() }
    }
}

impl Progress {
    /// Nothing before these offsets is for any table any more.
    #[must_use]
    pub fn from_offsets(offsets: Offsets) -> Self {
        Self { common: offsets, ahead: BTreeMap::new() }
    }

    /// The offsets at which reading resumes: for each partition, the next one that some table does not have.
    #[must_use]
    pub const fn offsets(&self) -> &Offsets {
        &self.common
    }

    /// Whether some tables have more than others.
    #[must_use]
    pub fn is_uneven(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether the table has a message at or after [`Progress::offsets`].
    #[must_use]
    pub fn has(&self, table: TableId, partition: i32, offset: i64) -> bool {
        let own = self.ahead.get(&table).and_then(|offsets| offsets.get(&partition));
        own.is_some_and(|own| offset < *own)
    }

    /// The position named by a table's load of everything read up to `to`. `is_last` if all other tables have their messages up
    /// to there.
    #[must_use]
    pub fn after(&self, table: TableId, to: &Offsets, is_last: bool) -> Self {
        let mut after = self.clone();
        if is_last {
            after.pass(to);
            return after;
        }
        let own = after.ahead.entry(table).or_default();
        for (&partition, &next) in to {
            // A repeated read may end earlier than the table's own offset.
            let own = own.entry(partition).or_insert(next);
            *own = next.max(*own);
        }
        after.level();
        after
    }

    /// There is nothing for any table before `to` that it does not have.
    pub fn pass(&mut self, to: &Offsets) {
        self.common.extend(to.iter().map(|(&partition, &next)| (partition, next)));
        self.level();
    }

    /// Makes reading resume at these offsets, even with messages that tables have.
    pub fn go_to(&mut self, offsets: Offsets) {
        for own in self.ahead.values_mut() {
            own.retain(|partition, _| !offsets.contains_key(partition));
        }
        self.common.extend(offsets);
        self.level();
    }

    /// These partitions are read on, from these offsets if they are new, and no others.
    pub fn keep_only(&mut self, partitions: &Offsets) {
        self.common.retain(|partition, _| partitions.contains_key(partition));
        for (&partition, &next) in partitions {
            self.common.entry(partition).or_insert(next);
        }
        for own in self.ahead.values_mut() {
            own.retain(|partition, _| partitions.contains_key(partition));
        }
        self.level();
    }

    /// Forgets what tables have that all have.
    fn level(&mut self) {
        let common = &self.common;
        self.ahead.retain(|_, own| {
            own.retain(|partition, next| common.get(partition).is_none_or(|common| *next > *common));
            !own.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TableId = TableId(1);
    const B: TableId = TableId(2);

    fn offsets(pairs: &[(i32, i64)]) -> Offsets {
        pairs.iter().copied().collect()
    }

    #[test]
    fn a_table_has_what_its_own_loads_and_those_of_all_have_brought() {
        let begin = Progress::from_offsets(offsets(&[(0, 10), (1, 20)]));
        let first = begin.after(A, &offsets(&[(0, 15), (1, 22)]), false);
        assert_eq!(first.offsets(), begin.offsets(), "B has nothing yet");
        let has = |progress: &Progress, table| {
            [(0, 14), (0, 15), (1, 21), (1, 22)]
                .map(|(partition, offset)| progress.has(table, partition, offset))
        };
        assert_eq!(has(&first, A), [true, false, true, false]);
        assert_eq!(has(&first, B), [false; 4]);
        let last = first.after(B, &offsets(&[(0, 15), (1, 22)]), true);
        assert_eq!(last, Progress::from_offsets(offsets(&[(0, 15), (1, 22)])));
    }

    #[test]
    fn what_is_read_again_may_end_earlier_and_takes_nothing_from_a_table() {
        let begin = Progress::from_offsets(offsets(&[(0, 0), (1, 0)]));
        let first = begin.after(A, &offsets(&[(0, 9), (1, 9)]), false);
        let again = first.after(A, &offsets(&[(0, 12), (1, 3)]), false);
        assert!(again.has(A, 0, 11) && again.has(A, 1, 8));
        let passed = again.after(B, &offsets(&[(0, 12), (1, 3)]), true);
        assert_eq!(passed.offsets(), &offsets(&[(0, 12), (1, 3)]));
        assert!(passed.has(A, 1, 8) && !passed.has(A, 0, 12) && !passed.has(B, 1, 3));
        let mut moved = passed.clone();
        moved.go_to(offsets(&[(1, 5)]));
        assert!(!moved.has(A, 1, 8), "whoever says where to go on wants what is there");
        assert!(passed.is_uneven() && !moved.is_uneven());
        let mut one = passed.clone();
        one.keep_only(&offsets(&[(0, 12), (7, 100)]));
        assert_eq!(one, Progress::from_offsets(offsets(&[(0, 12), (7, 100)])));
    }

    #[test]
    fn it_is_written_in_few_words_and_read_as_it_was() {
        let begin = Progress::from_offsets(offsets(&[(0, 5)]));
        let both = begin.after(A, &offsets(&[(0, 7)]), false).after(B, &offsets(&[(0, 7)]), false);
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"{"offsets":{"0":5},"ahead":[{"tables":[1,2],"offsets":{"0":7}}]}"#);
        assert_eq!(serde_json::from_str::<Progress>(&text).unwrap(), both);
        assert_eq!(serde_json::to_string(&begin).unwrap(), r#"{"offsets":{"0":5}}"#);
    }
}

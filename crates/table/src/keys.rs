//! Tables with one row for each key: which rows later ones supersede.
//!
//! Rows are published without a look at their keys, because a publication does no I/O and takes no time. They are *settled*
//! later, before they are read and before a flush: each row supersedes the existing row of its key, in the memtable or in a data
//! file. Invariant: among settled rows of a snapshot, no two live ones have the same key.
//!
//! Of two rows with a key the later one supersedes the other, unless the table has a sequence and the later one's is less. A row
//! with the delete sign is itself superseded as soon as it is settled, but with a sequence it is remembered, in the memtable and
//! in data files: later rows with a smaller sequence lose against it.
//!
//! A row of a partial update gives only some columns; the others are those of the row that it supersedes, and the row with all of them
//! supersedes both. In a table of AGGREGATE KEY the rows of a key are folded into one row instead, which supersedes them all.
//!
//! [`hash`] turns keys into numbers, [`rows`] extracts them from rows, [`file`] finds the rows of a data file by them ([`build`]
//! creates it, from [`pages`]), and [`settle`] decides what is superseded; [`complete`] chooses the rows that complete those of
//! partial updates, whose columns are in [`given`], [`plan`] decides what is folded; [`work`] divides both into pieces, and
//! [`fold`] executes them. Not the business of this module: snapshots, locks, and I/O on the table's storage.

pub(crate) mod build;
pub(crate) mod complete;
pub(crate) mod file;
pub(crate) mod fold;
pub(crate) mod given;
pub(crate) mod hash;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod settle;
pub(crate) mod side_by_side;
pub(crate) mod work;

pub(crate) use complete::{Completion, GivenInFiles};
pub(crate) use file::{FileKeys, Keyed};
pub(crate) use fold::{Folder, Limits};
pub(crate) use given::GivenSets;
pub(crate) use hash::KeyHash;
pub(crate) use plan::{Plan, live_in};
pub(crate) use rows::KeyReader;
pub(crate) use settle::{Keys, Marks, Orphans};
pub(crate) use work::{Source, Step, Work};

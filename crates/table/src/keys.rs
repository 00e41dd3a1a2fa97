//! Tables with one row for each key: which rows later ones supersede.
//!
//! Rows are published without looking at their keys, because a publication does no I/O and takes no time. They are
//! *settled* later, before anybody reads them and before a flush: each row supersedes the row of its key that came before it,
//! in the memtable or in a data file. Invariant: among settled rows of a snapshot, no two live ones have the same key.
//!
//! [`hash`] turns keys into numbers, [`file`] finds the rows of a data file by them, and [`settle`] decides what is superseded. Not
//! the business of this module: snapshots, locks and I/O, which are the table's.

pub(crate) mod file;
pub(crate) mod hash;
pub(crate) mod settle;

pub(crate) use file::FileKeys;
pub(crate) use hash::KeyHasher;
pub(crate) use settle::{Keys, Marks};

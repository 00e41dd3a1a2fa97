//! Changes of tables that cross the Delta log and the catalog: heavy schema changes, and REPLACE, DROP and RECOVER of partitions.
//!
//! Partitions that are dropped for good have steps of their own ([`marked`]). Each of the others is one [`Change`] and takes the same steps ([`run`]):
//!
//! 1. the catalog stores a record of its future state ([`Records::keep`]);
//! 2. ONE entry of the Delta log, which has the number of the change, makes the change while loads are held
//!    ([`Subject::switch`]);
//! 3. the catalog gets the new definitions and loses the record, in one step ([`Records::finish`]); then loads continue.
//!
//! A start reads the records before it opens a table ([`complete`]): the log has the last change of the table, so a record with
//! its number is completed, and any other was abandoned.
//!
//! Invariant: the catalog never has both a change and its unfinished record, and a load never meets a table whose log and catalog
//! disagree. Not this crate's business: the legality of changes, privileges, and the order of statements. It opens no file and
//! knows no SQL; the simulation runs the same code as the server.

mod change;
mod complete;
mod drops;
mod kept;
mod run;
mod tables;
#[cfg(test)]
mod tests;

pub use change::{Beside, Change, Dropped, Effect, KIND, NewPartitions, written};
pub use complete::{Incomplete, Logs, complete};
pub use drops::{Definitions, complete_drop, end_drop, marked};
pub use kept::KeptPartition;
pub use run::{Failed, Finished, Records, Step, Subject, run};
pub use tables::{Columns, Recycled, Replaced};

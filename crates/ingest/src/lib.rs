//! Loads, groups, modes, transactions and labels: what is committed when, and who is answered.
//!
//! A load arrives as column blocks. It joins the open group of its table, or is a transaction of
//! its own. The group closes by time, by bytes or because the log is free; its commit record makes
//! it durable; publishing it makes it visible; then everyone who waits is answered. Nothing is
//! answered with success on a guess: an `async` answer follows the log's fsync of the load's rows,
//! every other answer follows the fsync of the commit record and the publication.
//!
//! This crate knows nothing of protocols, SQL or Parquet. It reaches the log through
//! `tributary-wal` and visible data through `tributary-table`.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `halt` | how changes of tables are stopped |
//! | `schema_change` | heavy schema changes beside loads |
//! | `replace_partitions` | partitions that take the place of others |
//! | `route` | the one rule that says which loads may share a group |
//! | `ingest`, `two_phase` | the public face; what it is given is in `options` |
//! | `queue` | one table's open group, closed groups and commits, as a state machine |
//! | `group`, `member`, `appends` | one group, as data: its loads, and what its commit waits for |
//! | `gather` | small loads that become columns while their group is open |
//! | `build`, `columns` | what a commit publishes, as columns, in the order of the log |
//! | `dropped` | loads whose partition was dropped after their rows were decoded |
//! | `transactions` | labels and the states of transactions |
//! | `progress` | how far a source was read that is for several tables |
//! | `auto_increment` | values that columns with AUTO_INCREMENT give to rows |
//! | `labels` | labels and the store that keeps them longer than the log |
//! | `record` | what the log's entries mean |
//! | `recovery` | from the log back to tables and transactions |
//! | `inspect` | the log's entries in words, for its owner |
//! | `memory`, `pace` | the budget for rows in memory, and how loads wait for it |
//! | `maintenance` | flushing tables and releasing the log |

mod appends;
mod auto_increment;
mod build;
mod columns;
mod dropped;
pub mod error;
mod gather;
pub mod group;
mod halt;
pub mod ingest;
pub mod inspect;
mod labels;
pub mod load;
pub mod maintenance;
mod member;
pub mod memory;
pub mod metrics;
pub mod options;
mod pace;
mod prepared;
pub mod progress;
mod queue;
pub mod record;
mod recovery;
mod recycle;
mod replace_partitions;
pub mod route;
mod schema_change;
mod tasks;
mod timer;
pub mod transactions;
mod two_phase;
pub mod wal_space;

pub use auto_increment::{AutoIncrements, IncrementError, IncrementStore, following};
pub use error::IngestError;
pub use halt::Halt;
pub use ingest::Ingest;
pub use load::{Answered, LoadRows};
pub use metrics::IngestMetrics;
pub use options::{IngestOptions, LabelStore, SchemaHistory};
pub use progress::Progress;
pub use recovery::RecoveryReport;
pub use recycle::{AtRest, Recycling};
pub use replace_partitions::PartitionSwitch;
pub use route::{Body, Fallback, LoadTraits, Route, Source, Switch, route};
pub use schema_change::Switched;
pub use transactions::{Reservation, SourcePosition, TransactionInfo, TwoPhaseTarget};
pub use tributary_types::{TransactionKind, TransactionStatus};
pub use wal_space::WalSpace;

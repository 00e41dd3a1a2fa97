//! Loads, groups, modes, transactions and labels: decides what is committed when, and answers clients.
//!
//! A load arrives as column blocks. It joins the open group of its table, or is a transaction of its own. The group closes by
//! time, by bytes or because the log is free; its commit record makes it durable; publishing it makes it visible; then all
//! waiting clients are answered. Nothing is answered with success on a guess: an `async` answer follows the log's fsync of the
//! load's rows, every other answer follows the fsync of the commit record and the publication.
//!
//! This crate knows nothing of protocols, SQL or Parquet. It reaches the log through
//! `tributary-wal` and visible data through `tributary-table`.
//!
//! | folder | what happens there | what may not be in it |
//! | --- | --- | --- |
//! | `load` | a load's rows, the one rule that says which loads may share a group, and records of the server that become loads | groups, the log |
//! | `group` | one group, as data: its loads, and what its commit publishes | locks of queues, answers |
//! | `keys` | names of loads, by which repetitions are known, and their answers | groups, rows |
//! | `rejects` | rejected rows of stored loads | why they are rejected |
//! | `queue` | one table's open group, closed groups and commits, as a state machine | labels, other tables |
//! | `transactions` | labels, states of transactions, two-phase loads, positions of sources, values given to rows | groups |
//! | `memory` | the budget for rows in memory, and how loads wait for it | what the rows are |
//! | `changes` | changes of tables beside loads: schema, partitions, recycling | the catalog |
//! | `recovery` | what the log's entries mean, and from the log back to tables and transactions | loads that come |
//! | `maintenance` | flushing, compacting and sweeping tables and releasing the log, in watched background tasks | acknowledgements |
//!
//! At the root are `ingest`, the crate's interface, and what all folders use: `options`, `error`, `line`, `metrics`,
//! `numbered`, `tasks`.

mod changes;
pub mod error;
pub mod group;
pub mod ingest;
pub mod keys;
mod line;
pub mod load;
pub mod maintenance;
pub mod memory;
pub mod metrics;
mod numbered;
pub mod options;
mod ownership;
mod queue;
mod recovery;
mod rejects;
mod tasks;
pub mod transactions;

pub use changes::halt::Halt;
pub use changes::recycle::{AtRest, Recycling};
pub use changes::replace_partitions::PartitionSwitch;
pub use changes::schema_change::Switched;
pub use error::IngestError;
pub use group::CloseReason;
pub use group::finished::{FINISHED_GROUPS_KEPT, FinishedGroup};
pub use ingest::Ingest;
pub use keys::{AnsweredAs, ChannelState, Claim, Claimed, FirstAnswer, KeyFigures, NamedLoad};
pub use load::backlog::{Backlog, BacklogOptions, BacklogRecord, Batch};
pub use load::facts::LoadFacts;
pub use load::right::LoadRight;
pub use load::route::{Body, Fallback, LoadTraits, Route, Source, Switch, effective_mode, route};
pub use load::stages::Stages;
pub use load::{Answered, LoadRows, route};
pub use maintenance::backup::{KeptLogs, Moment};
pub use maintenance::log_view::{LogHolder, LogView};
pub use maintenance::stalled::StalledFlushes;
pub use maintenance::table_work::{TABLE_WORK_KEPT, TableWork, TableWorkKind};
pub use maintenance::verify::Verified;
pub use maintenance::wal_space::{self, WalSpace};
pub use maintenance::watched::Watcher;
pub use metrics::{IngestMetrics, LoadTotals};
pub use options::{IngestOptions, LabelStore, SchemaHistory};
pub use ownership::{Ownership, Question};
pub use queue::view::{GroupQueue, OpenGroup, QueueState};
pub use recovery::account::{LogAccount, LoggedTable};
pub use recovery::{RecoveryReport, inspect, record};
pub use rejects::{LoadRejects, RejectFigures, RejectedLoad, ReplayedRows};
pub use transactions::auto_increment::{AutoIncrements, IncrementError, IncrementStore, following};
pub use transactions::prepared::PreparedLoad;
pub use transactions::progress::{self, Progress};
pub use transactions::{Reservation, SourcePosition, TransactionInfo, TwoPhaseTarget};
pub use tributary_types::{TransactionKind, TransactionStatus};

//! Identifiers. Each is a newtype so that one cannot be passed for another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The next id in sequence.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A database. Never reused.
    DbId(u64)
}
id! {
    /// A table. Never reused: a dropped and re-created table has a new id.
    TableId(u64)
}
id! {
    /// A column of one table, stable over renames and never reused in that table.
    ColumnId(u32)
}
id! {
    /// A partition of one table, stable over renames and never reused in that table.
    PartitionId(u64)
}
id! {
    /// The count of light schema changes of a table; the first schema is 1.
    SchemaVersion(u32)
}
id! {
    /// A transaction. All loads of a group share one.
    TxnId(u64)
}
id! {
    /// A place in one write-ahead log: the byte offset since the log's beginning. Grows only.
    Lsn(u64)
}
id! {
    /// A source of consecutive loads, like the topic of a job. Never reused.
    SourceId(u64)
}
id! {
    /// A table's count of visible commits; a table without any has version 0.
    Version(u64)
}

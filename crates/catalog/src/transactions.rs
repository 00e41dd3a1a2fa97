//! Finished transactions as they are kept: for labels that stay used, and for SHOW.

use tributary_types::{DbId, Label, TableId, TableRef, TxnId};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($variant),*
        }

        impl $name {
            /// The name that is stored and shown.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// Reads the name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

named! {
    /// Where a transaction got.
    TxnStatus { Prepare = "PREPARE", Precommitted = "PRECOMMITTED", Committed = "COMMITTED", Visible = "VISIBLE", Aborted = "ABORTED" }
}

named! {
    /// What kind of load a transaction was.
    TxnKind { Group = "GROUP", Insert = "INSERT", StreamLoad = "STREAM_LOAD" }
}

/// A transaction as it is kept. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnRecord {
    pub txn_id: TxnId,
    pub db_id: DbId,
    pub table_id: TableId,
    /// The names at the time.
    pub table: TableRef,
    pub label: Label,
    /// A client chose the label: it stays used until the record is purged, unless it was aborted.
    pub label_is_kept: bool,
    pub kind: TxnKind,
    pub status: TxnStatus,
    pub loads: u32,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    pub precommitted_at_ms: Option<i64>,
    pub finished_at_ms: Option<i64>,
    /// Why it was aborted; empty otherwise.
    pub reason: String,
}

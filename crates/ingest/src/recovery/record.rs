//! The meaning of the write-ahead log's entries.
//!
//! | kind | body | meaning |
//! | --- | --- | --- |
//! | 0 `Skipped` | zeros | a repair wrote it over damaged bytes: entries before it may be missing |
//! | 1 `DataAsync` | block | rows of an acknowledged async load: committed even if the group's commit is missing |
//! | 2 `DataHeld` | block | rows that count only if a commit of their transaction follows |
//! | 3 `Commit` | JSON [`CommitBody`] | the transaction's rows are durable and visible |
//! | 4 `Prepare` | JSON [`PrepareBody`] | a two-phase load waits for its commit or abort |
//! | 5 `Abort` | JSON [`AbortBody`] | the transaction's rows count for nothing |
//! | 6 `Truncate` | JSON [`TruncateBody`] | removes all rows of lower versions |
//! | 7 `Cut` | JSON [`CutBody`] | removes all rows of lower versions in some partitions |
//! | 8 `Key` | [`KeyRecord`] | the idempotency key of a load of the transaction: counts if the load's rows do |
//! | 9 `Channel` | [`ChannelRecord`] | the place of a load in a channel: counts if the load's rows do |
//! | 10 `Rejected` | JSON [`RejectedBody`] | the rejected rows of a load: count if the load's rows do |
//!
//! The tag of a data entry, and of one with a key or rejected rows, is the load's number in its transaction.
//!
//! Bodies in JSON are few (one per transaction, and one per load with rejected rows) and may gain fields. A field that is added has a default, which is what
//! bodies from before it mean; a reader ignores fields that it does not know. A change that an older reader must not
//! pass over raises the [`Format`]. Fields that were always there have no default: a body without them is damaged, and
//! one that meant version 0 would be passed over as if it were in data files.

use crate::keys::record::{ChannelRecord, Kept, KeyRecord};
pub use crate::rejects::record::RejectedBody;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tributary_decode::Block;
use tributary_table::{DataFile, Replaced};
use tributary_types::{
    Attachment, DbId, Label, Partitions, SourceId, TableId, TransactionKind, TxnId, Version,
};
use tributary_wal::Entry;

/// The kinds of entries.
pub mod kind {
    pub const SKIPPED: u8 = tributary_wal::SKIPPED;
    pub const DATA_ASYNC: u8 = 1;
    pub const DATA_HELD: u8 = 2;
    pub const COMMIT: u8 = 3;
    pub const PREPARE: u8 = 4;
    pub const ABORT: u8 = 5;
    pub const TRUNCATE: u8 = 6;
    pub const CUT: u8 = 7;
    pub const KEY: u8 = 8;
    pub const CHANNEL: u8 = 9;
    pub const REJECTED: u8 = 10;
}

/// The format of a body. Bodies from before it was written are of format 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Format(u32);

impl Format {
    /// The newest that this server reads. Since format 2 a commit may replace rows.
    pub const NEWEST: Self = Self(2);

    /// The format in which a commit is written: the oldest that expresses all of it.
    #[must_use]
    pub const fn of_commit(replaces: bool) -> Self {
        if replaces { Self(2) } else { Self(1) }
    }
}

impl Default for Format {
    fn default() -> Self {
        Self(1)
    }
}

pub(crate) const fn format_1() -> Format {
    Format(1)
}

/// A body in JSON.
pub trait Body: Serialize + DeserializeOwned {
    /// The format that it was written in.
    fn format(&self) -> Format;
}

macro_rules! bodies {
    ($($body:ident),*) => {
        $(impl Body for $body {
            fn format(&self) -> Format {
                self.format
            }
        })*
    };
}

bodies!(CommitBody, PrepareBody, AbortBody, TruncateBody, CutBody);

/// A committed transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitBody {
    #[serde(default = "format_1")]
    pub format: Format,
    pub version: Version,
    pub db: DbId,
    pub label: Label,
    /// The label was chosen by a client and must stay unique.
    #[serde(default)]
    pub label_is_kept: bool,
    #[serde(default)]
    pub is_group: bool,
    /// Present since format 1 was numbered; before, [`CommitBody::kind`] guesses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TransactionKind>,
    pub loads: u32,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    pub committed_at_ms: i64,
    /// Data files that hold rows of the transaction; they were durable before this entry.
    #[serde(default)]
    pub files: Vec<DataFile>,
    /// Loads whose data entries do not count: their clients were answered with an error.
    #[serde(default)]
    pub excluded: Vec<u32>,
    /// The rows of lower versions that its rows take the place of. Of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Arc<Replaced>>,
    /// The source of the load: then `attachment` is the position in it after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceId>,
    /// The load's attachment to the transaction, in base64.
    #[serde(default, with = "base64_text", skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
}

impl CommitBody {
    /// The kind of the load.
    #[must_use]
    pub fn kind(&self) -> TransactionKind {
        let guessed = if self.is_group { TransactionKind::Group } else { TransactionKind::StreamLoad };
        self.kind.unwrap_or(guessed)
    }
}

/// A two-phase load that is durable and waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareBody {
    #[serde(default = "format_1")]
    pub format: Format,
    pub db: DbId,
    pub label: Label,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    #[serde(default)]
    pub files: Vec<DataFile>,
    /// As in [`CommitBody`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceId>,
    /// As in [`CommitBody`].
    #[serde(default, with = "base64_text", skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// The client that has sent it, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// A transaction that will never be visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbortBody {
    #[serde(default = "format_1")]
    pub format: Format,
    pub db: DbId,
    pub label: Label,
    pub reason: String,
}

/// A table that was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruncateBody {
    #[serde(default = "format_1")]
    pub format: Format,
    pub version: Version,
}

/// Partitions of a table that were emptied, or are new and empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutBody {
    #[serde(default = "format_1")]
    pub format: Format,
    pub version: Version,
    /// These only, as they were.
    pub partitions: Partitions,
}

/// The entry of one block of rows. The block's bytes are shared, not copied.
#[must_use]
pub fn data(kind: u8, table: TableId, txn: TxnId, load: u32, block: &Block) -> Entry {
    Entry { kind, table, txn, tag: load, body: block.bytes().clone() }
}

/// The entry of a load's name.
#[must_use]
pub(crate) fn kept(kept: &Kept, load: u32) -> Entry {
    let (kind, body) = match kept {
        Kept::Key(record) => (kind::KEY, record.to_bytes().to_vec()),
        Kept::Channel(channel) => (kind::CHANNEL, channel.to_bytes()),
    };
    let record = kept.record();
    Entry { kind, table: record.table, txn: record.txn, tag: load, body: body.into() }
}

/// Reads a load's name. `None`: the entry has other bytes.
pub(crate) fn read_kept(entry: &Entry) -> Option<Kept> {
    match entry.kind {
        kind::CHANNEL => {
            ChannelRecord::from_bytes(&entry.body).map(|channel| Kept::Channel(Box::new(channel)))
        }
        _ => KeyRecord::from_bytes(&entry.body).map(Kept::Key),
    }
}

/// An entry whose body is JSON.
#[must_use]
pub fn json<T: Serialize>(kind: u8, table: TableId, txn: TxnId, body: &T) -> Entry {
    let body = serde_json::to_vec(body).expect("bodies are plain structs of numbers and strings");
    Entry { kind, table, txn, tag: 0, body: body.into() }
}

/// Reads a body in JSON.
///
/// # Errors
/// Why it can't be read: it is damaged, or of a newer format.
pub fn read<T: Body>(entry: &Entry) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default = "format_1")]
        format: Format,
    }
    let body = serde_json::from_slice::<T>(&entry.body);
    // A newer body may lack what this one must have.
    let format = match &body {
        Ok(body) => Some(body.format()),
        Err(_) => serde_json::from_slice::<Head>(&entry.body).ok().map(|head| head.format),
    };
    if let Some(Format(newer)) = format.filter(|format| *format > Format::NEWEST) {
        let Format(newest) = Format::NEWEST;
        return Err(format!(
            "it is of format {newer} and this server reads up to {newest}; it was written by a newer server: start that one"
        ));
    }
    body.map_err(|error| error.to_string())
}

/// An attachment as text.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tributary_types::Attachment;

    #[expect(clippy::ref_option, reason = "the form that serde asks for")]
    pub(super) fn serialize<S: Serializer>(kept: &Option<Attachment>, to: S) -> Result<S::Ok, S::Error> {
        match kept {
            Some(kept) => to.serialize_str(&STANDARD.encode(kept.bytes())),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Attachment>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        STANDARD.decode(text).map(|bytes| Some(Attachment::from_storage(bytes))).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;

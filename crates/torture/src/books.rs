//! Records of sent loads and of the clients' knowledge of them.
//!
//! Invariant: a load is recorded before its first byte is sent, and its fate changes only when an answer arrives. So everything
//! in the tables must be in the books.

use crate::load::Load;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// A client's requested mode: the promise that its acknowledgement gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Async,
    Sync,
    Off,
    TwoPhase,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Async, Self::Sync, Self::Off, Self::TwoPhase];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Sync => "sync",
            Self::Off => "off",
            Self::TwoPhase => "two-phase",
        }
    }

    /// The name of the mode for `group_commit`. A two-phase load has a transaction of its own.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Async => "async_mode",
            Self::Sync => "sync_mode",
            Self::Off | Self::TwoPhase => "off_mode",
        }
    }
}

/// The known fate of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Sent without an answer: all of it or nothing.
    Unknown,
    /// The same, and its label says which.
    Labelled,
    Acknowledged,
    /// Answered with an error, or aborted: none of it.
    Refused,
    /// A first phase without an answer.
    Preparing,
    /// A first phase that was acknowledged: it waits.
    Prepared,
    /// A commit without an answer.
    Committing,
    /// An abort without an answer.
    Aborting,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub load: Load,
    pub mode: Mode,
    pub fate: Fate,
    pub has_label: bool,
}

/// The books of one round.
#[derive(Debug, Default)]
pub(crate) struct Books {
    notes: Mutex<HashMap<u64, Note>>,
    refusals: Mutex<BTreeMap<String, u64>>,
    acknowledged_rows: AtomicU64,
    refused: AtomicU64,
}

impl Books {
    /// Call it before the load is sent.
    pub fn sent(&self, load: Load, mode: Mode, fate: Fate) {
        let has_label = fate == Fate::Labelled;
        self.notes.lock().insert(load.id, Note { load, mode, fate, has_label });
    }

    pub fn is(&self, load: &Load, fate: Fate) {
        if fate == Fate::Acknowledged {
            self.acknowledged_rows.fetch_add(load.rows.into(), Ordering::Relaxed);
        }
        if let Some(note) = self.notes.lock().get_mut(&load.id) {
            note.fate = fate;
        }
    }

    pub fn refused(&self, load: &Load, message: &str) {
        self.is(load, Fate::Refused);
        self.refused.fetch_add(1, Ordering::Relaxed);
        *self.refusals.lock().entry(without_numbers(message)).or_default() += 1;
    }

    /// Rows acknowledged so far.
    pub fn acknowledged_rows(&self) -> u64 {
        self.acknowledged_rows.load(Ordering::Relaxed)
    }

    /// Loads refused so far.
    pub fn refused_loads(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Why loads were refused, and how often.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        self.refusals.lock().clone()
    }

    pub fn notes(&self) -> Vec<Note> {
        self.notes.lock().values().copied().collect()
    }

    pub fn by_id(&self) -> HashMap<u64, Note> {
        self.notes.lock().clone()
    }
}

/// The message with `#` for numbers and labels' digits, so that equal reasons are counted together.
pub(crate) fn without_numbers(message: &str) -> String {
    let mut text = String::new();
    for word in message.split(' ') {
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(if has_digit { "#" } else { word });
    }
    text
}

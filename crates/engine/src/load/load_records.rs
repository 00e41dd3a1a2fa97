//! Records of loads for users: answered Stream Loads, and the addresses of the reasons for a load's rejected rows.
//!
//! They are in memory only, of the newest loads, and lost in a restart.

use crate::access::{Object, Privilege};
use crate::load::Loads;
use crate::node::clock::date_time_ms;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tributary_http::AnsweredLoad;
use tributary_query::{Cell, Grid};
use tributary_types::{DbId, Label, Principal, SqlError};

/// Recorded Stream Loads, as many as in a front end of Doris.
const STREAM_LOADS_MAX: usize = 5000;
/// Labels whose reasons are remembered.
const REASONS_MAX: usize = 5000;
const COLUMNS: [&str; 17] = [
    "Label",
    "Db",
    "Table",
    "ClientIp",
    "Status",
    "Message",
    "Url",
    "TotalRows",
    "LoadedRows",
    "FilteredRows",
    "UnselectedRows",
    "LoadBytes",
    "StartTime",
    "FinishTime",
    "User",
    "Comment",
    "FirstErrorMsg",
];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LoadRecords {
    /// Each with the time of its answer (ms since 1970), oldest first.
    stream_loads: Mutex<VecDeque<(i64, AnsweredLoad)>>,
    /// The addresses of error logs, oldest first.
    reasons: Mutex<VecDeque<(DbId, Label, String)>>,
}

impl LoadRecords {
    pub fn answered(&self, at_ms: i64, load: AnsweredLoad) {
        push(&mut self.stream_loads.lock(), (at_ms, load), STREAM_LOADS_MAX);
    }

    pub fn rejected(&self, db: DbId, label: Label, url: String) {
        push(&mut self.reasons.lock(), (db, label, url), REASONS_MAX);
    }

    /// The address of the reasons for the rejected rows of the newest load with this label.
    pub fn reasons_of(&self, db: DbId, label: &str) -> Option<String> {
        let reasons = self.reasons.lock();
        let newest = reasons.iter().rev().find(|(of, known, _)| *of == db && known.as_str() == label);
        newest.map(|(_, _, url)| url.clone())
    }
}

fn push<T>(ring: &mut VecDeque<T>, new: T, max: usize) {
    if ring.len() == max {
        ring.pop_front();
    }
    ring.push_back(new);
}

impl Loads {
    /// SHOW STREAM LOAD: the Stream Loads into a database, oldest first.
    ///
    /// # Errors
    /// No privilege, or an unknown database.
    pub(crate) fn show_stream_loads(&self, principal: &Principal, db: &str) -> Result<Grid, SqlError> {
        self.gate.database(principal, Privilege::Show, db)?;
        let mut grid = Grid::new(&COLUMNS);
        for (at_ms, load) in self.load_records.stream_loads.lock().iter() {
            let of_db = load.answer.table.as_ref().filter(|table| table.db == db);
            if of_db.is_some_and(|table| {
                self.gate.allows(principal, Privilege::Load, Object::Table { db, table: &table.table })
            }) {
                grid.push(row(*at_ms, load));
            }
        }
        Ok(grid)
    }
}

fn row(at_ms: i64, load: &AnsweredLoad) -> Vec<Cell> {
    let AnsweredLoad { principal, peer, answer } = load;
    let table = answer.table.as_ref();
    let took_ms = i64::try_from(answer.times.load.as_millis()).unwrap_or(i64::MAX);
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let loaded = if answer.is_loaded() { answer.loaded_rows } else { 0 };
    vec![
        answer.label.as_str().into(),
        table.map(|table| table.db.as_str()).into(),
        table.map(|table| table.table.as_str()).into(),
        peer.to_string().into(),
        answer.status.as_str().into(),
        answer.message.as_str().into(),
        or(answer.error_url.as_deref().unwrap_or_default(), "N/A").into(),
        answer.total_rows.to_string().into(),
        loaded.to_string().into(),
        answer.filtered_rows.to_string().into(),
        answer.unselected_rows.to_string().into(),
        answer.load_bytes.to_string().into(),
        date_time_ms(at_ms.saturating_sub(took_ms)).into(),
        date_time_ms(at_ms).into(),
        principal.user().into(),
        answer.comment.as_str().into(),
        or(answer.first_error_msg.as_deref().unwrap_or_default(), "N/A").into(),
    ]
}

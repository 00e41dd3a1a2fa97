//! Records of loads for users: answered Stream Loads, and the addresses of the reasons for a load's rejected rows.
//!
//! They are in memory only, of the newest loads, and lost in a restart.
//!
//! Invariant: their bytes are bounded. Clients choose texts of a load, even of one that is refused, so long ones are cut, and the
//! oldest records are dropped when all together are too large.

use crate::access::{Object, Privilege};
use crate::load::Loads;
use crate::node::clock::date_time_ms;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tributary_http::{AnsweredLoad, LoadAnswer};
use tributary_query::{Cell, Grid};
use tributary_types::{DbId, Label, Principal, SqlError};

/// Recorded Stream Loads, as many as in a front end of Doris.
const STREAM_LOADS_MAX: usize = 5000;
/// Bytes of their records.
const STREAM_LOADS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one text of a record.
const TEXT_BYTES_MAX: usize = 4096;
/// Labels whose reasons are remembered.
const REASONS_MAX: usize = 5000;
/// Bytes of these.
const REASONS_BYTES_MAX: usize = 4 * 1024 * 1024;
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
    stream_loads: Mutex<Ring<(i64, AnsweredLoad)>>,
    /// The addresses of error logs, oldest first.
    reasons: Mutex<Ring<(DbId, Label, String)>>,
}

impl LoadRecords {
    pub fn answered(&self, at_ms: i64, mut load: AnsweredLoad) {
        let bytes = cut(&mut load.answer) + size_of::<AnsweredLoad>();
        self.stream_loads.lock().push((at_ms, load), bytes, STREAM_LOADS_MAX, STREAM_LOADS_BYTES_MAX);
    }

    pub fn rejected(&self, db: DbId, label: Label, url: String) {
        let bytes = label.as_str().len() + url.len() + size_of::<(DbId, Label, String)>();
        self.reasons.lock().push((db, label, url), bytes, REASONS_MAX, REASONS_BYTES_MAX);
    }

    /// The address of the reasons for the rejected rows of the newest load with this label.
    pub fn reasons_of(&self, db: DbId, label: &str) -> Option<String> {
        let reasons = self.reasons.lock();
        let newest = reasons.iter().rev().find(|(of, known, _)| *of == db && known.as_str() == label);
        newest.map(|(_, _, url)| url.clone())
    }
}

/// The newest of something.
#[derive(Debug)]
struct Ring<T> {
    /// Each with its bytes, oldest first.
    all: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { all: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Ring<T> {
    /// Adds one, and drops the oldest ones if they are too many or too large.
    fn push(&mut self, new: T, bytes: usize, count_max: usize, bytes_max: usize) {
        self.bytes += bytes;
        self.all.push_back((new, bytes));
        while self.all.len() > count_max || self.bytes > bytes_max {
            let Some((_, bytes)) = self.all.pop_front() else { return };
            self.bytes -= bytes;
        }
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.all.iter().map(|(one, _)| one)
    }
}

/// Cuts the long texts of an answer, and returns the bytes of all.
fn cut(answer: &mut LoadAnswer) -> usize {
    let LoadAnswer { label, comment, message, error_url, first_error_msg, fallback_reason, table, .. } =
        answer;
    let of_table = table.as_mut().map(|table| [&mut table.db, &mut table.table]);
    let optional = [error_url, first_error_msg, fallback_reason].into_iter().flatten();
    let texts = [label, comment, message].into_iter().chain(optional).chain(of_table.into_iter().flatten());
    texts
        .map(|text| {
            if text.len() > TEXT_BYTES_MAX {
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
                text.push('…');
            }
            text.shrink_to_fit();
            text.len()
        })
        .sum()
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
    let AnsweredLoad { principal, peer, answer, .. } = load;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tributary_http::LoadCode;
    use tributary_types::TableRef;

    /// A refused load whose client has chosen long texts.
    fn refused(text: &str) -> AnsweredLoad {
        let mut answer = LoadAnswer::fail(LoadCode::InvalidArgument, text);
        (answer.comment, answer.label) = (text.to_owned(), text.to_owned());
        answer.table = Some(TableRef { db: text.to_owned(), table: text.to_owned() });
        let principal = Principal::new("root", "%", 0);
        let route = tributary_http::LoadRoute::StreamLoad;
        AnsweredLoad { principal, peer: Ipv4Addr::LOCALHOST.into(), answer, route, has_begun: true }
    }

    #[test]
    fn records_are_bounded_in_number_and_bytes_whatever_clients_send() {
        let records = LoadRecords::default();
        let long = "ä".repeat(100_000);
        for at_ms in 0..2000 {
            records.answered(at_ms, refused(&long));
        }
        let ring = records.stream_loads.lock();
        assert!(ring.bytes <= STREAM_LOADS_BYTES_MAX && ring.all.len() > 500, "{} records", ring.all.len());
        assert_eq!(ring.bytes, ring.all.iter().map(|(_, bytes)| bytes).sum::<usize>());
        let (at_ms, newest) = ring.iter().next_back().expect("the newest one");
        assert_eq!(*at_ms, 1999);
        assert!(newest.answer.comment.len() <= TEXT_BYTES_MAX + 3 && newest.answer.comment.ends_with("ä…"));
        drop(ring);
        for at_ms in 0..6000 {
            records.answered(at_ms, refused("short"));
        }
        let ring = records.stream_loads.lock();
        assert_eq!(ring.all.len(), STREAM_LOADS_MAX);
        assert_eq!(ring.iter().next().expect("the oldest one").0, 1000);
        assert_eq!(ring.iter().next().expect("the oldest one").1.answer.comment, "short");
    }
}

//! Tables with one row per key: clients that write the same keys repeatedly, and the expected contents.
//!
//! Each client has keys of its own and sends one load at a time, always in the same way, so the order of its loads is known, and
//! with it the row of each key. Only the last load before a kill may lack an answer: it exists as a whole or not at all.

use crate::check::NoCheck;
use crate::http;
use crate::load::DATABASE;
use crate::mysql::{Client, connect};
use crate::report::Figures;
use crate::writers::{Gone, PATIENCE, Round, Shared, is_undecided};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_client::ClientError;

/// Keys of each client.
const KEYS: u32 = 3000;
/// Most rows of a load.
const ROWS_MAX: u32 = 200;
const COLUMNS: &str = "id, owner, seq, load_id";

/// A client's table and how it writes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Stream Loads in async mode, some of which delete.
    Stream,
    /// INSERTs in this mode.
    Insert { table: &'static str, mode: &'static str },
    /// Stream Loads in off mode, some of whose rows delete, with sequences.
    Merge,
}

const WAYS: [Way; 4] = [
    Way::Stream,
    Way::Insert { table: "last", mode: "sync_mode" },
    Way::Insert { table: "greatest", mode: "async_mode" },
    Way::Merge,
];

/// The tables: the last row of a key, and the one with the greatest sequence.
pub(crate) const TABLES: [&str; 2] = ["last", "greatest"];

impl Way {
    const fn table(self) -> &'static str {
        match self {
            Self::Stream => "last",
            Self::Insert { table, .. } => table,
            Self::Merge => "greatest",
        }
    }

    fn has_sequence(self) -> bool {
        self.table() == "greatest"
    }
}

/// The statement that creates the table.
pub(crate) fn create(table: &str) -> String {
    let sequence = if table == "greatest" { ", \"function_column.sequence_col\" = \"seq\"" } else { "" };
    format!(
        "CREATE TABLE {DATABASE}.{table} (id INT NOT NULL, owner INT NOT NULL, seq INT NOT NULL, load_id BIGINT NOT NULL, \
         proof BIGINT AS (load_id * 4096 + seq) NOT NULL) \
         UNIQUE KEY(id, owner) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES (\"group_commit_interval_ms\" = \"20\"{sequence})"
    )
}

/// A row without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    seq: i32,
    load: u64,
    deletes: bool,
}

type Rows = BTreeMap<u32, Row>;

/// The rows that one client wrote, over all rounds.
#[derive(Debug)]
struct Upserter {
    way: Way,
    owner: usize,
    /// The row of each key after all acknowledged loads.
    known: Rows,
    /// The last load, if there was no answer.
    pending: Option<Vec<(u32, Row)>>,
    /// Keys whose deciding row is no longer known.
    unclear: BTreeSet<u32>,
}

/// All clients.
#[derive(Debug)]
pub(crate) struct Upserts {
    clients: Vec<Mutex<Upserter>>,
    rows: AtomicU64,
}

impl Upserts {
    pub fn new() -> Self {
        let client = |(owner, &way): (usize, &Way)| Upserter {
            way,
            owner,
            known: Rows::new(),
            pending: None,
            unclear: BTreeSet::new(),
        };
        Self {
            clients: WAYS.iter().enumerate().map(client).map(Mutex::new).collect(),
            rows: AtomicU64::new(0),
        }
    }

    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// Rows acknowledged.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Writes as one of the clients until the round is over.
    pub fn write(&self, shared: &Shared, round: &Round, number: usize, seed: u64) {
        let mut client = self.clients[number].lock();
        let mut rng = StdRng::seed_from_u64(seed ^ (number as u64 + 1000) << 32 ^ u64::from(round.number));
        let outcome = match client.way {
            Way::Insert { mode, .. } => self.inserts(&mut client, shared, round, &mut rng, mode),
            Way::Stream | Way::Merge => self.streams(&mut client, shared, round, &mut rng),
        };
        if let Err(Gone(reason)) = outcome
            && !round.is_killed.load(Ordering::SeqCst)
        {
            let way = client.way;
            shared.violation(format!("a connection ({way:?}) broke while the server ran: {reason}"));
        }
    }

    fn inserts(
        &self,
        client: &mut Upserter,
        shared: &Shared,
        round: &Round,
        rng: &mut StdRng,
        mode: &str,
    ) -> Result<(), Gone> {
        let mut server = connect(&round.doors, "upserts", Some(DATABASE))?;
        server.run(&format!("SET group_commit = {mode}"))?;
        while !round.is_over.load(Ordering::Relaxed) && client.pending.is_none() {
            let rows = client.next(shared, rng, false);
            let values: Vec<String> = rows.iter().map(|row| format!("({})", client.text(row))).collect();
            let table = client.way.table();
            let sql = format!("INSERT INTO {table} ({COLUMNS}) VALUES {}", values.join(","));
            client.pending = Some(rows);
            match server.run(&sql) {
                Ok(_) => self.acknowledged(client),
                Err(ClientError::Refused(error)) => client.refused(round, &error.message),
                Err(ClientError::Gone(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn streams(
        &self,
        client: &mut Upserter,
        shared: &Shared,
        round: &Round,
        rng: &mut StdRng,
    ) -> Result<(), Gone> {
        let mut server = http::Client::connect(&round.doors, "upserts", PATIENCE)?;
        while !round.is_over.load(Ordering::Relaxed) && client.pending.is_none() {
            let deletes = rng.random_ratio(1, 4);
            let rows = client.next(shared, rng, deletes);
            let merges = client.way == Way::Merge;
            let mut body = String::new();
            for row in &rows {
                let sign = if merges { format!(",{}", u8::from(row.1.deletes)) } else { String::new() };
                // Writing to a String can't fail.
                let _ = writeln!(body, "{}{sign}", client.text(row));
            }
            let columns = format!("{COLUMNS}, gone");
            let headers: &[(&str, &str)] = match (merges, deletes) {
                (true, _) => &[("columns", &columns), ("merge_type", "MERGE"), ("delete", "gone = 1")],
                (false, true) => {
                    &[("columns", COLUMNS), ("merge_type", "DELETE"), ("group_commit", "async_mode")]
                }
                (false, false) => &[("columns", COLUMNS), ("group_commit", "async_mode")],
            };
            client.pending = Some(rows);
            let answer = server.load_with(client.way.table(), headers, &body)?;
            match answer.text("Status").as_str() {
                "Success" => self.acknowledged(client),
                _ => client.refused(round, &answer.text("Message")),
            }
        }
        Ok(())
    }

    fn acknowledged(&self, client: &mut Upserter) {
        let rows = client.pending.take().unwrap_or_default();
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        apply(&mut client.known, &rows, client.way.has_sequence());
    }

    /// Compares every key; what became of loads without an answer is known afterwards.
    pub fn check(&self, shared: &Shared, server: &mut Client, figures: &mut Figures) -> Result<(), NoCheck> {
        for table in TABLES {
            one_row_for_each_key(shared, server, table)?;
            computed_values_fit(shared, server, table)?;
        }
        for client in &self.clients {
            client.lock().check(shared, server, figures)?;
        }
        figures.upserted_rows = self.rows();
        Ok(())
    }
}

/// Verifies that no query sees a row whose generated column contradicts its expression.
fn computed_values_fit(shared: &Shared, server: &mut Client, table: &str) -> Result<(), ClientError> {
    let sql = format!("SELECT * FROM {table} WHERE NOT (proof <=> load_id * 4096 + seq) LIMIT 3");
    for row in server.rows(&sql)?.rows {
        shared.violation(format!("a row of {table} has another computed value than it should: {row:?}"));
    }
    Ok(())
}

/// No query ever sees two rows of a key.
pub(crate) fn one_row_for_each_key(
    shared: &Shared,
    server: &mut Client,
    table: &str,
) -> Result<(), ClientError> {
    let sql = format!("SELECT id, owner, COUNT(*) FROM {table} GROUP BY id, owner HAVING COUNT(*) > 1");
    for row in server.rows(&sql)?.rows {
        shared.violation(format!("a query of {table} saw a key, its owner, and so many rows of it: {row:?}"));
    }
    Ok(())
}

impl Upserter {
    fn text(&self, (key, row): &(u32, Row)) -> String {
        format!("{key},{},{},{}", self.owner, row.seq, row.load)
    }

    /// The next load: of random keys, some of them more than once.
    fn next(&self, shared: &Shared, rng: &mut StdRng, deletes: bool) -> Vec<(u32, Row)> {
        let load = shared.next_load.fetch_add(1, Ordering::Relaxed);
        let count = if rng.random_bool(0.3) { 1 } else { rng.random_range(1..=ROWS_MAX) };
        let mut rows = Vec::with_capacity(count as usize);
        while rows.len() < count as usize {
            let key = rng.random_range(0..KEYS);
            if self.unclear.contains(&key) {
                continue;
            }
            let deletes = if self.way == Way::Merge { rng.random_ratio(1, 8) } else { deletes };
            rows.push((key, Row { seq: rng.random_range(0..1000), load, deletes }));
        }
        rows
    }

    fn refused(&mut self, round: &Round, message: &str) {
        if is_undecided(message) {
            return;
        }
        self.pending = None;
        if round.expects_refusals {
            std::thread::sleep(crate::writers::AFTER_REFUSAL);
        }
    }

    fn check(&mut self, shared: &Shared, server: &mut Client, figures: &mut Figures) -> Result<(), NoCheck> {
        let (table, owner) = (self.way.table(), self.owner);
        let sql = format!("SELECT id, seq, load_id FROM {table} WHERE owner = {owner}");
        let mut found = Rows::new();
        for row in server.rows(&sql)?.rows {
            let [key, seq, load] = row.as_slice() else { return Err(NoCheck(format!("{sql}: {row:?}"))) };
            let number = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<u64>().ok());
            let (Some(key), Some(seq), Some(load)) = (number(key), number(seq), number(load)) else {
                return Err(NoCheck(format!("{sql}: {row:?}")));
            };
            found.insert(key as u32, Row { seq: seq as i32, load, deletes: false });
        }
        found.retain(|key, _| !self.unclear.contains(key));
        figures.keys_checked += u64::from(KEYS);
        let pending = self.pending.take().unwrap_or_default();
        let mut with_pending = self.known.clone();
        apply(&mut with_pending, &pending, self.way.has_sequence());
        let (without, with) = (visible(&self.known), visible(&with_pending));
        if without == with && self.known != with_pending {
            // Whether a deletion exists shows only in later rows that it wins against.
            for (key, _) in &pending {
                self.unclear.insert(*key);
                self.known.remove(key);
                found.remove(key);
            }
        } else if found == with {
            self.known = with_pending;
        }
        let expected = visible(&self.known);
        let keys: BTreeSet<u32> = expected.keys().chain(found.keys()).copied().collect();
        for key in keys.into_iter().filter(|key| expected.get(key) != found.get(key)) {
            figures.wrong_winners += 1;
            let (expected, found) = (expected.get(&key), found.get(&key));
            shared.violation(format!(
                "{table}: key {key} of client {owner} has {found:?}, expected {expected:?}"
            ));
        }
        Ok(())
    }
}

/// Applies rows in the order of their load, unless the existing ones have greater sequences.
fn apply(known: &mut Rows, rows: &[(u32, Row)], has_sequence: bool) {
    for (key, row) in rows {
        if !has_sequence || known.get(key).is_none_or(|before| before.seq <= row.seq) {
            known.insert(*key, *row);
        }
    }
}

fn visible(rows: &Rows) -> Rows {
    rows.iter().filter(|(_, row)| !row.deletes).map(|(key, row)| (*key, *row)).collect()
}

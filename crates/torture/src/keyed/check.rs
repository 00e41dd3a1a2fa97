//! The records against the tables: each load is there once, with all its rows.

use super::Keyed;
use super::books::Record;
use super::connection::hash;
use crate::check::{NoCheck, numbers};
use crate::doors::{Doors, ROOT};
use crate::http;
use crate::load::{DATABASE, Load, TABLES};
use crate::mysql::Client;
use crate::report::Figures;
use crate::writers::PATIENCE;
use std::collections::HashMap;
use std::ops::Range;

/// Loads that one query compares.
const COMPARED_AT_ONCE: u64 = 1 << 15;
/// Keys whose states are compared at the end.
const STATES_COMPARED: u64 = 500;

/// A load's rows in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    table: usize,
    rows: u64,
    last_part: u64,
    smallest: u64,
    largest: u64,
    checks: u64,
    pads: u64,
}

impl Found {
    fn of(load: &Load) -> Self {
        let rows = u64::from(load.rows);
        Self {
            table: load.table,
            rows,
            last_part: rows - 1,
            smallest: rows,
            largest: rows,
            checks: load.check_sum(),
            pads: rows * u64::from(load.pad_bytes),
        }
    }
}

/// The fate of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Whole,
    /// It was not acknowledged, and none of it is there.
    Absent,
    Lost,
    Doubled(u64),
    /// Only some rows are there.
    Half(u64),
    Changed,
}

fn verdict(is_acknowledged: bool, load: &Load, found: Option<&Found>) -> Verdict {
    let Some(found) = found else {
        return if is_acknowledged { Verdict::Lost } else { Verdict::Absent };
    };
    let rows = u64::from(load.rows);
    if found.rows > rows {
        Verdict::Doubled(found.rows - rows)
    } else if found.rows < rows {
        Verdict::Half(rows - found.rows)
    } else if *found == Found::of(load) {
        Verdict::Whole
    } else {
        Verdict::Changed
    }
}

/// Compares the loads with these numbers, of which the records may be older than the tables.
fn compare(
    keyed: &Keyed,
    client: &mut Client,
    ids: Range<u64>,
    records: &[Record],
    mut count: impl FnMut(Verdict, &Load),
) -> Result<(), NoCheck> {
    let mut found_loads = HashMap::new();
    for (table, (name, _)) in TABLES.into_iter().enumerate() {
        let sql = format!(
            "SELECT load_id, COUNT(*), MAX(part), MIN(size), MAX(size), SUM(chk), SUM(LENGTH(pad)) FROM {name} \
             WHERE load_id >= {} AND load_id < {} GROUP BY load_id",
            ids.start, ids.end
        );
        for row in client.rows(&sql)?.rows {
            let numbers = numbers(&row)?;
            let [id, rows, last_part, smallest, largest, checks, pads] = numbers[..] else {
                return Err(NoCheck(format!("a row of another form: {row:?}")));
            };
            let found = Found { table, rows, last_part, smallest, largest, checks, pads };
            if let Some(other) = found_loads.insert(id, found) {
                keyed.violation(format!("load {id} is in two tables: {found:?} and {other:?}"));
            }
        }
    }
    for (id, record) in ids.zip(records) {
        let load = record.load(id);
        let found = found_loads.get(&id);
        let verdict = verdict(record.is_acknowledged(), &load, found);
        count(verdict, &load);
        if !matches!(verdict, Verdict::Whole | Verdict::Absent) {
            keyed.violation(format!("{verdict:?}: {record:?}, {load:?}: {found:?}"));
        }
    }
    Ok(())
}

/// Compares some loads after a kill, while clients send others.
pub(super) fn sample(keyed: &Keyed, client: &mut Client, ids: Range<u64>) -> Result<(), NoCheck> {
    let records = keyed.books.range(ids.clone());
    client.run("SYNC")?;
    compare(keyed, client, ids, &records, |_, _| {})?;
    keyed.figures.lock().loads_sampled += records.len() as u64;
    Ok(())
}

/// Compares all loads, and that there is nothing else. The figures are those of this comparison alone.
pub(super) fn everything(keyed: &Keyed, client: &mut Client, figures: &mut Figures) -> Result<(), NoCheck> {
    client.run("SYNC")?;
    let mut counts = Counts::default();
    let len = keyed.books.len();
    let mut first = 0;
    while first < len {
        let ids = first..(first + COMPARED_AT_ONCE).min(len);
        let records = keyed.books.range(ids.clone());
        first = ids.end;
        compare(keyed, client, ids, &records, |verdict, load| counts.add(verdict, load))?;
    }
    let mut strange = 0;
    for (name, _) in TABLES {
        let sql = format!("SELECT COUNT(*) FROM {name} WHERE load_id >= {len} OR load_id < 0");
        let rows =
            client.rows(&sql)?.rows.first().map(numbers).transpose()?.and_then(|row| row.first().copied());
        if rows != Some(0) {
            strange += rows.unwrap_or_default();
            keyed.violation(format!("{name} has {rows:?} rows of loads that were refused or never sent"));
        }
    }
    figures.rows_checked += counts.rows;
    (figures.lost_rows, figures.doubled_rows) = (counts.lost.1, counts.doubled.1);
    (figures.half_rows, figures.changed_rows) = (counts.half.1, counts.changed.1);
    figures.strange_rows = strange;
    let mut all = keyed.figures.lock();
    all.loads_compared += len;
    (all.lost_loads, all.doubled_loads) = (counts.lost.0, counts.doubled.0);
    (all.half_loads, all.changed_loads) = (counts.half.0, counts.changed.0);
    Ok(())
}

/// Verdicts: loads and rows.
#[derive(Debug, Default)]
struct Counts {
    rows: u64,
    lost: (u64, u64),
    doubled: (u64, u64),
    half: (u64, u64),
    changed: (u64, u64),
}

impl Counts {
    fn add(&mut self, verdict: Verdict, load: &Load) {
        let rows = u64::from(load.rows);
        self.rows += rows;
        let (count, rows) = match verdict {
            Verdict::Whole | Verdict::Absent => return,
            Verdict::Lost => (&mut self.lost, rows),
            Verdict::Doubled(more) => (&mut self.doubled, more),
            Verdict::Half(less) => (&mut self.half, less),
            Verdict::Changed => (&mut self.changed, rows),
        };
        count.0 += 1;
        count.1 += rows;
    }
}

/// Compares the names: each channel is where its client left it, and some keys have the transactions of their first answers.
pub(super) fn names(keyed: &Keyed, client: &mut Client, doors: &Doors) -> Result<(), NoCheck> {
    let sql = "SELECT TABLE_NAME, CHANNEL, NEXT_OFFSET FROM information_schema.load_channels";
    let mut stored = HashMap::new();
    for row in client.rows(sql)?.rows {
        if let [Some(table), Some(channel), Some(next)] = &row[..] {
            stored.insert((table.clone(), channel.clone()), next.clone());
        }
    }
    let mut wrong = 0;
    for end in keyed.channels.lock().iter() {
        let found = stored.remove(&(end.table.to_owned(), end.channel.clone()));
        if end.next > 0 && found.as_ref() != Some(&end.next.to_string()) {
            wrong += 1;
            keyed.violation(format!("{end:?} is at {found:?}"));
        }
    }
    for (channel, next) in stored {
        wrong += 1;
        keyed.violation(format!("channel {channel:?} is at {next} and was never sent"));
    }
    keyed.figures.lock().wrong_channels = wrong;
    let len = keyed.books.len();
    let mut http = http::Client::connect(doors, ROOT, PATIENCE)?;
    for id in (0..len).step_by((len / STATES_COMPARED).max(1) as usize) {
        let Some(record) =
            keyed.books.record(id).filter(|record| record.has_key() && record.is_acknowledged())
        else {
            continue;
        };
        let state = keyed_state(&mut http, record.load(id).table_name(), &keyed.key_of(id))?;
        keyed.figures.lock().states_asked += 1;
        if state.name != "VISIBLE" || (state.txn, state.label) != (record.txn, record.label) {
            keyed.violation(format!("the key of load {id}, which has {record:?}, has {state:?}"));
        }
    }
    let state = keyed_state(&mut http, TABLES[0].0, "never-used")?;
    if state.name != "NONE" {
        keyed.violation(format!("a key that was never used has {state:?}"));
    }
    Ok(())
}

/// The server's knowledge of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyState {
    /// `NONE`, `RUNNING`, `DURABLE` or `VISIBLE`.
    pub name: String,
    pub txn: u64,
    /// The label's hash, like that of an answer.
    pub label: u32,
}

impl KeyState {
    pub fn is_stored(&self) -> bool {
        matches!(self.name.as_str(), "DURABLE" | "VISIBLE")
    }
}

/// Asks for the state of a key.
pub(super) fn keyed_state(client: &mut http::Client, table: &str, key: &str) -> std::io::Result<KeyState> {
    let path = format!("/api/{DATABASE}/{table}/_load_state?idempotency_key={key}");
    let data = client.ask("GET", &path, &[], "")?.data();
    Ok(KeyState { name: data.text("state"), txn: data.number("txn_id"), label: hash(&data.text("label")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_verdict() {
        let load = Load::numbered(70_000, 1, 3);
        let whole = Found::of(&load);
        let of = |found: Found| verdict(true, &load, Some(&found));
        assert_eq!(of(whole), Verdict::Whole);
        assert_eq!(of(Found { rows: 6, checks: whole.checks * 2, ..whole }), Verdict::Doubled(3));
        assert_eq!(of(Found { rows: 2, ..whole }), Verdict::Half(1));
        assert_eq!(of(Found { checks: 5, ..whole }), Verdict::Changed);
        assert_eq!(of(Found { table: 2, ..whole }), Verdict::Changed);
        assert_eq!(of(Found { pads: whole.pads + 1, ..whole }), Verdict::Changed);
        assert_eq!(verdict(true, &load, None), Verdict::Lost);
        assert_eq!(verdict(false, &load, None), Verdict::Absent);
        assert_eq!(verdict(false, &load, Some(&whole)), Verdict::Whole);
    }
}

//! The books against the tables, after a start.

use crate::books::{Fate, Note};
use crate::doors::{Doors, ROOT};
use crate::load::{DATABASE, Load, TABLES};
use crate::mysql::{Client, connect};
use crate::report::Figures;
use crate::writers::{PATIENCE, Round, Shared, label};
use crate::{http, reader};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tributary_client::{ClientError, Row};

/// Limit on the labelled loads that are sent again after a kill, to check their labels.
const REPEATED_LOADS_MAX: usize = 40;

/// A table's contents of one round: rows, the sum of the loads' numbers, the sum of the checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    rows: u64,
    loads: u128,
    checks: u128,
}

/// The rows of earlier rounds, by table and round. They never change.
#[derive(Debug, Default)]
pub(crate) struct Settled(BTreeMap<(usize, u32), Total>);

impl Settled {
    /// Rows of all rounds.
    pub fn rows(&self) -> u64 {
        self.0.values().map(|total| total.rows).sum()
    }
}

/// Why a check could not be made.
#[derive(Debug)]
pub(crate) struct NoCheck(pub String);

impl From<ClientError> for NoCheck {
    fn from(error: ClientError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for NoCheck {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Checks everything. Loads that wait for their second phase get it, loads with labels are sent again; afterwards the round is
/// settled.
pub(crate) fn check(
    shared: &Shared,
    round: &Round,
    doors: &Doors,
    settled: &mut Settled,
    figures: &mut Figures,
) -> Result<(), NoCheck> {
    let mut client = connect(doors, ROOT, Some(DATABASE))?;
    // Before SYNC: rows that were visible before the kill are visible after it at once.
    for table in 0..TABLES.len() {
        reader::count(shared, &mut client, table)?;
    }
    let mut http = http::Client::connect(doors, ROOT, PATIENCE)?;
    repeat_labelled(shared, round, &mut http)?;
    finish_two_phase(shared, round, &mut http)?;
    client.run("SYNC")?;
    let notes = round.books.by_id();
    let mut found_loads = HashMap::new();
    for (table, (name, _)) in TABLES.into_iter().enumerate() {
        let total =
            check_round(shared, &mut client, round.number, (table, name), &notes, &mut found_loads, figures)?;
        settled.0.insert((table, round.number), total);
    }
    for note in notes.values() {
        account(shared, note, found_loads.get(&note.load.id), figures);
    }
    check_settled(shared, &mut client, settled, figures)
}

/// Loads with labels and without an answer are sent again: the label decides whether they are new.
/// Some that were acknowledged are sent again too, and must be refused.
fn repeat_labelled(shared: &Shared, round: &Round, http: &mut http::Client) -> Result<(), NoCheck> {
    let notes = round.books.notes();
    let unknown = notes.iter().filter(|note| note.fate == Fate::Labelled).take(REPEATED_LOADS_MAX);
    let known = notes.iter().filter(|note| note.fate == Fate::Acknowledged && note.has_label);
    for note in unknown.chain(known.take(REPEATED_LOADS_MAX / 4)) {
        repeat(shared, round, http, note)?;
    }
    Ok(())
}

fn repeat(shared: &Shared, round: &Round, http: &mut http::Client, note: &Note) -> Result<(), NoCheck> {
    let Load { id, .. } = note.load;
    let answer = answer_for_good(http, &note.load)?;
    let status = answer.text("Status");
    match (status.as_str(), note.fate) {
        ("Label Already Exists", _) | ("Success", Fate::Labelled) => {
            round.books.is(&note.load, Fate::Acknowledged);
        }
        ("Success", _) => {
            shared.violation(format!("load {id} was acknowledged, and its label was free after the kill"));
        }
        _ => shared.violation(format!(
            "load {id} with a label could not be sent again after the kill: {status}: {}",
            answer.text("Message")
        )),
    }
    Ok(())
}

/// Sends a load with its label, again as long as the server says that it may be: a schema change that goes on after a start holds loads up.
fn answer_for_good(http: &mut http::Client, load: &Load) -> Result<http::Answer, NoCheck> {
    let (begun, label) = (Instant::now(), label(load));
    loop {
        let answer = http.load(load.table_name(), &[("label", &label)], &load.csv())?;
        let may_repeat = matches!(answer.text("Retry").as_str(), "safe" | "after_ms");
        if !may_repeat || begun.elapsed() > PATIENCE {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_millis(answer.number("RetryAfterMs").clamp(10, 1000)));
    }
}

/// Finishes two-phase loads that wait or whose last answer is missing.
fn finish_two_phase(shared: &Shared, round: &Round, http: &mut http::Client) -> Result<(), NoCheck> {
    for note in round.books.notes() {
        let legal: &[&str] = match note.fate {
            Fate::Preparing => &["UNKNOWN", "ABORTED", "PRECOMMITTED"],
            Fate::Prepared => &["PRECOMMITTED"],
            Fate::Committing => &["PRECOMMITTED", "VISIBLE"],
            Fate::Aborting => &["PRECOMMITTED", "ABORTED", "UNKNOWN"],
            _ => continue,
        };
        let state = http.label_state(&label(&note.load))?;
        let id = note.load.id;
        if !legal.contains(&state.as_str()) {
            shared.violation(format!("two-phase load {id} ({:?}) is {state} after the start", note.fate));
            continue;
        }
        let fate = match state.as_str() {
            "VISIBLE" => Fate::Acknowledged,
            // Every other waiting load is committed.
            "PRECOMMITTED" => {
                let commit = id % 2 == 0 && note.fate != Fate::Aborting || note.fate == Fate::Committing;
                let operation = if commit { "commit" } else { "abort" };
                let answer = http.second_phase(&label(&note.load), operation)?;
                if answer.text("status") != "Success" {
                    let why = answer.text("msg");
                    shared.violation(format!("the {operation} of load {id} after the start failed: {why}"));
                }
                if commit { Fate::Acknowledged } else { Fate::Refused }
            }
            _ => Fate::Refused,
        };
        round.books.is(&note.load, fate);
    }
    Ok(())
}

/// A load's rows in the table.
#[derive(Clone, Copy, Debug)]
struct Found {
    rows: u64,
    parts: u64,
    last_part: u64,
    smallest: u64,
    largest: u64,
    checks: u64,
}

#[allow(clippy::too_many_arguments, reason = "the facts of one check")]
fn check_round(
    shared: &Shared,
    client: &mut Client,
    round: u32,
    (table, name): (usize, &str),
    notes: &HashMap<u64, Note>,
    found_loads: &mut HashMap<u64, Found>,
    figures: &mut Figures,
) -> Result<Total, NoCheck> {
    let sql = format!(
        "SELECT load_id, COUNT(*), COUNT(DISTINCT part), MAX(part), MIN(size), MAX(size), SUM(chk) \
         FROM {name} WHERE round = {round} GROUP BY load_id"
    );
    let mut total = Total::default();
    for row in client.rows(&sql)?.rows {
        let numbers = numbers(&row)?;
        let [id, rows, parts, last_part, smallest, largest, checks] = numbers[..] else {
            return Err(NoCheck(format!("a row of another form: {row:?}")));
        };
        figures.rows_checked += rows;
        total.rows += rows;
        total.loads += u128::from(id) * u128::from(rows);
        total.checks += u128::from(checks);
        match notes.get(&id) {
            Some(note) if note.load.table == table => {
                found_loads.insert(id, Found { rows, parts, last_part, smallest, largest, checks });
            }
            _ => {
                figures.strange_rows += rows;
                shared
                    .violation(format!("{name} holds {rows} rows of load {id}, which was never sent to it"));
            }
        }
    }
    Ok(total)
}

fn account(shared: &Shared, note: &Note, found: Option<&Found>, figures: &mut Figures) {
    let Note { load, mode, fate, .. } = note;
    let rows = u64::from(load.rows);
    let about = || format!("{} load {} of {} rows in {}", mode.name(), load.id, rows, load.table_name());
    let is_acknowledged = *fate == Fate::Acknowledged;
    if is_acknowledged {
        figures.mode(*mode).acknowledged(rows);
    } else if *fate == Fate::Refused {
        figures.refused_loads += 1;
    } else if found.is_some() {
        figures.unknown_there += 1;
    } else {
        figures.unknown_absent += 1;
    }
    let Some(found) = found else {
        if is_acknowledged {
            figures.lost_rows += rows;
            shared.violation(format!("{} was acknowledged and is lost", about()));
        }
        return;
    };
    if *fate == Fate::Refused {
        figures.strange_rows += found.rows;
        shared.violation(format!("{} was refused, and {} rows of it are there", about(), found.rows));
    }
    if found.rows > rows {
        figures.doubled_rows += found.rows - rows;
        shared.violation(format!("{} has {} rows", about(), found.rows));
    } else if found.rows < rows {
        let counted = if is_acknowledged { &mut figures.lost_rows } else { &mut figures.half_rows };
        *counted += rows - found.rows;
        shared.violation(format!("of {} only {} rows are there", about(), found.rows));
    } else if (found.parts, found.last_part + 1, found.smallest, found.largest, found.checks)
        != (rows, rows, rows, rows, load.check_sum())
    {
        figures.changed_rows += rows;
        shared.violation(format!("{} was changed: {found:?}", about()));
    }
}

/// Whether everything that earlier rounds left is as it was.
pub(crate) fn check_settled(
    shared: &Shared,
    client: &mut Client,
    settled: &Settled,
    figures: &mut Figures,
) -> Result<(), NoCheck> {
    let mut found = BTreeMap::new();
    for (table, (name, _)) in TABLES.into_iter().enumerate() {
        let sql = format!("SELECT round, COUNT(*), SUM(load_id), SUM(chk) FROM {name} GROUP BY round");
        for row in client.rows(&sql)?.rows {
            let numbers = numbers(&row)?;
            let [round, rows, loads, checks] = numbers[..] else {
                return Err(NoCheck(format!("a row of another form: {row:?}")));
            };
            figures.rows_checked += rows;
            let total = Total { rows, loads: loads.into(), checks: checks.into() };
            found.insert((table, round as u32), total);
        }
    }
    for (key @ (table, round), expected) in &settled.0 {
        let now = found.remove(key).unwrap_or_default();
        if now != *expected {
            let name = TABLES[*table].0;
            let lost = expected.rows.saturating_sub(now.rows);
            let doubled = now.rows.saturating_sub(expected.rows);
            figures.lost_rows += lost;
            figures.doubled_rows += doubled;
            shared.violation(format!(
                "{name} held {expected:?} of round {round} and holds {now:?}: rows that had survived a start \
                 have changed"
            ));
        }
    }
    for ((table, round), total) in found {
        figures.strange_rows += total.rows;
        shared.violation(format!("{} holds {total:?} of round {round}, which left none", TABLES[table].0));
    }
    Ok(())
}

/// The values of a row that are all numbers.
pub(crate) fn numbers(row: &Row) -> Result<Vec<u64>, NoCheck> {
    row.iter()
        .map(|value| value.as_deref().and_then(|text| text.parse().ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| NoCheck(format!("not all values of a row are numbers: {row:?}")))
}

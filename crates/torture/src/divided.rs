//! Partitioned tables: clients that load into partitions of their own and empty, drop, add, overwrite and replace them, and the
//! expected contents.
//!
//! Each client performs one operation at a time, so the contents of its partitions are known. Only the last operation before a
//! kill may lack an answer: it has happened as a whole or not at all. The partitions of one client change while others load.

use crate::check::NoCheck;
use crate::load::DATABASE;
use crate::mysql::{Client, connect};
use crate::report::Figures;
use crate::writers::{AFTER_REFUSAL, Gone, Round, Shared, is_undecided};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_client::ClientError;

/// Clients of each table.
const CLIENTS: usize = 2;
/// Partitions of each client.
const SLOTS: u32 = 6;
/// Most rows of a load.
const ROWS_MAX: u64 = 60;

/// The tables: one whose partitions are added, and one whose loads create them.
pub(crate) const TABLES: [&str; 2] = ["ranged", "made"];

/// The statements that create the tables.
pub(crate) fn create() -> [String; 2] {
    let columns = "(slot INT NOT NULL, load_id BIGINT NOT NULL, part INT NOT NULL) DUPLICATE KEY(slot)";
    let rest = "DISTRIBUTED BY HASH(slot) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"30\")";
    let ranges: Vec<String> = (0..CLIENTS as u32 * SLOTS)
        .map(|slot| format!("PARTITION {} VALUES [('{slot}'), ('{}'))", name("ranged", slot), slot + 1))
        .collect();
    let ranges = ranges.join(", ");
    [
        format!("CREATE TABLE {DATABASE}.ranged {columns} PARTITION BY RANGE(slot) ({ranges}) {rest}"),
        format!("CREATE TABLE {DATABASE}.made {columns} AUTO PARTITION BY LIST(slot) () {rest}"),
    ]
}

/// The name of a slot's partition; partitions created by loads have Doris's names.
fn name(table: &str, slot: u32) -> String {
    match table {
        "made" => format!("p{slot}{}", slot.to_string().len()),
        _ => format!("p{slot}"),
    }
}

/// The contents of a slot's partition: loads with their rows.
type Loads = BTreeMap<u64, u64>;

/// The partitions of a client by their slots; one that is not there is dropped, or not made yet.
type Known = BTreeMap<u32, Loads>;

/// An operation on a partition.
#[derive(Clone, Debug)]
enum Step {
    Load {
        load: u64,
        rows: u64,
    },
    Truncate,
    Drop,
    Add,
    /// INSERT OVERWRITE of the partition.
    Overwrite {
        load: u64,
        rows: u64,
    },
    /// A temporary partition with such a load takes its place.
    Replace {
        load: u64,
        rows: u64,
    },
}

impl Step {
    fn apply(&self, known: &mut Known, slot: u32) {
        match self {
            Self::Load { load, rows } => drop(known.entry(slot).or_default().insert(*load, *rows)),
            Self::Truncate | Self::Add => drop(known.insert(slot, Loads::new())),
            Self::Drop => drop(known.remove(&slot)),
            Self::Overwrite { load, rows } | Self::Replace { load, rows } => {
                known.insert(slot, Loads::from([(*load, *rows)]));
            }
        }
    }
}

#[derive(Debug)]
struct Owner {
    table: &'static str,
    /// The first slot of the client.
    first: u32,
    known: Known,
    /// The last step, if there was no answer.
    pending: Option<(u32, Step)>,
}

/// All clients.
#[derive(Debug)]
pub(crate) struct Divided {
    owners: Vec<Mutex<Owner>>,
    steps: AtomicU64,
    rows: AtomicU64,
}

impl Divided {
    pub fn new() -> Self {
        let owner = |number: usize| {
            let (table, first) = (TABLES[number % TABLES.len()], (number / TABLES.len()) as u32 * SLOTS);
            let is_there = table == "ranged";
            let known = (first..first + SLOTS).filter(|_| is_there).map(|slot| (slot, Loads::new()));
            Mutex::new(Owner { table, first, known: known.collect(), pending: None })
        };
        Self {
            owners: (0..CLIENTS * TABLES.len()).map(owner).collect(),
            steps: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }

    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// Works as one of the clients until the round is over.
    pub fn write(&self, shared: &Shared, round: &Round, number: usize, seed: u64) {
        let mut owner = self.owners[number].lock();
        let mut rng = StdRng::seed_from_u64(seed ^ (number as u64 + 2000) << 32 ^ u64::from(round.number));
        if let Err(Gone(reason)) = self.work(&mut owner, shared, round, &mut rng)
            && !round.is_killed.load(Ordering::SeqCst)
        {
            shared.violation(format!(
                "a connection (partitions of {}) broke while the server ran: {reason}",
                owner.table
            ));
        }
    }

    fn work(&self, owner: &mut Owner, shared: &Shared, round: &Round, rng: &mut StdRng) -> Result<(), Gone> {
        let mut server = connect(&round.doors, "partitions", Some(DATABASE))?;
        server.run("SET enable_auto_create_when_overwrite = true")?;
        while !round.is_over.load(Ordering::Relaxed) && owner.pending.is_none() {
            let slot = owner.first + rng.random_range(0..SLOTS);
            let step = owner.next(slot, shared, rng);
            let statements = owner.statements(slot, &step, rng);
            owner.pending = Some((slot, step.clone()));
            match run_all(&mut server, &statements) {
                Ok(()) => {
                    owner.pending = None;
                    step.apply(&mut owner.known, slot);
                    self.steps.fetch_add(1, Ordering::Relaxed);
                    if let Step::Load { rows, .. } = step {
                        self.rows.fetch_add(rows, Ordering::Relaxed);
                    }
                }
                Err(ClientError::Refused(error)) if is_undecided(&error.message) => {}
                Err(ClientError::Refused(error)) => {
                    owner.pending = None;
                    if !round.expects_refusals {
                        shared.violation(format!(
                            "{}: a step that nothing is in the way of was refused: {step:?}: {error}",
                            owner.table
                        ));
                    }
                    std::thread::sleep(AFTER_REFUSAL);
                }
                Err(ClientError::Gone(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Compares all partitions; what became of steps without an answer is known afterwards.
    pub fn check(&self, shared: &Shared, server: &mut Client, figures: &mut Figures) -> Result<(), NoCheck> {
        for owner in &self.owners {
            owner.lock().check(shared, server, figures)?;
        }
        figures.partition_steps = self.steps.load(Ordering::Relaxed);
        figures.partitioned_rows = self.rows.load(Ordering::Relaxed);
        Ok(())
    }
}

/// Runs them one after the other. The last one is the step; those before it leave nothing that shows.
fn run_all(server: &mut Client, statements: &[String]) -> Result<(), ClientError> {
    for statement in statements {
        server.run(statement)?;
    }
    Ok(())
}

impl Owner {
    fn next(&self, slot: u32, shared: &Shared, rng: &mut StdRng) -> Step {
        let (load, rows) = (shared.next_load.fetch_add(1, Ordering::Relaxed), rng.random_range(1..=ROWS_MAX));
        match self.known.get(&slot) {
            None if self.table == "ranged" => Step::Add,
            None => Step::Load { load, rows },
            Some(_) => match rng.random_range(0..12) {
                0 => Step::Truncate,
                1 => Step::Drop,
                2 => Step::Overwrite { load, rows },
                3 | 4 => Step::Replace { load, rows },
                _ => Step::Load { load, rows },
            },
        }
    }

    fn statements(&self, slot: u32, step: &Step, rng: &mut StdRng) -> Vec<String> {
        let (table, partition) = (self.table, name(self.table, slot));
        let mode = ["async_mode", "sync_mode", "off_mode"][rng.random_range(0..3)];
        let values = |load: &u64, rows: &u64| {
            let rows: Vec<String> = (0..*rows).map(|part| format!("({slot},{load},{part})")).collect();
            rows.join(",")
        };
        match step {
            Step::Load { load, rows } => vec![
                format!("SET group_commit = {mode}"),
                format!("INSERT INTO {table} (slot, load_id, part) VALUES {}", values(load, rows)),
            ],
            Step::Truncate => vec![format!("TRUNCATE TABLE {table} PARTITION ({partition})")],
            Step::Drop => vec![format!("ALTER TABLE {table} DROP PARTITION {partition}")],
            Step::Add => vec![format!(
                "ALTER TABLE {table} ADD PARTITION {partition} VALUES [('{slot}'), ('{}'))",
                slot + 1
            )],
            Step::Overwrite { load, rows } => {
                vec![format!(
                    "INSERT OVERWRITE TABLE {table} PARTITION ({partition}) VALUES {}",
                    values(load, rows)
                )]
            }
            Step::Replace { load, rows } => {
                let rows_of = match table {
                    "made" => format!("VALUES IN ('{slot}')"),
                    _ => format!("VALUES [('{slot}'), ('{}'))", slot + 1),
                };
                vec![
                    // The remains of a killed operation.
                    format!("ALTER TABLE {table} DROP TEMPORARY PARTITION IF EXISTS t{slot}"),
                    format!("ALTER TABLE {table} ADD TEMPORARY PARTITION t{slot} {rows_of}"),
                    format!(
                        "INSERT INTO {table} TEMPORARY PARTITION (t{slot}) VALUES {}",
                        values(load, rows)
                    ),
                    format!(
                        "ALTER TABLE {table} REPLACE PARTITION ({partition}) WITH TEMPORARY PARTITION (t{slot})"
                    ),
                ]
            }
        }
    }

    fn check(&mut self, shared: &Shared, server: &mut Client, figures: &mut Figures) -> Result<(), NoCheck> {
        let found = self.found(server)?;
        figures.partitions_checked += u64::from(SLOTS);
        if let Some((slot, step)) = self.pending.take() {
            let mut with_pending = self.known.clone();
            step.apply(&mut with_pending, slot);
            if self.shown(&found) == self.shown(&with_pending) {
                self.known = with_pending;
            }
        }
        if self.shown(&found) == self.shown(&self.known) {
            self.known = found;
            return Ok(());
        }
        let slots = self.first..self.first + SLOTS;
        for slot in slots.filter(|slot| found.get(slot) != self.known.get(slot)) {
            figures.wrong_partitions += 1;
            let (expected, found) = (self.known.get(&slot), found.get(&slot));
            shared.violation(format!(
                "{}: the partition of {slot} has loads with rows {found:?}, expected {expected:?}",
                self.table
            ));
        }
        Ok(())
    }

    /// The part that must be equal. A failed load may have created its partition, which is then empty.
    fn shown<'k>(&self, known: &'k Known) -> Vec<(&'k u32, &'k Loads)> {
        let may_be_empty = self.table == "ranged";
        known.iter().filter(|(_, loads)| may_be_empty || !loads.is_empty()).collect()
    }

    /// The server's contents of the client's partitions.
    fn found(&self, server: &mut Client) -> Result<Known, NoCheck> {
        let slots = self.first..self.first + SLOTS;
        let names: Vec<(String, u32)> = slots.clone().map(|slot| (name(self.table, slot), slot)).collect();
        let sql = format!("SHOW PARTITIONS FROM {}", self.table);
        let mut found = Known::new();
        for row in server.rows(&sql)?.rows {
            let of_row = row.get(1).and_then(Option::as_deref);
            if let Some((_, slot)) = names.iter().find(|(name, _)| Some(name.as_str()) == of_row) {
                found.insert(*slot, Loads::new());
            }
        }
        let sql = format!(
            "SELECT slot, load_id, COUNT(*), COUNT(DISTINCT part) FROM {} WHERE slot >= {} AND slot < {} GROUP BY slot, load_id",
            self.table, slots.start, slots.end
        );
        for row in server.rows(&sql)?.rows {
            let numbers: Option<Vec<u64>> =
                row.iter().map(|text| text.as_deref().and_then(|text| text.parse().ok())).collect();
            let Some(&[slot, load, rows, parts]) = numbers.as_deref() else {
                return Err(NoCheck(format!("{sql}: {row:?}")));
            };
            // Duplicate rows match no load.
            let rows = if rows == parts { rows } else { u64::MAX };
            found.entry(slot as u32).or_default().insert(load, rows);
        }
        Ok(found)
    }
}

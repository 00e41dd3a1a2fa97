//! Readers that look for loads of other clients: by the receipts in the answers, or at once if rows were answered as visible.
//! Loads that wait in the same way are looked for together, so that readers keep up with the clients.

use super::gate::Up;
use super::{Keyed, PATIENCE};
use crate::doors::ROOT;
use crate::load::{DATABASE, Load, TABLES};
use crate::mysql::{Client, connect};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tributary_client::ClientError;

/// Loads that are looked for by one statement, at most.
const LOOKS_TOGETHER_MAX: usize = 256;

/// A load that was acknowledged a moment ago.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub load: Load,
    pub wait: Wait,
}

/// How a reader makes sure to see a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    /// The session's reads wait for the receipt.
    ReadAfter(u64),
    /// A statement waits for the receipt.
    Sync(u64),
    /// The load was answered as visible.
    Needless,
}

/// Rows that are there by number and round of their loads.
type Found = HashMap<(u64, u32), u64>;

impl Wait {
    /// Whether one statement may look for both, if they are loads of one table.
    fn is_with(self, other: Self) -> bool {
        matches!((self, other), (Self::Sync(_), Self::Sync(_))) || self == other
    }
}

/// Looks for loads until no client sends any.
pub(super) fn read(keyed: &Keyed, looks: Receiver<Look>) {
    let mut connection: Option<(Client, Up)> = None;
    while let Ok(first) = looks.recv() {
        let mut waiting = vec![first];
        waiting.extend(looks.try_iter().take(LOOKS_TOGETHER_MAX - 1));
        waiting.sort_by_key(|look| (look.load.table, look.wait));
        for together in
            waiting.chunk_by(|one, other| one.load.table == other.load.table && one.wait.is_with(other.wait))
        {
            look_until_answered(keyed, &mut connection, together);
        }
    }
    keyed.clients.fetch_sub(1, Ordering::SeqCst);
}

fn look_until_answered(keyed: &Keyed, connection: &mut Option<(Client, Up)>, looks: &[Look]) {
    while let Some(up) = keyed.gate.wait() {
        let outcome = match connection.take() {
            Some((client, of)) if of == up => Ok(client),
            _ => connect(&up.doors(), ROOT, Some(DATABASE)),
        };
        match outcome.and_then(|mut client| look_for(&mut client, looks).map(|found| (client, found))) {
            Ok((client, (found, waited))) => {
                *connection = Some((client, up));
                for look in looks {
                    let rows = found.get(&(look.load.id, look.load.round)).copied().unwrap_or_default();
                    note(keyed, look, rows, waited);
                }
                return;
            }
            // A receipt outlives a kill.
            Err(ClientError::Gone(_)) if keyed.gate.was_killed(up) => {}
            Err(error) => {
                keyed.violation(format!("a read of {looks:?} failed while the server ran: {error}"));
                return;
            }
        }
    }
}

/// The rows of these loads, and how long it took to see them.
fn look_for(client: &mut Client, looks: &[Look]) -> Result<(Found, Duration), ClientError> {
    let read_after = if let Wait::ReadAfter(receipt) = looks[0].wait { receipt } else { 0 };
    client.run(&format!("SET read_after = {read_after}"))?;
    let began = Instant::now();
    let mut receipts: Vec<u64> = looks
        .iter()
        .filter_map(|look| if let Wait::Sync(receipt) = look.wait { Some(receipt) } else { None })
        .collect();
    receipts.dedup();
    for receipt in receipts {
        client.run(&format!("SYNC '{receipt}'"))?;
    }
    let ids: Vec<String> = looks.iter().map(|look| look.load.id.to_string()).collect();
    let rows = client.rows(&format!(
        "SELECT load_id, round, COUNT(*) FROM {} WHERE load_id IN ({}) GROUP BY load_id, round",
        looks[0].load.table_name(),
        ids.join(","),
    ))?;
    let waited = began.elapsed();
    let number =
        |row: &[Option<String>], column: usize| -> Option<u64> { row.get(column)?.as_deref()?.parse().ok() };
    let found = rows
        .rows
        .iter()
        .filter_map(|row| Some(((number(row, 0)?, u32::try_from(number(row, 1)?).ok()?), number(row, 2)?)))
        .collect();
    Ok((found, waited))
}

fn note(keyed: &Keyed, look: &Look, found: u64, waited: Duration) {
    let rows = u64::from(look.load.rows);
    let mut figures = keyed.figures.lock();
    match look.wait {
        Wait::Needless => figures.visible_pairs += 1,
        _ => {
            figures.pairs += 1;
            let waited_ms = waited.as_millis() as u64;
            figures.longest_wait_ms = figures.longest_wait_ms.max(waited_ms);
            let (_, interval_ms) = TABLES[look.load.table];
            let beyond_ms = waited_ms.saturating_sub(interval_ms);
            figures.longest_wait_beyond_interval_ms = figures.longest_wait_beyond_interval_ms.max(beyond_ms);
            figures.pairs_a_second_beyond_interval += u64::from(beyond_ms >= 1000);
        }
    }
    if found < rows {
        figures.stale_reads += 1;
    }
    drop(figures);
    if found != rows {
        keyed.violation(format!("a read of {look:?} found {found} rows after {} ms", waited.as_millis()));
    } else if waited > PATIENCE {
        keyed.violation(format!("a read of {look:?} took {} s", waited.as_secs()));
    }
}

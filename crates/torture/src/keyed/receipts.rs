//! Readers that look for loads of other clients: by the receipts in the answers, or at once if rows were answered as visible.

use super::gate::Up;
use super::{Keyed, PATIENCE};
use crate::doors::ROOT;
use crate::load::{DATABASE, Load};
use crate::mysql::{Client, connect};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tributary_client::ClientError;

/// A load that was acknowledged a moment ago.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub load: Load,
    pub wait: Wait,
}

/// How a reader makes sure to see a load.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// The session's reads wait for the receipt.
    ReadAfter(u64),
    /// A statement waits for the receipt.
    Sync(u64),
    /// The load was answered as visible.
    Needless,
}

/// Looks for loads until no client sends any.
pub(super) fn read(keyed: &Keyed, looks: Receiver<Look>) {
    let mut connection: Option<(Client, Up)> = None;
    for look in looks {
        while let Some(up) = keyed.gate.wait() {
            let outcome = match connection.take() {
                Some((client, of)) if of == up => Ok(client),
                _ => connect(&up.doors(), ROOT, Some(DATABASE)),
            };
            match outcome.and_then(|mut client| look_for(&mut client, &look).map(|found| (client, found))) {
                Ok((client, found)) => {
                    connection = Some((client, up));
                    note(keyed, &look, found);
                    break;
                }
                // A receipt outlives a kill.
                Err(ClientError::Gone(_)) if keyed.gate.was_killed(up) => {}
                Err(error) => {
                    keyed.violation(format!("a read of {look:?} failed while the server ran: {error}"));
                    break;
                }
            }
        }
    }
    keyed.clients.fetch_sub(1, Ordering::SeqCst);
}

/// Rows that are there, and how long it took.
fn look_for(client: &mut Client, look: &Look) -> Result<(u64, Duration), ClientError> {
    let Load { id, round, .. } = look.load;
    let read_after = if let Wait::ReadAfter(receipt) = look.wait { receipt } else { 0 };
    client.run(&format!("SET read_after = {read_after}"))?;
    let began = Instant::now();
    if let Wait::Sync(receipt) = look.wait {
        client.run(&format!("SYNC '{receipt}'"))?;
    }
    let table = look.load.table_name();
    let rows =
        client.rows(&format!("SELECT COUNT(*) FROM {table} WHERE load_id = {id} AND round = {round}"))?.rows;
    let found = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or_default();
    Ok((found, began.elapsed()))
}

fn note(keyed: &Keyed, look: &Look, (found, waited): (u64, Duration)) {
    let rows = u64::from(look.load.rows);
    let mut figures = keyed.figures.lock();
    match look.wait {
        Wait::Needless => figures.visible_pairs += 1,
        _ => {
            figures.pairs += 1;
            figures.longest_wait_ms = figures.longest_wait_ms.max(waited.as_millis() as u64);
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

//! The readers: counts only grow, over kills too, and no query sees half of a load.

use crate::load::{DATABASE, TABLES};
use crate::mysql::{Client, connect};
use crate::upserts;
use crate::writers::{Round, Shared};
use std::sync::atomic::Ordering;
use tributary_client::ClientError;

/// Reads until the round is over.
pub(crate) fn read(shared: &Shared, round: &Round) {
    if let Err(error) = read_until_over(shared, round)
        && !round.is_killed.load(Ordering::SeqCst)
    {
        shared.violation(format!("a query failed while the server ran: {error}"));
    }
}

fn read_until_over(shared: &Shared, round: &Round) -> Result<(), ClientError> {
    let mut client = connect(&round.doors, "readers", Some(DATABASE))?;
    while !round.is_over.load(Ordering::Relaxed) {
        for (table, (name, _)) in TABLES.into_iter().enumerate() {
            count(shared, &mut client, table)?;
            halves(shared, &mut client, name, round.number)?;
            shared.queries.fetch_add(2, Ordering::Relaxed);
        }
        for table in upserts::TABLES {
            upserts::one_row_for_each_key(shared, &mut client, table)?;
            shared.queries.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Notes how many rows the table has; they may not be fewer than any query saw before.
pub(crate) fn count(shared: &Shared, client: &mut Client, table: usize) -> Result<(), ClientError> {
    let before = shared.seen[table].load(Ordering::SeqCst);
    let name = TABLES[table].0;
    let rows = client.rows(&format!("SELECT COUNT(*) FROM {name}"))?.rows;
    let found = rows.first().and_then(|row| row.first()?.as_deref()?.parse::<u64>().ok()).unwrap_or(0);
    if found < before {
        shared.violation(format!("{name} had {before} rows for one query and {found} for a later one"));
    }
    shared.seen[table].fetch_max(found, Ordering::SeqCst);
    Ok(())
}

fn halves(shared: &Shared, client: &mut Client, name: &str, round: u32) -> Result<(), ClientError> {
    let sql = format!(
        "SELECT load_id, COUNT(*), MAX(size) FROM {name} WHERE round = {round} \
         GROUP BY load_id HAVING COUNT(*) <> MAX(size)"
    );
    for row in client.rows(&sql)?.rows {
        shared.violation(format!("a query of {name} saw load, rows, size = {row:?}"));
    }
    Ok(())
}

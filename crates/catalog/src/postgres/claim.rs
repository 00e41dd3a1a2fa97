//! The claim to a catalog: one server may change it, by an epoch that each claim raises.
//!
//! The owner says every few seconds that it lives ([`renew`]). A catalog belongs to one server for good (its logs and files belong
//! to these names); the time decides only whether another process of the same server, on a copy of its directory or after a freeze,
//! may go on. Whatever the clocks say, changes of an earlier epoch fail.

use super::errors::{PgError, Sql, failed_to};
use super::format;
use super::link::{Held, Link};
use super::nodes;
use super::progress;
use crate::error::CatalogError;
use crate::store::Stored;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long an owner that is not heard of keeps the catalog.
const LEASE_SECONDS: f64 = 30.0;
/// How long the connection of a process that was killed may be seen after its end.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// The server that claims a catalog.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Its node's id.
    pub node: &'a str,
    /// Its host, for others to read.
    pub host: &'a str,
    /// The id of the catalog that it had. `None`: it has had none, and gets a new one.
    pub known: Option<&'a str>,
}

/// A catalog that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The catalog's id.
    pub id: String,
    /// Grows with each claim.
    pub epoch: u64,
    /// The process that had it before has not given it up, and may be running.
    pub is_takeover: bool,
}

/// The catalog's row.
struct Found {
    id: String,
    format: i64,
    owner: String,
    host: String,
    /// The process that had it last is connected, and its time has not passed.
    is_alive: bool,
    /// That process has not given it up.
    is_held: bool,
}

/// Claims the catalog, which is made if there is none and none is known.
pub(super) async fn claim(link: &Link, claim: &Claim<'_>) -> Stored<Claimed> {
    let place = link.place();
    let failed = failed_to("open itself", &place);
    let started = Instant::now();
    loop {
        let mut held = link.held().await.map_err(&failed)?;
        let claimed = claim_once(link, &held, claim, &place).await;
        match claimed {
            Err(CatalogError::InUse { .. }) if started.elapsed() < CLAIM_PATIENCE => {}
            Ok(claimed) => return Ok(claimed),
            Err(error) => {
                held.discard();
                return Err(error);
            }
        }
        held.discard();
        drop(held);
        sleep(TRY_AGAIN).await;
    }
}

async fn claim_once(link: &Link, held: &Held, claim: &Claim<'_>, place: &str) -> Stored<Claimed> {
    let failed = failed_to("open itself", place);
    let session = held.session().map_err(&failed)?;
    if let Some(reason) = format::refusal(session).await.map_err(&failed)? {
        return Err(CatalogError::Unfit { place: place.to_owned(), reason });
    }
    if !format::is_there(session).await.map_err(&failed)? {
        if claim.known.is_some() {
            return Err(CatalogError::Missing {
                path: place.to_owned(),
                evidence: "node.json of this server".to_owned(),
            });
        }
        format::create(session).await.map_err(&failed)?;
    }
    session.batch(nodes::TABLE).await.map_err(&failed)?;
    session.batch("BEGIN").await.map_err(&failed)?;
    let found = found(held).await.map_err(&failed)?;
    judge(&found, claim, place)?;
    let claimed = "UPDATE catalog SET owner = $1, host = $2, epoch = epoch + 1, \
         session = (SELECT pid || ' ' || backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), \
         expires = clock_timestamp() + make_interval(secs => $3) RETURNING epoch";
    let row = session.row(claimed, &[&claim.node, &claim.host, &LEASE_SECONDS]).await.map_err(&failed)?;
    let epoch: i64 = row.try_get(0).map_err(PgError::from).map_err(&failed)?;
    // It was that of the owner before.
    session.execute("DELETE FROM meta WHERE key = $1", &[&progress::KEY]).await.map_err(&failed)?;
    // If its answer is lost, the next try claims once more.
    session.batch("COMMIT").await.map_err(&failed)?;
    link.set_epoch(epoch);
    Ok(Claimed { id: found.id, epoch: u64::try_from(epoch).unwrap_or(0), is_takeover: found.is_held })
}

async fn found(held: &Held) -> Sql<Found> {
    let row = held
        .session()?
        .row(
            "SELECT id, format, owner, host, expires > clock_timestamp() AND EXISTS \
             (SELECT 1 FROM pg_stat_activity WHERE pid || ' ' || backend_start = session AND pid <> pg_backend_pid()), \
             session <> '' FROM catalog FOR UPDATE",
            &[],
        )
        .await?;
    Ok(Found {
        id: row.try_get(0)?,
        format: row.try_get(1)?,
        owner: row.try_get(2)?,
        host: row.try_get(3)?,
        is_alive: row.try_get(4)?,
        is_held: row.try_get(5)?,
    })
}

fn judge(found: &Found, claim: &Claim<'_>, place: &str) -> Stored<()> {
    let place = place.to_owned();
    if found.format > format::FORMAT {
        return Err(CatalogError::NewerFormat { path: place, found: found.format, known: format::FORMAT });
    }
    if !found.owner.is_empty() && found.owner != claim.node {
        return Err(CatalogError::OfAnother { place, owner: found.owner.clone(), host: found.host.clone() });
    }
    if let Some(known) = claim.known.filter(|known| *known != found.id) {
        return Err(CatalogError::NotTheCatalog { place, known: known.to_owned(), found: found.id.clone() });
    }
    if found.is_alive {
        return Err(CatalogError::InUse { place, host: found.host.clone() });
    }
    Ok(())
}

/// Says that the owner lives.
pub(super) async fn renew(link: &Link) -> Sql<()> {
    let held = link.held().await?;
    let session = held.session()?;
    let renewed = "UPDATE catalog SET expires = clock_timestamp() + make_interval(secs => $1), \
         session = (SELECT pid || ' ' || backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) \
         WHERE epoch = $2";
    if session.execute(renewed, &[&LEASE_SECONDS, &link.epoch()]).await? == 1 {
        return Ok(());
    }
    let row = session.row("SELECT owner, host, epoch FROM catalog", &[]).await?;
    let (owner, host, epoch): (String, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Err(PgError::Fenced(format!("server {owner} on {host}, epoch {epoch}")))
}

/// Gives the claim up, so that the next process of this server need not wait.
pub(super) async fn release(link: &Link) -> Sql<()> {
    let held = link.held().await?;
    let released = "UPDATE catalog SET expires = '-infinity', session = '' WHERE epoch = $1";
    held.session()?.execute(released, &[&link.epoch()]).await.map(drop)
}

//! How far the owner's tables have got, for nodes that read them: the time up to which everything that it had shown is in the tables'
//! files. It is told by the database's clock only, so that no two clocks are compared.

use super::errors::Sql;
use super::link::{Link, Session};
use std::time::Duration;

/// The key in `meta` of that time, in seconds since 1970.
pub(super) const KEY: &str = "files_until";
/// The value after the owner has ended with everything in files: nothing is shown later.
const ENDED: &str = "ended";

/// Tells it. `oldest` says for how long the oldest row that is not in files has been shown.
pub(super) async fn tell(link: &Link, oldest: &(dyn Fn() -> Option<Duration> + Send + Sync)) -> Sql<()> {
    let held = link.held().await?;
    let session = held.session()?;
    let now: f64 =
        session.row("SELECT extract(epoch FROM clock_timestamp())::float8", &[]).await?.try_get(0)?;
    // After the clock was read: the time that results is not later than the row's.
    let until = now - oldest().map_or(0.0, |age| age.as_secs_f64());
    put(session, link.epoch(), &format!("{until:.6}")).await
}

/// Tells that the owner has ended, and everything is in files.
pub(super) async fn tell_end(link: &Link) -> Sql<()> {
    let held = link.held().await?;
    put(held.session()?, link.epoch(), ENDED).await
}

async fn put(session: &Session, epoch: i64, value: &str) -> Sql<()> {
    let put = "INSERT INTO meta (key, value) SELECT $1::text, $2::text FROM catalog WHERE epoch = $3 FOR SHARE \
         ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    session.execute(put, &[&KEY, &value, &epoch]).await.map(drop)
}

/// How long ago that was. `None`: the owner has not told it.
pub(super) async fn lag(link: &Link) -> Sql<Option<Duration>> {
    let held = link.held().await?;
    let row = held
        .session()?
        .row_if_any(
            "SELECT CASE WHEN value = 'ended' THEN 0::float8 \
             ELSE greatest(extract(epoch FROM clock_timestamp())::float8 - value::float8, 0) END \
             FROM meta WHERE key = $1",
            &[&KEY],
        )
        .await?;
    let seconds: Option<f64> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// The id of the catalog, and the server that owns it.
pub(super) async fn owner(link: &Link) -> Sql<(String, String)> {
    let held = link.held().await?;
    let row = held.session()?.row("SELECT id, owner FROM catalog", &[]).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

//! The table of nodes that were heard of. It is no part of the catalog that is copied, and no change of it has an epoch: a user who
//! may write to the table says what it is.

use super::errors::Sql;
use super::link::{Link, Session};
use crate::nodes::{HeardNode, NodeSign};
use std::time::Duration;

/// How long a node that is not heard of is shown, in seconds.
const SHOWN_SECONDS: f64 = 3600.0;
/// Rows that the table may have: a node more than that is not shown.
const NODES_MAX: i64 = 1000;

/// Made at each claim: catalogs of before have none.
pub(super) const TABLE: &str = r#"
    CREATE TABLE IF NOT EXISTS heard_nodes (
        name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        sign TEXT NOT NULL,
        heard TIMESTAMPTZ NOT NULL
    ) WITH (fillfactor = 25)
"#;

/// Notes that a node lives, and forgets nodes that have not been heard of for long.
pub(super) async fn say(link: &Link, sign: &NodeSign) -> Sql<()> {
    let text = serde_json::to_string(sign).unwrap_or_default();
    let held = link.held().await?;
    let session = held.session()?;
    let said = "WITH gone AS (DELETE FROM heard_nodes WHERE heard < clock_timestamp() - make_interval(secs => $3) AND name <> $1) \
         INSERT INTO heard_nodes (name, sign, heard) SELECT $1::text, $2::text, clock_timestamp() \
         WHERE EXISTS (SELECT 1 FROM heard_nodes WHERE name = $1) OR (SELECT count(*) FROM heard_nodes) < $4 \
         ON CONFLICT (name) DO UPDATE SET sign = excluded.sign, heard = excluded.heard";
    session.execute(said, &[&sign.name, &text, &SHOWN_SECONDS, &NODES_MAX]).await.map(drop)
}

/// The nodes that were heard of. Signs of later versions that are not understood are left out.
pub(super) async fn heard(link: &Link) -> Sql<Vec<HeardNode>> {
    let held = link.held().await?;
    let session = held.session()?;
    if !is_there(session).await? {
        return Ok(Vec::new());
    }
    let rows = session
        .rows(
            "SELECT sign, greatest(extract(epoch FROM clock_timestamp() - heard), 0)::float8 FROM heard_nodes \
             WHERE heard >= clock_timestamp() - make_interval(secs => $1) ORDER BY name",
            &[&SHOWN_SECONDS],
        )
        .await?;
    let mut nodes = Vec::with_capacity(rows.len());
    for row in rows {
        let (sign, seconds): (String, f64) = (row.try_get(0)?, row.try_get(1)?);
        if let Ok(sign) = serde_json::from_str(&sign) {
            nodes.push(HeardNode { sign, heard: Duration::try_from_secs_f64(seconds).unwrap_or_default() });
        }
    }
    Ok(nodes)
}

/// Whether the writer has made the table.
async fn is_there(session: &Session) -> Sql<bool> {
    let row = session.row("SELECT to_regclass('tributary.heard_nodes') IS NOT NULL", &[]).await?;
    Ok(row.try_get(0)?)
}

pub(super) async fn unsay(link: &Link, name: &str) -> Sql<()> {
    let held = link.held().await?;
    held.session()?.execute("DELETE FROM heard_nodes WHERE name = $1", &[&name]).await.map(drop)
}

//! Values of AUTO_INCREMENT columns that nodes have reserved.

use super::change::Change;
use super::{Sql, signed};
use sqlx::sqlite::SqlitePool;
use sqlx::{query, query_scalar};
use tributary_types::TableId;

pub(super) async fn reserve(pool: &SqlitePool, table: TableId, start: i64, count: i64) -> Sql<Option<i64>> {
    let mut change = Change::begin(pool).await?;
    let next: Option<i64> = query_scalar("SELECT next FROM increments WHERE table_id = ?")
        .bind(signed(table.0))
        .fetch_optional(&mut *change)
        .await?;
    let first = next.map_or(start, |next| next.max(start));
    let Some(end) = first.checked_add(count) else { return Ok(None) };
    query("INSERT OR REPLACE INTO increments (table_id, next) VALUES (?, ?)")
        .bind(signed(table.0))
        .bind(end)
        .execute(&mut *change)
        .await?;
    change.commit().await?;
    Ok(Some(first))
}

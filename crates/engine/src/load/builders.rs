//! Keeps block builders between loads, as their buffers have grown to what loads need.
//!
//! A session caches a small builder for its next load; there are thousands of sessions, and most are idle. Larger ones go to a
//! pool that all share. Both are bounded, because nothing counts them.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tributary_decode::BlockBuilder;
use tributary_types::TableSchema;

/// Builders in the pool; this many concurrent loads need no new one.
const KEPT_MAX: usize = 32;
/// Limit on the pool's memory, in bytes.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A builder that holds more moves from its session to the pool, in bytes.
const OWN_BYTES_MAX: usize = 64 * 1024;

/// Builders that no load uses now, the last used ones at the end.
#[derive(Debug, Default)]
pub(crate) struct Builders {
    idle: Mutex<VecDeque<BlockBuilder>>,
}

impl Builders {
    /// A builder for blocks of `schema`. One that was used for another schema would be of no use: it
    /// would give up its buffers.
    pub fn take(&self, schema: &Arc<TableSchema>) -> BlockBuilder {
        let mut idle = self.idle.lock();
        let known = idle.iter().rposition(|builder| Arc::ptr_eq(builder.schema(), schema));
        known.and_then(|at| idle.remove(at)).unwrap_or_else(|| BlockBuilder::new(schema))
    }

    pub fn give_back(&self, builder: BlockBuilder) {
        let mut idle = self.idle.lock();
        idle.push_back(builder);
        let mut bytes: usize = idle.iter().map(BlockBuilder::capacity_bytes).sum();
        while idle.len() > KEPT_MAX || bytes > KEPT_BYTES_MAX {
            let Some(oldest) = idle.pop_front() else { return };
            bytes -= oldest.capacity_bytes();
        }
    }
}

/// A session's cached builder.
#[derive(Debug, Default)]
pub(crate) struct OwnBuilder(Option<BlockBuilder>);

impl OwnBuilder {
    /// The session's builder if it has one for the schema, else one of the pool.
    pub fn take(&mut self, pool: &Builders, schema: &Arc<TableSchema>) -> BlockBuilder {
        match self.0.take() {
            Some(own) if Arc::ptr_eq(own.schema(), schema) => own,
            _ => pool.take(schema),
        }
    }

    pub fn keep(&mut self, builder: BlockBuilder, pool: &Builders) {
        if builder.capacity_bytes() <= OWN_BYTES_MAX {
            self.0 = Some(builder);
        } else {
            pool.give_back(builder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{ColumnDef, DataType, SchemaVersion};

    fn schema(columns: u32) -> Arc<TableSchema> {
        let column = |id| ColumnDef::new(id, &format!("c{id}"), DataType::String);
        Arc::new(TableSchema::new(SchemaVersion(1), (0..columns).map(column).collect()))
    }

    #[test]
    fn loads_of_two_tables_in_turn_find_their_builders_again() {
        let (builders, a, b) = (Builders::default(), schema(1), schema(1));
        builders.give_back(BlockBuilder::new(&a));
        builders.give_back(BlockBuilder::new(&b));
        for schema in [&a, &b, &a, &b] {
            let builder = builders.take(schema);
            assert!(Arc::ptr_eq(builder.schema(), schema));
            assert_eq!(builders.idle.lock().len(), 1, "one of those that were there");
            builders.give_back(builder);
        }
    }

    fn grown(mut builder: BlockBuilder, text_bytes: usize) -> BlockBuilder {
        let columns = builder.schema().columns.len();
        for index in 0..columns {
            builder.push_text(index, &"x".repeat(text_bytes));
        }
        builder.finish_row();
        builder.finish().unwrap();
        builder
    }

    #[test]
    fn a_session_keeps_a_small_builder_and_gives_a_large_one_to_the_pool() {
        let (pool, mut own, schema) = (Builders::default(), OwnBuilder::default(), schema(1));
        let builder = grown(own.take(&pool, &schema), 1000);
        own.keep(builder, &pool);
        assert!(own.0.is_some() && pool.idle.lock().is_empty());
        let builder = grown(own.take(&pool, &schema), OWN_BYTES_MAX);
        let bytes = builder.capacity_bytes();
        own.keep(builder, &pool);
        assert!(own.0.is_none());
        assert_eq!(own.take(&pool, &schema).capacity_bytes(), bytes, "it comes back for the next large load");
        assert!(pool.idle.lock().is_empty());
    }

    #[test]
    fn the_pool_keeps_no_more_than_its_bytes_and_lets_the_longest_unused_go() {
        let (pool, wide, other) = (Builders::default(), schema(20), schema(1));
        pool.give_back(grown(BlockBuilder::new(&other), OWN_BYTES_MAX));
        for _ in 0..8 {
            pool.give_back(grown(BlockBuilder::new(&wide), 1_000_000));
        }
        let kept: usize = pool.idle.lock().iter().map(BlockBuilder::capacity_bytes).sum();
        assert!((KEPT_BYTES_MAX / 2..=KEPT_BYTES_MAX).contains(&kept), "{kept}");
        assert_eq!(pool.take(&other).capacity_bytes(), 0, "it was the longest unused");
        assert!(pool.take(&wide).capacity_bytes() >= 20_000_000);
    }
}

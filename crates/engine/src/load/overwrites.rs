//! The tables and partitions that running statements overwrite: no two the same.

use crate::load::Overwrites;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tributary_types::{ErrorCode, PartitionId, SqlError, TableDef, TableId};

/// The running overwrites.
#[derive(Debug, Default)]
pub(crate) struct RunningOverwrites(Arc<Mutex<HashMap<TableId, Vec<Parts>>>>);

/// The partitions that a statement overwrites. `None`: the table as a whole, or whichever its rows are in.
type Parts = Option<BTreeSet<PartitionId>>;

/// The right to overwrite something, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Claim {
    running: RunningOverwrites,
    table: TableId,
    parts: Parts,
}

impl RunningOverwrites {
    /// # Errors
    /// Another statement overwrites the same.
    pub(crate) fn claim(&self, def: &TableDef, what: &Overwrites) -> Result<Claim, SqlError> {
        let parts: Parts = match what {
            Overwrites::All | Overwrites::Touched => None,
            Overwrites::In(partitions) => {
                Some(partitions.list.iter().map(|partition| partition.id).collect())
            }
        };
        let mut running = self.0.lock();
        let of_table = running.entry(def.id).or_default();
        let meets = |other: &Parts| match (&parts, other) {
            (Some(parts), Some(other)) => !parts.is_disjoint(other),
            _ => true,
        };
        if of_table.iter().any(meets) {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "Not allowed running Insert Overwrite on same table or partition: another one of table {} runs, wait for it",
                    def.name
                ),
            ));
        }
        of_table.push(parts.clone());
        Ok(Claim { running: Self(Arc::clone(&self.0)), table: def.id, parts })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut running = self.running.0.lock();
        let Some(of_table) = running.get_mut(&self.table) else { return };
        if let Some(place) = of_table.iter().position(|parts| *parts == self.parts) {
            of_table.swap_remove(place);
        }
        if of_table.is_empty() {
            running.remove(&self.table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tributary_types::{ColumnId, PartitionMethod, Partitions, SchemaVersion, TableSchema};

    #[test]
    fn no_two_statements_overwrite_the_same() {
        let def = TableDef::new(TableId(1), "db", "t", TableSchema::new(SchemaVersion(1), Vec::new()));
        let mut all = Partitions::new(PartitionMethod::List, vec![ColumnId(1)]);
        for name in ["p", "q"] {
            all.add(name, tributary_types::partition::PartitionRows::Others, BTreeMap::default());
        }
        let [p, q] = [1, 2].map(|id| Overwrites::In(all.only(&[PartitionId(id)])));
        let running = RunningOverwrites::default();
        let first = running.claim(&def, &p).unwrap();
        let second = running.claim(&def, &q).unwrap();
        for again in [&p, &q, &Overwrites::All, &Overwrites::Touched] {
            let error = running.claim(&def, again).unwrap_err();
            assert!(error.detail_text().starts_with("Not allowed running Insert Overwrite"), "{error:?}");
        }
        drop((first, second));
        let whole = running.claim(&def, &Overwrites::All).unwrap();
        assert!(running.claim(&def, &p).is_err());
        drop(whole);
        assert!(running.0.lock().is_empty());
    }
}

//! Values of AUTO_INCREMENT columns: each is given once, whatever happens to the server in between.
//!
//! Loads of some tables reserve a value for each of their rows first, like a load of the engine. The fate of the rows does not
//! matter here: a reserved value is used up, even by a load that fails.

use crate::model::{LoadId, Violation};
use crate::trace::note;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use tributary_table::Table;
use tributary_types::TableId;

/// The first value.
const START: i64 = 3;

/// All values that were given.
#[derive(Clone, Debug, Default)]
pub struct Increments(BTreeMap<TableId, BTreeSet<i64>>);

impl Increments {
    /// Records that a load got a range of values from `first` on.
    ///
    /// # Errors
    /// A load had one of them before, or it is below the start.
    pub fn given(&mut self, table: TableId, load: LoadId, first: i64, count: u64) -> Result<(), Violation> {
        let known = self.0.entry(table).or_default();
        for value in (first..).take(count as usize) {
            if value < START || !known.insert(value) {
                return Err(Violation(format!(
                    "load {load} of table {table} was given the value {value}, which is below {START} or another row's"
                )));
            }
        }
        Ok(())
    }
}

/// Reserves values for the rows of a load. False if none are left: the load fails.
pub async fn give(world: &Rc<World>, table: &Arc<Table>, load: LoadId, rows: u64) -> bool {
    if table.id().0 * 59 % 100 >= world.plan.increment_tables {
        return true;
    }
    let process = world.process();
    match process.increments.take(table.id(), START, rows).await {
        Ok(first) => {
            note!(world.trace, "values", load, rows, "load {load} is given {rows} values from {first}");
            world.count(|counts| counts.increments += rows);
            let checked = world.increments.borrow_mut().given(table.id(), load, first, rows);
            world.check(checked).is_some()
        }
        Err(error) => {
            note!(world.trace, "valueless", load, rows, "load {load}: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_given_twice_is_found() {
        let mut increments = Increments::default();
        let (one, other) = (TableId(1), TableId(2));
        assert_eq!(increments.given(one, 1, 3, 5), Ok(()));
        assert_eq!(increments.given(other, 2, 3, 5), Ok(()));
        assert_eq!(increments.given(one, 3, 10, 5), Ok(()), "there may be gaps");
        assert!(increments.given(one, 4, 8, 3).unwrap_err().0.contains("the value 10"));
        assert!(increments.given(other, 5, 2, 1).is_err(), "below the start");
    }
}

//! Updates of rows by position, in tables that retain all rows: rows of some loads are replaced by those of a new one.

use crate::clients::{Hurry, leave, request, rows_to_change};
use crate::model::LoadId;
use crate::partition_changes;
use crate::rows::{self, Wanted, batch_of};
use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use tributary_table::{RowUpdate, Snapshot, Table, TableError};

/// The most rows of an update.
const ROWS_MAX: usize = 200;

/// Why rows were not updated.
enum NotUpdated {
    /// They were not found, or could not be written.
    Given(String),
    Table(TableError),
}

impl From<TableError> for NotUpdated {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl NotUpdated {
    fn text(self) -> String {
        match self {
            Self::Given(reason) => reason,
            Self::Table(error) => error.to_string(),
        }
    }

    fn says_nothing_was_changed(&self) -> bool {
        matches!(self, Self::Given(_) | Self::Table(TableError::Outrun { .. }))
    }
}

/// Updates some rows of a few loads.
pub async fn update(world: &Rc<World>, table: &Arc<Table>, hurry: Hurry) {
    let Some(mut rows) = rows_to_change(world, table) else { return };
    rows.truncate(ROWS_MAX);
    let begun = world.model.borrow_mut().update_begins(table.id(), &rows);
    let Some((deletion, load, rows)) = begun else { return };
    let count = rows.len() as u64;
    note!(
        world.trace,
        "update",
        load,
        count,
        "rows {rows:?} of table {} become load {load} (deletion {deletion})",
        table.id()
    );
    let wanted = &Wanted::Rows(rows.into_iter().collect());
    let (of_table, of_world) = (table, world);
    let find = |snapshot: Arc<Snapshot>| async move {
        if hurry == Hurry::None {
            // Others do something meanwhile.
            of_world.think(of_world.plan.think_us).await;
        }
        find(of_world, of_table, &snapshot, (wanted, load, count)).await.map_err(NotUpdated::Given)
    };
    // Boxed: tasks of the simulation are deep.
    let work = Box::pin(table.update("", |snapshot| Box::pin(find(snapshot))));
    let answer = match hurry {
        Hurry::None => request(world, work).await,
        Hurry::Leaves => leave(world, work).await,
    };
    if !world.is_alive() {
        return;
    }
    let is_unchanged = matches!(&answer, Some(Err(error)) if error.says_nothing_was_changed());
    let answer = answer.map(|answer| answer.map_err(NotUpdated::text));
    note!(world.trace, "updated", load, matches!(answer, Some(Ok(_))), "load {load}: {answer:?}");
    match answer {
        // The table had no file at all.
        Some(Ok(report)) if report.rows == 0 => {
            let checked = world.model.borrow_mut().refused(load);
            world.check(checked);
        }
        Some(Ok(report)) => {
            assert_eq!(report.rows, count, "all rows were found");
            world.count(|counts| {
                counts.updates += 1;
                counts.updated_rows += count;
            });
            world.model.borrow_mut().updated(deletion, load);
            world.query(table).await;
        }
        _ if is_unchanged => {
            let checked = world.model.borrow_mut().refused(load);
            world.check(checked);
        }
        _ => world.model.borrow_mut().unanswered(load),
    }
}

/// The rows in a snapshot's data files, and files with those of the load. An error if one of them has gone.
async fn find(
    world: &Rc<World>,
    table: &Arc<Table>,
    snapshot: &Snapshot,
    (wanted, load, count): (&Wanted, LoadId, u64),
) -> Result<RowUpdate, String> {
    if !partition_changes::make(world, table, load).await {
        return Err("the load has no partition".to_owned());
    }
    let mut found = rows::find(table, snapshot, wanted, &world.hardware.store, &world.cache).await?;
    for live in snapshot.files.iter() {
        if let (Some(rows), Some(deletes)) = (found.get_mut(live.path()), &live.deletes) {
            *rows -= deletes.rows();
        }
    }
    if found.values().map(tributary_table::RowSet::len).sum::<u64>() != count {
        return Err("some of the rows are gone".to_owned());
    }
    let mut writer = table.new_file_writer().map_err(|error| error.to_string())?;
    let schema = Arc::clone(writer.schema());
    if let Err(error) = writer.append(batch_of(&schema, false, load, count)).await {
        writer.abort().await;
        return Err(error.to_string());
    }
    let files = writer.finish().await.map_err(|error| error.to_string())?;
    if files.iter().map(|file| file.rows).sum::<u64>() != count {
        table.discard(&files).await;
        return Err("some of the new rows have no partition".to_owned());
    }
    Ok(RowUpdate { rows: found, files })
}

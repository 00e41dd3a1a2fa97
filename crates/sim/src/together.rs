//! Clients that commit loads of two tables as one transaction.

use crate::clients::{answered, any_table, begin, give_up, load_rows, request, row_count};
use crate::model::Kind;
use crate::rights;
use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use tributary_ingest::LoadRows;
use tributary_table::Table;
use tributary_types::Label;

/// How often another table is looked for.
const TRIES: usize = 4;

/// Loads rows into the table and another one, both or none.
pub async fn load(world: &Rc<World>, table: &Arc<Table>) {
    let others = (0..TRIES).filter_map(|_| any_table(world)).find(|other| other.id() != table.id());
    let Some(other) = others else { return };
    let tables = [table, &other];
    let (mut begun, mut ids) = (Vec::new(), Vec::new());
    for table in tables {
        let label = Label::of_insert(u128::from(world.throw(crate::dice::Dice::next)));
        let Some(reservation) = begin(world, &table.def(), &label, false) else { break };
        let rows = row_count(world);
        let id = world.model.borrow_mut().begin(table.id(), Kind::Off, rows, None);
        note!(world.trace, "together", id, rows, "load {id} of {rows} rows into table {}", table.id());
        let load = load_rows(world, table, id, rows, true).await;
        // The rights of two users would meet.
        rights::is_not_asked(world, id);
        let Some(load) = load else {
            give_up(world, id, reservation);
            break;
        };
        ids.push((id, rows));
        begun.push((table, reservation, LoadRows { right: None, ..load }));
    }
    if ids.len() < tables.len() || world.throw(|dice| dice.one_in(8)) {
        for ((id, _), (table, reservation, load)) in ids.into_iter().zip(begun) {
            table.discard(load.files()).await;
            give_up(world, id, reservation);
        }
        return;
    }
    world.model.borrow_mut().are_together([ids[0].0, ids[1].0]);
    let ingest = Arc::clone(&world.process().ingest);
    let begun = begun.into_iter().map(|(table, reservation, load)| (table.as_ref(), reservation, load));
    let answer = request(world, ingest.commit_together(begun.collect())).await;
    world.count(|counts| counts.together += u64::from(matches!(answer, Some(Ok(_)))));
    let answers: Vec<_> = match answer {
        None => ids.iter().map(|_| None).collect(),
        Some(Err(error)) => ids.iter().map(|_| Some(Err(error.clone()))).collect(),
        Some(Ok(all)) => all.into_iter().map(|one| Some(Ok(one))).collect(),
    };
    for ((id, rows), answer) in ids.into_iter().zip(answers) {
        answered(world, id, Kind::Off, rows, answer);
    }
    if world.is_alive() {
        for table in tables {
            world.query(table).await;
        }
    }
}

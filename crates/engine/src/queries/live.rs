//! Loads of the moment, as tables of `information_schema`.
//!
//! Not here: the columns' names, which the query engine declares.

use super::namespace::Facts;
use crate::node::clock::date_time;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_query::{Cell, LiveTable};
use tributary_types::{TableDef, TableId};

/// The rows of a table. `shows` says whether the user may see a table's own.
pub(super) fn rows(table: LiveTable, facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    match table {
        LiveTable::Channels => channels(facts, shows),
        LiveTable::Keys => keys(facts),
    }
}

fn channels(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let tables = facts.names.all_tables();
    let shown: HashMap<TableId, Arc<TableDef>> =
        tables.iter().map(|table| table.def()).filter(|def| shows(def)).map(|def| (def.id, def)).collect();
    let channels = facts.ingest.channels(None).into_iter();
    let mut rows: Vec<_> =
        channels.filter_map(|channel| Some((shown.get(&channel.table)?, channel))).collect();
    rows.sort_by(|(a, _), (b, _)| (&a.db, &a.name).cmp(&(&b.db, &b.name)));
    rows.into_iter()
        .map(|(def, channel)| {
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                channel.channel.as_str().into(),
                channel.next_offset.into(),
                channel.last_offset.into(),
                channel.txn.0.into(),
                channel.label.as_str().into(),
                channel.counts.loaded.into(),
                channel.counts.filtered.into(),
                date_time(channel.at_ms).into(),
            ]
        })
        .collect()
}

fn keys(facts: &Facts) -> Vec<Vec<Cell>> {
    let keys = facts.ingest.key_figures();
    let figures = [
        keys.running,
        keys.recent,
        keys.stored,
        keys.files,
        keys.memory_bytes,
        keys.limit,
        keys.keep_seconds,
    ];
    vec![figures.map(Cell::from).to_vec()]
}

//! Loads of the moment, samples and problems, as tables of `information_schema`.
//!
//! Not here: the columns' names, which the query engine declares.

use super::namespace::Facts;
use super::namespace::RejectId;
use super::nodes;
use crate::access::events::Event;
use crate::node::clock::{date_time, date_time_ms};
use crate::node::options::SettingView;
use crate::watch::Sample;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::CloseReason;
use tributary_query::{Cell, LiveTable};
use tributary_types::host::unix_ms;
use tributary_types::{TableDef, TableId, TransactionStatus};

/// The rows of a table. `shows` says whether the user may see a table's own, `reads` whether
/// the user may read the table, `rejects` which rejected rows are shown if not all, and `shows_server` whether the user may see the rows of the server.
pub(super) fn rows(
    table: LiveTable,
    facts: &Facts,
    shows: impl Fn(&TableDef) -> bool,
    (reads, rejects): (impl Fn(&TableDef) -> bool, Option<&BTreeSet<RejectId>>),
    shows_server: impl Fn() -> bool,
) -> Vec<Vec<Cell>> {
    match table {
        LiveTable::Channels => channels(facts, shows),
        LiveTable::Keys => keys(facts),
        LiveTable::GroupQueues => group_queues(facts, shows),
        LiveTable::FinishedGroups => finished_groups(facts, shows),
        LiveTable::PreparedLoads => prepared_loads(facts, shows),
        LiveTable::Transactions => transactions(facts, shows),
        LiveTable::RejectedRows => rejected_rows(facts, reads, rejects),
        LiveTable::Problems => problems(facts, shows, shows_server()),
        LiveTable::Logs if shows_server() => logs(facts),
        LiveTable::Samples if shows_server() => samples(facts),
        LiveTable::Events if shows_server() => events(facts),
        LiveTable::Settings if shows_server() => settings(facts),
        LiveTable::FileCache if shows_server() => file_cache(facts),
        LiveTable::Memory if shows_server() => memory(facts),
        LiveTable::TableWork => table_work(facts, shows),
        LiveTable::FollowedTables => followed_tables(facts, shows),
        LiveTable::Nodes if shows_server() => nodes::rows(facts),
        LiveTable::Logs
        | LiveTable::Samples
        | LiveTable::Events
        | LiveTable::Settings
        | LiveTable::FileCache
        | LiveTable::Memory
        | LiveTable::Nodes => Vec::new(),
    }
}

/// The tables that the user may see.
fn shown_tables(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> HashMap<TableId, Arc<TableDef>> {
    let tables = facts.names.all_tables();
    tables.iter().map(|table| table.def()).filter(|def| shows(def)).map(|def| (def.id, def)).collect()
}

/// Tables that another server writes, with the age of what is known of them.
fn followed_tables(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let tables = facts.names.all_tables();
    let followed = tables.iter().filter_map(|table| Some((table.snapshot(), table.staleness()?)));
    let mut followed: Vec<_> = followed.filter(|(snapshot, _)| shows(&snapshot.def)).collect();
    followed.sort_by(|(a, _), (b, _)| (&a.def.db, &a.def.name).cmp(&(&b.def.db, &b.def.name)));
    followed
        .into_iter()
        .map(|(snapshot, staleness)| {
            vec![
                snapshot.def.db.as_str().into(),
                snapshot.def.name.as_str().into(),
                snapshot.delta_version.into(),
                staleness.age.map(millis).into(),
                staleness.failure.into(),
            ]
        })
        .collect()
}

fn group_queues(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
    let queues = facts.ingest.group_queues().into_iter();
    let mut rows: Vec<_> = queues.filter_map(|queue| Some((shown.get(&queue.table)?, queue))).collect();
    rows.sort_by(|(a, _), (b, _)| (&a.db, &a.name).cmp(&(&b.db, &b.name)));
    rows.into_iter()
        .map(|(def, queue)| {
            let open = queue.open.as_ref();
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                queue.state.name().into(),
                open.map(|group| group.txn.0).into(),
                open.map(|group| group.label.as_str()).into(),
                open.map(|group| millis(group.age)).into(),
                open.and_then(|group| group.closes_in).map(millis).into(),
                open.map_or(0, |group| group.loads).into(),
                open.map_or(0, |group| group.waiting).into(),
                open.map_or(0, |group| group.rows).into(),
                open.map_or(0, |group| group.bytes).into(),
                queue.closed_groups.into(),
                queue.closed_rows.into(),
                queue.commits_in_flight.into(),
                queue.memory_bytes.into(),
                queue.last_closed_by.map(CloseReason::name).into(),
            ]
        })
        .collect()
}

fn finished_groups(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
    let groups = facts.ingest.finished_groups().into_iter();
    groups
        .filter_map(|group| Some((shown.get(&group.table)?, group)))
        .map(|(def, group)| {
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                group.txn.0.into(),
                group.label.as_str().into(),
                group.status().into(),
                group.version.map(|version| version.0).into(),
                group.closed_by.map(CloseReason::name).into(),
                group.loads.into(),
                group.waited.into(),
                group.rows.into(),
                group.bytes.into(),
                date_time_ms(group.opened_at_ms).into(),
                date_time_ms(group.finished_at_ms).into(),
                micros(group.open).into(),
                micros(group.build).into(),
                micros(group.log).into(),
                micros(group.publish).into(),
                group.error.into(),
            ]
        })
        .collect()
}

fn transactions(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let tables = facts.names.all_tables();
    let shown: HashMap<_, _> = tables
        .iter()
        .map(|table| (table.id(), (table, table.def())))
        .filter(|(_, (_, def))| shows(def))
        .collect();
    let found = facts.ingest.transactions().matching(|info| shown.contains_key(&info.table));
    found
        .into_iter()
        .filter_map(|info| Some((shown.get(&info.table)?, info)))
        .map(|((table, def), info)| {
            let is_visible = info.status == TransactionStatus::Visible;
            let version = Some(info.version).filter(|version| is_visible && version.0 > 0);
            let time = |at_ms: Option<i64>| Cell::from(at_ms.map(date_time_ms));
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                info.txn.0.into(),
                info.label.as_str().into(),
                info.status.name().into(),
                info.kind.source_type().into(),
                time(Some(info.prepared_at_ms)),
                time(info.precommitted_at_ms),
                time(info.finished_at_ms),
                u64::from(info.loads).into(),
                info.rows.into(),
                info.bytes.into(),
                version.map(|version| version.0).into(),
                table.delta_version_of(info.version).filter(|_| is_visible).map(i64::unsigned_abs).into(),
                Some(info.reason).filter(|reason| !reason.is_empty()).into(),
            ]
        })
        .collect()
}

fn prepared_loads(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
    let loads = facts.ingest.prepared_loads().into_iter();
    let now_ms = unix_ms();
    loads
        .filter_map(|load| Some((shown.get(&load.table)?, load)))
        .map(|(def, load)| {
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                load.txn.0.into(),
                load.label.as_str().into(),
                load.client.into(),
                date_time_ms(load.prepared_at_ms).into(),
                ((now_ms - load.prepared_at_ms).max(0) / 1000).into(),
                date_time_ms(load.expires_at_ms).into(),
                load.rows.into(),
                load.bytes.into(),
                load.memory_bytes.into(),
            ]
        })
        .collect()
}

fn rejected_rows(
    facts: &Facts,
    reads: impl Fn(&TableDef) -> bool,
    only: Option<&BTreeSet<RejectId>>,
) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, reads);
    let loads = match facts.ingest.rejected_loads(|table| shown.contains_key(&table)) {
        Ok(loads) => loads,
        Err(error) => {
            tracing::error!(%error, "rejected rows can't be read");
            return Vec::new();
        }
    };
    loads
        .iter()
        .filter_map(|load| Some((shown.get(&load.table)?, load)))
        .flat_map(|(def, load)| {
            let rejects = &load.rejects;
            let (txn, number) = (load.txn.0, u64::from(load.load));
            let head: Vec<Cell> = vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                date_time_ms(load.at_ms).into(),
                txn.into(),
                load.label.as_str().into(),
                number.into(),
                rejects.source.as_str().into(),
            ];
            let row = move |own: [Cell; 7]| {
                let mut row = head.clone();
                row.extend(own);
                row.push(rejects.filtered.into());
                row
            };
            let is_shown = |place: usize| {
                let id = RejectId { txn, load: number, reject: place as u64 + 1 };
                only.is_none_or(|only| only.contains(&id))
            };
            let kept = rejects.rows.iter().enumerate().filter(|(place, _)| is_shown(*place));
            let mut rows: Vec<_> = kept
                .map(|(place, reject)| {
                    row([
                        (place as u64 + 1).into(),
                        reject.row.into(),
                        reject.column.as_deref().into(),
                        reject.code.name().into(),
                        reject.reason.as_str().into(),
                        reject.raw.as_str().into(),
                        load.replayed_by.get(&(place as u32)).map(|txn| txn.0).into(),
                    ])
                })
                .collect();
            let others = rejects.not_kept();
            if others > 0 && only.is_none() {
                let reason = format!("{others} more rejected rows of the load were only counted");
                let none = || Cell::from(None::<u64>);
                let text = None::<&str>;
                rows.push(row([
                    none(),
                    none(),
                    text.into(),
                    "NOT_KEPT".into(),
                    reason.into(),
                    text.into(),
                    none(),
                ]));
            }
            rows
        })
        .collect()
}

/// Problems of tables are shown to users that see the table, and those of the server to administrators.
fn problems(facts: &Facts, shows: impl Fn(&TableDef) -> bool, shows_server: bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
    let problems = facts.watch.problems().into_iter();
    problems
        .filter_map(|problem| {
            let def = match problem.table {
                Some(table) => Some(shown.get(&table)?),
                None if shows_server => None,
                None => return None,
            };
            Some(vec![
                problem.kind.name().into(),
                problem.severity().name().into(),
                def.map(|def| def.db.as_str()).into(),
                def.map(|def| def.name.as_str()).into(),
                problem.subject.into(),
                date_time_ms(problem.since_ms).into(),
                problem.text.into(),
                problem.cause.into(),
                problem.way_out.into(),
            ])
        })
        .collect()
}

fn events(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |event: Event| {
        let (user, client) = event.by.unzip();
        vec![
            date_time_ms(event.at_ms).into(),
            event.kind.name().into(),
            user.into(),
            client.into(),
            event.text.into(),
        ]
    };
    facts.events.all().into_iter().map(row).collect()
}

fn settings(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |setting: SettingView| {
        vec![
            setting.name.into(),
            setting.value.as_str().into(),
            setting.default.into(),
            setting.origin.as_str().into(),
            setting.accepts.as_str().into(),
            setting.meaning.into(),
            setting.type_name.into(),
            if setting.is_mutable { "true" } else { "false" }.into(),
        ]
    };
    facts.settings.get().into_iter().flat_map(|settings| settings.views()).map(row).collect()
}

/// Who has the memory that is counted. The process has more: what is counted by nobody, and pages that the allocator keeps.
fn memory(facts: &Facts) -> Vec<Vec<Cell>> {
    let (budget, rejects) = (facts.ingest.memory(), facts.ingest.reject_figures());
    let others = facts.memory.get().map(|others| others()).unwrap_or_default();
    let of_process = Some(tributary_types::memory::limit()).filter(|limit| *limit != u64::MAX);
    let in_memtables = budget.used().saturating_sub(budget.in_groups());
    let of_loads = Some(budget.limit());
    let pages = others.page_cache;
    let rows: [(&str, u64, Option<u64>, Option<&str>); 9] = [
        ("PROCESS", tributary_types::memory::resident(), of_process, Some("mem_limit")),
        ("GROUPS", budget.in_groups(), of_loads, Some("group_commit_queue_mem_limit")),
        ("MEMTABLES", in_memtables, of_loads, Some("group_commit_queue_mem_limit")),
        ("LOADS_IN_FLIGHT", budget.in_flight(), of_loads, Some("group_commit_queue_mem_limit")),
        ("QUERIES", others.queries, Some(others.queries_limit), Some("exec_mem_limit")),
        ("PAGE_CACHE", pages.held_bytes, Some(pages.limit_bytes), Some("storage_page_cache_limit")),
        ("SESSIONS", others.sessions, Some(others.sessions_limit), Some("session_mem_limit")),
        ("LOAD_KEYS", facts.ingest.key_figures().memory_bytes, None, Some("load_keys_max")),
        ("REJECTED_ROWS", rejects.recent_bytes, None, None),
    ];
    rows.into_iter()
        .map(|(owner, bytes, limit, setting)| vec![owner.into(), bytes.into(), limit.into(), setting.into()])
        .collect()
}

fn table_work(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
    let all = facts.ingest.table_work().into_iter();
    all.filter_map(|work| Some((shown.get(&work.table)?, work)))
        .map(|(def, work)| {
            vec![
                def.db.as_str().into(),
                def.name.as_str().into(),
                work.kind.name().into(),
                work.state().into(),
                date_time_ms(work.began_at_ms).into(),
                micros(work.took).into(),
                work.rows.into(),
                work.bytes.into(),
                work.files.into(),
                work.files_replaced.into(),
                work.delta_version.map(i64::unsigned_abs).into(),
                work.error.into(),
            ]
        })
        .collect()
}

fn samples(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |sample: Sample| {
        let sizes = sample.sizes;
        let mut row = vec![Cell::from(date_time_ms(sample.at_ms))];
        let figures = [
            sample.every_seconds,
            sample.rows_per_second,
            sample.logged_bytes_per_second,
            sample.loads_per_second,
            sample.groups_per_second,
            sample.rejected_rows_per_second,
            sample.syncs_per_second,
            sizes.load_memory_bytes,
            sizes.wal_live_bytes,
            sizes.resident_bytes,
            sizes.waiting_loads,
            sizes.connections,
            sizes.running_statements,
        ];
        row.extend(figures.map(Cell::from));
        row
    };
    facts.watch.samples().into_iter().map(row).collect()
}

/// One row for each figure of the cache, if there is one.
fn file_cache(facts: &Facts) -> Vec<Vec<Cell>> {
    let Some(cache) = facts.store.read_cache() else { return Vec::new() };
    let directory = cache.directory.display().to_string();
    let figures = [
        ("limit_bytes", cache.limit_bytes),
        ("bytes", cache.bytes),
        ("blocks", cache.blocks),
        ("hits", cache.hits),
        ("misses", cache.misses),
        ("hit_bytes", cache.hit_bytes),
        ("miss_bytes", cache.miss_bytes),
        ("evictions", cache.evictions),
        ("damaged", cache.damaged),
        ("not_kept", cache.not_kept),
    ];
    let number = nodes::number(&facts.node, facts.nodes.reads_only);
    let row = |(name, figure): (&str, u64)| -> Vec<Cell> {
        vec![number.into(), facts.host.as_str().into(), directory.as_str().into(), name.into(), figure.into()]
    };
    figures.into_iter().map(row).collect()
}

fn logs(facts: &Facts) -> Vec<Vec<Cell>> {
    let names = shown_tables(facts, |_| true);
    let logs = facts.ingest.logs().into_iter();
    logs.map(|log| {
        let (stats, holder) = (log.stats, log.holder.as_ref());
        let held = holder.and_then(|holder| names.get(&holder.table));
        vec![
            log.dir.display().to_string().into(),
            (stats.segments as u64).into(),
            (stats.spare_segments as u64).into(),
            stats.bytes_total.into(),
            stats.live_bytes.into(),
            log.pending_bytes.into(),
            log.available_bytes.into(),
            stats.released_lsn.0.into(),
            stats.end_lsn.0.into(),
            stats.fsyncs.into(),
            stats.batches.into(),
            stats.entries.into(),
            stats.bytes_written.into(),
            log.tables.into(),
            log.waiting_loads.into(),
            held.map(|def| def.db.as_str()).into(),
            held.map(|def| def.name.as_str()).into(),
            holder.and_then(|holder| holder.txn).map(|txn| txn.0).into(),
            holder.map(|holder| stats.end_lsn.0.saturating_sub(holder.lsn.0)).into(),
            holder.map(|holder| holder.why).into(),
        ]
    })
    .collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn channels(facts: &Facts, shows: impl Fn(&TableDef) -> bool) -> Vec<Vec<Cell>> {
    let shown = shown_tables(facts, shows);
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

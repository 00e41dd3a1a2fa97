//! SHOW FRONTENDS, SHOW BACKENDS and their CONFIG: this server in both of Doris's roles, and the other nodes that share its catalog; and
//! the rows of `jobs()` and `tasks()`.
//!
//! A node that only reads is Doris's observer among front ends, and a computation node that takes no loads among back ends.

use super::facts::size_text;
use crate::model::{Cell, Grid};
use crate::namespace::{JobKind, LiveTable, Namespace, NodeFacts, ServerFacts};
use tributary_types::SqlError;

/// The columns of `jobs("type" = "insert")` and of SHOW JOBS.
pub const SCHEDULED_COLUMNS: [&str; 12] = [
    "Id",
    "Name",
    "Definer",
    "ExecuteType",
    "RecurringStrategy",
    "Status",
    "ExecuteSql",
    "CreateTime",
    "SucceedTaskCount",
    "FailedTaskCount",
    "CanceledTaskCount",
    "Comment",
];

/// The columns of `tasks("type" = "insert")`.
const RUN_COLUMNS: [&str; 12] = [
    "TaskId",
    "JobId",
    "JobName",
    "Label",
    "Status",
    "ErrorMsg",
    "CreateTime",
    "StartTime",
    "FinishTime",
    "TrackingUrl",
    "LoadStatistic",
    "User",
];

fn number(value: impl Into<u64>) -> Cell {
    Cell::Text(value.into().to_string())
}

/// -1 says that Arrow Flight SQL is off.
fn flight_port(port: Option<u16>) -> Cell {
    port.map_or_else(|| "-1".into(), number)
}

/// The rows of the table functions `backends()`, `frontends()`, `jobs()` and `tasks()`, by the planner's names of these; `None` for another function.
///
/// # Errors
/// The user may not see them.
pub fn called(function: &str, namespace: &dyn Namespace) -> Result<Option<Grid>, SqlError> {
    let rows = match function {
        "__backends" => backends,
        "__frontends" => frontends,
        // Each user sees the own ones.
        "__jobs" => return Ok(Some(jobs(namespace, JobKind::Scheduled, &SCHEDULED_COLUMNS))),
        "__tasks" => return Ok(Some(jobs(namespace, JobKind::ScheduledRuns, &RUN_COLUMNS))),
        _ => return Ok(None),
    };
    namespace.check_shows_server()?;
    Ok(Some(rows(namespace)))
}

fn jobs(namespace: &dyn Namespace, kind: JobKind, columns: &[&str]) -> Grid {
    let mut grid = Grid::new(columns);
    namespace.jobs(kind).into_iter().for_each(|row| grid.push(row));
    grid
}

/// Name, value, type, whether it may change, and meaning of each setting.
fn settings(namespace: &dyn Namespace) -> impl Iterator<Item = [Cell; 5]> {
    namespace.live(LiveTable::Settings).into_iter().filter_map(|row| {
        let [name, value, _default, _origin, _accepts, meaning, type_name, is_mutable] =
            <[Cell; 8]>::try_from(row).ok()?;
        Some([name, value, type_name, is_mutable, meaning])
    })
}

/// The settings in the columns of Doris's front end.
pub(super) fn config(namespace: &dyn Namespace) -> Grid {
    let mut grid = Grid::new(&["Key", "Value", "Type", "IsMutable", "MasterOnly", "Comment"]);
    for [name, value, type_name, is_mutable, meaning] in settings(namespace) {
        grid.push(vec![name, value, type_name, is_mutable, "false".into(), meaning]);
    }
    grid
}

/// The settings in the columns of Doris's back end.
pub(super) fn backend_config(namespace: &dyn Namespace) -> Grid {
    let ServerFacts { host, node_number, .. } = namespace.server_facts();
    let mut grid = Grid::new(&["BackendId", "Host", "Key", "Value", "Type", "IsMutable"]);
    for [name, value, type_name, is_mutable, _meaning] in settings(namespace) {
        grid.push(vec![number(node_number), host.as_str().into(), name, value, type_name, is_mutable]);
    }
    grid
}

fn truth(is: bool) -> Cell {
    if is { "true" } else { "false" }.into()
}

/// The reason why a node is not alive.
fn silence(node: &NodeFacts) -> String {
    if node.is_alive { String::new() } else { format!("not heard of for {} s", node.heard_seconds) }
}

/// The rows of all nodes, the writer first.
fn of_all(own: Vec<Cell>, facts: &ServerFacts, row: fn(&NodeFacts) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut rows: Vec<_> = facts.others.iter().map(row).collect();
    let before = facts.others.iter().filter(|node| facts.reads_only && !node.reads_only).count();
    rows.insert(before, own);
    rows
}

/// The columns that Doris has.
const FRONTEND_COLUMNS: [&str; 19] = [
    "Name",
    "Host",
    "EditLogPort",
    "HttpPort",
    "QueryPort",
    "RpcPort",
    "ArrowFlightSqlPort",
    "Role",
    "IsMaster",
    "ClusterId",
    "Join",
    "Alive",
    "ReplayedJournalId",
    "LastStartTime",
    "LastHeartbeat",
    "IsHelper",
    "ErrMsg",
    "Version",
    "CurrentConnected",
];

/// `FOLLOWER` can be a master in Doris, `OBSERVER` only reads.
fn role(reads_only: bool) -> Cell {
    if reads_only { "OBSERVER" } else { "FOLLOWER" }.into()
}

fn other_frontend(node: &NodeFacts) -> Vec<Cell> {
    vec![
        node.name.as_str().into(),
        node.host.as_str().into(),
        "0".into(),
        number(node.http_port),
        number(node.query_port),
        "0".into(),
        flight_port(node.flight_port),
        role(node.reads_only),
        truth(!node.reads_only),
        "0".into(),
        "true".into(),
        truth(node.is_alive),
        "0".into(),
        node.start_time.as_str().into(),
        node.heard_time.as_str().into(),
        truth(!node.reads_only),
        silence(node).into(),
        node.version.as_str().into(),
        "No".into(),
    ]
}

pub(super) fn frontends(namespace: &dyn Namespace) -> Grid {
    let facts = namespace.server_facts();
    let own = vec![
        facts.node_name.as_str().into(),
        facts.host.as_str().into(),
        "0".into(),
        number(facts.http_port),
        number(facts.query_port),
        "0".into(),
        flight_port(facts.flight_port),
        role(facts.reads_only),
        truth(!facts.reads_only),
        "0".into(),
        "true".into(),
        "true".into(),
        "0".into(),
        facts.start_time.as_str().into(),
        Cell::Null,
        truth(!facts.reads_only),
        "".into(),
        facts.version.as_str().into(),
        "Yes".into(),
    ];
    let mut grid = Grid::new(&FRONTEND_COLUMNS);
    of_all(own, &facts, other_frontend).into_iter().for_each(|row| grid.push(row));
    grid
}

/// The columns that Doris has.
const BACKEND_COLUMNS: [&str; 27] = [
    "BackendId",
    "Host",
    "HeartbeatPort",
    "BePort",
    "HttpPort",
    "BrpcPort",
    "ArrowFlightSqlPort",
    "LastStartTime",
    "LastHeartbeat",
    "Alive",
    "SystemDecommissioned",
    "TabletNum",
    "DataUsedCapacity",
    "TrashUsedCapacity",
    "AvailCapacity",
    "TotalCapacity",
    "UsedPct",
    "MaxDiskUsedPct",
    "RemoteUsedCapacity",
    "Tag",
    "ErrMsg",
    "Version",
    "Status",
    "HeartbeatFailureCounter",
    "NodeRole",
    "CpuCores",
    "Memory",
];

/// Doris's tag of nodes that belong to no group.
const TAG: &str = r#"{"location" : "default"}"#;

/// The state of a node in Doris's JSON.
fn status(takes_queries: bool, takes_loads: bool) -> Cell {
    let (no_queries, no_loads) = (!takes_queries, !takes_loads);
    format!(
        r#"{{"lastSuccessReportTabletsTime":"N/A","lastStreamLoadTime":-1,"isQueryDisabled":{no_queries},"isLoadDisabled":{no_loads}}}"#
    )
    .into()
}

/// `mix` computes and has tables in Doris, `computation` only computes.
fn backend_role(reads_only: bool) -> Cell {
    if reads_only { "computation" } else { "mix" }.into()
}

/// Tables are in the store that all nodes share: they are counted at the node that is asked.
fn other_backend(node: &NodeFacts) -> Vec<Cell> {
    vec![
        number(node.number),
        node.host.as_str().into(),
        "0".into(),
        "0".into(),
        number(node.webserver_port),
        "0".into(),
        flight_port(node.flight_port),
        node.start_time.as_str().into(),
        node.heard_time.as_str().into(),
        truth(node.is_alive),
        "false".into(),
        "0".into(),
        size_text(0).into(),
        size_text(0).into(),
        size_text(0).into(),
        size_text(0).into(),
        "0.00 %".into(),
        "0.00 %".into(),
        size_text(0).into(),
        TAG.into(),
        silence(node).into(),
        node.version.as_str().into(),
        status(node.is_alive, node.is_alive && !node.reads_only),
        "0".into(),
        backend_role(node.reads_only),
        number(node.cpu_cores),
        size_text(0).into(),
    ]
}

pub(super) fn backends(namespace: &dyn Namespace) -> Grid {
    let facts = namespace.server_facts();
    let tables: usize = namespace.databases().iter().map(|database| namespace.tables(database).len()).sum();
    let used = facts.disk_total_bytes.saturating_sub(facts.disk_available_bytes);
    let is_draining = facts.decommission.is_some();
    let percent = match facts.disk_total_bytes {
        0 => "0.00 %".to_owned(),
        total => format!("{:.2} %", used as f64 * 100.0 / total as f64),
    };
    let own = vec![
        number(facts.node_number),
        facts.host.as_str().into(),
        "0".into(),
        "0".into(),
        number(facts.webserver_port),
        "0".into(),
        flight_port(facts.flight_port),
        facts.start_time.as_str().into(),
        Cell::Null,
        "true".into(),
        truth(is_draining),
        number(tables as u64),
        size_text(facts.data_bytes).into(),
        size_text(0).into(),
        size_text(facts.disk_available_bytes).into(),
        size_text(facts.disk_total_bytes).into(),
        percent.as_str().into(),
        percent.as_str().into(),
        size_text(0).into(),
        TAG.into(),
        facts.decommission.map(|state| state.to_string()).unwrap_or_default().into(),
        facts.version.as_str().into(),
        status(true, !is_draining && !facts.reads_only),
        "0".into(),
        backend_role(facts.reads_only),
        number(facts.cpu_cores),
        size_text(facts.memory_bytes).into(),
    ];
    let mut grid = Grid::new(&BACKEND_COLUMNS);
    of_all(own, &facts, other_backend).into_iter().for_each(|row| grid.push(row));
    grid
}

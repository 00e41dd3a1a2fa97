//! SHOW FRONTENDS, SHOW BACKENDS and their CONFIG: this server, in both of its roles; and the rows of `jobs()` and `tasks()`.

use super::facts::size_text;
use crate::model::{Cell, Grid};
use crate::namespace::{JobKind, LiveTable, Namespace};
use tributary_types::SqlError;

/// The number of this server among Doris's back ends, which has no meaning here.
const BACKEND_ID: &str = "10001";

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
    let host = namespace.server_facts().host;
    let mut grid = Grid::new(&["BackendId", "Host", "Key", "Value", "Type", "IsMutable"]);
    for [name, value, type_name, is_mutable, _meaning] in settings(namespace) {
        grid.push(vec![BACKEND_ID.into(), host.as_str().into(), name, value, type_name, is_mutable]);
    }
    grid
}

pub(super) fn frontends(namespace: &dyn Namespace) -> Grid {
    let facts = namespace.server_facts();
    let mut grid = Grid::new(&[
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
    ]);
    grid.push(vec![
        facts.node_name.into(),
        facts.host.into(),
        "0".into(),
        number(facts.http_port),
        number(facts.query_port),
        "0".into(),
        flight_port(facts.flight_port),
        "FOLLOWER".into(),
        "true".into(),
        "0".into(),
        "true".into(),
        "true".into(),
        "0".into(),
        facts.start_time.into(),
        Cell::Null,
        "true".into(),
        "".into(),
        facts.version.into(),
        "Yes".into(),
    ]);
    grid
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
    let mut grid = Grid::new(&[
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
    ]);
    grid.push(vec![
        BACKEND_ID.into(),
        facts.host.into(),
        "0".into(),
        "0".into(),
        number(facts.webserver_port),
        "0".into(),
        flight_port(facts.flight_port),
        facts.start_time.into(),
        Cell::Null,
        "true".into(),
        if is_draining { "true" } else { "false" }.into(),
        number(tables as u64),
        size_text(facts.data_bytes).into(),
        size_text(0).into(),
        size_text(facts.disk_available_bytes).into(),
        size_text(facts.disk_total_bytes).into(),
        percent.as_str().into(),
        percent.as_str().into(),
        size_text(0).into(),
        r#"{"location" : "default"}"#.into(),
        facts.decommission.map(|state| state.to_string()).unwrap_or_default().into(),
        facts.version.into(),
        format!(
            r#"{{"lastSuccessReportTabletsTime":"N/A","lastStreamLoadTime":-1,"isQueryDisabled":false,"isLoadDisabled":{is_draining}}}"#
        )
        .into(),
        "0".into(),
        "mix".into(),
        number(facts.cpu_cores),
        size_text(facts.memory_bytes).into(),
    ]);
    grid
}
